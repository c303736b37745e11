//! Early stopping: the error on rows that are not learned.

use super::columns::Examples;
use super::grow::Grower;
use super::tree::Tree;
use crate::alloc::try_alloc;
use crate::error::Result;

/// The committee on the held-out rows.
pub struct HeldOut<'a> {
    examples: &'a Examples<'a>,
    /// Scores of all classes for each row, up to what all classes have in common.
    scores: Vec<f32>,
    /// The first class of the highest score, for each row.
    bests: Vec<u32>,
    pub error: f64,
    lowest: f64,
    n_rounds: usize,
    /// Number of rounds up to the lowest error.
    pub best_round: usize,
}

impl<'a> HeldOut<'a> {
    pub fn new(examples: &'a Examples<'a>) -> Result<Self> {
        let n_rows = examples.labels.len() - examples.n_learned;
        Ok(Self {
            examples,
            scores: try_alloc(n_rows, examples.n_classes, 0.0)?,
            bests: vec![0; n_rows],
            error: 1.0,
            lowest: f64::INFINITY,
            n_rounds: 0,
            best_round: 0,
        })
    }

    /// Adds the tree that `grower` has just grown to the committee. Returns the number of rounds
    /// since the lowest error.
    pub fn add(&mut self, tree: &Tree, grower: &Grower) -> usize {
        let examples = self.examples;
        let (mut wrong, mut all) = (0.0, 0.0);
        let scores = self.scores.chunks_exact_mut(examples.n_classes);
        let rows = (examples.n_learned..).zip(scores).zip(&mut self.bests);
        for ((row, scores), best) in rows {
            let leaf = tree.nodes[grower.route(examples.columns, row)].feature as usize;
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
            let weight = f64::from(examples.importances[row]);
            all += weight;
            if *best != examples.labels[row] {
                wrong += weight;
            }
        }
        self.error = wrong / all;
        self.n_rounds += 1;
        if self.error < self.lowest {
            self.lowest = self.error;
            self.best_round = self.n_rounds;
        }
        self.n_rounds - self.best_round
    }
}
