//! Steps of "nag", the normalized adaptive gradient of Vowpal Wabbit's `--oaa`, number for number.
//!
//! Algorithm and arithmetic are those of [`crate::linear::nag`], for a vector of classes. An example
//! costs a square root and up to four divisions per class and feature.

use super::chunk::{Chunk, Example};
use super::kernels::{best, scores, BestClass};
use super::tile::{each_lane, for_groups, row_mut, Lanes, Tile};
use crate::linear::nag;
use crate::linear::{bounded_change, bounded_sum, Loss, NagSlot};
use crate::simd::{dispatched, LANES};

dispatched! {
    /// Learns the examples of a chunk in order, and appends to `out` the best class of each before it
    /// was learned.
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, loss: Loss, out: &mut Vec<BestClass>) {
        for_groups!(tile.groups, learn_groups(tile, chunk, loss, out));
    }
}

/// Targets of a tile's classes for one example.
struct Targets<const G: usize> {
    /// +1 or -1.
    y: [Lanes; G],
    /// Importance; 0 for classes that are not sampled.
    h: [Lanes; G],
    /// Squared slope of the loss times importance; 0 for classes that learn nothing.
    slopes: [Lanes; G],
}

#[inline(always)]
fn learn_groups<const G: usize>(
    tile: &mut Tile,
    chunk: &Chunk,
    loss: Loss,
    out: &mut Vec<BestClass>,
) {
    let mut rates = Vec::new();
    for i in 0..chunk.rows.len() {
        let example = chunk.get(i);
        let mut p = scores::<G>(&tile.weights, &example);
        if let Some(span) = example.params.span {
            for p in p.as_flattened_mut() {
                *p = span.clamp(*p);
            }
        }
        out.push(best::<G>(tile, &p));
        tile.mark_seen(example.labels);
        if let Some(targets) = targets(tile, &example, loss, &p) {
            let sums = update_sums(tile, &example, &targets.slopes, &mut rates);
            step(tile, &example, loss, &p, &targets, &sums, &rates);
        }
    }
}

/// Returns the targets of the classes, or none if no class learns anything.
#[inline(always)]
fn targets<const G: usize>(
    tile: &Tile,
    example: &Example<'_>,
    loss: Loss,
    p: &[Lanes; G],
) -> Option<Targets<G>> {
    let importance = example.params.importance;
    let mut y = [[-1.0; LANES]; G];
    let mut h = [[importance; LANES]; G];
    if let Some((negatives, weight)) = example.negatives {
        h = [[0.0; LANES]; G];
        for at in tile.positions(negatives) {
            h.as_flattened_mut()[at] = importance * weight;
        }
    }
    for at in tile.positions(example.labels) {
        y.as_flattened_mut()[at] = 1.0;
        h.as_flattened_mut()[at] = importance;
    }
    let mut slopes = [[0.0f32; LANES]; G];
    let mut any = false;
    each_lane::<G>(|g, lane| {
        let (p, y, h) = (p[g][lane], y[g][lane], h[g][lane]);
        if h > 0.0 {
            slopes[g][lane] = bounded_sum(h * loss.slope_squared(y, p));
            any |= slopes[g][lane] > 0.0;
        }
    });
    any.then_some(Targets { y, h, slopes })
}

/// Adds the example to the sums of all classes with a slope, and writes the learning rates of its
/// features to `rates`. Returns two numbers per class: the change of its score by a step of 1,
/// without the factor M; and the squared length of the example, in units of the largest values.
#[inline(always)]
fn update_sums<const G: usize>(
    tile: &mut Tile,
    example: &Example<'_>,
    slopes: &[Lanes; G],
    rates: &mut Vec<[Lanes; G]>,
) -> [[Lanes; G]; 2] {
    rates.clear();
    let mut ppu = [[0.0f32; LANES]; G];
    let mut length = [[0.0f32; LANES]; G];
    for (&slot, &x) in example.slots.iter().zip(example.values) {
        let size = nag::size(x);
        let squares = row_mut::<G>(tile.squares.to_mut(), slot);
        let mut rate = [[0.0f32; LANES]; G];
        let scales = row_mut::<G>(tile.scales.to_mut(), slot);
        let weights = row_mut::<G>(tile.weights.to_mut(), slot);
        for at in 0..G {
            for lane in 0..LANES {
                let (w, g, s) = (weights[at][lane], squares[at][lane], scales[at][lane]);
                let mut weight = NagSlot { w, g, s };
                let (square, r) = weight.update(size, slopes[at][lane]);
                weights[at][lane] = weight.w;
                squares[at][lane] = weight.g;
                scales[at][lane] = weight.s;
                rate[at][lane] = r;
                length[at][lane] += square;
            }
        }
        each_lane::<G>(|g, lane| {
            // The rate of a class that learns nothing might be infinite.
            let learns = slopes[g][lane] > 0.0;
            rate[g][lane] = if learns { rate[g][lane] } else { 0.0 };
            ppu[g][lane] += size * size * rate[g][lane];
        });
        rates.push(rate);
    }
    [ppu, length]
}

/// Takes the step of each class that has a slope.
#[inline(always)]
fn step<const G: usize>(
    tile: &mut Tile,
    example: &Example<'_>,
    loss: Loss,
    p: &[Lanes; G],
    targets: &Targets<G>,
    [ppu, length]: &[[Lanes; G]; 2],
    rates: &[[Lanes; G]],
) {
    let mut u = [[0.0f32; LANES]; G];
    each_lane::<G>(|g, lane| {
        if targets.slopes[g][lane] > 0.0 {
            let (p, y, h) = (p[g][lane], targets.y[g][lane], targets.h[g][lane]);
            let factor = tile.totals[g * LANES + lane].update(h, length[g][lane]);
            let ppu = bounded_sum(ppu[g][lane] * factor);
            if ppu > 0.0 {
                let step = loss.step(y, p, example.params.eta * h, ppu);
                u[g][lane] = bounded_change(step * factor);
            }
        }
    });
    let features = example.slots.iter().zip(example.values);
    for ((&slot, &x), rates) in features.zip(rates) {
        let weights = row_mut::<G>(tile.weights.to_mut(), slot);
        for g in 0..G {
            // A copy, so that all lanes are read before one is written and this vectorizes.
            let mut sums = weights[g];
            for lane in 0..LANES {
                sums[lane] += bounded_change(u[g][lane] * (x * rates[g][lane]));
            }
            weights[g] = sums;
        }
    }
}
