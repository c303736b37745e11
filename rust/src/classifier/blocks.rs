//! The rows of one prediction, shared out in blocks.

use std::ops::Range;

use rayon::prelude::*;

use super::{Query, TopK, TopKArrays};
use crate::alloc::{filled, try_alloc};
use crate::data::{Preparation, Rows, Scaling};
use crate::error::{Error, Result};
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
    // To start threads takes longer than few rows do.
    with_threads(n_threads.min(parts.len()), |parallel| {
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

/// A query whose rows have been checked, and what each thread predicts them with.
pub(crate) struct Blocks<'a, N> {
    pub query: &'a Query<'a>,
    /// Rows predicted together.
    pub step: usize,
    /// Makes what a thread predicts with.
    pub new_predictor: N,
}

impl<P, N: Fn() -> P + Sync + Send> Blocks<'_, N> {
    /// Calls `work` with every block of rows and its part of the output.
    pub fn each<B: Send>(
        &self,
        parts: impl Iterator<Item = B>,
        work: impl Fn(&mut P, Range<usize>, B) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (n_rows, control) = (self.query.rows.n_rows(), self.query.control);
        control.set_total(n_rows as u64);
        let work = |predictor: &mut P, which: Range<usize>, part| {
            let n = which.len();
            work(predictor, which, part)?;
            control.tick(n)
        };
        let (step, n_threads) = (self.step, self.query.n_threads);
        each_block(n_rows, step, parts, n_threads, &self.new_predictor, work)
    }

    /// `width` values per row, `empty` until `work` fills in those of a block.
    pub fn fill<T: Copy + Send>(
        &self,
        width: usize,
        empty: T,
        work: impl Fn(&mut P, Range<usize>, &mut [T]) -> Result<()> + Sync + Send,
    ) -> Result<Vec<T>> {
        let mut values = try_alloc(self.query.rows.n_rows(), width, empty)?;
        self.each(values.chunks_mut((self.step * width).max(1)), work)?;
        Ok(values)
    }

    /// A list per row, to which `work` adds those of a block.
    pub fn lists<T: Clone + Send>(
        &self,
        work: impl Fn(&mut P, Range<usize>, &mut [Vec<T>]) -> Result<()> + Sync + Send,
    ) -> Result<Vec<Vec<T>>> {
        let mut lists = filled(Vec::new(), self.query.rows.n_rows());
        self.each(lists.chunks_mut(self.step), work)?;
        Ok(lists)
    }

    /// The `k` best labels of each row and their scores, empty
    /// ([`TopK::NO_LABEL`] and minus infinity) until `work` fills in those of a block.
    pub fn top_k(
        &self,
        k: usize,
        work: impl Fn(&mut P, Range<usize>, &mut [i32], &mut [f32]) -> Result<()> + Sync + Send,
    ) -> Result<TopKArrays> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let mut labels = try_alloc(self.query.rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(self.query.rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.step * k;
        let parts = labels.chunks_mut(step).zip(scores.chunks_mut(step));
        self.each(parts, |predictor, which, (labels, scores)| {
            work(predictor, which, labels, scores)
        })?;
        Ok((labels, scores))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn threads_write_to_one_cache_line_only_where_blocks_meet() {
        const LINE: usize = 64;
        let (n_rows, step, width) = (1000, 48, 3);
        let mut values = vec![0usize; n_rows * width];
        let write = |(): &mut (), rows: Range<usize>, part: &mut [usize]| {
            assert_eq!(part.len(), rows.len() * width);
            part.fill(rows.start / step + 1);
            Ok(())
        };
        let parts = values.chunks_mut(step * width);
        each_block(n_rows, step, parts, 16, || (), write).unwrap();
        let mut writers: HashMap<usize, HashSet<usize>> = HashMap::new();
        for value in &values {
            let line = std::ptr::from_ref(value).addr() / LINE;
            writers.entry(line).or_default().insert(*value);
        }
        let n_shared = writers.values().filter(|blocks| blocks.len() > 1).count();
        assert!(n_shared < n_rows.div_ceil(step));
        assert!(writers
            .values()
            .all(|blocks| blocks.len() <= 2 && !blocks.contains(&0)));
    }
}
