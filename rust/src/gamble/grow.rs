//! Growing a tree: best first, until it has its leaves or nothing is gained.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use super::columns::{Codes, Columns, Place};
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
}

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
    min_rows: usize,
    threads: bool,
    features: Features,
    search: Search,
    node: Node,
    /// For [`Node::read`].
    numbers: Vec<u32>,
    /// Rows that the tree is grown from, those of each node side by side.
    learned: Vec<u32>,
    /// All other rows, likewise.
    others: Vec<u32>,
    right: Vec<u32>,
    parts: Vec<Part>,
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
    pub fn new(params: &Params, features: Features, n_classes: usize, threads: bool) -> Self {
        Self {
            max_leaves: params.max_leaves as usize,
            min_rows: params.min_samples_leaf as usize,
            threads,
            features,
            search: Search::default(),
            node: Node::default(),
            numbers: vec![Node::ABSENT; n_classes],
            learned: Vec::new(),
            others: Vec::new(),
            right: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Grows a tree on the rows `learned`, which rise; all others up to the number of
    /// weights come along to the leaves.
    pub fn grow(&mut self, ground: &Ground<'_>, learned: &[u32], control: &Control) -> Result<()> {
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
        open.extend(self.add(ground, all, true));
        let mut n_leaves = 1;
        while n_leaves < self.max_leaves {
            let Some(Candidate { split, part }) = open.pop() else {
                break;
            };
            control.check()?;
            let Part {
                learned, others, ..
            } = self.parts[part].clone();
            let columns = ground.columns;
            let (rows, right) = (&mut self.learned[learned.clone()], &mut self.right);
            let middle = learned.start + divide(columns, &split, rows, right);
            let rows = &mut self.others[others.clone()];
            let other_middle = others.start + divide(columns, &split, rows, right);
            self.parts[part].split = Some((split, self.parts.len()));
            self.parts[part].statistics.gain = split.gain;
            n_leaves += 1;
            let goes_on = n_leaves < self.max_leaves;
            let left = (learned.start..middle, others.start..other_middle);
            open.extend(self.add(ground, left, goes_on));
            let right = (middle..learned.end, other_middle..others.end);
            open.extend(self.add(ground, right, goes_on));
        }
        Ok(())
    }

    /// Adds a node; where it may be split and can be, how.
    fn add(
        &mut self,
        ground: &Ground<'_>,
        (learned, others): (Range<usize>, Range<usize>),
        may_be_split: bool,
    ) -> Option<Candidate> {
        let part = self.parts.len();
        let node = &mut self.node;
        node.min_rows = self.min_rows;
        let rows = &self.learned[learned.clone()];
        node.read(rows, ground.labels, ground.weights, &mut self.numbers);
        self.parts.push(Part {
            learned,
            others,
            split: None,
            statistics: Statistics {
                n_rows: node.len() as u32,
                weight: node.weight,
                gain: 0.0,
                entropy: node.entropy(),
            },
        });
        // A node of one class has nothing to gain.
        if !may_be_split || node.totals.len() < 2 || node.len() < 2 * self.min_rows {
            return None;
        }
        let (seed, round) = ground.seed;
        let drawn = self.features.draw(seed, round, part as u64);
        let split = self
            .search
            .best(node, ground.columns, drawn, self.threads)?;
        Some(Candidate { split, part })
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

/// Puts the rows that go left before those that go right, each in their order; returns
/// how many go left. `right` is room to work in.
fn divide(columns: &Columns, split: &Split, rows: &mut [u32], right: &mut Vec<u32>) -> usize {
    let column = split.column as usize;
    match (&columns.columns[column].place, split.rule) {
        // By far the most frequent kind.
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
