//! Scores of a tile's classes, and steps along a direction that all classes share ("pn").
//!
//! Loops process [`LANES`] classes at once, and sums over an example's features stay in registers.
//! They are compiled for each instruction set, with the same result to the last bit. The step of a
//! class is one number; applying it costs a multiplication and an addition per weight. With the
//! softmax, classes learn from each other's scores, so each example passes through all tiles before
//! the next one.

use super::chunk::{Chunk, Example};
use super::tile::{averaged, each_lane, for_groups, row, row_mut, Lanes, Tile};
use crate::data::RaggedRows;
use crate::linear::loss::softmax;
use crate::linear::{bounded_score, Loss};
use crate::simd::{axpy, dispatched, LANES};

/// The best class of a tile for an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestClass {
    /// Its score; minus infinity if no class has been seen.
    pub score: f32,
    /// The class; the lowest of those with this score.
    pub class: u32,
}

/// Returns the sum over the features of value times weight, for each class.
#[inline(always)]
fn sums<const G: usize>(weights: &[f32], slots: &[u32], values: &[f32]) -> [Lanes; G] {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let row = row::<G>(weights, slot);
        for g in 0..G {
            sums[g] = plus(sums[g], x, row[g]);
        }
    }
    sums
}

/// Returns the scores of an example by the current weights.
#[inline(always)]
pub(super) fn scores<const G: usize>(weights: &[f32], example: &Example<'_>) -> [Lanes; G] {
    let mut scores = sums::<G>(weights, example.slots, example.values);
    each_lane::<G>(|g, lane| scores[g][lane] = bounded_score(scores[g][lane]));
    scores
}

/// Returns the best of a tile's seen classes.
#[inline(always)]
pub(super) fn best<const G: usize>(tile: &Tile, scores: &[Lanes; G]) -> BestClass {
    let mask = row::<G>(&tile.unseen_mask, 0);
    let mut top = [f32::NEG_INFINITY; LANES];
    let mut masked = *scores;
    each_lane::<G>(|g, lane| {
        masked[g][lane] += mask[g][lane];
        let score = masked[g][lane];
        top[lane] = if score > top[lane] { score } else { top[lane] };
    });
    let score = top.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let mut lowest = [u32::MAX; LANES];
    each_lane::<G>(|g, lane| {
        let is_best = masked[g][lane] == score;
        let class = if is_best {
            tile.first + g * LANES + lane
        } else {
            usize::MAX
        } as u32;
        lowest[lane] = lowest[lane].min(class);
    });
    let class = lowest.iter().fold(u32::MAX, |a, &b| a.min(b));
    BestClass { score, class }
}

dispatched! {
    /// Writes the scores of one example to `out`, which is as long as the tile is wide, and returns
    /// the best class. For the softmax, which needs the scores of all tiles before a step.
    pub(super) fn score_example(tile: &Tile, example: &Example<'_>, out: &mut [f32]) -> BestClass {
        for_groups!(tile.groups, write_scores(tile, example, out))
    }
}

#[inline(always)]
fn write_scores<const G: usize>(tile: &Tile, example: &Example<'_>, out: &mut [f32]) -> BestClass {
    let scores = scores::<G>(&tile.weights, example);
    out.copy_from_slice(scores.as_flattened());
    best::<G>(tile, &scores)
}

dispatched! {
    /// Writes the scores of rows of slots for prediction. `out` has `groups` groups of lanes per row.
    pub(super) fn score_rows(weights: &[f32], groups: usize, rows: &RaggedRows, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(groups * LANES).enumerate() {
            for_groups!(groups, write_sums(weights, rows.row(i), out));
        }
    }
}

#[inline(always)]
fn write_sums<const G: usize>(weights: &[f32], row: (&[u32], &[f32]), out: &mut [f32]) {
    write(sums::<G>(weights, row.0, row.1), out);
}

dispatched! {
    /// Writes [`score_rows`] for the weights that [`Tile::prediction_weights`] would compute.
    pub(super) fn score_rows_averaged(tile: &Tile, share: f32, rows: &RaggedRows, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(tile.width()).enumerate() {
            for_groups!(tile.groups, write_averaged_sums(tile, share, rows.row(i), out));
        }
    }
}

#[inline(always)]
fn write_averaged_sums<const G: usize>(
    tile: &Tile,
    share: f32,
    (slots, values): (&[u32], &[f32]),
    out: &mut [f32],
) {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let weights = row::<G>(&tile.weights, slot);
        let average_sums = row::<G>(&tile.average_sums, slot);
        each_lane::<G>(|g, lane| {
            sums[g][lane] += x * averaged(weights[g][lane], average_sums[g][lane], share);
        });
    }
    write(sums, out);
}

/// Writes sums as scores.
#[inline(always)]
fn write<const G: usize>(mut sums: [Lanes; G], out: &mut [f32]) {
    each_lane::<G>(|g, lane| sums[g][lane] = bounded_score(sums[g][lane]));
    out.copy_from_slice(sums.as_flattened());
}

dispatched! {
    /// Learns the examples of a chunk in order, and appends to `out` the best class of each before it
    /// was learned.
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, loss: Loss, out: &mut Vec<BestClass>) {
        for_groups!(tile.groups, learn_groups(tile, chunk, loss, out));
    }
}

dispatched! {
    /// Adds the steps `u`, one per class, to the weights.
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
        let rate = example.params.rate();
        let p = scores::<G>(&tile.weights, &example);
        out.push(best::<G>(tile, &p));
        let mut u = [[0.0; LANES]; G];
        match example.negatives {
            None => u = negative_steps(loss, &p, rate),
            Some((negatives, weight)) => {
                for at in tile.positions(negatives) {
                    let p = p.as_flattened()[at];
                    u.as_flattened_mut()[at] = loss.step(-1.0, p, rate * weight, 1.0);
                }
            }
        }
        for at in tile.positions(example.labels) {
            u.as_flattened_mut()[at] = loss.step(1.0, p.as_flattened()[at], rate, 1.0);
        }
        tile.mark_seen(example.labels);
        apply::<G>(tile, &example, &u);
    }
}

/// Returns the steps of classes that the example does not belong to: [`Loss::step`] for y = -1.
/// Factors that all lanes share are computed once.
#[inline(always)]
pub(super) fn negative_steps<const G: usize>(loss: Loss, p: &[Lanes; G], rate: f32) -> [Lanes; G] {
    match loss {
        Loss::SquaredHinge => {
            let share = saturation(rate);
            map_lanes(p, |p| -(1.0 + p).max(0.0) * share)
        }
        Loss::Squared => {
            let share = saturation(2.0 * rate);
            map_lanes(p, |p| (-1.0 - p) * share)
        }
        Loss::Hinge => map_lanes(p, |p| -rate.min((1.0 + p).max(0.0))),
        Loss::Quantile | Loss::Logistic => map_lanes(p, |p| loss.step(-1.0, p, rate, 1.0)),
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

/// Returns the share of its gap that a squared loss closes: 1 - e^-a, or a where the difference
/// would lose all digits.
fn saturation(a: f32) -> f32 {
    if a < 1e-6 {
        a
    } else {
        -(-a).exp_m1()
    }
}

/// Adds the steps `u` of the classes to the weights and to the average sums. Skips groups of
/// classes without a step, which are the majority.
#[inline(always)]
fn apply<const G: usize>(tile: &mut Tile, example: &Example<'_>, u: &[Lanes; G]) {
    let limit = example.params.limit;
    let u = &map_lanes(u, |u| limit.shorten(u));
    for g in 0..G {
        // Without an early exit this vectorizes.
        if !u[g].iter().fold(false, |any, &u| any | (u != 0.0)) {
            continue;
        }
        let weights = tile.weights.to_mut();
        for (&slot, &d) in example.slots.iter().zip(example.direction) {
            let w = &mut row_mut::<G>(weights, slot)[g];
            *w = plus(*w, d, u[g]);
        }
        let factor = example.params.average_factor;
        let sums = tile.average_sums.to_mut();
        for (&slot, &d) in example.slots.iter().zip(example.direction) {
            let sum = &mut row_mut::<G>(sums, slot)[g];
            *sum = plus(*sum, factor * d, u[g]);
        }
    }
}

/// Returns `sum + a * x`. All lanes are read before one is written, so that this vectorizes.
#[inline(always)]
fn plus(mut sum: Lanes, a: f32, x: Lanes) -> Lanes {
    for lane in 0..LANES {
        sum[lane] += a * x[lane];
    }
    sum
}

/// Longest substep along the gradient flow of the scores. Short substeps keep an example of large
/// importance from overshooting.
const MAX_SUBSTEP: f32 = 1.0;

/// Largest number of substeps. After this many the gradient is zero.
const MAX_SUBSTEP_COUNT: f32 = 32.0;

/// Learns the examples of a chunk in order, and appends to `bests`, per tile, the best class of
/// each before it was learned.
pub(super) fn learn_softmax(tiles: &mut [Tile], chunk: &Chunk, bests: &mut [Vec<BestClass>]) {
    let width: usize = tiles.iter().map(Tile::width).sum();
    let (mut scores, mut steps) = (vec![0.0; width], vec![0.0; width]);
    let mut gradients = vec![0.0; width];
    for i in 0..chunk.rows.len() {
        let example = chunk.get(i);
        for (tile, bests) in tiles.iter().zip(&mut *bests) {
            let scores = &mut scores[tile.first..][..tile.width()];
            bests.push(score_example(tile, &example, scores));
        }
        if example.labels.is_empty() {
            continue;
        }
        // Padding has no probability.
        scores[chunk.n_classes..].fill(f32::NEG_INFINITY);
        let share = (example.labels.len() as f32).recip();
        let length = example.params.rate();
        let n = (length / MAX_SUBSTEP).ceil().clamp(1.0, MAX_SUBSTEP_COUNT);
        let substep = (length / n).min(MAX_SUBSTEP);
        steps.fill(0.0);
        for _ in 0..n as usize {
            softmax(&scores, &mut gradients);
            for &label in example.labels {
                gradients[label as usize] -= share;
            }
            axpy(-substep, &gradients, &mut scores);
            axpy(-substep, &gradients, &mut steps);
        }
        for tile in tiles.iter_mut() {
            tile.mark_seen(example.labels);
            apply_steps(tile, &example, &steps[tile.first..][..tile.width()]);
        }
    }
}
