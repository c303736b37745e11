//! The k best labels of a row.
//!
//! A router's score s read as a logistic model's says that the way it chooses is
//! exp(|s|) times as likely as the other. So a label is judged by the decisions that
//! it goes against: its score is minus the sum of their |s|, the log-odds against
//! it. The predicted label goes against none and has 0.
//!
//! Unlike with whole log-probabilities, whose other terms also count how sure
//! the routers along a label's own way are, the cheapest label below a node is the
//! one that its routers choose. So the search need only go straight down from the
//! cheapest node left, once per label: k (depth + log k) steps at most, however
//! flat the scores.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::tree::{Sign, Walk};

/// What a decision at a score of 0 costs, so that the predicted label is alone in
/// having no cost.
const TINY: f32 = f32::MIN_POSITIVE;

/// A node yet to be gone down from, and what it costs to be there.
#[derive(Debug, Clone, Copy)]
struct Branch {
    cost: f32,
    node: u32,
}

impl Ord for Branch {
    /// The greatest is the cheapest; of equals the higher node. Costs are numbers.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_cost = other.cost.total_cmp(&self.cost);
        by_cost.then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Branch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Branch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Branch {}

/// Room for searches, one after the other.
#[derive(Debug, Default)]
pub(super) struct Search {
    branches: BinaryHeap<Branch>,
    found: Vec<(f32, u32)>,
}

impl Search {
    /// The `k` cheapest labels of the row and their costs, cheapest first, of
    /// equals the lower label.
    pub fn best(&mut self, walk: &Walk<'_>, k: usize) -> &[(f32, u32)] {
        self.branches.clear();
        self.found.clear();
        self.branches.push(Branch { cost: 0.0, node: 0 });
        while self.found.len() < k {
            let Some(Branch { cost, mut node }) = self.branches.pop() else {
                break;
            };
            loop {
                match walk.look(node) {
                    Sign::Terminal(label) => {
                        self.found.push((cost, label));
                        break;
                    }
                    Sign::Router { score, left } => {
                        // What is no number goes right, and counts as 0.
                        let goes_left = score < 0.0;
                        let against = score.abs().max(TINY);
                        self.branches.push(Branch {
                            cost: (cost + against).min(f32::MAX),
                            node: left + u32::from(goes_left),
                        });
                        node = left + u32::from(!goes_left);
                    }
                }
            }
        }
        self.found
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        &self.found
    }
}
