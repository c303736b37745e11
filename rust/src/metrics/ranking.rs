//! Borrowed predictions: ranked labels, or scores to rank them by.

use crate::data::{check_structure, Indices, Values};
use crate::error::{Error, Result};
use crate::model::TopK;

/// The entry of a ranking that is no label.
const NO_LABEL: i64 = -1;

/// A ranking of labels for each row.
#[derive(Debug, Clone, Copy)]
pub struct Ranking<'a> {
    form: Form<'a>,
    pub(super) n_rows: usize,
    /// Greatest length of a ranking.
    pub(super) width: usize,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    Labels(Indices<'a>),
    Dense(Values<'a>),
    /// Row starts, columns and scores.
    Sparse(Indices<'a>, Indices<'a>, Values<'a>),
}

/// The ranking of one row, with buffers that are reused for the next row.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    /// Labels, best first; negative entries are no labels.
    pub labels: Vec<i64>,
    sorted: Vec<i64>,
}

impl<'a> Ranking<'a> {
    /// A ranking of labels, best first, `width` in each of `n_rows` rows; -1 is no label. With
    /// `bound`, all others must be in `0..bound`; without it, any negative number is no label.
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
                     the columns of y_true (-1 is no label)",
                    at / width,
                    at % width
                )));
            }
        }
        Ok(ranking)
    }

    /// A ranking by the scores of all labels, row by row. Minus infinity is not predicted.
    pub fn dense(scores: Values<'a>, n_rows: usize, width: usize) -> Result<Self> {
        Self::new(Form::Dense(scores), n_rows, width)
    }

    /// A ranking by the scores of some labels in CSR form; the others are not predicted.
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

    /// Number of labels or scores, by which the cost of ranking is estimated.
    pub fn n_values(&self) -> usize {
        match self.form {
            Form::Labels(labels) => labels.len(),
            Form::Dense(scores) | Form::Sparse(.., scores) => scores.len(),
        }
    }

    /// Writes the `k` best labels of `row` into `into`, or fewer if fewer are predicted. Labels of
    /// equal score are in ascending order.
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
                into.rank(span.map(|at| scores.raw(at)), row, k, |at| at as i64)
            }
            Form::Sparse(starts, columns, scores) => {
                let span = starts.get(row)..starts.get(row + 1);
                let label = |at| columns.get(starts.get(row) + at) as i64;
                into.rank(span.map(|at| scores.raw(at)), row, k, label)
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
                "row {row} of y_pred: label {} occurs twice; a ranking has each label once (if \
                 these are scores, pass floats)",
                pair[0]
            )))
        })
    }

    /// Ranks labels by `scores`. `label` returns the label of a place; labels are ascending.
    fn rank(
        &mut self,
        scores: impl Iterator<Item = f64>,
        row: usize,
        k: usize,
        label: impl Fn(usize) -> i64,
    ) -> Result<()> {
        let mut best = TopK::new(k);
        for (at, score) in scores.enumerate() {
            if score.is_nan() {
                return Err(Error::data(format!(
                    "row {row}, column {} of y_pred: the score is NaN; scores must be numbers",
                    label(at)
                )));
            }
            if score > best.bar() {
                best.push(label(at) as u32, score);
            }
        }
        self.labels.extend(best.labels().map(i64::from));
        Ok(())
    }
}
