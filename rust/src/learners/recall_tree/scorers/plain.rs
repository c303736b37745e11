//! Scorers for the optimisers "pn" and "sgd": a step goes in the example's own
//! direction, and only how far differs between the candidates.

use super::column_weights::ColumnWeights;
use super::steps::StepParams;
use super::{ScorerInput, ScorerUpdate, ScorerWorkspace};
use crate::error::Result;
use crate::file::{is_count, Bundle, Columns, Nest, Persist, Record};
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
    trained: Vec<f32>,
    weights: WeightLayout,
    path_features: PathFeatures,
    /// Section 3.2 of the paper: with an indicator per node of the path, a linear scorer
    /// can be as good as the tree itself. A column per node; none without path features.
    path_weights: ColumnWeights,
}

/// How the weights lie in memory.
#[derive(Debug, Clone)]
pub enum WeightLayout {
    /// A class's together: where rows fill a good part of the columns.
    ByClass(Vec<Weights<f32>>),
    /// A column's together: where they do not.
    ByColumn(ColumnWeights),
}

persist!(PlainScorers {
    Meta passes;
    Columns trained;
    Nest weights;
    Nest path_weights;
});

impl Persist for WeightLayout {
    fn put(&self, bundle: &mut Bundle) {
        match self {
            Self::ByClass(weights) => Columns::put(weights, "by_class", bundle),
            Self::ByColumn(weights) => Nest::put(weights, "by_column", bundle),
        }
        bundle.put_meta("is_by_column", &matches!(self, Self::ByColumn(_)));
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        *self = if bundle.take_meta("is_by_column")? {
            let mut weights = ColumnWeights::new(0);
            Nest::fill(&mut weights, "by_column", bundle)?;
            Self::ByColumn(weights)
        } else {
            Self::ByClass(Weights::take(None, "by_class", bundle)?)
        };
        Ok(())
    }
}

impl PlainScorers {
    pub fn new(params: &Params, n_classes: usize, width: usize, n_filled: usize) -> Self {
        let width = padded(width);
        Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate() as f32,
            decay: params.decay() as f32,
            width,
            passes: 0.0,
            trained: vec![0.0; n_classes],
            weights: if n_filled * PathExample::DENSE_SHARE >= width {
                WeightLayout::ByClass(vec![Weights::default(); n_classes])
            } else {
                WeightLayout::ByColumn(ColumnWeights::new(width))
            },
            path_features: params.path_features,
            path_weights: ColumnWeights::new(0),
        }
    }

    /// Whether scorers that were restored are those of `n_classes` and of the columns.
    pub fn fits(&self, n_classes: usize) -> bool {
        let fits = match &self.weights {
            WeightLayout::ByClass(weights) => {
                weights.len() == n_classes && weights.iter().all(|w| w.fits(self.width))
            }
            WeightLayout::ByColumn(weights) => {
                weights.columns.len() == self.width && weights.fits(n_classes)
            }
        };
        fits && self.path_weights.fits(n_classes)
            && is_count(&self.passes)
            && self.trained.len() == n_classes
            && self.trained.iter().all(is_count)
    }

    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (input.example, input.candidates);
        let scores = &mut workspace.scores;
        scores.clear();
        match &self.weights {
            WeightLayout::ByClass(weights) => {
                let weights = candidates.iter().map(|&label| &weights[label.at()]);
                scores.extend(weights.map(|weights| example.dot(weights)));
            }
            WeightLayout::ByColumn(weights) => {
                scores.resize(candidates.len(), 0.0);
                workspace.candidates.set(candidates);
                let row = example.row();
                weights.score(&row.columns, &row.values, &workspace.candidates, scores);
            }
        }
        if self.set_indicators(input.path, 1.0, workspace) {
            let ScorerWorkspace {
                scores,
                candidates,
                indicator_columns,
                indicator_values,
                ..
            } = workspace;
            candidates.set(input.candidates);
            self.path_weights
                .score(indicator_columns, indicator_values, candidates, scores);
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
            let n = self.trained[candidates[place].at()];
            highest_rate / (1.0 + per_example * n).sqrt()
        };
        params.decide(rate, workspace);
    }

    /// Takes the steps that were decided on.
    pub fn apply(&mut self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        let (example, candidates) = (update.input.example, update.input.candidates);
        self.trained[candidates[update.correct].at()] += update.weight;
        match &mut self.weights {
            WeightLayout::ByClass(weights) => {
                for (&label, &step) in candidates.iter().zip(&workspace.steps) {
                    if step != 0.0 {
                        example.add(step, &mut weights[label.at()], self.width);
                    }
                }
            }
            WeightLayout::ByColumn(weights) => {
                let columns = &example.row().columns;
                weights.add(columns, example.direction(), candidates, &workspace.steps);
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
