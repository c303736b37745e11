//! The tree's nodes as columns.

use super::arena::Arena;
use super::label_counts::LabelCounts;
use super::label_index::LabelIndex;
use super::routing_tree::RoutingTree;
use crate::file::Report;
use crate::tree::{NodeId, Topology};

impl RoutingTree {
    /// The nodes that have seen an example, breadth first, with the columns that the Python
    /// class documents as `tree_`.
    pub(super) fn node_report(&self, label_index: &LabelIndex) -> Report {
        let arena = &self.arena;
        let tree = self.seen_nodes();
        let nodes = || tree.nodes.iter().map(|&id| arena.node(id));
        let counts = || nodes().map(|node| &node.counts);
        let mut report = tree.report();
        report.column("n_examples", counts().map(|counts| counts.total));
        report.column("n_labels", counts().map(|counts| counts.n_labels() as u32));
        // A node without candidates has only been passed; it shows the first label, if any.
        let top = counts().map(|counts| counts.candidates().first().copied());
        let labels = label_index.labels();
        let label = top.map(|id| labels.get(id.unwrap_or_default().at()).map_or(0, |&l| l));
        report.column("label", label);
        report.column("label_entropy", nodes().map(|node| node.entropy.max(0.0)));
        // 0 where no example has come.
        let recall = counts().map(|counts| counts.mass / counts.total.max(f64::MIN_POSITIVE));
        report.column("recall", recall);
        report.column("recall_bound", nodes().map(|node| node.bound));
        let held = tree.parent.iter().zip(&tree.nodes).map(|(&parent, &id)| {
            let parent = usize::try_from(parent).ok();
            parent.is_some_and(|parent| self.is_final(tree.nodes[parent], id))
        });
        report.flags("held", held);
        report.column("n_trained", nodes().map(|node| node.trained));
        let mut end = 0;
        let ends = counts().map(|counts| {
            end += counts.candidates().len() as i64;
            end
        });
        report.column("candidate_starts", std::iter::once(0).chain(ends));
        let candidates = counts().flat_map(LabelCounts::candidates);
        report.column("candidates", candidates.map(|&id| label_index.label(id)));
        let candidate_counts = counts().flat_map(|counts| &counts.top_counts);
        report.column("candidate_counts", candidate_counts.copied());
        report
    }

    /// The numbers in [`node_report`](Self::node_report) of the nodes `ends`; of one that has seen
    /// no example that of the last above it that has.
    pub(super) fn report_numbers(&self, ends: &[NodeId]) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.arena.nodes.len()];
        for (number, id) in (0..).zip(self.seen_nodes().nodes) {
            numbers[id.at()] = number;
        }
        let mut path = Vec::new();
        let ends = ends.iter().map(|&end| {
            self.arena.path_to(end, &mut path);
            let mut upwards = path.iter().rev().map(|id| numbers[id.at()]);
            upwards.find(|&number| number != u32::MAX).unwrap_or(0)
        });
        ends.collect()
    }

    /// The nodes that have seen an example, breadth first.
    fn seen_nodes(&self) -> Topology<NodeId> {
        let arity = self.arena.params.arity as usize;
        Topology::with_gaps(Arena::ROOT, arity, |&id| self.seen_children(id))
    }

    /// The children of a node, none in place of those that no example has come to or
    /// gone through.
    fn seen_children(&self, id: NodeId) -> impl Iterator<Item = Option<NodeId>> + use<'_> {
        let node = self.arena.node(id);
        let n_children = self.arena.params.arity * u32::from(node.has_children());
        (0..n_children).map(|side| {
            let child = node.child(side);
            let seen = self.arena.node(child);
            (seen.counts.n_labels() > 0 || seen.has_children()).then_some(child)
        })
    }
}
