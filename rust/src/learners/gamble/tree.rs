//! A learned tree: its nodes, and the votes of its leaves.
//!
//! GAMBLE's votes come from the weights of the classes in a leaf, steps (b) and (c) of Algorithm 2
//! ([`push_votes`]).
//!
//! SAMME.Discrete (Zhu, Rosset, Zou & Hastie, "Multi-class AdaBoost", 2009) has the same
//! loss, codes and trees, but a leaf votes for one class and all leaves of a tree alike
//! ([`push_samme_votes`]). A tree's answers are codes of classes, 1 for the one and -1/(K-1) for the
//! others. Its weight in the committee is beta = (K-1)^2 / K alpha, alpha = log((1 - e) / e) + log(K-1),
//! where e is the share of the weight that it answers wrongly. With this beta the weights
//! change as in GAMBLE, exp(-(1/K) y.f): those of wrong answers rise by e^alpha against
//! those of right ones.

use super::columns::Columns;
use super::node::{Rule, Split};
use crate::file::{is_count, Report};
use crate::record;

/// What the leaves of a tree add to the scores of the classes. Classes that no row of a
/// leaf had all get the same, so a leaf holds those present and one number more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaves {
    /// Where the classes of each leaf begin, and where the last leaf's end.
    pub starts: Vec<u32>,
    /// Classes present, rising within a leaf.
    pub classes: Vec<u32>,
    pub votes: Vec<f32>,
    /// The vote for each of the other classes, by leaf.
    pub others: Vec<f32>,
}

record!(Leaves {
    starts,
    classes,
    votes,
    others
});

/// No vote is larger: that of an absent class is its K (K - 1), at the largest learning rate.
const LARGEST_VOTE: f32 = 1e24;

impl Leaves {
    pub fn new() -> Self {
        Self {
            starts: vec![0],
            ..Self::default()
        }
    }

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

    /// The classes that leaf `leaf` lists and its votes for them.
    #[inline]
    pub fn listed(&self, leaf: usize) -> (&[u32], &[f32]) {
        let span = self.starts[leaf] as usize..self.starts[leaf + 1] as usize;
        (&self.classes[span.clone()], &self.votes[span])
    }

    /// Whether the leaves share out all classes listed, which rise within a leaf and are below
    /// `n_classes`, and all votes are such as there can be.
    pub fn are_sound(&self, n_classes: usize) -> bool {
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

/// r of a class that has the share `share` of a leaf's weight.
///
/// The weighted mean of the encoded labels is g = (K share - 1) / (K - 1), and r = K (K-1)
/// g / ((K-2) g + 1); together they need no division by K - 1.
pub fn response(share: f64, n_classes: f64) -> f64 {
    let k = n_classes;
    k * (k - 1.0) * (k * share - 1.0) / (k * (k - 2.0) * share + 1.0)
}

/// Appends a leaf in which the classes of `weights` (rising) have these weights, and the
/// others none: f = rate (r - mean of r).
pub fn push_votes(
    leaves: &mut Leaves,
    weights: &[(u32, f64)],
    n_classes: usize,
    clip: bool,
    rate: f64,
) {
    let k = n_classes as f64;
    let least = if clip { -k } else { f64::NEG_INFINITY };
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let of = |share: f64| response(share, k).max(least);
    let absent = of(0.0);
    let present: f64 = weights.iter().map(|(_, weight)| of(weight / all)).sum();
    let mean = (present + (k - weights.len() as f64) * absent) / k;
    let votes = weights
        .iter()
        .map(|&(class, weight)| (class, rate * (of(weight / all) - mean)));
    leaves.push(votes, rate * (absent - mean));
}

/// The least share of wrong answers that a tree's weight is worked out from: one without
/// any would weigh infinitely much.
const MIN_SHARE_WRONG: f64 = 1e-10;

/// The class of the most weight, of equals the first.
pub fn heaviest(by_class: &[(u32, f64)]) -> u32 {
    let mut best = (0, f64::NEG_INFINITY);
    for &(class, weight) in by_class {
        if weight > best.1 {
            best = (class, weight);
        }
    }
    best.0
}

/// Share of the weight of all rows that their leaves' choices are wrong for. Of each leaf the rows
/// that it was grown from and the others.
pub fn share_wrong<'a>(
    choices: &[u32],
    leaves: impl Iterator<Item = (&'a [u32], &'a [u32])>,
    labels: &[u32],
    weights: &[f64],
) -> f64 {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (choice, (sampled, others)) in choices.iter().zip(leaves) {
        for &row in sampled.iter().chain(others) {
            let weight = weights[row as usize];
            all += weight;
            if labels[row as usize] != *choice {
                wrong += weight;
            }
        }
    }
    wrong / all
}

/// beta; none where the tree is no better than chance.
pub fn samme_vote(wrong: f64, n_classes: usize) -> Option<f64> {
    let others = n_classes as f64 - 1.0;
    let wrong = wrong.max(MIN_SHARE_WRONG);
    let alpha = ((1.0 - wrong) / wrong).ln() + others.ln();
    (alpha > 1e-9).then(|| others * others / (others + 1.0) * alpha)
}

/// Appends a leaf for each choice.
pub fn push_samme_votes(leaves: &mut Leaves, choices: &[u32], vote: f64, n_classes: usize) {
    for &choice in choices {
        leaves.push([(choice, vote)], -vote / (n_classes as f64 - 1.0));
    }
}

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
        self.nodes.push(node);
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

impl Tree {
    /// The nodes in their order: the root is node 0, and every parent stands before its children.
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `parent` | the node above, -1 at the root |
    /// | `children` | left and right child, -1 at a leaf |
    /// | `depth` | steps from the root |
    /// | `n_examples` | rows that the tree was grown from |
    /// | `weight` | their weight, as a share of all rows' that the tree was grown from |
    /// | `label_entropy` | entropy of the classes' weights, in nats |
    /// | `feature` | column of X that decides, -1 at a leaf |
    /// | `threshold` | values up to it go left; NaN at leaves and where categories decide |
    /// | `missing_left` | whether missing values go left |
    /// | `gain` | by how much the split raised sum_k W_k^2 / W, in shares of all weight |
    /// | `leaf` | number of the leaf, -1 at an internal node |
    /// | `category_starts`, `categories` | node by node the categories that go left |
    /// | `vote_starts`, `vote_classes`, `votes` | leaf by leaf the classes listed and its votes f for them |
    /// | `other_votes` | by leaf its vote for every other class |
    pub(super) fn report(&self) -> Report {
        let (nodes, statistics, leaves) = (&self.nodes, &self.statistics, &self.leaves);
        let all = statistics.first().map_or(1.0, |root| root.weight);
        let (mut parent, mut depth) = (vec![-1; nodes.len()], vec![0u32; nodes.len()]);
        let mut children = Vec::<i32>::new();
        let (mut starts, mut categories) = (vec![0u32], Vec::<f32>::new());
        for (at, node) in nodes.iter().enumerate() {
            if node.is_leaf() {
                children.extend([-1, -1]);
            } else {
                for child in [node.left, node.left + 1] {
                    children.push(child as i32);
                    parent[child as usize] = at as i32;
                    depth[child as usize] = depth[at] + 1;
                }
            }
            if let Some(set) = node.set {
                categories.extend(&self.sets[set as usize].values);
            }
            starts.push(categories.len() as u32);
        }
        // An internal node has the number of a column there, a leaf its own.
        let number = |node: &TreeNode, wanted: bool| if wanted { node.feature as i32 } else { -1 };
        let feature = nodes.iter().map(|node| number(node, !node.is_leaf()));
        let leaf = nodes.iter().map(|node| number(node, node.is_leaf()));
        let threshold = nodes.iter().map(|node| match node.set {
            None if !node.is_leaf() => node.threshold,
            _ => f32::NAN,
        });
        let mut report = Report::new();
        report.column("parent", parent);
        report.matrix("children", children, 2);
        report.column("depth", depth);
        report.column("n_examples", statistics.iter().map(|node| node.n_rows));
        report.column("weight", statistics.iter().map(|node| node.weight / all));
        report.column("label_entropy", statistics.iter().map(|node| node.entropy));
        report.column("feature", feature);
        report.column("threshold", threshold);
        report.column(
            "missing_left",
            nodes.iter().map(|node| u8::from(node.missing_left)),
        );
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
