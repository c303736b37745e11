//! What another model says of rows that it has not learned: labels that they are mistaken to have,
//! and candidates of the rows that the join is fitted on.

use super::join::{Candidate, FitRow};
use super::margins::{MarginMemory, RowMargins};
use super::negatives::hard_negatives;
use super::rank::LabelScores;
use super::weights::OneAgainstSome;
use crate::data::{Examples, Ragged};
use crate::model::keep_best;

/// What a model that has not learned the rows says of them.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The best labels of each row that it does not have.
    pub hard: Ragged<u32>,
    /// The best labels of each row of the fit, increasing, and their scores.
    pub scored: Ragged<(u32, f32)>,
}

/// The best labels of a row that it does not have, and the best of all where it is one of the fit.
pub type RowCandidates = (Vec<u32>, Option<ScoredLabels>);

/// The candidates of `row` by `scores`, of which there are none if each part of the model has
/// learned it.
pub fn row_candidates(
    examples: &Examples,
    row: u32,
    scores: &LabelScores,
    n_negatives: usize,
) -> RowCandidates {
    let hard = hard_negatives(examples.labels(row), scores, n_negatives);
    let is_scored = FitSample::new(examples.len()).contains(row);
    (hard, is_scored.then(|| best_labels(scores)))
}

impl FromIterator<RowCandidates> for Candidates {
    /// Of all rows, in their order.
    fn from_iter<I: IntoIterator<Item = RowCandidates>>(rows: I) -> Self {
        let mut all = Self::default();
        for (hard, scored) in rows {
            all.hard.push(hard);
            scored
                .into_iter()
                .for_each(|labels| all.scored.push(labels));
        }
        all
    }
}

/// Rows that the join is fitted on, at most.
const MAX_FIT_ROWS: usize = 4096;
/// At most one row in so many, since labels must keep most of their rows in that fit.
const MIN_FIT_STEP: usize = 5;
/// Candidates of a row by the other model, and as many by margins.
const CANDIDATES: usize = 100;

/// Labels and their scores or margins.
pub type ScoredLabels = Vec<(u32, f32)>;

/// Every row whose number is a multiple of a step.
#[derive(Debug, Clone, Copy)]
pub struct FitSample {
    step: usize,
    n_rows: usize,
}

impl FitSample {
    /// The sample of `n_rows` rows.
    pub fn new(n_rows: usize) -> Self {
        Self {
            step: n_rows.div_ceil(MAX_FIT_ROWS).max(MIN_FIT_STEP),
            n_rows,
        }
    }

    pub fn contains(self, row: u32) -> bool {
        (row as usize).is_multiple_of(self.step)
    }

    /// Numbers of the rows in it.
    pub fn rows(self) -> Vec<u32> {
        (0..self.n_rows as u32).step_by(self.step).collect()
    }

    /// The candidates of each row, with scores by models that have not learned it: its best labels
    /// as `scored`, and by its margins, of which those of `held_out` replace the others.
    pub fn read<'h>(
        self,
        model: &OneAgainstSome,
        examples: &Examples,
        scored: &Ragged<(u32, f32)>,
        held_out: impl Iterator<Item = &'h [(u32, f32)]>,
    ) -> Vec<FitRow> {
        let rows = self.rows();
        let mut without = vec![ScoredLabels::new(); rows.len()];
        for (label, margins) in (0..).zip(held_out) {
            for &(row, margin) in margins {
                without[row as usize / self.step].push((label, margin));
            }
        }
        let mut memory = MarginMemory::default();
        let mut margins = RowMargins::new(model, &mut memory);
        let mut fit_rows = Vec::new();
        for (i, (&row, without)) in rows.iter().zip(&without).enumerate() {
            // A row that every model has learned says nothing of their scores.
            if !scored.get(i).is_empty() {
                margins.read(examples.row(row));
                let own = examples.labels(row);
                let fit_row = FitRow {
                    candidates: candidates(scored.get(i), &margins, without, own),
                    weight: examples.weight(row),
                };
                fit_rows.push(fit_row);
            }
        }
        fit_rows
    }
}

/// The best labels of a row as `scored`, increasing, and by its `margins`, of which those by scorers
/// `without` it, increasing, replace the others.
fn candidates(
    scored: &[(u32, f32)],
    margins: &RowMargins<'_>,
    without: &[(u32, f32)],
    own: &[u32],
) -> Vec<Candidate> {
    let mut by_margin = margins.found();
    keep_best(&mut by_margin, CANDIDATES);
    let listed = scored.iter().chain(&by_margin);
    let mut labels: Vec<u32> = listed.map(|&(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    let look_up = |list: &[(u32, f32)], label| {
        let at = list.binary_search_by_key(&label, |&(label, _)| label);
        at.ok().map(|at| list[at].1)
    };
    let candidate = |label| Candidate {
        score_before: look_up(scored, label).unwrap_or(0.0),
        margin: look_up(without, label).unwrap_or_else(|| margins.margin(label)),
        is_own: own.binary_search(&label).is_ok(),
    };
    labels.into_iter().map(candidate).collect()
}

/// The best labels of a row, increasing, and their `scores`, for the fit.
fn best_labels(scores: &LabelScores) -> ScoredLabels {
    let mut scored = ScoredLabels::new();
    scores.for_each(|label, score| scored.push((label, score)));
    keep_best(&mut scored, CANDIDATES);
    scored.shrink_to_fit();
    scored.sort_unstable_by_key(|&(label, _)| label);
    scored
}
