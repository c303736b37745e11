//! One node of a tree in the making: its statistics and its best split.

use super::columns::Columns;
use super::node::Node;
use super::params::Params;
use super::rule::Split;
use super::sampling::FeatureSampler;
use super::split_search::SplitSearch;
use super::tree::Statistics;
use crate::control::Control;

/// What a tree is grown from.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    /// The examples.
    pub columns: &'a Columns,
    /// Class of each row.
    pub labels: &'a [u32],
    /// Weight of each row.
    pub weights: &'a [f64],
    /// Seed and number of the round, for sampling.
    pub seed: (u64, u64),
    /// Whether to stop.
    pub control: &'a Control,
}

/// Finds the best split of a node. Workspace for one thread.
pub struct SplitFinder {
    min_rows: usize,
    features: FeatureSampler,
    search: SplitSearch,
    node: Node,
    /// For [`Node::read`].
    numbers: Vec<u32>,
}

impl SplitFinder {
    /// For trees as `params` say, with splits by the columns that `features` samples.
    pub fn new(params: &Params, features: &FeatureSampler, n_classes: usize) -> Self {
        Self {
            min_rows: params.min_samples_leaf as usize,
            features: features.clone(),
            search: SplitSearch::default(),
            node: Node::default(),
            numbers: vec![Node::ABSENT; n_classes],
        }
    }

    /// Number of columns sampled for a node, about.
    pub fn n_features(&self) -> usize {
        self.features.n_sampled()
    }

    /// The statistics of the node of this `number`, which has these `rows`, and its best split, if it
    /// may be split and can be.
    pub fn find(
        &mut self,
        training_set: &TrainingSet<'_>,
        rows: &[u32],
        number: usize,
        may_be_split: bool,
        threads: bool,
    ) -> (Statistics, Option<Split>) {
        let &TrainingSet {
            columns,
            labels,
            weights,
            seed: (seed, round),
            control,
        } = training_set;
        let node = &mut self.node;
        node.min_rows = self.min_rows;
        node.read(rows, labels, weights, &mut self.numbers);
        let statistics = Statistics {
            n_rows: node.len() as u32,
            weight: node.weight,
            gain: 0.0,
            entropy: node.entropy(),
        };
        // A node of one class has nothing to gain.
        if !may_be_split || node.totals.len() < 2 || node.len() < 2 * self.min_rows {
            return (statistics, None);
        }
        let sampled = self.features.sample(seed, round, number as u64);
        let split = self.search.best(node, columns, sampled, threads, control);
        (statistics, split)
    }
}
