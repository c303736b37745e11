//! The rows of a training, prepared once, what is trained on them, and which rows trees leave out.

use std::ops::Range;

use rayon::prelude::*;

use super::centroids::Centroids;
use super::grow::grow;
use super::params::{Params, Scorers};
use super::train_node::TrainingContext;
use super::traverse::LeafHits;
use super::tree::Tree;
use crate::control::Control;
use crate::data::{Batch, Examples, Preparation, RaggedRows};
use crate::error::Result;
use crate::file::{Bundle, Nest};
use crate::learners::mix;
use crate::learners::one_against_some::{
    row_candidates, train, Candidates, LabelScores, OneAgainstSome,
};
use crate::memory;
use crate::model::seed_of;
use crate::params::Params as _;
use crate::threads::{map_with_worker, with_threads, Pool};

/// Examples and how they are learned.
#[derive(Debug)]
pub struct TrainingSet {
    pub(super) params: Params,
    pub(super) preparation: Preparation,
    pub(super) examples: Examples,
}

const KIND: &str = "ldsm_training";

impl TrainingSet {
    /// The examples of `batch`, as an earlier fit has prepared them if there was one.
    pub fn read(
        params: &Params,
        batch: &Batch<'_>,
        before: Option<&Preparation>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        let labelled = Examples::labelled_rows(batch);
        let weights = batch.relative_weights(&labelled);
        let batch = &batch.with_weights(weights.as_deref());
        check_memory(params, batch, &labelled, n_threads)?;
        let preparation = if let Some(preparation) = before {
            preparation.check_columns(&batch.rows)?;
            preparation.clone()
        } else {
            let (scaling, n_bits) = (params.scaling, params.n_bits);
            let present = batch.present();
            let mut preparation = Preparation::new(scaling, n_bits, &batch.rows, &present)?;
            preparation.observe_all(&batch.rows, &labelled, control)?;
            preparation
        };
        let n_labels = batch.targets.n_classes();
        Ok(Self {
            params: params.clone(),
            examples: Examples::read(batch, &preparation, n_labels, control)?,
            preparation,
        })
    }

    /// Which rows each tree leaves out, if there are to be scorers.
    pub(super) fn held_out(&self) -> Option<HeldOut> {
        (self.params.scorers == Scorers::OneAgainstSome)
            .then(|| HeldOut::new(self.params.seed, self.examples.len()))
    }

    /// The trees of these numbers.
    pub(super) fn grow_trees(
        &self,
        numbers: &[usize],
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<Tree>> {
        let context = TrainingContext {
            examples: &self.examples,
            params: &self.params,
            is_dense: self.examples.filled() > 0.5,
            control,
            copies: Pool::default(),
        };
        let held_out = self.held_out();
        // Trees enough for all threads need no leaves trained ahead.
        let has_enough = numbers.len() >= 2 * n_threads;
        let ahead = if has_enough { 1 } else { n_threads };
        let rows = 0..self.examples.len() as u32;
        let grow_tree = |&number: &usize| {
            let seed = seed_of(self.params.seed, number);
            match held_out {
                None => grow(&context, rows.clone(), seed, ahead),
                Some(of) => grow(&context, of.training_rows(number), seed, ahead),
            }
        };
        with_threads(n_threads, |parallel| {
            if parallel {
                numbers.par_iter().map(grow_tree).collect()
            } else {
                numbers.iter().map(grow_tree).collect()
            }
        })?
    }

    /// The scorers, if there are to be any, beside all trees.
    pub(super) fn train_scorers(
        &self,
        trees: &[Tree],
        n_threads: usize,
        control: &Control,
    ) -> Result<Option<OneAgainstSome>> {
        let Some(held_out) = self.held_out() else {
            return Ok(None);
        };
        let (examples, params) = (&self.examples, self.params.scorer_params());
        with_threads(n_threads, |is_parallel| {
            let n_negatives = params.n_negatives;
            let found = candidates(examples, trees, held_out, n_negatives, is_parallel, control)?;
            train(examples, found, params, is_parallel, control).map(Some)
        })?
    }

    /// For the re-ranking, if there is to be any.
    pub(super) fn centroids(&self) -> Option<Centroids> {
        (self.params.beta < 1.0).then(|| Centroids::new(&self.examples))
    }

    /// Bytes that are held, about, without what is kept of the rows' scales.
    pub fn n_bytes(&self) -> usize {
        const BYTES_PER_VALUE: usize = size_of::<(u32, f32)>();
        const BYTES_PER_ROW: usize = size_of::<(usize, usize, f32)>();
        let examples = &self.examples;
        let labels = size_of::<u32>() * examples.labels.entries().len();
        BYTES_PER_VALUE * examples.rows.n_values() + labels + BYTES_PER_ROW * examples.len()
    }

    /// To be sent to where trees are grown.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(KIND);
        bundle.put_meta("params", &self.params);
        let mut inner = Bundle::new("preparation");
        self.preparation.put(&mut inner);
        bundle.nest("preparation", inner);
        Nest::put(&self.examples, "examples", &mut bundle);
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(KIND)?;
        let preparation = Preparation::take(&mut bundle.unnest("preparation")?)?;
        let mut examples = Examples::default();
        Nest::fill(&mut examples, "examples", &mut bundle)?;
        if examples.width != preparation.width() {
            return Err(bundle.damaged("examples are not as wide as their preparation"));
        }
        let params: Params = bundle.take_meta("params")?;
        Ok(Self {
            params: params.check()?,
            preparation,
            examples,
        })
    }
}

/// Refuses a training that does not fit in memory. It holds a copy of the examples with
/// labels for all trees, for each thread one of the node that it trains, at the root at least
/// half of them, and of scorers the negatives of each row: by row, by label and with their
/// dual variables.
fn check_memory(
    params: &Params,
    batch: &Batch<'_>,
    labelled: &[u32],
    n_threads: usize,
) -> Result<()> {
    const BYTES_PER_VALUE: usize = size_of::<(u32, f32)>();
    const BYTES_PER_NEGATIVE: usize = size_of::<(u32, u32, f32)>();
    let n_values = batch.rows.non_zeros(labelled);
    let n_classes = batch.targets.n_classes();
    let n_negatives = match params.scorers {
        Scorers::None => 0,
        // Drawn labels are seldom the same where they are many.
        Scorers::OneAgainstSome => n_classes.min(params.n_negatives as usize) / 2,
    };
    let copies = n_values.saturating_mul(BYTES_PER_VALUE * (2 + n_threads) / 2);
    let negatives = labelled
        .len()
        .saturating_mul(n_negatives * BYTES_PER_NEGATIVE);
    let what = format!("the copies of {n_values} values for {n_threads} threads and negatives");
    let instead = "take fewer threads (n_jobs), n_negatives or rows";
    memory::check(copies.saturating_add(negatives), &what, instead)
}

/// Share of the rows that each tree leaves out.
const HELD_OUT_SHARE: f64 = 0.2;

/// Systematic sampling: a row has a random place on a circle of length 1, and tree t leaves
/// out those in the arc of length `share` that begins at t times `share`. So of T trees each
/// row is left out by T times `share`, rounded up or down, and no tree needs a list.
#[derive(Debug, Clone, Copy)]
pub struct HeldOut {
    pub share: f64,
    pub seed: u64,
    pub n_rows: usize,
}

impl HeldOut {
    pub fn new(seed: u64, n_rows: usize) -> Self {
        Self {
            share: HELD_OUT_SHARE,
            seed,
            n_rows,
        }
    }

    /// Whether `tree` does not train on `row`.
    pub fn leaves_out(self, tree: usize, row: u32) -> bool {
        // Each tree keeps one row at least.
        if row as usize == tree % self.n_rows {
            return false;
        }
        let hash = mix(self.seed ^ (u64::from(row) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
        let place = (hash >> 11) as f64 / (1u64 << 53) as f64;
        // Where the arc begins is at 0 now.
        let begin = (tree as f64 * self.share).fract();
        let place = place - begin + f64::from(u8::from(place < begin));
        place < self.share
    }

    /// The rows that `tree` trains on.
    pub fn training_rows(self, tree: usize) -> impl Iterator<Item = u32> {
        (0..self.n_rows as u32).filter(move |&row| !self.leaves_out(tree, row))
    }
}

/// Rows that traverse the trees together.
const BLOCK_ROWS: usize = 4096;

/// What the trees that left a row out say of it; of a row that none did, nothing.
fn candidates(
    examples: &Examples,
    trees: &[Tree],
    held_out: HeldOut,
    n_negatives: usize,
    is_parallel: bool,
    control: &Control,
) -> Result<Candidates> {
    let n_rows = examples.len() as u32;
    let new_scorer = || OutOfSampleScorer::new(examples, trees, held_out);
    let one_block = |scorer: &mut OutOfSampleScorer<'_>, block: usize| {
        let from = (block * BLOCK_ROWS) as u32;
        let rows = from..n_rows.min(from + BLOCK_ROWS as u32);
        let mut found = Vec::with_capacity(rows.len());
        scorer.score(rows, control, |row, scores| {
            found.push(row_candidates(examples, row, scores, n_negatives));
        })?;
        Ok(found)
    };
    let blocks = (examples.len().div_ceil(BLOCK_ROWS), 1);
    let found = map_with_worker(is_parallel, blocks, new_scorer, one_block)?;
    Ok(found.into_iter().flatten().collect())
}

/// Scores rows by the trees that left them out.
pub struct OutOfSampleScorer<'a> {
    examples: &'a Examples,
    trees: &'a [Tree],
    held_out: HeldOut,
    hits: LeafHits,
    scores: LabelScores,
    /// The rows of a block that a tree left out.
    rows: RaggedRows,
}

impl<'a> OutOfSampleScorer<'a> {
    pub fn new(examples: &'a Examples, trees: &'a [Tree], held_out: HeldOut) -> Self {
        Self {
            examples,
            trees,
            held_out,
            hits: LeafHits::default(),
            scores: LabelScores::new(examples.n_labels),
            rows: RaggedRows::default(),
        }
    }

    /// Calls `visit` with each of `rows` and its scores.
    pub fn score(
        &mut self,
        rows: Range<u32>,
        control: &Control,
        mut visit: impl FnMut(u32, &LabelScores),
    ) -> Result<()> {
        let (mut n_trees, mut numbers) = (vec![0; rows.len()], Vec::new());
        self.hits.clear(rows.len(), self.trees.len());
        for t in 0..self.trees.len() as u32 {
            control.check()?;
            self.rows.clear();
            numbers.clear();
            for (number, row) in (0..).zip(rows.clone()) {
                if self.held_out.leaves_out(t as usize, row) {
                    let (columns, values) = self.examples.row(row);
                    self.rows.push(columns.iter().copied(), values);
                    numbers.push(number);
                    n_trees[number as usize] += 1;
                }
            }
            if !self.rows.is_empty() {
                let (hits, width) = (&mut self.hits, self.examples.width);
                hits.traverse(self.trees, t, &self.rows, width, |i| numbers[i as usize]);
            }
        }
        for (i, (row, n_trees)) in rows.zip(n_trees).enumerate() {
            self.hits.average(i, self.trees, n_trees, &mut self.scores);
            visit(row, &self.scores);
        }
        Ok(())
    }
}
