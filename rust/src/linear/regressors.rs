//! Many regressors of which an example needs a few: those of the nodes on its path.
//!
//! Each regressor's weights lie together, so that a node costs a stretch of
//! memory and not a cache miss per feature. Cost per example and regressor:
//! O(non-zeros), or O(columns) in vector registers where most are filled.

use super::frozen_score::{frozen_score, plain};
use super::step::{bounded_score, bounded_sum, product, Scores, Target};
use super::{adagrad, nag};
use super::{padded, Block, PathExample, Weights};
use super::{AdaSlot, Loss, NagSlot, NagTotals, Power, Preconditioner, Span};
use crate::alloc;
use crate::choices;

choices! {
    /// In which direction a regressor steps.
    pub enum Optimizer {
        /// Preconditioned, normalised: [`Preconditioner`]. No state per weight.
        Pn = "pn",
        /// Normalised adaptive gradient: Vowpal Wabbit's default.
        Nag = "nag",
        /// Each weight's rate falls with its own sum of squared gradients.
        Adagrad = "adagrad",
        /// The plain gradient.
        Sgd = "sgd",
    }
}

choices! {
    /// In which direction a router steps.
    pub enum RouterOptimizer {
        /// [`Optimizer::Pn`]
        Pn = "pn",
        /// [`Optimizer::Nag`]
        Nag = "nag",
    }
}

impl From<RouterOptimizer> for Optimizer {
    fn from(optimizer: RouterOptimizer) -> Self {
        match optimizer {
            RouterOptimizer::Pn => Self::Pn,
            RouterOptimizer::Nag => Self::Nag,
        }
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
    Sgd(Vec<Weights<f32>>),
    Adagrad(Vec<Weights<AdaSlot>>),
    Nag(Span, Vec<(NagTotals, Weights<NagSlot>)>),
    /// Of any optimiser, without its state: for prediction only.
    Plain(Span, Vec<Weights<f32>>),
}

/// Evaluates an expression of the list of regressors, whatever the type of their weights.
macro_rules! with_rows {
    ($kind:expr, $rows:ident => $result:expr) => {
        match $kind {
            Kind::Pn(_, $rows) | Kind::Sgd($rows) | Kind::Plain(_, $rows) => $result,
            Kind::Adagrad($rows) => $result,
            Kind::Nag(_, $rows) => $result,
        }
    };
}

impl Regressors {
    /// None yet; for examples of `width` columns.
    pub fn new(optimizer: Optimizer, loss: Loss, width: usize) -> Self {
        let kind = match optimizer {
            Optimizer::Pn => Kind::Pn(Preconditioner::new(Power::Half, padded(width)), Vec::new()),
            Optimizer::Sgd => Kind::Sgd(Vec::new()),
            Optimizer::Adagrad => Kind::Adagrad(Vec::new()),
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
        with_rows!(&self.kind, rows => rows.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the memory for `n` more regressors at once.
    pub fn reserve(&mut self, n: usize) {
        with_rows!(&mut self.kind, rows => alloc::reserve_exact(rows, n));
    }

    /// Adds a regressor of zero weights and returns its number.
    pub fn push(&mut self) -> u32 {
        let number = self.len() as u32;
        with_rows!(&mut self.kind, rows => {
            alloc::reserve(rows, 1);
            rows.resize_with(number as usize + 1, Default::default);
        });
        number
    }

    /// To be called once per example that will be learned from, before any
    /// [`Self::learn`]: decides on its form and computes its step direction.
    pub fn prepare(&mut self, example: &mut PathExample, importance: f32) {
        example.settle(self.width);
        example.dimension = example.row.columns.len() as f32;
        match &mut self.kind {
            Kind::Pn(preconditioner, _) => {
                example.dimension =
                    preconditioner.direction(&example.row, importance, &mut example.direction);
                // So the direction is normalised; an example of length 0 has none.
                example.ppu = 1.0;
                example.settle_direction();
            }
            Kind::Sgd(_) => {
                example.direction.clone_from(&example.row.values);
                let square = example.row.values.iter().map(|x| x * x).sum();
                example.ppu = bounded_sum(square);
                example.settle_direction();
            }
            Kind::Adagrad(_) | Kind::Nag(..) | Kind::Plain(..) => {}
        }
    }

    /// Score of regressor `number`, not clamped.
    #[inline]
    pub fn score(&self, number: u32, example: &PathExample) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) | Kind::Plain(_, rows) => {
                bounded_score(example.dot(&rows[number]))
            }
            Kind::Adagrad(rows) => product(&rows[number], &example.row, |slot| slot.w),
            Kind::Nag(_, rows) => product(&rows[number].1, &example.row, |slot| slot.w),
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
        let target = Target { y, a, importance };
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) | Kind::Plain(_, rows) => {
                let before = bounded_score(example.dot(&rows[number]));
                let step = self.loss.step(y, before, a, example.ppu);
                let step = example.limit.shorten(step);
                if let Some(next) = ahead(before + step * example.ppu) {
                    example.prefetch(&rows[next as usize]);
                }
                let weights = &mut rows[number];
                if step == 0.0 {
                    return Scores::unclamped(before, before);
                }
                example.add(step, weights, self.width);
                Scores::unclamped(before, before + step * example.ppu)
            }
            Kind::Adagrad(rows) => adagrad::learn(
                &mut rows[number],
                self.loss,
                &example.row,
                target,
                self.width,
            ),
            Kind::Nag(span, rows) => nag::learn(
                &mut rows[number],
                span,
                self.loss,
                &example.row,
                target,
                self.width,
            ),
        }
    }

    /// The weights of regressor `number` alone, as prediction needs them.
    pub fn plain(&self, number: u32) -> Weights<f32> {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) | Kind::Plain(_, rows) => plain(&rows[number]),
            Kind::Adagrad(rows) => plain(&rows[number]),
            Kind::Nag(_, rows) => plain(&rows[number].1),
        }
    }

    /// The score of regressor `number` for row `i` of `block`, to the bit that of its
    /// [`plain`](Self::plain) weights in a frozen tree; `at_top`: in its first levels.
    #[inline]
    pub fn frozen_score(&self, number: u32, block: &Block, i: usize, at_top: bool) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) | Kind::Plain(_, rows) => {
                frozen_score(&rows[number], block, i, at_top)
            }
            Kind::Adagrad(rows) => frozen_score(&rows[number], block, i, at_top),
            Kind::Nag(_, rows) => frozen_score(&rows[number].1, block, i, at_top),
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
