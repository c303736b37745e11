//! Steps along a direction that all classes share ("pn", "sgd"): a class's step
//! is one number, and to apply it costs a multiplication and an addition per weight.

use super::chunk::{Chunk, Example};
use super::scoring::{best, scores, BestClass};
use super::tile::{for_groups, row, row_mut, Lanes, Tile};
use crate::linear::Loss;
use crate::simd::{dispatched, LANES};

dispatched! {
    /// Learns the chunk's examples one after the other; `out` gets the best class of
    /// each as it stood before the example was learned.
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, loss: Loss, out: &mut Vec<BestClass>) {
        for_groups!(tile.groups, learn_groups(tile, chunk, loss, out));
    }
}

dispatched! {
    /// Takes given steps; `u` is as long as the tile is wide.
    pub(super) fn apply_steps(tile: &mut Tile, example: &Example<'_>, u: &[f32]) {
        for_groups!(tile.groups, apply_slice(tile, example, u));
    }
}

#[inline(always)]
fn apply_slice<const G: usize>(tile: &mut Tile, example: &Example<'_>, u: &[f32]) {
    apply(tile, example, row::<G>(u, 0));
}

#[inline(always)]
fn learn_groups<const G: usize>(
    tile: &mut Tile,
    chunk: &Chunk,
    loss: Loss,
    out: &mut Vec<BestClass>,
) {
    for i in 0..chunk.rows.len() {
        let example = chunk.get(i);
        let (rate, ppu) = (example.params.rate(), example.params.ppu);
        let p = scores::<G>(&tile.weights, &example);
        out.push(best::<G>(tile, &p));
        let mut u = [[0.0; LANES]; G];
        match example.negatives {
            None => u = negative_steps(loss, &p, rate, ppu),
            Some((negatives, weight)) => {
                for at in tile.positions(negatives) {
                    let p = p.as_flattened()[at];
                    u.as_flattened_mut()[at] = loss.step(-1.0, p, rate * weight, ppu);
                }
            }
        }
        for at in tile.positions(example.labels) {
            u.as_flattened_mut()[at] = loss.step(1.0, p.as_flattened()[at], rate, ppu);
        }
        tile.mark_seen(example.labels);
        apply::<G>(tile, &example, &u);
    }
}

/// Steps of classes that the example does not belong to: [`Loss::step`] for y = -1,
/// with what the lanes have in common computed once.
#[inline(always)]
fn negative_steps<const G: usize>(loss: Loss, p: &[Lanes; G], rate: f32, ppu: f32) -> [Lanes; G] {
    match loss {
        Loss::SquaredHinge => {
            let share = saturation(rate * ppu, rate, ppu);
            map_lanes(p, |p| -(1.0 + p).max(0.0) * share)
        }
        Loss::Squared => {
            let share = saturation(2.0 * rate * ppu, 2.0 * rate, ppu);
            map_lanes(p, |p| (-1.0 - p) * share)
        }
        Loss::Hinge => {
            let unit = ppu.max(f32::MIN_POSITIVE).recip();
            map_lanes(p, |p| -rate.min((1.0 + p).max(0.0) * unit))
        }
        Loss::Quantile | Loss::Logistic => map_lanes(p, |p| loss.step(-1.0, p, rate, ppu)),
    }
}

#[inline(always)]
fn map_lanes<const G: usize>(p: &[Lanes; G], step: impl Fn(f32) -> f32) -> [Lanes; G] {
    let mut u = [[0.0; LANES]; G];
    for g in 0..G {
        for lane in 0..LANES {
            u[g][lane] = step(p[g][lane]);
        }
    }
    u
}

/// Which share of its gap a squared loss closes: (1 - e^-a)/ppu, or `limit`.
fn saturation(a: f32, limit: f32, ppu: f32) -> f32 {
    if a < 1e-6 {
        limit
    } else {
        -(-a).exp_m1() / ppu
    }
}

/// Adds the steps `u` of the classes to the weights and to the average sums.
/// Groups of classes without a step, most of them, are left alone.
#[inline(always)]
fn apply<const G: usize>(tile: &mut Tile, example: &Example<'_>, u: &[Lanes; G]) {
    let averages = !tile.average_sums.is_empty();
    let limit = example.params.limit;
    let u = &map_lanes(u, |u| limit.shorten(u));
    for g in 0..G {
        // Without an early exit, so that it vectorises.
        if !u[g].iter().fold(false, |any, &u| any | (u != 0.0)) {
            continue;
        }
        let weights = tile.weights.to_mut();
        for (&slot, &d) in example.slots.iter().zip(example.direction) {
            let w = &mut row_mut::<G>(weights, slot)[g];
            for lane in 0..LANES {
                w[lane] += d * u[g][lane];
            }
        }
        if averages {
            let factor = example.params.average_factor;
            let sums = tile.average_sums.to_mut();
            for (&slot, &d) in example.slots.iter().zip(example.direction) {
                let d = factor * d;
                let sum = &mut row_mut::<G>(sums, slot)[g];
                for lane in 0..LANES {
                    sum[lane] += d * u[g][lane];
                }
            }
        }
    }
}
