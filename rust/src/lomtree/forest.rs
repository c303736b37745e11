//! Several trees over the same examples, each in an order of its own; the
//! answer is the average of the distributions at the leaves they lead to.
//!
//! A single tree is a forest of one: this is what the outside sees.

use std::ops::Range;
use std::sync::OnceLock;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::{FrozenTree, Groups, Params, Report, Tree};
use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::passes::{Batch, Online};
use crate::progressive::Mistakes;
use crate::threads::with_threads;
use crate::topk::TopK;
use crate::tree::Block;

/// `LOMtree` as it is used: one tree or several.
#[derive(Debug, Clone)]
pub struct Forest {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Columns of X; 0 before anything was learned.
    pub(super) n_features: usize,
    pub(super) trees: Vec<Tree>,
    /// Made at the first prediction after learning.
    frozen: OnceLock<Vec<FrozenTree>>,
}

impl Forest {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        if n_classes == 0 || n_classes >= u32::MAX as usize / 2 {
            return Err(Error::parameter(
                "n_classes",
                n_classes,
                "from 1 to 2^31 - 1",
            ));
        }
        Ok(Self::from_parts(params.check()?, n_classes, 0, Vec::new()))
    }

    pub(super) fn from_parts(
        params: Params,
        n_classes: usize,
        n_features: usize,
        trees: Vec<Tree>,
    ) -> Self {
        Self {
            params,
            n_classes,
            n_features,
            trees,
            frozen: OnceLock::new(),
        }
    }

    /// Forgets everything and learns `batch` in several passes. Stopped half
    /// way, the trees are as far as they have come.
    pub fn fit(&mut self, batch: &Batch<'_>, n_threads: usize, control: &Control) -> Result<()> {
        let mut trees = self.plant(batch)?;
        if let Some(first) = trees.first_mut() {
            first.observe_all(&batch.rows);
            let preparation = first.preparation.clone();
            trees
                .iter_mut()
                .for_each(|tree| tree.preparation = preparation.clone());
        }
        let params = &self.params;
        let passes = u64::from(params.schedule.n_passes) * u64::from(params.n_estimators);
        control.set_total(passes * batch.rows.n_rows() as u64);
        let done = each(&mut trees, n_threads, |number, tree| {
            let mut schedule = params.schedule.clone();
            schedule.seed = seed_of(schedule.seed, number);
            schedule.fit(tree, batch, control)
        })?;
        self.n_features = batch.rows.n_cols();
        self.trees = trees;
        self.frozen = OnceLock::new();
        done
    }

    /// Learns `batch` in one pass on top of what is known. The first tree
    /// takes the rows as they come, further ones each in an order of its own.
    pub fn partial_fit(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        if self.trees.is_empty() {
            self.trees = self.plant(batch)?;
            self.n_features = batch.rows.n_cols();
        }
        self.check_columns(&batch.rows)?;
        self.frozen = OnceLock::new();
        let seed = self.params.schedule.seed;
        control.set_total(u64::from(self.params.n_estimators) * batch.rows.n_rows() as u64);
        each(&mut self.trees, n_threads, |number, tree| {
            let mut order = if tree.params.weighted_counts {
                batch.present()
            } else {
                (0..batch.rows.n_rows() as u32).collect()
            };
            if number > 0 {
                let seed = seed_of(seed ^ tree.progress().examples, number);
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            tree.stream();
            tree.learn(batch, &order, 0.0, control)
        })?
    }

    fn plant(&self, batch: &Batch<'_>) -> Result<Vec<Tree>> {
        batch.one_label_each("LOMtree")?;
        let Params {
            scaling, n_bits, ..
        } = self.params;
        let preparation = Preparation::new(scaling, n_bits, &batch.rows)?;
        let tree = Tree::new(&self.params, preparation, self.n_classes);
        Ok(vec![tree; self.params.n_estimators as usize])
    }

    /// An error where X has not the columns learned from. Hashed, any will do.
    fn check_columns(&self, rows: &Rows<'_>) -> Result<()> {
        if self.trees.is_empty() {
            return Err(Error::data("nothing was learned yet"));
        }
        if self.params.n_bits.is_none() && rows.n_cols() != self.n_features {
            return Err(Error::data(format!(
                "X has {} features, but the model learned from {}",
                rows.n_cols(),
                self.n_features
            )));
        }
        Ok(())
    }

    fn frozen(&self) -> &[FrozenTree] {
        self.frozen
            .get_or_init(|| self.trees.iter().map(Tree::freeze).collect())
    }

    /// The `k` labels of highest probability for each row, best first, into
    /// arrays of rows x k; [`TopK::NO_LABEL`] and minus infinity where the
    /// leaves know fewer.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        self.check_columns(rows)?;
        let mut labels = vec![TopK::NO_LABEL; rows.n_rows() * k];
        let mut scores = vec![f32::NEG_INFINITY; rows.n_rows() * k];
        if k == 0 {
            return Ok((labels, scores));
        }
        let blocks = labels
            .chunks_mut(FrozenTree::BLOCK * k)
            .zip(scores.chunks_mut(FrozenTree::BLOCK * k));
        self.in_blocks(
            rows,
            n_threads,
            control,
            blocks,
            |walker, (labels, scores)| {
                let mut top = TopK::new(k);
                for (i, (labels, scores)) in
                    labels.chunks_mut(k).zip(scores.chunks_mut(k)).enumerate()
                {
                    walker.best(i, &mut top, labels, scores);
                }
            },
        )?;
        Ok((labels, scores))
    }

    /// The distribution over all classes for each row: rows x classes. A leaf
    /// keeps its commonest labels only, so that a row may add up to a little
    /// less than 1 beforehand; it is brought to 1.
    pub fn predict_proba(
        &self,
        rows: &Rows<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<f32>> {
        self.check_columns(rows)?;
        let mut shares = vec![0.0f32; rows.n_rows() * self.n_classes];
        let blocks = shares.chunks_mut(FrozenTree::BLOCK * self.n_classes);
        self.in_blocks(rows, n_threads, control, blocks, |walker, block| {
            for (i, row) in block.chunks_mut(self.n_classes).enumerate() {
                let mut sum = 0.0;
                walker.distribution(i, |label, share| {
                    row[label as usize] = share;
                    sum += share;
                });
                row.iter_mut().for_each(|share| *share /= sum);
            }
        })?;
        Ok(shares)
    }

    /// Hands each block of output to `fill`, with a walker that knows the leaves
    /// of the block's rows.
    fn in_blocks<B: Send>(
        &self,
        rows: &Rows<'_>,
        n_threads: usize,
        control: &Control,
        blocks: impl Iterator<Item = B>,
        fill: impl Fn(&mut Walker<'_>, B) + Sync,
    ) -> Result<()> {
        control.set_total(rows.n_rows() as u64);
        let new_walker = || Walker::new(self);
        let one = |walker: &mut Walker<'_>, (number, block): (usize, B)| {
            control.check()?;
            let from = number * FrozenTree::BLOCK;
            walker.walk(rows, from..rows.n_rows().min(from + FrozenTree::BLOCK));
            fill(walker, block);
            control.tick(FrozenTree::BLOCK)
        };
        let blocks: Vec<(usize, B)> = blocks.enumerate().collect();
        with_threads(n_threads, |parallel| {
            if parallel {
                blocks.into_par_iter().try_for_each_init(new_walker, one)
            } else {
                let mut walker = new_walker();
                blocks
                    .into_iter()
                    .try_for_each(|block| one(&mut walker, block))
            }
        })?
    }

    /// The options.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Columns of X; 0 before anything was learned.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Examples learned, by each tree.
    pub fn n_examples_seen(&self) -> u64 {
        self.trees
            .first()
            .map_or(0, |tree| tree.progress().examples)
    }

    /// Share of examples that a tree got wrong before it learned them, over
    /// all trees.
    pub fn progressive_loss(&self) -> Option<f64> {
        let mut all = Mistakes::default();
        self.trees.iter().for_each(|tree| all.add(&tree.progress()));
        all.loss()
    }

    /// What there is to know of each tree.
    pub fn reports(&self) -> Vec<Report> {
        self.trees.iter().map(Tree::report).collect()
    }
}

/// Trees differ by their seeds; neighbouring seeds of the user's must not give
/// neighbouring forests the same trees.
fn seed_of(seed: u64, tree: usize) -> u64 {
    seed.wrapping_add((tree as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Runs `work` over the trees; each is finished or stopped when this returns.
fn each(
    trees: &mut [Tree],
    n_threads: usize,
    work: impl Fn(usize, &mut Tree) -> Result<()> + Sync,
) -> Result<Result<()>> {
    let results: Vec<Result<()>> = with_threads(n_threads.min(trees.len()), |parallel| {
        if parallel {
            let trees = trees.par_iter_mut().enumerate();
            trees.map(|(number, tree)| work(number, tree)).collect()
        } else {
            let trees = trees.iter_mut().enumerate();
            trees.map(|(number, tree)| work(number, tree)).collect()
        }
    })?;
    Ok(results.into_iter().collect())
}

/// One thread's way through the trees.
struct Walker<'a> {
    trees: &'a [FrozenTree],
    learners: &'a [Tree],
    /// Trees of a fitted forest scale alike; those of a stream each their own way.
    alike: bool,
    block: Block,
    groups: Groups,
    /// Per tree, the leaf of each row of the block.
    leaves: Vec<Vec<u32>>,
    /// Sum of shares per class, zero but for `touched`.
    sums: Vec<f32>,
    touched: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(forest: &'a Forest) -> Self {
        let learners = &forest.trees;
        let many = learners.len() > 1;
        Self {
            trees: forest.frozen(),
            learners,
            alike: learners
                .windows(2)
                .all(|pair| pair[0].preparation == pair[1].preparation),
            block: Block::default(),
            groups: Groups::default(),
            leaves: vec![Vec::new(); learners.len()],
            sums: vec![0.0; if many { forest.n_classes } else { 0 }],
            touched: Vec::new(),
        }
    }

    /// Finds the leaves of some rows in all trees.
    fn walk(&mut self, rows: &Rows<'_>, which: Range<usize>) {
        for (number, (tree, leaves)) in self.trees.iter().zip(&mut self.leaves).enumerate() {
            if number == 0 || !self.alike {
                let preparation = &self.learners[number].preparation;
                self.block
                    .fill(preparation, rows, which.clone(), tree.width());
            }
            leaves.resize(which.len(), 0);
            tree.route(&self.block, &mut self.groups, leaves);
        }
    }

    /// Writes the best labels of row `i` of the block and their mean shares.
    fn best(&mut self, i: usize, top: &mut TopK, labels: &mut [i32], scores: &mut [f32]) {
        if let [tree] = self.trees {
            // A leaf's labels are in order already.
            let (best, shares) = tree.shares(self.leaves[0][i]);
            for (at, (&label, &share)) in best.iter().zip(shares).take(labels.len()).enumerate() {
                labels[at] = label as i32;
                scores[at] = share;
            }
            return;
        }
        top.clear();
        self.distribution(i, |label, share| top.push(label, share));
        top.write(labels, scores);
    }

    /// Calls `visit` with each label that has a share at row `i` of the block
    /// and its mean share.
    fn distribution(&mut self, i: usize, mut visit: impl FnMut(u32, f32)) {
        if let [tree] = self.trees {
            let (labels, shares) = tree.shares(self.leaves[0][i]);
            labels
                .iter()
                .zip(shares)
                .for_each(|(&label, &share)| visit(label, share));
            return;
        }
        for (tree, leaves) in self.trees.iter().zip(&self.leaves) {
            let (labels, shares) = tree.shares(leaves[i]);
            for (&label, &share) in labels.iter().zip(shares) {
                let sum = &mut self.sums[label as usize];
                if *sum == 0.0 {
                    self.touched.push(label);
                }
                *sum += share;
            }
        }
        let scale = (self.trees.len() as f32).recip();
        for label in self.touched.drain(..) {
            visit(
                label,
                std::mem::take(&mut self.sums[label as usize]) * scale,
            );
        }
    }
}
