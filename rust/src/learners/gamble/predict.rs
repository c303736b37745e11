//! Prediction: the rows of a block go through the trees one tree after the other.

use std::ops::Range;

use super::frozen::{FrozenTrees, LANES};
use super::routing::DenseBlock;
use crate::alloc::resize;
use crate::classifier::TopK;
use crate::data::Rows;

/// Of a block of fewer rows each goes through several trees side by side.
const FEW_ROWS: usize = 4;

/// Scores blocks of rows. Workspace for one thread.
#[derive(Default)]
pub struct Predictor {
    n_classes: usize,
    block: DenseBlock,
    /// Scores of all classes for each of them.
    pub scores: Vec<f64>,
    /// What all classes of a row have in common.
    common: Vec<f64>,
    /// The leaf of a tree that each of them is routed to.
    leaves: Vec<u32>,
    top: Option<TopK>,
}

impl Predictor {
    pub fn new(n_classes: usize) -> Self {
        Self {
            n_classes,
            ..Self::default()
        }
    }

    /// The `k` best classes of each row scored, and their scores.
    pub fn write_topk(&mut self, k: usize, labels: &mut [i32], scores: &mut [f32]) {
        let n_classes = self.n_classes;
        let top = self.top.get_or_insert_with(|| TopK::new(k.min(n_classes)));
        let parts = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        for (row, (labels, scores)) in self.scores.chunks_exact(n_classes).zip(parts) {
            top.clear();
            for (class, &score) in row.iter().enumerate() {
                if score as f32 > top.bar() || class < k {
                    top.push(class as u32, score as f32);
                }
            }
            top.write(labels, scores);
        }
    }

    /// Computes the scores of the rows `which` by the trees `wanted`. `after` sees the scores of a
    /// row (its place among them) after each tree (likewise), up to what all classes have in common.
    pub fn score(
        &mut self,
        trees: &FrozenTrees,
        wanted: Range<usize>,
        rows: &Rows<'_>,
        which: Range<usize>,
        mut after: impl FnMut(usize, usize, &[f64]),
    ) {
        let k = self.n_classes;
        let together = if which.len() < FEW_ROWS { 1 } else { LANES };
        self.block.fill(rows, which.clone(), together);
        self.scores.clear();
        resize(&mut self.scores, which.len() * k, 0.0);
        self.common.clear();
        self.common.resize(which.len(), 0.0);
        let mut add = |row: usize, tree: usize, leaf: u32| {
            let scores = &mut self.scores[row * k..(row + 1) * k];
            trees.votes.add(leaf, scores, &mut self.common[row]);
            after(row, tree - wanted.start, scores);
        };
        if together == 1 {
            for (row, values) in self.block.groups().enumerate() {
                for first in wanted.clone().step_by(LANES) {
                    let some = first..wanted.end.min(first + LANES);
                    let has_missing = self.block.has_missing;
                    let leaves = trees
                        .nodes
                        .leaves_of_trees(some.clone(), values, has_missing);
                    some.zip(leaves)
                        .for_each(|(tree, leaf)| add(row, tree, leaf));
                }
            }
        } else {
            // Tree by tree, so that a tree is in the cache while all rows go through it.
            for tree in wanted.clone() {
                trees
                    .nodes
                    .leaves_of_rows(tree, &self.block, &mut self.leaves);
                let leaves = self.leaves.iter().enumerate();
                leaves.for_each(|(row, &leaf)| add(row, tree, leaf));
            }
        }
        for (scores, common) in self.scores.chunks_exact_mut(k).zip(&self.common) {
            scores.iter_mut().for_each(|score| *score += common);
        }
        self.block.clear(rows, which);
    }
}
