//! Growing a tree: best first, until it has its leaves or nothing is gained. A node of n rows
//! costs what the search for its split costs, and O(n) to divide it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{is_in, Columns, Storage};
use super::leaf::Leaves;
use super::params::Params;
use super::split::{Rule, Split};
use super::split_search::{SplitFinder, TrainingSet};
use super::tree::{Statistics, Tree, TreeNode};
use crate::alloc::{extend, push};
use crate::error::Result;

/// Where the rows of a node are, those that the tree is grown from and all others.
type Spans = (Range<usize>, Range<usize>);

/// A leaf that may be split: the bits of the gain, in the order of the gains as these are above 0,
/// and the node. The greatest gain first, of equals the oldest.
type Candidate = (u64, Reverse<usize>);

/// Rows of the smaller of two lists from which dividing them in parallel pays.
const SHARED_ROWS: usize = 1 << 13;

/// Codes of the smaller child from which finding the splits of two in parallel pays.
const SHARED_CODES: usize = 1 << 11;

/// Steps from the root to a leaf, at most: each costs as much as all rows of its node, and on a column
/// that no split divides evenly a tree would have as many as it has leaves.
const MOST_STEPS: u32 = 512;

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
    /// One for each of two children.
    finders: [SplitFinder; 2],
    /// Rows that the tree is grown from, those of each node side by side.
    sampled: Vec<u32>,
    /// All other rows, likewise.
    others: Vec<u32>,
    /// Buffers for dividing them.
    right: [Vec<u32>; 2],
    nodes: Vec<GrownNode>,
    open: BinaryHeap<Candidate>,
    /// The highest gains of all candidates so far, split or not, as many as there may be splits; the
    /// lowest first.
    highest_gains: BinaryHeap<Reverse<u64>>,
}

impl Grower {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        let finder = || SplitFinder::new(params, n_columns, n_classes);
        Self {
            max_leaves: params.max_leaves as usize,
            finders: [finder(), finder()],
            sampled: Vec::new(),
            others: Vec::new(),
            right: [Vec::new(), Vec::new()],
            nodes: Vec::new(),
            open: BinaryHeap::new(),
            highest_gains: BinaryHeap::new(),
        }
    }

    /// Grows a tree from the rows `sampled`, which rise; all others up to the number of
    /// weights are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        self.sampled.clear();
        extend(&mut self.sampled, sampled.iter().copied());
        self.others.clear();
        let mut next = 0;
        for &row in sampled.iter().chain([&(training_set.weights.len() as u32)]) {
            extend(&mut self.others, next..row);
            next = row + 1;
        }
        self.nodes.clear();
        self.open.clear();
        let all = (0..self.sampled.len(), 0..self.others.len());
        self.highest_gains.clear();
        let root = self.finders[0].find(training_set, &self.sampled, 0, 0.0);
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
            let least_gain = if depth == MOST_STEPS {
                f64::INFINITY
            } else {
                self.least_gain(n_leaves)
            };
            let found = self.find_two(training_set, &children, least_gain);
            for (child, found) in children.into_iter().zip(found) {
                self.add(child, depth, found);
            }
        }
        Ok(())
    }

    /// Divides the rows of node `node` between its children, the left one first.
    fn divide(&mut self, training_set: &TrainingSet<'_>, split: &Split, node: usize) -> [Spans; 2] {
        let (sampled, others) = self.nodes[node].spans.clone();
        let [right, other_right] = &mut self.right;
        let rows = &mut self.sampled[sampled.clone()];
        let other_rows = &mut self.others[others.clone()];
        let in_parallel = training_set.threads && rows.len().min(other_rows.len()) >= SHARED_ROWS;
        let columns = training_set.columns;
        let (n, n_others) = join(
            in_parallel,
            || divide(columns, split, rows, right),
            || divide(columns, split, other_rows, other_right),
        );
        let (middle, other_middle) = (sampled.start + n, others.start + n_others);
        [
            (sampled.start..middle, others.start..other_middle),
            (middle..sampled.end, other_middle..others.end),
        ]
    }

    fn find_two(
        &mut self,
        training_set: &TrainingSet<'_>,
        [left, right]: &[Spans; 2],
        least_gain: f64,
    ) -> [(Statistics, Option<Split>); 2] {
        let (rows, next) = (&self.sampled, self.nodes.len());
        let [first, second] = &mut self.finders;
        let n_codes = left.0.len().min(right.0.len()) * first.features.n_sampled;
        let find = |finder: &mut SplitFinder, child: &Spans, number| {
            finder.find(training_set, &rows[child.0.clone()], number, least_gain)
        };
        let (left, right) = join(
            least_gain < f64::INFINITY && training_set.threads && n_codes >= SHARED_CODES,
            || find(first, left, next),
            || find(second, right, next + 1),
        );
        [left, right]
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
        push(&mut self.nodes, node);
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
                    push(&mut tree.nodes, leaf);
                    n_leaves += 1;
                }
            }
            push(&mut tree.statistics, node.statistics);
        }
        tree
    }
}

fn join<A: Send, B: Send>(
    in_parallel: bool,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if in_parallel {
        rayon::join(a, b)
    } else {
        (a(), b())
    }
}

/// Puts the rows that go left before those that go right, each in their order; returns
/// how many go left. `right` is a buffer.
fn divide(columns: &Columns, split: &Split, rows: &mut [u32], right: &mut Vec<u32>) -> usize {
    let column = split.column as usize;
    // The most frequent kinds first.
    if let Some(set) = columns.rows_with_entry(column) {
        return divide_by(rows, right, |row| !is_in(set, row as usize));
    }
    match (&columns.columns[column].storage, split.rule) {
        (Storage::Small(codes), Rule::Threshold(cut)) if cut.missing.is_none() => {
            divide_by(rows, right, |row| {
                u32::from(codes[row as usize]) <= cut.last_left
            })
        }
        (_, rule) => divide_by(rows, right, |row| {
            rule.goes_left(columns.code(column, row as usize))
        }),
    }
}

#[inline]
fn divide_by(rows: &mut [u32], right: &mut Vec<u32>, goes_left: impl Fn(u32) -> bool) -> usize {
    right.resize(rows.len().max(right.len()), 0);
    let (mut n_left, mut n_right) = (0, 0);
    // Both are written and one is kept: no branch that could be mispredicted.
    for at in 0..rows.len() {
        let row = rows[at];
        let left = goes_left(row);
        rows[n_left] = row;
        right[n_right] = row;
        n_left += usize::from(left);
        n_right += usize::from(!left);
    }
    rows[n_left..].copy_from_slice(&right[..n_right]);
    n_left
}
