//! LdSM as it is used from outside: an ensemble of trees.

use rayon::prelude::*;

use super::growth::{grow, Desks};
use super::score::Scores;
use super::split::Task;
use super::tree::Tree;
use super::walk::{RowBlock, Walker};
use super::{Examples, Params, NAME};
use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::passes::{Batch, Targets};
use crate::room::room;
use crate::shape;
use crate::threads::with_threads;
use crate::topk::TopK;
use crate::tree::{block_rows, in_blocks, row_values, NodeId};

/// LdSM.
#[derive(Debug, Clone)]
pub struct Ldsm {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Made from the rows of the first fit.
    pub(super) preparation: Option<Preparation>,
    pub(super) trees: Vec<Tree>,
}

/// Scores of some labels of each row, in CSR form.
#[derive(Debug, Default)]
pub struct SparseScores {
    /// Where each row begins, and the end.
    pub starts: Vec<i64>,
    /// Labels, increasing in each row.
    pub labels: Vec<i32>,
    /// Their scores.
    pub scores: Vec<f32>,
}

/// Rows that walk the trees together: many, so that few of a node's weights are
/// read for one row alone.
const BLOCK: usize = 4096;

impl Ldsm {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        shape::check_n_classes(n_classes)?;
        Ok(Self {
            params: params.check()?,
            n_classes,
            preparation: None,
            trees: Vec::new(),
        })
    }

    /// Grows trees until there are `n_estimators`: all of them, or what is missing
    /// of them if `adds` and some were grown before. On an error, or stopped half
    /// way, it stays as it was.
    pub fn fit(
        &mut self,
        batch: &Batch<'_>,
        adds: bool,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.check_labels(batch)?;
        let before = if adds { self.trees.len() } else { 0 };
        let preparation = match &self.preparation {
            Some(preparation) if before > 0 => {
                shape::check_columns(&batch.rows, self.params.n_bits, preparation.n_features())?;
                preparation.clone()
            }
            _ => self.prepare(batch, control)?,
        };
        let examples = Examples::read(batch, &preparation, self.n_classes, control)?;
        let task = Task {
            examples: &examples,
            params: &self.params,
            is_dense: self.params.is_dense(examples.filled()),
            used: None,
            control,
        };
        let missing = (self.params.n_estimators as usize).saturating_sub(before);
        control.set_total(missing as u64 * u64::from(self.params.max_nodes));
        let desks = Desks::new(&examples);
        let numbers = before..before + missing;
        let seed = |t: usize| {
            let step = (t as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.params.seed.wrapping_add(step)
        };
        let trees: Result<Vec<Tree>> = with_threads(n_threads, |parallel| {
            if parallel {
                let one = |t| grow(&task, seed(t), n_threads, &desks);
                numbers.into_par_iter().map(one).collect()
            } else {
                numbers.map(|t| grow(&task, seed(t), 1, &desks)).collect()
            }
        })?;
        let trees = trees?;
        self.trees.truncate(before);
        self.trees.extend(trees);
        self.preparation = Some(preparation);
        Ok(())
    }

    fn prepare(&self, batch: &Batch<'_>, control: &Control) -> Result<Preparation> {
        let mut preparation =
            Preparation::new(self.params.scaling, self.params.n_bits, &batch.rows)?;
        preparation.observe_all(&batch.rows, &batch.present(), control)?;
        Ok(preparation)
    }

    fn check_labels(&self, batch: &Batch<'_>) -> Result<()> {
        let n_classes = match batch.targets {
            Targets::One(labels) => labels.n_classes(),
            Targets::Sets(sets) => sets.n_classes(),
        };
        if n_classes == self.n_classes {
            return Ok(());
        }
        Err(Error::data(format!(
            "y is of {n_classes} classes, {NAME} was made for {}",
            self.n_classes
        )))
    }

    /// What rows are read by, if `rows` have the columns.
    fn check_columns(&self, rows: &Rows<'_>) -> Result<&Preparation> {
        let preparation = self
            .preparation
            .as_ref()
            .ok_or_else(shape::nothing_learned)?;
        shape::check_columns(rows, self.params.n_bits, preparation.n_features())?;
        Ok(preparation)
    }

    /// The `k` labels of highest score for each row, best first, into arrays of
    /// rows x k; [`TopK::NO_LABEL`] and minus infinity where fewer have a score.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let mut labels = room(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = room(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.block_rows(rows);
        let parts = labels.chunks_mut(step * k).zip(scores.chunks_mut(step * k));
        self.in_blocks(
            rows,
            step,
            parts,
            n_threads,
            control,
            |judge, (labels, scores)| {
                let mut top = TopK::new(k.min(self.n_classes));
                let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
                for (i, (labels, scores)) in (0..).zip(rows) {
                    top.clear();
                    judge.score(i);
                    for (label, score) in judge.scores.iter() {
                        top.push(label, score);
                    }
                    top.write(labels, scores);
                }
            },
        )?;
        Ok((labels, scores))
    }

    /// The labels whose score is above `threshold`, in increasing order, row by row.
    pub fn scores(
        &self,
        rows: &Rows<'_>,
        threshold: f32,
        n_threads: usize,
        control: &Control,
    ) -> Result<SparseScores> {
        let step = self.block_rows(rows);
        let mut blocks = Vec::new();
        blocks.resize_with(rows.n_rows().div_ceil(step), SparseScores::default);
        let parts = blocks.iter_mut();
        self.in_blocks(rows, step, parts, n_threads, control, |judge, found| {
            let mut of_row: Vec<(u32, f32)> = Vec::new();
            for i in 0..judge.block.len() as u32 {
                judge.score(i);
                of_row.clear();
                of_row.extend(judge.scores.iter().filter(|&(_, score)| score > threshold));
                of_row.sort_unstable_by_key(|&(label, _)| label);
                found.starts.push(of_row.len() as i64);
                found
                    .labels
                    .extend(of_row.iter().map(|&(label, _)| label as i32));
                found.scores.extend(of_row.iter().map(|&(_, score)| score));
            }
        })?;
        let mut all = SparseScores::default();
        all.starts.push(0);
        for block in blocks {
            let mut end = all.labels.len() as i64;
            all.starts.extend(block.starts.iter().map(|n| {
                end += n;
                end
            }));
            all.labels.extend(block.labels);
            all.scores.extend(block.scores);
        }
        Ok(all)
    }

    fn block_rows(&self, rows: &Rows<'_>) -> usize {
        block_rows(row_values(self.preparation.as_ref(), rows), BLOCK)
    }

    fn in_blocks<B: Send>(
        &self,
        rows: &Rows<'_>,
        step: usize,
        parts: impl Iterator<Item = B>,
        n_threads: usize,
        control: &Control,
        work: impl Fn(&mut Judge<'_>, B) + Sync + Send,
    ) -> Result<()> {
        let preparation = self.check_columns(rows)?;
        let new_judge = || Judge::new(self, preparation.width());
        in_blocks(
            rows.n_rows(),
            step,
            parts,
            n_threads,
            control,
            new_judge,
            |judge, which, part| {
                judge.block.read(rows, which, preparation);
                judge.walk(control)?;
                work(judge, part);
                Ok(())
            },
        )
    }

    /// How many products a prediction of `rows` is about.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// Nodes that a row visits in a tree.
        const NODES: usize = 32;
        let ways = self
            .trees
            .len()
            .saturating_mul(NODES * self.params.arity as usize);
        row_values(self.preparation.as_ref(), rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(ways)
    }

    /// How many products growing trees from `rows` is about, at least.
    pub fn fit_effort(&self, rows: &Rows<'_>) -> usize {
        let visits = self.params.n_estimators as usize * self.params.n_epochs as usize;
        rows.n_values()
            .saturating_mul(visits)
            .saturating_mul(self.params.arity as usize)
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
        self.preparation.as_ref().map_or(0, Preparation::n_features)
    }

    /// The trees.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }
}

/// What predicts blocks of rows.
struct Judge<'a> {
    trees: &'a [Tree],
    block: RowBlock,
    walker: Walker,
    /// The leaves of all rows, tree after tree, by row.
    arrivals: Vec<Vec<(u32, NodeId)>>,
    scores: Scores,
}

impl<'a> Judge<'a> {
    fn new(ldsm: &'a Ldsm, width: usize) -> Self {
        Self {
            trees: &ldsm.trees,
            block: RowBlock::default(),
            walker: Walker::new(width, ldsm.params.arity),
            arrivals: Vec::new(),
            scores: Scores::new(ldsm.n_classes),
        }
    }

    /// Sends the block down all trees.
    fn walk(&mut self, control: &Control) -> Result<()> {
        self.arrivals.iter_mut().for_each(Vec::clear);
        let n = self.arrivals.len().max(self.block.len());
        self.arrivals.resize_with(n, Vec::new);
        for (t, tree) in (0..).zip(self.trees) {
            control.check()?;
            let arrivals = &mut self.arrivals;
            self.walker.walk(tree, &self.block, |row, leaf| {
                arrivals[row as usize].push((t, leaf));
            });
        }
        Ok(())
    }

    /// Scores row `i` of the block.
    fn score(&mut self, i: u32) {
        self.scores.clear();
        let each = (self.trees.len() as f32).recip();
        for leaves in self.arrivals[i as usize].chunk_by(|a, b| a.0 == b.0) {
            let share = each / leaves.len() as f32;
            for &(t, leaf) in leaves {
                self.scores.add(&self.trees[t as usize], leaf, share);
            }
        }
    }
}
