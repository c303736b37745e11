//! Several trees over the same examples, each in an order of its own; the
//! answer is the average of the distributions at the leaves they lead to.
//!
//! A single tree is a forest of one: this is what the outside sees.

use std::ops::Range;
use std::sync::OnceLock;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::{FrozenTree, Params, Report, Tree, NAME};
use crate::alloc::try_alloc;
use crate::classifier::checks;
use crate::classifier::Mistakes;
use crate::classifier::Online;
use crate::classifier::TopK;
use crate::classifier::{block_rows, in_blocks, row_values};
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::linear::{Block, Table};
use crate::threads::with_threads;
use crate::tree::{FrozenRouters, Groups};

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
        checks::check_n_classes(n_classes)?;
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

    /// Forgets everything and learns `batch` in several passes. On an error it
    /// stays as it was; stopped half way, the trees are as far as they have
    /// come, and those that have hardly begun are left out for good.
    pub fn fit(&mut self, batch: &Batch<'_>, n_threads: usize, control: &Control) -> Result<()> {
        let mut preparation = self.prepare(batch)?;
        preparation.observe_all(&batch.rows, &batch.present(), control)?;
        let mut trees = self.plant(&preparation);
        let params = &self.params;
        let passes = u64::from(params.schedule.n_passes) * u64::from(params.n_estimators);
        control.set_total(passes * batch.rows.n_rows() as u64);
        let results = each(&mut trees, n_threads, |number, tree| {
            let mut schedule = params.schedule.clone();
            schedule.seed = seed_of(schedule.seed, number);
            schedule.fit(tree, batch, control)
        })?;
        let finished: Vec<bool> = results.iter().map(Result::is_ok).collect();
        let done: Result<()> = results.into_iter().collect();
        if !matches!(done, Ok(()) | Err(Error::Stopped)) {
            return done;
        }
        if done.is_err() {
            leave_out_stragglers(&mut trees, &finished);
        }
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
            self.trees = self.plant(&self.prepare(batch)?);
            self.n_features = batch.rows.n_cols();
        }
        self.check_labels(batch)?;
        self.check_columns(&batch.rows)?;
        self.frozen = OnceLock::new();
        let seed = self.params.schedule.seed;
        control.set_total(self.trees.len() as u64 * batch.rows.n_rows() as u64);
        let results = each(&mut self.trees, n_threads, |number, tree| {
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
        })?;
        results.into_iter().collect()
    }

    fn prepare(&self, batch: &Batch<'_>) -> Result<Preparation> {
        self.check_labels(batch)?;
        Preparation::new(self.params.scaling, self.params.n_bits, &batch.rows)
    }

    fn plant(&self, preparation: &Preparation) -> Vec<Tree> {
        // Not copies of one: memory that is still zero costs nothing.
        (0..self.params.n_estimators)
            .map(|_| Tree::new(&self.params, preparation.clone(), self.n_classes))
            .collect()
    }

    fn check_labels(&self, batch: &Batch<'_>) -> Result<()> {
        checks::labels(batch, NAME, self.n_classes).map(|_| ())
    }

    fn check_columns(&self, rows: &Rows<'_>) -> Result<()> {
        if self.trees.is_empty() {
            return Err(checks::nothing_learned());
        }
        checks::check_columns(rows, self.params.n_bits, self.n_features)
    }

    /// The trees as prediction walks them: made by the first prediction after
    /// learning, at a cost of the whole trees' size.
    fn frozen(&self, control: &Control) -> Result<&[FrozenTree]> {
        if let Some(frozen) = self.frozen.get() {
            return Ok(frozen);
        }
        let trees = self.trees.iter().map(|tree| tree.freeze(control));
        let frozen = trees.collect::<Result<Vec<FrozenTree>>>()?;
        Ok(self.frozen.get_or_init(|| frozen))
    }

    /// How many products a prediction of `rows` is about, the making of the
    /// trees that prediction walks included.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// What a node costs there.
        const NODE: usize = 256;
        let nodes = self.trees.iter().map(|tree| tree.arena().nodes.len());
        let fresh = match self.frozen.get() {
            Some(_) => 0,
            None => nodes.sum::<usize>().saturating_mul(NODE),
        };
        self.walk_effort(rows).saturating_add(fresh)
    }

    /// How many products it is about to send `rows` down all trees.
    pub fn walk_effort(&self, rows: &Rows<'_>) -> usize {
        /// Nodes on a path.
        const DEPTH: usize = 32;
        let n_trees = self.params.n_estimators as usize;
        self.row_values(rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(DEPTH * n_trees)
    }

    /// Values of a prepared row, on average.
    fn row_values(&self, rows: &Rows<'_>) -> usize {
        row_values(self.trees.first().map(|tree| &tree.preparation), rows)
    }

    /// Rows to be predicted together.
    fn block_rows(&self, rows: &Rows<'_>) -> usize {
        block_rows(self.row_values(rows), FrozenRouters::BLOCK)
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
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let block = self.block_rows(rows) * k;
        let blocks = labels.chunks_mut(block).zip(scores.chunks_mut(block));
        self.in_blocks(
            rows,
            n_threads,
            control,
            blocks,
            |walker, (labels, scores)| {
                let mut top = TopK::new(k.min(self.n_classes));
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
        let mut shares = try_alloc(rows.n_rows(), self.n_classes, 0.0f32)?;
        let blocks = shares.chunks_mut(self.block_rows(rows) * self.n_classes);
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
        fill: impl Fn(&mut Walker<'_>, B) + Sync + Send,
    ) -> Result<()> {
        let frozen = self.frozen(control)?;
        in_blocks(
            rows.n_rows(),
            self.block_rows(rows),
            blocks,
            n_threads,
            control,
            || Walker::new(&self.trees, frozen),
            |walker, which, block| {
                walker.walk(rows, which, control)?;
                fill(walker, block);
                Ok(())
            },
        )
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

/// Leaves out trees that were stopped before they had seen half as much as the
/// one that has seen most: they would only vote for the few labels they know.
pub(super) fn leave_out_stragglers(trees: &mut Vec<Tree>, finished: &[bool]) {
    let seen = |tree: &Tree| tree.progress().examples;
    let most = trees.iter().map(seen).max().unwrap_or(0);
    let mut finished = finished.iter();
    trees.retain(|tree| *finished.next().unwrap_or(&true) || 2 * seen(tree) >= most);
}

/// Runs `work` over the trees; each is finished or stopped when this returns.
fn each(
    trees: &mut [Tree],
    n_threads: usize,
    work: impl Fn(usize, &mut Tree) -> Result<()> + Sync,
) -> Result<Vec<Result<()>>> {
    with_threads(n_threads.min(trees.len()), |parallel| {
        if parallel {
            let trees = trees.par_iter_mut().enumerate();
            trees.map(|(number, tree)| work(number, tree)).collect()
        } else {
            let trees = trees.iter_mut().enumerate();
            trees.map(|(number, tree)| work(number, tree)).collect()
        }
    })
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
    /// Sum of shares per label that some tree named.
    sums: Table<f32>,
    /// These labels in the order in which they were named first.
    named: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(learners: &'a [Tree], trees: &'a [FrozenTree]) -> Self {
        Self {
            trees,
            learners,
            alike: learners
                .windows(2)
                .all(|pair| pair[0].preparation == pair[1].preparation),
            block: Block::default(),
            groups: Groups::default(),
            leaves: vec![Vec::new(); learners.len()],
            sums: Table::new(),
            named: Vec::new(),
        }
    }

    /// Finds the leaves of some rows in all trees.
    fn walk(&mut self, rows: &Rows<'_>, which: Range<usize>, control: &Control) -> Result<()> {
        for (number, (tree, leaves)) in self.trees.iter().zip(&mut self.leaves).enumerate() {
            control.check()?;
            if number == 0 || !self.alike {
                let preparation = &self.learners[number].preparation;
                let width = tree.routers().width();
                self.block.fill(preparation, rows, which.clone(), width);
            }
            leaves.resize(which.len(), 0);
            tree.routers().route(&self.block, &mut self.groups, leaves);
        }
        Ok(())
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
        self.sums.clear();
        self.named.clear();
        for (tree, leaves) in self.trees.iter().zip(&self.leaves) {
            let (labels, shares) = tree.shares(leaves[i]);
            for (&label, &share) in labels.iter().zip(shares) {
                let sum = self.sums.entry(label);
                *sum += share;
                if self.sums.len() > self.named.len() {
                    self.named.push(label);
                }
            }
        }
        let scale = (self.trees.len() as f32).recip();
        for &label in &self.named {
            visit(label, *self.sums.entry(label) * scale);
        }
    }
}
