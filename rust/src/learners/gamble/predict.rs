//! Prediction: the rows of a block go through the trees one tree after the other.

use super::model::Gamble;
use super::Tree;
use crate::alloc::try_alloc;
use crate::classifier::in_blocks;
use crate::classifier::TopK;
use crate::control::Control;
use crate::data::{GappyRows, RowBuffer};
use crate::error::{Error, Result};

/// Values and scores of the rows that go through the trees together.
const BLOCK: usize = 1 << 14;

/// Rows that traverse a tree side by side.
const TOGETHER: usize = 8;

/// Workspace for one thread.
#[derive(Default)]
struct Worker {
    buffer: RowBuffer,
    /// Values of the block's rows, all of them; zero between blocks.
    values: Vec<f32>,
    /// Scores of all classes for each of them.
    scores: Vec<f64>,
    /// What all classes of a row have in common.
    common: Vec<f64>,
    /// The leaf of a tree that each of them is routed to.
    leaves: Vec<u32>,
    top: Option<TopK>,
}

impl Gamble {
    /// The scores F of all classes for each row, rows x classes, of the trees `from` to
    /// `to`.
    pub fn scores(
        &self,
        rows: &GappyRows<'_>,
        from: usize,
        to: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<f64>> {
        self.check_columns(rows)?;
        if from > to || to > self.trees.len() {
            let allowed = format!("a range within 0 to {}", self.trees.len());
            return Err(Error::parameter(
                "trees",
                format!("{from} to {to}"),
                allowed,
            ));
        }
        let k = self.n_classes;
        let mut scores = try_alloc(rows.n_rows(), k, 0.0)?;
        let parts = scores.chunks_mut(self.block_rows() * k);
        self.in_blocks(rows, n_threads, control, parts, |worker, which, part| {
            worker.run(self, rows, which, from..to, |_, _, _| {});
            part.copy_from_slice(&worker.scores);
        })?;
        Ok(scores)
    }

    /// The `k` best classes of each row, best first, and their scores;
    /// [`TopK::NO_LABEL`] and minus infinity where there are fewer.
    pub fn predict_topk(
        &self,
        rows: &GappyRows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        self.check_columns(rows)?;
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.block_rows() * k;
        let parts = labels.chunks_mut(step).zip(scores.chunks_mut(step));
        let all = 0..self.trees.len();
        self.in_blocks(rows, n_threads, control, parts, |worker, which, part| {
            worker.run(self, rows, which, all.clone(), |_, _, _| {});
            let top = worker
                .top
                .get_or_insert_with(|| TopK::new(k.min(self.n_classes)));
            let parts = part.0.chunks_mut(k).zip(part.1.chunks_mut(k));
            for (row, (labels, scores)) in worker.scores.chunks_exact(self.n_classes).zip(parts) {
                top.clear();
                for (class, &score) in row.iter().enumerate() {
                    if score as f32 > top.bar() || class < k {
                        top.push(class as u32, score as f32);
                    }
                }
                top.write(labels, scores);
            }
        })?;
        Ok((labels, scores))
    }

    /// The best class of each row after every tree: rows x trees.
    pub fn staged_predict(
        &self,
        rows: &GappyRows<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<i32>> {
        self.check_columns(rows)?;
        let n_trees = self.trees.len();
        let mut labels = try_alloc(rows.n_rows(), n_trees, 0)?;
        if n_trees == 0 {
            return Ok(labels);
        }
        let parts = labels.chunks_mut(self.block_rows() * n_trees);
        self.in_blocks(rows, n_threads, control, parts, |worker, which, part| {
            worker.run(self, rows, which, 0..n_trees, |row, tree, scores| {
                let mut best = 0;
                for (class, &score) in scores.iter().enumerate() {
                    if score as f32 > scores[best] as f32 {
                        best = class;
                    }
                }
                part[row * n_trees + tree] = best as i32;
            });
        })?;
        Ok(labels)
    }

    /// Cost of predicting `rows`, in products, about.
    pub fn effort(&self, rows: &GappyRows<'_>) -> usize {
        /// Cost of a node.
        const NODE: usize = 16;
        let deep = self.params.max_leaves.ilog2() as usize + 1;
        (self.trees.len() * deep * NODE + self.n_classes)
            .saturating_mul(rows.n_rows())
            .saturating_add(rows.n_values())
    }

    fn block_rows(&self) -> usize {
        (BLOCK / (self.n_features + self.n_classes).max(1)).clamp(1, 64)
    }

    fn in_blocks<P: Send>(
        &self,
        rows: &GappyRows<'_>,
        n_threads: usize,
        control: &Control,
        parts: impl Iterator<Item = P>,
        fill: impl Fn(&mut Worker, std::ops::Range<usize>, P) + Sync + Send,
    ) -> Result<()> {
        in_blocks(
            rows.n_rows(),
            self.block_rows(),
            parts,
            n_threads,
            control,
            Worker::default,
            |worker, which, part| {
                fill(worker, which, part);
                Ok(())
            },
        )
    }
}

impl Worker {
    /// Works out the scores of the rows `which`. `after` sees the scores of a row (its
    /// place among them) after each tree, up to what all classes have in common.
    fn run(
        &mut self,
        model: &Gamble,
        rows: &GappyRows<'_>,
        which: std::ops::Range<usize>,
        trees: std::ops::Range<usize>,
        mut after: impl FnMut(usize, usize, &[f64]),
    ) {
        let (width, k) = (model.n_features, model.n_classes);
        self.values.resize(which.len() * width, 0.0);
        for (row, values) in which.clone().zip(self.values.chunks_exact_mut(width)) {
            rows.read(row, &mut self.buffer);
            for (&column, &value) in self.buffer.columns.iter().zip(&self.buffer.values) {
                values[column as usize] = value;
            }
        }
        self.scores.clear();
        self.scores.resize(which.len() * k, 0.0);
        self.common.clear();
        self.common.resize(which.len(), 0.0);
        // Tree by tree, so that a tree is in the cache while all rows go through it.
        for at in trees {
            let tree = &model.trees[at];
            find_leaves(tree, &self.values, width, &mut self.leaves);
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
        for (row, values) in which.zip(self.values.chunks_exact_mut(width)) {
            rows.read(row, &mut self.buffer);
            for &column in &self.buffer.columns {
                values[column as usize] = 0.0;
            }
        }
    }
}

/// The leaves of rows of `width` values.
fn find_leaves(tree: &Tree, values: &[f32], width: usize, leaves: &mut Vec<u32>) {
    leaves.clear();
    let mut together = values.chunks_exact(TOGETHER * width);
    for values in &mut together {
        let row = |at: usize| &values[at * width..(at + 1) * width];
        leaves.extend(tree.leaves_of::<TOGETHER>(std::array::from_fn(row)));
    }
    for row in together.remainder().chunks_exact(width) {
        leaves.extend(tree.leaves_of([row]));
    }
}
