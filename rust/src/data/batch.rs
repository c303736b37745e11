//! Examples with their targets and importances, checked against one another.

use super::{LabelSets, Labels, Rows};
use crate::error::{Error, Result};

/// What is to be learned for each row.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One label.
    One(Labels<'a>),
    /// A set of labels.
    Sets(LabelSets<'a>),
}

impl Targets<'_> {
    /// Number of classes that may occur.
    pub fn n_classes(&self) -> usize {
        match self {
            Self::One(labels) => labels.n_classes(),
            Self::Sets(sets) => sets.n_classes(),
        }
    }

    /// Replaces `into` by the labels of `row`, in increasing order.
    pub fn read(&self, row: usize, into: &mut Vec<u32>) {
        match self {
            Self::One(labels) => {
                into.clear();
                into.push(labels.as_slice()[row]);
            }
            Self::Sets(sets) => sets.read(row, into),
        }
    }
}

/// Examples with their targets and importances, checked against one another.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The examples.
    pub rows: Rows<'a>,
    /// Their targets.
    pub targets: Targets<'a>,
    weights: Option<&'a [f32]>,
}

impl<'a> Batch<'a> {
    /// Checks that the parts are of one length, that there is an example, and
    /// that weights are finite and not negative.
    pub fn new(rows: Rows<'a>, targets: Targets<'a>, weights: Option<&'a [f32]>) -> Result<Self> {
        let n_targets = match targets {
            Targets::One(labels) => labels.len(),
            Targets::Sets(sets) => sets.len(),
        };
        check_parts(rows.n_rows(), n_targets, weights)?;
        Ok(Self {
            rows,
            targets,
            weights,
        })
    }

    /// The labels, one per row; none where there are sets of them.
    pub fn labels(&self) -> &'a [u32] {
        match self.targets {
            Targets::One(labels) => labels.as_slice(),
            Targets::Sets(_) => &[],
        }
    }

    /// Weighted share of `rows` whose answer is wrong: a label for each, or less than 0.
    pub(crate) fn error_rate(&self, rows: &[u32], answers: &[i32]) -> f64 {
        let mut set = Vec::new();
        let (mut all, mut wrong) = (0.0, 0.0);
        for (&row, &answer) in rows.iter().zip(answers) {
            let row = row as usize;
            self.targets.read(row, &mut set);
            let is_right =
                u32::try_from(answer).is_ok_and(|answer| set.binary_search(&answer).is_ok());
            let weight = f64::from(self.weight(row));
            all += weight;
            if !is_right {
                wrong += weight;
            }
        }
        wrong / all
    }

    /// Importance of row `i`.
    pub fn weight(&self, i: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[i])
    }

    /// The rows that count: a weight of 0 is the same as not being there.
    pub fn present(&self) -> Vec<u32> {
        (0..self.rows.n_rows() as u32)
            .filter(|&i| self.weight(i as usize) > 0.0)
            .collect()
    }
}

/// Checks that there are as many targets and weights as rows, and that weights are finite
/// and not negative.
fn check_parts(n_rows: usize, n_targets: usize, weights: Option<&[f32]>) -> Result<()> {
    if n_targets != n_rows {
        return Err(Error::data(format!(
            "X has {n_rows} rows, y has {n_targets}"
        )));
    }
    if let Some(weights) = weights {
        if weights.len() != n_rows {
            return Err(Error::data(format!(
                "X has {n_rows} rows, sample_weight has {}",
                weights.len()
            )));
        }
        if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::data(format!(
                "row {row}: sample_weight is {}; it must be finite and not negative",
                weights[row]
            )));
        }
    }
    if n_rows > u32::MAX as usize {
        return Err(Error::data(format!(
            "{n_rows} rows at once; at most {} are possible, pass them in parts to partial_fit",
            u32::MAX
        )));
    }
    Ok(())
}
