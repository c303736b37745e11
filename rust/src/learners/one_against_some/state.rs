//! What the steps of a training hand on: solved problems, mined negatives, and the state between two
//! steps.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::negatives::{Negatives, ShortIndex};
use super::rows::ScorerRows;
use super::svm::Scorer;
use crate::data::Ragged;
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

/// A part of a step's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Number of the block, from 0.
    pub number: usize,
    /// Number of blocks, which together are all.
    pub n_blocks: usize,
}

impl Block {
    /// All at once.
    pub const ALL: Self = Self {
        number: 0,
        n_blocks: 1,
    };

    /// Its labels of `n`: every so many. Frequent labels, which often lie together and take long, are
    /// spread over all blocks.
    pub fn labels(self, n: usize) -> Vec<usize> {
        (self.number..n).step_by(self.n_blocks).collect()
    }

    /// Its rows of `n`.
    pub fn rows(self, n: usize) -> Range<u32> {
        let at = |number| (n * number / self.n_blocks) as u32;
        at(self.number)..at(self.number + 1)
    }
}

/// What a block's work has made.
#[derive(Debug, Clone, Default)]
pub struct Work {
    pub(super) block: Block,
    /// The problems of the block's labels.
    pub(super) solved: Solved,
    /// The labels that the block's rows become negative examples of.
    pub(super) mined: Ragged<u32>,
}

persist!(Work {
    Meta block;
    Nest solved;
    Nest mined;
});

/// What the steps so far have made.
#[derive(Debug, Clone, Default)]
pub struct TrainingState {
    pub(super) n_done: usize,
    /// [`Candidates::scored`].
    pub(super) scored: Ragged<(u32, f32)>,
    pub(super) negatives: Negatives,
    /// Of inverse document frequencies.
    pub(super) power: f64,
    pub(super) cost: f64,
    /// Dual variables of the round before, by label.
    pub(super) duals: Vec<Vec<f32>>,
    /// The problems of the better sample, or of the last round.
    pub(super) solved: Solved,
    /// What the sample's scorers are worth on the rows of the fit.
    pub(super) gain: f64,
    /// The scorers of the round before, to mine with.
    pub(super) index: ShortIndex,
}

persist!(TrainingState {
    Meta n_done;
    Nest scored;
    Nest negatives;
    Meta power;
    Meta cost;
    Columns duals;
    Nest solved;
    Meta gain;
    Nest index;
});
