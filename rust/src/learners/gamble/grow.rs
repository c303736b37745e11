//! Growing a tree: best first, until it has its leaves or nothing is gained.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{is_in, Codes, Columns, Place};
use super::draw::Features;
use super::node::Node;
use super::params::Params;
use super::split::{Rule, Search, Split};
use super::tree::{Statistics, Tree};
use crate::control::Control;
use crate::error::Result;

/// What a tree is grown from.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The examples.
    pub columns: &'a Columns,
    /// Class of each row.
    pub labels: &'a [u32],
    /// Weight of each row.
    pub weights: &'a [f64],
    /// Seed and number of the round, for what is drawn.
    pub seed: (u64, u64),
    /// Whether to stop.
    pub control: &'a Control,
}

/// Where the rows of a node are, those that the tree is grown from and those that only come
/// along.
type Spans = (Range<usize>, Range<usize>);

/// Rows of the smaller part from which it pays to divide two parts side by side.
const SHARED_ROWS: usize = 1 << 13;

/// Codes of the smaller child from which it pays to look at two side by side.
const SHARED_CODES: usize = 1 << 11;

/// A node: its rows, and how they are split.
#[derive(Debug, Clone)]
struct Part {
    /// Those that the tree is grown from.
    learned: Range<usize>,
    /// Those that only come along.
    others: Range<usize>,
    /// The split and the left child; the right one is next to it.
    split: Option<(Split, usize)>,
    statistics: Statistics,
}

/// Grows trees, one after the other, in the same room.
pub struct Grower {
    max_leaves: usize,
    threads: bool,
    /// One for each of two children.
    seekers: [Seeker; 2],
    /// Rows that the tree is grown from, those of each node side by side.
    learned: Vec<u32>,
    /// All other rows, likewise.
    others: Vec<u32>,
    /// Room for dividing them.
    right: [Vec<u32>; 2],
    parts: Vec<Part>,
}

/// Finds the best split of a node. Room for one thread.
struct Seeker {
    min_rows: usize,
    features: Features,
    search: Search,
    node: Node,
    /// For [`Node::read`].
    numbers: Vec<u32>,
}

impl Seeker {
    /// What there is to know of node number `part`, which has these `rows`; where it may be
    /// split and can be, how.
    fn look(
        &mut self,
        ground: &Ground<'_>,
        rows: &[u32],
        part: usize,
        may_be_split: bool,
        threads: bool,
    ) -> (Statistics, Option<Split>) {
        let node = &mut self.node;
        node.min_rows = self.min_rows;
        node.read(rows, ground.labels, ground.weights, &mut self.numbers);
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
        let (seed, round) = ground.seed;
        let drawn = self.features.draw(seed, round, part as u64);
        let Ground {
            columns, control, ..
        } = ground;
        let split = self.search.best(node, columns, drawn, threads, control);
        (statistics, split)
    }
}

/// A leaf that may be split. The greatest gain first, of equals the oldest.
struct Candidate {
    split: Split,
    part: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let gains = self.split.gain.total_cmp(&other.split.gain);
        gains.then(Reverse(self.part).cmp(&Reverse(other.part)))
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
    /// For trees as `params` say, with splits by the columns that `features` draws.
    pub fn new(params: &Params, features: &Features, n_classes: usize, threads: bool) -> Self {
        let seeker = || Seeker {
            min_rows: params.min_samples_leaf as usize,
            features: features.clone(),
            search: Search::default(),
            node: Node::default(),
            numbers: vec![Node::ABSENT; n_classes],
        };
        Self {
            max_leaves: params.max_leaves as usize,
            threads,
            seekers: [seeker(), seeker()],
            learned: Vec::new(),
            others: Vec::new(),
            right: [Vec::new(), Vec::new()],
            parts: Vec::new(),
        }
    }

    /// Grows a tree on the rows `learned`, which rise; all others up to the number of
    /// weights come along to the leaves.
    pub fn grow(&mut self, ground: &Ground<'_>, learned: &[u32]) -> Result<()> {
        self.learned.clear();
        self.learned.extend_from_slice(learned);
        self.others.clear();
        let mut next = 0;
        for &row in learned.iter().chain([&(ground.weights.len() as u32)]) {
            self.others.extend(next..row);
            next = row + 1;
        }
        self.parts.clear();
        let mut open = BinaryHeap::new();
        let all = (0..self.learned.len(), 0..self.others.len());
        let looked = self.seekers[0].look(ground, &self.learned, 0, true, self.threads);
        open.extend(self.add(all, looked));
        let mut n_leaves = 1;
        while n_leaves < self.max_leaves {
            let Some(Candidate { split, part }) = open.pop() else {
                break;
            };
            ground.control.check()?;
            let children = self.divide(ground.columns, &split, part);
            self.parts[part].split = Some((split, self.parts.len()));
            self.parts[part].statistics.gain = split.gain;
            n_leaves += 1;
            let looked = self.look_at(ground, &children, n_leaves < self.max_leaves);
            for (child, looked) in children.into_iter().zip(looked) {
                open.extend(self.add(child, looked));
            }
        }
        Ok(())
    }

    /// Parts the rows of node `part` between its children, the left one first.
    fn divide(&mut self, columns: &Columns, split: &Split, part: usize) -> [Spans; 2] {
        let Part {
            learned, others, ..
        } = self.parts[part].clone();
        let [room, other_room] = &mut self.right;
        let (rows, other_rows) = (
            &mut self.learned[learned.clone()],
            &mut self.others[others.clone()],
        );
        let shared = self.threads && rows.len().min(other_rows.len()) >= SHARED_ROWS;
        let (n, n_others) = join(
            shared,
            || divide(columns, split, rows, room),
            || divide(columns, split, other_rows, other_room),
        );
        let (middle, other_middle) = (learned.start + n, others.start + n_others);
        [
            (learned.start..middle, others.start..other_middle),
            (middle..learned.end, other_middle..others.end),
        ]
    }

    /// Looks at two new nodes.
    fn look_at(
        &mut self,
        ground: &Ground<'_>,
        [left, right]: &[Spans; 2],
        may_be_split: bool,
    ) -> [(Statistics, Option<Split>); 2] {
        let (rows, part) = (&self.learned, self.parts.len());
        let [first, second] = &mut self.seekers;
        let n = left.0.len().min(right.0.len());
        let shared = may_be_split && self.threads && n * first.features.n_drawn() >= SHARED_CODES;
        let (left, right) = join(
            shared,
            || {
                first.look(
                    ground,
                    &rows[left.0.clone()],
                    part,
                    may_be_split,
                    self.threads,
                )
            },
            || {
                second.look(
                    ground,
                    &rows[right.0.clone()],
                    part + 1,
                    may_be_split,
                    self.threads,
                )
            },
        );
        [left, right]
    }

    /// Adds a node; where it may be split, so that it will be.
    fn add(
        &mut self,
        (learned, others): Spans,
        (statistics, split): (Statistics, Option<Split>),
    ) -> Option<Candidate> {
        let part = self.parts.len();
        self.parts.push(Part {
            learned,
            others,
            split: None,
            statistics,
        });
        Some(Candidate {
            split: split?,
            part,
        })
    }

    /// The leaves of the tree in the order of its nodes: the rows that it was grown from
    /// and the others that have come there.
    pub fn leaves(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let leaves = self.parts.iter().filter(|part| part.split.is_none());
        leaves.map(|part| {
            let others = &self.others[part.others.clone()];
            (&self.learned[part.learned.clone()], others)
        })
    }

    /// Which leaf a row comes to that was neither.
    pub fn leaf(&self, columns: &Columns, row: usize, numbers: &[u32]) -> usize {
        let mut at = 0;
        while let Some((split, left)) = &self.parts[at].split {
            let code = columns.code(split.column as usize, row);
            at = left + usize::from(!split.rule.goes_left(code));
        }
        numbers[at] as usize
    }

    /// Number of each node's leaf; those of inner nodes mean nothing.
    pub fn numbers(&self) -> Vec<u32> {
        let mut next = 0;
        let number = |part: &Part| {
            let number = next;
            next += u32::from(part.split.is_none());
            number
        };
        self.parts.iter().map(number).collect()
    }

    /// The tree as prediction walks it, without its leaves' votes.
    pub fn freeze(&self, columns: &Columns) -> Tree {
        let mut tree = Tree::default();
        for (part, number) in self.parts.iter().zip(self.numbers()) {
            match &part.split {
                Some((split, left)) => {
                    tree.push_split(columns, split.column, &split.rule, *left as u32);
                }
                None => tree.push_leaf(number),
            }
            tree.statistics.push(part.statistics);
        }
        tree
    }
}

/// Does both, side by side if it is to be `shared`.
fn join<A: Send, B: Send>(
    shared: bool,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if shared {
        rayon::join(a, b)
    } else {
        (a(), b())
    }
}

/// Puts the rows that go left before those that go right, each in their order; returns
/// how many go left. `right` is room to work in.
fn divide(columns: &Columns, split: &Split, rows: &mut [u32], right: &mut Vec<u32>) -> usize {
    let column = split.column as usize;
    // First the most frequent kinds.
    if let Some(set) = columns.set(column) {
        return divide_by(rows, right, |row| !is_in(set, row as usize));
    }
    match (&columns.columns[column].place, split.rule) {
        (
            Place::Full(Codes::Few(codes)),
            Rule::UpTo {
                low, missing: None, ..
            },
        ) => divide_by(rows, right, |row| u32::from(codes[row as usize]) <= low),
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
