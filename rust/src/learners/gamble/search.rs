//! The search for the best split of a node: each column by the cheapest strategy, and columns of
//! large nodes on several threads.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::columns::{Columns, Storage};
use super::histogram::Histogram;
use super::node::{BestSplit, ColumnBest, Node, Split};
use super::run_scan::RunScan;
use super::sampling::FeatureSampler;
use super::sparse_splitter::SparseSplitter;
use crate::control::Control;
use crate::learners::mix;
use crate::threads::{Lent, Pool};

/// The examples and weights from which a tree is grown.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub columns: &'a Columns,
    pub labels: &'a [u32],
    pub weights: &'a [f64],
    /// Seed and number of the round, for sampling.
    pub seed: (u64, u64),
    /// True in a pool of threads.
    pub threads: bool,
    /// True if rows outside the tree are left out by their weight alone, or there are none.
    pub takes_all: bool,
    pub control: &'a Control,
}

/// Codes of a node whose columns are shared out.
const MIN_CODES_BY_COLUMN: usize = 1 << 14;

/// Codes of the root below which one thread grows the tree. Threads that wait between the few large
/// nodes of a small tree fall asleep, and waking them costs more than they gain.
pub const MIN_CODES_OF_TREE: usize = 1 << 16;

/// Most columns that a thread searches together.
const MAX_GROUP: usize = 16;

/// Rows that order the categories of columns with many of them.
struct OrderingRows<'a> {
    /// Rows of the node outside the tree.
    others: &'a [u32],
    /// If the tree takes all rows, [halves](Node::halves) of the node, once a column needs them.
    halves: OnceLock<[Node; 2]>,
}

/// Workspace for searching some columns of a node.
#[derive(Debug, Default, Clone)]
pub struct ColumnSearch {
    /// Codes of the node's rows, column by column, if they were [gathered](Columns::gather).
    gathered: Vec<u8>,
    /// 0, 1, 2 and so on: the places of the node's rows among gathered codes.
    places: Vec<u32>,
    histogram: Histogram,
    pub scan: RunScan,
    /// Rows outside the tree, sorted by a column of many categories.
    others: RunScan,
}

impl ColumnSearch {
    /// Returns the best split of `node` by each of the dense columns `group`, up to the first one
    /// that no other can beat.
    fn search(
        &mut self,
        training_set: &TrainingSet<'_>,
        node: &Node,
        others: &OrderingRows<'_>,
        group: &[u32],
    ) -> Vec<ColumnBest> {
        let columns = training_set.columns;
        let is_gathered = columns.gather(&node.rows, group, &mut self.gathered);
        if is_gathered {
            self.places
                .extend(self.places.len() as u32..node.len() as u32);
        }
        self.scan.enter(node);
        let mut all = Vec::with_capacity(group.len());
        for (at, &column) in group.iter().enumerate() {
            let gathered = is_gathered.then_some(at);
            let best = self.best(training_set, node, others, column, gathered);
            let is_last = best.is_perfect(node);
            all.push(best);
            if is_last {
                break;
            }
        }
        all
    }

    /// Returns the best split of `node` by a dense column. All strategies have the same best split,
    /// up to rounding of scores, so the cheapest one is chosen. For n rows of k classes:
    ///
    /// | column | strategy | cost |
    /// |---|---|---|
    /// | at most 256 codes, codes x k small relative to n | [`Histogram`] | O(n + codes x k) |
    /// | categorical, at most 256 codes | [`RunScan::offer_subsets`] | O(n + codes log codes) |
    /// | categorical | [`offer_many`](Self::offer_many) | the same, and O(other rows) |
    /// | others | [`RunScan::offer_cuts`] | O(n log n) or O(n + codes), whichever is less |
    ///
    /// [`SparseSplitter`] searches all sparse columns together, in O(n log n) for n entries of
    /// the rows.
    fn best(
        &mut self,
        training_set: &TrainingSet<'_>,
        node: &Node,
        others: &OrderingRows<'_>,
        column: u32,
        gathered: Option<usize>,
    ) -> ColumnBest {
        let mut best = ColumnBest::new(node);
        if training_set.control.check().is_err() {
            return best;
        }
        let column = &training_set.columns.columns[column as usize];
        let (coding, scan) = (&column.coding, &mut self.scan);
        let (n, n_codes, item) = (node.len(), coding.n_codes(), |at| node.items[at]);
        match &column.storage {
            Storage::Small(codes) => {
                let (rows, codes) = match gathered {
                    Some(at) => (&self.places[..n], &self.gathered[at * n..][..n]),
                    None => (&node.rows[..], &codes[..]),
                };
                if Histogram::pays(node, n_codes) {
                    let (codes, threads) = ((rows, codes), training_set.threads);
                    let histogram = &mut self.histogram;
                    if coding.categorical {
                        histogram.offer_subsets(node, codes, n_codes, &mut best);
                    } else {
                        histogram.offer_cuts(node, codes, coding, threads, &mut best);
                    }
                    return best;
                }
                let code = |at| u32::from(codes[rows[at] as usize]);
                scan.sort(n, n_codes, code, item);
            }
            Storage::Large(codes) if coding.categorical => {
                self.offer_many(training_set, node, others, (codes, n_codes), &mut best);
                return best;
            }
            Storage::Large(codes) => {
                scan.sort(n, n_codes, |at| codes[node.rows[at] as usize], item);
            }
            Storage::Sparse { .. } => return best,
        }
        if coding.categorical {
            scan.offer_subsets(node, None, false, &mut best);
        } else {
            scan.offer_cuts(node, coding, None, &mut best);
        }
        best
    }

    /// Offers sets of the categories `codes` of a column with many of them. Rows that do not score
    /// a split order the categories: those outside the tree or, if the tree takes all rows, a random
    /// half of the node's rows. That half is also in the leaves, where it looks better divided than
    /// new rows are, so the gain on the other half is reduced by that half's share of the weight.
    fn offer_many(
        &mut self,
        training_set: &TrainingSet<'_>,
        node: &Node,
        others: &OrderingRows<'_>,
        (codes, n_codes): (&[u32], usize),
        best: &mut ColumnBest,
    ) {
        let (n, code) = (node.len(), |at| codes[node.rows[at] as usize]);
        if !training_set.takes_all {
            let others = others.others;
            self.scan.sort(n, n_codes, code, |at| node.items[at]);
            let item = |at| {
                let row: usize = others[at] as usize;
                node.item(training_set.labels[row], training_set.weights[row])
            };
            let code = |at| codes[others[at] as usize];
            self.others.sort(others.len(), n_codes, code, item);
            self.scan
                .offer_subsets(node, Some(&self.others), false, best);
            return;
        }
        let (seed, round) = training_set.seed;
        let halves = || node.halves(seed ^ mix(round));
        let [ordering, scoring] = others.halves.get_or_init(halves);
        if scoring.weight <= 0.0 {
            return;
        }
        // Rows of the other half have no weight, so every category of the node is listed.
        self.scan.sort(n, n_codes, code, |at| scoring.items[at]);
        self.others.sort(n, n_codes, code, |at| ordering.items[at]);
        self.scan.enter(scoring);
        let mut half = ColumnBest::new(scoring);
        self.scan
            .offer_subsets(scoring, Some(&self.others), true, &mut half);
        self.scan.enter(node);
        if let Some((score, choice)) = half.found {
            let gain = (score - scoring.score()) * scoring.weight / node.weight;
            best.offer(node.score() + gain, || choice);
        }
    }
}

/// A node and the workspace for finding its split.
#[derive(Debug, Clone)]
pub struct NodeSearch {
    pub node: Node,
    features: FeatureSampler,
    dense: Vec<u32>,
    sparse: SparseSplitter,
    /// Workspace for all columns of a node that one thread searches.
    columns: ColumnSearch,
}

impl NodeSearch {
    pub fn new(node: Node, features: FeatureSampler) -> Self {
        Self {
            node,
            features,
            dense: Vec::new(),
            sparse: SparseSplitter::default(),
            columns: ColumnSearch::default(),
        }
    }

    /// Returns the number of columns that are searched at a node.
    pub fn n_columns(&self) -> usize {
        self.features.n_sampled
    }

    /// Returns the best split of the node, which has the number `path` and the rows `others`
    /// outside the tree. Once the training set's control says to stop, no more columns are searched.
    pub fn best_split(
        &mut self,
        training_set: &TrainingSet<'_>,
        path: u64,
        others: &[u32],
        workspaces: &Pool<ColumnSearch>,
    ) -> Option<Split> {
        let ((seed, round), columns): (_, &Columns) = (training_set.seed, training_set.columns);
        let sampled = self.features.sample(seed, round, path);
        let node = &self.node;
        let mut best = BestSplit::new(node);
        let dense = columns.dense.iter().copied();
        self.dense.clear();
        self.dense.extend(dense.filter(|&at| sampled.contains(at)));
        let halves = OnceLock::new();
        let others = OrderingRows { others, halves };
        let search =
            |own: &mut ColumnSearch, group: &[u32]| own.search(training_set, node, &others, group);
        if training_set.threads && self.dense.len() * node.len() >= MIN_CODES_BY_COLUMN {
            let n_groups = 2 * rayon::current_num_threads();
            let size = self.dense.len().div_ceil(n_groups).min(MAX_GROUP);
            let groups = self.dense.par_chunks(size);
            let lend = || workspaces.lend(ColumnSearch::default);
            let search = |own: &mut Lent<'_, ColumnSearch>, group| (group, search(own, group));
            let found: Vec<(&[u32], Vec<ColumnBest>)> = groups.map_init(lend, search).collect();
            for (group, found) in found {
                best.offer_all(group, found);
            }
        } else {
            for group in self.dense.chunks(MAX_GROUP) {
                let found = search(&mut self.columns, group);
                let is_last = found.last().is_some_and(|last| last.is_perfect(node));
                best.offer_all(group, found);
                if is_last {
                    break;
                }
            }
        }
        if !columns.sparse.is_empty() {
            let scan = &mut self.columns.scan;
            scan.enter(node);
            self.sparse.find(node, columns, sampled, scan, &mut best);
        }
        best.split(node, |at| &columns.columns[at as usize].coding)
    }
}
