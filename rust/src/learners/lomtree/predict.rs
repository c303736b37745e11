//! Predictions for a block of rows: the label distributions of the leaves that the trees route
//! each row to, averaged over the trees. Per row and tree O(depth * non-zeros), and O(1) per
//! label of the leaf.

use super::frozen::FrozenTree;
use super::learner::LomTree;
use crate::classifier::{Member, Predictor, TopK};
use crate::control::Control;
use crate::data::Rows;
use crate::error::Result;
use crate::linear::{Block, Table};
use crate::tree::Groups;

/// What one thread predicts with.
#[derive(Debug, Default)]
pub struct EnsemblePredictor<'a> {
    members: &'a [Member<LomTree>],
    trees: &'a [FrozenTree],
    /// Trees of a `fit` all scale alike; those of a stream each in its own way.
    all_alike: bool,
    block: Block,
    groups: Groups,
    /// Per tree, the leaf of each row that was read.
    leaves: Vec<Vec<u32>>,
    /// Sum of shares per label that has one in some tree.
    sums: Table<f32>,
    /// These labels in the order in which they were met first.
    found: Vec<u32>,
}

impl<'a> EnsemblePredictor<'a> {
    pub(super) fn new(members: &'a [Member<LomTree>], trees: &'a [FrozenTree]) -> Self {
        let mut pairs = members.windows(2);
        Self {
            members,
            trees,
            all_alike: pairs.all(|pair| pair[0].preparation == pair[1].preparation),
            leaves: vec![Vec::new(); trees.len()],
            ..Self::default()
        }
    }

    /// Calls `visit` with each label that has a share in a row that was read, and its mean share.
    fn distribution(&mut self, row: usize, mut visit: impl FnMut(u32, f32)) {
        if let [tree] = self.trees {
            let shares = tree.leaves.get(self.leaves[0][row] as usize);
            shares
                .iter()
                .for_each(|&(label, share)| visit(label, share));
            return;
        }
        self.sums.clear();
        self.found.clear();
        for (tree, leaves) in self.trees.iter().zip(&self.leaves) {
            for &(label, share) in tree.leaves.get(leaves[row] as usize) {
                let sum = self.sums.entry(label);
                *sum += share;
                if self.sums.len() > self.found.len() {
                    self.found.push(label);
                }
            }
        }
        let scale = (self.trees.len() as f32).recip();
        for &label in &self.found {
            visit(label, *self.sums.entry(label) * scale);
        }
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
        for (number, (tree, leaves)) in self.trees.iter().zip(&mut self.leaves).enumerate() {
            control.check()?;
            if number == 0 || !self.all_alike {
                let preparation = &self.members[number].preparation;
                let width = tree.routers.width();
                self.block.fill(preparation, rows, which.clone(), width);
            }
            leaves.resize(which.len(), 0);
            tree.routers.route(&self.block, &mut self.groups, leaves);
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
        if let [tree] = self.trees {
            for ((labels, scores), &leaf) in rows.zip(&self.leaves[0]) {
                // A leaf's labels are in order already.
                let best = tree.leaves.get(leaf as usize).iter();
                for (&(label, share), (l, s)) in best.zip(labels.iter_mut().zip(scores)) {
                    *l = label as i32;
                    *s = share;
                }
            }
            return Ok(());
        }
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

    /// The distribution over all classes. A leaf keeps its most common labels only, so that a
    /// row may add up to a little less than 1 beforehand; it is brought to 1.
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
