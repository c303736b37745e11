//! What there is to know of the nodes.

use super::layout::balanced;
use super::learner::{LabelTree, RouterRecord};
use crate::file::Report;

impl LabelTree {
    /// The nodes, breadth first; O(K). Examples and entropy (in nats) are those of the labels
    /// below; internal nodes have the label -1, and leaves empty records.
    pub(super) fn node_report(&self) -> Report {
        let tree = balanced(self.examples.len());
        let n_nodes = tree.nodes.len();
        let (mut n_examples, mut entropy) = (vec![0.0; n_nodes], vec![0.0; n_nodes]);
        let mut labels = vec![-1; n_nodes];
        let mut records = vec![RouterRecord::default(); n_nodes];
        for (label, &leaf) in self.layout.leaf_of.iter().enumerate() {
            labels[leaf as usize] = label as i32;
            n_examples[leaf as usize] = self.examples[label];
        }
        for (&node, record) in self.layout.node_of.iter().zip(&self.records).rev() {
            let node = node as usize;
            records[node] = *record;
            n_examples[node] = tree.children_of(node).map(|side| n_examples[side]).sum();
            // The entropy of the side, and what is left of the labels' once it is known.
            for side in tree.children_of(node) {
                let share: f64 = n_examples[side] / n_examples[node];
                if share > 0.0 {
                    entropy[node] += share * (entropy[side] - share.ln());
                }
            }
        }
        let mut report = tree.report();
        report.column("n_examples", n_examples);
        report.column(
            "n_labels",
            tree.nodes.iter().map(|labels| labels.len() as u32),
        );
        report.column("label", labels);
        report.column("label_entropy", entropy);
        report.column("n_trained", records.iter().map(|record| record.trained));
        report.column("n_won", records.iter().map(|record| record.won));
        report
    }
}
