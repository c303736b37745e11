//! How far each candidate goes along the direction of the example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::learners::recall_tree::ScorerLoss;
use crate::linear::softmax::softmax;
use crate::linear::Loss;
use crate::simd::LANES;

/// Gradients smaller than this are taken for this now and then, else for none: on
/// average the same. To write down the little that most candidates learn would
/// cost more than all else; so one in ten or fewer is written to.
const SMALLEST: f32 = 0.05;

/// An example of larger importance is learned in parts, so that it does not
/// overshoot; more parts than this change nothing.
const MOST_PARTS: f32 = 32.0;

/// What the softmax works in: whole registers.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    scores: Vec<f32>,
    chances: Vec<f32>,
}

/// What an example asks of the candidates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub loss: ScorerLoss,
    /// By how much the right candidate must be ahead, if the loss knows of it.
    pub margin: f32,
    /// The right candidate.
    pub which: usize,
    /// How much the example counts.
    pub importance: f32,
    /// By how much a score moves per unit of step.
    pub ppu: f32,
    /// Number of the example, from which chance is drawn.
    pub clock: u64,
}

/// One step per candidate, from their scores; `rate` is each one's learning rate.
pub(super) fn steps(
    task: &Task,
    scores: &[f32],
    rate: impl Fn(usize) -> f32,
    steps: &mut [f32],
    work: &mut Flow,
) {
    match task.loss {
        ScorerLoss::Softmax => cross_entropy(task, scores, rate, steps, work),
        ScorerLoss::Margin => margin(task, scores, rate, steps),
        single => {
            let loss = single.single().unwrap_or(Loss::Hinge);
            for (place, (step, &score)) in steps.iter_mut().zip(scores).enumerate() {
                let y = if place == task.which { 1.0 } else { -1.0 };
                *step = loss.step(y, score, task.importance * rate(place), task.ppu);
            }
        }
    }
}

fn cross_entropy(
    task: &Task,
    scores: &[f32],
    rate: impl Fn(usize) -> f32,
    steps: &mut [f32],
    work: &mut Flow,
) {
    let parts = task.importance.ceil().clamp(1.0, MOST_PARTS);
    let part = (task.importance / parts).min(1.0);
    let mut random = Pcg64Mcg::seed_from_u64(task.clock);
    let Flow {
        scores: moving,
        chances,
    } = work;
    moving.clear();
    moving.extend_from_slice(scores);
    // What fills up the last register has no chance.
    moving.resize(scores.len().next_multiple_of(LANES), f32::NEG_INFINITY);
    chances.resize(moving.len(), 0.0);
    moving[task.which] -= task.margin;
    for _ in 0..parts as usize {
        softmax(moving, chances);
        chances[task.which] -= 1.0;
        for (place, step) in steps.iter_mut().enumerate() {
            let slope = rounded(chances[place], &mut random);
            if slope != 0.0 {
                let far = -slope * part * rate(place);
                *step += far;
                moving[place] += far * task.ppu;
            }
        }
    }
}

/// At random, with `slope` as its mean, if it is small.
#[inline]
fn rounded(slope: f32, random: &mut Pcg64Mcg) -> f32 {
    if slope.abs() >= SMALLEST {
        slope
    } else if random.random_range(0.0..SMALLEST) < slope.abs() {
        SMALLEST.copysign(slope)
    } else {
        0.0
    }
}

fn margin(task: &Task, scores: &[f32], rate: impl Fn(usize) -> f32, steps: &mut [f32]) {
    let which = task.which;
    let mut rival = None;
    for (place, &score) in scores.iter().enumerate() {
        if place != which && rival.is_none_or(|(_, best)| score > best) {
            rival = Some((place, score));
        }
    }
    if let Some((rival, best)) = rival {
        // The hinge loss asks for a gap of 1; both move, so it closes twice as fast.
        let ahead = scores[which] - best + 1.0 - task.margin;
        let a = task.importance * rate(which);
        let step = Loss::Hinge.step(1.0, ahead, a, 2.0 * task.ppu);
        steps[which] = step;
        steps[rival] = -step;
    }
}
