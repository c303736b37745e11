//! The scores of a row's labels, added up from the histograms of its leaves.

use super::PackedLists;
use crate::alloc::zeros;

/// The labels of one row that have a score above 0, and their scores.
pub struct LabelScores {
    scores: Vec<f32>,
    /// The labels that have a score; not kept where there are so few labels that
    /// looking at all of them is faster.
    touched: Option<Vec<u32>>,
}

/// Up to so many labels it is faster to look at all of them than to note which have
/// a score: the leaves of many trees have thousands of entries.
const FEW: usize = 4096;

impl LabelScores {
    /// No scores yet, of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Self {
            scores: zeros(n_labels),
            touched: (n_labels > FEW).then(Vec::new),
        }
    }

    /// Removes all scores, for the next row.
    pub fn clear(&mut self) {
        match &mut self.touched {
            None => self.scores.fill(0.0),
            Some(touched) => {
                for label in touched.drain(..) {
                    self.scores[label as usize] = 0.0;
                }
            }
        }
    }

    /// Adds histogram `i` of `histograms`, times `scale`.
    pub fn add(&mut self, histograms: &PackedLists, i: usize, scale: f32) {
        let scores = &mut self.scores;
        // Above 0, however small: this is how a label that was touched is known.
        let added = |count: f32| (count * scale).max(f32::MIN_POSITIVE);
        match &mut self.touched {
            None => histograms.for_each(i, |label, [count]| {
                scores[label as usize] += added(count);
            }),
            Some(touched) => histograms.for_each(i, |label, [count]| {
                let score = &mut scores[label as usize];
                if *score == 0.0 {
                    touched.push(label);
                }
                *score += added(count);
            }),
        }
    }

    /// Whether labels with a score are found without looking at all labels.
    pub fn is_listed(&self) -> bool {
        self.touched.is_some()
    }

    /// The scores by label; 0 where there is none.
    pub fn by_label(&self) -> &[f32] {
        &self.scores
    }

    /// Marks the blocks of `BLOCK` labels that may have a label with a score.
    pub fn mark_blocks<const BLOCK: usize>(&self, marks: &mut [bool]) {
        match &self.touched {
            None => marks.fill(true),
            Some(touched) => {
                for &label in touched {
                    marks[label as usize / BLOCK] = true;
                }
            }
        }
    }

    /// Calls `visit` with every label that has a score, and the score, in an order
    /// that stays the same until [`Self::clear`].
    pub fn for_each(&self, mut visit: impl FnMut(u32, f32)) {
        match &self.touched {
            None => {
                for (label, &score) in (0..).zip(&self.scores) {
                    if score > 0.0 {
                        visit(label, score);
                    }
                }
            }
            Some(touched) => {
                for &label in touched {
                    visit(label, self.scores[label as usize]);
                }
            }
        }
    }
}
