//! What there is to know of the nodes.

use super::layout::halves;
use super::LabelTree;
use crate::file::Report;
use crate::tree::Topology;

impl LabelTree {
    /// The nodes, breadth first; O(K). Columns beside those of [`Topology::report`]:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `n_examples` | examples of the labels below, weighted |
    /// | `n_labels` | labels below, seen or not |
    /// | `label` | the label of a leaf; -1 at an internal node |
    /// | `label_entropy` | entropy of the labels below, in nats |
    /// | `n_trained` | examples that the router learned from, weighted; 0 at a leaf |
    /// | `n_won` | those of them that it sent towards their label, once it had learned them |
    pub(super) fn node_report(&self) -> Report {
        let order = self.layout.order();
        let tree = Topology::new(0..order.len(), 2, |places| {
            halves(places).into_iter().flatten()
        });
        let mut records = self.records.iter();
        let mut n_examples = vec![0.0; tree.nodes.len()];
        let mut entropy = vec![0.0; tree.nodes.len()];
        let (mut label, mut trained, mut won) = (Vec::new(), Vec::new(), Vec::new());
        for (at, places) in tree.nodes.iter().enumerate() {
            if places.len() == 1 {
                n_examples[at] = self.examples[order[places.start] as usize];
                label.push(order[places.start] as i32);
                trained.push(0.0);
                won.push(0.0);
            } else if let Some(record) = records.next() {
                label.push(-1);
                trained.push(record.trained);
                won.push(record.won);
            }
        }
        for at in (0..tree.nodes.len()).rev() {
            let all: f64 = tree.children_of(at).map(|side| n_examples[side]).sum();
            if tree.nodes[at].len() > 1 {
                n_examples[at] = all;
            }
            // The entropy of the side, and what is left of the labels' once it is known.
            for side in tree.children_of(at) {
                let share: f64 = n_examples[side] / all;
                if share > 0.0 {
                    entropy[at] += share * (entropy[side] - share.ln());
                }
            }
        }
        let mut report = tree.report();
        report.column("n_examples", n_examples);
        report.column(
            "n_labels",
            tree.nodes.iter().map(|places| places.len() as u32),
        );
        report.column("label", label);
        report.column("label_entropy", entropy);
        report.column("n_trained", trained);
        report.column("n_won", won);
        report
    }
}
