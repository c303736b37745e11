//! A trained tree: its nodes and the votes of its leaves.
//!
//! GAMBLE's votes come from the weights of the classes in a leaf, steps (b) and (c) of Algorithm 2
//! ([`push_votes`]).
//!
//! SAMME.Discrete (Zhu, Rosset, Zou & Hastie, "Multi-class AdaBoost", 2009) has the same loss,
//! codes and trees, but a leaf votes for one class, and all leaves of a tree have equal votes
//! ([`samme_vote`]). A tree's outputs are codes of classes: 1 for the chosen class and
//! -1/(K-1) for the others. Its weight in the committee is beta = (K-1)^2 / K alpha, with alpha =
//! log((1 - e) / e) + log(K-1) and the weighted error e. With this beta the weights change as in
//! GAMBLE, by exp(-(1/K) y.f): those of misclassified rows rise by e^alpha relative to the others.
//!
//! SAMME.R (Algorithm 4 there) gives the class k the vote h_k = (K-1) (ln p_k - mean of ln p), with
//! p_k its share of a leaf's weight ([`log_share`]). The weights change by exp(-(K-1)/K y.ln p), which
//! is exp(-(1/K) y.h).

use super::columns::Columns;
use super::node::{Rule, Split};
use crate::file::{is_count, Report};
use crate::record;
use crate::tree::tree_report;

/// Votes that the leaves of a tree add to the scores of the classes. All classes without rows in a
/// leaf get the same vote, so a leaf stores the votes of the classes present and one other vote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaves {
    /// Start of each leaf's classes, and the end of the last leaf's.
    pub starts: Vec<u32>,
    /// Classes present, in rising order within a leaf.
    pub classes: Vec<u32>,
    pub votes: Vec<f32>,
    /// Vote of each leaf for every other class.
    pub others: Vec<f32>,
}

record!(Leaves {
    starts,
    classes,
    votes,
    others
});

/// Bound on the votes: that for an absent class is K (K - 1) at most, at the largest learning rate.
const LARGEST_VOTE: f32 = 1e24;

impl Leaves {
    pub fn new() -> Self {
        Self {
            starts: vec![0],
            ..Self::default()
        }
    }

    /// Appends a leaf with the `votes` for the classes present, in rising order.
    pub fn push(&mut self, votes: impl IntoIterator<Item = (u32, f64)>, others: f64) {
        for (class, vote) in votes {
            self.classes.push(class);
            self.votes.push(vote as f32);
        }
        self.starts.push(self.classes.len() as u32);
        self.others.push(others as f32);
    }

    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// Returns the classes present in leaf `leaf`, with its votes for them.
    pub fn listed(&self, leaf: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let span = self.starts[leaf] as usize..self.starts[leaf + 1] as usize;
        let classes = self.classes[span.clone()].iter().copied();
        classes.zip(self.votes[span].iter().copied())
    }

    /// Returns the vote of leaf `leaf` for `class`.
    pub fn vote(&self, leaf: usize, class: u32) -> f32 {
        let span = self.starts[leaf] as usize..self.starts[leaf + 1] as usize;
        let found = self.classes[span.clone()].binary_search(&class);
        found.map_or(self.others[leaf], |at| self.votes[span.start + at])
    }

    /// Returns true if the arrays match, the classes of each leaf rise and are below `n_classes`,
    /// and all votes are within their bound.
    fn are_sound(&self, n_classes: usize) -> bool {
        let is_span = |span: &[u32]| {
            let classes = self.classes.get(span[0] as usize..span[1] as usize);
            let is_class = |&class: &u32| (class as usize) < n_classes;
            classes.is_some_and(|classes| {
                classes.is_sorted_by(|a, b| a < b) && classes.last().is_none_or(is_class)
            })
        };
        let mut votes = self.votes.iter().chain(&self.others);
        self.starts.len() == self.count() + 1
            && self.starts[0] == 0
            && self.starts[self.count()] as usize == self.classes.len()
            && self.votes.len() == self.classes.len()
            && self.starts.windows(2).all(is_span)
            && votes.all(|vote| vote.abs() <= LARGEST_VOTE)
    }
}

/// Returns r of a class that has the share `share` of a leaf's weight.
///
/// The weighted mean of the encoded labels is g = (K share - 1) / (K - 1), and r = K (K-1)
/// g / ((K-2) g + 1). Combining the two avoids the division by K - 1. If `clip` is true, r is bounded
/// below by -K.
pub fn response(share: f64, n_classes: f64, clip: bool) -> f64 {
    let k = n_classes;
    let r = k * (k - 1.0) * (k * share - 1.0) / (k * (k - 2.0) * share + 1.0);
    r.max(if clip { -k } else { f64::NEG_INFINITY })
}

/// Returns the vote of SAMME.R before centering for a class that has the share `share` of a leaf's
/// weight. The paper does not treat shares of 0. Here, as in scikit-learn, shares are at least the
/// rounding error of double precision.
pub fn log_share(share: f64, n_classes: f64) -> f64 {
    (n_classes - 1.0) * share.max(f64::EPSILON).ln()
}

/// Appends a leaf with the votes f = rate (r - mean of r), where r is the `response` to the share of
/// a class. `weights` has the classes present, in rising order, with their weights.
pub fn push_votes(
    leaves: &mut Leaves,
    weights: &[(u32, f64)],
    n_classes: usize,
    response: impl Fn(f64) -> f64,
    rate: f64,
) {
    let k = n_classes as f64;
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let absent = response(0.0);
    let present: f64 = weights
        .iter()
        .map(|(_, weight)| response(weight / all))
        .sum();
    let mean = (present + (k - weights.len() as f64) * absent) / k;
    let vote = |&(class, weight): &(u32, f64)| (class, rate * (response(weight / all) - mean));
    leaves.push(weights.iter().map(vote), rate * (absent - mean));
}

/// Smallest error from which a tree's weight is computed, as the weight of a tree without errors
/// would be infinite.
const MIN_ERROR: f64 = 1e-10;

/// Rows that reach a leaf.
#[derive(Debug, Clone, Copy)]
pub struct LeafRows<'a> {
    /// Rows from which the tree was grown.
    pub sampled: &'a [u32],
    pub others: &'a [u32],
}

/// Returns the weighted error on all rows. `choices` has the class for which each leaf votes.
pub fn weighted_error<'a>(
    choices: &[u32],
    leaves: impl Iterator<Item = LeafRows<'a>>,
    labels: &[u32],
    weights: &[f64],
) -> f64 {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (choice, rows) in choices.iter().zip(leaves) {
        for &row in rows.sampled.iter().chain(rows.others) {
            let weight = weights[row as usize];
            all += weight;
            if labels[row as usize] != *choice {
                wrong += weight;
            }
        }
    }
    wrong / all
}

/// Returns beta of a tree, or `None` if the tree is no better than chance.
pub fn samme_vote(error: f64, n_classes: usize) -> Option<f64> {
    let others = n_classes as f64 - 1.0;
    let error = error.max(MIN_ERROR);
    let alpha = ((1.0 - error) / error).ln() + others.ln();
    (alpha > 1e-9).then(|| others * others / (others + 1.0) * alpha)
}

/// A node of a trained tree: its split, or the number of its leaf.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeNode {
    /// Column of X that decides; in a leaf its number.
    pub feature: u32,
    /// Largest value that goes left.
    pub threshold: f32,
    /// The left child, which the right child follows; 0 in a leaf.
    pub left: u32,
    pub missing_left: bool,
    /// Set of the tree that decides if the feature is categorical.
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

/// Statistics of a node, which prediction does not need.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// Number of rows from which the tree was grown.
    pub n_rows: u32,
    /// Weight of these rows.
    pub weight: f64,
    /// Gain of the split; 0 in a leaf.
    pub gain: f64,
    /// Entropy of the classes' weights, in nats.
    pub entropy: f64,
}

record!(Statistics {
    n_rows,
    weight: is_count,
    gain: is_count,
    entropy: is_count
});

/// Categories that go left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CategorySet {
    /// Values of the categories, in rising order.
    pub values: Vec<f32>,
}

record!(CategorySet { values: are_values });

/// Returns true for the value of a column, and for a bound beyond all values.
fn is_value(value: &f32) -> bool {
    !value.is_nan()
}

fn are_values(values: &impl AsRef<[f32]>) -> bool {
    values.as_ref().iter().all(is_value)
}

/// A trained tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// Nodes, the root first and every parent before its children.
    pub nodes: Vec<TreeNode>,
    /// Statistics of each node.
    pub statistics: Vec<Statistics>,
    /// Sets for the splits by categorical features.
    pub sets: Vec<CategorySet>,
    pub leaves: Leaves,
}

record!(Tree {
    nodes,
    statistics,
    sets,
    leaves
});

impl Tree {
    /// Appends a node with the split, which is converted from codes to values.
    pub fn push_split(&mut self, columns: &Columns, split: &Split, left: u32) {
        let column = &columns.columns[split.column as usize];
        let mut node = TreeNode {
            feature: column.feature,
            left,
            ..TreeNode::default()
        };
        match &split.rule {
            &Rule::Threshold {
                value,
                missing_left,
                ..
            } => (node.threshold, node.missing_left) = (value, missing_left),
            Rule::Subset(left) => {
                let spans = &column.coding.spans;
                // The last code, if it has no value, is that of missing values.
                let values = left.iter().filter_map(|&code| spans.get(code as usize));
                let values: Vec<f32> = values.map(|&(value, _)| value).collect();
                node.missing_left = values.len() < left.len();
                node.set = Some(self.sets.len() as u32);
                self.sets.push(CategorySet { values });
            }
        }
        self.nodes.push(node);
    }

    /// Returns true if a row with this `value` of the feature goes left at the internal `node`.
    pub fn goes_left(&self, node: &TreeNode, value: f32) -> bool {
        if value.is_nan() {
            return node.missing_left;
        }
        node.set.map_or(value <= node.threshold, |set| {
            let values = &self.sets[set as usize].values;
            values.binary_search_by(|v| v.total_cmp(&value)).is_ok()
        })
    }

    /// Returns true if a traversal stays within the arrays and ends, and all numbers are in the
    /// range of trained trees.
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
        let mut n_parents = vec![0_u32; self.nodes.len() + 1];
        for node in self.nodes.iter().filter(|node| !node.is_leaf()) {
            let left = (node.left as usize).min(self.nodes.len() - 1);
            n_parents[left] += 1;
            n_parents[left + 1] += 1;
        }
        !self.nodes.is_empty()
            && n_parents[1..self.nodes.len()].iter().all(|&n| n == 1)
            && self.nodes.len() == self.statistics.len()
            && self.statistics[0].weight > 0.0
            && self.leaves.are_sound(n_classes)
            && self.nodes.iter().enumerate().all(node_is_sound)
    }

    /// Returns the nodes in their order: the root is node 0, and every parent precedes its
    /// children.
    ///
    /// | column | contents |
    /// |---|---|
    /// | `parent` | the node above, -1 at the root |
    /// | `children` | left and right child, -1 at a leaf |
    /// | `depth` | steps from the root |
    /// | `n_examples` | rows from which the tree was grown |
    /// | `weight` | their weight, as a share of all rows from which the tree was grown |
    /// | `label_entropy` | entropy of the classes' weights, in nats |
    /// | `feature` | column of X that decides, -1 at a leaf |
    /// | `threshold` | largest value that goes left; NaN at leaves and for categories |
    /// | `missing_left` | 1 if missing values go left |
    /// | `gain` | increase of sum_k W_k^2 / W by the split, as a share of all weight |
    /// | `leaf` | number of the leaf, -1 at an internal node |
    /// | `category_starts`, `categories` | node by node the categories that go left |
    /// | `vote_starts`, `vote_classes`, `votes` | leaf by leaf the classes present and the votes f for them |
    /// | `other_votes` | by leaf the vote for every other class |
    pub fn report(&self) -> Report {
        let (nodes, statistics, leaves) = (&self.nodes, &self.statistics, &self.leaves);
        let all = statistics.first().map_or(1.0, |root| root.weight);
        let (mut parent, mut children) = (vec![-1; nodes.len()], Vec::new());
        let (mut starts, mut categories) = (vec![0u32], Vec::<f32>::new());
        for (at, node) in nodes.iter().enumerate() {
            if node.is_leaf() {
                children.extend([-1, -1]);
            } else {
                for child in [node.left, node.left + 1] {
                    children.push(child as i32);
                    parent[child as usize] = at as i32;
                }
            }
            if let Some(set) = node.set {
                categories.extend(&self.sets[set as usize].values);
            }
            starts.push(categories.len() as u32);
        }
        // `feature` is a column in an internal node and a number in a leaf.
        let number = |node: &TreeNode, exists: bool| if exists { node.feature as i32 } else { -1 };
        let feature = nodes.iter().map(|node| number(node, !node.is_leaf()));
        let leaf = nodes.iter().map(|node| number(node, node.is_leaf()));
        let threshold = nodes.iter().map(|node| match node.set {
            None if !node.is_leaf() => node.threshold,
            _ => f32::NAN,
        });
        let missing_left = nodes.iter().map(|node| u8::from(node.missing_left));
        let mut report = tree_report(&parent, &children, 2);
        report.column("n_examples", statistics.iter().map(|node| node.n_rows));
        report.column("weight", statistics.iter().map(|node| node.weight / all));
        report.column("label_entropy", statistics.iter().map(|node| node.entropy));
        report.column("feature", feature);
        report.column("threshold", threshold);
        report.column("missing_left", missing_left);
        report.column("gain", statistics.iter().map(|node| node.gain / all));
        report.column("leaf", leaf);
        report.column("category_starts", starts);
        report.column("categories", categories);
        report.column("vote_starts", leaves.starts.iter().copied());
        report.column("vote_classes", leaves.classes.iter().copied());
        report.column("votes", leaves.votes.iter().copied());
        report.column("other_votes", leaves.others.iter().copied());
        report
    }
}
