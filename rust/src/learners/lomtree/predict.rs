//! Prediction for a block of rows: the label distributions of the leaves that the trees route a row
//! to, averaged over the trees. Per row and tree O(depth * non-zeros), and O(1) per label of a leaf.
//!
//! The distribution of a leaf is smoothed towards its parent's, which is smoothed towards the next
//! one above, up to the first node with enough labels of its own. So the shares at a leaf depend on
//! few nodes and labels: 3 and 50 in a tree of 1,000 classes. A tree in training computes them
//! nearly as fast as a frozen one reads them.

use super::learner::LomTree;
use super::node::Node;
use crate::control::Control;
use crate::data::{Ragged, Rows};
use crate::error::Result;
use crate::linear::Table;
use crate::model::{keep_best, Member, Predictor, TopK};
use crate::threads::Lent;
use crate::tree::{FrozenRouters, LearningTree, NodeId, Routers, RoutingMemory, Subtrees};

/// Most labels kept for a leaf. A leaf that could not split within the budget may have seen any
/// number of labels, and a prediction must not cost O(K).
const MAX_LEAF_LABELS: usize = 64;

/// Most labels of a node that is smoothed. With more labels, the parent's shares, which count as one
/// example, would hardly change its own. On held-out rows, errors and recall at 5 and 10 are the
/// same with 64 and 32.
const MAX_SMOOTHED_LABELS: usize = 16;

/// Typical number of labels at a row's leaves of several trees.
const EXPECTED_LABELS: usize = 700;

/// Labels of each leaf of several trees that are read first. If they decide the best label, the others
/// are not read: predictions of ten trees take 6 % (letter) to 12 % (naics) less time. For five labels
/// there is no gain.
const N_FIRST_LABELS: usize = 8;

/// Labels and their shares.
pub type Shares = Vec<(u32, f32)>;

/// The shares at a leaf, best first.
type Leaf<'a> = &'a [(u32, f32)];

impl LomTree {
    /// Returns the shares at leaf `id`, best first. Freezing stores the same.
    pub(super) fn shares_at(&self, id: NodeId) -> Shares {
        let mut path = vec![id];
        let mut at = id;
        while at != self.arena.root && self.is_smoothed(self.arena.node(at)) {
            at = self.arena.node(at).parent;
            path.push(at);
        }
        let mut shares = Vec::new();
        for &id in path.iter().rev() {
            shares = self.smoothed_shares(self.arena.node(id), &shares);
        }
        best_first(&mut shares);
        shares
    }

    /// Returns true if the shares at a node depend on its parent's.
    fn is_smoothed(&self, node: &Node) -> bool {
        node.labels.len() <= MAX_SMOOTHED_LABELS && self.rules.leaf_smoothing > 0.0
    }

    /// Returns the share of each label at a node, in any order: its arrivals and, unless empty, the
    /// shares at the `parent`, which count as a few examples. Labels with the same share as the
    /// majority label are put behind it by one unit in the last place.
    fn smoothed_shares(&self, node: &Node, parent: &[(u32, f32)]) -> Shares {
        let weight = self.rules.leaf_smoothing;
        let mut all = node.arrivals();
        if !parent.is_empty() {
            all += weight;
        }
        if all == 0.0 {
            return vec![(node.majority, 1.0)];
        }
        let parent_counts = parent.iter();
        let parent_counts = parent_counts.map(|&(label, share)| (label, weight * f64::from(share)));
        let mut counts: Vec<(u32, f64)> = parent_counts.collect();
        for (label, count) in node.label_arrivals() {
            let mut known = counts[..parent.len()].iter_mut();
            match known.find(|&&mut (known, _)| known == label) {
                Some((_, known)) => *known += count,
                None => counts.push((label, count)),
            }
        }
        let shares = counts.into_iter();
        let mut shares: Shares = shares.map(|(label, n)| (label, (n / all) as f32)).collect();
        let majority = shares.iter().find(|&&(label, _)| label == node.majority);
        if let Some(&(_, highest)) = majority {
            for (label, share) in &mut shares {
                if *label != node.majority && share.to_bits() == highest.to_bits() {
                    *share = share.next_down().max(0.0);
                }
            }
        }
        keep_best(&mut shares, MAX_LEAF_LABELS);
        shares
    }
}

/// Sorts by decreasing share, and equal shares by label.
pub(super) fn best_first(shares: &mut Shares) {
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

/// A tree for prediction in a few contiguous arrays, without label tables and optimizer state. The
/// terminals of its routers are positions among the leaves.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    routers: FrozenForm,
    /// Labels of each leaf with their shares, best first.
    pub(super) leaves: Ragged<(u32, f32)>,
}

/// The routers of a tree, by node if its examples are dense.
#[derive(Debug, Clone)]
enum FrozenForm {
    Nodes(FrozenRouters),
    Subtrees(Subtrees),
}

impl FrozenTree {
    /// Copies a tree. O(size of the tree).
    pub(super) fn new(learner: &LomTree, control: &Control) -> Result<Self> {
        let mut leaves = Ragged::default();
        let mut number = |leaf| {
            leaves.push(learner.shares_at(NodeId(leaf)));
            leaves.len() as u32 - 1
        };
        let routers = match Subtrees::new(learner, control, &mut number)? {
            Some(subtrees) => FrozenForm::Subtrees(subtrees),
            None => FrozenForm::Nodes(FrozenRouters::new(learner, control, number)?),
        };
        Ok(Self { routers, leaves })
    }
}

/// Predicts blocks of rows, for one thread.
#[derive(Debug)]
pub struct EnsemblePredictor<'a> {
    members: &'a [Member<LomTree>],
    frozen: Option<&'a [FrozenTree]>,
    /// True if all trees scale rows alike: after `fit`, but not after training on a stream.
    all_alike: bool,
    memory: Lent<'a, RoutingMemory>,
    /// Per tree, the leaf of each row of the block.
    leaves: Vec<Vec<u32>>,
    /// Labels with a share in some tree, in the order in which they were found, and sums of their
    /// shares.
    found: Shares,
    /// Position of a label in `found`, from 1.
    place_of: Table<u32>,
}

impl<'a> EnsemblePredictor<'a> {
    pub(super) fn new(
        members: &'a [Member<LomTree>],
        frozen: Option<&'a [FrozenTree]>,
        memory: Lent<'a, RoutingMemory>,
    ) -> Self {
        let mut pairs = members.windows(2);
        // Allocated at once, as a small table would grow in every call.
        let n_labels = if members.len() > 1 {
            EXPECTED_LABELS
        } else {
            0
        };
        Self {
            members,
            frozen,
            all_alike: pairs.all(|pair| pair[0].preparation == pair[1].preparation),
            memory,
            leaves: vec![Vec::new(); members.len()],
            found: Vec::new(),
            place_of: Table::with_capacity(n_labels),
        }
    }

    /// Calls `visit` with the number of each row of the block and its leaves, one of each tree.
    fn each_row(&mut self, mut visit: impl FnMut(&mut Self, usize, &[Leaf<'_>])) {
        let mut leaves = Vec::new();
        for row in 0..self.leaves[0].len() {
            let ids = self.leaves.iter().map(|leaves| leaves[row]);
            if let Some(trees) = self.frozen {
                leaves.clear();
                let found = ids.zip(trees);
                leaves.extend(found.map(|(id, tree)| tree.leaves.get(id as usize)));
                visit(self, row, &leaves);
            } else {
                let members = ids.zip(self.members);
                let shares = members.map(|(id, member)| member.learner.shares_at(NodeId(id)));
                let shares: Vec<Shares> = shares.collect();
                let leaves: Vec<Leaf<'_>> = shares.iter().map(Vec::as_slice).collect();
                visit(self, row, &leaves);
            }
        }
    }

    /// Calls `visit` with each label that has a share at one of a row's `leaves`, one of each tree,
    /// and its mean share. Labels come in the order of the trees, best first in each.
    fn distribution(&mut self, leaves: &[Leaf<'_>], mut visit: impl FnMut(u32, f32)) {
        if let [shares] = leaves {
            return shares
                .iter()
                .for_each(|&(label, share)| visit(label, share));
        }
        self.found.clear();
        self.place_of.clear();
        for leaf in leaves {
            for &(label, share) in *leaf {
                let place = self.place_of.entry(label);
                if *place == 0 {
                    self.found.push((label, share));
                    *place = self.found.len() as u32;
                } else {
                    self.found[*place as usize - 1].1 += share;
                }
            }
        }
        let scale = (leaves.len() as f32).recip();
        for &(label, sum) in &self.found {
            visit(label, sum * scale);
        }
    }

    /// Adds the first labels of each of a row's `leaves` to `top`. Returns false if other labels may
    /// be better: a label that was not added has at most the next share of each leaf.
    fn push_first(&mut self, leaves: &[Leaf<'_>], top: &mut TopK) -> bool {
        let scale = (leaves.len() as f32).recip();
        // In the order of the trees, as in `distribution`.
        let add = |sum: f32, (_, share): (u32, f32)| sum + share;
        self.found.clear();
        for at in 0..N_FIRST_LABELS {
            for &(label, _) in leaves.iter().filter_map(|leaf| leaf.get(at)) {
                if self.found.iter().all(|&(known, _)| known != label) {
                    self.found.push((label, 0.0));
                    let own = |leaf: &Leaf<'_>| leaf.iter().find(|entry| entry.0 == label).copied();
                    let sum = leaves.iter().filter_map(own).fold(0.0, add);
                    top.push(label, sum * scale);
                }
            }
            let next = leaves.iter().filter_map(|leaf| leaf.get(at + 1).copied());
            // Of equal scores, the lower label comes first.
            if next.fold(0.0, add) * scale < top.bar() {
                return true;
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
        for (number, (member, leaves)) in self.members.iter().zip(&mut self.leaves).enumerate() {
            control.check()?;
            if number == 0 || !self.all_alike {
                let width = member.learner.regressors().width();
                block.fill(&member.preparation, rows, which.clone(), width);
            }
            leaves.resize(which.len(), 0);
            match self.frozen.map(|trees| &trees[number].routers) {
                Some(FrozenForm::Subtrees(subtrees)) => subtrees.route(block, groups, leaves),
                Some(FrozenForm::Nodes(routers)) => routers.route(block, groups, leaves),
                None => Routers::Learning(&member.learner).route(block, groups, leaves),
            }
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
        if let Some([tree]) = self.frozen {
            // The labels of a leaf are in order already.
            let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (&leaf, (labels, scores)) in self.leaves[0].iter().zip(rows) {
                let places = labels.iter_mut().zip(scores);
                for (&(label, share), (l, s)) in tree.leaves.get(leaf as usize).iter().zip(places) {
                    (*l, *s) = (label as i32, share);
                }
            }
            return Ok(());
        }
        let mut top = TopK::new(k.min(self.members[0].learner.n_classes));
        self.each_row(|this, row, leaves| {
            top.clear();
            if k > 1 || !this.push_first(leaves, &mut top) {
                top.clear();
                this.distribution(leaves, |label, share| top.push(label, share));
            }
            let span = row * k..(row + 1) * k;
            top.write(&mut labels[span.clone()], &mut scores[span]);
        });
        Ok(())
    }

    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        for (tree, leaves) in self.leaves.iter().enumerate() {
            for (row, &leaf) in leaves.iter().enumerate() {
                visit(row, tree, leaf);
            }
        }
    }

    /// Writes the distribution over all classes. A leaf keeps only its most common labels, so the
    /// shares may add up to less than 1; they are divided by their sum.
    fn all_scores(&mut self, scores: &mut [f32], _control: &Control) -> Result<bool> {
        let n_classes = self.members[0].learner.n_classes;
        self.each_row(|this, row, leaves| {
            let shares = &mut scores[row * n_classes..(row + 1) * n_classes];
            let mut sum = 0.0;
            this.distribution(leaves, |label, share| {
                shares[label as usize] = share;
                sum += share;
            });
            shares.iter_mut().for_each(|share| *share /= sum);
        });
        Ok(true)
    }
}
