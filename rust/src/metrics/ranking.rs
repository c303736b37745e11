//! Predictions: labels best first, or scores to be ranked. Borrowed.

use std::ops::Range;

use crate::data::{check_structure, Indices, Values};
use crate::error::{Error, Result};

/// Stands in a ranking where there is no label.
const NO_LABEL: i64 = -1;

/// A ranking of labels for each row.
#[derive(Debug, Clone, Copy)]
pub struct Ranking<'a> {
    form: Form<'a>,
    pub(super) n_rows: usize,
    /// How far a ranking can go.
    pub(super) width: usize,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    Labels(Indices<'a>),
    Dense(Values<'a>),
    /// Row starts, columns and scores.
    Sparse(Indices<'a>, Indices<'a>, Values<'a>),
}

/// The ranking of one row, and the memory it is made in.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    /// Labels, best first; negative ones are none.
    pub labels: Vec<i64>,
    best: Vec<(f64, i64)>,
    sorted: Vec<i64>,
}

impl<'a> Ranking<'a> {
    /// Labels best first, `width` of them in each of `n_rows` rows, -1 for none. With
    /// `bound` all others must be from 0 to below it; without, all negative numbers
    /// stand for none.
    pub fn labels(
        labels: Indices<'a>,
        n_rows: usize,
        width: usize,
        bound: Option<usize>,
    ) -> Result<Self> {
        let ranking = Self::new(Form::Labels(labels), n_rows, width)?;
        if let Some(bound) = bound {
            let mut all = (0..labels.len()).map(|at| labels.raw(at));
            let allowed = NO_LABEL..bound as i64;
            if let Some(at) = all.position(|label| !allowed.contains(&label)) {
                let label = labels.raw(at);
                return Err(Error::data(format!(
                    "row {}, column {} of y_pred: label {label} is outside 0..{bound}, \
                     the columns of y_true (-1 stands for none)",
                    at / width,
                    at % width
                )));
            }
        }
        Ok(ranking)
    }

    /// The scores of all labels, row by row. Minus infinity: not predicted.
    pub fn dense(scores: Values<'a>, n_rows: usize, width: usize) -> Result<Self> {
        Self::new(Form::Dense(scores), n_rows, width)
    }

    /// The scores of some labels in CSR form; the others are not predicted.
    pub fn sparse(
        starts: Indices<'a>,
        columns: Indices<'a>,
        scores: Values<'a>,
        width: usize,
    ) -> Result<Self> {
        if columns.len() != scores.len() {
            let (n, m) = (columns.len(), scores.len());
            return Err(Error::data(format!(
                "y_pred: indices and data differ in length: {n} and {m}"
            )));
        }
        check_structure(starts, columns, width, "column index")?;
        Ok(Self {
            form: Form::Sparse(starts, columns, scores),
            n_rows: starts.len() - 1,
            width,
        })
    }

    fn new(form: Form<'a>, n_rows: usize, width: usize) -> Result<Self> {
        let ranking = Self {
            form,
            n_rows,
            width,
        };
        let len = ranking.n_values();
        if n_rows.checked_mul(width) != Some(len) {
            return Err(Error::data(format!(
                "y_pred of {n_rows} x {width} does not have {len} values"
            )));
        }
        Ok(ranking)
    }

    /// Number of values held, a measure of the work that ranking is.
    pub fn n_values(&self) -> usize {
        match self.form {
            Form::Labels(labels) => labels.len(),
            Form::Dense(scores) | Form::Sparse(.., scores) => scores.len(),
        }
    }

    /// Puts the `k` best labels of `row` into `into`, equal scores in the order of the
    /// labels. There are fewer where fewer are predicted.
    pub(super) fn read(&self, row: usize, k: usize, into: &mut Ranked) -> Result<()> {
        into.labels.clear();
        match self.form {
            Form::Labels(labels) => {
                let from = row * self.width;
                let span = from..from + k.min(self.width);
                into.labels.extend(span.map(|at| labels.raw(at)));
                into.refuse_repetition(row)
            }
            Form::Dense(scores) => {
                let span = row * self.width..(row + 1) * self.width;
                into.rank(scores, span, row, k, |at| at as i64)
            }
            Form::Sparse(starts, columns, scores) => {
                let span = starts.get(row)..starts.get(row + 1);
                let from = span.start;
                into.rank(scores, span, row, k, |at| columns.get(from + at) as i64)
            }
        }
    }
}

impl Ranked {
    fn refuse_repetition(&mut self, row: usize) -> Result<()> {
        self.sorted.clone_from(&self.labels);
        self.sorted.sort_unstable();
        let mut pairs = self.sorted.windows(2);
        let repeated = pairs.find(|pair| pair[0] == pair[1] && pair[0] >= 0);
        repeated.map_or(Ok(()), |pair| {
            Err(Error::data(format!(
                "row {row} of y_pred: label {} stands there twice; a ranking names each \
                 label once (if these are scores, pass floats)",
                pair[0]
            )))
        })
    }

    fn rank(
        &mut self,
        scores: Values<'_>,
        span: Range<usize>,
        row: usize,
        k: usize,
        label: impl Fn(usize) -> i64,
    ) -> Result<()> {
        self.best.clear();
        let nan = match scores {
            Values::F32(slice) => select(&slice[span], k, &label, &mut self.best),
            Values::F64(slice) => select(&slice[span], k, &label, &mut self.best),
        };
        if let Some(at) = nan {
            return Err(Error::data(format!(
                "row {row}, column {} of y_pred: the score is NaN; scores must be numbers",
                label(at)
            )));
        }
        self.labels
            .extend(self.best.iter().map(|&(_, label)| label));
        Ok(())
    }
}

/// Collects the `k` best, best first, or says where a NaN stands.
fn select<T: Copy + Into<f64>>(
    scores: &[T],
    k: usize,
    label: impl Fn(usize) -> i64,
    best: &mut Vec<(f64, i64)>,
) -> Option<usize> {
    const CHUNK: usize = 64;
    let mut bar = f64::NEG_INFINITY;
    for (c, chunk) in scores.chunks(CHUNK).enumerate() {
        // Few chunks hold anything better, and without an exit the test vectorises.
        // The comparison is turned round for NaN, which must not pass unseen.
        if chunk.iter().fold(true, |all, &s| all & (s.into() <= bar)) {
            continue;
        }
        for (i, &score) in chunk.iter().enumerate() {
            let (at, score) = (c * CHUNK + i, score.into());
            if score.is_nan() {
                return Some(at);
            }
            // Labels come in increasing order: of equal scores the first stays ahead.
            if score > bar {
                let place = best.partition_point(|&(other, _)| other >= score);
                best.insert(place, (score, label(at)));
                best.truncate(k);
                if let Some(&(last, _)) = best.last().filter(|_| best.len() == k) {
                    bar = last;
                }
            }
        }
    }
    None
}
