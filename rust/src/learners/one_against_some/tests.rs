//! Scorers, compared with their definitions.

mod calibration;
mod dense;
mod groups;
mod negatives;
mod ranking;
mod rows;
mod training;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::dense::{DenseColumns, DenseProducts, BLOCK};
use super::rows::{DistinctRows, ScorerRows};
use super::svm::{Accuracy, Problem, Scorer, Solver};
use super::*;
use crate::data::{Examples, Ragged};
use crate::learners::ldsm::tests::packed::packed;
use crate::learners::ldsm::tests::{data, fixed, is_near, N_CLASSES, WIDTH};

/// No dense columns, so that all are treated alike.
static SPARSE: LazyLock<DenseColumns> = LazyLock::new(DenseColumns::default);

const EXACT: Accuracy = Accuracy {
    max_rounds: 10_000,
    tolerance: 1e-9,
};

/// Returns 1 / the length of each row without its constant.
fn inverse_lengths(examples: &Examples) -> Vec<f32> {
    let length = |i| {
        let (columns, values) = examples.row(i);
        let features = &values[..columns.len() - 1];
        let square: f32 = features.iter().map(|x| x * x).sum();
        if square > 0.0 {
            square.sqrt().recip()
        } else {
            0.0
        }
    };
    (0..examples.len() as u32).map(length).collect()
}

/// Returns row `i` scaled to length 1, with the constant last.
fn full(examples: &Examples, i: u32) -> Vec<f64> {
    let (columns, values) = examples.row(i);
    let scale = f64::from(inverse_lengths(examples)[i as usize]);
    let mut row = vec![0.0; examples.width];
    for (&column, &x) in columns.iter().zip(values) {
        row[column as usize] += f64::from(x) * scale;
    }
    row[examples.width - 1] = 1.0;
    row
}

fn full_weights(scorer: &Scorer, width: usize) -> Vec<f64> {
    let mut weights = vec![0.0; width];
    for &(column, weight) in &scorer.weights {
        weights[column as usize] = weight.into();
    }
    weights[width - 1] = scorer.bias.into();
    weights
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn problem<'a>(positives: &'a [u32], negatives: &'a [&'a [u32]]) -> Problem<'a> {
    Problem {
        positives,
        negatives,
        late_positives: &[],
        positive_weight: 1.0,
        cost: 1.0,
    }
}

/// Returns even rows and odd rows, without every seventh row.
fn split_rows(examples: &Examples) -> (Vec<u32>, Vec<u32>) {
    let rows = (0..examples.len() as u32).filter(|i| i % 7 != 3);
    rows.partition(|i| i % 2 == 0)
}
