//! Labels, borrowed: one per row, or a set per row.

use super::Indices;
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
        super::csr_checks::check_structure(starts, labels, n_classes, "label")?;
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
        let (from, to) = (self.starts.get(row), self.starts.get(row + 1));
        match self.labels {
            Indices::I32(labels) => into.extend(labels[from..to].iter().map(|&l| l as u32)),
            Indices::I64(labels) => into.extend(labels[from..to].iter().map(|&l| l as u32)),
        }
    }
}
