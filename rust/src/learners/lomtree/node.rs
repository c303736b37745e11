//! What a node knows: per label how many examples came and what scores they got (l, n, m and e
//! of the paper), and their sums over all labels.

use crate::file::{is_count, is_sum};
use crate::linear::Table;
use crate::record;
use crate::tree::{NodeId, PackedF64};

/// What a node knows of one label. A leaf counts arrivals, an internal node trainings, in the
/// same place: the table of all labels at all nodes is the largest part of the tree that every
/// example has to touch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct LabelStat {
    /// Arrivals from the time as a leaf; 0 at a leaf.
    pub before: f32,
    /// l of a leaf: arrivals; n of an internal node: trainings.
    pub count: PackedF64,
    /// m: sum of scores.
    pub score: PackedF64,
}

impl LabelStat {
    /// e: mean score.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score.0, self.count.0)
    }

    /// l: arrivals, at leaves and internal nodes.
    #[inline]
    pub fn arrivals(&self) -> f64 {
        f64::from(self.before) + self.count.0
    }
}

record!(LabelStat {
    before: is_sum,
    count: is_count,
    score
});

/// Single precision, as in the authors' program: whether one mean exceeds another can hang on
/// the last bit.
#[inline]
fn mean(sum: f64, n: f64) -> f32 {
    if n > 0.0 {
        sum as f32 / n as f32
    } else {
        0.0
    }
}

/// A node: a leaf, or internal with a regressor.
///
/// What every example on its way down reads or writes fills the first cache line; the second is
/// for leaves and for the upkeep of the structure.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// Where scores below 0 go; none at a leaf.
    pub left: NodeId,
    /// Where other scores go.
    pub right: NodeId,
    /// The node above; none at the root.
    pub parent: NodeId,
    /// Number of the regressor of an internal node.
    pub regressor: u32,
    /// Per label.
    pub labels: Table<LabelStat>,
    /// l of a leaf, n of an internal node, over all labels.
    pub count: f64,
    /// Sum of all scores.
    pub score: f64,
    /// C: size of the smallest leaf below; of a leaf, its own.
    pub size: f64,
    /// Arrivals of `majority`.
    pub majority_arrivals: f64,
    /// The label with most arrivals; of equals, the first to get there. A new child has its
    /// parent's. Follows the arrivals of a leaf only.
    pub majority: u32,
    /// How often Swap took the node to serve elsewhere.
    pub recycled: u32,
}

record!(Node {
    left,
    right,
    parent,
    regressor,
    labels,
    count: is_count,
    score,
    size: is_count,
    majority_arrivals: is_count,
    majority,
    recycled,
});

/// The sum of counts, which is the same in whatever order a table has them.
pub fn sum(counts: impl Iterator<Item = f64> + Clone) -> f64 {
    /// Up to here sums of whole numbers are exact.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let (mut sum, mut are_whole) = (0.0, true);
    for n in counts.clone() {
        sum += n;
        are_whole &= (n as u64) as f64 == n;
    }
    if are_whole && sum <= MOST {
        return sum;
    }
    let mut counts: Vec<f64> = counts.collect();
    counts.sort_unstable_by(f64::total_cmp);
    counts.iter().sum()
}

impl Node {
    /// The paper's `SetNode`: a leaf that has seen nothing.
    pub fn new() -> Self {
        Self {
            regressor: u32::MAX,
            ..Self::default()
        }
    }

    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.left == NodeId::NONE
    }

    /// E: mean score over all trainings.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// Labels and their arrivals, in an arbitrary order.
    #[inline]
    pub fn label_arrivals(&self) -> impl Iterator<Item = (u32, f64)> + Clone + '_ {
        let labels = self.labels.iter();
        labels.map(|(label, stat)| (label, stat.arrivals()))
    }

    /// Arrivals of all labels since the node came to its place.
    pub fn arrivals(&self) -> f64 {
        sum(self.label_arrivals().map(|(_, n)| n))
    }

    /// Counts an arrival of `label` at a leaf.
    pub fn count(&mut self, label: u32, importance: f64) {
        let stat = self.labels.entry(label);
        stat.count.0 += importance;
        self.count += importance;
        if stat.count.0 > self.majority_arrivals {
            self.majority = label;
            self.majority_arrivals = stat.count.0;
        }
    }

    /// Makes a leaf internal: from now on trainings are counted.
    pub fn become_internal(&mut self, [left, right]: [NodeId; 2], regressor: u32) {
        self.left = left;
        self.right = right;
        self.regressor = regressor;
        for stat in self.labels.values_mut() {
            stat.before = stat.count.0 as f32;
            stat.count.0 = 0.0;
        }
        self.count = 0.0;
    }

    /// Adds a training and its score to the means of a label, given by its place in the table,
    /// and to the mean of all.
    #[inline]
    pub fn add_score(&mut self, place: usize, score: f64, importance: f64) {
        let stat = self.labels.at_mut(place);
        stat.score.0 += importance * score;
        stat.count.0 += importance;
        self.score += importance * score;
        self.count += importance;
    }

    /// The child that a score leads to: zero goes right.
    #[inline]
    pub fn child(&self, score: f32) -> NodeId {
        if score < 0.0 {
            self.left
        } else {
            self.right
        }
    }
}
