//! Prepared examples in memory, for learners that read them several times.

use super::{Batch, Preparation, Ragged, RaggedRows, RowBuffer, Targets};
use crate::control::Control;
use crate::error::{require, Error, Result};
use crate::persist;

/// Prepared examples with their labels. The last feature of each is the constant 1.
#[derive(Debug, Default)]
pub struct Examples {
    /// Columns and values.
    pub rows: RaggedRows,
    /// Labels of each example, increasing.
    pub labels: Ragged<u32>,
    /// Importance weight of each example.
    pub weights: Vec<f32>,
    /// Number of columns, including the constant.
    pub width: usize,
    /// Number of classes.
    pub n_labels: usize,
}

impl Examples {
    /// Reads the rows that have a label and a weight above 0.
    pub fn read(
        batch: &Batch<'_>,
        preparation: &Preparation,
        n_labels: usize,
        control: &Control,
    ) -> Result<Self> {
        let mut examples = Self {
            width: preparation.width(),
            n_labels,
            ..Self::default()
        };
        let mut row = RowBuffer::default();
        let mut labels = Vec::new();
        for chunk in Self::labeled_rows(batch).chunks(Control::CHUNK) {
            control.check()?;
            for &i in chunk {
                batch.targets.read(i as usize, &mut labels);
                preparation.read(&batch.rows, i as usize, &mut row);
                examples.rows.push(row.columns.iter().copied(), &row.values);
                examples.labels.push(labels.iter().copied());
                examples.weights.push(batch.weight(i as usize));
            }
        }
        if examples.len() == 0 {
            return Err(Error::data("no example has a label and a weight above 0"));
        }
        Ok(examples)
    }

    /// Returns the rows of `batch` that have a label and a weight above 0.
    pub fn labeled_rows(batch: &Batch<'_>) -> Vec<u32> {
        let mut rows = batch.present();
        if let Targets::Sets(sets) = batch.targets {
            let (starts, _) = sets.parts();
            rows.retain(|&i| starts.get(i as usize) < starts.get(i as usize + 1));
        }
        rows
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns an error if restored parts do not match.
    fn is_sound(&self) -> Result<()> {
        let (n_rows, constant) = (self.len() as u32, self.width.wrapping_sub(1) as u32);
        let is_row = |i| {
            let columns = self.row(i).0;
            columns.last() == Some(&constant) && columns.iter().all(|&column| column <= constant)
        };
        let is_sound = self.width > 0
            && [self.rows.len(), self.labels.len()] == [self.len(); 2]
            && (0..n_rows).all(is_row)
            && (self.labels.entries().iter()).all(|&label| (label as usize) < self.n_labels);
        require(
            is_sound,
            "rows, labels and weights of the examples do not match",
        )
    }

    /// Appends a row of examples with the same columns, with these labels.
    pub fn push(&mut self, from: &Self, row: u32, labels: impl Iterator<Item = u32>) {
        let (columns, values) = from.row(row);
        self.rows.push(columns.iter().copied(), values);
        self.labels.push(labels);
        self.weights.push(from.weight(row));
    }

    /// Returns the examples that are chosen, in their order.
    #[must_use]
    pub fn chosen(&self, is_chosen: impl Fn(u32) -> bool) -> Self {
        let mut chosen = Self {
            width: self.width,
            n_labels: self.n_labels,
            ..Self::default()
        };
        for row in (0..self.len() as u32).filter(|&row| is_chosen(row)) {
            chosen.push(self, row, self.labels(row).iter().copied());
        }
        chosen
    }

    /// Returns the share of feature values that are not 0.
    pub fn filled(&self) -> f64 {
        let cells = self.len() as f64 * (self.width - 1) as f64;
        (self.rows.n_values() - self.len()) as f64 / cells.max(1.0)
    }

    /// Returns the number of examples with each column.
    pub fn column_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.width];
        for row in 0..self.len() as u32 {
            for &column in self.row(row).0 {
                counts[column as usize] += 1;
            }
        }
        counts
    }

    /// Returns columns and values of example `i`.
    pub fn row(&self, i: u32) -> (&[u32], &[f32]) {
        self.rows.row(i as usize)
    }

    /// Returns the labels of example `i`. They increase, except in the copies of a node.
    pub fn labels(&self, i: u32) -> &[u32] {
        self.labels.get(i as usize)
    }

    /// Returns the importance weight of example `i`.
    pub fn weight(&self, i: u32) -> f32 {
        self.weights[i as usize]
    }
}

persist!(Examples {
    Nest rows;
    Nest labels;
    Columns weights;
    Meta width;
    Meta n_labels;
} check is_sound);
