//! The interface of the five strategies for finding a split, and what they find.

use super::columns::Columns;
use super::node::Node;
use super::rule::Subset;

/// A way to find the best split of a node by a column. All of them find the same splits, scores
/// aside that are sums in another order; they differ in which columns they take and in their cost.
pub trait SplitStrategy {
    /// Appends to `found` the best split of `node` by each of the columns `wanted`, where one is
    /// better than none.
    fn best_splits(&mut self, node: &Node, columns: &Columns, wanted: &[u32], found: &mut Found);
}

/// Columns, each with the best split by it.
pub type Found = Vec<(u32, ColumnSplit)>;

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
    score: f64,
    tolerance: f64,
    /// The cut, if any is better than none.
    pub cut: Option<Cut>,
}

impl BestCut {
    /// No cut yet: the first has to be better than not splitting `node`.
    pub fn new(node: &Node) -> Self {
        Self {
            score: node.score(),
            tolerance: node.tolerance(),
            cut: None,
        }
    }

    #[inline]
    pub fn offer(
        &mut self,
        score: f64,
        left_weight: f64,
        last_left: u32,
        first_right: Option<u32>,
        missing_left: Option<bool>,
    ) {
        if score > self.score + self.tolerance {
            self.score = score;
            self.cut = Some(Cut {
                score,
                last_left,
                first_right,
                missing_left,
                left_weight,
            });
        }
    }
}
