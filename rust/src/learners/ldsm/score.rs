//! From the leaves that a row comes to, to labels with scores.

/// Scores of the labels of one row after the other.
#[derive(Debug)]
pub struct Scores {
    scores: Vec<f32>,
    /// The labels that have a score; not kept where they are so few that looking
    /// at all of them is quicker.
    touched: Option<Vec<u32>>,
}

/// Labels that are looked at faster than noted: a row of many trees comes to
/// thousands of entries.
const FEW: usize = 4096;

impl Scores {
    /// Of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Self {
            scores: vec![0.0; n_labels],
            touched: (n_labels > FEW).then(Vec::new),
        }
    }

    /// Forgets the row.
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

    /// Adds a histogram, times `scale`.
    pub fn add(&mut self, labels: &[(u32, f32)], scale: f32) {
        if let Some(touched) = &mut self.touched {
            let scores = &self.scores;
            let is_new = |&&(label, _): &&(u32, f32)| scores[label as usize] == 0.0;
            touched.extend(labels.iter().filter(is_new).map(|&(label, _)| label));
        }
        for &(label, count) in labels {
            // However small: a label that was touched is told by its score.
            self.scores[label as usize] += (count * scale).max(f32::MIN_POSITIVE);
        }
    }

    /// Replaces every score.
    pub fn change(&mut self, change: impl Fn(u32, f32) -> f32) {
        match &self.touched {
            None => {
                for (label, score) in (0..).zip(&mut self.scores) {
                    if *score > 0.0 {
                        *score = change(label, *score);
                    }
                }
            }
            Some(touched) => {
                for &label in touched {
                    let score = &mut self.scores[label as usize];
                    *score = change(label, *score);
                }
            }
        }
    }

    /// Calls `look` with every label that has a score, and this, in any order.
    pub fn each(&self, mut look: impl FnMut(u32, f32)) {
        match &self.touched {
            None => {
                for (label, &score) in (0..).zip(&self.scores) {
                    if score > 0.0 {
                        look(label, score);
                    }
                }
            }
            Some(touched) => {
                for &label in touched {
                    look(label, self.scores[label as usize]);
                }
            }
        }
    }
}
