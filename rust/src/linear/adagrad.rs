//! Steps whose rate falls, weight by weight, with the sum of squared gradients
//! (Duchi, Hazan & Singer, "Adaptive subgradient methods", JMLR 2011).
//!
//! `G_j += h (dL/dp)^2 x_j^2`, then `w_j += u x_j / sqrt(1 + G_j)`, where u is the
//! step of the loss ([`Loss::step`]) for a prediction that changes by
//! `sum_j x_j^2 / sqrt(1 + G_j)` per unit of u. The 1 keeps the first step of a
//! weight finite; one-against-all, which follows Vowpal Wabbit, does without.

use super::step::{bounded_change, bounded_sum, product, Scores, Target};
use super::{Loss, Weights};
use crate::data::RowBuffer;

/// A weight and its sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AdaSlot {
    /// The weight.
    pub w: f32,
    /// Sum of squared gradients.
    pub g: f32,
}

/// One regressor learns one example.
pub(super) fn learn(
    weights: &mut Weights<AdaSlot>,
    loss: Loss,
    row: &RowBuffer,
    target: Target,
    width: usize,
) -> Scores {
    let Target { y, a, importance } = target;
    let before = product(weights, row, |slot| slot.w);
    if loss.is_satisfied(y, before) {
        return Scores::unclamped(before, before);
    }
    weights.prepare_for(row.columns.len(), width);
    let slope_squared = bounded_sum(importance * loss.slope_squared(y, before));
    let mut ppu = 0.0;
    weights.change(&row.columns, |entry, slot| {
        let x = row.values[entry];
        slot.g = bounded_sum(slot.g + slope_squared * x * x);
        ppu += x * x / (1.0 + slot.g).sqrt();
    });
    ppu = bounded_sum(ppu);
    let step = bounded_change(loss.step(y, before, a, ppu));
    weights.change(&row.columns, |entry, slot| {
        slot.w += bounded_change(step * row.values[entry] / (1.0 + slot.g).sqrt());
    });
    Scores::unclamped(before, before + step * ppu)
}
