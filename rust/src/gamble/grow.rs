//! Growing a tree: best first, until it has its leaves or nothing is gained.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

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

/// Rows lo..hi of the grower's order, and how they are split.
#[derive(Debug, Clone, Copy)]
struct Part {
    from: usize,
    to: usize,
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
    /// Rows of the tree, those of each node side by side.
    rows: Vec<u32>,
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
            rows: Vec::new(),
            right: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Grows a tree on `rows`, which rise.
    pub fn grow(&mut self, ground: &Ground<'_>, rows: &[u32], control: &Control) -> Result<()> {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.parts.clear();
        let mut open = BinaryHeap::new();
        open.extend(self.add(ground, 0..rows.len(), self.max_leaves > 1));
        let mut n_leaves = 1;
        while n_leaves < self.max_leaves {
            let Some(Candidate { split, part }) = open.pop() else {
                break;
            };
            control.check()?;
            let Part { from, to, .. } = self.parts[part];
            let middle = from + self.divide(ground.columns, &split, from..to);
            self.parts[part].split = Some((split, self.parts.len()));
            self.parts[part].statistics.gain = split.gain;
            n_leaves += 1;
            let goes_on = n_leaves < self.max_leaves;
            open.extend(self.add(ground, from..middle, goes_on));
            open.extend(self.add(ground, middle..to, goes_on));
        }
        Ok(())
    }

    /// Adds a node; where it may be split and can be, how.
    fn add(
        &mut self,
        ground: &Ground<'_>,
        span: std::ops::Range<usize>,
        may_be_split: bool,
    ) -> Option<Candidate> {
        let part = self.parts.len();
        let node = &mut self.node;
        node.min_rows = self.min_rows;
        let rows = &self.rows[span.clone()];
        node.read(rows, ground.labels, ground.weights, &mut self.numbers);
        self.parts.push(Part {
            from: span.start,
            to: span.end,
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

    /// Puts the rows of a node that go left before those that go right, each in their
    /// order; returns how many go left.
    fn divide(&mut self, columns: &Columns, split: &Split, span: std::ops::Range<usize>) -> usize {
        let rows = &mut self.rows[span];
        self.right.clear();
        let column = split.column as usize;
        let mut part = |goes_left: &dyn Fn(u32) -> bool| {
            let mut n_left = 0;
            for at in 0..rows.len() {
                let row = rows[at];
                if goes_left(row) {
                    rows[n_left] = row;
                    n_left += 1;
                } else {
                    self.right.push(row);
                }
            }
            rows[n_left..].copy_from_slice(&self.right);
            n_left
        };
        match (&columns.columns[column].place, split.rule) {
            // By far the most frequent kind, worth a loop of its own.
            (
                Place::Full(Codes::Few(codes)),
                Rule::UpTo {
                    low, missing: None, ..
                },
            ) => part(&|row| u32::from(codes[row as usize]) <= low),
            (_, rule) => part(&|row| rule.goes_left(columns.code(column, row as usize))),
        }
    }

    /// The leaves of the tree in the order of its nodes, each with its rows.
    pub fn leaves(&self) -> impl Iterator<Item = &[u32]> {
        let leaves = self.parts.iter().filter(|part| part.split.is_none());
        leaves.map(|part| &self.rows[part.from..part.to])
    }

    /// Which leaf row `row` comes to, whether the tree was grown from it or not.
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
