//! How far each candidate goes along the direction of the example.

use crate::linear::softmax::{flow, softmax};
use crate::linear::Loss;
use crate::recall_tree::ScorerLoss;
use crate::simd::LANES;

/// Steps of the softmax's gradient flow are taken in parts no longer than this,
/// so that an example of large importance does not overshoot.
const LONGEST: f32 = 1.0;

/// More parts than this change nothing: the flow has come to rest.
const MOST_PARTS: f32 = 32.0;

/// Candidates whose chance is below this do not learn that they are wrong: what
/// they would learn is little, and to write it down costs as much as anything.
const NO_CHANCE: f32 = 1e-3;

/// What the softmax's flow works in: whole registers.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    scores: Vec<f32>,
    chances: Vec<f32>,
    steps: Vec<f32>,
}

/// Steps for a learning rate times importance of `a`, the right candidate being
/// number `which`; `ppu` is by how much a score moves per unit of step.
pub(super) fn steps(
    loss: ScorerLoss,
    which: usize,
    a: f32,
    ppu: f32,
    scores: &[f32],
    steps: &mut [f32],
    work: &mut Flow,
) {
    match loss {
        ScorerLoss::Softmax => cross_entropy(which, a, ppu, scores, steps, work),
        ScorerLoss::Margin => margin(which, a, ppu, scores, steps),
        single => {
            let loss = single.single().unwrap_or(Loss::Hinge);
            for (place, (step, &score)) in steps.iter_mut().zip(scores).enumerate() {
                let y = if place == which { 1.0 } else { -1.0 };
                *step = loss.step(y, score, a, ppu);
            }
        }
    }
}

fn cross_entropy(
    which: usize,
    a: f32,
    ppu: f32,
    scores: &[f32],
    steps: &mut [f32],
    work: &mut Flow,
) {
    let ppu = ppu.max(f32::MIN_POSITIVE);
    let time = a * ppu;
    let parts = (time / LONGEST).ceil().clamp(1.0, MOST_PARTS);
    let part = (time / parts).min(LONGEST);
    let n = scores.len();
    let Flow {
        scores: moving,
        chances,
        steps: moved,
    } = work;
    moving.clear();
    moving.extend_from_slice(scores);
    // Whole registers; what fills them up has no chance.
    moving.resize(n.next_multiple_of(LANES), f32::NEG_INFINITY);
    chances.resize(moving.len(), 0.0);
    moved.clear();
    moved.resize(moving.len(), 0.0);
    for number in 0..parts as usize {
        softmax(moving, chances);
        if number == 0 {
            for (step, &chance) in steps.iter_mut().zip(&*chances) {
                *step = if chance < NO_CHANCE { 0.0 } else { 1.0 };
            }
            steps[which] = 1.0;
        }
        chances[which] -= 1.0;
        flow(part, chances, moving, moved);
    }
    for (step, moved) in steps.iter_mut().zip(moved) {
        *step *= *moved / ppu;
    }
}

fn margin(which: usize, a: f32, ppu: f32, scores: &[f32], steps: &mut [f32]) {
    let mut rival = None;
    for (place, &score) in scores.iter().enumerate() {
        if place != which && rival.is_none_or(|(_, best)| score > best) {
            rival = Some((place, score));
        }
    }
    if let Some((rival, best)) = rival {
        // Both move, so that the gap closes twice as fast.
        let step = Loss::Hinge.step(1.0, scores[which] - best, a, 2.0 * ppu);
        steps[which] = step;
        steps[rival] = -step;
    }
}
