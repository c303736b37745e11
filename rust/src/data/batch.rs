//! Examples with their labels and importances, checked against one another. All are borrowed.

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
    /// Checks every label against `n_classes`.
    pub fn new(labels: &'a [u32], n_classes: usize) -> Result<Self> {
        match labels.iter().position(|&label| label as usize >= n_classes) {
            None => Ok(Self { labels, n_classes }),
            Some(row) => Err(Error::data(format!(
                "row {row}: label {} is not below the number of classes, {n_classes}",
                labels[row]
            ))),
        }
    }

    /// The labels themselves.
    pub fn as_slice(&self) -> &'a [u32] {
        self.labels
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Number of classes that may occur.
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
    /// Checks the row starts and that labels are strictly increasing within a
    /// row and below `n_classes`.
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

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of classes that may occur.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Number of labels over all rows.
    pub fn total(&self) -> usize {
        self.labels.len()
    }

    /// The row starts and the labels, for who reads them in place.
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
    weights: Option<Values<'a>>,
}

impl<'a> Batch<'a> {
    /// Checks that the parts are of one length and that weights are 0, or from 1e-36 to 1e36.
    pub fn new(rows: Rows<'a>, targets: Targets<'a>, weights: Option<Values<'a>>) -> Result<Self> {
        let n_targets = match targets {
            Targets::One(labels) => labels.len(),
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
                    "row {row}: sample_weight is {:e}; it must be 0, or from {:e} to {:e}",
                    weights.raw(row),
                    WEIGHT_RANGE.start(),
                    WEIGHT_RANGE.end()
                )));
            }
        }
        if n_rows > u32::MAX as usize {
            return Err(Error::data(format!(
                "{n_rows} rows at once; at most {} are possible, pass them in parts to partial_fit",
                u32::MAX
            )));
        }
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

    /// Importance of row `i`; as learners count it, at most 1e18: more makes no difference to a
    /// step, and sums of squares would overflow.
    pub fn weight(&self, i: usize) -> f32 {
        (self.raw_weight(i) as f32).min(LARGEST_VALUE)
    }

    fn raw_weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights.raw(i))
    }

    /// The same rows, with other importances if there are any.
    pub(crate) fn with_weights<'b>(&self, weights: Option<&'b [f64]>) -> Batch<'b>
    where
        'a: 'b,
    {
        Batch {
            weights: weights.map(Values::F64).or(self.weights),
            ..*self
        }
    }

    /// The importances in units of their mean over the rows `which`; none where all are 1.
    pub(crate) fn relative_weights(&self, which: &[u32]) -> Option<Vec<f64>> {
        MeanWeight::from_rows(self, which).relative_weights(self)
    }

    /// The rows that count: a weight of 0 is the same as not being there.
    pub fn present(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.rows.n_rows());
        rows.extend((0..self.rows.n_rows() as u32).filter(|&i| self.weight(i as usize) > 0.0));
        rows
    }
}

/// The mean importance of the examples so far, of those whose importance is not 0. What is
/// learned with importances in units of it does not depend on their unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeanWeight {
    rows: u64,
    sum: f64,
}

impl MeanWeight {
    /// The mean over the rows `which`.
    pub fn from_rows(batch: &Batch<'_>, which: &[u32]) -> Self {
        let mut mean = Self::default();
        which
            .iter()
            .for_each(|&row| mean.add(batch.raw_weight(row as usize)));
        mean
    }

    /// The importances of all rows of `batch` in units of the mean; none where all are 1.
    pub fn relative_weights(&self, batch: &Batch<'_>) -> Option<Vec<f64>> {
        batch.weights?;
        let relative = |row| self.relative(batch.raw_weight(row));
        Some((0..batch.rows.n_rows()).map(relative).collect())
    }

    /// Whether this is a mean of importances, or of none.
    pub fn is_sound(&self) -> bool {
        // A mean may be beyond the weights by rounding.
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
        // However light, a row is there, in single precision, too.
        (weight * (self.rows as f64 / self.sum)).max(f32::MIN_POSITIVE.into())
    }

    /// Takes in the next rows of a stream. Returns their importances, each in units of the mean
    /// up to itself, so that it does not matter how a stream is cut into batches; none where
    /// all are 1.
    pub fn follow(&mut self, batch: &Batch<'_>) -> Option<Vec<f64>> {
        if batch.weights.is_none() && self.sum == self.rows as f64 {
            self.rows = (self.rows + batch.rows.n_rows() as u64).min(MAX_EXAMPLE_COUNT);
            self.sum = self.rows as f64;
            return None;
        }
        let relative = |row| {
            self.add(batch.raw_weight(row));
            self.relative(batch.raw_weight(row))
        };
        Some((0..batch.rows.n_rows()).map(relative).collect())
    }
}

/// Counts of examples end here, where floats of double precision no longer tell them apart.
pub(crate) const MAX_EXAMPLE_COUNT: u64 = 1 << 53;

/// Importances above 0: far from where sums of them, or steps by them, would overflow.
const WEIGHT_RANGE: RangeInclusive<f64> = 1e-36..=1e36;
