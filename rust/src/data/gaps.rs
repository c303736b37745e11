//! Examples of which values may be missing.

use super::{Indices, RowBuffer, Rows, Values};
use crate::error::Result;

/// [`Rows`] in which NaN is allowed and stands for a missing value. A type of its own,
/// so that no learner gets missing values that cannot do with them.
#[derive(Debug, Clone, Copy)]
pub struct GappyRows<'a>(Rows<'a>);

impl<'a> GappyRows<'a> {
    /// [`Rows::csr`], with NaN for missing values. What is not stored is 0.
    pub fn csr(
        starts: Indices<'a>,
        columns: Indices<'a>,
        values: Values<'a>,
        n_cols: usize,
    ) -> Result<Self> {
        Rows::csr_with_missing(starts, columns, values, n_cols).map(Self)
    }

    /// [`Rows::dense`], with NaN for missing values.
    pub fn dense(values: Values<'a>, n_rows: usize, n_cols: usize) -> Result<Self> {
        Rows::dense_with_missing(values, n_rows, n_cols).map(Self)
    }

    /// Number of examples.
    pub fn n_rows(&self) -> usize {
        self.0.n_rows()
    }

    /// Number of features.
    pub fn n_cols(&self) -> usize {
        self.0.n_cols()
    }

    /// Number of values held, zeros among them.
    pub fn n_values(&self) -> usize {
        self.0.n_values()
    }

    /// [`Rows::read`]; NaN is among what is read.
    pub fn read(&self, row: usize, into: &mut RowBuffer) {
        self.0.read(row, into);
    }
}
