//! Splits of a node: what the strategies find, the best of it, and the rule that a tree keeps.

use super::node::Node;

/// A set of codes below 256, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Subset([u64; 4]);

impl Subset {
    #[inline]
    pub fn contains(&self, code: u32) -> bool {
        code < 256 && self.0[code as usize / 64] >> (code % 64) & 1 == 1
    }

    /// Adds `code`, which is below 256.
    pub fn insert(&mut self, code: u32) {
        self.0[code as usize / 64] |= 1 << (code % 64);
    }

    /// The codes that are in this set, but not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

/// The codes up to `last_left` go left, and missing values as `missing_left` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    pub last_left: u32,
    /// Between the values of the codes.
    pub value: f32,
    /// The code of missing values.
    pub missing: Option<u32>,
    pub missing_left: bool,
}

/// Which codes go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    Threshold(Threshold),
    Subset(Subset),
}

impl Rule {
    #[inline]
    pub fn goes_left(&self, code: u32) -> bool {
        match self {
            Self::Threshold(cut) if Some(code) == cut.missing => cut.missing_left,
            Self::Threshold(cut) => code <= cut.last_left,
            Self::Subset(left) => left.contains(code),
        }
    }
}

/// A split of a node in two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    pub column: u32,
    pub rule: Rule,
    /// By how much it raises sum_k W_k^2 / W, which is by how much it lowers the
    /// squared error, a constant aside.
    pub gain: f64,
}

/// A split by one column.
#[derive(Debug, Clone, Copy)]
pub enum ColumnSplit {
    /// Between two codes.
    Cut(Cut),
    /// By the set of categories that go left.
    Subset { score: f64, left: Subset },
}

impl ColumnSplit {
    pub fn score(&self) -> f64 {
        match self {
            Self::Cut(Cut { score, .. }) | Self::Subset { score, .. } => *score,
        }
    }
}

/// A split between two codes of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Sum of sum_k W_k^2 / W over both sides.
    pub score: f64,
    /// The last code at the node that goes left.
    pub last_left: u32,
    /// The first code at the node that goes right; none if missing values alone do.
    pub first_right: Option<u32>,
    /// Whether missing values go left; none where there are none.
    pub missing_left: Option<bool>,
    pub left_weight: f64,
}

/// The best cut so far, of equals the first.
pub struct BestCut {
    tolerance: f64,
    /// What a score has to be above.
    to_beat: f64,
    /// The cut, if any is better than none.
    pub cut: Option<Cut>,
}

impl BestCut {
    /// No cut yet: the first has to be better than not splitting `node`.
    pub fn new(node: &Node) -> Self {
        Self {
            tolerance: node.tolerance(),
            to_beat: node.score() + node.tolerance(),
            cut: None,
        }
    }

    #[inline]
    pub fn offer(&mut self, cut: Cut) {
        if cut.score > self.to_beat {
            self.to_beat = cut.score + self.tolerance;
            self.cut = Some(cut);
        }
    }
}

/// The best of the splits of a node that are offered. Scores that differ by no more than the
/// tolerance are equal, and of equal splits that by the first column wins, whatever the order
/// in which they come.
#[derive(Debug)]
pub struct BestSplit {
    tolerance: f64,
    /// What a score has to be above.
    to_beat: f64,
    /// The highest score, and the first column that has it.
    highest: (f64, u32),
    /// Splits that could have been the best when they came, each with its column.
    pub splits: Vec<(u32, ColumnSplit)>,
}

impl BestSplit {
    /// None yet: the first has to be better than not splitting `node`.
    pub fn new(node: &Node) -> Self {
        Self {
            tolerance: node.tolerance(),
            to_beat: node.score() + node.tolerance(),
            highest: (0.0, 0),
            splits: Vec::new(),
        }
    }

    /// Whether a split of this `score` by `column` could be the best, by what was offered so far.
    #[inline]
    pub fn may_be(&self, column: u32, score: f64) -> bool {
        let (highest, first) = self.highest;
        score > self.to_beat && (score > highest || column < first)
    }

    /// Takes note of the best split by `column`.
    pub fn offer(&mut self, column: u32, split: ColumnSplit) {
        let score = split.score();
        if self.may_be(column, score) {
            self.to_beat = self.to_beat.max(score - self.tolerance);
            if score >= self.highest.0 {
                self.highest = (score, column);
            }
            self.splits.push((column, split));
        }
    }

    /// The best one and its column.
    pub fn get(self) -> Option<(u32, ColumnSplit)> {
        let splits = self.splits.into_iter();
        let best = splits.filter(|(_, split)| split.score() > self.to_beat);
        best.min_by_key(|&(column, _)| column)
    }
}
