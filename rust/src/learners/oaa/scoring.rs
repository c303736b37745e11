//! Scores of a tile's classes, and the best of them.
//!
//! Everything is done for [`LANES`] classes at once; sums over an example's
//! features stay in registers. Compiled for each instruction set, with the
//! same result to the last bit on all of them.

use super::chunk::Example;
use super::tile::{each_lane, for_groups, row, towards_zero, Averaging, Lanes, Tile};
use crate::data::RaggedRows;
use crate::linear::bounded_score;
use crate::simd::{dispatched, LANES};

/// The best class of a tile and its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestClass {
    /// Its score; minus infinity if none of the classes has been seen.
    pub score: f32,
    /// The class, the lowest of equals.
    pub class: u32,
}

/// Sums over the features of values times weights, the latter as `read` has them.
#[inline(always)]
fn sums<const G: usize>(
    weights: &[f32],
    slots: &[u32],
    values: &[f32],
    read: impl Fn(f32) -> f32,
) -> [Lanes; G] {
    let mut sums = [[0.0; LANES]; G];
    for (&slot, &x) in slots.iter().zip(values) {
        let row = row::<G>(weights, slot);
        each_lane::<G>(|g, lane| sums[g][lane] += x * read(row[g][lane]));
    }
    sums
}

/// Scores of an example as the weights stand: the constant's, which is last,
/// is neither moved nor shrunk.
#[inline(always)]
pub(super) fn scores<const G: usize>(weights: &[f32], example: &Example<'_>) -> [Lanes; G] {
    let (Some((&constant, slots)), Some((&one, values))) =
        (example.slots.split_last(), example.values.split_last())
    else {
        return [[0.0; LANES]; G];
    };
    let (l1_shift, shrink) = (example.params.l1_shift, example.params.shrink);
    let mut scores = if l1_shift > 0.0 {
        sums::<G>(weights, slots, values, |w| towards_zero(w, l1_shift))
    } else {
        sums::<G>(weights, slots, values, |w| w)
    };
    let constant = row::<G>(weights, constant);
    each_lane::<G>(|g, lane| {
        scores[g][lane] = bounded_score(shrink * scores[g][lane] + one * constant[g][lane]);
    });
    scores
}

/// The best of a tile's classes that have been seen.
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
    /// Scores of one example, for a learner that has to see all of them
    /// before it steps; `out` is as long as the tile is wide. Returns the best class.
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
    /// Scores of rows of slots for prediction; `out` holds `groups` groups of lanes per row.
    pub(super) fn score_rows(weights: &[f32], groups: usize, rows: &RaggedRows, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(groups * LANES).enumerate() {
            for_groups!(groups, write_sums(weights, rows.row(i), out));
        }
    }
}

#[inline(always)]
fn write_sums<const G: usize>(weights: &[f32], row: (&[u32], &[f32]), out: &mut [f32]) {
    write(sums::<G>(weights, row.0, row.1, |w| w), out);
}

dispatched! {
    /// [`score_rows`] by the weights that [`Tile::prediction_weights`] would make of a tile's.
    pub(super) fn score_rows_averaged(tile: &Tile, averaging: Averaging, rows: &RaggedRows, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(tile.width()).enumerate() {
            for_groups!(tile.groups, write_averaged_sums(tile, averaging, rows.row(i), out));
        }
    }
}

#[inline(always)]
fn write_averaged_sums<const G: usize>(
    tile: &Tile,
    averaging: Averaging,
    (slots, values): (&[u32], &[f32]),
    out: &mut [f32],
) {
    let mut sums = [[0.0; LANES]; G];
    // The constant is the last.
    let n_moved = slots.len() - usize::from(slots.last() == Some(&Averaging::CONSTANT));
    let (moved, constant) = slots.split_at(n_moved);
    let (of_moved, of_constant) = values.split_at(n_moved);
    let weights = &tile.weights;
    match averaging.share {
        Some(share) if averaging.moves() => {
            let averaged = |w, u| Averaging::averaged(w, u, share);
            let both = |w, u| averaging.moved(averaged(w, u));
            add_products(
                &mut sums,
                weights,
                &tile.average_sums,
                (moved, of_moved),
                both,
            );
            let row = (constant, of_constant);
            add_products(&mut sums, weights, &tile.average_sums, row, averaged);
        }
        Some(share) => {
            let averaged = |w, u| Averaging::averaged(w, u, share);
            add_products(
                &mut sums,
                weights,
                &tile.average_sums,
                (slots, values),
                averaged,
            );
        }
        None => {
            let alone = |w, _| averaging.moved(w);
            add_products(&mut sums, weights, weights, (moved, of_moved), alone);
            add_products(
                &mut sums,
                weights,
                weights,
                (constant, of_constant),
                |w, _| w,
            );
        }
    }
    write(sums, out);
}

/// Writes sums as scores.
#[inline(always)]
fn write<const G: usize>(mut sums: [Lanes; G], out: &mut [f32]) {
    each_lane::<G>(|g, lane| sums[g][lane] = bounded_score(sums[g][lane]));
    out.copy_from_slice(sums.as_flattened());
}

/// Adds to the sums a row's values times what `read` makes of a weight and the number beside it in
/// another plane.
#[inline(always)]
fn add_products<const G: usize>(
    sums: &mut [Lanes; G],
    weights: &[f32],
    beside: &[f32],
    (slots, values): (&[u32], &[f32]),
    read: impl Fn(f32, f32) -> f32,
) {
    let mut added = *sums;
    for (&slot, &x) in slots.iter().zip(values) {
        let (weights, beside) = (row::<G>(weights, slot), row::<G>(beside, slot));
        each_lane::<G>(|g, lane| added[g][lane] += x * read(weights[g][lane], beside[g][lane]));
    }
    *sums = added;
}
