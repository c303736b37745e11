//! Solved problems, by label.

use super::rows::ScorerRows;
use super::svm::Scorer;
use crate::error::{Error, Result};
use crate::{persist, record};

/// A label's solution.
#[derive(Debug, Clone, Default)]
pub struct SolvedLabel {
    /// False of labels that were left out, whose other fields are empty.
    pub is_solved: bool,
    pub scorer: Scorer,
    /// The dual variables, where another round begins with them.
    pub duals: Vec<f32>,
    /// Rows that the join is fitted on, and their margins by a scorer trained without them, where they
    /// are asked for.
    pub held_out: Vec<(u32, f32)>,
}

record!(SolvedLabel {
    is_solved,
    scorer,
    duals,
    held_out
});

/// The solutions of labels.
#[derive(Debug, Clone, Default)]
pub struct Solved {
    labels: Vec<SolvedLabel>,
}

persist!(Solved {
    Columns labels;
});

impl From<Vec<SolvedLabel>> for Solved {
    fn from(labels: Vec<SolvedLabel>) -> Self {
        Self { labels }
    }
}

impl Solved {
    /// The solutions of all labels, from those of blocks in their order: label l is in block l modulo
    /// their number.
    pub fn of_blocks(blocks: Vec<Self>, n_labels: usize) -> Result<Self> {
        let n_found: usize = blocks.iter().map(|block| block.labels.len()).sum();
        let blocks = blocks.into_iter().map(|block| block.labels.into_iter());
        let mut blocks: Vec<_> = blocks.collect();
        let n_blocks = blocks.len();
        let labels = (0..n_labels).map_while(|label| blocks[label % n_blocks].next());
        let labels: Vec<SolvedLabel> = labels.collect();
        if labels.len() == n_labels && n_found == n_labels {
            return Ok(Self { labels });
        }
        Err(Error::data("blocks of labels are of another length"))
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether a label's problem was solved.
    pub fn has(&self, label: usize) -> bool {
        self.labels.get(label).is_some_and(|label| label.is_solved)
    }

    /// Adds the solutions of labels that these leave out.
    pub fn add(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (own, other) in self.labels.iter_mut().zip(other.labels) {
            if !own.is_solved {
                *own = other;
            }
        }
    }

    /// The dual variables by label, which are gone then.
    pub fn take_duals(&mut self) -> Vec<Vec<f32>> {
        let labels = self.labels.iter_mut();
        labels
            .map(|label| std::mem::take(&mut label.duals))
            .collect()
    }

    /// The scorer of each label; none of those that were left out.
    pub fn scorers(&self) -> impl Iterator<Item = Option<&Scorer>> + Clone {
        let labels = self.labels.iter();
        labels.map(|label| label.is_solved.then_some(&label.scorer))
    }

    /// The margins of rows held out, by label.
    pub fn held_out(&self) -> impl Iterator<Item = &[(u32, f32)]> {
        self.labels.iter().map(|label| &label.held_out[..])
    }

    /// Makes scorers of `rows` scorers of rows of length 1.
    pub fn unscale(&mut self, rows: &ScorerRows<'_>) {
        for label in &mut self.labels {
            rows.unscale(&mut label.scorer.weights);
        }
    }
}
