//! The rows that the join is fitted on, and their candidates.

use super::join_fit::{Candidate, FitRow};
use super::label_problems::HeldOutMargins;
use super::margins::{MarginMemory, RowMargins};
use super::out_of_sample::OutOfSample;
use super::scorers::OneAgainstSome;
use crate::alloc::{filled, push};
use crate::classifier::keep_best;
use crate::error::Result;

/// Rows that the join is fitted on, at most.
const MOST_ROWS: usize = 4096;
/// At most one row in so many, since labels must keep most of their rows in that fit.
const LEAST_STEP: usize = 5;
/// Candidates of these by the trees, and by margins.
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
    /// Of `n_rows` rows.
    pub fn new(n_rows: usize) -> Self {
        Self {
            step: n_rows.div_ceil(MOST_ROWS).max(LEAST_STEP),
            n_rows,
        }
    }

    pub fn contains(self, row: u32) -> bool {
        (row as usize).is_multiple_of(self.step)
    }

    fn rows(self) -> Vec<u32> {
        (0..self.n_rows as u32).step_by(self.step).collect()
    }

    /// For each row the best labels, increasing, by the trees that do not know it.
    pub fn by_trees(
        self,
        source: &OutOfSample<'_>,
        is_parallel: bool,
    ) -> Result<Vec<ScoredLabels>> {
        source.map(&self.rows(), is_parallel, |_, scores| {
            let mut scored = ScoredLabels::new();
            scores.for_each(|label, score| scored.push((label, score)));
            keep_best(&mut scored, CANDIDATES);
            scored.shrink_to_fit();
            scored.sort_unstable_by_key(|&(label, _)| label);
            scored
        })
    }

    /// The candidates of each row, with scores of trees and scorers that do not know it: of its
    /// best labels `by_trees` and by its margins, of which those of `held_out` replace the others.
    pub fn read(
        self,
        model: &OneAgainstSome,
        source: &OutOfSample<'_>,
        by_trees: &[ScoredLabels],
        held_out: &[HeldOutMargins],
    ) -> Vec<FitRow> {
        let examples = source.examples;
        let rows = self.rows();
        let mut without = filled(ScoredLabels::new(), rows.len());
        for (label, margins) in (0u32..).zip(held_out) {
            for &(row, margin) in margins {
                without[row as usize / self.step].push((label, margin));
            }
        }
        let mut memory = MarginMemory::default();
        let mut margins = RowMargins::new(model, &mut memory);
        let mut fit_rows = Vec::new();
        for ((&row, by_trees), without) in rows.iter().zip(by_trees).zip(&without) {
            // A row that no tree left out says nothing of the trees' scores.
            if !by_trees.is_empty() {
                margins.read(examples.row(row));
                let own = examples.labels(row);
                let candidates = candidates(by_trees, &margins, without, own);
                push(&mut fit_rows, (candidates, examples.weight(row)));
            }
        }
        fit_rows
    }
}

/// The best labels of a row by the trees, increasing, and by its `margins`, of which those by
/// scorers `without` it, increasing, replace the others.
fn candidates(
    by_trees: &[(u32, f32)],
    margins: &RowMargins<'_>,
    without: &[(u32, f32)],
    own: &[u32],
) -> Vec<Candidate> {
    let mut by_margin: ScoredLabels = margins.found();
    keep_best(&mut by_margin, CANDIDATES);
    let listed = by_trees.iter().chain(&by_margin);
    let mut labels: Vec<u32> = listed.map(|&(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    let look_up = |list: &[(u32, f32)], label| {
        let at = list.binary_search_by_key(&label, |&(label, _)| label);
        at.ok().map(|at| list[at].1)
    };
    let candidate = |label| Candidate {
        tree_score: look_up(by_trees, label).unwrap_or(0.0),
        margin: look_up(without, label).unwrap_or_else(|| margins.margin(label)),
        is_own: own.binary_search(&label).is_ok(),
    };
    labels.into_iter().map(candidate).collect()
}
