//! What there is to know of a tree and of the splits it made.

use super::{Arena, Node, Tree};

/// One value per node, in breadth-first order from the root, so that every
/// parent stands before its children.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The node above, -1 at the root.
    pub parent: Vec<i32>,
    /// Left and right child, -1 at a leaf; two per node.
    pub children: Vec<i32>,
    /// Steps from the root.
    pub depth: Vec<u32>,
    /// Arrivals, weighted; recycled nodes count from their new life on.
    pub n_examples: Vec<f64>,
    /// Number of different labels that arrived.
    pub n_labels: Vec<u32>,
    /// Most frequent label; what a leaf answers.
    pub label: Vec<u32>,
    /// Entropy of the labels that arrived, in nats.
    pub label_entropy: Vec<f64>,
    /// C of the paper: size of the smallest leaf below.
    pub smallest_leaf: Vec<f64>,
    /// How often the node was recycled.
    pub n_recycled: Vec<u32>,
    /// J(h) of Eq. 1, from 0 to 1; NaN at leaves.
    pub objective: Vec<f64>,
    /// Balance beta: share that went right; NaN at leaves.
    pub balance: Vec<f64>,
    /// Purity factor alpha; NaN at leaves.
    pub purity: Vec<f64>,
    /// Swaps over the tree's life.
    pub n_swaps: u64,
    /// Internal nodes, and how many there may be.
    pub n_internal: u32,
    /// T: internal nodes that there may be.
    pub max_internal: u32,
    /// G_t of the paper: entropy of the leaves, weighted by their examples.
    pub leaf_entropy: f64,
    /// log2 of the examples seen: with a swap resistance of 4 or more, no node
    /// is recycled more often than this (Lemma 3 of the paper).
    pub recycle_bound: f64,
}

/// J, beta and alpha of a split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// J of Eq. 1: twice the mean over labels of |P(right) - P(right | label)|.
    pub objective: f64,
    /// P(right).
    pub balance: f64,
    /// Mean over labels of min(P(right | label), P(left | label)).
    pub purity: f64,
}

impl Split {
    /// From how often each label went left and right.
    pub fn of(sides: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let (left, right) = sides
            .clone()
            .fold((0.0, 0.0), |(l, r), (left, right)| (l + left, r + right));
        let all: f64 = left + right;
        if all == 0.0 {
            return None;
        }
        let balance = right / all;
        let (mut objective, mut purity) = (0.0, 0.0);
        for (left, right) in sides.filter(|(left, right)| left + right > 0.0) {
            let n = left + right;
            let share = n / all;
            objective += 2.0 * share * (balance - right / n).abs();
            purity += share * (left.min(right) / n);
        }
        Some(Self {
            // Many roundings could lead beyond.
            objective: objective.min(1.0),
            balance,
            purity,
        })
    }
}

impl Tree {
    /// Collects what there is to know; costs as much as the label tables are long.
    pub fn report(&self) -> Report {
        let arena = self.arena();
        let order = arena.breadth_first();
        let mut report = Report {
            n_swaps: arena.n_swaps,
            n_internal: arena.n_internal,
            max_internal: self.budget,
            recycle_bound: (self.progress().examples.max(1) as f64).log2(),
            ..Report::default()
        };
        let mut next_pair = 1;
        let mut parents = vec![-1; order.len()];
        let (mut weighted, mut at_leaves) = (0.0, 0.0);
        for (at, &(id, depth)) in order.iter().enumerate() {
            let node = arena.node(id);
            let arrivals = node.arrivals();
            let entropy = entropy(node, arrivals);
            report.parent.push(parents[at]);
            report.depth.push(depth);
            report.n_examples.push(arrivals);
            report.n_labels.push(node.labels.len() as u32);
            report.label.push(most_frequent(node));
            report.label_entropy.push(entropy);
            report.smallest_leaf.push(node.size);
            report.n_recycled.push(node.recycled);
            let mut split = None;
            if node.is_leaf() {
                report.children.extend([-1, -1]);
                weighted += arrivals * entropy;
                at_leaves += arrivals;
            } else {
                report.children.extend([next_pair, next_pair + 1]);
                parents[next_pair as usize] = at as i32;
                parents[next_pair as usize + 1] = at as i32;
                next_pair += 2;
                split = split_of(arena, node);
            }
            report
                .objective
                .push(split.map_or(f64::NAN, |s| s.objective));
            report.balance.push(split.map_or(f64::NAN, |s| s.balance));
            report.purity.push(split.map_or(f64::NAN, |s| s.purity));
        }
        report.leaf_entropy = if at_leaves > 0.0 {
            weighted / at_leaves
        } else {
            0.0
        };
        report
    }
}

/// What a leaf answers; of an internal node's labels the lowest of the most frequent.
fn most_frequent(node: &Node) -> u32 {
    if node.is_leaf() {
        return node.top;
    }
    let arrivals = node
        .labels
        .iter()
        .map(|(label, stat)| (label, stat.arrivals()));
    arrivals
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map_or(node.top, |(label, _)| label)
}

fn entropy(node: &Node, arrivals: f64) -> f64 {
    if arrivals == 0.0 {
        return 0.0;
    }
    let mut shares: Vec<f64> = node
        .labels
        .iter()
        .map(|(_, stat)| stat.arrivals() / arrivals)
        .collect();
    // One order of summation, whatever order the table has.
    shares.sort_unstable_by(f64::total_cmp);
    let sum: f64 = shares
        .iter()
        .filter(|&&share| share > 0.0)
        .map(|share| -share * share.ln())
        .sum();
    sum.max(0.0)
}

/// The split as its children's arrivals show it.
fn split_of(arena: &Arena, node: &Node) -> Option<Split> {
    let (left, right) = (
        &arena.node(node.left).labels,
        &arena.node(node.right).labels,
    );
    let mut labels: Vec<u32> = node.labels.iter().map(|(label, _)| label).collect();
    labels.sort_unstable();
    let sides: Vec<(f64, f64)> = labels
        .into_iter()
        .map(|label| {
            let arrivals = |table: &crate::linear::Table<super::arena::LabelStat>| {
                table
                    .get(label)
                    .map_or(0.0, super::arena::LabelStat::arrivals)
            };
            (arrivals(left), arrivals(right))
        })
        .collect();
    Split::of(sides.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lemmas 1 and 2 of the paper hold for every split there can be.
        #[test]
        fn lemmas_hold(sides in prop::collection::vec((0u8..50, 0u8..50), 1..20)) {
            let sides = sides.iter().map(|&(l, r)| (f64::from(l), f64::from(r)));
            if let Some(Split { objective, balance, purity }) = Split::of(sides) {
                prop_assert!((0.0..=1.0).contains(&objective));
                // The lemma takes beta as the smaller side.
                let beta = balance.min(1.0 - balance);
                if beta > 0.0 {
                    let bound = ((2.0 - objective) / (4.0 * beta) - beta).min(0.5);
                    prop_assert!(purity <= bound + 1e-12, "alpha {purity} > {bound}");
                }
            }
        }
    }

    #[test]
    fn a_pure_and_balanced_split_has_objective_one() {
        let sides = [(5.0, 0.0), (0.0, 3.0), (0.0, 2.0)];
        let split = Split::of(sides.into_iter()).unwrap();
        assert_eq!(
            split,
            Split {
                objective: 1.0,
                balance: 0.5,
                purity: 0.0
            }
        );
    }
}
