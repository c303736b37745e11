//! Best-first search: the most probable terminals of a row, one after the other.
//!
//! A router's score s, read as a logistic model's, gives the way right the probability
//! 1 / (1 + exp(-s)); a terminal has the product along its way. Of all nodes reached, the most
//! probable is opened next. Where scores are so flat that this would open node after node of the
//! upper levels, the search goes straight down from the most probable nodes instead, once its
//! budget of routers is spent: n terminals cost O(n log K) always, and are the best ones mostly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What stands at a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Junction<R> {
    /// A router.
    Router {
        /// The number of its regressor, or its score for a row: below 0 the way goes left, else
        /// right (what is no number, too).
        router: R,
        /// Left and right.
        children: [u32; 2],
    },
    /// The end of the way, with its number.
    Terminal(u32),
}

/// A node yet to be opened. The least is the cheapest, of equals the one reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    /// Its cost, minus the logarithm of its probability, as bits: in the order of the costs, as
    /// these are not negative.
    cost: u32,
    /// How many were reached before it.
    number: u32,
    node: u32,
}

/// Nodes to open, per label and level, before going straight down. Held out, the right
/// label is among the first 5 as often as without a bound on omniglot (16.1 %), on naics
/// 82.4 % for 82.7; with 2 these are 12.3 and 75.8.
const OPENED_PER_LABEL_AND_LEVEL: usize = 8;

/// A search through the nodes of one row, whose `look` says what stands at a node. Its memory
/// serves one search after the other.
#[derive(Debug, Clone, Default)]
pub struct BestFirst {
    open: BinaryHeap<Reverse<Branch>>,
    n_reached: u32,
    /// Routers that may still be opened before the search goes straight down.
    budget: usize,
    found: Vec<(f32, u32)>,
}

impl BestFirst {
    /// Begins at `root`, with a budget of so many routers.
    pub fn start(&mut self, root: u32, budget: usize) {
        self.open.clear();
        self.n_reached = 0;
        self.budget = budget;
        self.reach(0.0, root);
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.budget == 0
    }

    /// The cost and the number of the next terminal, the most probable first; none where all
    /// that are left cost more than `most`.
    pub fn next(&mut self, most: f32, look: &impl Fn(u32) -> Junction<f32>) -> Option<(f32, u32)> {
        loop {
            let Reverse(Branch { cost, node, .. }) = self.open.pop()?;
            let cost = f32::from_bits(cost);
            if cost > most {
                return None;
            }
            if self.is_spent() {
                let end = descend(cost, node, look, |cost, node| self.reach(cost, node));
                return Some(end).filter(|&(cost, _)| cost <= most);
            }
            match look(node) {
                Junction::Terminal(number) => return Some((cost, number)),
                Junction::Router {
                    router: score,
                    children,
                } => {
                    self.budget -= 1;
                    for (child, more) in children.into_iter().zip(costs(score)) {
                        self.reach(sum(cost, more), child);
                    }
                }
            }
        }
    }

    /// The tree's answer for a row and the most probable others of its `n` labels, `k` in all
    /// (two if `k` is one), with their costs: cheapest first, of equals the lower label.
    ///
    /// The answer is the label that every router sends to, which need not be the one of highest
    /// probability: 0.6 * 0.5 goes before 0.4 * 0.9. It comes first all the same, with a cost just
    /// below the next one's where its own is higher.
    pub fn best_labels(
        &mut self,
        root: u32,
        look: &impl Fn(u32) -> Junction<f32>,
        k: usize,
        n: usize,
    ) -> &[(f32, u32)] {
        let (mut own_cost, answer) = descend(0.0, root, look, |_, _| {});
        let others = k.max(2) - 1;
        let depth = n.next_power_of_two().ilog2() as usize;
        self.start(
            root,
            OPENED_PER_LABEL_AND_LEVEL * (others + 1) * (depth + 1),
        );
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        while found.len() < others {
            let Some((cost, label)) = self.next(f32::INFINITY, look) else {
                break;
            };
            self.budget = self.budget.saturating_sub(1);
            if label != answer {
                found.push((cost, label));
            }
        }
        found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let Some(&(cost, _)) = found.first() {
            // Alone in being first, so that nothing hangs on the order of equals.
            own_cost = own_cost.min(cost.next_down());
        }
        found.insert(0, (own_cost, answer));
        self.found = found;
        &self.found
    }

    fn reach(&mut self, cost: f32, node: u32) {
        let number = self.n_reached;
        self.n_reached += 1;
        let cost = cost.to_bits();
        self.open.push(Reverse(Branch { cost, number, node }));
    }

    /// Nodes that were reached and not opened.
    #[cfg(test)]
    pub fn n_open(&self) -> usize {
        self.open.len()
    }
}

/// Goes from a node of this cost straight down to a terminal, as the routers say, and hands what
/// it passes by to `aside`. Returns the terminal's cost and number.
fn descend(
    mut cost: f32,
    mut node: u32,
    look: &impl Fn(u32) -> Junction<f32>,
    mut aside: impl FnMut(f32, u32),
) -> (f32, u32) {
    loop {
        match look(node) {
            Junction::Terminal(number) => return (cost, number),
            Junction::Router {
                router: score,
                children: [left, right],
            } => {
                let [to_left, to_right] = costs(score).map(|more| sum(cost, more));
                let (next, other) = if score < 0.0 {
                    ((to_left, left), (to_right, right))
                } else {
                    ((to_right, right), (to_left, left))
                };
                aside(other.0, other.1);
                (cost, node) = next;
            }
        }
    }
}

/// Infinite costs would mean that there is no such terminal.
#[inline]
fn sum(cost: f32, more: f32) -> f32 {
    (cost + more).min(f32::MAX)
}

/// Minus the log-probabilities of left and right; what is no number says nothing.
#[inline]
fn costs(score: f32) -> [f32; 2] {
    let score = if score.is_nan() { 0.0 } else { score };
    let least = (-score.abs()).exp().ln_1p();
    [least + score.max(0.0), least + (-score).max(0.0)]
}
