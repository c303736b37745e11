//! Where the time goes: scores, steps and updates of a tile of classes.
//!
//! Everything is done for [`LANES`] classes at once; sums over an example's
//! features stay in registers. Compiled for each instruction set, with the
//! same result to the last bit on all of them.

use super::chunk::{Chunk, Example};
use super::tile::Tile;
use crate::linear::{Loss, Optimizer};
use crate::simd::{dispatched, LANES};

/// A value for each of [`LANES`] classes.
pub(super) type Lanes = [f32; LANES];

/// What learning does, the same for all examples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The loss of each class; unused by the softmax.
    pub loss: Loss,
    /// The kind of step.
    pub optimizer: Optimizer,
    /// Whether a weight carries sums of its own.
    pub adaptive: bool,
    /// Whether the sums of the average are kept.
    pub averages: bool,
    /// Whether weights may have been pulled towards zero (l1).
    pub pulls: bool,
}

/// The best class of a tile and its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    /// Its score; minus infinity if none of the classes has been seen.
    pub score: f32,
    /// The class, the lowest of equals.
    pub class: u32,
}

/// `w` brought towards zero by `gravity`, but not past it.
#[inline(always)]
#[allow(clippy::inline_always)] // it has to become part of its caller's instruction set
pub(super) fn pulled(w: f32, gravity: f32) -> f32 {
    (w.abs() - gravity).max(0.0).copysign(w)
}

/// The row of `slot`: one group of lanes after the other.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn row<const G: usize>(weights: &[f32], slot: u32) -> &[Lanes; G] {
    let (lanes, _) = weights.as_chunks::<LANES>();
    let (rows, _) = lanes.as_chunks::<G>();
    &rows[slot as usize]
}

/// As [`row`], to be changed.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn row_mut<const G: usize>(weights: &mut [f32], slot: u32) -> &mut [Lanes; G] {
    let (lanes, _) = weights.as_chunks_mut::<LANES>();
    let (rows, _) = lanes.as_chunks_mut::<G>();
    &mut rows[slot as usize]
}

/// Sums of weights times values.
#[inline(always)]
#[allow(clippy::inline_always)]
fn sums<const G: usize>(weights: &[f32], slots: &[u32], values: &[f32]) -> [Lanes; G] {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let row = row::<G>(weights, slot);
        for g in 0..G {
            for lane in 0..LANES {
                sums[g][lane] += x * row[g][lane];
            }
        }
    }
    sums
}

/// Scores of an example as the weights stand: the constant's, which is last,
/// is neither pulled nor shrunk.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn scores<const G: usize>(
    weights: &[f32],
    example: &Example<'_>,
    pulls: bool,
) -> [Lanes; G] {
    let (Some((&constant, slots)), Some((&one, values))) =
        (example.slots.split_last(), example.values.split_last())
    else {
        return [[0.0; LANES]; G];
    };
    let mut scores = if pulls {
        let mut sums = [[0.0; LANES]; G];
        for (&slot, &x) in slots.iter().zip(values) {
            let row = row::<G>(weights, slot);
            for g in 0..G {
                for lane in 0..LANES {
                    sums[g][lane] += x * pulled(row[g][lane], example.to.gravity);
                }
            }
        }
        sums
    } else {
        sums::<G>(weights, slots, values)
    };
    let constant = row::<G>(weights, constant);
    for g in 0..G {
        for lane in 0..LANES {
            scores[g][lane] = example.to.shrink * scores[g][lane] + one * constant[g][lane];
        }
    }
    scores
}

/// The best of a tile's classes that have been seen.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn best<const G: usize>(scores: &[Lanes; G], absent: &[f32], first: usize) -> Best {
    let (absent, _) = absent.as_chunks::<LANES>();
    let mut top = [f32::NEG_INFINITY; LANES];
    let mut masked = *scores;
    for g in 0..G {
        for lane in 0..LANES {
            masked[g][lane] += absent[g][lane];
            top[lane] = if masked[g][lane] > top[lane] {
                masked[g][lane]
            } else {
                top[lane]
            };
        }
    }
    let score = top.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let mut at = 0;
    for g in (0..G).rev() {
        let mut lowest = LANES as u32;
        for (lane, &masked) in (0..).zip(&masked[g]) {
            lowest = lowest.min(if masked == score { lane } else { LANES as u32 });
        }
        if lowest < LANES as u32 {
            at = g as u32 * LANES as u32 + lowest;
        }
    }
    Best {
        score,
        class: first as u32 + at,
    }
}

/// Steps of classes that the example does not belong to, each as
/// [`Loss::step`] has it.
#[inline(always)]
#[allow(clippy::inline_always)]
fn negative_steps<const G: usize>(
    loss: Loss,
    p: &[Lanes; G],
    rate: f32,
    ppu: f32,
    u: &mut [Lanes; G],
) {
    match loss {
        Loss::SquaredHinge => {
            let share = saturation(rate * ppu, rate, ppu);
            for g in 0..G {
                for lane in 0..LANES {
                    u[g][lane] = -(1.0 + p[g][lane]).max(0.0) * share;
                }
            }
        }
        Loss::Squared => {
            let share = saturation(2.0 * rate * ppu, 2.0 * rate, ppu);
            for g in 0..G {
                for lane in 0..LANES {
                    u[g][lane] = (-1.0 - p[g][lane]) * share;
                }
            }
        }
        Loss::Hinge => {
            let unit = ppu.max(f32::MIN_POSITIVE).recip();
            for g in 0..G {
                for lane in 0..LANES {
                    u[g][lane] = -rate.min((1.0 + p[g][lane]).max(0.0) * unit);
                }
            }
        }
        Loss::Quantile | Loss::Logistic => {
            for g in 0..G {
                for lane in 0..LANES {
                    u[g][lane] = loss.step(-1.0, p[g][lane], rate, ppu);
                }
            }
        }
    }
}

/// Which share of its gap a squared loss closes: (1 - e^-a)/ppu, or `limit`.
fn saturation(a: f32, limit: f32, ppu: f32) -> f32 {
    if a < 1e-6 {
        limit
    } else {
        -(-a).exp_m1() / ppu
    }
}

/// Adds the steps `u` of the classes to the weights, and to the sums of the
/// average. Groups of classes without a step, most of them, are left alone.
#[inline(always)]
#[allow(clippy::inline_always)]
fn apply<const G: usize>(tile: &mut Tile, example: &Example<'_>, u: &[Lanes; G]) {
    let averages = !tile.drift.is_empty();
    for g in 0..G {
        // Without an early exit, so that it vectorises.
        let mut any = false;
        for &u in &u[g] {
            any |= u != 0.0;
        }
        if !any {
            continue;
        }
        for (&slot, &step) in example.slots.iter().zip(example.steps) {
            let w = &mut row_mut::<G>(&mut tile.weights, slot)[g];
            for lane in 0..LANES {
                w[lane] += step * u[g][lane];
            }
        }
        if averages {
            let total = example.to.total;
            for (&slot, &step) in example.slots.iter().zip(example.steps) {
                let step = total * step;
                let d = &mut row_mut::<G>(&mut tile.drift, slot)[g];
                for lane in 0..LANES {
                    d[lane] += step * u[g][lane];
                }
            }
        }
    }
}

/// Takes the chunk's examples one after the other.
#[inline(always)]
#[allow(clippy::inline_always)]
fn learn_groups<const G: usize>(tile: &mut Tile, chunk: &Chunk, rule: Rule, out: &mut Vec<Best>) {
    let (first, last) = (tile.first as u32, (tile.first + tile.width()) as u32);
    for i in 0..chunk.len() {
        let example = chunk.get(i);
        let Example { to, .. } = example;
        let p = scores::<G>(&tile.weights, &example, rule.pulls);
        out.push(best::<G>(&p, &tile.absent, tile.first));
        let mut u = [[0.0; LANES]; G];
        match example.negatives {
            None => negative_steps(rule.loss, &p, to.rate, to.ppu, &mut u),
            Some(negatives) => {
                let rate = to.rate * example.negative_share;
                for class in negatives.iter().filter(|c| (first..last).contains(c)) {
                    let (g, lane) = place(class - first);
                    u[g][lane] = rule.loss.step(-1.0, p[g][lane], rate, to.ppu);
                }
            }
        }
        for class in example.labels.iter().filter(|c| (first..last).contains(c)) {
            let (g, lane) = place(class - first);
            u[g][lane] = rule.loss.step(1.0, p[g][lane], to.rate, to.ppu);
            tile.absent[(class - first) as usize] = 0.0;
        }
        apply::<G>(tile, &example, &u);
    }
}

/// Group and lane of a class of a tile.
#[inline]
pub(super) fn place(class: u32) -> (usize, usize) {
    (class as usize / LANES, class as usize % LANES)
}

dispatched! {
    /// Takes the chunk's examples one after the other, with steps along the
    /// chunk's own directions ("pn", "sgd").
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, rule: Rule, out: &mut Vec<Best>) {
        match tile.groups {
            1 => learn_groups::<1>(tile, chunk, rule, out),
            2 => learn_groups::<2>(tile, chunk, rule, out),
            _ => learn_groups::<4>(tile, chunk, rule, out),
        }
    }
}

dispatched! {
    /// Scores of one example, for a learner that has to see all of them
    /// before it steps; `out` is as long as the tile is wide.
    pub(super) fn score_one(tile: &Tile, example: &Example<'_>, pulls: bool, out: &mut [f32]) {
        match tile.groups {
            1 => write(&scores::<1>(&tile.weights, example, pulls), out),
            2 => write(&scores::<2>(&tile.weights, example, pulls), out),
            _ => write(&scores::<4>(&tile.weights, example, pulls), out),
        }
    }
}

dispatched! {
    /// Takes given steps; `u` is as long as the tile is wide.
    pub(super) fn apply_one(tile: &mut Tile, example: &Example<'_>, u: &[f32]) {
        match tile.groups {
            1 => apply::<1>(tile, example, row::<1>(u, 0)),
            2 => apply::<2>(tile, example, row::<2>(u, 0)),
            _ => apply::<4>(tile, example, row::<4>(u, 0)),
        }
    }
}

dispatched! {
    /// Scores of rows for prediction. `out` holds `groups` groups of lanes
    /// per row; `ends[i]` is where the entries of row i end.
    pub(super) fn score_rows(
        weights: &[f32],
        groups: usize,
        ends: &[usize],
        slots: &[u32],
        values: &[f32],
        out: &mut [f32],
    ) {
        let mut from = 0;
        for (&to, out) in ends.iter().zip(out.chunks_exact_mut(groups * LANES)) {
            let (slots, values) = (&slots[from..to], &values[from..to]);
            match groups {
                1 => write(&sums::<1>(weights, slots, values), out),
                2 => write(&sums::<2>(weights, slots, values), out),
                _ => write(&sums::<4>(weights, slots, values), out),
            }
            from = to;
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn write<const G: usize>(scores: &[Lanes; G], out: &mut [f32]) {
    out.copy_from_slice(scores.as_flattened());
}
