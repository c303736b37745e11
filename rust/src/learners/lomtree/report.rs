//! What there is to know of a tree and of the splits it made.

use super::learner::LomTree;
use super::node::{Arena, LabelStat, Node};
use crate::file::Report;

impl LomTree {
    /// The nodes, breadth first, and the whole tree; costs as much as the label tables are long.
    /// `weight` is that of all examples learned, as the tree counts them.
    ///
    /// Arrivals at recycled nodes count from Swap on. J, beta and alpha are those of the router
    /// over all examples that it has sent on, each as it went when it was learned: NaN at leaves
    /// and where Swap took a child out, as its counts went with it. With a swap resistance of 4
    /// or more no `n_recycled` exceeds `recycle_bound` (Lemma 3; see [`Arena::swap`]).
    pub(super) fn node_report(&self, weight: f64) -> Report {
        let tree = self.arena.topology();
        let nodes = || tree.nodes.iter().map(|&id| self.arena.node(id));
        let arrivals: Vec<f64> = nodes().map(Node::arrivals).collect();
        let entropies = nodes().zip(&arrivals);
        let entropies: Vec<f64> = entropies.map(|(node, &n)| entropy(node, n)).collect();
        let splits: Vec<[f64; 3]> = nodes()
            .map(|node| split_of_node(&self.arena, node))
            .collect();
        let (mut weighted, mut at_leaves) = (0.0, 0.0);
        for (at, _) in nodes().enumerate().filter(|(_, node)| node.is_leaf()) {
            weighted += arrivals[at] * entropies[at];
            at_leaves += arrivals[at];
        }
        // 0 where no example has come.
        let leaf_entropy = weighted / at_leaves.max(f64::MIN_POSITIVE);
        let mut report = tree.report();
        report.column("n_examples", arrivals);
        report.column("n_labels", nodes().map(|node| node.labels.len() as u32));
        report.column("label", nodes().map(most_frequent));
        report.column("label_entropy", entropies);
        report.column("smallest_leaf", nodes().map(|node| node.size));
        report.column("n_recycled", nodes().map(|node| node.recycled));
        for (at, name) in ["objective", "balance", "purity"].into_iter().enumerate() {
            report.column(name, splits.iter().map(|split| split[at]));
        }
        report.scalar("n_swaps", self.arena.n_swaps);
        report.scalar("n_internal", self.arena.n_internal);
        report.scalar("max_internal", self.budget);
        report.scalar("leaf_entropy", leaf_entropy); // G_t
        report.scalar("recycle_bound", weight.max(1.0).log2());
        report
    }
}

/// J, beta and alpha of an internal node over all examples that its router has sent on, by their
/// arrivals at its children. NaN where these are not all.
fn split_of_node(arena: &Arena, node: &Node) -> [f64; 3] {
    /// Counts of weights are rounded, by less than this part of them.
    const ROUNDING: f64 = 1e-6;
    if node.is_leaf() {
        return [f64::NAN; 3];
    }
    let mut labels: Vec<(u32, &LabelStat)> = node.labels.iter().collect();
    labels.sort_unstable_by_key(|&(label, _)| label);
    let at_child = |child, label| {
        let stat = arena.node(child).labels.get(label);
        stat.map_or(0.0, LabelStat::arrivals)
    };
    let mut sides = Vec::new();
    for (label, stat) in labels {
        let (left, right) = (at_child(node.left, label), at_child(node.right, label));
        let trained = stat.count.0;
        if (left + right - trained).abs() > ROUNDING * trained {
            return [f64::NAN; 3];
        }
        sides.push((left, right));
    }
    let [objective, balance, purity] = split_quality(&sides);
    // Many roundings could lead beyond 1.
    [objective.min(1.0), balance, purity]
}

/// J, beta and alpha of a split, from how often each label went left and right:
/// - J of Eq. 1: twice the mean over labels of |P(right) - P(right | label)|;
/// - beta: P(right);
/// - alpha: mean over labels of min(P(right | label), P(left | label)).
fn split_quality(sides: &[(f64, f64)]) -> [f64; 3] {
    let sums = |(l, r), &(left, right)| (l + left, r + right);
    let (left, right): (f64, f64) = sides.iter().fold((0.0, 0.0), sums);
    let all = left + right;
    let balance = right / all;
    let (mut objective, mut purity) = (0.0f64, 0.0);
    for &(left, right) in sides.iter().filter(|(left, right)| left + right > 0.0) {
        let n = left + right;
        let share = n / all;
        objective += 2.0 * share * (balance - right / n).abs();
        purity += share * (left.min(right) / n);
    }
    [objective, balance, purity]
}

/// What a leaf predicts; of an internal node's labels the lowest of the most frequent.
fn most_frequent(node: &Node) -> u32 {
    if node.is_leaf() {
        return node.majority;
    }
    node.label_arrivals()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map_or(node.majority, |(label, _)| label)
}

fn entropy(node: &Node, arrivals: f64) -> f64 {
    if arrivals == 0.0 {
        return 0.0;
    }
    let shares = node.label_arrivals().map(|(_, n)| n / arrivals);
    let mut shares: Vec<f64> = shares.filter(|&share| share > 0.0).collect();
    // One order of summation, whatever order the table has.
    shares.sort_unstable_by(f64::total_cmp);
    let sum: f64 = shares.iter().map(|share| -share * share.ln()).sum();
    sum.max(0.0)
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
            let [objective, balance, purity] = split_quality(&sides.collect::<Vec<_>>());
            prop_assert!((0.0..=1.0 + 1e-12).contains(&objective), "J {objective}");
            // The lemma takes beta as the smaller side.
            let beta = balance.min(1.0 - balance);
            if beta > 0.0 {
                let bound = ((2.0 - objective) / (4.0 * beta) - beta).min(0.5);
                prop_assert!(purity <= bound + 1e-12, "alpha {purity} > {bound}");
            }
        }
    }

    #[test]
    fn a_pure_and_balanced_split_has_objective_one() {
        let sides = [(5.0, 0.0), (0.0, 3.0), (0.0, 2.0)];
        assert_eq!(split_quality(&sides), [1.0, 0.5, 0.0]);
    }
}
