//! Many regressors, of which an example needs a few: those of the nodes on its path.
//!
//! The weights of a regressor are stored together, so that a node does not cost a cache miss per
//! feature. The cost per example and regressor is O(non-zeros), or O(columns) in vector registers
//! if most columns are filled.
//!
//! Predictions are defined by the frozen tree, including the order of sums.
//! [`Regressors::frozen_score`] computes the same on the weights of a tree that is still learning.

use std::borrow::Cow;

use super::nag::{Target, SIZES};
use super::pn::{bounded_score, Scores};
use super::{
    nag, padded, Block, Loss, NagSlot, NagTotals, PathExample, Power, Preconditioner, Span, Weights,
};
use crate::error::Result;
use crate::file::{is_count, is_sum, Bundle, Columns, Persist, Record, LARGEST};
use crate::{choices, persist, record};

/// Updates after which a router's step has decreased to 1/sqrt(2), for a decay of 1. Found on
/// held-out parts of the training data; a factor of 2 changes little.
const AGE_UNIT: f32 = 4.0;
/// Further updates per effective dimension of the example, because rare features need more updates
/// than frequent ones.
const AGE_UNIT_PER_DIMENSION: f32 = 0.03;

/// Step sizes of routers. After n updates, an example of effective dimension d has the step
/// rate / sqrt(1 + decay n / (4 + 0.03 d)).
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    rate: f32,
    decay: f32,
}

impl Rate {
    /// Creates step sizes from the parameters of the same names.
    pub fn new(learning_rate: f64, decay: f64) -> Self {
        Self {
            rate: learning_rate.min(LARGEST.into()) as f32,
            decay: decay.min(LARGEST.into()) as f32,
        }
    }

    /// Returns the step, times `importance`, of a router after `n` updates.
    pub fn step(self, importance: f32, n: f64, example: &PathExample) -> f32 {
        let age = n as f32 / (AGE_UNIT + AGE_UNIT_PER_DIMENSION * example.dimension());
        (importance * self.rate).min(f32::MAX) / (1.0 + self.decay * age).sqrt()
    }
}

choices! {
    /// Direction of the steps of a regressor.
    pub enum Optimizer {
        /// Preconditioned, normalized steps without state per weight: [`Preconditioner`].
        Pn = "pn",
        /// Normalized adaptive gradient steps, Vowpal Wabbit's default.
        Nag = "nag",
    }
}

/// Numbered regressors with one optimizer.
#[derive(Debug, Clone)]
pub struct Regressors {
    /// Padded number of columns.
    width: usize,
    loss: Loss,
    /// Predictions are clamped to this before their sign is taken; only "nag" has a limited span.
    span: Span,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pn(Preconditioner, Vec<Weights<f32>>),
    Nag(Vec<(NagTotals, Weights<NagSlot>)>),
    /// Weights of any optimizer without its state, for prediction only.
    Plain(Vec<Weights<f32>>),
}

impl Regressors {
    /// Creates an empty value for examples of `width` columns.
    pub fn new(optimizer: Optimizer, loss: Loss, width: usize) -> Self {
        let width = padded(width);
        let (span, kind) = match optimizer {
            Optimizer::Pn => {
                let preconditioner = Preconditioner::new(Power::Half, width);
                (Span::UNBOUNDED, Kind::Pn(preconditioner, Vec::new()))
            }
            Optimizer::Nag => (Span::default(), Kind::Nag(Vec::new())),
        };
        Self {
            width,
            loss,
            span,
            kind,
        }
    }

    /// Padded number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of regressors.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => all.len(),
            Kind::Nag(all) => all.len(),
        }
    }

    /// Adds a regressor of zero weights and returns its number.
    pub fn push(&mut self) -> u32 {
        let number = self.len() as u32;
        match &mut self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => all.push(Weights::default()),
            Kind::Nag(all) => all.push(Default::default()),
        }
        number
    }

    /// Chooses the storage of an example and computes its step direction. Call this once per
    /// example, before [`Self::learn`].
    pub fn prepare(&mut self, example: &mut PathExample, importance: f32) {
        example.settle(self.width);
        example.dimension = example.row.columns.len() as f32;
        if let Kind::Pn(preconditioner, _) = &mut self.kind {
            example.dimension =
                preconditioner.direction(&example.row, importance, &mut example.direction);
            example.settle_direction();
        }
    }

    /// Returns the score of regressor `number`, not clamped.
    pub fn score(&self, number: u32, example: &PathExample) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, all) => bounded_score(example.dot(&all[number])),
            Kind::Nag(all) => nag::product(&all[number].1, &example.row),
            // Only scorers that learned with "nag" are asked without freezing.
            Kind::Plain(all) => nag::product(&all[number], &example.row),
        }
    }

    /// Updates regressor `number` towards target `y` with a step of `a` (learning rate times
    /// importance weight). `importance` is the weight in adaptive sums.
    ///
    /// `ahead` gets the new score as soon as it is known, and may return the number of the next
    /// regressor, whose weights are then prefetched during the update.
    pub fn learn(
        &mut self,
        number: u32,
        example: &PathExample,
        y: f32,
        a: f32,
        importance: f32,
        ahead: impl FnOnce(f32) -> Option<u32>,
    ) -> Scores {
        let number = number as usize;
        match &mut self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => {
                let before = bounded_score(example.dot(&all[number]));
                // The direction is normalized, so a step changes the score by its length.
                let step = example.limit.shorten(self.loss.step(y, before, a, 1.0));
                let after = before + step;
                if let Some(next) = ahead(after) {
                    all[next as usize].prefetch(&example.row.columns);
                }
                if step != 0.0 {
                    example.add(step, &mut all[number], self.width);
                }
                Scores {
                    before,
                    after,
                    raw: after,
                }
            }
            Kind::Nag(all) => {
                let target = Target { y, a, importance };
                let (regressor, row) = (&mut all[number], &example.row);
                nag::learn(
                    regressor,
                    &mut self.span,
                    self.loss,
                    row,
                    target,
                    self.width,
                )
            }
        }
    }

    /// Returns the weights of regressor `number` without state of the optimizer.
    pub fn plain(&self, number: u32) -> Cow<'_, Weights<f32>> {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => Cow::Borrowed(&all[number]),
            Kind::Nag(all) => Cow::Owned(all[number].1.map(|slot| slot.w)),
        }
    }

    /// Number of slots in the table of regressor `number`; dense rows have none.
    pub fn n_slots(&self, number: u32) -> usize {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => all[number].n_slots(),
            Kind::Nag(all) => all[number].1.n_slots(),
        }
    }

    /// Returns whether the weights of regressor `number` are a dense row.
    pub fn is_row(&self, number: u32) -> bool {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => matches!(all[number], Weights::Row(_)),
            Kind::Nag(all) => matches!(all[number].1, Weights::Row(_)),
        }
    }

    /// Returns the score of regressor `number` for row `i` of `block`, to the bit that of its
    /// [`plain`](Self::plain) weights in a frozen tree.
    pub fn frozen_score(&self, number: u32, block: &Block, i: usize) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, all) | Kind::Plain(all) => block.dot(i, &all[number]),
            Kind::Nag(all) => block.dot_with(i, &all[number].1, |slot| slot.w),
        }
    }

    /// Returns the regressors without state of the optimizer, for prediction only.
    #[must_use]
    pub fn for_prediction(&self) -> Self {
        let weights = (0..self.len() as u32).map(|number| self.plain(number).into_owned());
        Self {
            kind: Kind::Plain(weights.collect()),
            ..*self
        }
    }

    /// Widens the span of "nag" to contain `other`.
    pub fn widen(&mut self, other: Span) {
        if let Kind::Nag(_) = self.kind {
            self.span.widen(other.low);
            self.span.widen(other.high);
        }
    }

    /// Returns the span to which predictions are clamped before their sign is taken.
    pub fn span(&self) -> Span {
        self.span
    }
}

/// Key of the flag for regressors without state of the optimizer.
const FOR_PREDICTION: &str = "for_prediction";

record!(NagSlot {
    w,
    g: is_sum,
    s: is_size
});
record!(NagTotals {
    t: is_count,
    n: is_count
});

/// Returns whether this is a valid size of a feature, which is 0 before its first update.
fn is_size(size: &f32) -> bool {
    *size == 0.0 || SIZES.contains(size)
}

persist!(Preconditioner {
    Meta total;
    Columns squares;
} check check_sums);

impl Persist for Regressors {
    fn put(&self, bundle: &mut Bundle) {
        let name = "weights";
        bundle.put_meta(FOR_PREDICTION, &matches!(self.kind, Kind::Plain(_)));
        if !matches!(self.kind, Kind::Pn(..)) {
            bundle.put("span", vec![self.span.low, self.span.high]);
        }
        match &self.kind {
            Kind::Pn(preconditioner, all) => {
                preconditioner.put(bundle);
                Columns::put(all, name, bundle);
            }
            Kind::Plain(all) => Columns::put(all, name, bundle),
            Kind::Nag(all) => {
                NagTotals::put(all.iter().map(|(totals, _)| totals), "totals", bundle);
                Weights::put(all.iter().map(|(_, weights)| weights), name, bundle);
            }
        }
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        let width = self.width;
        let for_prediction: bool = bundle.take_meta(FOR_PREDICTION)?;
        let is_same = for_prediction == matches!(self.kind, Kind::Plain(_));
        bundle.require(is_same, "\"for_prediction\" differs from that of the model")?;
        if !matches!(self.kind, Kind::Pn(..)) {
            let [low, high] = bundle.take_any("span")?[..] else {
                return Err(bundle.damaged("\"span\" must have two values"));
            };
            self.span = Span { low, high };
        }
        let fits = match &mut self.kind {
            Kind::Pn(preconditioner, all) => {
                preconditioner.fill(bundle)?;
                preconditioner.width() == width && fill_weights(all, width, bundle)?
            }
            Kind::Plain(all) => {
                let is_sound = self.span.is_sound() || self.span == Span::UNBOUNDED;
                fill_weights(all, width, bundle)? && is_sound
            }
            Kind::Nag(all) => {
                let mut found = Vec::new();
                let fits = fill_weights(&mut found, width, bundle)?;
                let totals = NagTotals::take(Some(found.len()), "totals", bundle)?;
                *all = totals.into_iter().zip(found).collect();
                fits && self.span.is_sound()
            }
        };
        bundle.require(
            fits,
            format_args!("the regressors do not match {width} columns"),
        )
    }
}

/// Restores weights and returns whether all of them match `width` columns.
fn fill_weights<S: Record + Copy + Default>(
    into: &mut Vec<Weights<S>>,
    width: usize,
    bundle: &mut Bundle,
) -> Result<bool> {
    Columns::fill(into, "weights", bundle)?;
    Ok(into.iter().all(|weights| weights.fits(width)))
}
