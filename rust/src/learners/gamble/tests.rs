//! Tests of splits against a brute-force search, and of properties of every committee.

mod large;
mod linear;
mod properties;
mod rounds;
mod shap;
mod splits;
mod traversal;
mod wide;

use super::boost::{Examples, LabeledRows};
use super::columns::{Coding, Columns, Storage};
use super::node::Node;
use super::{Algorithm, EvalMetric, Gamble, Params, Splits, Votes};
use crate::control::Control;
use crate::data::{Batch, Labels, Rows, Targets, Values};
use crate::file::Element;
use crate::model::{Classifier, FitOptions, Learner, PredictOptions, Query};

/// Returns the paper's settings, with few rounds.
fn paper() -> Params {
    Params {
        algorithm: Algorithm::Gamble,
        votes: Votes::Discrete,
        n_estimators: 5,
        max_leaves: 8,
        min_samples_leaf: 1,
        learning_rate: 1.0,
        max_features: 1.0,
        subsample: 1.0,
        trim: 0.0,
        linear: false,
        clip: false,
        splits: Splits::Exact,
        categorical_features: Vec::new(),
        early_stopping: false,
        eval_metric: EvalMetric::Error,
        validation_fraction: 0.2,
        patience: 5,
        seed: 0,
    }
}

/// Rows with their labels.
#[derive(Debug, Clone)]
struct Table {
    values: Vec<f32>,
    width: usize,
    labels: Vec<u32>,
    weights: Vec<f32>,
    n_classes: usize,
}

impl Table {
    /// Returns rows of weight 1 with one column.
    fn from_column(values: &[f32], labels: &[u32], n_classes: usize) -> Self {
        Self {
            values: values.to_vec(),
            width: 1,
            labels: labels.to_vec(),
            weights: vec![1.0; labels.len()],
            n_classes,
        }
    }

    fn rows(&self) -> Rows<'_> {
        let values = Values::F32(&self.values);
        Rows::dense(values, self.labels.len(), self.width, true).unwrap()
    }

    fn all_rows(&self) -> Vec<u32> {
        (0..self.labels.len() as u32).collect()
    }

    /// Returns the rows `which` of `batch`: the first `n_learned` for training, the rest for
    /// validation.
    fn examples<'a>(
        &self,
        columns: &'a Columns,
        batch: &'a Batch<'a>,
        which: &'a [u32],
        n_learned: usize,
    ) -> Examples<'a> {
        let (learned, rest) = which.split_at(n_learned);
        let rows = |which| LabeledRows { batch, which };
        Examples {
            columns,
            learned: rows(learned),
            validation: Some(rows(rest)),
            n_classes: self.n_classes,
            threads: false,
        }
    }

    fn columns(&self, params: &Params) -> Columns {
        Columns::new(
            &self.rows(),
            &self.all_rows(),
            params,
            false,
            &Control::new(0),
        )
        .unwrap()
    }

    fn batch(&self) -> Batch<'_> {
        let labels = Labels::new(&self.labels, self.n_classes).unwrap();
        Batch::new(
            self.rows(),
            Targets::One(labels),
            Some(Values::F32(&self.weights)),
        )
        .unwrap()
    }

    fn learn(&self, params: Params, n_threads: usize) -> Gamble {
        let mut model = Gamble::create(params, self.n_classes, false).unwrap();
        let (options, control) = (FitOptions::threads(n_threads), Control::new(0));
        model.fit(&self.batch(), options, &control).unwrap();
        model
    }

    fn scores(&self, model: &Gamble) -> Vec<f64> {
        let scores = model.predict_scores(&Query::new(&self.rows(), 1, &Control::new(0)));
        f64::from_array(scores.unwrap()).unwrap().into_vec()
    }

    /// Returns the node of all rows.
    fn node(&self, min_rows: usize) -> Node {
        let mut node = Node::new(self.n_classes, min_rows);
        node.read(&self.all_rows(), &self.labels, &self.weights(), false);
        node
    }

    fn weights(&self) -> Vec<f64> {
        self.weights.iter().map(|&w| f64::from(w)).collect()
    }
}

/// Returns the codes of the values of a column.
fn coding(values: &[f32], splits: Splits, categorical: bool) -> Coding {
    let present: Vec<f32> = values.iter().copied().filter(|v| *v != 0.0).collect();
    let zeros = values.len() - present.len();
    Coding::new(present.into_iter(), zeros, splits, categorical)
}
