//! A learned tree, as prediction traverses it.

use super::columns::Columns;
use super::leaf::Leaves;
use super::split::{Rule, Split};
use crate::alloc::push;
use crate::file::is_count;
use crate::record;

/// A node: the split, or the number of the leaf.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeNode {
    /// Column of X that decides; at a leaf its number.
    pub feature: u32,
    /// Values up to it go left.
    pub threshold: f32,
    /// The left child, the right one is next to it; 0 at a leaf.
    pub left: u32,
    pub missing_left: bool,
    /// Which of the tree's sets decides, if the feature is categorical.
    pub set: Option<u32>,
}

record!(TreeNode {
    feature,
    threshold: is_value,
    left,
    missing_left,
    set
});

impl TreeNode {
    pub fn is_leaf(&self) -> bool {
        self.left == 0
    }
}

/// What is known of a node beside its split.
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

record!(CategorySet { values: are_values });

/// Whether it is a value of a column, or beyond all of them.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_value(value: &f32) -> bool {
    !value.is_nan()
}

fn are_values(values: &impl AsRef<[f32]>) -> bool {
    values.as_ref().iter().all(is_value)
}

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
    /// The node of each leaf.
    pub fn nodes_of_leaves(&self) -> Vec<u32> {
        let mut of_leaves = vec![0; self.leaves.count()];
        for (id, node) in (0..).zip(&self.nodes) {
            if node.is_leaf() {
                of_leaves[node.feature as usize] = id;
            }
        }
        of_leaves
    }

    /// Adds a node that `split` divides, by values and no longer by codes.
    pub fn push_split(&mut self, columns: &Columns, split: &Split, left: u32) {
        let column = &columns.columns[split.column as usize];
        let mut node = TreeNode {
            feature: column.feature,
            left,
            ..TreeNode::default()
        };
        match &split.rule {
            Rule::Threshold(cut) => {
                (node.threshold, node.missing_left) = (cut.value, cut.missing_left);
            }
            Rule::Subset(subset) => {
                let missing = column.coding.missing_code();
                node.missing_left = missing.is_some_and(|code| subset.contains(code));
                node.set = Some(self.sets.len() as u32);
                let codes = (0..).zip(&column.coding.spans);
                let of_set = codes.filter(|(code, _)| subset.contains(*code));
                let values = of_set.map(|(_, &(value, _))| value).collect();
                self.sets.push(CategorySet { values });
            }
        }
        push(&mut self.nodes, node);
    }

    /// Whether a traversal stays within the arrays and comes to an end, and all numbers are
    /// such as learning makes them.
    pub fn is_sound(&self, n_classes: usize, n_features: usize) -> bool {
        let n_leaves = self.leaves.count();
        let node_is_sound = |(at, node): (usize, &TreeNode)| {
            if node.is_leaf() {
                return (node.feature as usize) < n_leaves && node.set.is_none();
            }
            (node.feature as usize) < n_features
                && node.left as usize > at
                && (node.left as usize) < self.nodes.len() - 1
                && node.set.is_none_or(|set| (set as usize) < self.sets.len())
        };
        !self.nodes.is_empty()
            && self.nodes.len() == self.statistics.len()
            && self.statistics[0].weight > 0.0
            && self.leaves.are_sound(n_classes)
            && self.nodes.iter().enumerate().all(node_is_sound)
    }
}
