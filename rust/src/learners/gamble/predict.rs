//! Prediction: the rows of a block go through the trees one tree after the other.

use std::ops::Range;

use super::routing::DenseBlock;
use super::tree::Tree;
use crate::classifier::TopK;
use crate::data::Rows;

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

    /// Computes the scores of the rows `which` by `trees`. `after` sees the scores of a row (its
    /// place among them) after each tree, up to what all classes have in common.
    pub fn score(
        &mut self,
        trees: &[Tree],
        rows: &Rows<'_>,
        which: Range<usize>,
        mut after: impl FnMut(usize, usize, &[f64]),
    ) {
        let k = self.n_classes;
        self.block.fill(rows, which.clone());
        self.scores.clear();
        self.scores.resize(which.len() * k, 0.0);
        self.common.clear();
        self.common.resize(which.len(), 0.0);
        // Tree by tree, so that a tree is in the cache while all rows go through it.
        for (at, tree) in trees.iter().enumerate() {
            self.block.find_leaves(tree, &mut self.leaves);
            let rows = self.leaves.iter().zip(&mut self.common);
            let rows = rows.zip(self.scores.chunks_exact_mut(k)).enumerate();
            for (row, ((&leaf, common), scores)) in rows {
                let leaf = leaf as usize;
                let others = tree.leaves.others[leaf];
                let (classes, votes) = tree.leaves.listed(leaf);
                for (&class, &vote) in classes.iter().zip(votes) {
                    scores[class as usize] += f64::from(vote) - f64::from(others);
                }
                *common += f64::from(others);
                after(row, at, scores);
            }
        }
        for (scores, common) in self.scores.chunks_exact_mut(k).zip(&self.common) {
            scores.iter_mut().for_each(|score| *score += common);
        }
        self.block.clear(rows, which);
    }
}
