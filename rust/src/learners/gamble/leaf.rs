//! From the weights of the classes in a leaf to the leaf's votes: steps (b) and (c) of
//! Algorithm 2.

use crate::alloc::push;
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
const MOST_VOTES: f32 = 1e24;

impl Leaves {
    pub fn new() -> Self {
        Self {
            starts: vec![0],
            ..Self::default()
        }
    }

    pub fn push(&mut self, votes: impl IntoIterator<Item = (u32, f64)>, others: f64) {
        for (class, vote) in votes {
            push(&mut self.classes, class);
            push(&mut self.votes, vote as f32);
        }
        push(&mut self.starts, self.classes.len() as u32);
        push(&mut self.others, others as f32);
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
            && votes.all(|vote| vote.abs() <= MOST_VOTES)
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
