//! Growing a tree: best first, until it has its leaves or nothing is gained.
//!
//! A node costs the search for its split, each sampled column by the strategy that is cheapest for
//! it, and O(rows) to divide it. One thread grows a tree: sharing out columns and children gained
//! nothing (0.97 and 1.03 times as fast on two threads).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{Column, Columns, Storage};
use super::cuts::Histogram;
use super::node::{BestSplit, ColumnSplit, Node, Rule, Split, Threshold};
use super::run_scan::RunScan;
use super::sampling::FeatureSampler;
use super::sparse_splitter::SparseSplitter;
use super::tree::{Leaves, Statistics, Tree, TreeNode};
use super::Params;
use crate::control::Control;
use crate::error::Result;
use crate::tree::partition;

/// What a tree is grown from.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub columns: &'a Columns,
    pub labels: &'a [u32],
    pub weights: &'a [f64],
    /// Seed and number of the round, for sampling.
    pub seed: (u64, u64),
    pub control: &'a Control,
}

/// Reads nodes and finds their best splits. Workspace.
pub struct SplitFinder {
    features: FeatureSampler,
    node: Node,
    histogram: Histogram,
    scan: RunScan,
    sparse: SparseSplitter,
}

impl SplitFinder {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        Self {
            features: FeatureSampler::new(n_columns, params.max_features),
            node: Node::new(n_classes, params.min_samples_leaf as usize),
            histogram: Histogram::default(),
            scan: RunScan::default(),
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
        let mut best = BestSplit::new(node);
        self.scan.enter(node);
        for &at in columns.dense.iter().filter(|&&at| sampled.contains(at)) {
            if training_set.control.check().is_err() {
                break;
            }
            let column = &columns.columns[at as usize];
            let (histogram, scan) = (&mut self.histogram, &mut self.scan);
            if let Some(split) = split_of_column(node, column, histogram, scan) {
                best.offer(at, split);
            }
        }
        if !columns.sparse.is_empty() {
            let scan = &mut self.scan;
            self.sparse.find(node, columns, sampled, scan, &mut best);
        }
        let split = best.get().map(|(column, split)| Split {
            column,
            gain: split.score() - node.score(),
            rule: rule(&columns.columns[column as usize], &split, node),
        });
        (statistics, split)
    }
}

/// The best split of `node` by a dense `column`, where one is better than none. Both ways to a cut
/// find the same, scores aside that are sums in another order. The cheaper one is chosen, where n
/// rows have k classes:
///
/// | column | found by | cost |
/// |---|---|---|
/// | categorical | [`RunScan::best_subset`] | O(n + codes log codes) |
/// | at most 256 codes, n large against codes x k | [`Histogram`] | O(n + codes x k) |
/// | others | [`RunScan::best_cut`] | O(n log n) or O(n + codes), whichever is less |
///
/// Of sparse columns [`SparseSplitter`] scans all together, in O(entries of the rows).
fn split_of_column(
    node: &Node,
    column: &Column,
    histogram: &mut Histogram,
    scan: &mut RunScan,
) -> Option<ColumnSplit> {
    let coding = &column.coding;
    let (rows, n_codes, item) = (&node.rows, coding.n_codes(), |at| node.items[at]);
    match &column.storage {
        Storage::Small(codes) => {
            if !coding.categorical && Histogram::pays(node, n_codes) {
                let cut = histogram.best_cut(node, codes, coding);
                return cut.map(ColumnSplit::Cut);
            }
            let code = |at| u32::from(codes[rows[at] as usize]);
            scan.sort(node.len(), n_codes, code, item);
        }
        Storage::Large(codes) => {
            scan.sort(node.len(), n_codes, |at| codes[rows[at] as usize], item);
        }
        Storage::Sparse { .. } => return None,
    }
    if coding.categorical {
        return scan.best_subset(node);
    }
    let cut = scan.best_cut(node, coding.missing_code(), None);
    cut.map(ColumnSplit::Cut)
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

/// Where the rows of a node are, those that the tree is grown from and all others.
type Spans = (Range<usize>, Range<usize>);

/// A leaf that may be split: the bits of the gain, in the order of the gains as these are above 0,
/// and the node. The greatest gain first, of equals the oldest.
type Candidate = (u64, Reverse<usize>);

/// Steps from the root to a leaf, at most: each costs as much as all rows of its node, and on a column
/// that no split divides evenly a tree would have as many as it has leaves.
const MAX_DEPTH: u32 = 512;

/// A node of the tree in the making.
#[derive(Debug, Clone)]
struct GrownNode {
    spans: Spans,
    /// Steps from the root.
    depth: u32,
    /// The best split, whether or not it is made.
    split: Option<Split>,
    /// The left child, the right one is next to it; 0 at a leaf.
    left: usize,
    statistics: Statistics,
}

/// Grows trees, one after the other, in the same workspace.
pub struct Grower {
    max_leaves: usize,
    finder: SplitFinder,
    /// Rows that the tree is grown from, those of each node side by side.
    sampled: Vec<u32>,
    /// All other rows, likewise.
    others: Vec<u32>,
    /// Buffer for dividing them.
    right: Vec<u32>,
    /// Whether a row goes to the other side than zero, by a split of a sparse column; false between
    /// splits.
    leaves_zero: Vec<bool>,
    nodes: Vec<GrownNode>,
    open: BinaryHeap<Candidate>,
    /// The highest gains of all candidates so far, split or not, as many as there may be splits; the
    /// lowest first.
    highest_gains: BinaryHeap<Reverse<u64>>,
}

impl Grower {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        Self {
            max_leaves: params.max_leaves as usize,
            finder: SplitFinder::new(params, n_columns, n_classes),
            sampled: Vec::new(),
            others: Vec::new(),
            right: Vec::new(),
            leaves_zero: Vec::new(),
            nodes: Vec::new(),
            open: BinaryHeap::new(),
            highest_gains: BinaryHeap::new(),
        }
    }

    /// Grows a tree from the rows `sampled`, which rise; all others up to the number of
    /// weights are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        self.sampled.clear();
        self.sampled.extend(sampled.iter().copied());
        self.others.clear();
        let mut next = 0;
        for &row in sampled.iter().chain([&(training_set.weights.len() as u32)]) {
            self.others.extend(next..row);
            next = row + 1;
        }
        self.nodes.clear();
        self.open.clear();
        let all = (0..self.sampled.len(), 0..self.others.len());
        self.highest_gains.clear();
        let root = self.finder.find(training_set, &self.sampled, 0, 0.0);
        self.add(all, 0, root);
        for n_leaves in 2..=self.max_leaves {
            let best = self.open.pop().map(|(_, Reverse(node))| node);
            let Some((node, split)) = best.and_then(|node| Some((node, self.nodes[node].split?)))
            else {
                break;
            };
            training_set.control.check()?;
            let children = self.divide(training_set, &split, node);
            self.nodes[node].left = self.nodes.len();
            self.nodes[node].statistics.gain = split.gain;
            let depth = self.nodes[node].depth + 1;
            let least_gain = if depth == MAX_DEPTH {
                f64::INFINITY
            } else {
                self.least_gain(n_leaves)
            };
            for child in children {
                let rows = &self.sampled[child.0.clone()];
                let number = self.nodes.len();
                let found = self.finder.find(training_set, rows, number, least_gain);
                self.add(child, depth, found);
            }
        }
        Ok(())
    }

    /// Divides the rows of node `node` between its children, the left one first.
    fn divide(&mut self, training_set: &TrainingSet<'_>, split: &Split, node: usize) -> [Spans; 2] {
        let (sampled, others) = self.nodes[node].spans.clone();
        let (columns, rule) = (training_set.columns, split.rule);
        let column = &columns.columns[split.column as usize];
        let entries = columns.entries_of_column(split.column as usize);
        let zero_left = column.zero().is_some_and(|zero| rule.goes_left(zero));
        self.leaves_zero.resize(columns.n_rows(), false);
        for &(row, code) in entries {
            self.leaves_zero[row as usize] = rule.goes_left(code) != zero_left;
        }
        let (right, leaves_zero) = (&mut self.right, &self.leaves_zero);
        let mut divide = |rows: &mut [u32]| match &column.storage {
            Storage::Small(codes) => partition(rows, right, |row| {
                rule.goes_left(codes[row as usize].into())
            }),
            Storage::Large(codes) => {
                partition(rows, right, |row| rule.goes_left(codes[row as usize]))
            }
            Storage::Sparse { .. } => {
                partition(rows, right, |row| leaves_zero[row as usize] != zero_left)
            }
        };
        let n = divide(&mut self.sampled[sampled.clone()]);
        let n_others = divide(&mut self.others[others.clone()]);
        for &(row, _) in entries {
            self.leaves_zero[row as usize] = false;
        }
        let (middle, other_middle) = (sampled.start + n, others.start + n_others);
        [
            (sampled.start..middle, others.start..other_middle),
            (middle..sampled.end, other_middle..others.end),
        ]
    }

    /// What a child of the split that makes `n_leaves` has to gain more than to be split ever: of
    /// the candidates so far as many as there may be splits gain no less.
    fn least_gain(&self, n_leaves: usize) -> f64 {
        if n_leaves == self.max_leaves {
            return f64::INFINITY;
        }
        let is_full = self.highest_gains.len() == self.max_leaves - 1;
        let lowest = self.highest_gains.peek().filter(|_| is_full);
        lowest.map_or(0.0, |Reverse(bits)| f64::from_bits(*bits))
    }

    fn add(&mut self, spans: Spans, depth: u32, (statistics, split): (Statistics, Option<Split>)) {
        let candidate = split.map(|split| (split.gain.to_bits(), Reverse(self.nodes.len())));
        self.open.extend(candidate);
        self.highest_gains
            .extend(candidate.map(|(gain, _)| Reverse(gain)));
        if self.highest_gains.len() == self.max_leaves {
            self.highest_gains.pop();
        }
        let node = GrownNode {
            spans,
            depth,
            split,
            left: 0,
            statistics,
        };
        self.nodes.push(node);
    }

    /// The leaves of the tree in the order of its nodes: the rows that it was grown from
    /// and the others that were routed there.
    pub fn leaves(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let leaves = self.nodes.iter().filter(|node| node.left == 0);
        leaves.map(|GrownNode { spans, .. }| {
            let (sampled, others) = spans.clone();
            (&self.sampled[sampled], &self.others[others])
        })
    }

    /// The tree as prediction traverses it. Its nodes have the numbers that they have here.
    pub fn freeze(&self, columns: &Columns, leaves: Leaves) -> Tree {
        let mut tree = Tree {
            leaves,
            ..Tree::default()
        };
        let mut n_leaves = 0;
        for node in &self.nodes {
            match &node.split {
                Some(split) if node.left > 0 => tree.push_split(columns, split, node.left as u32),
                _ => {
                    let feature = n_leaves;
                    let leaf = TreeNode {
                        feature,
                        ..TreeNode::default()
                    };
                    tree.nodes.push(leaf);
                    n_leaves += 1;
                }
            }
            tree.statistics.push(node.statistics);
        }
        tree
    }
}
