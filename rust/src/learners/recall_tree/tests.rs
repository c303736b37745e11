//! Properties of the tree, of predictions and of files, on random streams.

mod files;
mod growth;
mod nodes;
mod options;
mod prediction;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::labels::LocalId;
use super::learner::OnlineRecallTree;
use super::params::uniform_bits;
use super::router::RoutingTree;
use super::scorers::{ScorerInput, ScorerWorkspace};
use super::*;
use crate::control::Control;
use crate::data::{Batch, Indices, Labels, Preparation, Rows, Scaling, Targets, Values};
use crate::error::Error;
use crate::file::{Array, Bundle};
use crate::linear::{Block, Loss, PathExample};
use crate::model::{
    Classifier, First, FitOptions, Learner, Learning, Mistakes, OnlineLearner, OnlineModel,
    PredictOptions, Query, Start, TopKArrays,
};
use crate::tree::NodeId;

type RecallTree = OnlineModel<OnlineRecallTree>;

const N_CLASSES: usize = 12;
/// Enough columns that the weights of sparse rows lie by column.
const WIDTH: usize = 96;

/// Returns the defaults, with so few candidates that the tree has to separate the labels.
fn params() -> Params {
    Params {
        max_candidates: Some(3),
        max_depth: Some(4),
        bern_hyper: 0.1,
        scaling: Scaling::None,
        // The references do not scale weights.
        scale_weights: false,
        beam_size: 1,
        n_passes: 2,
        seed: 5,
        ..Params::default()
    }
}

/// Examples whose labels change in the course of the stream.
#[derive(Debug, Clone)]
struct Stream {
    /// Where each sparse row begins.
    starts: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<f32>,
    /// Dense rows with the same values and some more, if the stream is dense.
    dense: Option<Vec<f32>>,
    labels: Vec<u32>,
    weights: Option<Vec<f32>>,
}

impl Stream {
    fn new(examples: &[(u32, u32, u8)], is_dense: bool, is_weighted: bool) -> Self {
        let n = examples.len();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let (mut labels, mut weights) = (Vec::new(), Vec::new());
        for (at, &(label, noise, weight)) in examples.iter().enumerate() {
            let label = (label + at as u32 / 64) % N_CLASSES as u32;
            labels.push(label);
            weights.push(f32::from(weight) / 4.0);
            let own = [
                label * 3,
                label * 3 + 1 + noise % 2,
                noise % 36,
                36 + noise % 60,
            ];
            // One row in 16 is empty.
            let own: BTreeSet<u32> = own.into_iter().filter(|_| noise % 16 != 0).collect();
            for column in own {
                columns.push(column as i32);
                // With these values, sums do not cancel to the last bit. Such sums would depend on
                // the order of their terms.
                values.push(((noise >> 3) % 4) as f32 - 1.5 + (column * 61 % 101) as f32 / 997.0);
            }
            starts.push(columns.len() as i32);
        }
        let dense = is_dense.then(|| {
            let mut dense = vec![0.0; n * WIDTH];
            for row in 0..n {
                for at in starts[row] as usize..starts[row + 1] as usize {
                    dense[row * WIDTH + columns[at] as usize] = values[at];
                }
                // All columns get further values.
                for (column, x) in dense[row * WIDTH..][..WIDTH].iter_mut().enumerate() {
                    *x += ((row * 7 + column * 5) % 9) as f32 / 8.0 - 0.5;
                }
            }
            dense
        });
        Self {
            starts,
            columns,
            values,
            dense,
            labels,
            weights: is_weighted.then_some(weights),
        }
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn weight(&self, i: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| f64::from(w[i]))
    }

    fn rows(&self) -> Rows<'_> {
        match &self.dense {
            Some(dense) => Rows::dense(Values::F32(dense), self.len(), WIDTH, false).unwrap(),
            None => Rows::csr(
                Indices::I32(&self.starts),
                Indices::I32(&self.columns),
                Values::F32(&self.values),
                WIDTH,
                false,
            )
            .unwrap(),
        }
    }

    fn batch(&self) -> Batch<'_> {
        let labels = Labels::new(&self.labels, N_CLASSES).unwrap();
        Batch::new(
            self.rows(),
            Targets::One(labels),
            self.weights.as_deref().map(Values::F32),
        )
        .unwrap()
    }

    /// Returns the stream of row `i` only.
    fn one(&self, i: usize) -> Self {
        let span = self.starts[i] as usize..self.starts[i + 1] as usize;
        Self {
            starts: vec![0, span.len() as i32],
            columns: self.columns[span.clone()].to_vec(),
            values: self.values[span].to_vec(),
            dense: self
                .dense
                .as_ref()
                .map(|d| d[i * WIDTH..][..WIDTH].to_vec()),
            labels: vec![self.labels[i]],
            weights: self.weights.as_ref().map(|w| vec![w[i]]),
        }
    }
}

fn streams(longest: usize) -> impl Strategy<Value = Stream> {
    let examples = prop::collection::vec((0u32..8, 0u32..2000, 0u8..12), 1..longest);
    (examples, any::<bool>(), any::<bool>())
        .prop_map(|(examples, is_dense, is_weighted)| Stream::new(&examples, is_dense, is_weighted))
}

fn routings() -> impl Strategy<Value = Params> {
    let hypers = prop::sample::select(vec![0.0, 0.1, 1.0]);
    let forms = prop::sample::select(vec![
        (RecallBound::Paper, RouterImportance::AverageEntropy),
        (RecallBound::Vw, RouterImportance::Entropy),
    ]);
    (any::<bool>(), hypers, 1u32..5, 0u32..6, forms).prop_map(
        |(paper_tree, bern_hyper, candidates, depth, (recall_bound, router_importance))| Params {
            paper_tree,
            bern_hyper,
            recall_bound,
            router_importance,
            max_candidates: Some(candidates),
            max_depth: Some(depth),
            ..params()
        },
    )
}

fn scorings() -> impl Strategy<Value = Params> {
    use PathFeatures as P;
    use ScorerLoss as L;
    let losses = prop::sample::select(vec![
        L::Softmax,
        L::Margin,
        L::Squared,
        L::Logistic,
        L::Hinge,
    ]);
    let features = prop::sample::select(vec![P::None, P::All, P::NodeOnly]);
    (routings(), losses, features).prop_map(|(routing, loss, path_features)| Params {
        loss,
        path_features: loss.single().map_or(P::None, |_| path_features),
        learning_rate: Some(0.5),
        ..routing
    })
}

/// Returns a tree without examples, and the preparation of its rows.
fn new_tree(params: &Params, stream: &Stream) -> (Preparation, OnlineRecallTree) {
    let rows = stream.rows();
    let all: Vec<u32> = (0..rows.n_rows() as u32).collect();
    let preparation = Preparation::new(params.scaling, params.n_bits, &rows, &all).unwrap();
    let start = Start {
        n_classes: N_CLASSES,
        preparation: &preparation,
        batch: &stream.batch(),
        first: First::Stream,
    };
    let tree = OnlineRecallTree::new(params, &start).unwrap();
    (preparation, tree)
}

/// Learns some rows of a batch.
fn learn(
    (preparation, tree): &mut (Preparation, OnlineRecallTree),
    progress: &mut Mistakes,
    batch: &Batch<'_>,
    order: &[u32],
) {
    let mut learning = Learning {
        batch,
        order,
        clock: 0.0,
        preparation,
        progress,
        n_threads: 1,
        control: &control(),
    };
    tree.learn(&mut learning).unwrap();
}

fn control() -> Control {
    Control::new(0)
}

/// Returns the end of the greedy path by the routers of the learning tree. Returns none if a score is
/// so close to 0 that its side depends on the order of a sum.
fn greedy_end(learner: &OnlineRecallTree, example: &PathExample) -> Option<NodeId> {
    let tree = &learner.tree;
    let mut at = RoutingTree::ROOT;
    while tree.node(at).has_children() {
        let score = tree.routers.score(tree.node(at).router(), example);
        if score != 0.0 && score.abs() < 1e-5 {
            return None;
        }
        let [left, right] = tree.node(at).children();
        let child = if score < 0.0 { left } else { right };
        if tree.is_final(at, child) {
            break;
        }
        at = child;
    }
    Some(at)
}

fn read_block(
    preparation: &Preparation,
    learner: &OnlineRecallTree,
    rows: &Rows<'_>,
) -> (Block, Vec<PathExample>) {
    let (mut block, width) = (Block::default(), learner.tree.routers.width());
    block.fill(preparation, rows, 0..rows.n_rows(), width);
    let examples = (0..rows.n_rows()).map(|i| {
        let mut example = PathExample::default();
        example.take(&block, i);
        example
    });
    let examples = examples.collect();
    (block, examples)
}

fn new_model(params: &Params) -> RecallTree {
    RecallTree::create(params.clone(), N_CLASSES, false).unwrap()
}

fn model(params: &Params, stream: &Stream) -> RecallTree {
    let mut model = new_model(params);
    let batch = stream.batch();
    model.partial_fit(&batch, 1, &control()).unwrap();
    model
}

fn learned(model: &RecallTree) -> &OnlineRecallTree {
    &model.members[0].learner
}

fn has_weight(stream: &Stream) -> bool {
    (0..stream.len()).any(|i| stream.weight(i) > 0.0)
}

fn beam(size: u32, path_weight: f64) -> PredictOptions {
    PredictOptions {
        beam_size: Some(size),
        path_weight: Some(path_weight),
        ..PredictOptions::default()
    }
}

fn greedy() -> PredictOptions {
    beam(1, 0.0)
}

fn topk(model: &RecallTree, rows: &Rows<'_>, k: usize, options: &PredictOptions) -> TopKArrays {
    model
        .predict_topk(&Query::new(rows, 1, &control()).with(options), k)
        .unwrap()
}

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

/// Returns fixed examples.
fn fixed(n: u32) -> Stream {
    let example = |i: u32| (i * i % 8, i * 37 % 1999, 4);
    Stream::new(&(0..n).map(example).collect::<Vec<_>>(), false, false)
}

fn fit(model: &mut RecallTree, batch: &Batch<'_>, n_threads: usize) -> crate::Result<()> {
    model.fit(batch, FitOptions::threads(n_threads), &control())
}

#[test]
fn examples_without_weight_leave_no_labels() {
    let weightless = Stream {
        weights: Some(vec![0.0; 5]),
        ..fixed(5)
    };
    let model = model(&params(), &weightless);
    let (labels, _) = topk(&model, &weightless.rows(), 1, &greedy());
    assert_eq!(labels, [-1; 5]);
    assert_eq!(model.reports()[0].get::<u32>("n_labels"), Some(vec![0]));
}
