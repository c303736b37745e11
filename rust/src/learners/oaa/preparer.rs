//! Preparation of rows into a [`Chunk`]: computes everything that does not depend on the class, once
//! per example and in order.

use super::chunk::{Chunk, NegativeSampler, PolynomialAverage, StepParams};
use super::Params;
use crate::data::{LocalIds, RowBuffer};
use crate::error::{Error, Result};
use crate::file::{is_count, LARGEST};
use crate::linear::{Loss, Power, Preconditioner, Span, StepLimit};
use crate::model::Learning;
use crate::persist;

/// Most examples of a chunk; fewer if they have [`MANY_VALUES`]. Threads wait for each other at the
/// end of a chunk.
const MAX_EXAMPLES: usize = 8192;

/// A chunk with that many values takes no more examples after the first [`MIN_EXAMPLES`], so that
/// short rows are read from the cache. Less for tests, whose few rows should fill chunks.
const MANY_VALUES: usize = if cfg!(test) { 1024 } else { 32_768 };
const MIN_EXAMPLES: usize = 512;

/// Most products of a chunk's values with classes: a chunk is learned in well under a second for any
/// number of classes.
const MAX_PRODUCTS: usize = 1 << 28;

/// State of the learner that all classes share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExamplePreparer {
    /// The row of weights ("slot") of each column. So memory grows with the features seen and not with
    /// the width of X.
    pub slots: LocalIds,
    /// Scales the steps of each slot (only "pn").
    pub preconditioner: Preconditioner,
    /// Number of passes so far, with fractions.
    pub passes: f64,
    pub average: PolynomialAverage,
    /// Span of the labels learned so far, to which scores are clamped (only "nag").
    pub span: Option<Span>,
    pub sampler: NegativeSampler,
}

persist!(ExamplePreparer {
    Meta passes;
    Meta average;
    Meta span;
    Meta importance = preconditioner.total;
    Meta sampler_position = sampler.position;
    Columns column_squares = preconditioner.squares;
} check check_stored);

impl ExamplePreparer {
    /// Returns the state before any example. Examples have `width` columns, and the last one is the
    /// constant.
    pub fn new(params: &Params, n_classes: usize, width: usize) -> Self {
        let mut slots = LocalIds::new(width);
        // The constant has slot 0: only its weights may start at a value other than zero.
        slots.insert(width as u32 - 1);
        Self {
            slots,
            preconditioner: Preconditioner::new(Power::Quarter, 0),
            passes: 0.0,
            average: PolynomialAverage::default(),
            span: params.is_adaptive().then(Span::default),
            sampler: NegativeSampler::new(params.n_negatives, n_classes, params.seed),
        }
    }

    /// Returns true if span and squares fit the optimizer.
    pub fn fits(&self, params: &Params, for_prediction: bool) -> bool {
        let has_squares = !params.is_adaptive() && !for_prediction;
        // Before the first example, the constant has a slot but no square.
        let n_squares = self.preconditioner.width();
        let is_new = n_squares == 0 && self.slots.len() == 1;
        self.span.is_some() == params.is_adaptive()
            && self.span.is_none_or(Span::is_sound)
            && (is_new || n_squares == if has_squares { self.slots.len() } else { 0 })
    }

    /// Returns the share of the average sums to subtract from the weights for prediction, if
    /// predictions use averages.
    pub fn average_share(&self) -> Option<f32> {
        let total = self.average.total;
        (total > 0.0).then(|| total.recip() as f32)
    }

    /// Returns the state for prediction only, with weights that are averaged already.
    pub fn for_prediction(&self) -> Self {
        Self {
            preconditioner: Preconditioner::new(Power::Quarter, 0),
            average: PolynomialAverage::default(),
            ..self.clone()
        }
    }

    /// Replaces the columns of a row by slots, for prediction. Columns without a slot have no
    /// weights and are dropped.
    pub fn translate(&self, row: &mut RowBuffer) {
        let mut n = 0;
        for at in 0..row.columns.len() {
            if let Some(slot) = self.slots.get(row.columns[at]) {
                row.columns[n] = slot;
                row.values[n] = row.values[at];
                n += 1;
            }
        }
        row.columns.truncate(n);
        row.values.truncate(n);
    }

    /// Checks numbers from a file.
    fn check_stored(&self) -> Result<()> {
        self.preconditioner.check_sums()?;
        let is_sound = is_count(&self.passes) && self.average.is_sound();
        let error = || Error::data("passes or averages are out of range");
        is_sound.then_some(()).ok_or_else(error)
    }

    /// Fills `chunk` with as many of the first examples of `order` as fit, at least one if there is
    /// any.
    pub fn fill_chunk(
        &mut self,
        params: &Params,
        learning: &mut Learning<'_>,
        order: &[u32],
        chunk: &mut Chunk,
    ) {
        let max_values = MAX_PRODUCTS / chunk.n_classes;
        let (batch, is_stream) = (learning.batch, learning.is_stream());
        let preparation = &mut *learning.preparation;
        chunk.clear();
        if order.is_empty() {
            return;
        }
        chunk.rescaling = self.average.rescale();
        let mut row = RowBuffer::default();
        let (mut direction, mut labels, mut negatives) = (Vec::new(), Vec::new(), Vec::new());
        for &i in order {
            let (n, n_values) = (chunk.rows.len(), chunk.rows.n_values());
            let is_full = n >= MIN_EXAMPLES && n_values >= MANY_VALUES;
            if is_full || n == MAX_EXAMPLES || n_values > max_values {
                break;
            }
            let i = i as usize;
            preparation.read_to_learn(&batch.rows, i, is_stream, &mut row);
            for column in &mut row.columns {
                *column = self.slots.insert(*column);
            }
            let importance = batch.weight(i);
            // "nag" has a direction of its own for each class.
            if !params.is_adaptive() {
                self.preconditioner.widen(self.slots.len());
                self.preconditioner
                    .direction(&row, importance, &mut direction);
            }
            batch.targets.read(i, &mut labels);
            self.sampler.draw(&labels, &mut negatives);
            // With "nag" the sums of gradients already reduce the rate.
            let passes = if params.is_adaptive() {
                0.0
            } else {
                self.passes
            };
            let eta = params.rate() / (1.0 + passes).sqrt();
            let average_factor = self.average.total as f32;
            let step_params = StepParams {
                eta: eta.min(LARGEST.into()) as f32,
                importance,
                limit: StepLimit::new(&direction, average_factor),
                average_factor,
                span: self.span,
            };
            chunk.push(&row, &direction, &labels, &negatives, step_params);
            self.passes += learning.clock;
            if !params.is_adaptive() {
                self.average.advance();
            }
            if let Some(span) = &mut self.span {
                widen(span, params.loss.single(), labels.len(), chunk.n_classes);
            }
        }
    }
}

/// Widens the span to the targets of an example: +1 if it has a label, -1 if it lacks one.
fn widen(span: &mut Span, loss: Option<Loss>, n_labels: usize, n_classes: usize) {
    let lowest = if n_labels < n_classes { -1.0 } else { 0.0 };
    let (low, high) = match loss {
        Some(Loss::Logistic) => (-50.0, 50.0),
        _ => (lowest, f32::from(n_labels > 0)),
    };
    span.widen(low);
    span.widen(high);
}
