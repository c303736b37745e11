//! Predictions for a block of rows: the label distributions of the leaves that the trees route
//! each row to, averaged over the trees. Per row and tree O(depth * non-zeros), and O(1) per
//! label of the leaf.
//!
//! A leaf's distribution of labels leans on its parent's, that on the one above, and so on up to
//! the first node with labels enough of its own: so the shares at a leaf depend on few nodes and
//! labels (3 and 50 where 1,000 classes were learned), and a tree that learns on gives them nearly as
//! fast as one that was frozen.

use super::learner::LomTree;
use super::node::{sum, Node};
use crate::control::Control;
use crate::data::{Ragged, Rows};
use crate::error::Result;
use crate::linear::Table;
use crate::model::{keep_best, Member, Predictor, TopK};
use crate::threads::Lent;
use crate::tree::{FrozenRouters, NodeId, Routers, RoutingMemory};

/// Labels kept for a leaf, at most: one that the budget kept from splitting may have seen any
/// number of them, and a prediction must not cost O(K).
const MAX_LEAF_LABELS: usize = 64;

/// A node of more labels does not lean on its parent: an example's worth of the parent's shares would
/// hardly change them. With 64 and 32, held out, errors and recall at 5 and 10 are the same.
const MAX_LEANING_LABELS: usize = 16;

/// Labels that the leaves of several trees often have together.
const EXPECTED_LABELS: usize = 700;

/// Labels and their shares.
pub type Shares = Vec<(u32, f32)>;

/// Scratch space for the shares at a leaf.
#[derive(Debug, Default)]
pub struct ShareScratch {
    path: Vec<NodeId>,
    /// Labels that arrived at a node.
    own: Vec<(u32, f64)>,
    /// The same with what the parent's shares count for: the parent's labels first.
    counts: Vec<(u32, f64)>,
    shares: Shares,
    above: Shares,
}

impl LomTree {
    /// The shares at leaf `id` as they would be frozen, best first.
    pub(super) fn shares_at<'a>(&self, id: NodeId, scratch: &'a mut ShareScratch) -> &'a Shares {
        let mut path = std::mem::take(&mut scratch.path);
        let mut at = id;
        path.clear();
        path.push(id);
        while at != self.arena.root && self.leans(self.arena.node(at)) {
            at = self.arena.node(at).parent;
            path.push(at);
        }
        scratch.shares.clear();
        for &id in path.iter().rev() {
            std::mem::swap(&mut scratch.shares, &mut scratch.above);
            self.set_shares(self.arena.node(id), scratch);
        }
        scratch.path = path;
        best_first(&mut scratch.shares);
        &scratch.shares
    }

    /// Whether the shares at a node depend on its parent's.
    fn leans(&self, node: &Node) -> bool {
        node.labels.len() <= MAX_LEANING_LABELS && self.rules.leaf_smoothing > 0.0
    }

    /// Sets `shares` to the share of each label at a node, in an arbitrary order: its own arrivals
    /// and, where it [leans](Self::leans) on its parent, those of the shares `above`, counting for
    /// a few examples. Of labels of the same share as the first to get there the others are put
    /// behind it by one unit in the last place.
    fn set_shares(&self, node: &Node, scratch: &mut ShareScratch) {
        let ShareScratch {
            own,
            counts,
            shares,
            above,
            ..
        } = scratch;
        let parent = if self.leans(node) { &above[..] } else { &[] };
        let weight = self.rules.leaf_smoothing;
        own.clear();
        own.extend(node.label_arrivals());
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
        keep_best(shares, MAX_LEAF_LABELS);
    }
}

/// Sorts by share, of equals the lower label first.
pub(super) fn best_first(shares: &mut Shares) {
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

/// A tree that no longer learns, in a few contiguous arrays: routers whose terminals are numbers
/// of leaves; no label tables, no optimiser state.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    routers: FrozenRouters,
    /// The labels of each leaf with their shares, best first.
    pub(super) leaves: Ragged<(u32, f32)>,
}

impl FrozenTree {
    /// Costs O(size of the tree).
    pub(super) fn new(learner: &LomTree, control: &Control) -> Result<Self> {
        let mut leaves = Ragged::default();
        let mut scratch = ShareScratch::default();
        let routers = FrozenRouters::new(learner, control, |leaf| {
            let shares = learner.shares_at(NodeId(leaf), &mut scratch);
            leaves.push(shares.iter().copied());
            leaves.len() as u32 - 1
        })?;
        Ok(Self { routers, leaves })
    }
}

/// Predicts blocks of rows, for one thread.
#[derive(Debug)]
pub struct EnsemblePredictor<'a> {
    members: &'a [Member<LomTree>],
    frozen: Option<&'a [FrozenTree]>,
    routers: Vec<Routers<'a, LomTree>>,
    /// Trees of a `fit` all scale alike; those of a stream each in its own way.
    all_alike: bool,
    memory: Lent<'a, RoutingMemory>,
    /// Per tree, the leaf of each row that was read.
    leaves: Vec<Vec<u32>>,
    /// The labels that have a share in some tree, in the order in which they were met first, with
    /// the sums of their shares, and where each is among them.
    found: Shares,
    place_of: Table<u32>,
    scratch: ShareScratch,
}

impl<'a> EnsemblePredictor<'a> {
    pub(super) fn new(
        members: &'a [Member<LomTree>],
        frozen: Option<&'a [FrozenTree]>,
        memory: Lent<'a, RoutingMemory>,
    ) -> Self {
        let mut pairs = members.windows(2);
        let routers = members.iter().enumerate().map(|(number, member)| {
            let frozen = frozen.map(|trees| &trees[number].routers);
            Routers::new(frozen, &member.learner)
        });
        Self {
            members,
            frozen,
            routers: routers.collect(),
            all_alike: pairs.all(|pair| pair[0].preparation == pair[1].preparation),
            memory,
            leaves: vec![Vec::new(); members.len()],
            found: Vec::new(),
            // Room for many labels at once: it would grow in every call.
            place_of: Table::with_capacity(if members.len() > 1 {
                EXPECTED_LABELS
            } else {
                0
            }),
            scratch: ShareScratch::default(),
        }
    }

    /// The labels that have a share at the leaf that tree `number` leads a row to, best first.
    fn shares(&mut self, number: usize, row: usize) -> &[(u32, f32)] {
        let leaf = self.leaves[number][row];
        if let Some(trees) = self.frozen {
            return trees[number].leaves.get(leaf as usize);
        }
        let tree = &self.members[number].learner;
        tree.shares_at(NodeId(leaf), &mut self.scratch)
    }

    /// Calls `visit` with each label that has a share in a row that was read, and its mean share, in
    /// the order in which they are met going through each tree's best first.
    fn distribution(&mut self, row: usize, mut visit: impl FnMut(u32, f32)) {
        if let [_] = self.members {
            let shares = self.shares(0, row).iter();
            return shares.for_each(|&(label, share)| visit(label, share));
        }
        let mut found = std::mem::take(&mut self.found);
        let mut place_of = std::mem::take(&mut self.place_of);
        found.clear();
        place_of.clear();
        for number in 0..self.members.len() {
            for &(label, share) in self.shares(number, row) {
                // Places count from 1, as a label that is new has 0.
                let place = place_of.entry(label);
                if *place == 0 {
                    found.push((label, share));
                    *place = found.len() as u32;
                } else {
                    found[*place as usize - 1].1 += share;
                }
            }
        }
        let scale = (self.members.len() as f32).recip();
        for &(label, sum) in &found {
            visit(label, sum * scale);
        }
        (self.found, self.place_of) = (found, place_of);
    }
}

impl Predictor for EnsemblePredictor<'_> {
    /// Routes the rows through all trees.
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        control: &Control,
    ) -> Result<()> {
        let RoutingMemory { block, groups } = &mut *self.memory;
        for (number, (routers, leaves)) in self.routers.iter().zip(&mut self.leaves).enumerate() {
            control.check()?;
            if number == 0 || !self.all_alike {
                let preparation = &self.members[number].preparation;
                block.fill(preparation, rows, which.clone(), routers.width());
            }
            leaves.resize(which.len(), 0);
            routers.route(block, groups, leaves);
        }
        Ok(())
    }

    /// Scores are mean shares.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        _control: &Control,
    ) -> Result<()> {
        let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        let mut top = TopK::new(k.min(self.members[0].learner.n_classes));
        for (row, (labels, scores)) in rows.enumerate() {
            top.clear();
            self.distribution(row, |label, share| top.push(label, share));
            top.write(labels, scores);
        }
        Ok(())
    }

    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        for (tree, leaves) in self.leaves.iter().enumerate() {
            for (row, &leaf) in leaves.iter().enumerate() {
                visit(row, tree, leaf);
            }
        }
    }

    /// The distribution over all classes. A leaf keeps its most common labels only, so that the
    /// shares may add up to a little less than 1; they are divided by their sum.
    fn all_scores(&mut self, scores: &mut [f32], _control: &Control) -> Result<bool> {
        let n_classes = self.members[0].learner.n_classes;
        for (row, shares) in scores.chunks_mut(n_classes).enumerate() {
            let mut sum = 0.0;
            self.distribution(row, |label, share| {
                shares[label as usize] = share;
                sum += share;
            });
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Ok(true)
    }
}
