//! Scorers that learn jointly, by the softmax over the candidates or by a margin. All step in the
//! example's own direction; only how far differs between the candidates.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::column_weights::ColumnWeights;
use super::labels::LocalId;
use super::params::{Params, ScorerLoss};
use crate::error::{Error, Result};
use crate::file::{is_count, LARGEST};
use crate::linear::loss::softmax;
use crate::linear::{bounded_score, padded, Loss, PathExample, Weights};
use crate::persist;
use crate::simd::LANES;
use crate::tree::NodeId;

/// The step of a label's scorer has fallen to 1/sqrt(2) after so many examples of the
/// label, and so many more per effective dimension of the example; as for the routers.
const HALVING_EXAMPLES: f32 = 4.0;
/// See [`HALVING_EXAMPLES`].
const HALVING_PER_DIMENSION: f32 = 0.003;

/// Smaller gradients are rounded to this or to 0 at random, with themselves as the
/// mean. Most candidates' gradients are tiny, and writing them all would cost more
/// than everything else; so one candidate in ten or fewer is written to.
const SMALLEST_GRADIENT: f32 = 0.05;

/// An example of weight above 1 is learned in parts, so that it does not
/// overshoot; more parts than this change nothing.
const MAX_PARTS: f32 = 32.0;

/// An example at its final node.
#[derive(Debug, Clone, Copy)]
pub struct ScorerInput<'a> {
    pub example: &'a PathExample,
    /// The labels to score, the most frequent first.
    pub candidates: &'a [LocalId],
    /// From the root to the final node.
    pub path: &'a [NodeId],
}

/// Scratch space of one thread; the scores are its result.
#[derive(Debug, Clone, Default)]
pub struct ScorerWorkspace {
    /// One per candidate.
    pub scores: Vec<f32>,
    /// How far to go along the example's direction, one per candidate.
    pub(super) steps: Vec<f32>,
    /// What the softmax reads and writes, padded to whole registers.
    pub(super) softmax_scores: Vec<f32>,
    pub(super) gradients: Vec<f32>,
    /// A row of a block, to be scored.
    pub(super) row: PathExample,
    /// The example with the indicators of its path as further columns.
    pub(super) widened: PathExample,
}

/// All classes' weights.
#[derive(Debug, Clone)]
pub struct JointScorers {
    loss: ScorerLoss,
    margin: f32,
    rate: f32,
    /// Padded number of columns.
    pub(super) width: usize,
    /// Passes of `fit` done.
    pub(super) passes: f64,
    /// Weight of the examples that each label was learned from.
    trained: Vec<f64>,
    /// A class's weights together, where rows fill a good part of the columns; else none.
    pub(super) by_class: Vec<Weights<f32>>,
    /// A column's weights together, where they do not; else none.
    pub(super) by_column: ColumnWeights,
}

persist!(JointScorers {
    Meta passes;
    Columns trained;
    Columns by_class;
    Nest by_column;
} check check_stored);

impl JointScorers {
    /// Weights of 0; for examples of `width` columns, of which about `n_filled` are not 0.
    pub fn new(params: &Params, n_classes: usize, width: usize, n_filled: usize) -> Self {
        let width = padded(width);
        let mut by_column = ColumnWeights::default();
        let mut by_class = Vec::new();
        if n_filled * PathExample::DENSE_SHARE >= width {
            by_class.resize(n_classes, Weights::default());
        } else {
            by_column.reserve_columns(width);
        }
        Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate().min(LARGEST.into()) as f32,
            width,
            passes: 0.0,
            trained: vec![0.0; n_classes],
            by_class,
            by_column,
        }
    }

    /// Adds scorers of weights of 0, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        self.trained.resize(n_classes, 0.0);
        if !self.by_class.is_empty() {
            self.by_class.resize(n_classes, Weights::default());
        }
    }

    /// What does not fit together in scorers that were restored; there are as many counts
    /// as classes.
    fn check_stored(&self) -> Result<()> {
        let n_classes = self.trained.len();
        let layout = (self.by_class.len(), self.by_column.columns.len());
        let fits = (layout == (n_classes, 0) || layout == (0, self.width))
            && self.by_class.iter().all(|w| w.fits(self.width))
            && self.by_column.fits(n_classes)
            && self.trained.iter().chain([&self.passes]).all(is_count);
        let error = || Error::data("the scorers do not fit the classes and columns");
        fits.then_some(()).ok_or_else(error)
    }

    /// Writes the scores of the candidates to `workspace.scores`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (input.example, input.candidates);
        let scores = &mut workspace.scores;
        scores.clear();
        if self.by_class.is_empty() {
            scores.resize(candidates.len(), 0.0);
            let row = (&example.row().columns[..], &example.row().values[..]);
            self.by_column.score(row, candidates, scores);
        } else {
            let weights = candidates.iter().map(|&label| &self.by_class[label.at()]);
            scores.extend(weights.map(|weights| example.dot(weights)));
        }
        scores
            .iter_mut()
            .for_each(|score| *score = bounded_score(*score));
    }

    /// After [`score`](Self::score): the candidate at `correct` learns to be the best. `clock`:
    /// number of the example, by which random numbers are drawn.
    pub fn learn(
        &mut self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        clock: u64,
        workspace: &mut ScorerWorkspace,
    ) {
        let (example, candidates) = (input.example, input.candidates);
        // Steps shrink with the label's trainings and with passes.
        let per_example = 1.0 / (HALVING_EXAMPLES + HALVING_PER_DIMENSION * example.dimension());
        let highest_rate = self.rate / (1.0 + self.passes as f32).sqrt();
        let rate = |place: usize| {
            let n = self.trained[candidates[place].at()] as f32;
            highest_rate / (1.0 + per_example * n).sqrt()
        };
        let steps = Steps {
            correct,
            weight,
            margin: self.margin,
            rate,
        };
        match self.loss {
            ScorerLoss::Margin => steps.by_margin(workspace),
            _ => steps.by_softmax(clock, workspace),
        }
        let limit = example.limit();
        let decided = workspace.steps.iter_mut();
        decided.for_each(|step| *step = limit.shorten(*step));
        self.trained[candidates[correct].at()] += f64::from(weight);
        if self.by_class.is_empty() {
            let columns = &example.row().columns;
            let direction = example.direction();
            self.by_column
                .add(columns, direction, candidates, &workspace.steps);
        } else {
            for (&label, &step) in candidates.iter().zip(&workspace.steps) {
                if step != 0.0 {
                    example.add(step, &mut self.by_class[label.at()], self.width);
                }
            }
        }
    }
}

/// What the steps of an example's candidates depend on, beside their scores.
struct Steps<R> {
    /// The position of the label among the candidates.
    correct: usize,
    weight: f32,
    /// By how much the label must be ahead.
    margin: f32,
    /// Each candidate's learning rate.
    rate: R,
}

impl<R: Fn(usize) -> f32> Steps<R> {
    /// Descends the cross-entropy, from `workspace.scores` to `workspace.steps`.
    fn by_softmax(&self, clock: u64, workspace: &mut ScorerWorkspace) {
        let parts = self.weight.ceil().clamp(1.0, MAX_PARTS);
        let part = (self.weight / parts).min(1.0);
        let mut random = Pcg64Mcg::seed_from_u64(clock);
        let (scores, steps) = (&workspace.scores, &mut workspace.steps);
        let (moving, gradients) = (&mut workspace.softmax_scores, &mut workspace.gradients);
        steps.clear();
        steps.resize(scores.len(), 0.0);
        moving.clone_from(scores);
        // The padding has probability 0.
        moving.resize(scores.len().next_multiple_of(LANES), f32::NEG_INFINITY);
        gradients.resize(moving.len(), 0.0);
        moving[self.correct] -= self.margin;
        for _ in 0..parts as usize {
            softmax(moving, gradients);
            gradients[self.correct] -= 1.0;
            for (place, step) in steps.iter_mut().enumerate() {
                let gradient = rounded(gradients[place], &mut random);
                if gradient != 0.0 {
                    let far = -gradient * part * (self.rate)(place);
                    *step += far;
                    moving[place] = bounded_score(moving[place] + far);
                }
            }
        }
    }

    /// Moves the label and its best rival apart, from `workspace.scores` to `workspace.steps`.
    fn by_margin(&self, workspace: &mut ScorerWorkspace) {
        let (scores, steps) = (&workspace.scores, &mut workspace.steps);
        steps.clear();
        steps.resize(scores.len(), 0.0);
        let rivals = scores.iter().enumerate();
        let rivals = rivals.filter(|&(place, _)| place != self.correct);
        let best = rivals.reduce(|best, next| if next.1 > best.1 { next } else { best });
        if let Some((rival, best)) = best {
            // The hinge loss wants a gap of 1; both move, so it closes twice as fast.
            let ahead = scores[self.correct] - best + 1.0 - self.margin;
            let a = self.weight * (self.rate)(self.correct);
            let step = Loss::Hinge.step(1.0, ahead, a, 2.0);
            steps[self.correct] = step;
            steps[rival] = -step;
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
    use crate::data::{Preparation, Rows, Scaling, Values};
    use crate::linear::{Optimizer, Regressors};

    const SCORES: [f32; 4] = [0.5, 2.0, -1.0, 1.0];

    /// The steps at a rate of `rate` and a margin of 1.5; the candidate at 2 is right.
    fn steps(loss: ScorerLoss, weight: f32, rate: f32) -> Vec<f32> {
        let steps = Steps {
            correct: 2,
            weight,
            margin: 1.5,
            rate: |_| rate,
        };
        let mut workspace = ScorerWorkspace {
            scores: SCORES.to_vec(),
            ..ScorerWorkspace::default()
        };
        match loss {
            ScorerLoss::Margin => steps.by_margin(&mut workspace),
            _ => steps.by_softmax(7, &mut workspace),
        }
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
                scores[place] += step;
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
        // From -1, against a best rival of 2; a step of 0.1 moves both by as much.
        assert_eq!(steps(ScorerLoss::Margin, 1.0, 0.1), [0.0, -0.1, 0.1, 0.0]);
        let far = steps(ScorerLoss::Margin, 1e6, 1.0);
        let moved = |place: usize| SCORES[place] + far[place];
        assert!((moved(2) - moved(1) - 1.5).abs() < 1e-6);
        assert_eq!(far[0], 0.0);
    }

    /// The rate falls with the square root of 1 + passes and of 1 + examples / (4 + 0.003 d), and
    /// a step moves the score by as much as was decided.
    #[test]
    fn steps_shrink_with_passes_and_with_examples_of_the_label() {
        let halving = f64::from(HALVING_EXAMPLES + 3.0 * HALVING_PER_DIMENSION);
        for (passes, trained, share) in [
            (0.0, 0.0, 1.0),
            (3.0, 0.0, 0.5),
            (0.0, 3.0 * halving, 0.5),
            (8.0, 3.0 * halving, 1.0 / 6.0),
            (0.0, 1e12, (halving / 1e12).sqrt()),
        ] {
            let params = Params {
                loss: ScorerLoss::Margin,
                learning_rate: Some(0.125),
                ..Params::default()
            };
            let rows = Rows::dense(Values::F32(&[2.0, 1.0]), 1, 2, false).unwrap();
            let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
            let mut example = PathExample::default();
            example.read(&preparation, &rows, 0);
            Regressors::new(Optimizer::Pn, Loss::Hinge, 3).prepare(&mut example, 1.0);
            let mut scorers = JointScorers::new(&params, 2, 3, 3);
            scorers.passes = passes;
            scorers.trained[0] = trained;
            let mut workspace = ScorerWorkspace::default();
            let input = ScorerInput {
                example: &example,
                candidates: &[0, 1].map(LocalId),
                path: &[],
            };
            scorers.score(&input, &mut workspace);
            scorers.learn(&input, 0, 1.0, 0, &mut workspace);
            let step = workspace.steps[0];
            let relative = f64::from(step) / 0.125;
            assert!((relative / share - 1.0).abs() < 1e-4, "{step} {share}");
            scorers.score(&input, &mut workspace);
            assert!((workspace.scores[0] - step).abs() < 1e-5);
        }
    }
}
