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
use crate::file::is_score;
use crate::linear::loss::{descend, softmax};
use crate::linear::{bounded_score, Loss, Span};
use crate::model::Mistakes;
use crate::record;
use crate::simd::{dispatched, LANES};

/// The best class of some tiles for an example, before it was learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// Score of the class; minus infinity if no class of the tiles had been seen.
    score: f32,
    is_right: bool,
    /// Importance of the example.
    importance: f32,
}

record!(Answer {
    score: is_score,
    is_right,
    importance
});

impl Answer {
    /// Bytes of a stored answer.
    pub const BYTES: usize = 2 * size_of::<f32>() + size_of::<bool>();

    /// Returns the better of two answers for an example. Equal scores go to `self`, whose classes
    /// come first.
    pub fn or(self, other: Self) -> Self {
        if other.score > self.score {
            other
        } else {
            self
        }
    }

    /// Adds the answer to the progressive loss. With label sets it is right if the class is one of
    /// them (1 - P@1).
    pub fn count(&self, progress: &mut Mistakes) {
        progress.count(!self.is_right, self.importance);
    }
}

/// Returns the sum over the features of value times weight, for each class.
#[inline(always)]
fn sums<const G: usize>(weights: &[f32], slots: &[u32], values: &[f32]) -> [Lanes; G] {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let row = row::<G>(weights, slot);
        each_lane::<G>(|g, lane| sums[g][lane] += x * row[g][lane]);
    }
    sums
}

/// Returns [`sums`] of the weights that [`Tile::prediction_weights`] would compute.
#[inline(always)]
fn averaged_sums<const G: usize>(
    tile: &Tile,
    share: f32,
    slots: &[u32],
    values: &[f32],
) -> [Lanes; G] {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let weights = row::<G>(&tile.weights, slot);
        let average_sums = row::<G>(&tile.average_sums, slot);
        each_lane::<G>(|g, lane| {
            sums[g][lane] += x * averaged(weights[g][lane], average_sums[g][lane], share);
        });
    }
    sums
}

/// Returns the scores of an example by the current weights.
#[inline(always)]
pub(super) fn scores<const G: usize>(tile: &Tile, example: &Example<'_>) -> [Lanes; G] {
    let mut scores = sums::<G>(&tile.weights, example.slots, example.values);
    each_lane::<G>(|g, lane| scores[g][lane] = bounded_score(scores[g][lane]));
    scores
}

/// Returns the best of a tile's seen classes, the lowest of those with this score.
#[inline(always)]
pub(super) fn best<const G: usize>(
    tile: &Tile,
    example: &Example<'_>,
    scores: &[Lanes; G],
) -> Answer {
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
    Answer {
        score,
        is_right: score > f32::NEG_INFINITY && example.labels.binary_search(&class).is_ok(),
        importance: example.params.importance,
    }
}

dispatched! {
    /// Writes the scores of one example to `out`, which is as long as the tile is wide, and returns
    /// the answer. For the softmax, which needs the scores of all tiles before a step.
    pub(super) fn score_example(tile: &Tile, example: &Example<'_>, out: &mut [f32]) -> Answer {
        for_groups!(tile.groups, write_scores(tile, example, out))
    }
}

#[inline(always)]
fn write_scores<const G: usize>(tile: &Tile, example: &Example<'_>, out: &mut [f32]) -> Answer {
    let scores = scores::<G>(tile, example);
    out.copy_from_slice(scores.as_flattened());
    best::<G>(tile, example, &scores)
}

dispatched! {
    /// Writes the scores of a tile's classes for each of `rows`, minus infinity for classes not
    /// seen. `weights` are those to predict with or, with the `share` of the average sums to
    /// subtract, those of the tile.
    pub(super) fn score_rows(
        tile: &Tile,
        weights: &[f32],
        share: Option<f32>,
        span: Option<Span>,
        rows: &RaggedRows,
        out: &mut [f32],
    ) {
        for (i, out) in out.chunks_exact_mut(tile.width()).enumerate() {
            for_groups!(tile.groups, write_row(tile, weights, share, span, rows.row(i), out));
        }
    }
}

#[inline(always)]
fn write_row<const G: usize>(
    tile: &Tile,
    weights: &[f32],
    share: Option<f32>,
    span: Option<Span>,
    (slots, values): (&[u32], &[f32]),
    out: &mut [f32],
) {
    match share {
        Some(share) => write(
            tile,
            span,
            averaged_sums::<G>(tile, share, slots, values),
            out,
        ),
        None => write(tile, span, sums::<G>(weights, slots, values), out),
    }
}

/// Writes sums as scores. The span is applied in memory: a branch before would keep the sums out of
/// the registers.
#[inline(always)]
fn write<const G: usize>(tile: &Tile, span: Option<Span>, mut sums: [Lanes; G], out: &mut [f32]) {
    let mask = row::<G>(&tile.unseen_mask, 0);
    each_lane::<G>(|g, lane| sums[g][lane] = bounded_score(sums[g][lane]) + mask[g][lane]);
    out.copy_from_slice(sums.as_flattened());
    if let Some(span) = span {
        for (p, mask) in out.iter_mut().zip(&tile.unseen_mask) {
            *p = span.clamp(*p) + mask;
        }
    }
}

dispatched! {
    /// Learns the examples of a chunk in order, and appends to `answers` the answer to each before it
    /// was learned.
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, loss: Loss, answers: &mut Vec<Answer>) {
        for_groups!(tile.groups, learn_groups(tile, chunk, loss, answers));
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
    answers: &mut Vec<Answer>,
) {
    for i in 0..chunk.rows.len() {
        let example = chunk.get(i);
        let rate = example.params.rate();
        let p = scores::<G>(tile, &example);
        answers.push(best::<G>(tile, &example, &p));
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
            for lane in 0..LANES {
                w[lane] += d * u[g][lane];
            }
        }
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

/// Longest substep along the gradient flow of the scores. Short substeps keep an example of large
/// importance from overshooting.
const MAX_SUBSTEP: f32 = 1.0;

/// Largest number of substeps. After this many the gradient is zero.
const MAX_SUBSTEP_COUNT: f32 = 32.0;

/// Learns the examples of a chunk in order, and appends to `answers`, per tile, the answer to each
/// before it was learned.
pub(super) fn learn_softmax(tiles: &mut [Tile], chunk: &Chunk, answers: &mut [Vec<Answer>]) {
    let width: usize = tiles.iter().map(Tile::width).sum();
    let (mut scores, mut steps) = (vec![0.0; width], vec![0.0; width]);
    let mut gradients = vec![0.0; width];
    for i in 0..chunk.rows.len() {
        let example = chunk.get(i);
        for (tile, answers) in tiles.iter().zip(&mut *answers) {
            let scores = &mut scores[tile.first..][..tile.width()];
            answers.push(score_example(tile, &example, scores));
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
            descend(substep, &gradients, &mut scores, &mut steps);
        }
        for tile in tiles.iter_mut() {
            tile.mark_seen(example.labels);
            apply_steps(tile, &example, &steps[tile.first..][..tile.width()]);
        }
    }
}
