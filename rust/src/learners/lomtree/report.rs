//! What there is to know of a tree and of the splits it made.

use super::arena::Arena;
use super::node::{LabelStat, Node};
use crate::file::Report;

/// J, beta and alpha of a split, from how often each label went left and right; none where
/// nothing did:
/// - J of Eq. 1: twice the mean over labels of |P(right) - P(right | label)|;
/// - beta: P(right);
/// - alpha: mean over labels of min(P(right | label), P(left | label)).
fn split_quality(sides: impl Iterator<Item = (f64, f64)> + Clone) -> Option<[f64; 3]> {
    let sums = |(l, r), (left, right)| (l + left, r + right);
    let (left, right): (f64, f64) = sides.clone().fold((0.0, 0.0), sums);
    let all = left + right;
    if all == 0.0 {
        return None;
    }
    let balance = right / all;
    let (mut objective, mut purity) = (0.0f64, 0.0);
    for (left, right) in sides.filter(|(left, right)| left + right > 0.0) {
        let n = left + right;
        let share = n / all;
        objective += 2.0 * share * (balance - right / n).abs();
        purity += share * (left.min(right) / n);
    }
    // Many roundings could lead beyond 1.
    Some([objective.min(1.0), balance, purity])
}

/// The split of an internal node as its children's arrivals show it.
fn split_of_node(arena: &Arena, node: &Node) -> Option<[f64; 3]> {
    if node.is_leaf() {
        return None;
    }
    let mut labels: Vec<u32> = node.labels.iter().map(|(label, _)| label).collect();
    labels.sort_unstable();
    let arrivals = |child, label| {
        let stat = arena.node(child).labels.get(label);
        stat.map_or(0.0, LabelStat::arrivals)
    };
    let sides = labels.iter();
    split_quality(sides.map(|&label| (arrivals(node.left, label), arrivals(node.right, label))))
}

/// The nodes, breadth first; costs as much as the label tables are long. Columns beside those of
/// [`Topology::report`](crate::tree::Topology::report):
///
/// | column | what it holds |
/// |---|---|
/// | `n_examples` | arrivals, weighted; of recycled nodes those since Swap |
/// | `n_labels` | number of different labels that arrived |
/// | `label` | most frequent label; what a leaf predicts |
/// | `label_entropy` | entropy of the labels that arrived, in nats |
/// | `smallest_leaf` | C of the paper: size of the smallest leaf below |
/// | `n_recycled` | how often Swap took the node to serve elsewhere |
/// | `objective` | J(h) of Eq. 1, from 0 to 1; NaN at leaves |
/// | `balance` | beta: share that went right; NaN at leaves |
/// | `purity` | the purity factor alpha; NaN at leaves |
///
/// And of the whole tree:
///
/// | value | what it is |
/// |---|---|
/// | `n_swaps` | Swaps so far |
/// | `n_internal` | internal nodes |
/// | `max_internal` | T: internal nodes that there may be |
/// | `leaf_entropy` | `G_t`: entropy of the leaves, weighted by their examples |
/// | `recycle_bound` | log2 of the examples learned: with a swap resistance of 4 or more, no node is recycled more often (Lemma 3) |
pub fn node_report(arena: &Arena, max_internal: u32, n_learned: u64) -> Report {
    let tree = arena.topology();
    let nodes = || tree.nodes.iter().map(|&id| arena.node(id));
    let arrivals: Vec<f64> = nodes().map(Node::arrivals).collect();
    let entropies = nodes().zip(&arrivals);
    let entropies: Vec<f64> = entropies.map(|(node, &n)| entropy(node, n)).collect();
    let splits = nodes().map(|node| split_of_node(arena, node));
    let splits: Vec<[f64; 3]> = splits.map(|s| s.unwrap_or([f64::NAN; 3])).collect();
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
    report.column("objective", splits.iter().map(|split| split[0]));
    report.column("balance", splits.iter().map(|split| split[1]));
    report.column("purity", splits.iter().map(|split| split[2]));
    report.scalar("n_swaps", arena.n_swaps);
    report.scalar("n_internal", arena.n_internal);
    report.scalar("max_internal", max_internal);
    report.scalar("leaf_entropy", leaf_entropy);
    report.scalar("recycle_bound", (n_learned.max(1) as f64).log2());
    report
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
            if let Some([objective, balance, purity]) = split_quality(sides) {
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
        let split = split_quality(sides.into_iter());
        assert_eq!(split, Some([1.0, 0.5, 0.0]));
    }
}
