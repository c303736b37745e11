//! A view of examples over memory that somebody else owns: arrays of either width, checked once.

use crate::error::{Error, Result};

/// Borrowed indices, 32 or 64 bits wide: scipy uses either, by size.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    /// 32-bit.
    I32(&'a [i32]),
    /// 64-bit.
    I64(&'a [i64]),
}

impl Indices<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::I32(slice) => slice.len(),
            Self::I64(slice) => slice.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `at`, which has been checked to be non-negative.
    pub(crate) fn get(&self, at: usize) -> usize {
        match self {
            Self::I32(slice) => slice[at] as usize,
            Self::I64(slice) => slice[at] as usize,
        }
    }

    pub(crate) fn raw(&self, at: usize) -> i64 {
        match self {
            Self::I32(slice) => i64::from(slice[at]),
            Self::I64(slice) => slice[at],
        }
    }
}

/// Borrowed feature values, single or double precision.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision, rounded to single as rows are read.
    F64(&'a [f64]),
}

impl Values<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(slice) => slice.len(),
            Self::F64(slice) => slice.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the first value stands that single precision cannot hold as a
    /// finite number, or as NaN where values may be missing.
    pub(super) fn first_unusable(&self, may_be_missing: bool) -> Option<usize> {
        // One sum over a chunk is not finite if any of its values is not;
        // only then is the chunk looked at value by value.
        match (self, may_be_missing) {
            (Self::F32(slice), false) => first_where(slice, |v| !v.is_finite()),
            (Self::F64(slice), false) => first_where(slice, |v| !(v as f32).is_finite()),
            (Self::F32(slice), true) => first_where(slice, f32::is_infinite),
            (Self::F64(slice), true) => first_where(slice, |v| (v as f32).is_infinite()),
        }
    }

    pub(super) fn raw(&self, at: usize) -> f64 {
        match self {
            Self::F32(slice) => f64::from(slice[at]),
            Self::F64(slice) => slice[at],
        }
    }
}

fn first_where<T: Copy>(slice: &[T], bad: impl Fn(T) -> bool) -> Option<usize> {
    const CHUNK: usize = 64;
    for (c, chunk) in slice.chunks(CHUNK).enumerate() {
        // No early exit inside a chunk, so that the test vectorises.
        if chunk.iter().fold(false, |any, &v| any | bad(v)) {
            return chunk.iter().position(|&v| bad(v)).map(|at| c * CHUNK + at);
        }
    }
    None
}

/// Checks row starts and indices of a CSR structure.
pub(crate) fn check_structure(
    starts: Indices<'_>,
    indices: Indices<'_>,
    bound: usize,
    what: &str,
) -> Result<()> {
    if starts.is_empty() {
        return Err(Error::data(
            "indptr is empty; it has one entry more than there are rows",
        ));
    }
    if starts.raw(0) != 0 {
        return Err(Error::data(format!(
            "indptr starts at {}, not at 0",
            starts.raw(0)
        )));
    }
    for row in 0..starts.len() - 1 {
        if starts.raw(row + 1) < starts.raw(row) {
            return Err(Error::data(format!(
                "row {row}: indptr falls from {} to {}",
                starts.raw(row),
                starts.raw(row + 1)
            )));
        }
    }
    let end = starts.raw(starts.len() - 1);
    if end as usize != indices.len() {
        return Err(Error::data(format!(
            "indptr ends at {end}, but there are {} indices",
            indices.len()
        )));
    }
    match indices {
        Indices::I32(slice) => check_indices(starts, slice, bound, what),
        Indices::I64(slice) => check_indices(starts, slice, bound, what),
    }
}

fn check_indices<I: Copy + Into<i64>>(
    starts: Indices<'_>,
    indices: &[I],
    bound: usize,
    what: &str,
) -> Result<()> {
    if are_sound(starts, indices, bound) {
        return Ok(());
    }
    for row in 0..starts.len() - 1 {
        let mut previous = -1i64;
        let mut increasing = true;
        let mut highest = -1i64;
        let mut lowest = 0i64;
        let span = &indices[starts.get(row)..starts.get(row + 1)];
        for &index in span {
            let index: i64 = index.into();
            increasing &= index > previous;
            lowest = lowest.min(index);
            highest = highest.max(index);
            previous = index;
        }
        if lowest < 0 || highest >= bound as i64 {
            let bad = if lowest < 0 { lowest } else { highest };
            return Err(Error::data(format!(
                "row {row}: {what} {bad} is outside 0..{bound}"
            )));
        }
        if !increasing {
            let at = (1..span.len())
                .find(|&i| span[i].into() <= span[i - 1].into())
                .unwrap_or(0);
            return Err(Error::Unsorted {
                row,
                index: span[at].into(),
                previous: span[at.saturating_sub(1)].into(),
            });
        }
    }
    Ok(())
}

/// Whether all indices are within 0..`bound` and increase within each row, without a
/// loop per row, which would be most of the time where rows are short: they do if they
/// fall only from one row to the next.
fn are_sound<I: Copy + Into<i64>>(starts: Indices<'_>, indices: &[I], bound: usize) -> bool {
    let outside = |index: I| !(0..bound as i64).contains(&index.into());
    if indices.iter().fold(false, |any, &i| any | outside(i)) {
        return false;
    }
    let falls = |at: usize| usize::from(indices[at].into() <= indices[at - 1].into());
    let anywhere: usize = indices
        .windows(2)
        .map(|pair| usize::from(pair[1].into() <= pair[0].into()))
        .sum();
    let mut between = 0;
    let mut previous = 0;
    for row in 0..starts.len() - 1 {
        let start = starts.get(row);
        // Only the first of the rows that start here follows another row's index.
        if start > previous && start < indices.len() {
            between += falls(start);
        }
        previous = start;
    }
    anywhere == between
}

/// Examples in rows, features in columns: CSR or dense, borrowed and checked.
///
/// Checked means: row starts increase and stay within the arrays, column
/// indices are strictly increasing within a row and below `n_cols`, all
/// values are finite, or NaN where values may be missing.
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

/// One row as it was read: the columns and values of its non-zeros.
#[derive(Debug, Default, Clone)]
pub struct RowBuffer {
    /// Column of each non-zero, increasing.
    pub columns: Vec<u32>,
    /// Value of each non-zero.
    pub values: Vec<f32>,
}

impl<'a> Rows<'a> {
    /// Checks a CSR matrix: `starts` has one entry more than there are rows.
    pub fn csr(
        starts: Indices<'a>,
        columns: Indices<'a>,
        values: Values<'a>,
        n_cols: usize,
    ) -> Result<Self> {
        Self::new_csr(starts, columns, values, n_cols, false)
    }

    /// [`csr`](Self::csr), in which values may be missing: NaN. What is not stored is 0.
    pub fn new_csr(
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
        if let Some(at) = values.first_unusable(may_miss_values) {
            let row = (0..rows.n_rows)
                .find(|&row| starts.get(row + 1) > at)
                .unwrap_or(rows.n_rows);
            return Err(unusable(
                row,
                columns.get(at),
                values.raw(at),
                may_miss_values,
            ));
        }
        Ok(rows)
    }

    /// Checks a dense matrix in row-major order.
    pub fn dense(values: Values<'a>, n_rows: usize, n_cols: usize) -> Result<Self> {
        Self::new_dense(values, n_rows, n_cols, false)
    }

    /// [`dense`](Self::dense), in which values may be missing: NaN.
    pub fn new_dense(
        values: Values<'a>,
        n_rows: usize,
        n_cols: usize,
        may_miss_values: bool,
    ) -> Result<Self> {
        check_width(n_cols)?;
        if n_rows.checked_mul(n_cols) != Some(values.len()) {
            return Err(Error::data(format!(
                "a dense matrix of {n_rows} x {n_cols} does not have {} values",
                values.len()
            )));
        }
        if let Some(at) = values.first_unusable(may_miss_values) {
            return Err(unusable(
                at / n_cols,
                at % n_cols,
                values.raw(at),
                may_miss_values,
            ));
        }
        Ok(Self {
            form: Form::Dense(values),
            n_rows,
            n_cols,
            may_miss_values,
        })
    }

    /// Whether NaN is among what may be read, for a missing value.
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

    /// An error where these have not the columns that a model learned from.
    pub(crate) fn check_n_cols(&self, n_features: usize) -> Result<()> {
        if self.n_cols == n_features {
            return Ok(());
        }
        Err(Error::data(format!(
            "X has {} features, but the model learned from {n_features}",
            self.n_cols
        )))
    }

    /// Number of values held, zeros among them: the cheapest measure of the work
    /// that the rows are.
    pub fn n_values(&self) -> usize {
        match self.form {
            Form::Csr { values, .. } | Form::Dense(values) => values.len(),
        }
    }

    /// Number of non-zero values (explicit zeros do not count).
    pub fn non_zeros(&self) -> usize {
        match self.form {
            Form::Csr { values, .. } | Form::Dense(values) => match values {
                Values::F32(slice) => slice.iter().filter(|&&v| v != 0.0).count(),
                Values::F64(slice) => slice.iter().filter(|&&v| v != 0.0).count(),
            },
        }
    }

    /// Replaces `into` by the non-zeros of `row`. A dense row and a sparse row
    /// of the same numbers read the same, so a learner cannot tell them apart.
    pub fn read(&self, row: usize, into: &mut RowBuffer) {
        into.columns.clear();
        into.values.clear();
        match self.form {
            Form::Dense(values) => {
                let (from, to) = (row * self.n_cols, (row + 1) * self.n_cols);
                match values {
                    Values::F32(slice) => push(into, 0u32.., slice[from..to].iter().copied()),
                    Values::F64(slice) => {
                        push(into, 0u32.., slice[from..to].iter().map(|&v| v as f32));
                    }
                }
            }
            Form::Csr {
                starts,
                columns,
                values,
            } => {
                let span = starts.get(row)..starts.get(row + 1);
                match (columns, values) {
                    (Indices::I32(c), Values::F32(v)) => push(
                        into,
                        c[span.clone()].iter().map(|&c| c as u32),
                        v[span].iter().copied(),
                    ),
                    (Indices::I32(c), Values::F64(v)) => push(
                        into,
                        c[span.clone()].iter().map(|&c| c as u32),
                        v[span].iter().map(|&v| v as f32),
                    ),
                    (Indices::I64(c), Values::F32(v)) => push(
                        into,
                        c[span.clone()].iter().map(|&c| c as u32),
                        v[span].iter().copied(),
                    ),
                    (Indices::I64(c), Values::F64(v)) => push(
                        into,
                        c[span.clone()].iter().map(|&c| c as u32),
                        v[span].iter().map(|&v| v as f32),
                    ),
                }
            }
        }
    }
}

fn push(
    into: &mut RowBuffer,
    columns: impl Iterator<Item = u32>,
    values: impl Iterator<Item = f32>,
) {
    into.values.extend(values);
    // An iterator of columns may go on for ever.
    into.columns.extend(columns.take(into.values.len()));
    let RowBuffer { columns, values } = into;
    // Looking first vectorises, and stored zeros are rare in sparse rows.
    if values
        .iter()
        .fold(false, |any, &value| any | (value == 0.0))
    {
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

/// Feature numbers are `u32`, and one is kept free for the constant feature.
fn check_width(n_cols: usize) -> Result<()> {
    if n_cols >= u32::MAX as usize {
        return Err(Error::data(format!(
            "{n_cols} features: at most {} are possible; hash them (n_bits)",
            u32::MAX - 1
        )));
    }
    Ok(())
}

fn unusable(row: usize, column: usize, value: f64, may_be_missing: bool) -> Error {
    let what = if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        "infinity".into()
    } else {
        format!("{value:e}, too large for float32")
    };
    let or_missing = if may_be_missing {
        ", or NaN where missing"
    } else {
        ""
    };
    Error::data(format!(
        "row {row}, column {column}: the value is {what}; all values must be finite{or_missing}"
    ))
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
        )
    }

    #[test]
    fn reads_the_same_from_dense_and_sparse() {
        let dense = Rows::dense(
            Values::F64(&[0.0, 1.5, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0]),
            2,
            4,
        )
        .unwrap();
        let sparse = csr(&[0, 3, 3], &[0, 1, 3], &[0.0, 1.5, -2.0]).unwrap();
        let (mut a, mut b) = (RowBuffer::default(), RowBuffer::default());
        for row in 0..2 {
            dense.read(row, &mut a);
            sparse.read(row, &mut b);
            assert_eq!((&a.columns, &a.values), (&b.columns, &b.values));
        }
        assert_eq!(dense.non_zeros(), 2);
        assert_eq!(sparse.non_zeros(), 2);
    }

    #[test]
    fn refuses_what_is_broken_and_says_where() {
        type Case = (&'static [i32], &'static [i32], &'static [f32], &'static str);
        let cases: [Case; 7] = [
            (&[], &[], &[], "indptr is empty"),
            (
                &[0, 2, 1],
                &[0, 1],
                &[1.0, 1.0],
                "row 1: indptr falls from 2 to 1",
            ),
            (&[0, 1], &[0, 1], &[1.0, 1.0], "indptr ends at 1"),
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
        let message = Rows::dense(Values::F64(&[1.0, 1e300]), 1, 2)
            .unwrap_err()
            .to_string();
        assert!(message.contains("row 0, column 1: the value is 1e300, too large for float32"));
    }
}
