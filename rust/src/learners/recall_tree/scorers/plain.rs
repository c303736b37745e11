//! Scorers for the optimisers "pn" and "sgd": a step goes in the example's own
//! direction, and only how far differs between the candidates.

use super::column_weights::ColumnWeights;
use super::steps::StepParams;
use super::{ScorerInput, ScorerUpdate, ScorerWorkspace};
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::learners::recall_tree::params::{Params, PathFeatures, ScorerLoss};
use crate::linear::{padded, PathExample, Weights};
use crate::persist;
use crate::tree::NodeId;

/// The step of a label's scorer has fallen to 1/sqrt(2) after so many examples of the
/// label, and so many more per effective dimension of the example; as for the routers.
const HALVING_EXAMPLES: f32 = 4.0;
/// See [`HALVING_EXAMPLES`].
const HALVING_PER_DIMENSION: f32 = 0.003;

/// How far a node's indicator goes for each unit that the example goes.
const INDICATOR_SHARE: f32 = 0.1;

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
            by_class.resize(n_classes, Weights::default());
        } else {
            by_column.reserve_columns(width);
        }
        Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate() as f32,
            decay: params.decay() as f32,
            width,
            passes: 0.0,
            trained: vec![0.0; n_classes],
            by_class,
            by_column,
            path_features: params.path_features,
            path_weights: ColumnWeights::default(),
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
            scores.extend(weights.map(|weights| example.dot(weights)));
        }
        if self.set_indicators(input.path, 1.0, workspace) {
            let ScorerWorkspace { scores, hashes, .. } = workspace;
            let nodes = &workspace.indicator_columns[..];
            let values = &workspace.indicator_values[..];
            self.path_weights
                .score((nodes, values), candidates, hashes, scores);
        }
    }

    /// Decides how far each candidate goes: from `workspace.scores` to
    /// `workspace.steps`.
    pub fn decide(&self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        let ScorerInput {
            example,
            candidates,
            path,
        } = update.input;
        workspace.steps.clear();
        workspace.steps.resize(candidates.len(), 0.0);
        let n_indicators = self.path_features.nodes(path).len() as f32;
        let params = StepParams {
            loss: self.loss,
            margin: self.margin,
            ppu: example.ppu() * (1.0 + INDICATOR_SHARE * n_indicators),
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
        let indicator = INDICATOR_SHARE * example.ppu();
        if self.set_indicators(update.input.path, indicator, workspace) {
            let nodes = &workspace.indicator_columns;
            let highest = nodes.iter().copied().max().unwrap_or_default();
            self.path_weights.reserve_columns(highest as usize + 1);
            let values = &workspace.indicator_values;
            self.path_weights
                .add(nodes, values, candidates, &workspace.steps);
        }
    }

    /// Writes the indicators of a path's nodes, the deepest first, all with the same value.
    /// Returns whether there are any.
    fn set_indicators(&self, path: &[NodeId], value: f32, workspace: &mut ScorerWorkspace) -> bool {
        let nodes = self.path_features.nodes(path);
        let columns = &mut workspace.indicator_columns;
        columns.clear();
        columns.extend(nodes.iter().rev().map(|node| node.0));
        workspace.indicator_values.clear();
        workspace.indicator_values.resize(nodes.len(), value);
        !nodes.is_empty()
    }
}
