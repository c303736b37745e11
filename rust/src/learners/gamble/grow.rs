//! Growing a tree: best first, until it has its leaves or nothing is gained. A node of n rows
//! costs what the search for its split costs, and O(n) to divide it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{is_in, Codes, Columns, Storage};
use super::params::Params;
use super::rule::{Rule, Split};
use super::sampling::FeatureSampler;
use super::split_finder::{SplitFinder, TrainingSet};
use super::tree::{Statistics, Tree};
use crate::error::Result;

/// Where the rows of a node are, those that the tree is grown from and all others.
type Spans = (Range<usize>, Range<usize>);

/// Rows of the smaller of two lists from which dividing them in parallel pays.
const SHARED_ROWS: usize = 1 << 13;

/// Codes of the smaller child from which finding the splits of two in parallel pays.
const SHARED_CODES: usize = 1 << 11;

/// A node of the tree in the making: its rows, and how they are split.
#[derive(Debug, Clone)]
struct GrownNode {
    /// Those that the tree is grown from.
    sampled: Range<usize>,
    /// All other rows that are routed here.
    others: Range<usize>,
    /// The split and the left child; the right one is next to it.
    split: Option<(Split, usize)>,
    statistics: Statistics,
}

/// Grows trees, one after the other, in the same workspace.
pub struct Grower {
    max_leaves: usize,
    threads: bool,
    /// One for each of two children.
    finders: [SplitFinder; 2],
    /// Rows that the tree is grown from, those of each node side by side.
    sampled: Vec<u32>,
    /// All other rows, likewise.
    others: Vec<u32>,
    /// Buffers for dividing them.
    right: [Vec<u32>; 2],
    nodes: Vec<GrownNode>,
}

/// A leaf that may be split. The greatest gain first, of equals the oldest.
struct Candidate {
    split: Split,
    node: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let gains = self.split.gain.total_cmp(&other.split.gain);
        gains.then(Reverse(self.node).cmp(&Reverse(other.node)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl Grower {
    /// For trees as `params` say, with splits by the columns that `features` samples.
    pub fn new(
        params: &Params,
        features: &FeatureSampler,
        n_classes: usize,
        threads: bool,
    ) -> Self {
        let finder = || SplitFinder::new(params, features, n_classes);
        Self {
            max_leaves: params.max_leaves as usize,
            threads,
            finders: [finder(), finder()],
            sampled: Vec::new(),
            others: Vec::new(),
            right: [Vec::new(), Vec::new()],
            nodes: Vec::new(),
        }
    }

    /// Grows a tree from the rows `sampled`, which rise; all others up to the number of
    /// weights are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        self.sampled.clear();
        self.sampled.extend_from_slice(sampled);
        self.others.clear();
        let mut next = 0;
        for &row in sampled.iter().chain([&(training_set.weights.len() as u32)]) {
            self.others.extend(next..row);
            next = row + 1;
        }
        self.nodes.clear();
        let mut open = BinaryHeap::new();
        let all = (0..self.sampled.len(), 0..self.others.len());
        let root = self.finders[0].find(training_set, &self.sampled, 0, true, self.threads);
        open.extend(self.add(all, root));
        let mut n_leaves = 1;
        while n_leaves < self.max_leaves {
            let Some(Candidate { split, node }) = open.pop() else {
                break;
            };
            training_set.control.check()?;
            let children = self.divide(training_set.columns, &split, node);
            self.nodes[node].split = Some((split, self.nodes.len()));
            self.nodes[node].statistics.gain = split.gain;
            n_leaves += 1;
            let found = self.find_two(training_set, &children, n_leaves < self.max_leaves);
            for (child, found) in children.into_iter().zip(found) {
                open.extend(self.add(child, found));
            }
        }
        Ok(())
    }

    /// Divides the rows of node `node` between its children, the left one first.
    fn divide(&mut self, columns: &Columns, split: &Split, node: usize) -> [Spans; 2] {
        let GrownNode {
            sampled, others, ..
        } = self.nodes[node].clone();
        let [right, other_right] = &mut self.right;
        let (rows, other_rows) = (
            &mut self.sampled[sampled.clone()],
            &mut self.others[others.clone()],
        );
        let in_parallel = self.threads && rows.len().min(other_rows.len()) >= SHARED_ROWS;
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

    /// Finds the splits of two new nodes.
    fn find_two(
        &mut self,
        training_set: &TrainingSet<'_>,
        [left, right]: &[Spans; 2],
        may_be_split: bool,
    ) -> [(Statistics, Option<Split>); 2] {
        let (rows, next) = (&self.sampled, self.nodes.len());
        let threads = self.threads;
        let [first, second] = &mut self.finders;
        let n = left.0.len().min(right.0.len());
        let in_parallel = may_be_split && threads && n * first.n_features() >= SHARED_CODES;
        let (left, right) = join(
            in_parallel,
            || {
                let rows = &rows[left.0.clone()];
                first.find(training_set, rows, next, may_be_split, threads)
            },
            || {
                let rows = &rows[right.0.clone()];
                second.find(training_set, rows, next + 1, may_be_split, threads)
            },
        );
        [left, right]
    }

    /// Adds a node; returns it as a candidate if it may be split.
    fn add(
        &mut self,
        (sampled, others): Spans,
        (statistics, split): (Statistics, Option<Split>),
    ) -> Option<Candidate> {
        let node = self.nodes.len();
        self.nodes.push(GrownNode {
            sampled,
            others,
            split: None,
            statistics,
        });
        Some(Candidate {
            split: split?,
            node,
        })
    }

    /// The leaves of the tree in the order of its nodes: the rows that it was grown from
    /// and the others that were routed there.
    pub fn leaves(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let leaves = self.nodes.iter().filter(|node| node.split.is_none());
        leaves.map(|node| {
            let others = &self.others[node.others.clone()];
            (&self.sampled[node.sampled.clone()], others)
        })
    }

    /// Routes a row that was neither to its leaf; `numbers` are those of the leaves.
    pub fn route(&self, columns: &Columns, row: usize, numbers: &[u32]) -> usize {
        let mut at = 0;
        while let Some((split, left)) = &self.nodes[at].split {
            let code = columns.code(split.column as usize, row);
            at = left + usize::from(!split.rule.goes_left(code));
        }
        numbers[at] as usize
    }

    /// Number of each leaf, by node; those of inner nodes mean nothing.
    pub fn leaf_numbers(&self) -> Vec<u32> {
        let mut next = 0;
        let number = |node: &GrownNode| {
            let number = next;
            next += u32::from(node.split.is_none());
            number
        };
        self.nodes.iter().map(number).collect()
    }

    /// The tree as prediction traverses it, without its leaves' votes.
    pub fn freeze(&self, columns: &Columns) -> Tree {
        let mut tree = Tree::default();
        for (node, number) in self.nodes.iter().zip(self.leaf_numbers()) {
            match &node.split {
                Some((split, left)) => {
                    tree.push_split(columns, split.column, &split.rule, *left as u32);
                }
                None => tree.push_leaf(number),
            }
            tree.statistics.push(node.statistics);
        }
        tree
    }
}

/// Does both.
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
        (
            Storage::Dense(Codes::Small(codes)),
            Rule::Threshold {
                last_left,
                missing: None,
                ..
            },
        ) => divide_by(rows, right, |row| {
            u32::from(codes[row as usize]) <= last_left
        }),
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
