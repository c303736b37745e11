//! Shared parts of predictions: the frozen forms of members, blocks of rows, the best labels.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use rayon::prelude::*;

use super::interface::{Query, TopKArrays};
use crate::data::{Preparation, Rows, Scaling};
use crate::error::{Error, Result};
use crate::memory::try_alloc;
use crate::threads::with_threads;

/// Frozen forms of the members. Freezing is O(model size), and any update invalidates it.
///
/// After `fit` and after loading, the first prediction freezes. After an update in a stream, rows
/// are predicted by the members themselves, with the same results to the bit, until their number
/// is worth freezing. So freezing at most doubles the time of predictions.
#[derive(Debug)]
pub(crate) struct FrozenMembers<F> {
    forms: OnceLock<Vec<F>>,
    /// Number of rows that were predicted without the frozen forms.
    n_rows: AtomicUsize,
}

/// The state after an update.
impl<F> Default for FrozenMembers<F> {
    fn default() -> Self {
        Self {
            forms: OnceLock::new(),
            n_rows: AtomicUsize::new(0),
        }
    }
}

/// A clone has no frozen forms, because it is made for updates.
impl<F> Clone for FrozenMembers<F> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<F> FrozenMembers<F> {
    /// Creates the state in which the first prediction freezes.
    pub fn due_at_once() -> Self {
        Self {
            n_rows: AtomicUsize::new(usize::MAX),
            ..Self::default()
        }
    }

    /// Returns whether a prediction of `n_rows` should freeze, which takes as long as `freeze_rows`.
    pub fn are_due(&self, n_rows: usize, freeze_rows: usize) -> bool {
        let before = self.n_rows.load(Ordering::Relaxed);
        self.forms.get().is_none() && before.saturating_add(n_rows) >= freeze_rows
    }

    /// Returns the forms for a prediction of `n_rows`, created by `freeze` if they are due; None if
    /// the members should be used.
    pub fn get(
        &self,
        n_rows: usize,
        freeze_rows: usize,
        freeze: impl FnOnce() -> Result<Vec<F>>,
    ) -> Result<Option<&[F]>> {
        if self.are_due(n_rows, freeze_rows) {
            let forms = freeze()?;
            // Another thread may have been faster, with the same result.
            return Ok(Some(self.forms.get_or_init(|| forms)));
        }
        let forms = self.forms.get();
        if forms.is_none() {
            // The sum is below `freeze_rows`, so it does not overflow.
            self.n_rows.fetch_add(n_rows, Ordering::Relaxed);
        }
        Ok(forms.map(Vec::as_slice))
    }
}

/// Approximate limit of the values in a block, so that wide rows do not need too much memory.
const MAX_BLOCK_VALUES: usize = 1 << 22;

/// Returns the average number of values of a prepared row.
pub(crate) fn row_values(preparation: &Preparation, rows: &Rows<'_>) -> usize {
    if preparation.scaling() == Scaling::Standard {
        rows.n_cols() + 1
    } else {
        rows.n_values() / rows.n_rows().max(1) + 1
    }
}

/// Returns the number of rows, of `row_values` values each, to predict together; at most `max_rows`.
pub(crate) fn block_rows(row_values: usize, max_rows: usize) -> usize {
    (MAX_BLOCK_VALUES / row_values).clamp(16, max_rows)
}

/// A query whose rows have been checked, divided into blocks.
pub(crate) struct Blocks<'a, N> {
    pub query: &'a Query<'a>,
    /// Rows per block.
    pub step: usize,
    /// Creates the predictor of a thread.
    pub new_predictor: N,
}

impl<P, N: Fn() -> P + Sync + Send> Blocks<'_, N> {
    /// Calls `work` with each block of rows and its part of the output. Blocks are distributed to
    /// threads, which have their own predictors.
    pub fn each<B: Send>(
        &self,
        parts: impl Iterator<Item = B>,
        work: impl Fn(&mut P, Range<usize>, B) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (n_rows, control) = (self.query.rows.n_rows(), self.query.control);
        control.set_total(n_rows as u64);
        let one = |predictor: &mut P, (number, part): (usize, B)| {
            let from = number * self.step;
            let which = from..n_rows.min(from + self.step);
            let n = which.len();
            work(predictor, which, part)?;
            control.tick(n)
        };
        let parts: Vec<(usize, B)> = parts.enumerate().collect();
        // Starting threads takes longer than predicting a single block.
        with_threads(self.query.n_threads.min(parts.len()), |parallel| {
            if parallel {
                let parts = parts.into_par_iter();
                return parts.try_for_each_init(&self.new_predictor, one);
            }
            let mut predictor = (self.new_predictor)();
            parts
                .into_iter()
                .try_for_each(|part| one(&mut predictor, part))
        })?
    }

    /// Returns `width` values per row, which are `empty` until `work` fills those of a block.
    pub fn fill<T: Clone + Send>(
        &self,
        width: usize,
        empty: T,
        work: impl Fn(&mut P, Range<usize>, &mut [T]) -> Result<()> + Sync + Send,
    ) -> Result<Vec<T>> {
        let mut values = try_alloc(self.query.rows.n_rows(), width, empty)?;
        self.each(values.chunks_mut((self.step * width).max(1)), work)?;
        Ok(values)
    }

    /// Returns the `k` best labels of each row and their scores, which are empty
    /// ([`TopK::NO_LABEL`] and minus infinity) until `work` fills those of a block.
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

/// The k labels of the highest scores, best first; equal scores are in the order of labels. An
/// insertion costs O(k), so k should be small.
#[derive(Debug, Clone)]
pub struct TopK<S = f32> {
    k: usize,
    best: Vec<(u32, S)>,
}

impl<S: Copy + PartialOrd + From<f32>> TopK<S> {
    /// Creates an empty list for `k` labels.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            best: Vec::with_capacity(k + 1),
        }
    }

    /// Removes all labels.
    pub fn clear(&mut self) {
        self.best.clear();
    }

    /// Returns the score that a label of a higher number must exceed to be inserted.
    #[inline]
    pub fn bar(&self) -> S {
        match self.best.last() {
            Some(&(_, score)) if self.best.len() == self.k => score,
            _ => f32::NEG_INFINITY.into(),
        }
    }

    /// Inserts a label if it is among the best so far.
    #[inline]
    pub fn push(&mut self, label: u32, score: S) {
        if self.best.len() == self.k {
            match self.best.last() {
                Some(&last) if ahead((label, score), last) => {}
                _ => return,
            }
        }
        let at = self
            .best
            .partition_point(|&other| ahead(other, (label, score)));
        self.best.insert(at, (label, score));
        self.best.truncate(self.k);
    }

    /// Inserts the labels 0, 1, ... of these `scores` that are among the best so far.
    pub fn push_all(&mut self, scores: impl Iterator<Item = S>) {
        for (label, score) in (0..).zip(scores) {
            if score > self.bar() {
                self.push(label, score);
            }
        }
    }

    /// Returns the labels, best first.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries().map(|(label, _)| label)
    }

    /// Returns the labels and their scores, best first.
    pub fn entries(&self) -> impl Iterator<Item = (u32, S)> + '_ {
        self.best.iter().copied()
    }
}

impl TopK {
    /// Label of empty places.
    pub const NO_LABEL: i32 = -1;

    /// Inserts a label that may already be in the list, with its highest score.
    #[inline]
    pub fn push_again(&mut self, label: u32, score: f32) {
        if let Some(at) = self.best.iter().position(|&(known, _)| known == label) {
            if self.best[at].1 >= score {
                return;
            }
            self.best.remove(at);
        }
        self.push(label, score);
    }

    /// Writes labels and scores, best first, followed by [`Self::NO_LABEL`] and minus infinity.
    pub fn write(&self, labels: &mut [i32], scores: &mut [f32]) {
        labels.fill(Self::NO_LABEL);
        scores.fill(f32::NEG_INFINITY);
        for (&(label, score), (l, s)) in self.best.iter().zip(labels.iter_mut().zip(scores)) {
            *l = label as i32;
            *s = score;
        }
    }
}

/// Keeps the `n` labels of the highest scores, in any order; of equal scores, the smaller labels.
pub fn keep_best(scored: &mut Vec<(u32, f32)>, n: usize) {
    if n < scored.len() {
        scored.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(n);
    }
}

/// Returns the first entry of the highest score.
pub fn first_best<L, S: PartialOrd>(scored: impl Iterator<Item = (L, S)>) -> Option<(L, S)> {
    scored.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Returns whether `a` ranks before `b`.
fn ahead<S: Copy + PartialOrd>(a: (u32, S), b: (u32, S)) -> bool {
    a.1 > b.1 || (a.1 == b.1 && a.0 < b.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_sorting(scores in prop::collection::vec(0i8..6, 0..40), k in 0usize..8) {
            let mut top = TopK::new(k);
            for (label, &score) in scores.iter().enumerate() {
                top.push(label as u32, f32::from(score));
            }
            let mut all: Vec<(i8, i32)> = scores.iter().enumerate().map(|(l, &s)| (-s, l as i32)).collect();
            all.sort_unstable();
            let (mut labels, mut values) = (vec![0; k], vec![0.0; k]);
            top.write(&mut labels, &mut values);
            for i in 0..k {
                let expected = all.get(i).map_or((-1, f32::NEG_INFINITY), |&(s, l)| (l, f32::from(-s)));
                prop_assert_eq!((labels[i], values[i]), expected);
            }
        }

        #[test]
        fn repeated_labels_keep_the_highest_score(
            pushed in prop::collection::vec((0u32..9, 0i8..6), 0..40),
            k in 0usize..12,
        ) {
            let (mut top, mut highest) = (TopK::new(k), std::collections::BTreeMap::new());
            for &(label, score) in &pushed {
                top.push_again(label, f32::from(score));
                let known = highest.entry(label).or_insert(score);
                *known = score.max(*known);
            }
            let mut once = TopK::new(k);
            for (&label, &score) in &highest {
                once.push(label, f32::from(score));
            }
            prop_assert_eq!(top.best, once.best);
        }
    }
}
