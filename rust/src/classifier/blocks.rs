//! The rows of one prediction, shared out in blocks.

use std::ops::Range;

use rayon::prelude::*;

use crate::control::Control;
use crate::data::{Preparation, Rows, Scaling};
use crate::error::Result;
use crate::threads::with_threads;

/// Values of a block of rows to be predicted, about, so that wide rows do not
/// fill the memory.
const MOST_VALUES: usize = 1 << 22;

/// Values of a prepared row, on average.
pub(crate) fn row_values(preparation: Option<&Preparation>, rows: &Rows<'_>) -> usize {
    if preparation.is_some_and(|preparation| preparation.scaling() == Scaling::Standard) {
        rows.n_cols() + 1
    } else {
        rows.n_values() / rows.n_rows().max(1) + 1
    }
}

/// How many rows of so many values to predict together, at most `most`.
pub(crate) fn block_rows(row_values: usize, most: usize) -> usize {
    (MOST_VALUES / row_values).clamp(16, most)
}

/// Calls `work` with every block of `step` of the `n_rows` rows and the part of the
/// output that is theirs; the blocks go to `n_threads` threads, each with a worker
/// of its own.
pub(crate) fn each_block<W, B: Send>(
    n_rows: usize,
    step: usize,
    parts: impl Iterator<Item = B>,
    n_threads: usize,
    new_worker: impl Fn() -> W + Sync + Send,
    work: impl Fn(&mut W, Range<usize>, B) -> Result<()> + Sync + Send,
) -> Result<()> {
    let one = |worker: &mut W, (number, part): (usize, B)| {
        let from = number * step;
        work(worker, from..n_rows.min(from + step), part)
    };
    let parts: Vec<(usize, B)> = parts.enumerate().collect();
    with_threads(n_threads, |parallel| {
        if parallel {
            parts.into_par_iter().try_for_each_init(new_worker, one)
        } else {
            let mut worker = new_worker();
            parts
                .into_iter()
                .try_for_each(|part| one(&mut worker, part))
        }
    })?
}

/// [`each_block`] of a prediction, which reports its progress.
pub(crate) fn in_blocks<W, B: Send>(
    n_rows: usize,
    step: usize,
    parts: impl Iterator<Item = B>,
    n_threads: usize,
    control: &Control,
    new_worker: impl Fn() -> W + Sync + Send,
    work: impl Fn(&mut W, Range<usize>, B) -> Result<()> + Sync + Send,
) -> Result<()> {
    control.set_total(n_rows as u64);
    each_block(
        n_rows,
        step,
        parts,
        n_threads,
        new_worker,
        |worker, which, part| {
            let n = which.len();
            work(worker, which, part)?;
            control.tick(n)
        },
    )
}
