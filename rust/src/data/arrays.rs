//! Borrowed arrays of 32 or 64 bits, and the check of the arrays of a CSR matrix.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::simd::first_where;

/// Borrowed indices of 32 or 64 bits; scipy uses both, depending on the size of a matrix.
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

    /// Returns entry `at`, which must have been checked to be non-negative.
    pub(crate) fn get(&self, at: usize) -> usize {
        self.raw(at) as usize
    }

    /// Returns entry `at` as it is.
    pub(crate) fn raw(&self, at: usize) -> i64 {
        match self {
            Self::I32(slice) => i64::from(slice[at]),
            Self::I64(slice) => slice[at],
        }
    }

    /// Appends the entries of `span`, which must have been checked to fit 32 bits.
    pub(super) fn read(&self, span: Range<usize>, into: &mut Vec<u32>) {
        match self {
            Self::I32(slice) => into.extend(slice[span].iter().map(|&index| index as u32)),
            Self::I64(slice) => into.extend(slice[span].iter().map(|&index| index as u32)),
        }
    }
}

/// Borrowed feature values, single or double precision.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision, rounded to single precision when rows are read.
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

    /// Returns the position of the first value that is not finite in single precision. NaN is
    /// accepted if values may be missing.
    pub(super) fn first_unusable(&self, may_be_missing: bool) -> Option<usize> {
        match (self, may_be_missing) {
            (Self::F32(slice), false) => first_where(slice, |v| !v.is_finite()),
            (Self::F64(slice), false) => first_where(slice, |v| !(v as f32).is_finite()),
            (Self::F32(slice), true) => first_where(slice, f32::is_infinite),
            (Self::F64(slice), true) => first_where(slice, |v| (v as f32).is_infinite()),
        }
    }

    /// Returns the number of values in `span` that are not 0.
    pub(super) fn non_zeros(&self, span: Range<usize>) -> usize {
        match self {
            Self::F32(slice) => slice[span].iter().filter(|&&v| v != 0.0).count(),
            Self::F64(slice) => slice[span].iter().filter(|&&v| v != 0.0).count(),
        }
    }

    /// Returns entry `at` as it is.
    pub(crate) fn raw(&self, at: usize) -> f64 {
        match self {
            Self::F32(slice) => f64::from(slice[at]),
            Self::F64(slice) => slice[at],
        }
    }

    /// Appends the values of `span`.
    pub(super) fn read(&self, span: Range<usize>, into: &mut Vec<f32>) {
        match self {
            Self::F32(slice) => into.extend_from_slice(&slice[span]),
            Self::F64(slice) => into.extend(slice[span].iter().map(|&value| value as f32)),
        }
    }
}

/// Checks the row starts of a CSR matrix, and that its indices increase within a row and are below
/// `bound`. `what` names the indices in messages.
pub(crate) fn check_structure(
    starts: Indices<'_>,
    indices: Indices<'_>,
    bound: usize,
    what: &str,
) -> Result<()> {
    let n_rows = starts.len().checked_sub(1).ok_or_else(|| {
        Error::data("indptr is empty; it must have one entry more than there are rows")
    })?;
    for row in 0..n_rows {
        let (start, end) = (starts.raw(row), starts.raw(row + 1));
        if end < start {
            let what = format!("row {row}: indptr decreases from {start} to {end}");
            return Err(Error::data(what));
        }
    }
    let (start, end, n) = (starts.raw(0), starts.raw(n_rows), indices.len());
    if (start, end) != (0, n as i64) {
        return Err(Error::data(format!(
            "indptr must go from 0 to {n}, the number of indices, got {start} to {end}"
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
    for row in 0..starts.len() - 1 {
        let list = &indices[starts.get(row)..starts.get(row + 1)];
        // There is no early exit, so that the test vectorizes. If a list increases, only its ends
        // can be out of bounds.
        let falls = list
            .windows(2)
            .fold(false, |any, pair| any | (pair[1].into() <= pair[0].into()));
        let is_inside = |&index: &I| (0..bound as i64).contains(&index.into());
        if !falls && list.first().is_none_or(is_inside) && list.last().is_none_or(is_inside) {
            continue;
        }
        let mut previous = -1;
        for &index in list {
            let index = index.into();
            if !(0..bound as i64).contains(&index) {
                return Err(Error::data(format!(
                    "row {row}: {what} {index} is outside 0..{bound}"
                )));
            }
            if index <= previous {
                return Err(Error::Unsorted {
                    row,
                    index,
                    previous,
                });
            }
            previous = index;
        }
    }
    Ok(())
}
