//! Predictions: labels best first, or scores to be ranked. Borrowed.

use crate::data::{check_structure, Indices, Values};
use crate::error::{Error, Result};
use crate::model::TopK;

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
                "row {row} of y_pred: label {} stands there twice; a ranking names each \
                 label once (if these are scores, pass floats)",
                pair[0]
            )))
        })
    }

    /// Ranks `scores`, of which `label` gives the labels, increasing.
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
