//! The cross-entropy of the softmax, in which all classes learn from each
//! other's scores: example by example through all tiles.

use super::chunk::Chunk;
use super::kernels::{apply_one, score_one, Best, Rule};
use super::tile::Tile;
use crate::simd::{dispatched, LANES};

/// Steps of the gradient flow are taken in parts no longer than this, so that
/// an example of large importance does not overshoot.
const LONGEST: f32 = 1.0;

/// More parts than this change nothing: the flow has come to rest.
const MOST_PARTS: f32 = 32.0;

/// Learns a chunk; `best` gets the best class of each example as it stood
/// before the example was learned.
pub(super) fn learn(tiles: &mut [Tile], chunk: &Chunk, rule: Rule, best: &mut Vec<Best>) {
    best.clear();
    let width: usize = tiles.iter().map(Tile::width).sum();
    let n_classes = chunk.n_classes;
    let (mut scores, mut steps) = (vec![0.0; width], vec![0.0; width]);
    let mut chances = vec![0.0; width];
    for i in 0..chunk.len() {
        let example = chunk.get(i);
        let mut top = Best {
            score: f32::NEG_INFINITY,
            class: 0,
        };
        for tile in tiles.iter() {
            let out = &mut scores[tile.first..tile.first + tile.width()];
            score_one(tile, &example, rule.pulls, out);
            for (lane, (&score, &absent)) in out.iter().zip(&tile.absent).enumerate() {
                if score + absent > top.score {
                    top.score = score;
                    top.class = (tile.first + lane) as u32;
                }
            }
        }
        best.push(top);
        scores[n_classes..].fill(f32::NEG_INFINITY);
        if example.labels.is_empty() {
            continue;
        }
        let share = (example.labels.len() as f32).recip();
        let ppu = example.to.ppu.max(f32::MIN_POSITIVE);
        let time = example.to.rate * ppu;
        let parts = (time / LONGEST).ceil().clamp(1.0, MOST_PARTS);
        let part = (time / parts).min(LONGEST);
        steps.fill(0.0);
        for _ in 0..parts as usize {
            softmax(&scores, &mut chances);
            for &label in example.labels {
                chances[label as usize] -= share;
            }
            flow(part, &chances, &mut scores, &mut steps);
        }
        steps.iter_mut().for_each(|u| *u /= ppu);
        for tile in tiles.iter_mut() {
            for &label in example.labels {
                if let Some(absent) = (label as usize)
                    .checked_sub(tile.first)
                    .and_then(|at| tile.absent.get_mut(at))
                {
                    *absent = 0.0;
                }
            }
            let u = &steps[tile.first..tile.first + tile.width()];
            apply_one(tile, &example, u);
        }
    }
}

dispatched! {
    /// Moves scores and adds to the steps, both against the slopes.
    fn flow(part: f32, slopes: &[f32], scores: &mut [f32], steps: &mut [f32]) {
        for ((s, p), u) in slopes.iter().zip(scores).zip(steps) {
            *p -= part * s;
            *u -= part * s;
        }
    }
}

dispatched! {
    /// e^score / sum of them, over slices of a multiple of [`LANES`].
    fn softmax(scores: &[f32], chances: &mut [f32]) {
        let top = scores.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        let mut sums = [0.0f32; LANES];
        let (scores, _) = scores.as_chunks::<LANES>();
        let (chances, _) = chances.as_chunks_mut::<LANES>();
        for (scores, chances) in scores.iter().zip(chances.iter_mut()) {
            for lane in 0..LANES {
                let e = exp(scores[lane] - top);
                chances[lane] = e;
                sums[lane] += e;
            }
        }
        let sum: f32 = sums.iter().sum();
        let unit = sum.recip();
        for chances in chances {
            for chance in chances {
                *chance *= unit;
            }
        }
    }
}

/// e^x for x <= 0 to a few units in the last place, 0 below -87: a polynomial, so that it
/// is one result on all machines and vectorises, which the C library's does not.
#[inline(always)]
#[allow(clippy::inline_always)]
fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clipped = if x > -87.0 { x } else { -87.0 };
    let n = (clipped * std::f32::consts::LOG2_E - 0.5) as i32;
    let r = clipped - n as f32 * LN2_HIGH - n as f32 * LN2_LOW;
    let mut e = 1.987_569_1e-4f32;
    for c in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        e = e * r + c;
    }
    let e = e * r * r + r + 1.0;
    let scaled = e * f32::from_bits(((n + 127) as u32) << 23);
    if x > -87.0 {
        scaled
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_is_near() {
        for i in 0..8_700_u16 {
            let x = -f32::from(i) / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 1e-6, "{x}");
        }
        assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
    }
}
