//! Predictions for a block of rows: the label distributions of the leaves that the trees route
//! each row to, averaged over the trees. Per row and tree O(depth * non-zeros), and O(1) per
//! label of the leaf.

use super::frozen::FrozenTree;
use super::learner::LomTree;
use super::shares::{best_first, ShareScratch};
use crate::classifier::{Member, Predictor, TopK};
use crate::control::Control;
use crate::data::Rows;
use crate::error::Result;
use crate::linear::Table;
use crate::pool::Lent;
use crate::tree::{NodeId, Routers, RoutingMemory};

/// Labels that the leaves of several trees have, often.
const SOME_LABELS: usize = 700;

/// Labels of each leaf that are looked at in turn before all of them are.
const FIRST_LABELS: usize = 8;

/// What one thread predicts with.
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
    found: Vec<(u32, f32)>,
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
            place_of: Table::with_capacity(if members.len() > 1 { SOME_LABELS } else { 0 }),
            scratch: ShareScratch::default(),
        }
    }

    /// The labels that have a share at the leaf that tree `number` leads a row to, best first; where
    /// `in_order` is false, in any order.
    fn shares(&mut self, number: usize, row: usize, in_order: bool) -> &[(u32, f32)] {
        let leaf = self.leaves[number][row];
        if let Some(trees) = self.frozen {
            return trees[number].leaves.get(leaf as usize);
        }
        let tree = &self.members[number].learner;
        let shares = tree.shares_at(NodeId(leaf), &mut self.scratch);
        if in_order {
            best_first(shares);
        }
        shares
    }

    /// Calls `visit` with each label that has a share in a row that was read, and its mean share: in
    /// the order in which they are met going through each tree's best first or, where `in_order` is
    /// false, in any order.
    fn distribution(&mut self, row: usize, in_order: bool, mut visit: impl FnMut(u32, f32)) {
        if let [_] = self.members {
            let shares = self.shares(0, row, in_order).iter();
            return shares.for_each(|&(label, share)| visit(label, share));
        }
        let mut found = std::mem::take(&mut self.found);
        let mut place_of = std::mem::take(&mut self.place_of);
        found.clear();
        place_of.clear();
        for number in 0..self.members.len() {
            for &(label, share) in self.shares(number, row, in_order) {
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

impl EnsemblePredictor<'_> {
    /// Fills `top` by the first labels of each leaf of frozen trees, if no others can be among
    /// the best: a label that was not met has at most the next share of each leaf.
    fn best_of_first(&mut self, row: usize, top: &mut TopK) -> bool {
        let Some(trees) = self.frozen else {
            return false;
        };
        let scale = (trees.len() as f32).recip();
        let leaves = trees.iter().zip(&self.leaves);
        let leaves = leaves.map(|(tree, leaves)| tree.leaves.get(leaves[row] as usize));
        // Sums in the order of the trees, as in `distribution`.
        let sum = |sum: f32, (_, share): &(u32, f32)| sum + share;
        top.clear();
        self.found.clear();
        for at in 0..=FIRST_LABELS {
            let most = leaves.clone().filter_map(|leaf| leaf.get(at));
            // Not of equals: the lower label comes first.
            if most.fold(0.0, sum) * scale < top.bar() {
                return true;
            }
            for &(label, _) in leaves.clone().filter_map(|leaf| leaf.get(at)) {
                if self.found.iter().all(|&(known, _)| known != label) {
                    let of_label = leaves
                        .clone()
                        .filter_map(|leaf| leaf.iter().find(|&&(other, _)| other == label));
                    self.found.push((label, 0.0));
                    top.push(label, of_label.fold(0.0, sum) * scale);
                }
            }
        }
        false
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
        if let Some([tree]) = self.frozen {
            for (row, (labels, scores)) in rows.enumerate() {
                // A leaf's labels are in order already.
                let leaf = tree.leaves.get(self.leaves[0][row] as usize);
                let out = labels.iter_mut().zip(scores);
                for (&(label, share), (l, s)) in leaf.iter().zip(out) {
                    *l = label as i32;
                    *s = share;
                }
            }
            return Ok(());
        }
        let mut top = TopK::new(k.min(self.members[0].learner.n_classes));
        for (row, (labels, scores)) in rows.enumerate() {
            if !self.best_of_first(row, &mut top) {
                top.clear();
                self.distribution(row, false, |label, share| top.push(label, share));
            }
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

    /// The distribution over all classes. A leaf keeps its most common labels only, so that a
    /// row may add up to a little less than 1 beforehand; it is brought to 1.
    fn all_scores(&mut self, scores: &mut [f32], _control: &Control) -> Result<bool> {
        let n_classes = self.members[0].learner.n_classes;
        for (row, shares) in scores.chunks_mut(n_classes).enumerate() {
            let mut sum = 0.0;
            self.distribution(row, true, |label, share| {
                shares[label as usize] = share;
                sum += share;
            });
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Ok(true)
    }
}
