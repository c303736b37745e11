//! The examples of a training, which of them each tree leaves out, and the training of trees and
//! scorers on them.

use std::sync::Arc;

use super::centroids::Centroids;
use super::grow::grow;
use super::params::{Params, Scorers, N_NEGATIVES};
use super::predict::{LeafHits, MAX_BLOCK_ROWS};
use super::train_node::TrainingContext;
use super::tree::Tree;
use crate::control::Control;
use crate::data::{Batch, Examples, Preparation};
use crate::error::Result;
use crate::file::{Bundle, Nest};
use crate::learners::mix;
use crate::learners::one_against_some::{
    row_candidates, train, Candidates, DenseColumns, FitSample, GroupFacts, LabelScores,
    OneAgainstSome, ScorerParams,
};
use crate::memory;
use crate::model::seed_of;
use crate::params::Params as _;
use crate::threads::{map_with_worker, with_threads, Pool};

/// Prepared examples and the parameters that they are learned with.
#[derive(Debug)]
pub struct TrainingSet {
    pub(super) params: Params,
    pub(super) preparation: Preparation,
    /// The prepared examples.
    pub examples: Examples,
}

const KIND: &str = "ldsm_training";

impl TrainingSet {
    /// Reads the examples of `batch`, with the preparation `before` of an earlier fit if there was
    /// one.
    pub fn read(
        params: &Params,
        batch: &Batch<'_>,
        before: Option<&Preparation>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        let labeled = Examples::labeled_rows(batch);
        let weights = batch.relative_weights(&labeled);
        let batch = &batch.with_weights(weights.as_deref());
        check_memory(params, batch, &labeled, n_threads)?;
        let preparation = if let Some(preparation) = before {
            preparation.check_columns(&batch.rows)?;
            preparation.clone()
        } else {
            let (scaling, n_bits) = (params.scaling, params.n_bits);
            let present = batch.present();
            let mut preparation = Preparation::new(scaling, n_bits, &batch.rows, &present)?;
            preparation.observe_all(&batch.rows, &labeled, control)?;
            preparation
        };
        let n_labels = batch.targets.n_classes();
        Ok(Self {
            params: params.clone(),
            examples: Examples::read(batch, &preparation, n_labels, control)?,
            preparation,
        })
    }

    /// Completes `facts` by the columns of these rows and the parameters of scorers.
    pub fn complete(&self, facts: GroupFacts) -> GroupFacts {
        let dense = DenseColumns::find(&self.examples);
        GroupFacts {
            n_sampled: self.examples.len(),
            column_counts: self.examples.column_counts(),
            params: self.params.scorer_params(!dense.is_empty()),
            dense: dense.columns().to_vec(),
            ..facts
        }
    }

    pub(super) fn has_scorers(&self) -> bool {
        self.params.scorers == Scorers::OneAgainstSome
    }

    /// Returns the share of so many rows that no tree learns, because the join is fitted on them, and
    /// the share of the others that a tree leaves out.
    pub fn left_out(n_rows: usize) -> (f64, f64) {
        (FitSample::new(n_rows).share(), HELD_OUT_SHARE)
    }

    /// Returns the set with one row, for [`with_rows`](Self::with_rows) elsewhere.
    #[must_use]
    pub fn first_row(&self) -> Self {
        Self {
            params: self.params.clone(),
            preparation: self.preparation.clone(),
            examples: self.examples.chosen(|row| row == 0),
        }
    }

    /// Returns a set of other rows with the same parameters and preparation.
    pub fn with_rows(&self, batch: &Batch<'_>, control: &Control) -> Result<Self> {
        Self::read(&self.params, batch, Some(&self.preparation), 1, control)
    }

    /// Grows the trees of these numbers. Unless they learn all rows, each leaves some out if there are
    /// to be scorers.
    pub(super) fn grow_trees(
        &self,
        numbers: &[usize],
        learn_all: bool,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<Arc<Tree>>> {
        let context = TrainingContext {
            examples: &self.examples,
            params: &self.params,
            is_dense: self.examples.filled() > 0.5,
            control,
            copies: Pool::default(),
        };
        // With enough trees for all threads, no leaf needs to be trained ahead of its turn.
        let has_enough = numbers.len() >= 2 * n_threads;
        let n_ahead = if has_enough { 1 } else { n_threads };
        let (n_rows, seed) = (self.examples.len(), self.params.seed);
        let may_leave_out = self.has_scorers() && !learn_all;
        let grow_tree = |(): &mut (), i: usize| {
            let tree = numbers[i];
            let is_out = |&row: &u32| may_leave_out && leaves_out(seed, n_rows, tree, row);
            let rows = (0..n_rows as u32).filter(|row| !is_out(row)).collect();
            grow(&context, rows, seed_of(seed, tree), n_ahead).map(Arc::new)
        };
        with_threads(n_threads, |is_parallel| {
            map_with_worker(is_parallel, (numbers.len(), 1), || (), grow_tree)
        })?
    }

    /// Trains the scorers, if there are to be any, on candidates by all trees.
    pub(super) fn train_scorers(
        &self,
        trees: &[Arc<Tree>],
        n_threads: usize,
        control: &Control,
    ) -> Result<Option<OneAgainstSome>> {
        if !self.has_scorers() {
            return Ok(None);
        }
        with_threads(n_threads, |is_parallel| {
            let examples = &self.examples;
            let dense_columns = DenseColumns::find(examples);
            let params = self.params.scorer_params(!dense_columns.is_empty());
            let fit_sample = FitSample::new(examples.len());
            let (n, seed) = (examples.len(), params.seed);
            let found = candidates(
                examples,
                trees,
                &params,
                fit_sample,
                |tree, row| leaves_out(seed, n, tree, row),
                is_parallel,
                control,
            )?;
            train(
                examples,
                &dense_columns,
                found,
                params,
                is_parallel,
                control,
            )
            .map(Some)
        })?
    }

    /// Returns the centroids, if labels are to be re-ranked.
    pub(super) fn centroids(&self) -> Option<Centroids> {
        (self.params.beta < 1.0).then(|| Centroids::new(&self.examples))
    }

    /// Returns the approximate size in bytes, without the scales of the preparation.
    pub fn n_bytes(&self) -> usize {
        const BYTES_PER_ROW: usize = size_of::<(usize, usize, f32)>();
        let examples = &self.examples;
        let labels = size_of::<u32>() * examples.labels.entries().len();
        BYTES_PER_VALUE * examples.rows.n_values() + labels + BYTES_PER_ROW * examples.len()
    }

    /// Stores the set, to be sent to other machines that grow trees.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(KIND);
        bundle.put_meta("params", &self.params);
        let mut inner = Bundle::new("preparation");
        self.preparation.put(&mut inner);
        bundle.nest("preparation", inner);
        Nest::put(&self.examples, "examples", &mut bundle);
        bundle
    }

    /// Reads a set from [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(KIND)?;
        let preparation = Preparation::take(&mut bundle.unnest("preparation")?)?;
        let mut examples = Examples::default();
        Nest::fill(&mut examples, "examples", &mut bundle)?;
        let fits = examples.len() > 0 && examples.width == preparation.width();
        bundle.require(fits, "the examples have other columns than the preparation")?;
        let params: Params = bundle.take_meta("params")?;
        Ok(Self {
            params: params.check()?,
            preparation,
            examples,
        })
    }
}

/// Bytes of a value of a sparse row.
const BYTES_PER_VALUE: usize = size_of::<(u32, f32)>();

/// Returns an error if the training does not fit in memory. All trees share a copy of the examples
/// with labels. Each thread needs a copy of the node that it trains, which at the root is at least
/// half of them. Scorers need the negatives of each row by row, by label and with dual variables.
fn check_memory(
    params: &Params,
    batch: &Batch<'_>,
    labeled: &[u32],
    n_threads: usize,
) -> Result<()> {
    const BYTES_PER_NEGATIVE: usize = size_of::<(u32, u32, f32)>();
    let n_values = batch.rows.non_zeros(labeled);
    let n_classes = batch.targets.n_classes();
    let n_negatives = match params.scorers {
        Scorers::None => 0,
        // Random negatives are rarely the same if there are many labels.
        Scorers::OneAgainstSome => {
            n_classes.min(params.n_negatives.unwrap_or(N_NEGATIVES) as usize) / 2
        }
    };
    let copies = n_values.saturating_mul(BYTES_PER_VALUE * (2 + n_threads) / 2);
    let negatives = labeled
        .len()
        .saturating_mul(n_negatives * BYTES_PER_NEGATIVE);
    let what = format!("the copies of {n_values} values for {n_threads} threads and negatives");
    let instead = "take fewer threads (n_jobs), n_negatives or rows";
    memory::check(copies.saturating_add(negatives), &what, instead)
}

/// Share of the rows outside [`FitSample`] that each tree leaves out.
pub const HELD_OUT_SHARE: f64 = 0.15;

/// Smallest number of rows of which some are left out by all trees.
pub const MIN_ROWS: usize = 100;

/// Returns whether `tree` leaves `row` of `n_rows` out.
///
/// All trees leave out the rows of [`FitSample`], because the join and the calibration need the
/// scores of all trees together. Below [`MIN_ROWS`] rows the trees need each of them.
///
/// The other rows are left out by systematic sampling. A row has a random place on a circle of
/// length 1, and tree t leaves out the rows in the arc of length 0.15 that starts at t times 0.15.
/// So 15 % of the trees leave such a row out, rounded up or down, and no tree needs a list.
pub fn leaves_out(seed: u64, n_rows: usize, tree: usize, row: u32) -> bool {
    // Each tree keeps at least one row.
    if row as usize == tree % n_rows {
        return false;
    }
    if n_rows >= MIN_ROWS && FitSample::new(n_rows).contains(row) {
        return true;
    }
    let hash = mix(seed ^ (u64::from(row) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
    let place = (hash >> 11) as f64 / (1u64 << 53) as f64;
    // Turn the circle so that the arc starts at 0.
    let start = (tree as f64 * HELD_OUT_SHARE).fract();
    let place = place - start + f64::from(u8::from(place < start));
    place < HELD_OUT_SHARE
}

/// Returns the candidates of all rows by the trees that left them out, as `is_out` says; a row that
/// each tree has learned gets none.
pub fn candidates(
    examples: &Examples,
    trees: &[Arc<Tree>],
    params: &ScorerParams,
    fit_sample: FitSample,
    is_out: impl Fn(usize, u32) -> bool + Sync + Send,
    is_parallel: bool,
    control: &Control,
) -> Result<Candidates> {
    let n_rows = examples.len() as u32;
    let new_buffers = || (LeafHits::default(), LabelScores::new(examples.n_labels));
    let score_block = |(hits, scores): &mut (LeafHits, LabelScores), block: usize| {
        let start = (block * MAX_BLOCK_ROWS) as u32;
        let rows = start..n_rows.min(start + MAX_BLOCK_ROWS as u32);
        let (all_rows, width) = (&examples.rows, examples.width);
        hits.find(trees, all_rows, rows.clone(), width, &is_out, control)?;
        let candidates = rows.enumerate().map(|(i, row)| {
            hits.average(i, trees, scores);
            row_candidates(examples, row, scores, params.n_negatives, fit_sample)
        });
        Ok(candidates.collect::<Vec<_>>())
    };
    let blocks = (examples.len().div_ceil(MAX_BLOCK_ROWS), 1);
    let found = map_with_worker(is_parallel, blocks, new_buffers, score_block)?;
    Ok(found.into_iter().flatten().collect())
}
