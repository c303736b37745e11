//! One-against-some: a scorer for each label, shared by the whole tree.
//!
//! With the losses "softmax" and "margin" the candidates of an example learn jointly: all step in
//! the direction of the example, and the loss decides how far each of them goes. With the losses of
//! the paper each candidate learns like a router, by a regressor of its own. Section 3.2 of the
//! paper: with an indicator for each node of the path, a linear scorer can be as good as the tree
//! itself.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::column_weights::ColumnWeights;
use super::labels::LocalId;
use super::params::{Params, PathFeatures, ScorerLoss};
use crate::error::Result;
use crate::file::{is_count, Bundle, Columns, Nest, Persist, LARGEST};
use crate::linear::loss::softmax;
use crate::linear::{bounded_score, padded, Block, Loss, PathExample, Regressors, Weights};
use crate::model::first_best;
use crate::simd::LANES;
use crate::tree::NodeId;

/// After this many examples of a label, and [`HALVING_PER_DIMENSION`] more for each effective
/// dimension of the example, the steps of its scorer are 1/sqrt(2) of the first.
const HALVING_EXAMPLES: f32 = 4.0;
/// See [`HALVING_EXAMPLES`].
const HALVING_PER_DIMENSION: f32 = 0.003;

/// Smaller gradients are rounded at random to this or to 0, so that their mean is unchanged. Most
/// gradients of candidates are tiny, and writing all of them would cost more than everything else.
/// With rounding, one candidate in ten or fewer is written to.
const SMALLEST_GRADIENT: f32 = 0.05;

/// An example of weight above 1 is learned in parts, so that it does not overshoot. More parts than
/// this change nothing.
const MAX_PARTS: f32 = 32.0;

/// Columns for the indicators of nodes. If there are more nodes, several share a column.
const NODE_COLUMNS: u32 = 1 << 20;

/// An example at its final node.
#[derive(Debug, Clone, Copy)]
pub struct ScorerInput<'a> {
    pub example: &'a PathExample,
    /// The labels to score, the most frequent first.
    pub candidates: &'a [LocalId],
    /// The nodes from the root to the final node.
    pub path: &'a [NodeId],
}

/// Scratch space of one thread.
#[derive(Debug, Clone, Default)]
pub struct ScorerWorkspace {
    /// The result of [`Scorers::score`]: one score per candidate.
    pub scores: Vec<f32>,
    /// One step along the direction of the example per candidate.
    steps: Vec<f32>,
    /// Scores as the softmax reads them, padded to whole registers.
    softmax_scores: Vec<f32>,
    /// Gradients as the softmax writes them, padded likewise.
    gradients: Vec<f32>,
    /// A row of a block as an example.
    row: PathExample,
    /// The example with the indicators of its path as further columns.
    widened: PathExample,
}

/// The scorers of all labels.
#[derive(Debug, Clone)]
pub struct Scorers {
    loss: ScorerLoss,
    margin: f32,
    rate: f32,
    path_features: PathFeatures,
    pub n_columns: usize,
    /// Passes of `fit` done.
    pub passes: f64,
    /// Weight of the examples that each label was learned from; empty with [`Regressors`].
    pub trained: Vec<f64>,
    pub weights: ScorerWeights,
}

/// The layouts of the weights.
#[derive(Debug, Clone)]
pub enum ScorerWeights {
    /// The weights of each label lie together, for rows that fill many of the columns.
    ByLabel(Vec<Weights<f32>>),
    /// The weights of each column lie together, for sparse rows.
    ByColumn(ColumnWeights),
    /// A regressor for each label, for candidates that learn one by one.
    Regressors(Regressors),
}

impl Scorers {
    /// Creates scorers of zero weights, for examples of `n_columns` columns, of which about
    /// `n_filled` are not 0.
    pub fn new(params: &Params, n_classes: usize, n_columns: usize, n_filled: usize) -> Self {
        let width = padded(n_columns);
        let n_node_columns = match params.path_features {
            PathFeatures::None => 0,
            PathFeatures::All | PathFeatures::NodeOnly => NODE_COLUMNS as usize,
        };
        let weights = match params.loss.single() {
            Some(loss) => {
                let n_columns = n_columns + n_node_columns;
                ScorerWeights::Regressors(Regressors::new(params.optimizer(), loss, n_columns))
            }
            None if n_filled * PathExample::DENSE_SHARE >= width => {
                ScorerWeights::ByLabel(Vec::new())
            }
            None => ScorerWeights::ByColumn(ColumnWeights::new(width)),
        };
        let mut scorers = Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate().min(LARGEST.into()) as f32,
            path_features: params.path_features,
            n_columns,
            passes: 0.0,
            trained: Vec::new(),
            weights,
        };
        scorers.grow(n_classes);
        scorers
    }

    /// Adds scorers of zero weights, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        match &mut self.weights {
            ScorerWeights::ByLabel(weights) => weights.resize(n_classes, Weights::default()),
            ScorerWeights::ByColumn(_) => {}
            ScorerWeights::Regressors(regressors) => {
                while regressors.len() < n_classes {
                    regressors.push();
                }
                return;
            }
        }
        self.trained.resize(n_classes, 0.0);
    }

    /// Padded number of columns.
    pub fn width(&self) -> usize {
        padded(self.n_columns)
    }

    /// Bytes of rows of weights if each label has one.
    pub fn row_bytes(&self) -> usize {
        match &self.weights {
            ScorerWeights::ByLabel(weights) => weights.len() * self.width() * size_of::<f32>(),
            _ => 0,
        }
    }

    /// Writes the scores of the candidates to `workspace.scores`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (input.example, input.candidates);
        let scores = &mut workspace.scores;
        scores.clear();
        match &self.weights {
            ScorerWeights::ByLabel(weights) => {
                let weights = candidates.iter().map(|label| &weights[label.at()]);
                scores.extend(weights.map(|weights| example.dot(weights)));
            }
            ScorerWeights::ByColumn(weights) => {
                scores.resize(candidates.len(), 0.0);
                let row = example.row();
                weights.score((&row.columns, &row.values), candidates, scores);
            }
            ScorerWeights::Regressors(regressors) => {
                let example = &mut workspace.widened;
                self.widen(input, example);
                let labels = candidates.iter().map(|label| label.0);
                scores.extend(labels.map(|label| regressors.score(label, example)));
            }
        }
        scores
            .iter_mut()
            .for_each(|score| *score = bounded_score(*score));
    }

    /// Appends the scores of the candidates at the end of `path` for row `i` of a block to
    /// `scores`. They equal those by the copies of a frozen tree to the bit.
    pub fn score_row(
        &self,
        (block, i): (&Block, usize),
        (candidates, path): (&[LocalId], &[NodeId]),
        workspace: &mut ScorerWorkspace,
        scores: &mut Vec<f32>,
    ) {
        match &self.weights {
            ScorerWeights::ByLabel(weights) => {
                let is_for_lanes = block.is_for_lanes(i);
                let weights = candidates.iter().map(|label| &weights[label.at()]);
                scores.extend(weights.map(|weights| {
                    if is_for_lanes {
                        block.dot_as_lane(i, weights)
                    } else {
                        block.dot(i, weights)
                    }
                }));
            }
            ScorerWeights::ByColumn(weights) => {
                let from = scores.len();
                scores.resize(from + candidates.len(), 0.0);
                weights.score(block.row(i), candidates, &mut scores[from..]);
            }
            ScorerWeights::Regressors(_) => {
                let mut example = std::mem::take(&mut workspace.row);
                example.take(block, i);
                let input = ScorerInput {
                    example: &example,
                    candidates,
                    path,
                };
                self.score(&input, workspace);
                scores.extend_from_slice(&workspace.scores);
                workspace.row = example;
            }
        }
    }

    /// Trains the scorers of the candidates after [`score`](Self::score): that of the candidate at
    /// `correct` learns +1, those of the others -1. `clock` is the number of the example, the seed
    /// of its random numbers.
    pub fn learn(
        &mut self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        clock: u64,
        workspace: &mut ScorerWorkspace,
    ) {
        match self.loss {
            ScorerLoss::Softmax => self.softmax_steps(input, correct, weight, clock, workspace),
            ScorerLoss::Margin => self.margin_steps(input, correct, weight, workspace),
            _ => {
                let example = &mut workspace.widened;
                return self.learn_one_by_one(input, correct, weight, example);
            }
        }
        let (example, candidates) = (input.example, input.candidates);
        let (limit, steps) = (example.limit, &mut workspace.steps);
        steps
            .iter_mut()
            .for_each(|step| *step = limit.shorten(*step));
        self.trained[candidates[correct].at()] += f64::from(weight);
        let width = self.width();
        match &mut self.weights {
            ScorerWeights::ByLabel(weights) => {
                for (label, &step) in candidates.iter().zip(&*steps) {
                    if step != 0.0 {
                        example.add(step, &mut weights[label.at()], width);
                    }
                }
            }
            ScorerWeights::ByColumn(weights) => {
                let columns = &example.row().columns;
                weights.add(columns, &example.direction, candidates, steps);
            }
            ScorerWeights::Regressors(_) => {}
        }
    }

    /// Returns the learning rate of the candidate at `place`. It shrinks with passes, and with the
    /// examples that the label has been learned from.
    fn rate(&self, input: &ScorerInput<'_>, place: usize) -> f32 {
        let halving = HALVING_EXAMPLES + HALVING_PER_DIMENSION * input.example.dimension();
        let n = self.trained[input.candidates[place].at()] as f32;
        self.rate / (1.0 + self.passes as f32).sqrt() / (1.0 + 1.0 / halving * n).sqrt()
    }

    /// Writes the steps that descend the cross-entropy from `workspace.scores` to `workspace.steps`.
    fn softmax_steps(
        &self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        clock: u64,
        workspace: &mut ScorerWorkspace,
    ) {
        let parts = weight.ceil().clamp(1.0, MAX_PARTS);
        let part = (weight / parts).min(1.0);
        let mut random = Pcg64Mcg::seed_from_u64(clock);
        let (scores, steps) = (&workspace.scores, &mut workspace.steps);
        let (moving, gradients) = (&mut workspace.softmax_scores, &mut workspace.gradients);
        steps.clear();
        steps.resize(scores.len(), 0.0);
        moving.clone_from(scores);
        // The padding gets probability 0.
        moving.resize(scores.len().next_multiple_of(LANES), f32::NEG_INFINITY);
        gradients.resize(moving.len(), 0.0);
        moving[correct] -= self.margin;
        for _ in 0..parts as usize {
            softmax(moving, gradients);
            gradients[correct] -= 1.0;
            for (place, step) in steps.iter_mut().enumerate() {
                let gradient = rounded(gradients[place], &mut random);
                if gradient != 0.0 {
                    let far = -gradient * part * self.rate(input, place);
                    *step += far;
                    moving[place] = bounded_score(moving[place] + far);
                }
            }
        }
    }

    /// Writes the steps that move the label and its best rival apart to `workspace.steps`.
    fn margin_steps(
        &self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        workspace: &mut ScorerWorkspace,
    ) {
        let (scores, steps) = (&workspace.scores, &mut workspace.steps);
        steps.clear();
        steps.resize(scores.len(), 0.0);
        let rivals = scores.iter().enumerate();
        let rivals = rivals.filter(|&(place, _)| place != correct);
        if let Some((rival, best)) = first_best(rivals) {
            // The hinge loss requires a lead of 1. Both scores move, so the gap closes twice as
            // fast.
            let ahead = scores[correct] - best + 1.0 - self.margin;
            let a = weight * self.rate(input, correct);
            let step = Loss::Hinge.step(1.0, ahead, a, 2.0);
            steps[correct] = step;
            steps[rival] = -step;
        }
    }

    /// Trains the regressor of the correct label, then those of the other candidates.
    fn learn_one_by_one(
        &mut self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        example: &mut PathExample,
    ) {
        self.widen(input, example);
        let ScorerWeights::Regressors(regressors) = &mut self.weights else {
            return;
        };
        regressors.prepare(example, weight);
        let step = weight * self.rate;
        let correct = input.candidates[correct];
        let others = input.candidates.iter().filter(|&&other| other != correct);
        regressors.learn(correct.0, example, 1.0, step, weight, |_| None);
        for other in others {
            regressors.learn(other.0, example, -1.0, step, weight, |_| None);
        }
    }

    /// Writes the example with the indicators of its nodes, the deepest first, to `widened`.
    fn widen(&self, input: &ScorerInput<'_>, widened: &mut PathExample) {
        let nodes = match self.path_features {
            PathFeatures::None => &[],
            PathFeatures::All => &input.path[1..],
            PathFeatures::NodeOnly => &input.path[input.path.len().saturating_sub(1)..],
        };
        let column = |node: &NodeId| self.n_columns as u32 + node.0 % NODE_COLUMNS;
        widened.widened(input.example, nodes.iter().rev().map(column));
    }

    /// Calls `visit` with the weights of `label` for the columns of examples, without those for nodes.
    pub fn for_each_weight(&self, label: LocalId, visit: &mut dyn FnMut(u32, f32)) {
        let mut visit = |column: usize, weight| {
            if column < self.n_columns {
                visit(column as u32, weight);
            }
        };
        match &self.weights {
            ScorerWeights::ByLabel(weights) => weights[label.at()].for_each(visit),
            ScorerWeights::ByColumn(weights) => {
                let weights = weights.columns.iter().map(|column| column.get(label));
                weights
                    .enumerate()
                    .for_each(|(column, weight)| visit(column, weight));
            }
            ScorerWeights::Regressors(regressors) => regressors.plain(label.0).for_each(visit),
        }
    }

    /// Clamps scores to one span with the routers, as the authors' program does.
    pub fn share_span(&mut self, routers: &mut Regressors) {
        if let ScorerWeights::Regressors(regressors) = &mut self.weights {
            regressors.widen(routers.span());
            routers.widen(regressors.span());
        }
    }

    /// Drops what optimizers keep beside the weights.
    pub fn drop_state(&mut self) {
        if let ScorerWeights::Regressors(regressors) = &mut self.weights {
            *regressors = regressors.for_prediction();
        }
    }
}

/// Regressors are stored by themselves. Both other layouts are stored, and one of them is empty.
impl Persist for Scorers {
    fn put(&self, bundle: &mut Bundle) {
        let (no_labels, no_columns) = (&[][..], &ColumnWeights::default());
        let (by_label, by_column) = match &self.weights {
            ScorerWeights::ByLabel(weights) => (&weights[..], no_columns),
            ScorerWeights::ByColumn(weights) => (no_labels, weights),
            ScorerWeights::Regressors(regressors) => {
                return Nest::put(regressors, "regressors", bundle);
            }
        };
        bundle.put_meta("passes", &self.passes);
        Columns::put(&self.trained, "trained", bundle);
        Columns::put(by_label, "by_class", bundle);
        Nest::put(by_column, "by_column", bundle);
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        if let ScorerWeights::Regressors(regressors) = &mut self.weights {
            return Nest::fill(regressors, "regressors", bundle);
        }
        let mut by_label: Vec<Weights<f32>> = Vec::new();
        let mut by_column = ColumnWeights::default();
        self.passes = bundle.take_meta("passes")?;
        Columns::fill(&mut self.trained, "trained", bundle)?;
        Columns::fill(&mut by_label, "by_class", bundle)?;
        Nest::fill(&mut by_column, "by_column", bundle)?;
        let (n_classes, width) = (self.trained.len(), self.width());
        let sizes = (by_label.len(), by_column.columns.len());
        let fits = (sizes == (n_classes, 0) || sizes == (0, width))
            && by_label.iter().all(|weights| weights.fits(width))
            && by_column.fits(n_classes)
            && self.trained.iter().chain([&self.passes]).all(is_count);
        bundle.require(fits, "the scorers do not fit the classes and columns")?;
        self.weights = match sizes {
            (0, _) => ScorerWeights::ByColumn(by_column),
            _ => ScorerWeights::ByLabel(by_label),
        };
        Ok(())
    }
}

/// Rounds a small gradient at random so that its mean is unchanged.
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
    use crate::linear::Optimizer;

    const SCORES: [f32; 4] = [0.5, 2.0, -1.0, 1.0];

    /// Returns scorers of four labels, and an example to learn.
    fn scorers(loss: ScorerLoss, rate: f32) -> (Scorers, PathExample) {
        let params = Params {
            loss,
            margin: 1.5,
            learning_rate: Some(rate.into()),
            ..Params::default()
        };
        let rows = Rows::dense(Values::F32(&[2.0, 1.0]), 1, 2, false).unwrap();
        let mut preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
        let mut example = PathExample::default();
        example.read(&mut preparation, &rows, 0, false);
        Regressors::new(Optimizer::Pn, Loss::Hinge, 3).prepare(&mut example, 1.0);
        (Scorers::new(&params, 4, 3, 3), example)
    }

    fn input(example: &PathExample) -> ScorerInput<'_> {
        ScorerInput {
            example,
            candidates: const { &[LocalId(0), LocalId(1), LocalId(2), LocalId(3)] },
            path: &[],
        }
    }

    /// Returns the steps with a learning rate of `rate` and a margin of 1.5. The candidate at 2 is
    /// correct.
    fn steps(loss: ScorerLoss, weight: f32, rate: f32) -> Vec<f32> {
        let (mut scorers, example) = scorers(loss, rate);
        let mut workspace = ScorerWorkspace {
            scores: SCORES.to_vec(),
            ..ScorerWorkspace::default()
        };
        scorers.learn(&input(&example), 2, weight, 7, &mut workspace);
        workspace.steps
    }

    /// Returns the steps of the softmax, computed part by part without rounding.
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
    fn softmax_learns_heavy_examples_in_parts() {
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
                // Small gradients are rounded at random to 0 or 0.05.
                let rounding = 0.01 * 0.05 * (parts as f64).sqrt() * 2.0 * part;
                let difference = f64::from(*found) - expected;
                assert!(difference.abs() < rounding, "{weight}: {found} {expected}");
            }
        }
    }

    #[test]
    fn rounded_gradients_keep_their_mean() {
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
    fn margin_loss_reaches_the_margin_and_stops() {
        // The score is -1 and that of the best rival is 2. A step of 0.1 moves both.
        assert_eq!(steps(ScorerLoss::Margin, 1.0, 0.1), [0.0, -0.1, 0.1, 0.0]);
        let far = steps(ScorerLoss::Margin, 1e6, 1.0);
        let moved = |place: usize| SCORES[place] + far[place];
        assert!((moved(2) - moved(1) - 1.5).abs() < 1e-6);
        assert_eq!(far[0], 0.0);
    }

    /// The rate falls with the square roots of 1 + passes and of 1 + examples / (4 + 0.003 d). The
    /// score moves by the step.
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
            let (mut scorers, example) = scorers(ScorerLoss::Margin, 0.125);
            scorers.passes = passes;
            scorers.trained[0] = trained;
            let (mut workspace, input) = (ScorerWorkspace::default(), input(&example));
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
