//! Many regressors of which an example needs a few: those of the nodes on its path.
//!
//! Each regressor's weights lie together, so that a node costs a stretch of
//! memory and not a cache miss per feature. Cost per example and regressor:
//! O(non-zeros), or O(columns) in vector registers where most are filled.
//!
//! A frozen tree defines the predictions, down to the order in which products are added up;
//! [`Regressors::frozen_score`] follows it on the weights as they lie in a tree that learns on.

use super::nag::Target;
use super::pn::{bounded_score, Scores};
use super::{
    nag, padded, AlignedRow, Block, Loss, NagSlot, NagTotals, PathExample, Power, Preconditioner,
    Span, Weights,
};
use crate::choices;
use crate::file::LARGEST;

/// The weights of a regressor of "nag", without the sums beside them.
fn plain(weights: &Weights<NagSlot>) -> Weights<f32> {
    match weights {
        Weights::Table(table) => {
            Weights::Table(table.iter().map(|(key, slot)| (key, slot.w)).collect())
        }
        Weights::Row(row) => {
            let mut plain = AlignedRow::new(row.len());
            for (plain, slot) in plain.iter_mut().zip(row.iter()) {
                *plain = slot.w;
            }
            Weights::Row(plain)
        }
    }
}

/// A router's step has fallen to 1/sqrt(2) after so many trainings, and so many
/// more per effective dimension of the example: rare features are still to be
/// learned when frequent ones have long settled. Found on held-out parts of the
/// training data; a factor of 2 either way changes little.
const AGE_UNIT: f32 = 4.0;
/// See [`AGE_UNIT`].
const AGE_UNIT_PER_DIMENSION: f32 = 0.03;

/// Step sizes of routers: after n trainings rate / sqrt(1 + decay n / (4 + 0.03 d)) for
/// an example of effective dimension d.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    rate: f32,
    decay: f32,
}

impl Rate {
    /// From the options of the same names.
    pub fn new(learning_rate: f64, decay: f64) -> Self {
        Self {
            rate: learning_rate.min(LARGEST.into()) as f32,
            decay: decay.min(LARGEST.into()) as f32,
        }
    }

    /// The step, times `importance`, of a router that was trained on `n` examples.
    #[inline]
    pub fn step(self, importance: f32, n: f64, example: &PathExample) -> f32 {
        let age = n as f32 / (AGE_UNIT + AGE_UNIT_PER_DIMENSION * example.dimension());
        (importance * self.rate).min(f32::MAX) / (1.0 + self.decay * age).sqrt()
    }
}

choices! {
    /// In which direction a regressor steps.
    pub enum Optimizer {
        /// Preconditioned, normalised: [`Preconditioner`]. No state per weight.
        Pn = "pn",
        /// Normalised adaptive gradient: Vowpal Wabbit's default.
        Nag = "nag",
    }
}

/// Regressors by number, all of one optimiser.
#[derive(Debug, Clone)]
pub struct Regressors {
    /// Columns of an example, padded.
    pub(super) width: usize,
    loss: Loss,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Pn(Preconditioner, Vec<Weights<f32>>),
    Nag(Span, Vec<(NagTotals, Weights<NagSlot>)>),
    /// Of any optimiser, without its state: for prediction only.
    Plain(Span, Vec<Weights<f32>>),
}

impl Regressors {
    /// None yet; for examples of `width` columns.
    pub fn new(optimizer: Optimizer, loss: Loss, width: usize) -> Self {
        let kind = match optimizer {
            Optimizer::Pn => Kind::Pn(Preconditioner::new(Power::Half, padded(width)), Vec::new()),
            Optimizer::Nag => Kind::Nag(Span::default(), Vec::new()),
        };
        Self {
            width: padded(width),
            loss,
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
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows.len(),
            Kind::Nag(_, rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a regressor of zero weights and returns its number.
    pub fn push(&mut self) -> u32 {
        let number = self.len() as u32;
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows.push(Weights::default()),
            Kind::Nag(_, rows) => rows.push(Default::default()),
        }
        number
    }

    /// To be called once per example that will be learned from, before any
    /// [`Self::learn`]: decides on its form and computes its step direction.
    pub fn prepare(&mut self, example: &mut PathExample, importance: f32) {
        example.settle(self.width);
        example.dimension = example.row.columns.len() as f32;
        if let Kind::Pn(preconditioner, _) = &mut self.kind {
            example.dimension =
                preconditioner.direction(&example.row, importance, &mut example.direction);
            example.settle_direction();
        }
    }

    /// Score of regressor `number`, not clamped.
    #[inline]
    pub fn score(&self, number: u32, example: &PathExample) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => bounded_score(example.dot(&rows[number])),
            Kind::Nag(_, rows) => nag::product(&rows[number].1, &example.row),
        }
    }

    /// Regressor `number` learns target `y` with a step of `a` (learning rate
    /// times importance); `importance` is what adaptive sums count.
    ///
    /// `ahead` gets the score after learning as soon as it is known and may return the
    /// number of the next regressor, whose weights are then prefetched while
    /// these are written.
    #[inline]
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
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => {
                let before = bounded_score(example.dot(&rows[number]));
                // The direction is normalised: a step moves the score by its own length.
                let step = example.limit.shorten(self.loss.step(y, before, a, 1.0));
                let after = before + step;
                if let Some(next) = ahead(after) {
                    rows[next as usize].prefetch(&example.row.columns);
                }
                if step != 0.0 {
                    example.add(step, &mut rows[number], self.width);
                }
                Scores {
                    before,
                    after,
                    raw: after,
                }
            }
            Kind::Nag(span, rows) => {
                let target = Target { y, a, importance };
                let (regressor, row) = (&mut rows[number], &example.row);
                nag::learn(regressor, span, self.loss, row, target, self.width)
            }
        }
    }

    /// The weights of regressor `number` alone, as prediction needs them.
    pub fn plain(&self, number: u32) -> Weights<f32> {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows[number].clone(),
            Kind::Nag(_, rows) => plain(&rows[number].1),
        }
    }

    /// The score of regressor `number` for row `i` of `block`, to the bit that of its
    /// [`plain`](Self::plain) weights in a frozen tree.
    #[inline]
    pub fn frozen_score(&self, number: u32, block: &Block, i: usize) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => block.dot(i, &rows[number]),
            Kind::Nag(_, rows) => block.dot(i, &plain(&rows[number].1)),
        }
    }

    /// The same for prediction only: without what an optimiser keeps.
    #[must_use]
    pub fn for_prediction(&self) -> Self {
        let weights = (0..self.len() as u32).map(|number| self.plain(number));
        Self {
            width: self.width,
            loss: self.loss,
            kind: Kind::Plain(self.span(), weights.collect()),
        }
    }

    /// Widens the span that predictions are clamped to ("nag") to contain `other`.
    pub fn widen(&mut self, other: Span) {
        if let Kind::Nag(span, _) = &mut self.kind {
            span.widen(other.low);
            span.widen(other.high);
        }
    }

    /// What predictions are clamped to before their sign is taken.
    pub fn span(&self) -> Span {
        match &self.kind {
            Kind::Nag(span, _) | Kind::Plain(span, _) => *span,
            _ => Span::UNBOUNDED,
        }
    }
}
