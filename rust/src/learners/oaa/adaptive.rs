//! Steps whose rate falls with each weight's own sum of squared gradients:
//! "nag", number for number what Vowpal Wabbit's `--oaa` does, and "adagrad",
//! the same without normalisation.

use super::chunk::{Chunk, Example};
use super::kernels::{best, place, row_mut, scores, Best, Lanes, Rule};
use super::tile::Tile;
use crate::linear::{Loss, Optimizer, TINIEST};
use crate::simd::{dispatched, LANES};

dispatched! {
    /// Takes the chunk's examples one after the other.
    pub(super) fn learn(tile: &mut Tile, chunk: &Chunk, rule: Rule, out: &mut Vec<Best>) {
        match tile.groups {
            1 => learn_groups::<1>(tile, chunk, rule, out),
            2 => learn_groups::<2>(tile, chunk, rule, out),
            _ => learn_groups::<4>(tile, chunk, rule, out),
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn learn_groups<const G: usize>(tile: &mut Tile, chunk: &Chunk, rule: Rule, out: &mut Vec<Best>) {
    let mut rates = Vec::new();
    for i in 0..chunk.len() {
        let example = chunk.get(i);
        let mut p = scores::<G>(&tile.weights, &example, rule.pulls);
        if let Some((low, high)) = example.to.span {
            for p in p.as_flattened_mut() {
                *p = p.clamp(low, high);
            }
        }
        out.push(best::<G>(&p, &tile.absent, tile.first));
        let (y, h) = targets::<G>(tile, &example);
        step::<G>(tile, &example, rule, &p, &y, &h, &mut rates);
    }
}

/// Per class: +1 or -1, and the importance, 0 where there is nothing to learn.
#[inline(always)]
#[allow(clippy::inline_always)]
fn targets<const G: usize>(tile: &mut Tile, example: &Example<'_>) -> ([Lanes; G], [Lanes; G]) {
    let (first, last) = (tile.first as u32, (tile.first + tile.width()) as u32);
    let importance = example.to.importance;
    let mut y = [[-1.0; LANES]; G];
    let mut h = [[importance; LANES]; G];
    if let Some(negatives) = example.negatives {
        h = [[0.0; LANES]; G];
        for class in negatives.iter().filter(|c| (first..last).contains(c)) {
            let (g, lane) = place(class - first);
            h[g][lane] = importance * example.negative_share;
        }
    }
    for class in example.labels.iter().filter(|c| (first..last).contains(c)) {
        let (g, lane) = place(class - first);
        y[g][lane] = 1.0;
        h[g][lane] = importance;
        tile.absent[(class - first) as usize] = 0.0;
    }
    (y, h)
}

/// One step of all classes; the numbers are those of the design notes.
#[inline(always)]
#[allow(clippy::inline_always, clippy::too_many_arguments)]
fn step<const G: usize>(
    tile: &mut Tile,
    example: &Example<'_>,
    rule: Rule,
    p: &[Lanes; G],
    y: &[Lanes; G],
    h: &[Lanes; G],
    rates: &mut Vec<[Lanes; G]>,
) {
    let nag = rule.optimizer == Optimizer::Nag;
    let to = &example.to;
    // 2. no loss, no update. 3. the weighted square of the slope, 0 if inactive.
    let mut slopes = [[0.0f32; LANES]; G];
    let mut any = false;
    for g in 0..G {
        for lane in 0..LANES {
            let (p, y) = (p[g][lane], y[g][lane]);
            if h[g][lane] > 0.0 && !rule.loss.is_satisfied(y, p) {
                slopes[g][lane] = h[g][lane] * rule.loss.slope_squared(y, p);
                any |= slopes[g][lane] > 0.0;
            }
        }
    }
    if !any {
        return;
    }
    rates.clear();
    let mut ppu = [[0.0f32; LANES]; G];
    let mut norm = [[0.0f32; LANES]; G];
    for (&slot, &x) in example.slots.iter().zip(example.values) {
        let size = x.abs().max(TINIEST);
        let square = size * size;
        let sums = row_mut::<G>(&mut tile.squares, slot);
        let mut rate = [[0.0f32; LANES]; G];
        for g in 0..G {
            for lane in 0..LANES {
                sums[g][lane] += slopes[g][lane] * square;
                let root = sums[g][lane].sqrt();
                rate[g][lane] = if root > 0.0 { 1.0 / root } else { 0.0 };
            }
        }
        if nag {
            // 4. a new largest size shrinks the weight.
            let scales = row_mut::<G>(&mut tile.scales, slot);
            let weights = row_mut::<G>(&mut tile.weights, slot);
            let mut moved = [[0.0f32; LANES]; G];
            for g in 0..G {
                for lane in 0..LANES {
                    let (s, w) = (scales[g][lane], weights[g][lane]);
                    let grows = size > s && slopes[g][lane] > 0.0;
                    let kept = if s > 0.0 { w * (s / size) } else { w };
                    weights[g][lane] = if grows { kept } else { w };
                    moved[g][lane] = weights[g][lane] - w;
                    let s = if grows { size } else { s };
                    scales[g][lane] = s;
                    let s = if s > 0.0 { s } else { size };
                    rate[g][lane] *= 1.0 / s;
                    norm[g][lane] += square / (s * s);
                }
            }
            drift::<G>(tile, slot, to.total, &moved);
        }
        for g in 0..G {
            for lane in 0..LANES {
                ppu[g][lane] += square * rate[g][lane];
            }
        }
        rates.push(rate);
    }
    // 5. and 6.
    let mut u = [[0.0f32; LANES]; G];
    let eta = to.eta;
    for g in 0..G {
        for lane in 0..LANES {
            if slopes[g][lane] > 0.0 {
                let h = h[g][lane];
                let mut factor = 1.0;
                if nag {
                    let at = g * LANES + lane;
                    tile.times[at] += f64::from(h);
                    tile.norms[at] += f64::from(h) * f64::from(norm[g][lane]);
                    factor = (tile.times[at] as f32 / tile.norms[at] as f32).sqrt();
                }
                let (p, y, ppu) = (p[g][lane], y[g][lane], ppu[g][lane] * factor);
                u[g][lane] = steps(rule.loss, y, p, eta * h, ppu) * factor;
            }
        }
    }
    let constant = example.slots.len().saturating_sub(1);
    for (i, (&slot, &x)) in example.slots.iter().zip(example.values).enumerate() {
        // Stored weights are those in use divided by `shrink`.
        let x = if i == constant { x } else { x / to.shrink };
        let mut moved = [[0.0f32; LANES]; G];
        let weights = row_mut::<G>(&mut tile.weights, slot);
        for g in 0..G {
            for lane in 0..LANES {
                moved[g][lane] = u[g][lane] * (x * rates[i][g][lane]);
                weights[g][lane] += moved[g][lane];
            }
        }
        drift::<G>(tile, slot, to.total, &moved);
    }
}

/// [`Loss::step`], 0 where nothing can move.
#[inline]
fn steps(loss: Loss, y: f32, p: f32, a: f32, ppu: f32) -> f32 {
    if ppu > 0.0 {
        loss.step(y, p, a, ppu)
    } else {
        0.0
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn drift<const G: usize>(tile: &mut Tile, slot: u32, total: f32, moved: &[Lanes; G]) {
    if tile.drift.is_empty() {
        return;
    }
    let drift = row_mut::<G>(&mut tile.drift, slot);
    for g in 0..G {
        for lane in 0..LANES {
            drift[g][lane] += total * moved[g][lane];
        }
    }
}
