//! The statistics of a node and its best split, over the columns sampled for it: each column by
//! the strategy that is cheapest for it.

use rayon::prelude::*;

use super::columns::{Column, Columns, Storage};
use super::histogram::Histogram;
use super::node::Node;
use super::params::Params;
use super::rule::{Rule, Split, Threshold};
use super::run_scan::RunScan;
use super::sampling::{is_sampled, FeatureSampler, SampledFeatures};
use super::sorted_scan::SortedScan;
use super::sparse_splitter::SparseSplitter;
use super::split_strategy::{ColumnSplit, Found, SplitStrategy};
use super::subset_search::SubsetSearch;
use super::tree::Statistics;
use crate::control::Control;

/// Work at a node, in codes, from which sharing it out among threads pays.
const SHARED: usize = 1 << 14;

/// Parts that the columns are shared out in, per thread: the last to end is waited for.
const PARTS: usize = 2;

/// The five strategies. Workspace for one thread.
#[derive(Debug, Default)]
struct Strategies {
    histogram: Histogram,
    sorted_scan: SortedScan,
    run_scan: RunScan,
    subset_search: SubsetSearch,
    sparse_splitter: SparseSplitter,
}

impl Strategies {
    /// The cheapest strategy for `column` at `node`, where n rows have k classes:
    ///
    /// | column | strategy | cost |
    /// |---|---|---|
    /// | sparse | [`SparseSplitter`], all such columns together | O(entries of the rows) |
    /// | categorical | [`SubsetSearch`] | O(n + codes log codes) |
    /// | at most 256 codes, n large against codes x k | [`Histogram`] | O(n + codes x k) |
    /// | at most 256 codes, n not small against codes | [`SortedScan`] | O(n + codes) |
    /// | at most 256 codes, n small | [`RunScan`] | O(n log n) |
    /// | more than 256 codes | [`RunScan`] | O(n log n), or O(rows of the training set) |
    fn choose(&mut self, node: &Node, columns: &Columns, column: u32) -> &mut dyn SplitStrategy {
        let column = &columns.columns[column as usize];
        let n_codes = column.coding.n_codes();
        match &column.storage {
            Storage::Sparse { .. } => &mut self.sparse_splitter,
            Storage::Small(_) if column.coding.categorical => &mut self.subset_search,
            Storage::Small(_) if Histogram::pays(node, n_codes) => &mut self.histogram,
            Storage::Small(_) if SortedScan::pays(node, n_codes) => &mut self.sorted_scan,
            Storage::Small(_) | Storage::Large { .. } => &mut self.run_scan,
        }
    }
}

/// What a tree is grown from.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub columns: &'a Columns,
    pub labels: &'a [u32],
    pub weights: &'a [f64],
    /// Seed and number of the round, for sampling.
    pub seed: (u64, u64),
    pub threads: bool,
    pub control: &'a Control,
}

/// Reads nodes and finds their best splits. Workspace for one thread.
pub struct SplitFinder {
    pub features: FeatureSampler,
    node: Node,
    search: SplitSearch,
}

impl SplitFinder {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        Self {
            features: FeatureSampler::new(n_columns, params.max_features),
            node: Node::new(n_classes, params.min_samples_leaf as usize),
            search: SplitSearch::default(),
        }
    }

    /// The statistics of the node of this `number`, which has these `rows`, and its best split, if
    /// it may be split and can be.
    pub fn find(
        &mut self,
        training_set: &TrainingSet<'_>,
        rows: &[u32],
        number: usize,
        may_be_split: bool,
    ) -> (Statistics, Option<Split>) {
        let node = &mut self.node;
        node.read(rows, training_set.labels, training_set.weights);
        let statistics = Statistics {
            n_rows: node.len() as u32,
            weight: node.weight,
            gain: 0.0,
            entropy: node.entropy(),
        };
        // A node of one class has nothing to gain.
        if !may_be_split || node.totals.len() < 2 || node.len() < 2 * node.min_rows {
            return (statistics, None);
        }
        let ((seed, round), columns) = (training_set.seed, training_set.columns);
        let (threads, control) = (training_set.threads, training_set.control);
        let sampled = self.features.sample(seed, round, number as u64);
        let split = self.search.best(node, columns, sampled, threads, control);
        (statistics, split)
    }
}

#[derive(Debug, Default)]
pub struct SplitSearch {
    first: Strategies,
    /// For the other parts of the columns, where they are shared out.
    others: Vec<Strategies>,
}

impl SplitSearch {
    /// The best split of `node` by one of the columns `sampled`; of equals that by the first
    /// column. Once `control` says to stop nothing more is found.
    pub fn best(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        threads: bool,
        control: &Control,
    ) -> Option<Split> {
        let (dense, sparse) = self.dense_and_sparse(node, columns, sampled);
        let mut found = self.by_dense(node, columns, &dense, threads, control);
        if let Some(&first) = sparse.first() {
            let strategy = self.first.choose(node, columns, first);
            strategy.best_splits(node, columns, &sparse, &mut found);
        }
        // In the order of the columns, however they are stored.
        found.sort_by_key(|&(column, _)| column);
        let mut best = None;
        let mut score = node.score();
        for (column, split) in found {
            if split.score() > score + node.tolerance() {
                score = split.score();
                best = Some((column, split));
            }
        }
        let (column, split) = best?;
        Some(Split {
            column,
            gain: score - node.score(),
            rule: rule(&columns.columns[column as usize], &split, node),
        })
    }

    /// The columns sampled that are dense, and the sparse ones, as far as they can split `node`.
    fn dense_and_sparse(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
    ) -> (Vec<u32>, Vec<u32>) {
        match sampled {
            SampledFeatures::Listed(sampled) => {
                let sampled = sampled.iter();
                sampled.partition(|&&column| columns.info(column).zero.is_none())
            }
            SampledFeatures::Hashed { key, max_hash } => {
                let is_sampled = |column: &u32| is_sampled(*column, key, max_hash);
                let dense = columns.dense.iter().copied().filter(is_sampled).collect();
                let splitter = &mut self.first.sparse_splitter;
                let sparse = splitter.columns_with_entries(node, columns, is_sampled);
                (dense, sparse)
            }
        }
    }

    fn by_dense(
        &mut self,
        node: &Node,
        columns: &Columns,
        dense: &[u32],
        threads: bool,
        control: &Control,
    ) -> Found {
        let splits_of_part = |(part, strategies): (&[u32], &mut Strategies)| {
            let mut found = Vec::with_capacity(part.len());
            for column in part {
                if control.check().is_err() {
                    break;
                }
                let strategy = strategies.choose(node, columns, *column);
                strategy.best_splits(node, columns, &[*column], &mut found);
            }
            found
        };
        if !threads || dense.len() * node.len() < SHARED {
            return splits_of_part((dense, &mut self.first));
        }
        let n_parts = PARTS * rayon::current_num_threads();
        // As many in every call of a fit.
        self.others.resize_with(n_parts, Strategies::default);
        let parts = dense
            .par_chunks(dense.len().div_ceil(n_parts))
            .zip(&mut self.others);
        parts.flat_map_iter(splits_of_part).collect()
    }
}

/// The rule of the split found. Missing values to come where none was missing at the node
/// go to the side of more weight.
fn rule(column: &Column, split: &ColumnSplit, node: &Node) -> Rule {
    let cut = match split {
        ColumnSplit::Subset { left, .. } => return Rule::Subset(*left),
        ColumnSplit::Cut(cut) => cut,
    };
    let coding = &column.coding;
    let (last_left, value) = match cut.first_right {
        Some(first_right) => coding.cut(cut.last_left, first_right),
        None => (coding.spans.len() as u32 - 1, f32::INFINITY),
    };
    let left_is_heavier = 2.0 * cut.left_weight > node.weight;
    Rule::Threshold(Threshold {
        last_left,
        value,
        missing: coding.missing_code(),
        missing_left: cut.missing_left.unwrap_or(left_is_heavier),
    })
}
