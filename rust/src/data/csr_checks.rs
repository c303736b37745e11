//! Checks of a CSR structure: row starts that rise, indices that increase within a row.

use super::slices::Indices;
use crate::error::{Error, Result};

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
