//! Rows of a group of labels, as they are sent between the places of a training.

use crate::data::{Examples, Ragged};
use crate::error::{require, Result};
use crate::persist;

/// Returns whether numbers increase and are below `end`.
pub fn are_below(end: usize, numbers: impl Iterator<Item = u32> + Clone) -> bool {
    let is_below = numbers.clone().all(|number| (number as usize) < end);
    is_below && numbers.is_sorted_by(|a, b| a < b)
}

/// Rows of a group from one place. Labels are numbered within the group.
#[derive(Debug, Default)]
pub struct Piece {
    /// The rows; those of the fit come first.
    pub examples: Examples,
    /// The labels of which each row is a negative, increasing. The lists of all rows follow for each
    /// round of mining, after which there are dual variables by label.
    pub negatives: Ragged<u32>,
    pub duals: Vec<Vec<f32>>,
    /// The candidates of each row of the fit, and its number among all rows of the fit.
    pub scored: Ragged<(u32, f32)>,
    pub fit: Vec<u32>,
}

persist!(Piece {
    Nest examples;
    Nest negatives;
    Columns duals;
    Nest scored;
    Columns fit;
} check is_sound);

impl Piece {
    pub fn new(width: usize, n_labels: usize) -> Self {
        let mut piece = Self::default();
        (piece.examples.width, piece.examples.n_labels) = (width, n_labels);
        piece
    }

    pub fn push(&mut self, from: &Examples, row: u32, labels: &[u32], negatives: &[u32]) {
        self.examples.push(from, row, labels.iter().copied());
        self.negatives.push(negatives.iter().copied());
    }

    /// Returns an error if restored parts do not match.
    fn is_sound(&self) -> Result<()> {
        let (n_rows, n_labels) = (self.examples.len(), self.examples.n_labels);
        let increase = |list: &[u32]| are_below(n_labels, list.iter().copied());
        let are_scored = |list: &[(u32, f32)]| are_below(n_labels, list.iter().map(|each| each.0));
        let is_sound = self.negatives.len().is_multiple_of(n_rows)
            && self.negatives.iter().all(increase)
            && self.examples.labels.iter().all(increase)
            && self.fit.len() <= n_rows
            && self.scored.len() == self.fit.len()
            && self.scored.iter().all(are_scored);
        require(is_sound, "rows and negatives of a group do not match")
    }
}
