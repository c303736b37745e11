//! Parsed examples, in the arrays of a CSR matrix.

use std::cmp::Ordering;
use std::fmt::Display;

use crate::alloc::{push, reserve};

/// Rows of features and labels, both in CSR form. `L` is the label's type:
/// f64 in svmlight files, where a target may be any number, i32 in XMC files,
/// where it is the number of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<L> {
    /// Where each row's features begin, and the end of the last row.
    pub starts: Vec<i64>,
    /// Column of each value, strictly increasing within a row.
    pub columns: Vec<i32>,
    /// The values, all finite.
    pub values: Vec<f32>,
    /// Where each row's labels begin, and the end of the last row.
    pub label_starts: Vec<i64>,
    /// The labels, strictly increasing within a row.
    pub labels: Vec<L>,
}

impl<L> Default for Table<L> {
    fn default() -> Self {
        Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            label_starts: vec![0],
            labels: Vec::new(),
        }
    }
}

impl<L> Table<L> {
    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of a row without features and labels.
    pub(super) const ROW: usize = 2 * size_of::<i64>();

    /// Bytes of what is held.
    pub(super) fn size(&self) -> usize {
        self.n_rows() * Self::ROW
            + self.columns.len() * (size_of::<i32>() + size_of::<f32>())
            + self.labels.len() * size_of::<L>()
    }

    /// Drops all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.starts.truncate(1);
        self.columns.clear();
        self.values.clear();
        self.label_starts.truncate(1);
        self.labels.clear();
    }

    /// Closes the row to which features and labels have been pushed.
    pub(super) fn end_row(&mut self) {
        push(&mut self.starts, self.columns.len() as i64);
        push(&mut self.label_starts, self.labels.len() as i64);
    }

    /// Sorts the labels pushed to the row that is not closed yet and checks them; with
    /// `multilabel` false there must be exactly one. Whether there is another number of them.
    pub(super) fn check_labels(
        &mut self,
        multilabel: Option<bool>,
        order: fn(&L, &L) -> Ordering,
    ) -> Result<bool, String>
    where
        L: PartialOrd + Display,
    {
        let from = self.label_starts[self.label_starts.len() - 1] as usize;
        let labels = &mut self.labels[from..];
        let n = labels.len();
        if multilabel == Some(false) && n != 1 {
            let n = if n == 0 {
                "no label".into()
            } else {
                format!("{n} labels")
            };
            return Err(format!("{n}, but multilabel=False asks for exactly one"));
        }
        if !labels.is_sorted_by(|a, b| a < b) {
            labels.sort_unstable_by(order);
            // Sorted, so "not below the next" is "equal", of the two zeros of floats too.
            if let Some(at) = (1..n).find(|&at| labels[at - 1] >= labels[at]) {
                return Err(format!("label {} stands twice", labels[at]));
            }
        }
        Ok(n != 1)
    }

    /// Room for `bytes` of text, so that rows are pushed without growing.
    pub(super) fn reserve_for(&mut self, bytes: usize) {
        // A feature takes four bytes at least (" 1:1"), about ten as a rule.
        let features = bytes / 8;
        if self.columns.capacity() - self.columns.len() < features {
            reserve(&mut self.columns, features);
            reserve(&mut self.values, features);
        }
    }
}

/// A table with its widths.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<L> {
    /// The rows.
    pub table: Table<L>,
    /// Number of columns of X.
    pub n_features: usize,
    /// Number of labels there are; 0 in svmlight files, where labels are
    /// numbers and not columns.
    pub n_labels: usize,
    /// Whether y is to be taken as label sets.
    pub multilabel: bool,
}
