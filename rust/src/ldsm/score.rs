//! From the leaves that a row comes to, to labels with scores.

use super::tree::Tree;
use crate::tree::NodeId;

/// Scores of the labels of one row after the other; never all labels are looked at.
#[derive(Debug)]
pub struct Scores {
    scores: Vec<f32>,
    touched: Vec<u32>,
}

impl Scores {
    /// Of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Self {
            scores: vec![0.0; n_labels],
            touched: Vec::new(),
        }
    }

    /// Forgets the row.
    pub fn clear(&mut self) {
        for label in self.touched.drain(..) {
            self.scores[label as usize] = 0.0;
        }
    }

    /// Adds the histogram of a leaf, `share` in all.
    pub fn add(&mut self, tree: &Tree, leaf: NodeId, share: f32) {
        let labels = tree.labels.get(leaf.at());
        let scale = share * tree.inverse_mass[leaf.at()];
        for &(label, count) in labels {
            let score = &mut self.scores[label as usize];
            if *score == 0.0 {
                self.touched.push(label);
            }
            // However small: a label that has been touched is told by its score.
            *score += (count * scale).max(f32::MIN_POSITIVE);
        }
    }

    /// Replaces every score.
    pub fn change(&mut self, change: impl Fn(u32, f32) -> f32) {
        for &label in &self.touched {
            let score = &mut self.scores[label as usize];
            *score = change(label, *score);
        }
    }

    /// The labels that have a score, in any order, and these.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.touched
            .iter()
            .map(|&label| (label, self.scores[label as usize]))
    }
}
