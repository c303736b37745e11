//! A borrowed and checked view of the rows of a matrix.

use std::ops::Range;

use super::arrays::{check_structure, Indices, Values};
use crate::error::{Error, Result};

/// A borrowed CSR or dense matrix with examples in rows and features in columns.
///
/// Guarantees: row starts do not decrease and stay within the arrays; column indices are strictly
/// increasing within a row and below `n_cols`; all values are finite, or NaN if values may be
/// missing.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    form: Form<'a>,
    n_rows: usize,
    n_cols: usize,
    may_miss_values: bool,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    Csr {
        starts: Indices<'a>,
        columns: Indices<'a>,
        values: Values<'a>,
    },
    Dense(Values<'a>),
}

/// The non-zeros of one row.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    /// Column of each non-zero, increasing.
    pub columns: Vec<u32>,
    /// Value of each non-zero.
    pub values: Vec<f32>,
}

impl<'a> Rows<'a> {
    /// Checks a CSR matrix. `starts` has one entry more than there are rows. Values that are not
    /// stored are 0; NaN is a missing value, if values may be missing.
    pub fn csr(
        starts: Indices<'a>,
        columns: Indices<'a>,
        values: Values<'a>,
        n_cols: usize,
        may_miss_values: bool,
    ) -> Result<Self> {
        check_width(n_cols)?;
        if columns.len() != values.len() {
            return Err(Error::data(format!(
                "indices and data differ in length: {} and {}",
                columns.len(),
                values.len()
            )));
        }
        check_structure(starts, columns, n_cols, "column index")?;
        let form = Form::Csr {
            starts,
            columns,
            values,
        };
        let rows = Self {
            form,
            n_rows: starts.len() - 1,
            n_cols,
            may_miss_values,
        };
        rows.check_values(values, |at| {
            let is_behind = |&row: &usize| starts.get(row + 1) > at;
            let row = (0..rows.n_rows).find(is_behind);
            (row.unwrap_or(rows.n_rows), columns.get(at))
        })
    }

    /// Checks a dense matrix in row-major order. NaN is a missing value, if values may be missing.
    pub fn dense(
        values: Values<'a>,
        n_rows: usize,
        n_cols: usize,
        may_miss_values: bool,
    ) -> Result<Self> {
        check_width(n_cols)?;
        if n_rows.checked_mul(n_cols) != Some(values.len()) {
            return Err(Error::data(format!(
                "a dense matrix of {n_rows} x {n_cols} cannot have {} values",
                values.len()
            )));
        }
        let rows = Self {
            form: Form::Dense(values),
            n_rows,
            n_cols,
            may_miss_values,
        };
        rows.check_values(values, |at| (at / n_cols, at % n_cols))
    }

    /// Returns the rows, or an error if a value cannot be used. `place` returns row and column of a
    /// value.
    fn check_values(
        self,
        values: Values<'_>,
        place: impl Fn(usize) -> (usize, usize),
    ) -> Result<Self> {
        let Some(at) = values.first_unusable(self.may_miss_values) else {
            return Ok(self);
        };
        let ((row, column), value) = (place(at), values.raw(at));
        let what = if value.is_nan() {
            "NaN".into()
        } else if value.is_infinite() {
            "infinity".into()
        } else {
            format!("{value:e}, too large for float32")
        };
        let or_missing = if self.may_miss_values {
            ", or NaN where missing"
        } else {
            ""
        };
        Err(Error::data(format!(
            "row {row}, column {column}: the value is {what}; all values must be finite{or_missing}"
        )))
    }

    /// Returns whether NaN may occur, as a missing value.
    pub fn may_miss_values(&self) -> bool {
        self.may_miss_values
    }

    /// Number of examples.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Returns an error if the number of columns differs from that of a model.
    pub(crate) fn check_n_cols(&self, n_features: usize) -> Result<()> {
        if self.n_cols == n_features {
            return Ok(());
        }
        Err(Error::data(format!(
            "X has {} features, but the model was trained with {n_features}",
            self.n_cols
        )))
    }

    /// Number of stored values, including zeros: a cheap measure of the work.
    pub fn n_values(&self) -> usize {
        match self.form {
            Form::Csr { values, .. } | Form::Dense(values) => values.len(),
        }
    }

    /// Returns the number of non-zero values in the rows `which`, without explicit zeros.
    pub fn non_zeros(&self, which: &[u32]) -> usize {
        let (Form::Csr { values, .. } | Form::Dense(values)) = self.form;
        let spans = which.iter().map(|&row| self.span(row as usize));
        spans.map(|span| values.non_zeros(span)).sum()
    }

    /// Returns the range of the values of `row`.
    fn span(&self, row: usize) -> Range<usize> {
        match self.form {
            Form::Dense(_) => row * self.n_cols..(row + 1) * self.n_cols,
            Form::Csr { starts, .. } => starts.get(row)..starts.get(row + 1),
        }
    }

    /// Replaces `into` by the non-zeros of `row`, which are the same for a dense and a sparse row of
    /// the same numbers.
    pub fn read(&self, row: usize, into: &mut RowBuffer) {
        into.columns.clear();
        into.values.clear();
        let span = self.span(row);
        match self.form {
            Form::Dense(values) => {
                values.read(span, &mut into.values);
                into.columns.extend(0..self.n_cols as u32);
            }
            Form::Csr {
                columns, values, ..
            } => {
                values.read(span.clone(), &mut into.values);
                columns.read(span, &mut into.columns);
            }
        }
        into.drop_zeros();
    }
}

impl RowBuffer {
    /// Removes zeros.
    fn drop_zeros(&mut self) {
        let Self { columns, values } = self;
        // This first check vectorizes, and stored zeros are rare in sparse rows.
        if !values
            .iter()
            .fold(false, |any, &value| any | (value == 0.0))
        {
            return;
        }
        let mut kept = 0;
        for at in 0..values.len() {
            columns[kept] = columns[at];
            values[kept] = values[at];
            kept += usize::from(values[at] != 0.0);
        }
        columns.truncate(kept);
        values.truncate(kept);
    }
}

/// Returns an error if column numbers, including the constant feature, do not fit `u32`.
fn check_width(n_cols: usize) -> Result<()> {
    if n_cols >= u32::MAX as usize {
        return Err(Error::data(format!(
            "X must have at most {} features, got {n_cols}; hash them (n_bits)",
            u32::MAX - 1
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr<'a>(starts: &'a [i32], columns: &'a [i32], values: &'a [f32]) -> Result<Rows<'a>> {
        Rows::csr(
            Indices::I32(starts),
            Indices::I32(columns),
            Values::F32(values),
            4,
            false,
        )
    }

    #[test]
    fn dense_and_sparse_rows_are_read_alike() {
        let dense = Rows::dense(
            Values::F64(&[0.0, 1.5, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0]),
            2,
            4,
            false,
        )
        .unwrap();
        let sparse = csr(&[0, 3, 3], &[0, 1, 3], &[0.0, 1.5, -2.0]).unwrap();
        let (mut a, mut b) = (RowBuffer::default(), RowBuffer::default());
        for row in 0..2 {
            dense.read(row, &mut a);
            sparse.read(row, &mut b);
            assert_eq!((&a.columns, &a.values), (&b.columns, &b.values));
        }
        assert_eq!(dense.non_zeros(&[0, 1]), 2);
        assert_eq!(sparse.non_zeros(&[0, 1]), 2);
    }

    #[test]
    fn errors_name_the_place() {
        type Case = (&'static [i32], &'static [i32], &'static [f32], &'static str);
        let cases: [Case; 7] = [
            (&[], &[], &[], "indptr is empty"),
            (
                &[0, 2, 1],
                &[0, 1],
                &[1.0, 1.0],
                "row 1: indptr decreases from 2 to 1",
            ),
            (
                &[0, 1],
                &[0, 1],
                &[1.0, 1.0],
                "indptr must go from 0 to 2, the number of indices, got 0 to 1",
            ),
            (
                &[0, 1, 2],
                &[0, 4],
                &[1.0, 1.0],
                "row 1: column index 4 is outside 0..4",
            ),
            (&[0, 1], &[-1], &[1.0], "row 0: column index -1 is outside"),
            (
                &[0, 0, 2],
                &[1, 1],
                &[1.0, 1.0],
                "row 1: column indices are unsorted or repeated (index 1 follows 1)",
            ),
            (
                &[0, 1, 2],
                &[2, 3],
                &[1.0, f32::NAN],
                "row 1, column 3: the value is NaN",
            ),
        ];
        for (starts, columns, values, expected) in cases {
            let message = csr(starts, columns, values).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
        let message = Rows::dense(Values::F64(&[1.0, 1e300]), 1, 2, false)
            .unwrap_err()
            .to_string();
        assert!(message.contains("row 0, column 1: the value is 1e300, too large for float32"));
    }
}
