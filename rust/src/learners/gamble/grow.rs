//! Growing a tree: best first, until it has its number of leaves or no split gains anything.
//!
//! A node costs the search for its split, for which each sampled column uses the cheapest strategy,
//! and O(rows) to divide it. One thread grows a tree: sharing columns and children among two
//! threads gained nothing (0.97 and 1.03 times as fast).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{Column, Columns, Storage};
use super::histogram::Histogram;
use super::node::{BestSplit, Node, Split};
use super::run_scan::RunScan;
use super::sampling::FeatureSampler;
use super::sparse_splitter::SparseSplitter;
use super::tree::{LeafRows, Leaves, Statistics, Tree, TreeNode};
use super::Params;
use crate::control::Control;
use crate::error::Result;
use crate::tree::partition;

/// The examples and weights from which a tree is grown.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub columns: &'a Columns,
    pub labels: &'a [u32],
    pub weights: &'a [f64],
    /// Seed and number of the round, for sampling.
    pub seed: (u64, u64),
    pub control: &'a Control,
}

/// Offers the splits of `node` by a dense column to `best`. All strategies have the same best
/// split, up to rounding of scores, so the cheapest one is chosen. For n rows of k classes:
///
/// | column | strategy | cost |
/// |---|---|---|
/// | categorical | [`RunScan::offer_subsets`] | O(n + codes log codes), and O(other rows) if there are more than 256 codes |
/// | at most 256 codes, codes x k small relative to n | [`Histogram`] | O(n + codes x k) |
/// | others | [`RunScan::offer_cuts`] | O(n log n) or O(n + codes), whichever is less |
///
/// [`SparseSplitter`] searches all sparse columns together, in O(n log n) for n entries of
/// the rows.
fn offer_splits(
    node: &Node,
    column: &Column,
    histogram: &mut Histogram,
    scan: &mut RunScan,
    others: &RunScan,
    best: &mut BestSplit,
) {
    let coding = &column.coding;
    let (rows, n_codes, item) = (&node.rows, coding.n_codes(), |at| node.items[at]);
    match &column.storage {
        Storage::Small(codes) => {
            if !coding.categorical && Histogram::pays(node, n_codes) {
                return histogram.offer_cuts(node, codes, coding, best);
            }
            let code = |at| u32::from(codes[rows[at] as usize]);
            scan.sort(node.len(), n_codes, code, item);
        }
        Storage::Large(codes) => {
            scan.sort(node.len(), n_codes, |at| codes[rows[at] as usize], item);
        }
        Storage::Sparse { .. } => return,
    }
    if coding.categorical {
        let has_many = matches!(column.storage, Storage::Large(_));
        scan.offer_subsets(node, has_many.then_some(others), best);
    } else {
        scan.offer_cuts(node, coding, None, best);
    }
}

/// Positions of a node's rows: those from which the tree is grown, and all others.
#[derive(Debug, Clone)]
struct Spans {
    sampled: Range<usize>,
    others: Range<usize>,
}

/// A leaf that may be split: the bits of its gain and its node. Gains are above 0, so their bits
/// have the same order. The largest gain comes first, among equals the oldest node.
type Candidate = (u64, Reverse<usize>);

/// Largest depth of a tree. Every level costs as much as all rows of its nodes, and on a column
/// that only admits uneven splits, a tree would be as deep as it has leaves.
const MAX_DEPTH: u32 = 512;

/// A node of a growing tree.
#[derive(Debug, Clone)]
pub struct GrownNode {
    spans: Spans,
    /// Steps from the root.
    depth: u32,
    /// The best split, which may never be made.
    pub split: Option<Split>,
    /// The left child, which the right child follows; 0 in a leaf.
    left: usize,
    statistics: Statistics,
}

/// Grows one tree after the other in the same workspace.
pub struct Grower {
    max_leaves: usize,
    features: FeatureSampler,
    node: Node,
    histogram: Histogram,
    scan: RunScan,
    /// Other rows of the node, sorted by a column of many categories.
    others_scan: RunScan,
    sparse: SparseSplitter,
    /// Rows from which the tree is grown, node by node.
    sampled: Vec<u32>,
    /// All other rows, node by node.
    others: Vec<u32>,
    /// Buffer for dividing the rows.
    right: Vec<u32>,
    pub nodes: Vec<GrownNode>,
    open: BinaryHeap<Candidate>,
}

impl Grower {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        Self {
            max_leaves: params.max_leaves as usize,
            features: FeatureSampler::new(n_columns, params.max_features),
            node: Node::new(n_classes, params.min_samples_leaf as usize),
            histogram: Histogram::default(),
            scan: RunScan::default(),
            others_scan: RunScan::default(),
            sparse: SparseSplitter::default(),
            sampled: Vec::new(),
            others: Vec::new(),
            right: Vec::new(),
            nodes: Vec::new(),
            open: BinaryHeap::new(),
        }
    }

    /// Grows a tree from the rows `sampled`, in rising order. All other rows of the training set
    /// are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        sampled.clone_into(&mut self.sampled);
        self.others.clear();
        let mut next = 0;
        for &row in sampled.iter().chain([&(training_set.weights.len() as u32)]) {
            self.others.extend(next..row);
            next = row + 1;
        }
        self.nodes.clear();
        self.open.clear();
        let all = Spans {
            sampled: 0..self.sampled.len(),
            others: 0..self.others.len(),
        };
        self.add(training_set, all, 0, true);
        for n_leaves in 2..=self.max_leaves {
            let best = self.open.pop().map(|(_, Reverse(node))| node);
            let Some((node, split)) =
                best.and_then(|node| Some((node, self.nodes[node].split.clone()?)))
            else {
                break;
            };
            training_set.control.check()?;
            self.nodes[node].left = self.nodes.len();
            self.nodes[node].statistics.gain = split.gain;
            let depth = self.nodes[node].depth + 1;
            let may_split = n_leaves < self.max_leaves && depth < MAX_DEPTH;
            for child in self.divide(training_set, &split, node) {
                self.add(training_set, child, depth, may_split);
            }
        }
        Ok(())
    }

    /// Divides the rows of node `node` between its left and right child.
    fn divide(&mut self, training_set: &TrainingSet<'_>, split: &Split, node: usize) -> [Spans; 2] {
        let Spans { sampled, others } = self.nodes[node].spans.clone();
        let columns = training_set.columns;
        let goes_left = |row| split.rule.goes_left(columns.code(split.column, row));
        let mut halves = |rows: &mut [u32], Range { start, end }: Range<usize>| {
            let middle = start + partition(&mut rows[start..end], &mut self.right, goes_left);
            [start..middle, middle..end]
        };
        let [left, right] = halves(&mut self.sampled, sampled);
        let [other_left, other_right] = halves(&mut self.others, others);
        [(left, other_left), (right, other_right)]
            .map(|(sampled, others)| Spans { sampled, others })
    }

    /// Adds a leaf, and finds its best split if the leaf may be split later.
    fn add(&mut self, training_set: &TrainingSet<'_>, spans: Spans, depth: u32, may_split: bool) {
        let (rows, number) = (&self.sampled[spans.sampled.clone()], self.nodes.len());
        self.node
            .read(rows, training_set.labels, training_set.weights);
        let node = &self.node;
        let statistics = Statistics {
            n_rows: node.len() as u32,
            weight: node.weight * node.unit,
            gain: 0.0,
            entropy: node.entropy(),
        };
        let can_gain = node.totals.len() > 1 && node.len() >= 2 * node.min_rows;
        let mut split = None;
        if may_split && can_gain {
            split = self.best_split(training_set, number, spans.others.clone());
        }
        let gain = split.as_ref().map(|split| split.gain.to_bits());
        self.open.extend(gain.map(|gain| (gain, Reverse(number))));
        self.nodes.push(GrownNode {
            spans,
            depth,
            split,
            left: 0,
            statistics,
        });
    }

    /// Returns the best split of the node just read, which has the number `number` and the other
    /// rows at `others`. Once the training set's control says to stop, no more columns are searched.
    fn best_split(
        &mut self,
        training_set: &TrainingSet<'_>,
        number: usize,
        others: Range<usize>,
    ) -> Option<Split> {
        let ((seed, round), columns) = (training_set.seed, training_set.columns);
        let others = &self.others[others];
        let sampled = self.features.sample(seed, round, number as u64);
        let (node, scan) = (&self.node, &mut self.scan);
        let mut best = BestSplit::new(node);
        scan.enter(node);
        for &at in columns.dense.iter().filter(|&&at| sampled.contains(at)) {
            if training_set.control.check().is_err() {
                break;
            }
            best.enter(at);
            let column = &columns.columns[at as usize];
            let (histogram, others_scan) = (&mut self.histogram, &mut self.others_scan);
            if let (true, Storage::Large(codes)) = (column.coding.categorical, &column.storage) {
                let code = |at| codes[others[at] as usize];
                let item = |at| {
                    let row: usize = others[at] as usize;
                    node.item(training_set.labels[row], training_set.weights[row])
                };
                others_scan.sort(others.len(), column.coding.n_codes(), code, item);
            }
            offer_splits(node, column, histogram, scan, others_scan, &mut best);
        }
        if !columns.sparse.is_empty() {
            self.sparse.find(node, columns, sampled, scan, &mut best);
        }
        best.split
    }

    /// Returns the rows of each leaf, in the order of the nodes.
    pub fn leaves(&self) -> impl Iterator<Item = LeafRows<'_>> {
        let leaves = self.nodes.iter().filter(|node| node.left == 0);
        leaves.map(|node| LeafRows {
            sampled: &self.sampled[node.spans.sampled.clone()],
            others: &self.others[node.spans.others.clone()],
        })
    }

    /// Returns the tree with the votes `leaves`. Its nodes keep their numbers.
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
                    tree.nodes.push(TreeNode {
                        feature: n_leaves,
                        ..TreeNode::default()
                    });
                    n_leaves += 1;
                }
            }
            tree.statistics.push(node.statistics);
        }
        tree
    }
}
