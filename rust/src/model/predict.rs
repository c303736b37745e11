//! What predictions share: the frozen forms of members, rows shared out in blocks, the best labels of
//! each.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use rayon::prelude::*;

use super::interface::{Query, TopKArrays};
use crate::data::{Preparation, Rows, Scaling};
use crate::error::{Error, Result};
use crate::memory::try_alloc;
use crate::threads::with_threads;

/// The members' frozen forms. Freezing is O(model size), and any update invalidates it.
///
/// After `fit`, and from a file, the first prediction freezes. In a stream the first rows after an
/// update are predicted by the members as they are, with the same answers to the bit, until there
/// were as many as freezing is worth: so it at most doubles the time of predictions.
#[derive(Debug)]
pub(super) struct FrozenMembers<F> {
    forms: OnceLock<Vec<F>>,
    /// Rows predicted so far by members that were not frozen.
    n_rows: AtomicUsize,
}

/// Those of members that were just updated.
impl<F> Default for FrozenMembers<F> {
    fn default() -> Self {
        Self {
            forms: OnceLock::new(),
            n_rows: AtomicUsize::new(0),
        }
    }
}

/// A copy is made to learn on, which invalidates the frozen forms.
impl<F> Clone for FrozenMembers<F> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<F> FrozenMembers<F> {
    /// To be made by the first prediction.
    pub fn due_at_once() -> Self {
        Self {
            n_rows: AtomicUsize::new(usize::MAX),
            ..Self::default()
        }
    }

    /// Whether a prediction of `n_rows` is to make them, which is worth `freeze_rows`.
    pub fn are_due(&self, n_rows: usize, freeze_rows: usize) -> bool {
        let before = self.n_rows.load(Ordering::Relaxed);
        self.forms.get().is_none() && before.saturating_add(n_rows) >= freeze_rows
    }

    /// The forms for a prediction of `n_rows`, made by `freeze` if they are due; none where the
    /// members will do as they are.
    pub fn get(
        &self,
        n_rows: usize,
        freeze_rows: usize,
        freeze: impl FnOnce() -> Result<Vec<F>>,
    ) -> Result<Option<&[F]>> {
        if self.are_due(n_rows, freeze_rows) {
            let forms = freeze()?;
            // Another thread may have been faster, with the same outcome.
            return Ok(Some(self.forms.get_or_init(|| forms)));
        }
        let forms = self.forms.get();
        if forms.is_none() {
            // Together less than `freeze_rows`, so that nothing overflows.
            self.n_rows.fetch_add(n_rows, Ordering::Relaxed);
        }
        Ok(forms.map(Vec::as_slice))
    }
}

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

/// A query whose rows have been checked, and what each thread predicts them with.
pub(crate) struct Blocks<'a, N> {
    pub query: &'a Query<'a>,
    /// Rows predicted together.
    pub step: usize,
    /// Makes what a thread predicts with.
    pub new_predictor: N,
}

impl<P, N: Fn() -> P + Sync + Send> Blocks<'_, N> {
    /// Calls `work` with every block of rows and its part of the output. Threads share out the
    /// blocks, each with a predictor of its own.
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
        // To start threads takes longer than few rows do.
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
        let mut lists = try_alloc(self.query.rows.n_rows(), 1, Vec::new())?;
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

/// Collects the k labels of highest score, best first, equal scores in the
/// order of the labels. Meant for small k: an insertion costs O(k).
#[derive(Debug, Clone)]
pub struct TopK<S = f32> {
    k: usize,
    best: Vec<(u32, S)>,
}

impl<S: Copy + PartialOrd + From<f32>> TopK<S> {
    /// For the `k` best.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            best: Vec::with_capacity(k + 1),
        }
    }

    /// Forgets all labels.
    pub fn clear(&mut self) {
        self.best.clear();
    }

    /// The score that a label of a higher number must exceed to be taken in.
    #[inline]
    pub fn bar(&self) -> S {
        match self.best.last() {
            Some(&(_, score)) if self.best.len() == self.k => score,
            _ => f32::NEG_INFINITY.into(),
        }
    }

    /// Takes a label in if it is among the best so far.
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

    /// The labels, best first.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        self.best.iter().map(|&(label, _)| label)
    }
}

impl TopK {
    /// Label where there are fewer than k.
    pub const NO_LABEL: i32 = -1;

    /// As [`Self::push`] for a label that may have come before: its highest score counts.
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

    /// Writes labels and scores, best first, and fills up with
    /// [`Self::NO_LABEL`] and minus infinity.
    pub fn write(&self, labels: &mut [i32], scores: &mut [f32]) {
        labels.fill(Self::NO_LABEL);
        scores.fill(f32::NEG_INFINITY);
        for (&(label, score), (l, s)) in self.best.iter().zip(labels.iter_mut().zip(scores)) {
            *l = label as i32;
            *s = score;
        }
    }
}

/// Leaves the `n` labels of highest score, of equal ones the smaller, in any order.
pub fn keep_best(scored: &mut Vec<(u32, f32)>, n: usize) {
    if n < scored.len() {
        scored.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(n);
    }
}

#[inline]
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
        fn of_a_label_that_comes_again_the_highest_score_counts(
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
