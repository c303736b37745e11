//! The shares of labels at leaves, compared with their recursive definition.

use std::collections::BTreeMap;

use super::super::predict::best_first;
use super::*;
use crate::tree::NodeId;

/// Most labels at a leaf, and most labels of a node that is smoothed.
const MOST: (usize, usize) = (64, 16);

/// Returns the shares at a node, by label.
fn expected(tree: &LomTree, id: NodeId) -> BTreeMap<u32, f32> {
    let node = tree.arena.node(id);
    let own: BTreeMap<u32, f64> = node.label_arrivals().collect();
    let smoothing = tree.rules.leaf_smoothing;
    let mut above = BTreeMap::new();
    if id != tree.arena.root && own.len() <= MOST.1 && smoothing > 0.0 {
        above = expected(tree, node.parent);
    }
    let mut all: f64 = own.values().sum();
    if !above.is_empty() {
        all += smoothing;
    }
    if all == 0.0 {
        return BTreeMap::from([(node.majority, 1.0)]);
    }
    let labels = own.keys().chain(above.keys());
    let mut shares: BTreeMap<u32, f32> = labels
        .map(|label| {
            let count = own.get(label).copied().unwrap_or(0.0);
            let parent_share = f64::from(above.get(label).copied().unwrap_or(0.0));
            (*label, ((count + smoothing * parent_share) / all) as f32)
        })
        .collect();
    if let Some(highest) = shares.get(&node.majority).copied() {
        for (label, share) in &mut shares {
            if *label != node.majority && *share == highest {
                *share = share.next_down().max(0.0);
            }
        }
    }
    let mut best: Vec<(u32, f32)> = shares.into_iter().collect();
    best_first(&mut best);
    best.truncate(MOST.0);
    best.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Shares agree to the bit, at leaves with few and with many labels, below nodes with few and with
    /// many.
    #[test]
    fn shares_agree_with_the_definition(
        labels in prop::collection::vec(0u32..150, 1..600),
        noise in prop::collection::vec(-8i8..8, WIDTH * 600),
        split_threshold in 1u32..60,
        smoothing in 0u32..3,
    ) {
        let bit = |label: u32, f: usize| if label >> f & 1 == 1 { 8.0 } else { -8.0 };
        let values = labels.iter().zip(noise.chunks(WIDTH)).flat_map(|(&label, noise)| {
            (0..WIDTH).map(move |f| bit(label, f) + f32::from(noise[f]))
        });
        let values: Vec<f32> = values.collect();
        let params = Params {
            split_threshold: f64::from(split_threshold),
            ..params()
        };
        let model = fitted(params, &batch(&values, &labels, 150));
        let tree = &mut model.members[0].learner.clone();
        tree.rules.leaf_smoothing = f64::from(smoothing);
        let frozen = tree.freeze(&Control::new(0)).unwrap();
        let leaves = tree.arena.topology().nodes;
        let leaves = leaves.into_iter().filter(|&id| tree.arena.node(id).is_leaf());
        for (number, id) in leaves.enumerate() {
            let mut expected: Vec<(u32, f32)> = expected(tree, id).into_iter().collect();
            best_first(&mut expected);
            prop_assert_eq!(frozen.leaves.get(number), &expected[..]);
            prop_assert_eq!(tree.shares_at(id), expected);
        }
    }
}
