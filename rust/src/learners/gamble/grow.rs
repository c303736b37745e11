//! Growing a tree: best first, until it has its number of leaves or no split gains anything.
//!
//! A node costs the search for its split ([`NodeSearch`]) and O(rows) to divide it. The two children
//! of a node are read and searched at the same time if they have enough rows for two threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::Columns;
use super::node::{Node, Split};
use super::sampling::FeatureSampler;
use super::search::{ColumnSearch, NodeSearch, TrainingSet, MIN_CODES_OF_TREE, MIN_SHARED_CODES};
use super::tree::{LeafRows, Leaves, Statistics, Tree, TreeNode};
use super::Params;
use crate::error::Result;
use crate::threads::Pool;
use crate::tree::partition;

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

/// Least rows of a node whose children are searched at the same time.
const MIN_SHARED_ROWS: usize = 64;

/// Least rows of a node whose rows are divided by two threads.
const MIN_DIVIDED_ROWS: usize = 1 << 10;

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
    /// Classes of a leaf's rows from which the tree is grown, in rising order, with their weights.
    by_class: Vec<(u32, f64)>,
}

/// Grows one tree after the other in the same workspace.
pub struct Grower {
    max_leaves: usize,
    /// Number of columns that are searched at each node.
    n_sampled: usize,
    /// Workspaces of two nodes that are searched at the same time.
    searches: [NodeSearch; 2],
    columns: Pool<ColumnSearch>,
    /// Rows from which the tree is grown, node by node.
    sampled: Vec<u32>,
    /// All other rows, node by node.
    others: Vec<u32>,
    /// Buffers for dividing the rows.
    right: [Vec<u32>; 2],
    pub nodes: Vec<GrownNode>,
    open: BinaryHeap<Candidate>,
}

impl Grower {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        let features = FeatureSampler::new(n_columns, params.max_features);
        let node = || Node::new(n_classes, params.min_samples_leaf as usize);
        Self {
            max_leaves: params.max_leaves as usize,
            n_sampled: features.n_sampled,
            searches: [features.clone(), features].map(|it| NodeSearch::new(node(), it)),
            columns: Pool::default(),
            sampled: Vec::new(),
            others: Vec::new(),
            right: Default::default(),
            nodes: Vec::new(),
            open: BinaryHeap::new(),
        }
    }

    /// Grows a tree from the rows `sampled`, in rising order. All other rows of the training set
    /// are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        let is_large = sampled.len() * self.n_sampled >= MIN_CODES_OF_TREE;
        let training_set = &TrainingSet {
            threads: training_set.threads && is_large,
            ..*training_set
        };
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
        let root = Leaf {
            spans: all,
            number: 0,
            depth: 0,
            may_split: true,
        };
        let [search, _] = &mut self.searches;
        let root = root.read(
            training_set,
            &self.sampled,
            &self.others,
            search,
            &self.columns,
        );
        self.add(root);
        for n_leaves in 2..=self.max_leaves {
            let best = self.open.pop().map(|(_, Reverse(node))| node);
            let Some((node, split)) =
                best.and_then(|node| Some((node, self.nodes[node].split.clone()?)))
            else {
                break;
            };
            training_set.control.check()?;
            let number = self.nodes.len();
            self.nodes[node].left = number;
            self.nodes[node].by_class = Vec::new();
            self.nodes[node].statistics.gain = split.gain;
            let depth = self.nodes[node].depth + 1;
            let may_split = n_leaves < self.max_leaves && depth < MAX_DEPTH;
            let n_rows = self.nodes[node].spans.sampled.len();
            let is_shared = n_rows * self.n_sampled >= MIN_SHARED_CODES;
            let threads = training_set.threads && is_shared && n_rows >= MIN_SHARED_ROWS;
            let [left, right] = self.divide(training_set, &split, node);
            let leaf = |spans, number| Leaf {
                spans,
                number,
                depth,
                may_split,
            };
            let (left, right) = (leaf(left, number), leaf(right, number + 1));
            let [first, second] = &mut self.searches;
            let (sampled, others, columns) = (&self.sampled, &self.others, &self.columns);
            let read = || left.read(training_set, sampled, others, first, columns);
            let read_other = || right.read(training_set, sampled, others, second, columns);
            let (left, right) = if threads {
                rayon::join(read, read_other)
            } else {
                (read(), read_other())
            };
            self.add(left);
            self.add(right);
        }
        Ok(())
    }

    /// Divides the rows of node `node` between its left and right child.
    fn divide(&mut self, training_set: &TrainingSet<'_>, split: &Split, node: usize) -> [Spans; 2] {
        let Spans { sampled, others } = self.nodes[node].spans.clone();
        let threads = training_set.threads && sampled.len() >= MIN_DIVIDED_ROWS;
        let columns = training_set.columns;
        let goes_left = |row| split.rule.goes_left(columns.code(split.column, row));
        let halves =
            |rows: &mut [u32], right: &mut Vec<u32>, Range { start, end }: Range<usize>| {
                let middle = start + partition(&mut rows[start..end], right, goes_left);
                [start..middle, middle..end]
            };
        let [right, other_right] = &mut self.right;
        let first = || halves(&mut self.sampled, right, sampled);
        let second = || halves(&mut self.others, other_right, others);
        let ([left, right], [other_left, other_right]) = if threads {
            rayon::join(first, second)
        } else {
            (first(), second())
        };
        [(left, other_left), (right, other_right)]
            .map(|(sampled, others)| Spans { sampled, others })
    }

    fn add(&mut self, node: GrownNode) {
        let gain = node.split.as_ref().map(|split| split.gain.to_bits());
        let number = self.nodes.len();
        self.open.extend(gain.map(|gain| (gain, Reverse(number))));
        self.nodes.push(node);
    }

    /// Returns the classes of the rows of each leaf with their weights, in the order of the nodes.
    pub fn classes_of_leaves(&self) -> impl Iterator<Item = &[(u32, f64)]> {
        let leaves = self.nodes.iter().filter(|node| node.left == 0);
        leaves.map(|node| &node.by_class[..])
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

/// A leaf that is about to be added.
struct Leaf {
    spans: Spans,
    number: usize,
    depth: u32,
    /// True if the leaf may be split later.
    may_split: bool,
}

impl Leaf {
    /// Reads the rows of the leaf, and finds its best split if it may be split.
    fn read(
        self,
        training_set: &TrainingSet<'_>,
        sampled: &[u32],
        others: &[u32],
        search: &mut NodeSearch,
        columns: &Pool<ColumnSearch>,
    ) -> GrownNode {
        let (labels, weights) = (training_set.labels, training_set.weights);
        let rows = &sampled[self.spans.sampled.clone()];
        search
            .node
            .read(rows, labels, weights, training_set.threads);
        let node = &search.node;
        let statistics = Statistics {
            n_rows: node.len() as u32,
            weight: node.weight * node.unit,
            gain: 0.0,
            entropy: node.entropy(),
        };
        let by_class = node.by_class();
        let can_gain = node.totals.len() > 1 && node.len() >= 2 * node.min_rows;
        let mut split = None;
        if self.may_split && can_gain {
            let others = &others[self.spans.others.clone()];
            split = search.best_split(training_set, self.number, others, columns);
        }
        GrownNode {
            spans: self.spans,
            depth: self.depth,
            split,
            left: 0,
            statistics,
            by_class,
        }
    }
}
