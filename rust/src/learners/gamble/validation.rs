//! Early stopping: the error on validation rows, which are not learned.

use super::examples::LabelledRows;
use super::routing::Router;
use super::tree::Tree;
use crate::alloc::{try_alloc, zeros};
use crate::error::Result;

/// The committee on the validation rows.
pub struct Validation<'a> {
    examples: LabelledRows<'a>,
    n_classes: usize,
    router: Router,
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

impl<'a> Validation<'a> {
    pub fn new(examples: LabelledRows<'a>, n_classes: usize) -> Result<Self> {
        let n_rows = examples.which.len();
        Ok(Self {
            examples,
            n_classes,
            router: Router::default(),
            scores: try_alloc(n_rows, n_classes, 0.0)?,
            bests: zeros(n_rows),
            error: 1.0,
            lowest: f64::INFINITY,
            n_rounds: 0,
            best_round: 0,
        })
    }

    /// Adds a tree to the committee. Returns the number of rounds since the lowest error.
    pub fn add(&mut self, tree: &Tree) -> usize {
        let (examples, k) = (self.examples, self.n_classes);
        let (scores, bests) = (&mut self.scores, &mut self.bests);
        let (mut wrong, mut all) = (0.0, 0.0);
        let add = |row: usize, leaf: usize| {
            let (scores, best) = (&mut scores[row * k..(row + 1) * k], &mut bests[row]);
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
        };
        self.router.route(tree, &examples.rows, examples.which, add);
        self.error = wrong / all;
        self.n_rounds += 1;
        if self.error < self.lowest {
            self.lowest = self.error;
            self.best_round = self.n_rounds;
        }
        self.n_rounds - self.best_round
    }
}
