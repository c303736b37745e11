//! The cross-entropy of the softmax, in which all classes learn from each
//! other's scores: example by example through all tiles.

use super::chunk::Chunk;
use super::kernels::{apply_one, score_one, Best, Rule};
use super::tile::Tile;
use crate::linear::softmax::{flow, softmax};

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
