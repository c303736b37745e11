//! How far each candidate goes along the direction of the example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::learners::recall_tree::params::ScorerLoss;
use crate::linear::softmax::softmax;
use crate::linear::Loss;
use crate::simd::LANES;

/// Smaller gradients are rounded to this or to 0 at random, with themselves as the
/// mean. Most candidates' gradients are tiny, and writing them all would cost more
/// than everything else; so one candidate in ten or fewer is written to.
const SMALLEST_GRADIENT: f32 = 0.05;

/// An example of weight above 1 is learned in parts, so that it does not
/// overshoot; more parts than this change nothing.
const MAX_PARTS: f32 = 32.0;

/// Scratch space of the softmax, padded to whole registers.
#[derive(Debug, Clone, Default)]
pub(super) struct SoftmaxScratch {
    scores: Vec<f32>,
    gradients: Vec<f32>,
}

/// What the steps of an example's candidates depend on, beside scores and rates.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepParams {
    pub loss: ScorerLoss,
    /// By how much the correct candidate must be ahead, with the losses that have it.
    pub margin: f32,
    /// The correct candidate's position.
    pub correct: usize,
    /// Weight of the example.
    pub weight: f32,
    /// By how much a score moves per unit of step.
    pub ppu: f32,
    /// Number of the example, by which random numbers are drawn.
    pub clock: u64,
}

/// One step per candidate, from their scores; `rate` is each one's learning rate.
pub(super) fn decide_steps(
    params: &StepParams,
    scores: &[f32],
    rate: impl Fn(usize) -> f32,
    steps: &mut [f32],
    scratch: &mut SoftmaxScratch,
) {
    match params.loss {
        ScorerLoss::Softmax => cross_entropy(params, scores, rate, steps, scratch),
        ScorerLoss::Margin => margin(params, scores, rate, steps),
        single => {
            let loss = single.single().unwrap_or(Loss::Hinge);
            for (place, (step, &score)) in steps.iter_mut().zip(scores).enumerate() {
                let y = if place == params.correct { 1.0 } else { -1.0 };
                *step = loss.step(y, score, params.weight * rate(place), params.ppu);
            }
        }
    }
}

fn cross_entropy(
    params: &StepParams,
    scores: &[f32],
    rate: impl Fn(usize) -> f32,
    steps: &mut [f32],
    scratch: &mut SoftmaxScratch,
) {
    let parts = params.weight.ceil().clamp(1.0, MAX_PARTS);
    let part = (params.weight / parts).min(1.0);
    let mut random = Pcg64Mcg::seed_from_u64(params.clock);
    let SoftmaxScratch {
        scores: moving,
        gradients,
    } = scratch;
    moving.clear();
    moving.extend_from_slice(scores);
    // The padding has probability 0.
    moving.resize(scores.len().next_multiple_of(LANES), f32::NEG_INFINITY);
    gradients.resize(moving.len(), 0.0);
    moving[params.correct] -= params.margin;
    for _ in 0..parts as usize {
        softmax(moving, gradients);
        gradients[params.correct] -= 1.0;
        for (place, step) in steps.iter_mut().enumerate() {
            let gradient = rounded(gradients[place], &mut random);
            if gradient != 0.0 {
                let far = -gradient * part * rate(place);
                *step += far;
                moving[place] += far * params.ppu;
            }
        }
    }
}

/// Rounds a small gradient at random, with itself as the mean.
#[inline]
fn rounded(gradient: f32, random: &mut Pcg64Mcg) -> f32 {
    if gradient.abs() >= SMALLEST_GRADIENT {
        gradient
    } else if random.random_range(0.0..SMALLEST_GRADIENT) < gradient.abs() {
        SMALLEST_GRADIENT.copysign(gradient)
    } else {
        0.0
    }
}

fn margin(params: &StepParams, scores: &[f32], rate: impl Fn(usize) -> f32, steps: &mut [f32]) {
    let correct = params.correct;
    let mut rival = None;
    for (place, &score) in scores.iter().enumerate() {
        if place != correct && rival.is_none_or(|(_, best)| score > best) {
            rival = Some((place, score));
        }
    }
    if let Some((rival, best)) = rival {
        // The hinge loss wants a gap of 1; both move, so it closes twice as fast.
        let ahead = scores[correct] - best + 1.0 - params.margin;
        let a = params.weight * rate(correct);
        let step = Loss::Hinge.step(1.0, ahead, a, 2.0 * params.ppu);
        steps[correct] = step;
        steps[rival] = -step;
    }
}
