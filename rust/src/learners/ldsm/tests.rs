//! LdSM against slow versions that follow the paper, and properties of any tree.

mod choices;
mod cluster;
mod held_out;
mod nodes;
mod options;
pub(in crate::learners) mod packed;
pub(in crate::learners) mod prediction;
mod regressors;
mod scorers;
mod slim;
mod top_splits;
mod trees;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::objective::Lambdas;
use super::train_node::NodeData;
use super::tree::{Node, Tree, TreeStatistics};
use super::*;
use crate::control::Control;
use crate::data::{
    Batch, Examples, Indices, LabelSets, Labels, Preparation, RowBuffer, Rows, Scaling, Targets,
    Values,
};
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist};
use crate::learners::one_against_some::GroupFacts;
use crate::model::{Classifier, FitOptions, LabelSelection, Learner, PredictOptions, Query};
use crate::tree::NodeId;

pub(in crate::learners) const N_CLASSES: usize = 9;
pub(in crate::learners) const WIDTH: usize = 24;

/// Parameters of the paper, for small trees.
pub(in crate::learners) fn params() -> Params {
    Params {
        n_estimators: 2,
        arity: 2,
        max_nodes: 31,
        min_priority: 0.0,
        n_epochs: 3,
        max_updates: None,
        lambda1: 2.0,
        lambda2: 1.0,
        loss: NodeLoss::Centred,
        learning_rate: 0.5,
        scaling: Scaling::None,
        n_bits: None,
        slim_trees: false,
        keep_statistics: true,
        beta: 1.0,
        scorers: Scorers::None,
        n_negatives: Some(50),
        tail_weight: 0.0,
        cost: Some(1.0),
        weight_threshold: 0.1,
        seed: 3,
    }
}

/// Parameters with scorers.
pub(in crate::learners) fn with_scorers() -> Params {
    Params {
        scorers: Scorers::OneAgainstSome,
        n_estimators: 5,
        n_negatives: Some(3),
        ..params()
    }
}

/// Examples with sets of labels.
#[derive(Debug, Clone, Default)]
pub(in crate::learners) struct Data {
    pub(in crate::learners) starts: Vec<i32>,
    pub(in crate::learners) columns: Vec<i32>,
    pub(in crate::learners) values: Vec<f32>,
    pub(in crate::learners) label_starts: Vec<i32>,
    pub(in crate::learners) labels: Vec<i32>,
    pub(in crate::learners) weights: Option<Vec<f32>>,
}

impl Data {
    pub(in crate::learners) fn empty(is_weighted: bool) -> Self {
        Self {
            starts: vec![0],
            label_starts: vec![0],
            weights: is_weighted.then(Vec::new),
            ..Self::default()
        }
    }

    /// Creates examples whose features depend on their labels and on `noise`.
    pub(in crate::learners) fn new(
        examples: &[(u32, u32, u8)],
        is_dense: bool,
        is_weighted: bool,
    ) -> Self {
        let mut data = Self::empty(is_weighted);
        for &(label, noise, weight) in examples {
            let n = N_CLASSES as u32;
            let mut labels = BTreeSet::from([label % n]);
            if noise % 3 > 0 {
                labels.extend([(label + 1) % n, noise % n]);
            }
            let own: BTreeSet<u32> = labels
                .iter()
                .flat_map(|label| [label * 2, label * 2 + 1])
                .chain([18 + noise % 6])
                .collect();
            // One row in 16 is empty.
            let kept =
                (0..WIDTH as u32).filter(|c| is_dense || (own.contains(c) && noise % 16 > 0));
            let row = kept.map(|column| {
                let signal = if own.contains(&column) { 1.0 } else { 0.0 };
                let mixed = (noise.wrapping_mul(2_654_435_761) ^ (column * 977)) % 101;
                (column, signal + mixed as f32 / 202.0 - 0.2)
            });
            let row: Vec<(u32, f32)> = row.collect();
            // One example in 13 has no label.
            let labels: Vec<u32> = labels.into_iter().filter(|_| noise % 13 != 5).collect();
            data.push(&row, &labels, f32::from(weight) / 4.0);
        }
        data
    }

    pub(in crate::learners) fn push(&mut self, row: &[(u32, f32)], labels: &[u32], weight: f32) {
        self.columns
            .extend(row.iter().map(|&(column, _)| column as i32));
        self.values.extend(row.iter().map(|&(_, x)| x));
        self.starts.push(self.columns.len() as i32);
        self.labels.extend(labels.iter().map(|&label| label as i32));
        self.label_starts.push(self.labels.len() as i32);
        if let Some(weights) = &mut self.weights {
            weights.push(weight);
        }
    }

    /// Returns the rows `which`, in that order.
    pub(in crate::learners) fn select(&self, which: impl IntoIterator<Item = usize>) -> Self {
        let mut data = Self::empty(self.weights.is_some());
        for i in which {
            data.push(&self.row(i), &self.labels_of(i), self.weight(i));
        }
        data
    }

    pub(in crate::learners) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(in crate::learners) fn row(&self, i: usize) -> Vec<(u32, f32)> {
        let span = self.starts[i] as usize..self.starts[i + 1] as usize;
        let columns = self.columns[span.clone()].iter().map(|&c| c as u32);
        columns.zip(self.values[span].iter().copied()).collect()
    }

    pub(in crate::learners) fn labels_of(&self, i: usize) -> Vec<u32> {
        let span = self.label_starts[i] as usize..self.label_starts[i + 1] as usize;
        self.labels[span]
            .iter()
            .map(|&label| label as u32)
            .collect()
    }

    pub(in crate::learners) fn weight(&self, i: usize) -> f32 {
        self.weights.as_ref().map_or(1.0, |weights| weights[i])
    }

    /// Returns the rows that training sees.
    pub(in crate::learners) fn present(&self) -> Vec<usize> {
        let is_present = |&i: &usize| self.weight(i) > 0.0 && !self.labels_of(i).is_empty();
        (0..self.len()).filter(is_present).collect()
    }

    pub(in crate::learners) fn rows(&self) -> Rows<'_> {
        let (starts, columns) = (Indices::I32(&self.starts), Indices::I32(&self.columns));
        Rows::csr(starts, columns, Values::F32(&self.values), WIDTH, false).unwrap()
    }

    pub(in crate::learners) fn batch(&self) -> Batch<'_> {
        self.batch_with(N_CLASSES)
    }

    /// Returns the batch with `n_labels` labels that may occur.
    pub(in crate::learners) fn batch_with(&self, n_labels: usize) -> Batch<'_> {
        let (starts, labels) = (Indices::I32(&self.label_starts), Indices::I32(&self.labels));
        let sets = LabelSets::new(starts, labels, n_labels).unwrap();
        Batch::new(
            self.rows(),
            Targets::Sets(sets),
            self.weights.as_deref().map(Values::F32),
        )
        .unwrap()
    }

    pub(in crate::learners) fn preparation(&self, params: &Params) -> Preparation {
        let rows = self.rows();
        let present = self.batch().present();
        let mut preparation =
            Preparation::new(params.scaling, params.n_bits, &rows, &present).unwrap();
        preparation
            .observe_all(&rows, &present, &control())
            .unwrap();
        preparation
    }

    pub(in crate::learners) fn examples(&self) -> Examples {
        let preparation = self.preparation(&params());
        Examples::read(&self.batch(), &preparation, N_CLASSES, &control()).unwrap()
    }

    pub(in crate::learners) fn fit(&self, params: &Params) -> Ldsm {
        let mut ldsm = Ldsm::create(params.clone(), N_CLASSES, true).unwrap();
        ldsm.fit(&self.batch(), with(1, false), &control()).unwrap();
        ldsm
    }
}

/// Generates examples, at least one of which training sees.
pub(in crate::learners) fn data(longest: usize) -> impl Strategy<Value = Data> {
    let examples = prop::collection::vec((0u32..9, 0u32..5000, 0u8..9), 1..longest);
    (examples, any::<bool>(), any::<bool>())
        .prop_map(|(examples, is_dense, is_weighted)| Data::new(&examples, is_dense, is_weighted))
        .prop_filter("an example to learn from", |data| {
            !data.present().is_empty()
        })
}

/// Returns `n` examples, the same in each call.
pub(in crate::learners) fn fixed(n: u32, is_dense: bool) -> Data {
    let example = |i: u32| (i * i % 9, i * 37 % 4999, 4);
    Data::new(&(0..n).map(example).collect::<Vec<_>>(), is_dense, false)
}

pub(in crate::learners) fn with(n_threads: usize, warm_start: bool) -> FitOptions {
    FitOptions {
        warm_start,
        ..FitOptions::threads(n_threads)
    }
}

pub(in crate::learners) fn control() -> Control {
    Control::new(0)
}

/// Stores and restores a part of a training.
pub(in crate::learners) fn sent<P: Persist + Default>(part: &P) -> Result<P> {
    let mut bundle = Bundle::new("part");
    part.put(&mut bundle);
    let mut again = P::default();
    again.fill(&mut bundle).map(|()| again)
}

/// Returns facts about groups among which the labels of examples are shared out in turn.
pub(in crate::learners) fn facts_in_turn(examples: &Examples, n_groups: u32) -> GroupFacts {
    let mut counts = vec![0; examples.n_labels];
    let labels = examples.labels.entries().iter();
    labels.for_each(|&label| counts[label as usize] += 1);
    GroupFacts {
        groups: (0..counts.len() as u32)
            .map(|label| label % n_groups)
            .collect(),
        n_groups: n_groups as usize,
        counts,
        n_rows: examples.len(),
        mean_weight: 1.0,
        ..GroupFacts::default()
    }
}

pub(in crate::learners) fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// Returns all fields of a tree, to the bit.
pub(in crate::learners) fn bits_of(tree: &Tree) -> String {
    format!("{tree:?}")
}

pub(in crate::learners) fn all_bits(ldsm: &Ldsm) -> Vec<String> {
    ldsm.trees.iter().map(|tree| bits_of(tree)).collect()
}

pub(in crate::learners) fn statistics(tree: &Tree) -> &TreeStatistics {
    tree.statistics.as_ref().unwrap()
}

/// Returns the columns of a node's regressors, increasing and with the constant last, and M weights
/// for each; nothing for a leaf.
pub(in crate::learners) fn regressors(
    tree: &Tree,
    id: NodeId,
    width: usize,
) -> (Vec<u32>, Vec<f32>) {
    let Node::Split(split) = tree.node(id) else {
        return Default::default();
    };
    let (mut columns, mut weights) = (Vec::new(), Vec::new());
    let m = tree.arity as usize;
    for column in 0..width as u32 - 1 {
        let found: Vec<f32> = with_arity!(tree.arity, M => {
            tree.routers.lookup::<M>(split as usize).get(column).to_vec()
        });
        if found.iter().any(|&w| w != 0.0) {
            columns.push(column);
            weights.extend(found);
        }
    }
    columns.push(width as u32 - 1);
    weights.extend(&tree.biases[split as usize * m..][..m]);
    (columns, weights)
}

/// Returns the labels of a leaf and their weights.
pub(in crate::learners) fn histogram(tree: &Tree, leaf: u32) -> Vec<(u32, f32)> {
    let mut labels = Vec::new();
    let histograms = &tree.histograms;
    histograms.for_each(leaf as usize, |label, [count]| labels.push((label, count)));
    labels
}

pub(in crate::learners) fn node_data(examples: &Examples, ids: &[u32]) -> NodeData {
    let mut node = NodeData::default();
    node.read(examples, ids);
    node
}
