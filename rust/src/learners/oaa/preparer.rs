//! From rows to a [`Chunk`]: everything about an example that does not depend
//! on the class is computed here, once, in the order of the examples.

use super::chunk::{Chunk, FeatureSlots, NegativeSampler, PolynomialAverage, StepParams};
use super::tile::Tile;
use super::Params;
use crate::data::RowBuffer;
use crate::error::{Error, Result};
use crate::file::{is_count, LARGEST};
use crate::linear::{Loss, Optimizer, Power, Preconditioner, Span, StepLimit};
use crate::model::Learning;
use crate::persist;

/// Examples of a chunk, at most.
const MAX_EXAMPLES: usize = 512;

/// Products of a chunk's values with classes, at most, so that a chunk is
/// learned in well under a second whatever the number of classes.
const MAX_PRODUCTS: usize = 1 << 28;

/// The state of the learner that all classes share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExamplePreparer {
    pub slots: FeatureSlots,
    /// Of the slots ("pn").
    pub preconditioner: Preconditioner,
    /// Passes done, with fractions.
    pub passes: f64,
    pub average: PolynomialAverage,
    /// Scores are clamped to the span of the labels learned so far ("nag").
    pub span: Option<Span>,
    pub sampler: NegativeSampler,
    /// What the tiles' average sums are still to be multiplied by.
    rescaling: Option<f32>,
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
    /// For examples of `width` columns, the last of which is the constant.
    pub fn new(params: &Params, n_classes: usize, width: usize) -> Self {
        let mut slots = FeatureSlots::new(width);
        // The constant comes first: only its row starts at a value other than zero.
        slots.get_or_insert(width as u32 - 1);
        Self {
            slots,
            preconditioner: Preconditioner::new(Power::Quarter, 0),
            passes: 0.0,
            average: PolynomialAverage::default(),
            span: (params.optimizer == Optimizer::Nag).then(Span::default),
            sampler: NegativeSampler::new(params.n_negatives, n_classes, params.seed),
            rescaling: None,
        }
    }

    /// Whether span and squares are those of the optimizer.
    pub fn fits(&self, params: &Params, for_prediction: bool) -> bool {
        let has_span = params.optimizer == Optimizer::Nag;
        let is_pn = params.optimizer == Optimizer::Pn && !for_prediction;
        self.span.is_some() == has_span
            && self.span.is_none_or(Span::is_sound)
            && self.preconditioner.width() == if is_pn { self.slots.len() } else { 0 }
    }

    /// The share of the average sums that is taken off the weights to predict with, where these are
    /// averaged.
    pub fn average_share(&self) -> Option<f32> {
        let total = self.average.total();
        (total > 0.0).then(|| total.recip() as f32)
    }

    /// For prediction only, beside weights that are those to predict with.
    pub fn for_prediction(&self) -> Self {
        Self {
            preconditioner: Preconditioner::new(Power::Quarter, 0),
            average: PolynomialAverage::default(),
            ..self.clone()
        }
    }

    /// Multiplies the tiles' average sums by what was taken out of them, before they learn the next
    /// chunk.
    pub fn rescale_tiles(&mut self, tiles: &mut [Tile]) {
        if let Some(factor) = self.rescaling.take() {
            let sums = tiles.iter_mut().flat_map(|tile| tile.average_sums.to_mut());
            sums.for_each(|u| *u *= factor);
        }
    }

    /// What numbers that were restored are not.
    fn check_stored(&self) -> Result<()> {
        self.preconditioner.check_sums()?;
        let is_sound = is_count(&self.passes) && self.average.is_sound();
        let error = || Error::data("passes or averages are out of range");
        is_sound.then_some(()).ok_or_else(error)
    }

    /// Fills `chunk` with the first examples of `order`, as many as fit: at least one, if there is
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
        self.rescaling = self.average.rescale();
        let mut row = RowBuffer::default();
        let (mut direction, mut labels, mut negatives) = (Vec::new(), Vec::new(), Vec::new());
        for &i in order {
            if chunk.rows.len() == MAX_EXAMPLES || chunk.rows.n_values() > max_values {
                break;
            }
            let i = i as usize;
            if is_stream {
                preparation.observe_and_read(&batch.rows, i, &mut row);
            } else {
                preparation.read(&batch.rows, i, &mut row);
            }
            for column in &mut row.columns {
                *column = self.slots.get_or_insert(*column);
            }
            let importance = batch.weight(i);
            // A step moves the score by its length. "nag" has a direction for each class.
            if !params.is_adaptive() {
                self.preconditioner.widen(self.slots.len());
                self.preconditioner
                    .direction(&row, importance, &mut direction);
            }
            batch.targets.read(i, &mut labels);
            self.sampler.draw(&labels, &mut negatives);
            // The rate of "nag" is divided by sums of gradients as it is.
            let passes = if params.is_adaptive() {
                0.0
            } else {
                self.passes
            };
            let eta = params.rate() / (1.0 + passes).sqrt();
            let average_factor = self.average.total() as f32;
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

/// Widens the span to the targets of an example of `n_labels` labels: +1 if there is
/// one, -1 if there is any other class.
fn widen(span: &mut Span, loss: Option<Loss>, n_labels: usize, n_classes: usize) {
    let lowest = if n_labels < n_classes { -1.0 } else { 0.0 };
    let (low, high) = match loss {
        Some(Loss::Logistic) => (-50.0, 50.0),
        _ => (lowest, f32::from(n_labels > 0)),
    };
    span.widen(low);
    span.widen(high);
}
