//! The statistics of a node and its best split, over the columns sampled for it: each column by
//! the strategy that is cheapest for it.

use rayon::prelude::*;

use super::columns::{Column, Columns, Storage};
use super::histogram::Histogram;
use super::node::Node;
use super::params::Params;
use super::run_scan::RunScan;
use super::sampling::FeatureSampler;
use super::sorted_scan::SortedScan;
use super::sparse_splitter::SparseSplitter;
use super::split::{BestSplit, ColumnSplit, Rule, Split, Threshold};
use super::subset_search::SubsetSearch;
use super::tree::Statistics;
use crate::control::Control;

/// Work at a node, in codes, from which sharing it out among threads pays.
const SHARED: usize = 1 << 14;

/// Parts that the columns are shared out in, per thread: the last to end is waited for.
const PARTS: usize = 2;

/// The strategies for dense columns. Workspace for one thread, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Strategies {
    histogram: Histogram,
    sorted_scan: SortedScan,
    run_scan: RunScan,
    subset_search: SubsetSearch,
}

impl Strategies {
    /// The best split of `node` by `column`, where one is better than none. All strategies find
    /// the same, scores aside that are sums in another order; they differ in which columns they
    /// take and in their cost. The cheapest is chosen, where n rows have k classes:
    ///
    /// | column | strategy | cost |
    /// |---|---|---|
    /// | categorical | [`SubsetSearch`] | O(n + codes log codes) |
    /// | at most 256 codes, n large against codes x k | [`Histogram`] | O(n + codes x k) |
    /// | at most 256 codes, n not small against codes | [`SortedScan`] | O(n + codes) |
    /// | others | [`RunScan`] | O(n log n) or O(n + codes), whichever is less |
    /// | sparse | [`SparseSplitter`], all such columns together | O(entries of the rows) |
    fn best_split(&mut self, node: &Node, column: &Column) -> Option<ColumnSplit> {
        let coding = &column.coding;
        let n_codes = coding.n_codes();
        let sorted = &mut self.run_scan.sorted;
        match &column.storage {
            Storage::Small(codes) => {
                if coding.categorical {
                    return self.subset_search.best_split(node, codes, coding);
                }
                if Histogram::pays(node, n_codes) {
                    let cut = self.histogram.best_cut(node, codes, coding);
                    return cut.map(ColumnSplit::Cut);
                }
                if SortedScan::pays(node, n_codes) {
                    let cut = self.sorted_scan.best_cut(node, codes, coding);
                    return cut.map(ColumnSplit::Cut);
                }
                sorted.sort_rows(node, n_codes, |row| u32::from(codes[row as usize]));
            }
            Storage::Large(codes) => sorted.sort_rows(node, n_codes, |row| codes[row as usize]),
            Storage::Sparse { .. } => return None,
        }
        let cut = self.run_scan.best_cut(node, coding.missing_code(), None);
        cut.map(ColumnSplit::Cut)
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
    /// For each part of the dense columns; one part unless they are shared out.
    parts: Vec<Strategies>,
    sparse: SparseSplitter,
}

impl SplitFinder {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        Self {
            features: FeatureSampler::new(n_columns, params.max_features),
            node: Node::new(n_classes, params.min_samples_leaf as usize),
            parts: vec![Strategies::default()],
            sparse: SparseSplitter::default(),
        }
    }

    /// The statistics of the node of this `number`, which has these `rows`, and its best split, if
    /// it can be split and may gain more than `least_gain`; of equals that by the first column. Once the control of the
    /// training set says to stop nothing more is found.
    pub fn find(
        &mut self,
        training_set: &TrainingSet<'_>,
        rows: &[u32],
        number: usize,
        least_gain: f64,
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
        let gains_enough = node.most_gain() > least_gain;
        if !gains_enough || node.totals.len() < 2 || node.len() < 2 * node.min_rows {
            return (statistics, None);
        }
        let ((seed, round), columns) = (training_set.seed, training_set.columns);
        let sampled = self.features.sample(seed, round, number as u64);
        let is_sampled = |column: &u32| sampled.contains(*column);
        let dense: Vec<u32> = columns.dense.iter().copied().filter(is_sampled).collect();
        let mut best = best_by_dense(&mut self.parts, node, training_set, &dense);
        if !columns.sparse.is_empty() {
            self.sparse.find(node, columns, sampled, &mut best);
        }
        let split = best.get().map(|(column, split)| Split {
            column,
            gain: split.score() - node.score(),
            rule: rule(&columns.columns[column as usize], &split, node),
        });
        (statistics, split)
    }
}

/// The best split of `node` by each of the columns `dense`, as far as it may be the best of all.
fn best_by_dense(
    parts: &mut Vec<Strategies>,
    node: &Node,
    training_set: &TrainingSet<'_>,
    dense: &[u32],
) -> BestSplit {
    let best_of_part = |(part, strategies): (&[u32], &mut Strategies)| {
        let mut best = BestSplit::new(node);
        for &at in part {
            if training_set.control.check().is_err() {
                break;
            }
            let column = &training_set.columns.columns[at as usize];
            if let Some(split) = strategies.best_split(node, column) {
                best.offer(at, split);
            }
        }
        best
    };
    if !training_set.threads || dense.len() * node.len() < SHARED {
        return best_of_part((dense, &mut parts[0]));
    }
    // As many in every call of a fit.
    parts.resize_with(PARTS * rayon::current_num_threads(), Strategies::default);
    let shares = dense.par_chunks(dense.len().div_ceil(parts.len()));
    let found: Vec<_> = shares.zip(parts).map(best_of_part).collect();
    let mut best = BestSplit::new(node);
    for (column, split) in found.into_iter().flat_map(|part| part.splits) {
        best.offer(column, split);
    }
    best
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
