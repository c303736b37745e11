//! Examples as training reads them: all of them, held once for all trees and threads,
//! or those of a node (see [`NodeData`](super::node_data::NodeData)).

use crate::control::Control;
use crate::data::{Batch, Preparation, Ragged, RaggedRows, RowBuffer, Targets};
use crate::error::{Error, Result};

/// Prepared examples that have labels, with the constant 1 as their last feature.
#[derive(Debug, Default)]
pub struct Examples {
    pub rows: RaggedRows,
    pub labels: Ragged<u32>,
    pub weights: Vec<f32>,
    /// Number of columns, the constant among them.
    pub width: usize,
    /// Number of labels that may occur.
    pub n_labels: usize,
}

impl Examples {
    /// Reads all rows that have a label and a weight above 0.
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
        for chunk in Self::labelled_rows(batch).chunks(Control::CHUNK) {
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
            return Err(Error::data(
                "there is no example that has a label and a weight above 0",
            ));
        }
        Ok(examples)
    }

    /// The rows of `batch` that are read.
    pub fn labelled_rows(batch: &Batch<'_>) -> Vec<u32> {
        let mut rows = batch.present();
        if let Targets::Sets(sets) = batch.targets {
            let (starts, _) = sets.parts();
            rows.retain(|&i| starts.get(i as usize) < starts.get(i as usize + 1));
        }
        rows
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Share of the features' values that are not zero.
    pub fn filled(&self) -> f64 {
        let cells = self.len() as f64 * (self.width - 1) as f64;
        (self.rows.n_values() - self.len()) as f64 / cells.max(1.0)
    }

    /// Columns and values of example `i`.
    #[inline]
    pub fn row(&self, i: u32) -> (&[u32], &[f32]) {
        self.rows.row(i as usize)
    }

    /// Labels of example `i`, increasing but for those of a node.
    #[inline]
    pub fn labels(&self, i: u32) -> &[u32] {
        self.labels.get(i as usize)
    }

    /// Importance of example `i`.
    #[inline]
    pub fn weight(&self, i: u32) -> f32 {
        self.weights[i as usize]
    }
}
