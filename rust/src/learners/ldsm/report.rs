//! What there is to know of a tree's nodes.

use super::node_stats::NodeStats;
use super::statistics::{entropy, TreeStatistics};
use super::tree::{Node, Tree};
use crate::file::Report;
use crate::tree::NodeId;

impl Tree {
    /// The nodes in the order in which they came into being, every parent before its
    /// children:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `parent`, `children`, `depth` | -1 where there is none; steps from the root |
    /// | `n_weights` | weights that are not 0 |
    ///
    /// and where statistics were kept those of [`TreeStatistics::report`].
    pub(super) fn report(&self) -> Report {
        let mut report = Report::new();
        report.column("parent", self.parents().iter().map(|id| id.signed()));
        let children: Vec<i32> = (0..self.len() as u32)
            .flat_map(|id| {
                let first = self.children(NodeId(id));
                (0..self.arity).map(move |j| first.map_or(-1, |first| (first.0 + j) as i32))
            })
            .collect();
        report.matrix("children", children, self.arity as usize);
        report.column("depth", self.depths());
        report.column("n_weights", self.nodes().map(|node| self.n_weights(node)));
        if let Some(statistics) = &self.statistics {
            statistics.report(&mut report);
        }
        report
    }

    fn n_weights(&self, node: Node) -> u32 {
        let Node::Split(number) = node else {
            return 0;
        };
        let m = self.arity as usize;
        let biases = self.biases[number as usize * m..][..m].iter();
        let n_biases = biases.filter(|&&w| w != 0.0).count() as u32;
        n_biases + self.routers.n_values(number as usize)
    }
}

impl TreeStatistics {
    /// Adds what is known of each node:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `n_examples` | importance of the examples that reached the node |
    /// | `label_entropy` | entropy of their labels, in nats |
    /// | `label_starts`, `labels`, `label_counts` | their label histograms as CSR arrays |
    /// | those of [`NodeStats::NAMED`] | the objective after training; NaN at leaves |
    /// | `j_by_epoch` | running J after each epoch; NaN where there was none |
    fn report(&self, report: &mut Report) {
        let n = self.weights.len();
        report.column("n_examples", self.weights.iter().copied());
        let entropies = (0..n).map(|i| entropy(self.labels.get(i)));
        report.column("label_entropy", entropies);
        let starts = self.labels.starts().iter();
        report.column("label_starts", starts.map(|&start| start as i64));
        let labels = self.labels.entries().iter();
        report.column("labels", labels.clone().map(|&(label, _)| label));
        report.column("label_counts", labels.map(|&(_, count)| count));
        for (name, of) in NodeStats::NAMED {
            report.column(name, self.objectives.iter().map(of));
        }
        let n_epochs = self.curves.lengths().max().unwrap_or(0);
        let mut curves = vec![f32::NAN; n * n_epochs];
        for i in 0..n {
            let curve = self.curves.get(i);
            curves[i * n_epochs..][..curve.len()].copy_from_slice(curve);
        }
        report.matrix("j_by_epoch", curves, n_epochs);
    }
}
