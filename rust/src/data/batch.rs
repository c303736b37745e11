//! Batches: examples with their labels and importance weights, borrowed and checked together.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{Indices, Rows, Values, LARGEST_VALUE};
use crate::error::{Error, Result};

/// One label per row, each below `n_classes`.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    labels: &'a [u32],
    n_classes: usize,
}

impl<'a> Labels<'a> {
    /// Checks that every label is below `n_classes`.
    pub fn new(labels: &'a [u32], n_classes: usize) -> Result<Self> {
        match labels.iter().position(|&label| label as usize >= n_classes) {
            None => Ok(Self { labels, n_classes }),
            Some(row) => Err(Error::data(format!(
                "row {row}: labels must be below the number of classes, {n_classes}, got {}",
                labels[row]
            ))),
        }
    }

    /// The labels themselves.
    pub fn as_slice(&self) -> &'a [u32] {
        self.labels
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }
}

/// A set of labels per row in CSR form, each label below `n_classes`.
#[derive(Debug, Clone, Copy)]
pub struct LabelSets<'a> {
    starts: Indices<'a>,
    labels: Indices<'a>,
    n_classes: usize,
}

impl<'a> LabelSets<'a> {
    /// Checks the row starts, and that labels are strictly increasing within a row and below
    /// `n_classes`.
    pub fn new(starts: Indices<'a>, labels: Indices<'a>, n_classes: usize) -> Result<Self> {
        super::arrays::check_structure(starts, labels, n_classes, "label")?;
        Ok(Self {
            starts,
            labels,
            n_classes,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Returns the row starts and the labels, to be read in place.
    pub(crate) fn parts(&self) -> (Indices<'a>, Indices<'a>) {
        (self.starts, self.labels)
    }

    /// Replaces `into` by the labels of `row`, in increasing order.
    pub fn read(&self, row: usize, into: &mut Vec<u32>) {
        into.clear();
        let span = self.starts.get(row)..self.starts.get(row + 1);
        self.labels.read(span, into);
    }
}

/// Labels or label sets of the rows.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One label per row.
    One(Labels<'a>),
    /// A label set per row.
    Sets(LabelSets<'a>),
}

impl Targets<'_> {
    /// Number of classes.
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

/// Examples with their targets and importance weights, which match in number.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The examples.
    pub rows: Rows<'a>,
    /// Their targets.
    pub targets: Targets<'a>,
    weights: Option<Values<'a>>,
}

impl<'a> Batch<'a> {
    /// Checks that all parts have the same length, and that weights are 0 or between 1e-36 and 1e36.
    pub fn new(rows: Rows<'a>, targets: Targets<'a>, weights: Option<Values<'a>>) -> Result<Self> {
        let n_targets = match targets {
            Targets::One(labels) => labels.as_slice().len(),
            Targets::Sets(sets) => sets.len(),
        };
        let n_rows = rows.n_rows();
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
            let is_usable = |weight| weight == 0.0 || WEIGHT_RANGE.contains(&weight);
            if let Some(row) = (0..n_rows).find(|&row| !is_usable(weights.raw(row))) {
                return Err(Error::data(format!(
                    "row {row}: sample_weight must be 0, or from {:e} to {:e}, got {:e}",
                    WEIGHT_RANGE.start(),
                    WEIGHT_RANGE.end(),
                    weights.raw(row)
                )));
            }
        }
        if n_rows > u32::MAX as usize {
            return Err(Error::data(format!(
                "X must have at most {} rows, got {n_rows}; pass it in parts to partial_fit",
                u32::MAX
            )));
        }
        Ok(Self {
            rows,
            targets,
            weights,
        })
    }

    /// Returns the labels, one per row; empty for label sets.
    pub fn labels(&self) -> &'a [u32] {
        match self.targets {
            Targets::One(labels) => labels.as_slice(),
            Targets::Sets(_) => &[],
        }
    }

    /// Returns the weighted share of `rows` whose answer is wrong. An answer is a label, or negative
    /// if there is none.
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

    /// Returns the importance weight of row `i`, at most 1e18: larger ones do not change a step, but
    /// sums of squares would overflow.
    pub fn weight(&self, i: usize) -> f32 {
        (self.raw_weight(i) as f32).min(LARGEST_VALUE)
    }

    fn raw_weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights.raw(i))
    }

    /// Returns the batch with `weights`, if given, in place of its own.
    pub(crate) fn with_weights<'b>(&self, weights: Option<&'b [f64]>) -> Batch<'b>
    where
        'a: 'b,
    {
        Batch {
            weights: weights.map(Values::F64).or(self.weights),
            ..*self
        }
    }

    /// Returns the importance weights divided by their mean over the rows `which`; None if there are
    /// no weights.
    pub(crate) fn relative_weights(&self, which: &[u32]) -> Option<Vec<f64>> {
        MeanWeight::from_rows(self, which).relative_weights(self)
    }

    /// Returns the rows whose weight is not 0; others are treated as absent.
    pub fn present(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.rows.n_rows());
        rows.extend((0..self.rows.n_rows() as u32).filter(|&i| self.weight(i as usize) > 0.0));
        rows
    }
}

/// Mean of the importance weights so far that are not 0. Weights divided by it do not depend on
/// their unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeanWeight {
    rows: u64,
    sum: f64,
}

impl MeanWeight {
    /// Computes the mean over the rows `which`.
    pub fn from_rows(batch: &Batch<'_>, which: &[u32]) -> Self {
        let mut mean = Self::default();
        mean.add_rows(batch, which);
        mean
    }

    /// Adds the rows `which`.
    pub fn add_rows(&mut self, batch: &Batch<'_>, which: &[u32]) {
        let rows = which.iter();
        rows.for_each(|&row| self.add(batch.raw_weight(row as usize)));
    }

    /// Returns the importance weights of all rows of `batch` divided by the mean; None if there are
    /// no weights.
    pub fn relative_weights(&self, batch: &Batch<'_>) -> Option<Vec<f64>> {
        batch.weights?;
        let relative = |row| self.relative(batch.raw_weight(row));
        Some((0..batch.rows.n_rows()).map(relative).collect())
    }

    /// Returns whether this can be a mean of importance weights, or of none.
    pub fn is_sound(&self) -> bool {
        // By rounding, a mean may be slightly out of the range of weights.
        let mean = self.sum / self.rows as f64;
        let is_mean = (0.5 * WEIGHT_RANGE.start()..=2.0 * WEIGHT_RANGE.end()).contains(&mean);
        self.rows <= MAX_EXAMPLE_COUNT && (self.rows == 0 && self.sum == 0.0 || is_mean)
    }

    fn add(&mut self, weight: f64) {
        self.rows = (self.rows + u64::from(weight > 0.0)).min(MAX_EXAMPLE_COUNT);
        self.sum += weight;
    }

    fn relative(&self, weight: f64) -> f64 {
        if weight == 0.0 {
            return 0.0;
        }
        // The weight of a row that is present must not round to 0 in single precision.
        (weight * (self.rows as f64 / self.sum)).max(f32::MIN_POSITIVE.into())
    }

    /// Adds the next rows of a stream. Returns their importance weights, each divided by the mean up
    /// to this row, so that the batch boundaries of a stream do not matter.
    pub fn follow(&mut self, batch: &Batch<'_>) -> Vec<f64> {
        let relative = |row| {
            self.add(batch.raw_weight(row));
            self.relative(batch.raw_weight(row))
        };
        (0..batch.rows.n_rows()).map(relative).collect()
    }
}

/// Maximum of counts of examples, up to which double precision represents all integers.
pub(crate) const MAX_EXAMPLE_COUNT: u64 = 1 << 53;

/// Range of importance weights above 0, far from where sums or steps would overflow.
const WEIGHT_RANGE: RangeInclusive<f64> = 1e-36..=1e36;
