//! The nodes of a tree as arrays.

use super::model::Ldsm;
use super::node_stats::NodeStats;
use super::tree::Tree;
use crate::tree::NodeId;

/// One value per node, in the order in which the nodes came into being: every
/// parent stands before its children.
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
    /// Examples that came by, by importance.
    pub n_examples: Vec<f64>,
    /// Entropy of their labels, in nats.
    pub label_entropy: Vec<f64>,
    /// Where each node's labels start, and the end of the last.
    pub label_starts: Vec<i64>,
    /// Labels of all nodes, increasing at each.
    pub labels: Vec<u32>,
    /// How much of each there was.
    pub label_counts: Vec<f32>,
    /// The objective and what it stands for; NaN at leaves.
    pub stats: Vec<NodeStats>,
    /// Most epochs of a node.
    pub n_epochs: usize,
    /// Running J after each epoch, `n_epochs` per node; NaN where there was none.
    pub j_by_epoch: Vec<f32>,
    /// Weights of each node that are not 0.
    pub n_weights: Vec<u32>,
}

impl Ldsm {
    /// The trees, one after the other.
    pub fn report(&self) -> Vec<Report> {
        self.trees.iter().map(Tree::report).collect()
    }

    /// How many of the trees from `first` on have collapsed: they stayed below a
    /// hundredth of the nodes they may have, while their leaves hold labels nearly
    /// as mixed as the root's. This is what too large a `lambda1` does.
    pub fn n_collapsed(&self, first: usize) -> usize {
        let is_small = |tree: &&Tree| tree.len() * 100 < self.params.max_nodes as usize;
        let trees = self.trees.iter().skip(first);
        trees
            .filter(is_small)
            .filter(|tree| tree.is_mixed())
            .count()
    }
}

impl Tree {
    fn report(&self) -> Report {
        let m = self.arity as usize;
        let mut report = Report {
            arity: m,
            parent: self.parents.iter().map(|id| id.signed()).collect(),
            depth: self.depths(),
            n_examples: self.weight.clone(),
            label_entropy: self.entropies(),
            label_starts: self.labels.starts().iter().map(|&at| at as i64).collect(),
            labels: self
                .labels
                .entries()
                .iter()
                .map(|&(label, _)| label)
                .collect(),
            label_counts: self
                .labels
                .entries()
                .iter()
                .map(|&(_, count)| count)
                .collect(),
            stats: self.stats.clone(),
            n_epochs: self.curves.lengths().into_iter().max().unwrap_or(0) as usize,
            ..Report::default()
        };
        for i in 0..self.len() {
            let first = self.first_child[i].0;
            let child = |j| if first == 0 { -1 } else { (first + j) as i32 };
            report.children.extend((0..self.arity).map(child));
            let curve = self.curves.get(i);
            report.j_by_epoch.extend(curve);
            let missing = report.n_epochs - curve.len();
            report
                .j_by_epoch
                .extend(std::iter::repeat_n(f32::NAN, missing));
            let (_, weights) = self.regressors(NodeId(i as u32));
            let used = weights.iter().filter(|&&w| w != 0.0).count();
            report.n_weights.push(used as u32);
        }
        report
    }

    /// Entropy of each node's labels, in nats.
    fn entropies(&self) -> Vec<f64> {
        let entropy = |i| {
            let counts = self
                .labels
                .get(i)
                .iter()
                .map(|&(_, count)| f64::from(count));
            let mass: f64 = counts.clone().sum();
            counts
                .map(|count| -(count / mass) * (count / mass).ln())
                .sum()
        };
        (0..self.len()).map(entropy).collect()
    }

    /// Whether the labels in the leaves are nearly as mixed as those of the root.
    fn is_mixed(&self) -> bool {
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
