//! The tree's nodes as arrays.

use super::arena::Arena;
use super::label_index::{LabelIndex, LocalId};
use super::model::RecallTree;
use super::routing_tree::RoutingTree;
use crate::tree::NodeId;

/// One value per node that has seen an example, in breadth-first order from the
/// root, so that every parent stands before its children.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Children of a node.
    pub arity: usize,
    /// The node above, -1 at the root.
    pub parent: Vec<i32>,
    /// Children, -1 where there is none; `arity` per node.
    pub children: Vec<i32>,
    /// Steps from the root.
    pub depth: Vec<u32>,
    /// Weight of the examples counted.
    pub n_examples: Vec<f64>,
    /// Number of different labels counted.
    pub n_labels: Vec<u32>,
    /// Most frequent label.
    pub label: Vec<u32>,
    /// Entropy of the labels counted, in nats.
    pub label_entropy: Vec<f64>,
    /// Share of the examples counted whose label is a candidate.
    pub recall: Vec<f64>,
    /// Lower bound on the recall of the candidates.
    pub recall_bound: Vec<f32>,
    /// Whether the stop rule ends paths towards this node at its parent.
    pub held: Vec<bool>,
    /// Weight of the examples that the routers learned from.
    pub n_trained: Vec<f64>,
    /// Where each node's candidates start, and the end of the last.
    pub candidate_starts: Vec<i64>,
    /// The candidates of all nodes, most frequent first.
    pub candidates: Vec<u32>,
    /// Weight of the examples of each.
    pub candidate_counts: Vec<f64>,
}

impl RoutingTree {
    fn report(&self, label_index: &LabelIndex) -> Report {
        let label = |id: &LocalId| label_index.label(*id);
        let arena = &self.arena;
        let mut report = Report {
            arity: arena.arity() as usize,
            candidate_starts: vec![0],
            ..Report::default()
        };
        let mut order = vec![(Arena::ROOT, -1, 0)];
        let mut at = 0;
        while let Some(&(id, parent, depth)) = order.get(at) {
            let node = arena.node(id);
            let counts = &node.counts;
            report.parent.push(parent);
            report.depth.push(depth);
            report.n_examples.push(counts.total());
            report.n_labels.push(counts.n_labels() as u32);
            let top = counts.candidates().first().copied();
            report.label.push(label(&top.unwrap_or_default()));
            report.label_entropy.push(node.entropy.max(0.0));
            let recall = if counts.total() > 0.0 {
                counts.mass() / counts.total()
            } else {
                0.0
            };
            report.recall.push(recall);
            report.recall_bound.push(node.bound);
            let above = usize::try_from(parent).ok();
            let held = above.is_some_and(|above| self.is_final(order[above].0, id));
            report.held.push(held);
            report.n_trained.push(f64::from(node.trained));
            report
                .candidates
                .extend(counts.candidates().iter().map(label));
            report.candidate_counts.extend(counts.candidate_counts());
            report.candidate_starts.push(report.candidates.len() as i64);
            for side in 0..arena.arity() {
                let seen = node.has_children() && self.has_seen(node.child(side));
                report
                    .children
                    .push(if seen { order.len() as i32 } else { -1 });
                if seen {
                    order.push((node.child(side), at as i32, depth + 1));
                }
            }
            at += 1;
        }
        report
    }

    /// Whether an example has come to a node or gone through it.
    fn has_seen(&self, id: NodeId) -> bool {
        let node = self.arena.node(id);
        node.counts.n_labels() > 0 || node.has_children()
    }
}

impl RecallTree {
    /// The nodes, if anything was learned.
    pub fn report(&self) -> Option<Report> {
        let learner = self.learner.as_ref()?;
        Some(learner.tree.report(&learner.label_index))
    }
}
