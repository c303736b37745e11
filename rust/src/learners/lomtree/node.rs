//! What a node knows: per label how many examples came and what scores they got (l, n, m and e
//! of the paper), and their sums over all labels.

use crate::error::Result;
use crate::file::{check_column, is_count, Bundle, Record};
use crate::linear::Table;
use crate::record;
use crate::tree::NodeId;

/// What a node knows of one label. A leaf counts arrivals, an internal node trainings, in the
/// same place: the table of all labels at all nodes is the largest part of the tree that every
/// example has to touch.
///
/// Packed to multiples of 4 bytes, so that key and value take 24 and not 32.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, packed(4))]
pub struct LabelStat {
    /// Arrivals from the time as a leaf; 0 at a leaf.
    pub before: f32,
    /// l of a leaf: arrivals; n of an internal node: trainings.
    pub count: f64,
    /// m: sum of scores.
    pub score: f64,
}

impl LabelStat {
    /// e: mean score.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// l: arrivals, at leaves and internal nodes.
    pub fn arrivals(&self) -> f64 {
        f64::from(self.before) + self.count
    }
}

/// By hand, as there are no references to the fields of a packed struct.
impl Record for LabelStat {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        let before: Vec<f32> = records.clone().map(|stat| stat.before).collect();
        let count: Vec<f64> = records.clone().map(|stat| stat.count).collect();
        let score: Vec<f64> = records.map(|stat| stat.score).collect();
        bundle.put(&format!("{name}.before"), before);
        bundle.put(&format!("{name}.count"), count);
        bundle.put(&format!("{name}.score"), score);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let before = f32::take(n, &format!("{name}.before"), bundle)?;
        let n = Some(before.len());
        let count = f64::take(n, &format!("{name}.count"), bundle)?;
        let score = f64::take(n, &format!("{name}.score"), bundle)?;
        check_column(&before, |&n| is_count(&f64::from(n)), name, bundle)?;
        check_column(&count, is_count, name, bundle)?;
        let sums = count.into_iter().zip(score);
        let stats = before.into_iter().zip(sums);
        Ok(stats
            .map(|(before, (count, score))| Self {
                before,
                count,
                score,
            })
            .collect())
    }
}

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
#[derive(Debug, Clone)]
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

impl Node {
    /// The paper's `SetNode`: a leaf that has seen nothing.
    pub fn new() -> Self {
        Self {
            parent: NodeId::NONE,
            left: NodeId::NONE,
            right: NodeId::NONE,
            regressor: u32::MAX,
            recycled: 0,
            majority: 0,
            majority_arrivals: 0.0,
            count: 0.0,
            score: 0.0,
            size: 0.0,
            labels: Table::new(),
        }
    }

    /// Whether it has no children.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.left == NodeId::NONE
    }

    /// E: mean score over all trainings.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// Arrivals of all labels since the node came to its place.
    pub fn arrivals(&self) -> f64 {
        let mut arrivals: Vec<f64> = self.labels.iter().map(|(_, s)| s.arrivals()).collect();
        // One order of summation, whatever order the table has.
        arrivals.sort_unstable_by(f64::total_cmp);
        arrivals.iter().sum()
    }

    /// Counts an arrival of `label` at a leaf.
    pub fn count(&mut self, label: u32, importance: f64) {
        let stat = self.labels.entry(label);
        stat.count += importance;
        self.count += importance;
        if stat.count > self.majority_arrivals {
            self.majority = label;
            self.majority_arrivals = stat.count;
        }
    }

    /// Makes a leaf internal: from now on trainings are counted.
    pub fn become_internal(&mut self, [left, right]: [NodeId; 2], regressor: u32) {
        self.left = left;
        self.right = right;
        self.regressor = regressor;
        for stat in self.labels.values_mut() {
            stat.before = stat.count as f32;
            stat.count = 0.0;
        }
        self.count = 0.0;
    }

    /// Takes back the arrival that made the node split: it will be counted as a training.
    pub fn uncount(&mut self, label: u32, importance: f64) {
        self.labels.entry(label).before -= importance as f32;
    }

    /// Adds a training and its score to the means of a label, given by its place in the table,
    /// and to the mean of all.
    #[inline]
    pub fn add_score(&mut self, place: usize, score: f64, importance: f64) {
        let stat = self.labels.at_mut(place);
        stat.score += importance * score;
        stat.count += importance;
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

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}
