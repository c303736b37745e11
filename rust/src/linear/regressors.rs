//! Many regressors of which an example meets a few: those on its path.
//!
//! Each regressor's weights lie together, so that a node costs a stretch of
//! memory and not a cache miss per feature.

use super::{padded, PathExample, Weights};
use super::{Loss, NagSlot, NagTotals, Optimizer, Power, Preconditioner, Span};
use crate::data::RowBuffer;

/// A score before and after the regressor learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Before, not clamped.
    pub before: f32,
    /// After; what a router descends by.
    pub after: f32,
    /// After, not clamped to the labels seen (only `Nag` clamps).
    pub raw: f32,
}

impl Scores {
    fn unclamped(before: f32, after: f32) -> Self {
        Self {
            before,
            after,
            raw: after,
        }
    }
}

/// Weight and sum of squared gradients.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AdaSlot {
    /// The weight.
    pub w: f32,
    /// Sum of squared gradients.
    pub g: f32,
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

    pub(crate) fn from_parts(kind: Kind, loss: Loss, width: usize) -> Self {
        Self {
            width: padded(width),
            loss,
            kind,
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Whether `other` has the same optimiser, loss and width.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
            && (self.loss, self.width) == (other.loss, other.width)
    }

    /// Padded number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of regressors.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) => rows.len(),
            Kind::Adagrad(rows) => rows.len(),
            Kind::Nag(_, rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the memory for `n` more regressors at once.
    pub fn reserve(&mut self, n: usize) {
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) => rows.reserve_exact(n),
            Kind::Adagrad(rows) => rows.reserve_exact(n),
            Kind::Nag(_, rows) => rows.reserve_exact(n),
        }
    }

    /// Adds a regressor of zero weights and returns its number.
    pub fn push(&mut self) -> u32 {
        let number = self.len() as u32;
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) => rows.push(Weights::default()),
            Kind::Adagrad(rows) => rows.push(Weights::default()),
            Kind::Nag(_, rows) => rows.push(Default::default()),
        }
        number
    }

    /// To be called once per example that will be learned from, before any
    /// [`Self::learn`]: settles its form and its step direction.
    pub fn prepare(&mut self, example: &mut PathExample, importance: f32) {
        example.settle(self.width);
        example.dimension = example.row.columns.len() as f32;
        match &mut self.kind {
            Kind::Pn(preconditioner, _) => {
                example.dimension =
                    preconditioner.direction(&example.row, importance, &mut example.direction);
                // The direction is made so; an example without length has none.
                example.ppu = 1.0;
                example.settle_direction(self.width);
            }
            Kind::Sgd(_) => {
                example.direction.clone_from(&example.row.values);
                example.ppu = example.row.values.iter().map(|x| x * x).sum();
                example.settle_direction(self.width);
            }
            Kind::Adagrad(_) | Kind::Nag(..) => {}
        }
    }

    /// Score of regressor `number`, not clamped.
    #[inline]
    pub fn score(&self, number: u32, example: &PathExample) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) => example.dot(&rows[number]),
            Kind::Adagrad(rows) => own_dot(&rows[number], &example.row, |slot| slot.w),
            Kind::Nag(_, rows) => own_dot(&rows[number].1, &example.row, |slot| slot.w),
        }
    }

    /// Regressor `number` learns target `y` with a step of `a` (learning rate
    /// times importance); `importance` is what adaptive sums count.
    ///
    /// `ahead` is told the score after as soon as it is known and may name the
    /// regressor that comes next, so that its weights are on their way while
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
            Kind::Pn(_, rows) | Kind::Sgd(rows) => {
                let before = example.dot(&rows[number]);
                let step = self.loss.step(y, before, a, example.ppu);
                if let Some(next) = ahead(before + step * example.ppu) {
                    rows[next as usize].prefetch(&example.row.columns);
                }
                let weights = &mut rows[number];
                if step == 0.0 {
                    return Scores::unclamped(before, before);
                }
                example.add(step, weights, self.width);
                Scores::unclamped(before, before + step * example.ppu)
            }
            Kind::Adagrad(rows) => learn_adagrad(
                &mut rows[number],
                self.loss,
                &example.row,
                y,
                a,
                importance,
                self.width,
            ),
            Kind::Nag(span, rows) => learn_nag(
                &mut rows[number],
                span,
                self.loss,
                &example.row,
                y,
                a,
                importance,
                self.width,
            ),
        }
    }

    /// The weights of regressor `number` alone, as prediction needs them.
    pub fn plain(&self, number: u32) -> Weights<f32> {
        fn strip<S: Copy + Default>(weights: &Weights<S>, w: impl Fn(&S) -> f32) -> Weights<f32> {
            match weights {
                Weights::Table(table) => {
                    Weights::Table(table.iter().map(|(key, slot)| (key, w(slot))).collect())
                }
                Weights::Row(row) => Weights::Row(row.iter().map(w).collect()),
            }
        }
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Sgd(rows) => rows[number].clone(),
            Kind::Adagrad(rows) => strip(&rows[number], |slot| slot.w),
            Kind::Nag(_, rows) => strip(&rows[number].1, |slot| slot.w),
        }
    }

    /// Clamps no narrower than `other`.
    pub fn widen(&mut self, other: Span) {
        if let Kind::Nag(span, _) = &mut self.kind {
            span.widen(other.low);
            span.widen(other.high);
        }
    }

    /// What predictions are clamped to before their sign is taken.
    pub fn span(&self) -> Span {
        match &self.kind {
            Kind::Nag(span, _) => *span,
            _ => Span {
                low: f32::NEG_INFINITY,
                high: f32::INFINITY,
            },
        }
    }
}

#[inline]
fn own_dot<S: Copy + Default>(weights: &Weights<S>, row: &RowBuffer, w: impl Fn(S) -> f32) -> f32 {
    let mut sum = 0.0;
    weights.visit(&row.columns, |entry, slot| {
        sum += w(slot) * row.values[entry];
    });
    sum
}

fn learn_adagrad(
    weights: &mut Weights<AdaSlot>,
    loss: Loss,
    row: &RowBuffer,
    y: f32,
    a: f32,
    importance: f32,
    width: usize,
) -> Scores {
    let before = own_dot(weights, row, |slot| slot.w);
    if loss.is_satisfied(y, before) {
        return Scores::unclamped(before, before);
    }
    weights.make_room(row.columns.len(), width);
    let slope = importance * loss.slope_squared(y, before);
    let mut ppu = 0.0;
    weights.change(&row.columns, |entry, slot| {
        let x = row.values[entry];
        slot.g += slope * x * x;
        // The 1 keeps the very first step of a weight finite.
        ppu += x * x / (1.0 + slot.g).sqrt();
    });
    let step = loss.step(y, before, a, ppu);
    weights.change(&row.columns, |entry, slot| {
        slot.w += step * row.values[entry] / (1.0 + slot.g).sqrt();
    });
    Scores::unclamped(before, before + step * ppu)
}

#[allow(clippy::too_many_arguments)]
fn learn_nag(
    (totals, weights): &mut (NagTotals, Weights<NagSlot>),
    span: &mut Span,
    loss: Loss,
    row: &RowBuffer,
    y: f32,
    a: f32,
    importance: f32,
    width: usize,
) -> Scores {
    let clamp = |span: &Span, p: f32| match loss {
        Loss::Logistic => p.clamp(-50.0, 50.0),
        _ => span.clamp(p),
    };
    let before = own_dot(weights, row, |slot| slot.w);
    span.widen(y);
    let p = clamp(span, before);
    let slope = importance * loss.slope_squared(y, p);
    if !loss.is_satisfied(y, p) && slope != 0.0 {
        weights.make_room(row.columns.len(), width);
        let (mut share, mut ppu) = (0.0, 0.0);
        weights.change(&row.columns, |entry, slot| {
            let (s, moved) = slot.absorb(row.values[entry], slope);
            share += s;
            ppu += moved;
        });
        let factor = totals.absorb(importance, share);
        let step = loss.step(y, p, a, ppu * factor) * factor;
        weights.change(&row.columns, |entry, slot| {
            slot.w += step * (row.values[entry] * slot.rate());
        });
    }
    let raw = own_dot(weights, row, |slot| slot.w);
    Scores {
        before,
        after: clamp(span, raw),
        raw,
    }
}
