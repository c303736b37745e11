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

/// Scratch space for the shares at a leaf.
#[derive(Debug, Default)]
pub struct ShareScratch {
    path: Vec<NodeId>,
    counts: Vec<(u32, f64)>,
    shares: Shares,
    above: Shares,
}

impl LomTree {
    /// The shares at leaf `id` as they would be frozen: the best first, of equals the lower label.
    pub(super) fn shares_at<'a>(&self, id: NodeId, scratch: &'a mut ShareScratch) -> &'a Shares {
        let (path, mut at) = (&mut scratch.path, id);
        path.clear();
        path.push(id);
        while at != self.arena.root && self.leans(self.arena.node(at)) {
            at = self.arena.node(at).parent;
            path.push(at);
        }
        let ShareScratch {
            counts,
            shares,
            above,
            ..
        } = scratch;
        shares.clear();
        for &id in scratch.path.iter().rev() {
            std::mem::swap(shares, above);
            self.set_shares(self.arena.node(id), above, counts, shares);
        }
        best_first(shares);
        shares
    }

    /// Whether the shares at a node hang on its parent's.
    fn leans(&self, node: &Node) -> bool {
        node.labels.len() <= MOST_LABELS && self.params.leaf_smoothing > 0.0
    }

    /// Sets the share of each label at a node, by label: its own arrivals and, where it
    /// [leans](Self::leans) on its parent, counting for a few examples, its parent's shares. Of
    /// labels of the same share as the first to get there the others are put behind it by one
    /// unit in the last place. `counts` is scratch space.
    pub(super) fn set_shares(
        &self,
        node: &Node,
        parent: &[(u32, f32)],
        counts: &mut Vec<(u32, f64)>,
        shares: &mut Shares,
    ) {
        counts.clear();
        counts.extend(node.label_arrivals());
        counts.sort_unstable_by_key(|&(label, _)| label);
        let parent = if self.leans(node) { parent } else { &[] };
        let mut all = sum(counts.iter().map(|&(_, count)| count));
        let weight = self.params.leaf_smoothing;
        if !parent.is_empty() {
            all += weight;
        }
        shares.clear();
        if all == 0.0 {
            shares.push((node.majority, 1.0));
            return;
        }
        let mut of_majority = None;
        let (mut own, mut above) = (0, 0);
        while own < counts.len() || above < parent.len() {
            // None is beyond all labels.
            let own_label = counts.get(own).map_or(u32::MAX, |&(label, _)| label);
            let label = own_label.min(parent.get(above).map_or(u32::MAX, |&(label, _)| label));
            let mut count = 0.0;
            if label == own_label {
                count = counts[own].1;
                own += 1;
            }
            if let Some(&(_, share)) = parent.get(above).filter(|other| other.0 == label) {
                count += weight * f64::from(share);
                above += 1;
            }
            let share = (count / all) as f32;
            if label == node.majority {
                of_majority = Some(share);
            }
            shares.push((label, share));
        }
        if let Some(highest) = of_majority {
            for (label, share) in &mut *shares {
                if *label != node.majority && share.to_bits() == highest.to_bits() {
                    *share = share.next_down().max(0.0);
                }
            }
        }
        if shares.len() > MOST_LABELS {
            keep_best(shares, MOST_LABELS);
            shares.sort_unstable_by_key(|&(label, _)| label);
        }
    }
}

/// The best first, of equals the lower label.
pub fn best_first(shares: &mut Shares) {
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}
