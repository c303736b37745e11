//! How far each candidate goes along the direction of the example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{ScorerUpdate, ScorerWorkspace};
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

/// What the steps of an example's candidates depend on, beside scores and rates.
pub(super) struct StepParams<'a> {
    pub loss: ScorerLoss,
    /// By how much the correct candidate must be ahead, with the losses that have it.
    pub margin: f32,
    /// By how much a score moves per unit of step.
    pub ppu: f32,
    pub update: &'a ScorerUpdate<'a>,
}

impl StepParams<'_> {
    /// One step per candidate, from `workspace.scores`; `rate` is each one's learning
    /// rate. The steps are 0 beforehand.
    pub fn decide(&self, rate: impl Fn(usize) -> f32, workspace: &mut ScorerWorkspace) {
        match self.loss {
            ScorerLoss::Softmax => self.cross_entropy(rate, workspace),
            ScorerLoss::Margin => self.margin(rate, workspace),
            single => {
                let loss = single.single().unwrap_or(Loss::Hinge);
                let steps = workspace.steps.iter_mut().zip(&workspace.scores);
                for (place, (step, &score)) in steps.enumerate() {
                    let y = if place == self.update.correct {
                        1.0
                    } else {
                        -1.0
                    };
                    *step = loss.step(y, score, self.update.weight * rate(place), self.ppu);
                }
            }
        }
    }

    fn cross_entropy(&self, rate: impl Fn(usize) -> f32, workspace: &mut ScorerWorkspace) {
        let parts = self.update.weight.ceil().clamp(1.0, MAX_PARTS);
        let part = (self.update.weight / parts).min(1.0);
        let mut random = Pcg64Mcg::seed_from_u64(self.update.clock);
        let ScorerWorkspace {
            scores,
            steps,
            softmax_scores: moving,
            gradients,
            ..
        } = workspace;
        moving.clone_from(scores);
        // The padding has probability 0.
        moving.resize(scores.len().next_multiple_of(LANES), f32::NEG_INFINITY);
        gradients.resize(moving.len(), 0.0);
        moving[self.update.correct] -= self.margin;
        for _ in 0..parts as usize {
            softmax(moving, gradients);
            gradients[self.update.correct] -= 1.0;
            for (place, step) in steps.iter_mut().enumerate() {
                let gradient = rounded(gradients[place], &mut random);
                if gradient != 0.0 {
                    let far = -gradient * part * rate(place);
                    *step += far;
                    moving[place] += far * self.ppu;
                }
            }
        }
    }

    fn margin(&self, rate: impl Fn(usize) -> f32, workspace: &mut ScorerWorkspace) {
        let (correct, scores) = (self.update.correct, &workspace.scores);
        let rivals = scores
            .iter()
            .enumerate()
            .filter(|&(place, _)| place != correct);
        let best = rivals.reduce(|best, next| if next.1 > best.1 { next } else { best });
        if let Some((rival, best)) = best {
            // The hinge loss wants a gap of 1; both move, so it closes twice as fast.
            let ahead = scores[correct] - best + 1.0 - self.margin;
            let a = self.update.weight * rate(correct);
            let step = Loss::Hinge.step(1.0, ahead, a, 2.0 * self.ppu);
            workspace.steps[correct] = step;
            workspace.steps[rival] = -step;
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
