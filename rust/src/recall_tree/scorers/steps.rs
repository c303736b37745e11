//! How far each candidate goes along the direction of the example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::linear::softmax::{flow, softmax};
use crate::linear::Loss;
use crate::recall_tree::ScorerLoss;
use crate::simd::LANES;

/// Steps of the softmax's gradient flow are taken in parts no longer than this,
/// so that an example of large importance does not overshoot.
const LONGEST: f32 = 1.0;

/// More parts than this change nothing: the flow has come to rest.
const MOST_PARTS: f32 = 32.0;

/// Candidates whose chance is below this learn that they are wrong but now and
/// then, and then as much as one of this chance: on average the same. To write
/// down the little that most of them learn costs more than all else.
const SMALL_CHANCE: f32 = 0.03;

/// What the softmax's flow works in: whole registers.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    scores: Vec<f32>,
    chances: Vec<f32>,
    steps: Vec<f32>,
}

/// What an example asks of the candidates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub loss: ScorerLoss,
    /// By how much the right candidate must be ahead, if the loss knows of it.
    pub margin: f32,
    /// The right candidate.
    pub which: usize,
    /// Learning rate times importance.
    pub a: f32,
    /// By how much a score moves per unit of step.
    pub ppu: f32,
    /// Number of the example, from which chance is drawn.
    pub clock: u64,
}

/// One step per candidate, from their scores.
pub(super) fn steps(task: &Task, scores: &[f32], steps: &mut [f32], work: &mut Flow) {
    let Task { which, a, ppu, .. } = *task;
    match task.loss {
        ScorerLoss::Softmax => cross_entropy(task, scores, steps, work),
        ScorerLoss::Margin => margin(task, scores, steps),
        single => {
            let loss = single.single().unwrap_or(Loss::Hinge);
            for (place, (step, &score)) in steps.iter_mut().zip(scores).enumerate() {
                let y = if place == which { 1.0 } else { -1.0 };
                *step = loss.step(y, score, a, ppu);
            }
        }
    }
}

fn cross_entropy(task: &Task, scores: &[f32], steps: &mut [f32], work: &mut Flow) {
    let Task { which, a, ppu, .. } = *task;
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
    moving[which] -= task.margin;
    let mut random = Pcg64Mcg::seed_from_u64(task.clock);
    for number in 0..parts as usize {
        softmax(moving, chances);
        if number == 0 {
            for (step, &chance) in steps.iter_mut().zip(&*chances) {
                *step = if chance >= SMALL_CHANCE {
                    1.0
                } else if random.random_range(0.0..SMALL_CHANCE) < chance {
                    SMALL_CHANCE / chance
                } else {
                    0.0
                };
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

fn margin(task: &Task, scores: &[f32], steps: &mut [f32]) {
    let Task { which, a, ppu, .. } = *task;
    let mut rival = None;
    for (place, &score) in scores.iter().enumerate() {
        if place != which && rival.is_none_or(|(_, best)| score > best) {
            rival = Some((place, score));
        }
    }
    if let Some((rival, best)) = rival {
        // The hinge loss asks for a gap of 1; both move, so it closes twice as fast.
        let ahead = scores[which] - best + 1.0 - task.margin;
        let step = Loss::Hinge.step(1.0, ahead, a, 2.0 * ppu);
        steps[which] = step;
        steps[rival] = -step;
    }
}
