//! A learned tree, as prediction traverses it.

use super::columns::Columns;
use super::leaf::Leaves;
use super::rule::{Rule, Subset};
use crate::file::is_count;
use crate::record;

/// A node: the split, or the number of the leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeNode {
    /// Column of X that decides; at a leaf its number.
    pub feature: u32,
    /// Values up to it go left.
    pub threshold: f32,
    /// The left child, the right one is next to it; 0 at a leaf.
    pub left: u32,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// Which of the tree's sets decides, if the feature is categorical.
    pub set: Option<u32>,
}

record!(TreeNode {
    feature,
    threshold,
    left,
    missing_left,
    set
});

impl TreeNode {
    /// Whether it is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.left == 0
    }
}

/// Statistics of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// Rows it was learned from.
    pub n_rows: u32,
    /// Their share of the weight.
    pub weight: f64,
    /// By how much its split raised the score.
    pub gain: f64,
    /// Entropy of the classes' weights, in nats.
    pub entropy: f64,
}

/// The categories that go left of a split.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CategorySet {
    /// Their values, rising.
    pub values: Vec<f32>,
}

record!(CategorySet { values });

record!(Statistics {
    n_rows,
    weight: is_count,
    gain: is_count,
    entropy: is_count
});

/// A tree and the votes of its leaves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// The root first, every parent before its children.
    pub nodes: Vec<TreeNode>,
    /// As many.
    pub statistics: Vec<Statistics>,
    /// For the splits of categorical features.
    pub sets: Vec<CategorySet>,
    /// By number.
    pub leaves: Leaves,
}

record!(Tree {
    nodes,
    statistics,
    sets,
    leaves
});

impl Tree {
    /// Number of the leaf that each of several examples is routed to. Side by side, as the path
    /// of one is a chain of waits for memory.
    #[inline]
    pub fn leaves_of<const N: usize>(&self, values: [&[f32]; N]) -> [u32; N] {
        let mut at = [0; N];
        loop {
            let mut goes_on = false;
            for (at, values) in at.iter_mut().zip(values) {
                let node = &self.nodes[*at];
                let is_inner = node.left != 0;
                goes_on |= is_inner;
                // No branch on whether it is a leaf, which could not be predicted: a leaf reads any
                // value and stays.
                let value = values[if is_inner { node.feature as usize } else { 0 }];
                let left = match node.set {
                    Some(set) if is_inner => self.is_in_set(node, set, value),
                    _ => (value <= node.threshold) | (value.is_nan() & node.missing_left),
                };
                let next = node.left as usize + usize::from(!left);
                *at = if is_inner { next } else { *at };
            }
            if !goes_on {
                return at.map(|at| self.nodes[at].feature);
            }
        }
    }

    fn is_in_set(&self, node: &TreeNode, set: u32, value: f32) -> bool {
        if value.is_nan() {
            return node.missing_left;
        }
        let set = &self.sets[set as usize].values;
        set.binary_search_by(|other| other.total_cmp(&value))
            .is_ok()
    }

    /// Adds a node that a rule over `column` splits, as values and no longer as codes.
    pub fn push_split(&mut self, columns: &Columns, column: u32, rule: &Rule, left: u32) {
        let column = &columns.columns[column as usize];
        let (threshold, missing_left, set) = match rule {
            Rule::Threshold {
                threshold,
                missing_left,
                ..
            } => (*threshold, *missing_left, None),
            Rule::Subset(subset) => {
                let values = values_of(subset, &column.coding.spans);
                self.sets.push(CategorySet { values });
                let missing = column.coding.missing_code();
                let missing_left = missing.is_some_and(|code| subset.contains(code));
                (0.0, missing_left, Some(self.sets.len() as u32 - 1))
            }
        };
        self.nodes.push(TreeNode {
            feature: column.feature,
            threshold,
            left,
            missing_left,
            set,
        });
    }

    /// Adds a leaf.
    pub fn push_leaf(&mut self, number: u32) {
        self.nodes.push(TreeNode {
            feature: number,
            threshold: 0.0,
            left: 0,
            missing_left: false,
            set: None,
        });
    }

    /// Whether a traversal stays within the arrays and comes to an end, and all numbers are
    /// such as learning makes them.
    pub fn is_sound(&self, n_classes: usize, n_features: usize) -> bool {
        let n_leaves = self.leaves.count();
        let node_is_sound = |(at, node): (usize, &TreeNode)| {
            if node.is_leaf() {
                return (node.feature as usize) < n_leaves;
            }
            (node.feature as usize) < n_features
                && node.left as usize > at
                && (node.left as usize) < self.nodes.len() - 1
                && node.set.is_none_or(|set| (set as usize) < self.sets.len())
                && !node.threshold.is_nan()
        };
        !self.nodes.is_empty()
            && self.nodes.len() == self.statistics.len()
            && self.statistics[0].weight > 0.0
            && self.leaves.are_sound(n_classes)
            && self.nodes.iter().enumerate().all(node_is_sound)
    }
}

/// The values of the codes in `subset`.
fn values_of(subset: &Subset, spans: &[(f32, f32)]) -> Vec<f32> {
    let codes = 0..spans.len() as u32;
    codes
        .filter(|&code| subset.contains(code))
        .map(|code| spans[code as usize].0)
        .collect()
}
