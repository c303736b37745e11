//! Early stopping: the error on rows that are not learned.

use super::columns::Columns;
use super::examples::Examples;
use super::grow::Grower;
use super::params::Params;
use super::tree::Tree;
use crate::alloc::try_alloc;
use crate::error::Result;

/// The held-out rows and the scores of the committee for them.
pub struct HeldOut {
    rows: std::ops::Range<usize>,
    labels: Vec<u32>,
    weights: Vec<f64>,
    n_classes: usize,
    /// Scores of all classes for each row, up to what all classes have in common.
    scores: Vec<f32>,
    /// The first class of the highest score, for each row.
    bests: Vec<u32>,
    error: f64,
    lowest: f64,
    /// Rounds so far, and those up to the lowest error.
    rounds: usize,
    best: usize,
    patience: usize,
}

impl HeldOut {
    /// The rows of `examples` that are not learned; none without early stopping.
    pub fn new(params: &Params, examples: &Examples<'_>) -> Result<Option<Self>> {
        let rows = examples.n_learned..examples.labels.len();
        if !params.early_stopping {
            return Ok(None);
        }
        let importances = &examples.importances[rows.clone()];
        Ok(Some(Self {
            scores: try_alloc(rows.len(), examples.n_classes, 0.0)?,
            bests: vec![0; rows.len()],
            labels: examples.labels[rows.clone()].to_vec(),
            weights: importances.iter().map(|&w| f64::from(w)).collect(),
            rows,
            n_classes: examples.n_classes,
            error: 1.0,
            lowest: f64::INFINITY,
            rounds: 0,
            best: 0,
            patience: params.patience as usize,
        }))
    }

    /// Adds the tree that `grower` has just grown to the committee. Returns whether to go on.
    pub fn add(&mut self, tree: &Tree, grower: &Grower, columns: &Columns) -> bool {
        let numbers = grower.leaf_numbers();
        let (mut wrong, mut all) = (0.0, 0.0);
        let scores = self.scores.chunks_exact_mut(self.n_classes);
        let rows = self.rows.clone().zip(scores).zip(&mut self.bests);
        for (at, ((row, scores), best)) in rows.enumerate() {
            let leaf = grower.route(columns, row, &numbers);
            let (classes, votes) = tree.leaves.listed(leaf);
            for (&class, vote) in classes.iter().zip(votes) {
                let score = &mut scores[class as usize];
                *score += vote - tree.leaves.others[leaf];
                let score = *score;
                // A leaf gives no class that it lists less than those that it does not:
                // scores only rise, and the best class changes among the listed ones alone.
                let highest = scores[*best as usize];
                if score > highest || (score == highest && class < *best) {
                    *best = class;
                }
            }
            all += self.weights[at];
            if *best != self.labels[at] {
                wrong += self.weights[at];
            }
        }
        self.error = wrong / all;
        self.rounds += 1;
        if self.error < self.lowest {
            self.lowest = self.error;
            self.best = self.rounds;
        }
        self.rounds - self.best < self.patience
    }

    /// The error as of the last round.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Number of rounds up to the lowest error.
    pub fn best_round(&self) -> usize {
        self.best
    }
}
