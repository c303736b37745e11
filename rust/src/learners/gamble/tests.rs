//! Splits against a brute-force search, and what must hold of every committee.

mod large;
mod properties;
mod splits;

use super::binning::Coding;
use super::columns::Columns;
use super::node::Node;
use super::{Algorithm, Gamble, Lesson, Params, Splits};
use crate::control::Control;
use crate::data::{GappyRows, Labels, Values};

/// The paper's settings, few rounds.
fn paper() -> Params {
    Params {
        algorithm: Algorithm::Gamble,
        n_estimators: 5,
        max_leaves: 8,
        min_samples_leaf: 1,
        learning_rate: 1.0,
        max_features: 1.0,
        subsample: 1.0,
        trim: 0.0,
        clip: false,
        splits: Splits::Exact,
        categorical_features: Vec::new(),
        early_stopping: false,
        validation_fraction: 0.2,
        patience: 5,
        seed: 0,
    }
}

/// A table of rows with their labels.
#[derive(Debug, Clone)]
struct Table {
    values: Vec<f32>,
    width: usize,
    labels: Vec<u32>,
    weights: Vec<f32>,
    n_classes: usize,
}

impl Table {
    fn rows(&self) -> GappyRows<'_> {
        let values = Values::F32(&self.values);
        GappyRows::dense(values, self.labels.len(), self.width).unwrap()
    }

    fn columns(&self, params: &Params) -> Columns {
        let which: Vec<u32> = (0..self.labels.len() as u32).collect();
        Columns::new(&self.rows(), &which, params, false, &Control::new(0)).unwrap()
    }

    fn learn(&self, params: Params, n_threads: usize) -> Gamble {
        let labels = Labels::new(&self.labels, self.n_classes).unwrap();
        let lesson = Lesson::new(self.rows(), labels, Some(&self.weights)).unwrap();
        let mut model = Gamble::new(params, self.n_classes).unwrap();
        model.fit(&lesson, n_threads, &Control::new(0)).unwrap();
        model
    }

    fn scores(&self, model: &Gamble) -> Vec<f64> {
        let n_trees = model.trees().len();
        let control = Control::new(0);
        model.scores(&self.rows(), 0, n_trees, 1, &control).unwrap()
    }

    /// All rows as one node.
    fn node(&self, min_rows: usize) -> Node {
        let rows: Vec<u32> = (0..self.labels.len() as u32).collect();
        let weights: Vec<f64> = self.weights.iter().map(|&w| f64::from(w)).collect();
        let mut node = Node {
            min_rows,
            ..Node::default()
        };
        let mut numbers = vec![Node::ABSENT; self.n_classes];
        node.read(&rows, &self.labels, &weights, &mut numbers);
        node
    }
}

/// The codes of one column's values.
fn coding(values: &[f32], splits: Splits, categorical: bool) -> Coding {
    let present: Vec<f32> = values.iter().copied().filter(|v| *v != 0.0).collect();
    let zeros = values.len() - present.len();
    Coding::of(0, &present, zeros, splits, categorical).unwrap()
}
