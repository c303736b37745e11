//! Scorers whose weights carry nothing else: the direction of a step is the
//! example's own, and only how far to go differs between the candidates.

use super::steps::{steps, Task};
use super::{AtNode, Columns, OfPath, Work};
use crate::learners::recall_tree::{Params, ScorerLoss};
use crate::linear::{padded, PathExample, Weights};

/// A scorer's step has fallen to 1/sqrt(2) after its label came so often, and so
/// many times more per effective dimension of the example; as for the routers.
const ALWAYS: f32 = 4.0;
/// See [`ALWAYS`].
const PER_DIMENSION: f32 = 0.003;

/// All classes' weights.
#[derive(Debug, Clone)]
pub struct Plain {
    loss: ScorerLoss,
    margin: f32,
    rate: f32,
    decay: f32,
    /// Padded number of columns.
    pub(in crate::learners::recall_tree) width: usize,
    /// Passes of `fit` done.
    pub(in crate::learners::recall_tree) passes: f64,
    /// How often each label was learned, by importance.
    pub(in crate::learners::recall_tree) trained: Vec<f32>,
    pub(in crate::learners::recall_tree) store: Store,
    pub(in crate::learners::recall_tree) of_path: OfPath,
}

/// How the weights lie.
#[derive(Debug, Clone)]
pub enum Store {
    /// A class's together: where rows fill a good part of the columns.
    ByClass(Vec<Weights<f32>>),
    /// A column's together: where they do not.
    ByColumn(Columns),
}

impl Plain {
    /// Nothing learned yet.
    pub fn new(params: &Params, n_classes: usize, width: usize, filled: usize) -> Self {
        let width = padded(width);
        Self {
            loss: params.loss,
            margin: params.margin as f32,
            rate: params.scorer_rate() as f32,
            decay: params.decay() as f32,
            width,
            passes: 0.0,
            trained: vec![0.0; n_classes],
            store: if filled * PathExample::DENSE_SHARE >= width {
                Store::ByClass(vec![Weights::default(); n_classes])
            } else {
                Store::ByColumn(Columns::new(width))
            },
            of_path: OfPath::new(params.path_features),
        }
    }

    /// Scores of the candidates, into `work.scores`.
    pub fn score(&self, at: &AtNode<'_>, work: &mut Work) {
        let AtNode {
            example,
            candidates,
            path,
            ..
        } = *at;
        work.scores.clear();
        match &self.store {
            Store::ByClass(weights) => work.scores.extend(
                candidates
                    .iter()
                    .map(|&label| example.dot(&weights[label as usize])),
            ),
            Store::ByColumn(columns) => {
                work.scores.resize(candidates.len(), 0.0);
                work.places.set(candidates);
                let row = example.row();
                columns.score(&row.columns, &row.values, &work.places, &mut work.scores);
            }
        }
        self.of_path.score(example, candidates, path, work);
    }

    /// How far each candidate is to go: from `work.scores` to `work.steps`.
    pub fn decide(&self, at: &AtNode<'_>, label: u32, importance: f32, work: &mut Work) {
        let Work {
            scores,
            steps: far,
            flow,
            ..
        } = work;
        far.clear();
        far.resize(at.candidates.len(), 0.0);
        if let Some(which) = at.candidates.iter().position(|&other| other == label) {
            let task = Task {
                loss: self.loss,
                margin: self.margin,
                which,
                importance,
                ppu: at.example.ppu() * (1.0 + self.of_path.share(at.path)),
                clock: at.clock,
            };
            let slow = self.decay / (ALWAYS + PER_DIMENSION * at.example.dimension());
            let fastest = self.rate / (1.0 + self.decay * self.passes as f32).sqrt();
            let rate = |place: usize| {
                let n = self.trained[at.candidates[place] as usize];
                fastest / (1.0 + slow * n).sqrt()
            };
            steps(&task, scores, rate, far, flow);
        }
    }

    /// Takes the steps that were decided on.
    pub fn apply(&mut self, at: &AtNode<'_>, label: u32, importance: f32, work: &mut Work) {
        self.trained[label as usize] += importance;
        match &mut self.store {
            Store::ByClass(weights) => {
                for (&label, &step) in at.candidates.iter().zip(&work.steps) {
                    if step != 0.0 {
                        at.example
                            .add(step, &mut weights[label as usize], self.width);
                    }
                }
            }
            Store::ByColumn(columns) => {
                let (row, direction) = (at.example.row(), at.example.direction());
                columns.add(&row.columns, direction, at.candidates, &work.steps);
            }
        }
        self.of_path
            .add(at.example, at.candidates, at.path, self.width, work);
    }
}
