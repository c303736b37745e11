//! The cross-entropy of the softmax, in which all classes learn from each
//! other's scores: one example after the other, each through all tiles.

use super::chunk::Chunk;
use super::scoring::{score_example, BestClass};
use super::shared_direction::apply_steps;
use super::tile::Tile;
use crate::linear::softmax::{descend, softmax};

/// A step follows the gradient flow of the scores in substeps no longer than this,
/// so that an example of large importance does not overshoot.
const MAX_SUBSTEP: f32 = 1.0;

/// More substeps than this change nothing: the gradient is zero by then.
const MAX_SUBSTEPS: f32 = 32.0;

/// Learns the chunk's examples one after the other; `bests` gets, tile by tile, the best
/// class of each as it stood before the example was learned.
pub(super) fn learn(tiles: &mut [Tile], chunk: &Chunk, bests: &mut [Vec<BestClass>]) {
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
        let ppu = example.params.ppu.max(f32::MIN_POSITIVE);
        let length = example.params.rate() * ppu;
        let n = (length / MAX_SUBSTEP).ceil().clamp(1.0, MAX_SUBSTEPS);
        let substep = (length / n).min(MAX_SUBSTEP);
        steps.fill(0.0);
        for _ in 0..n as usize {
            softmax(&scores, &mut gradients);
            for &label in example.labels {
                gradients[label as usize] -= share;
            }
            descend(substep, &gradients, &mut scores, &mut steps);
        }
        steps.iter_mut().for_each(|u| *u /= ppu);
        for tile in tiles.iter_mut() {
            tile.mark_seen(example.labels);
            apply_steps(tile, &example, &steps[tile.first..][..tile.width()]);
        }
    }
}
