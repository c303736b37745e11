//! What there is to know of a tree's nodes.

use super::node_stats::NodeStats;
use super::tree::Tree;
use crate::file::Report;
use crate::tree::NodeId;

impl Tree {
    /// The nodes in the order in which they came into being, every parent before its
    /// children:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `parent`, `children`, `depth` | -1 where there is none; steps from the root |
    /// | `n_examples` | importance of the examples that reached the node |
    /// | `label_entropy` | entropy of their labels, in nats |
    /// | `label_starts`, `labels`, `label_counts` | their label histograms as CSR arrays |
    /// | those of [`NodeStats::NAMED`] | the objective after training; NaN at leaves |
    /// | `j_by_epoch` | running J after each epoch; NaN where there was none |
    /// | `n_weights` | weights that are not 0 |
    pub(super) fn report(&self) -> Report {
        let mut report = Report::new();
        report.column("parent", self.parents.iter().map(|id| id.signed()));
        let children: Vec<i32> = (0..self.len() as u32)
            .flat_map(|id| {
                let first = self.children(NodeId(id));
                (0..self.arity).map(move |j| first.map_or(-1, |first| (first.0 + j) as i32))
            })
            .collect();
        report.matrix("children", children, self.arity as usize);
        report.column("depth", self.depths());
        report.column("n_examples", self.weight.iter().copied());
        report.column("label_entropy", self.entropies());
        let starts = self.labels.starts().iter();
        report.column("label_starts", starts.map(|&start| start as i64));
        let labels = self.labels.entries().iter();
        report.column("labels", labels.clone().map(|&(label, _)| label));
        report.column("label_counts", labels.map(|&(_, count)| count));
        for (name, of) in NodeStats::NAMED {
            report.column(name, self.stats.iter().map(of));
        }
        let n_epochs = self.curves.lengths().max().unwrap_or(0);
        let mut curves = vec![f32::NAN; self.len() * n_epochs];
        for i in 0..self.len() {
            let curve = self.curves.get(i);
            curves[i * n_epochs..][..curve.len()].copy_from_slice(curve);
        }
        report.matrix("j_by_epoch", curves, n_epochs);
        let n_weights = |id| {
            let (_, weights) = self.regressors(NodeId(id));
            weights.iter().filter(|&&w| w != 0.0).count() as u32
        };
        report.column("n_weights", (0..self.len() as u32).map(n_weights));
        report
    }

    /// Entropy of each node's labels, in nats.
    fn entropies(&self) -> Vec<f64> {
        let entropy = |i| {
            let labels = self.labels.get(i).iter();
            let counts = labels.map(|&(_, count)| f64::from(count));
            let mass: f64 = counts.clone().sum();
            counts
                .map(|count| -(count / mass) * (count / mass).ln())
                .sum()
        };
        (0..self.len()).map(entropy).collect()
    }

    /// Whether the labels in the leaves are nearly as mixed as those of the root.
    pub fn is_mixed(&self) -> bool {
        /// Of the root's entropy.
        const NEARLY: f64 = 0.75;
        let entropies = self.entropies();
        let (mut mixed, mut all) = (0.0, 0.0);
        for i in (0..self.len()).filter(|&i| self.first_child[i] == Self::ROOT) {
            mixed += self.weight[i] * entropies[i];
            all += self.weight[i];
        }
        entropies[0] > 0.0 && mixed > NEARLY * entropies[0] * all
    }
}
