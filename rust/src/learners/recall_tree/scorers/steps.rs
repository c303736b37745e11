//! How far each candidate goes along the direction of the example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{ScorerUpdate, ScorerWorkspace};
use crate::learners::recall_tree::params::ScorerLoss;
use crate::linear::loss::softmax;
use crate::linear::{bounded_score, Loss};
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
                let target = |is_label| if is_label { 1.0 } else { -1.0 };
                let steps = workspace.steps.iter_mut().zip(&workspace.scores);
                for (place, (step, &score)) in steps.enumerate() {
                    let y = target(place == self.update.correct);
                    *step = loss.step(y, score, self.update.weight * rate(place), self.ppu);
                }
            }
        }
    }

    fn cross_entropy(&self, rate: impl Fn(usize) -> f32, workspace: &mut ScorerWorkspace) {
        let parts = self.update.weight.ceil().clamp(1.0, MAX_PARTS);
        let part = (self.update.weight / parts).min(1.0);
        let mut random = Pcg64Mcg::seed_from_u64(self.update.clock);
        let (scores, steps) = (&workspace.scores, &mut workspace.steps);
        let (moving, gradients) = (&mut workspace.softmax_scores, &mut workspace.gradients);
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
                    moving[place] = bounded_score(moving[place] + far * self.ppu);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learners::recall_tree::label_index::LocalId;
    use crate::learners::recall_tree::scorers::ScorerInput;
    use crate::linear::PathExample;

    const SCORES: [f32; 4] = [0.5, 2.0, -1.0, 1.0];

    /// The steps at a rate of `rate`, a margin of 1.5, and two units of score per unit of step;
    /// the candidate at 2 is right.
    fn steps(loss: ScorerLoss, weight: f32, rate: f32) -> Vec<f32> {
        let update = ScorerUpdate {
            input: ScorerInput {
                example: &PathExample::default(),
                candidates: &[3, 1, 0, 2].map(LocalId),
                path: &[],
            },
            correct: 2,
            weight,
            clock: 7,
        };
        let params = StepParams {
            loss,
            margin: 1.5,
            ppu: 2.0,
            update: &update,
        };
        let mut workspace = ScorerWorkspace {
            scores: SCORES.to_vec(),
            steps: vec![0.0; 4],
            ..ScorerWorkspace::default()
        };
        params.decide(|_| rate, &mut workspace);
        workspace.steps
    }

    /// The softmax's steps in single parts, nothing rounded.
    fn descent(parts: usize, part: f64, rate: f64) -> Vec<f64> {
        let mut scores = SCORES.map(f64::from);
        scores[2] -= 1.5;
        let mut steps = vec![0.0; 4];
        for _ in 0..parts {
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            let gradients = scores.map(|score| score.exp() / sum);
            for (place, gradient) in gradients.into_iter().enumerate() {
                let step = -rate * part * (gradient - f64::from(u8::from(place == 2)));
                steps[place] += step;
                scores[place] += 2.0 * step;
            }
        }
        steps
    }

    #[test]
    fn the_softmax_learns_heavy_examples_in_parts() {
        for (weight, parts, part) in [
            (0.25f32, 1, 0.25),
            (1.0, 1, 1.0),
            (2.5, 3, 2.5 / 3.0),
            (32.0, 32, 1.0),
            (1e6, 32, 1.0),
        ] {
            let expected = descent(parts, part, 0.01);
            let found = steps(ScorerLoss::Softmax, weight, 0.01);
            for (found, expected) in found.iter().zip(&expected) {
                // Small gradients are rounded at random, to 0.05 at most.
                let rounding = 0.01 * 0.05 * (parts as f64).sqrt() * 2.0 * part;
                let difference = f64::from(*found) - expected;
                assert!(difference.abs() < rounding, "{weight}: {found} {expected}");
            }
        }
    }

    #[test]
    fn small_gradients_are_right_on_average() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for gradient in [-0.03f32, -0.001, 0.0, 0.02] {
            let n = 20_000;
            let sum: f64 = (0..n)
                .map(|_| f64::from(rounded(gradient, &mut random)))
                .sum();
            assert!((sum / f64::from(n) - f64::from(gradient)).abs() < 1e-3);
        }
        for gradient in [-0.05, 0.05, -0.9] {
            assert_eq!(rounded(gradient, &mut random), gradient);
        }
    }

    #[test]
    fn the_margin_is_reached_and_not_exceeded() {
        // From -1, against a best rival of 2; a step of 0.1 moves both by 0.2.
        assert_eq!(steps(ScorerLoss::Margin, 1.0, 0.1), [0.0, -0.1, 0.1, 0.0]);
        let far = steps(ScorerLoss::Margin, 1e6, 1.0);
        let moved = |place: usize| SCORES[place] + 2.0 * far[place];
        assert!((moved(2) - moved(1) - 1.5).abs() < 1e-6);
        assert_eq!(far[0], 0.0);
    }

    #[test]
    fn single_losses_learn_each_candidate_by_itself() {
        let found = steps(ScorerLoss::Hinge, 1.0, 0.1);
        assert_eq!(found, [-0.1, -0.1, 0.1, -0.1]);
        let found = steps(ScorerLoss::Squared, 1e6, 1.0);
        for (place, step) in found.iter().enumerate() {
            let target = if place == 2 { 1.0 } else { -1.0 };
            assert!((SCORES[place] + 2.0 * step - target).abs() < 1e-6);
        }
    }
}
