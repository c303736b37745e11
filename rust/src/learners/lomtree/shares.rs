//! The labels of a leaf with their shares.
//!
//! A leaf's distribution of labels leans on its parent's, that on the one above, and so on up to
//! the first node with more labels than a leaf keeps: so the shares at a leaf depend on few nodes,
//! and a tree that learns on gives them as fast as one that was frozen.

use super::learner::LomTree;
use super::node::{sum, Node};
use crate::classifier::keep_best;
use crate::tree::NodeId;

/// At most so many labels are kept per leaf: a leaf that the budget kept from splitting may have
/// seen any number of them, and a prediction must not cost O(K).
const MOST_LABELS: usize = 64;

/// Labels and their shares.
pub type Shares = Vec<(u32, f32)>;

impl LomTree {
    /// The shares at leaf `id` as they would be frozen: the best first, of equals the lower label.
    pub(super) fn shares_at(&self, id: NodeId) -> Shares {
        let (mut path, mut at) = (vec![id], id);
        while at != self.arena.root && self.leans(self.arena.node(at)) {
            at = self.arena.node(at).parent;
            path.push(at);
        }
        let nodes = path.iter().rev().map(|&id| self.arena.node(id));
        let mut shares = nodes.fold(Vec::new(), |above, node| self.shares(node, &above));
        best_first(&mut shares);
        shares
    }

    /// Whether the shares at a node hang on its parent's.
    fn leans(&self, node: &Node) -> bool {
        node.labels.len() <= MOST_LABELS && self.params.leaf_smoothing > 0.0
    }

    /// Share of each label at a node, by label: its own arrivals and, where it
    /// [leans](Self::leans) on its parent, counting for a few examples, its parent's shares. Of
    /// labels of the same share as the first to get there the others are put behind it by one
    /// unit in the last place.
    pub(super) fn shares(&self, node: &Node, parent: &[(u32, f32)]) -> Shares {
        let mut counts: Vec<(u32, f64)> = node.label_arrivals().collect();
        let mut all = sum(counts.iter().map(|&(_, count)| count));
        if self.leans(node) {
            counts.sort_unstable_by_key(|&(label, _)| label);
            if !parent.is_empty() {
                let weight = self.params.leaf_smoothing;
                all += weight;
                counts = with_parent(&counts, parent, weight);
            }
        }
        if all == 0.0 {
            return vec![(node.majority, 1.0)];
        }
        let shares = counts.into_iter();
        let mut shares: Shares = shares
            .map(|(label, count)| (label, (count / all) as f32))
            .collect();
        let first = shares.iter().find(|&&(label, _)| label == node.majority);
        if let Some(&(majority, highest)) = first {
            for (label, share) in &mut shares {
                if *label != majority && share.to_bits() == highest.to_bits() {
                    *share = share.next_down().max(0.0);
                }
            }
        }
        if shares.len() > MOST_LABELS {
            keep_best(&mut shares, MOST_LABELS);
            shares.sort_unstable_by_key(|&(label, _)| label);
        }
        shares
    }
}

/// Counts and `weight` times the shares of the parent, both by label.
fn with_parent(counts: &[(u32, f64)], parent: &[(u32, f32)], weight: f64) -> Vec<(u32, f64)> {
    let mut both = Vec::with_capacity(counts.len() + parent.len());
    let mut counts = counts.iter().copied().peekable();
    for &(label, share) in parent {
        while let Some(before) = counts.next_if(|&(own, _)| own < label) {
            both.push(before);
        }
        let own = counts.next_if(|&(own, _)| own == label);
        let count = own.map_or(0.0, |(_, count)| count);
        both.push((label, count + weight * f64::from(share)));
    }
    both.extend(counts);
    both
}

/// The best first, of equals the lower label.
pub fn best_first(shares: &mut Shares) {
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}
