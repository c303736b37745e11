//! The labels of a leaf with their shares.
//!
//! A leaf's distribution of labels leans on its parent's, that on the one above, and so on up to
//! the first node with labels enough of its own: so the shares at a leaf depend on few nodes and
//! labels (3 and 50 where 1,000 classes were learned), and a tree that learns on gives them nearly as
//! fast as one that was frozen.

use super::learner::LomTree;
use super::node::{sum, LabelStat, Node};
use crate::classifier::keep_best;
use crate::tree::NodeId;

/// At most so many labels are kept per leaf: a leaf that the budget kept from splitting may have
/// seen any number of them, and a prediction must not cost O(K).
const MOST_LABELS: usize = 64;

/// A node of more labels does not lean on its parent: an example's worth of the parent's shares would
/// hardly change them. With 64 and 32, held out, errors and recall at 5 and 10 are the same.
const MOST_LEANING: usize = 16;

/// Labels and their shares.
pub type Shares = Vec<(u32, f32)>;

/// Scratch space for the shares at a leaf.
#[derive(Debug, Default)]
pub struct ShareScratch {
    path: Vec<NodeId>,
    counts: Counts,
    shares: Shares,
    above: Shares,
}

/// Scratch space for the counts at a node.
#[derive(Debug, Default)]
pub struct Counts {
    /// Labels that arrived at the node.
    own: Vec<(u32, f64)>,
    /// Those with what the parent's shares count for: the parent's labels first.
    all: Vec<(u32, f64)>,
}

impl LomTree {
    /// The shares at leaf `id` as they would be frozen, in an arbitrary order.
    pub(super) fn shares_at<'a>(
        &self,
        id: NodeId,
        scratch: &'a mut ShareScratch,
    ) -> &'a mut Shares {
        let (path, mut at) = (&mut scratch.path, id);
        path.clear();
        path.push(id);
        while at != self.arena.root && self.leans(self.arena.node(at)) {
            self.arena.node(at).labels.prefetch_all();
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
        shares
    }

    /// Whether the shares at a node hang on its parent's.
    fn leans(&self, node: &Node) -> bool {
        node.labels.len() <= MOST_LEANING && self.params.leaf_smoothing > 0.0
    }

    /// Sets the share of each label at a node, in an arbitrary order: its own arrivals and, where it
    /// [leans](Self::leans) on its parent, counting for a few examples, its parent's shares. Of
    /// labels of the same share as the first to get there the others are put behind it by one unit
    /// in the last place.
    pub(super) fn set_shares(
        &self,
        node: &Node,
        parent: &[(u32, f32)],
        Counts { own, all: counts }: &mut Counts,
        shares: &mut Shares,
    ) {
        let parent = if self.leans(node) { parent } else { &[] };
        let weight = self.params.leaf_smoothing;
        node.labels.list(LabelStat::arrivals, own);
        let mut all = sum(own.iter().map(|&(_, count)| count));
        if !parent.is_empty() {
            all += weight;
        }
        shares.clear();
        if all == 0.0 {
            shares.push((node.majority, 1.0));
            return;
        }
        counts.clear();
        let of_parent = parent.iter();
        counts.extend(of_parent.map(|&(label, share)| (label, weight * f64::from(share))));
        for &(label, count) in &*own {
            let mut known = counts[..parent.len()].iter_mut();
            match known.find(|&&mut (known, _)| known == label) {
                Some((_, known)) => *known += count,
                None => counts.push((label, count)),
            }
        }
        let divided = counts.iter();
        shares.extend(divided.map(|&(label, count)| (label, (count / all) as f32)));
        let majority = shares.iter().find(|&&(label, _)| label == node.majority);
        if let Some(&(_, highest)) = majority {
            for (label, share) in &mut *shares {
                if *label != node.majority && share.to_bits() == highest.to_bits() {
                    *share = share.next_down().max(0.0);
                }
            }
        }
        keep_best(shares, MOST_LABELS);
    }
}

/// The best first, of equals the lower label.
pub fn best_first(shares: &mut Shares) {
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}
