//! The training data, held once for all trees and threads, and the examples of a node.

use crate::alloc::{extend, push};
use crate::control::Control;
use crate::data::{Batch, Preparation, Ragged, RaggedRows, RowBuffer, Targets};
use crate::error::{Error, Result};
use crate::persist;

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
                push(&mut examples.weights, batch.weight(i as usize));
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

    /// An error where parts from bytes do not fit together.
    fn is_sound(&self) -> Result<()> {
        let (n_rows, constant) = (self.len() as u32, self.width.wrapping_sub(1) as u32);
        let is_row = |i| {
            let columns = self.row(i).0;
            columns.last() == Some(&constant) && columns.iter().all(|&column| column <= constant)
        };
        let is_sound = n_rows > 0
            && self.width > 0
            && [self.rows.len(), self.labels.len()] == [self.len(); 2]
            && (0..n_rows).all(is_row)
            && (self.labels.entries().iter()).all(|&label| (label as usize) < self.n_labels);
        if is_sound {
            return Ok(());
        }
        Err(Error::data("the examples do not fit together"))
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

persist!(Examples {
    Nest rows;
    Nest labels;
    Columns weights;
    Meta width;
    Meta n_labels;
} check is_sound);

/// A copy of a node's examples, which its training reads over and over.
///
/// A node sees few of the features and labels. Renumbered in the order in which
/// they first occur, they make its weights and statistics small arrays that stay
/// in the nearest cache, and one epoch reads two flat arrays from end to end.
#[derive(Debug, Default)]
pub struct NodeData {
    /// Column of each local feature.
    pub columns: Vec<u32>,
    /// Label of each local label number.
    pub labels: Vec<u32>,
    pub examples: Examples,
}

/// Has no local number yet.
pub const NONE: u32 = u32::MAX;

impl NodeData {
    /// Copies the examples `ids` in place of those that are here, into the memory that these had:
    /// new memory for each of thousands of nodes costs a tenth of the training. `local_ids` has
    /// [`NONE`] for every column or label, and has again afterwards.
    pub fn read(&mut self, examples: &Examples, ids: &[u32], local_ids: &mut [u32]) {
        let Self {
            columns,
            labels,
            examples: own,
        } = self;
        columns.clear();
        labels.clear();
        own.rows.clear();
        own.labels.clear();
        let (of_rows, of_labels) = (&examples.rows, &examples.labels);
        let n_values = ids.iter().map(|&id| of_rows.row(id as usize).0.len());
        own.rows.reserve(ids.len(), n_values.sum());
        let n_labels = ids.iter().map(|&id| of_labels.range(id as usize).len());
        own.labels.reserve(ids.len(), n_labels.sum());
        for &id in ids {
            let (row, values) = examples.row(id);
            let features = row.iter().map(|&id| local_id(id, local_ids, columns));
            own.rows.push(features, values);
        }
        forget(columns, local_ids);
        for &id in ids {
            let row = examples.labels(id).iter();
            own.labels
                .push(row.map(|&id| local_id(id, local_ids, labels)));
        }
        forget(labels, local_ids);
        own.weights.clear();
        extend(&mut own.weights, ids.iter().map(|&id| examples.weight(id)));
        own.width = columns.len();
        own.n_labels = labels.len();
    }
}

/// The local number of `id`; the next one, if it has none.
#[inline]
fn local_id(id: u32, local_ids: &mut [u32], known: &mut Vec<u32>) -> u32 {
    let local = &mut local_ids[id as usize];
    if *local == NONE {
        *local = known.len() as u32;
        push(known, id);
    }
    *local
}

/// Takes the local numbers of what is `known` away.
fn forget(known: &[u32], local_ids: &mut [u32]) {
    for &id in known {
        local_ids[id as usize] = NONE;
    }
}
