//! The rows of a node, and the splits of a node: their rules, their scores and the best of them.

use super::columns::Coding;
use super::sampling::{CHUNK_ROWS, MIN_SHARE};
use crate::data::LocalIds;
use crate::learners::mix;
use crate::threads::map_chunks;

/// Least weight of the heaviest row of a node, as a share of the greatest weight of all, at which
/// [`MIN_SHARE`] is lost in the rounding of a sum.
const MIN_HEAVIEST: f64 = 1e-17;

/// Class and weight of a row. An item has eight bytes because sorting moves items in random order,
/// and weights are rounded to single precision anyway.
#[derive(Debug, Default, Clone, Copy)]
pub struct Item {
    /// Local number of the row's class at the node.
    pub class: u32,
    pub weight: f32,
}

/// The rows of a node: their weights, their classes and the sums over them. Classes present at the
/// node are numbered from 0, so that the cost of a node does not depend on the number of all
/// classes.
#[derive(Debug, Default, Clone)]
pub struct Node {
    /// Row numbers in rising order.
    pub rows: Vec<u32>,
    /// Class and weight of each row.
    pub items: Vec<Item>,
    /// Local numbers of the classes present, in the order of their first rows.
    classes: LocalIds,
    /// Weight of each class present: W_k.
    pub totals: Vec<f64>,
    /// Weight of all rows: W.
    pub weight: f64,
    /// Sum of the squared weights of the classes.
    pub square: f64,
    /// Unit of all these weights: 1 or, at a node far lighter than the heaviest row of all, the
    /// weight of its heaviest row. So all nodes have the shares of Algorithm 2.
    pub unit: f64,
    /// Smallest number of rows of a leaf.
    pub min_rows: usize,
}

impl Node {
    pub fn new(n_classes: usize, min_rows: usize) -> Self {
        Self {
            min_rows,
            classes: LocalIds::new(n_classes),
            ..Self::default()
        }
    }

    /// Replaces the rows of the node. `labels` and `weights` have an element for every training
    /// row.
    pub fn read(&mut self, rows: &[u32], labels: &[u32], weights: &[f64], threads: bool) {
        rows.clone_into(&mut self.rows);
        self.items.clear();
        self.classes.clear();
        self.totals.clear();
        self.unit = 1.0;
        let weight = |&row: &u32| weights[row as usize];
        if rows.iter().map(weight).all(|weight| weight < MIN_HEAVIEST) {
            self.unit = rows.iter().map(weight).fold(0.0, f64::max);
        }
        let share = |row: &u32| (weight(row) / self.unit).max(MIN_SHARE) as f32;
        if rows.len() <= CHUNK_ROWS {
            for row in rows {
                let (class, weight) = (self.classes.insert(labels[*row as usize]), share(row));
                if class as usize == self.totals.len() {
                    self.totals.push(0.0);
                }
                self.items.push(Item { class, weight });
                self.totals[class as usize] += f64::from(weight);
            }
        } else {
            for row in rows {
                self.classes.insert(labels[*row as usize]);
                if self.classes.len() == self.classes.n_keys() {
                    break;
                }
            }
            let classes = &self.classes;
            let chunks = map_chunks(threads, rows, CHUNK_ROWS, |_, rows| {
                let mut totals = vec![0.0; classes.len()];
                let item = |row: &u32| {
                    let class = classes.get(labels[*row as usize]).unwrap_or_default();
                    let weight = share(row);
                    totals[class as usize] += f64::from(weight);
                    Item { class, weight }
                };
                let items: Vec<Item> = rows.iter().map(item).collect();
                (items, totals)
            });
            self.totals.resize(classes.len(), 0.0);
            for (items, totals) in chunks {
                self.items.extend(items);
                let sums = self.totals.iter_mut().zip(totals);
                sums.for_each(|(sum, total)| *sum += total);
            }
        }
        self.sum_up();
    }

    /// Returns the item of another row. Classes absent from the node have the same number.
    pub fn item(&self, label: u32, weight: f64) -> Item {
        Item {
            class: self.classes.get(label).unwrap_or(u32::MAX),
            weight: (weight / self.unit) as f32,
        }
    }

    /// Returns two copies of the node, each without the weights of about half of the rows. `key`
    /// and the number of a row decide.
    pub fn halves(&self, key: u64) -> [Self; 2] {
        [0, 1].map(|half| {
            let mut node = self.clone();
            node.totals.iter_mut().for_each(|total| *total = 0.0);
            for (row, item) in node.rows.iter().zip(&mut node.items) {
                if mix(key.wrapping_add(u64::from(*row))) & 1 != half {
                    item.weight = 0.0;
                }
                node.totals[item.class as usize] += f64::from(item.weight);
            }
            node.sum_up();
            node
        })
    }

    /// Computes the sums over the classes.
    fn sum_up(&mut self) {
        self.weight = self.totals.iter().sum();
        self.square = self.totals.iter().map(|total| total * total).sum();
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the classes present, in rising order, with their weights.
    pub fn by_class(&self) -> Vec<(u32, f64)> {
        let weights = self.totals.iter().copied();
        let mut by_class: Vec<_> = self.classes.keys().iter().copied().zip(weights).collect();
        by_class.sort_unstable_by_key(|&(class, _)| class);
        by_class
    }

    /// Returns the entropy of the classes' weights, in nats.
    pub fn entropy(&self) -> f64 {
        let shares = self.totals.iter().map(|total| total / self.weight);
        // Subtracting from 0 gives 0 and not -0 for a single class.
        0.0 - shares.map(|share| share * share.ln()).sum::<f64>()
    }

    /// Returns the score of the unsplit node, (sum_k W_k^2) / W, which a split must exceed.
    pub fn score(&self) -> f64 {
        self.square / self.weight
    }

    /// Returns the score of the split into `side` and the rest: the sum of sum_k W_k^2 / W over
    /// both sides. It is 0 if a side has fewer than `min_rows` rows or no weight after rounding.
    pub fn split_score(&self, side: &Side) -> f64 {
        let (other_rows, other_weight) = (self.len() - side.n_rows, self.weight - side.weight);
        let has_rows = side.n_rows.min(other_rows) >= self.min_rows;
        if !has_rows || side.weight <= 0.0 || other_weight <= 0.0 {
            return 0.0;
        }
        // A difference of large sums can be slightly out of its range.
        let other_square = side.other_square.clamp(0.0, other_weight * other_weight);
        // One division takes half the time of two.
        let both = side.square * other_weight + other_square * side.weight;
        both / (side.weight * other_weight)
    }

    /// Returns the largest difference of scores that count as equal. Scores are sums in different
    /// orders, so they differ by rounding.
    pub fn tolerance(&self) -> f64 {
        1e-10 * self.weight
    }
}

/// The sums that give the score of a split. They describe one side of it, left or right.
#[derive(Debug, Default, Clone, Copy)]
pub struct Side {
    pub n_rows: usize,
    pub weight: f64,
    /// Sum of the squared class weights on this side.
    pub square: f64,
    /// Sum of the squared class weights on the other side.
    pub other_square: f64,
}

/// The rule that decides which codes go left.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Codes up to `last_left` go left.
    Threshold {
        last_left: u32,
        /// Threshold between the values of the codes.
        value: f32,
        /// Code of missing values.
        missing: Option<u32>,
        missing_left: bool,
    },
    /// These codes go left, in rising order.
    Subset(Box<[u32]>),
}

impl Rule {
    pub fn goes_left(&self, code: u32) -> bool {
        match self {
            &Self::Threshold {
                missing: Some(missing),
                missing_left,
                ..
            } if code == missing => missing_left,
            &Self::Threshold { last_left, .. } => code <= last_left,
            Self::Subset(left) => left.binary_search(&code).is_ok(),
        }
    }
}

/// A cut between two codes that are present at a node.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Last code present that goes left.
    pub last_left: u32,
    /// First code present that goes right; `None` if only missing values go right.
    pub first_right: Option<u32>,
    /// Side of missing values; `None` if the node has none.
    pub missing_left: Option<bool>,
    pub left_weight: f64,
}

impl Cut {
    /// Returns the rule for this cut of `node`. If the node has no missing values, later ones go to
    /// the heavier side.
    fn rule(&self, node: &Node, coding: &Coding) -> Rule {
        let (last_left, value) = match self.first_right {
            Some(first_right) => coding.cut(self.last_left, first_right),
            None => (coding.spans.len() as u32 - 1, f32::INFINITY),
        };
        let left_is_heavier = 2.0 * self.left_weight > node.weight;
        Rule::Threshold {
            last_left,
            value,
            missing: coding.missing_code(),
            missing_left: self.missing_left.unwrap_or(left_is_heavier),
        }
    }
}

/// A split of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    pub column: u32,
    pub rule: Rule,
    /// Increase of sum_k W_k^2 / W, which equals the decrease of the squared error up to a
    /// constant.
    pub gain: f64,
}

/// The codes that go left, before a rule is made of them.
#[derive(Debug, Clone)]
pub enum Choice {
    Cut(Cut),
    /// Codes in rising order.
    Subset(Box<[u32]>),
}

/// The best split by one column so far. Scores that differ by no more than the tolerance are equal,
/// and among equals the first split wins.
#[derive(Debug)]
pub struct ColumnBest {
    tolerance: f64,
    to_beat: f64,
    /// Score and codes of the best split; `None` if none is better than not splitting the node.
    pub found: Option<(f64, Choice)>,
}

impl ColumnBest {
    pub fn new(node: &Node) -> Self {
        let tolerance = node.tolerance();
        Self {
            tolerance,
            to_beat: node.score() + tolerance,
            found: None,
        }
    }

    /// Offers a split. Returns true if it is the best.
    pub fn offer(&mut self, score: f64, choice: impl FnOnce() -> Choice) -> bool {
        let wins = score > self.to_beat;
        if wins {
            self.to_beat = score + self.tolerance;
            self.found = Some((score, choice()));
        }
        wins
    }

    /// Returns true if no later column can have a better split of `node`, as both sides of this one
    /// have one class each.
    pub fn is_perfect(&self, node: &Node) -> bool {
        let least = node.weight - self.tolerance / 2.0;
        self.found
            .as_ref()
            .is_some_and(|(score, _)| *score >= least)
    }
}

/// The best split of a node so far, from the best of each column. The first column wins among
/// equals, in whatever order columns are offered.
#[derive(Debug)]
pub struct BestSplit {
    tolerance: f64,
    /// Highest score so far, at first that of the unsplit node.
    highest: f64,
    /// Column, score and codes.
    found: Option<(u32, f64, Choice)>,
}

impl BestSplit {
    pub fn new(node: &Node) -> Self {
        Self {
            tolerance: node.tolerance(),
            highest: node.score(),
            found: None,
        }
    }

    /// Returns true if a split by `column` with this `score` would be the best.
    pub fn is_beaten_by(&self, column: u32, score: f64) -> bool {
        let wins_ties = self.found.as_ref().is_some_and(|best| column < best.0);
        let margin = if wins_ties {
            -self.tolerance
        } else {
            self.tolerance
        };
        score > self.highest + margin
    }

    /// Offers the best splits by the first of the columns `group`.
    pub fn offer_all(&mut self, group: &[u32], found: Vec<ColumnBest>) {
        for (&column, best) in group.iter().zip(found) {
            self.offer(column, best);
        }
    }

    /// Offers the best split by `column`.
    pub fn offer(&mut self, column: u32, best: ColumnBest) {
        if let Some((score, choice)) = best.found {
            if self.is_beaten_by(column, score) {
                self.highest = self.highest.max(score);
                self.found = Some((column, score, choice));
            }
        }
    }

    /// Returns the best split of `node`, if one is better than not splitting it. `coding` returns
    /// the codes of a column.
    pub fn split<'a>(self, node: &Node, coding: impl Fn(u32) -> &'a Coding) -> Option<Split> {
        let (column, score, choice) = self.found?;
        let rule = match choice {
            Choice::Cut(cut) => cut.rule(node, coding(column)),
            Choice::Subset(left) => Rule::Subset(left),
        };
        Some(Split {
            column,
            rule,
            gain: (score - node.score()) * node.unit,
        })
    }
}
