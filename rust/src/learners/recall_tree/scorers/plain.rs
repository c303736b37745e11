//! Scorers for the optimisers "pn" and "sgd": a step goes in the example's own
//! direction, and only how far differs between the candidates.

use super::column_weights::ColumnWeights;
use super::steps::StepParams;
use super::{ScorerInput, ScorerUpdate, ScorerWorkspace};
use crate::alloc::{extend, resize, zeros};
use crate::control::Control;
use crate::data::Ragged;
use crate::error::{Error, Result};
use crate::file::{is_count, LARGEST};
use crate::learners::recall_tree::candidate_blocks::CandidateBlocks;
use crate::learners::recall_tree::candidate_tables::CandidateTables;
use crate::learners::recall_tree::label_index::LocalId;
use crate::learners::recall_tree::params::{Params, PathFeatures, ScorerLoss};
use crate::linear::{bounded_score, padded, Block, PathExample, Weights};
use crate::persist;
use crate::tree::NodeId;

/// The step of a label's scorer has fallen to 1/sqrt(2) after so many examples of the
/// label, and so many more per effective dimension of the example; as for the routers.
const HALVING_EXAMPLES: f32 = 4.0;
/// See [`HALVING_EXAMPLES`].
const HALVING_PER_DIMENSION: f32 = 0.003;

/// Bytes of weights that stay in the cache of a core in any case.
const NEAR: usize = 1 << 18;

/// All classes' weights.
#[derive(Debug, Clone)]
pub struct PlainScorers {
    loss: ScorerLoss,
    margin: f32,
    rate: f32,
    decay: f32,
    /// Padded number of columns.
    width: usize,
    /// Passes of `fit` done.
    pub(super) passes: f64,
    /// Weight of the examples that each label was learned from.
    trained: Vec<f64>,
    /// A class's weights together, where rows fill a good part of the columns; else none.
    by_class: Vec<Weights<f32>>,
    /// A column's weights together, where they do not; else none.
    by_column: ColumnWeights,
    path_features: PathFeatures,
    /// How far a node's indicator goes for each unit that the example goes.
    indicator_rate: f32,
    /// Section 3.2 of the paper: with an indicator per node of the path, a linear scorer
    /// can be as good as the tree itself. A column per node; none without path features.
    path_weights: ColumnWeights,
}

persist!(PlainScorers {
    Meta passes;
    Columns trained;
    Columns by_class;
    Nest by_column;
    Nest path_weights;
} check check_stored);

impl PlainScorers {
    pub fn new(params: &Params, n_classes: usize, width: usize, n_filled: usize) -> Self {
        let width = padded(width);
        let mut by_column = ColumnWeights::default();
        let mut by_class = Vec::new();
        if n_filled * PathExample::DENSE_SHARE >= width {
            resize(&mut by_class, n_classes, Weights::default());
        } else {
            by_column.reserve_columns(width);
        }
        Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate().min(LARGEST.into()) as f32,
            decay: params.decay().min(LARGEST.into()) as f32,
            width,
            passes: 0.0,
            trained: zeros(n_classes),
            by_class,
            by_column,
            path_features: params.path_features,
            indicator_rate: params.indicator_rate as f32,
            path_weights: ColumnWeights::default(),
        }
    }

    /// See [`Scorers::grow`](super::Scorers::grow).
    pub fn grow(&mut self, n_classes: usize) {
        resize(&mut self.trained, n_classes, 0.0);
        if !self.by_class.is_empty() {
            resize(&mut self.by_class, n_classes, Weights::default());
        }
    }

    /// What does not fit together in scorers that were restored; there are as many counts
    /// as classes.
    fn check_stored(&self) -> Result<()> {
        let n_classes = self.trained.len();
        let n_columns = self.by_column.columns.len();
        let layout = (self.by_class.len(), n_columns);
        let fits = (layout == (n_classes, 0) || layout == (0, self.width))
            && self.by_class.iter().all(|w| w.fits(self.width))
            && self.by_column.fits(n_classes)
            && self.path_weights.fits(n_classes)
            && self.trained.iter().chain([&self.passes]).all(is_count);
        let error = || Error::data("the scorers do not fit the classes and columns");
        fits.then_some(()).ok_or_else(error)
    }

    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (input.example, input.candidates);
        let ScorerWorkspace { scores, hashes, .. } = workspace;
        scores.clear();
        if self.by_class.is_empty() {
            scores.resize(candidates.len(), 0.0);
            let row = (&example.row().columns[..], &example.row().values[..]);
            self.by_column.score(row, candidates, hashes, scores);
        } else {
            let weights = candidates.iter().map(|&label| &self.by_class[label.at()]);
            extend(scores, weights.map(|weights| example.dot(weights)));
        }
        if self.set_indicators(input.path, 1.0, workspace) {
            let ScorerWorkspace { scores, hashes, .. } = workspace;
            let row = (&workspace.indicators.0[..], &workspace.indicators.1[..]);
            self.path_weights.score(row, candidates, hashes, scores);
        }
        let scores = workspace.scores.iter_mut();
        scores.for_each(|score| *score = bounded_score(*score));
    }

    /// See [`Scorers::come_from_afar`](super::Scorers::come_from_afar).
    pub fn come_from_afar(&self) -> bool {
        self.is_by_class() && self.by_class.len() * self.width * size_of::<f32>() > NEAR
    }

    /// Whether the scores depend on the classes' own weights alone.
    pub fn is_by_class(&self) -> bool {
        !self.by_class.is_empty() && self.path_features == PathFeatures::None
    }

    /// Whether the scores depend on the columns' weights alone.
    pub fn is_by_column(&self) -> bool {
        self.by_class.is_empty() && self.path_features == PathFeatures::None
    }

    /// See [`Scorers::candidate_blocks`](super::Scorers::candidate_blocks).
    pub fn candidate_blocks(
        &self,
        candidates: &Ragged<LocalId>,
        control: &Control,
    ) -> Result<CandidateBlocks> {
        CandidateBlocks::new(candidates, &self.by_class, self.width, control)
    }

    /// See [`Scorers::candidate_tables`](super::Scorers::candidate_tables).
    pub fn candidate_tables(
        &self,
        candidates: &Ragged<LocalId>,
        control: &Control,
    ) -> Result<CandidateTables> {
        CandidateTables::new(candidates, &self.by_column, self.trained.len(), control)
    }

    /// See [`Scorers::candidate_weights`](super::Scorers::candidate_weights).
    pub fn candidate_weights(&self, n_nodes: usize, n_candidates: usize) -> usize {
        if self.is_by_class() {
            CandidateBlocks::n_weights(n_nodes, n_candidates, self.width)
        } else if self.is_by_column() {
            CandidateTables::n_weights(n_nodes, n_candidates)
        } else {
            0
        }
    }

    /// The scores that [`CandidateBlocks`] give, by the classes' own weights, each fetched once for
    /// all rows.
    pub fn score_rows(
        &self,
        block: &Block,
        rows: &(impl ExactSizeIterator<Item = usize> + Clone),
        candidates: &[LocalId],
        scores: &mut Vec<f32>,
    ) {
        let from = scores.len();
        resize(scores, from + rows.len() * candidates.len(), 0.0);
        for (place, &label) in candidates.iter().enumerate() {
            let weights = &self.by_class[label.at()];
            let scores = scores[from + place..].iter_mut().step_by(candidates.len());
            for (score, row) in scores.zip(rows.clone()) {
                *score = block.dot_as_lane(row, weights);
            }
        }
    }

    /// The products that [`Self::score`] makes, with each candidate's weights fetched once for
    /// all examples.
    pub fn score_together(
        &self,
        examples: &[PathExample],
        candidates: &[LocalId],
        scores: &mut Vec<f32>,
    ) {
        let from = scores.len();
        resize(scores, from + examples.len() * candidates.len(), 0.0);
        for (place, &label) in candidates.iter().enumerate() {
            let weights = &self.by_class[label.at()];
            let scores = scores[from + place..].iter_mut().step_by(candidates.len());
            for (score, example) in scores.zip(examples) {
                *score = example.dot(weights);
            }
        }
    }

    /// Decides how far each candidate goes: from `workspace.scores` to
    /// `workspace.steps`.
    pub fn decide(&self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (update.input.example, update.input.candidates);
        workspace.steps.clear();
        workspace.steps.resize(candidates.len(), 0.0);
        let n_indicators = self.path_features.nodes(update.input.path).len() as f32;
        let params = StepParams {
            loss: self.loss,
            margin: self.margin,
            ppu: example.ppu() * (1.0 + self.indicator_rate * n_indicators),
            update,
        };
        let per_example =
            self.decay / (HALVING_EXAMPLES + HALVING_PER_DIMENSION * example.dimension());
        let highest_rate = self.rate / (1.0 + self.decay * self.passes as f32).sqrt();
        let rate = |place: usize| {
            let n = self.trained[candidates[place].at()] as f32;
            highest_rate / (1.0 + per_example * n).sqrt()
        };
        params.decide(rate, workspace);
    }

    /// Takes the steps that were decided on.
    pub fn apply(&mut self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (update.input.example, update.input.candidates);
        let (limit, steps) = (example.limit(), workspace.steps.iter_mut());
        steps.for_each(|step| *step = limit.shorten(*step));
        self.trained[candidates[update.correct].at()] += f64::from(update.weight);
        if self.by_class.is_empty() {
            let columns = &example.row().columns;
            self.by_column
                .add(columns, example.direction(), candidates, &workspace.steps);
        } else {
            for (&label, &step) in candidates.iter().zip(&workspace.steps) {
                if step != 0.0 {
                    example.add(step, &mut self.by_class[label.at()], self.width);
                }
            }
        }
        let indicator = self.indicator_rate * example.ppu();
        if self.set_indicators(update.input.path, indicator, workspace) {
            let (nodes, values) = &workspace.indicators;
            let highest = nodes.iter().copied().max().unwrap_or_default();
            let weights = &mut self.path_weights;
            weights.reserve_columns(highest as usize + 1);
            weights.add(nodes, values, candidates, &workspace.steps);
        }
    }

    /// Writes the indicators of a path's nodes, the deepest first, all with the same value.
    /// Returns whether there are any.
    fn set_indicators(&self, path: &[NodeId], value: f32, workspace: &mut ScorerWorkspace) -> bool {
        let nodes = self.path_features.nodes(path);
        let (columns, values) = &mut workspace.indicators;
        columns.clear();
        columns.extend(nodes.iter().rev().map(|node| node.0));
        values.clear();
        values.resize(nodes.len(), value);
        !nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Preparation, Rows, Scaling, Values};
    use crate::linear::{Loss, Optimizer, Regressors};

    /// Scores and steps of two candidates, the first of which is right, before and after
    /// learning; the rate is 1/8.
    fn learned(change: impl Fn(&mut PlainScorers), path_features: PathFeatures) -> [Vec<f32>; 3] {
        let params = Params {
            loss: ScorerLoss::Hinge,
            learning_rate: Some(0.125),
            path_features,
            ..Params::default()
        };
        let rows = Rows::dense(Values::F32(&[2.0, 1.0]), 1, 2).unwrap();
        let preparation = Preparation::new(Scaling::None, None, &rows).unwrap();
        let mut example = PathExample::default();
        example.read(&preparation, &rows, 0);
        Regressors::new(Optimizer::Sgd, Loss::Hinge, 3).prepare(&mut example, 1.0);
        let mut scorers = PlainScorers::new(&params, 2, 3, 3);
        change(&mut scorers);
        let mut workspace = ScorerWorkspace::default();
        let update = ScorerUpdate {
            input: ScorerInput {
                example: &example,
                candidates: &[0, 1].map(LocalId),
                path: &[0, 1, 4].map(NodeId),
            },
            correct: 0,
            weight: 1.0,
            clock: 0,
        };
        scorers.score(&update.input, &mut workspace);
        let before = workspace.scores.clone();
        scorers.decide(&update, &mut workspace);
        let steps = workspace.steps.clone();
        scorers.apply(&update, &mut workspace);
        scorers.score(&update.input, &mut workspace);
        [before, steps, workspace.scores]
    }

    /// The rate falls with the square root of 1 + passes and of 1 + examples / (4 + 0.003 d).
    #[test]
    fn steps_shrink_with_passes_and_with_examples_of_the_label() {
        let first_step = |passes, trained| {
            let change = |scorers: &mut PlainScorers| {
                scorers.passes = passes;
                scorers.trained[0] = trained;
            };
            learned(change, PathFeatures::None)[1][0]
        };
        let halving = f64::from(HALVING_EXAMPLES + 3.0 * HALVING_PER_DIMENSION);
        for (passes, trained, share) in [
            (0.0, 0.0, 1.0),
            (3.0, 0.0, 0.5),
            (0.0, 3.0 * halving, 0.5),
            (8.0, 3.0 * halving, 1.0 / 6.0),
            (0.0, 1e12, (halving / 1e12).sqrt()),
        ] {
            let step = f64::from(first_step(passes, trained)) / 0.125;
            assert!((step / share - 1.0).abs() < 1e-4, "{step} {share}");
        }
    }

    /// A step moves the score by as much as it was decided on: by the square of the example,
    /// 4 + 1 + 1, and a tenth of that for each node but the root.
    #[test]
    fn indicators_of_nodes_take_their_share_of_a_step() {
        for (features, share) in [
            (PathFeatures::None, 1.0),
            (PathFeatures::NodeOnly, 1.1),
            (PathFeatures::All, 1.2),
        ] {
            let [before, steps, after] = learned(|_| (), features);
            assert_eq!(steps, [0.125, -0.125]);
            for place in 0..2 {
                let moved = after[place] - before[place];
                assert!((moved - steps[place] * 6.0 * share).abs() < 1e-5, "{moved}");
            }
            let whole = |scorers: &mut PlainScorers| scorers.indicator_rate = 1.0;
            let [before, steps, after] = learned(whole, features);
            let moved = after[0] - before[0];
            let n_indicators = (share - 1.0) / 0.1;
            assert!(
                (moved - steps[0] * 6.0 * (1.0 + n_indicators)).abs() < 1e-4,
                "{moved}"
            );
            // With a rate beyond all measure it ends at the label.
            let [_, _, after] = learned(|scorers| scorers.rate = 1e9, features);
            assert!((after[0] - 1.0).abs() < 1e-5, "{}", after[0]);
        }
    }
}
