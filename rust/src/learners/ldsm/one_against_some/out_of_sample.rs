//! The scores of training rows by the trees that did not train on them.

use super::super::examples::Examples;
use super::super::label_scores::LabelScores;
use super::super::leaf_hits::LeafHits;
use super::super::traversal::Traversal;
use super::super::tree::Tree;
use super::HeldOut;
use crate::alloc::with_capacity;
use crate::control::Control;
use crate::data::RaggedRows;
use crate::error::Result;
use crate::threads::map_with_worker;

/// Rows that traverse the trees together.
const BLOCK: usize = 4096;

/// The trees, and what they left out.
#[derive(Debug, Clone, Copy)]
pub struct OutOfSample<'a> {
    pub examples: &'a Examples,
    pub trees: &'a [Tree],
    pub held_out: HeldOut,
    pub control: &'a Control,
}

impl OutOfSample<'_> {
    /// What `of_row` makes of each of `rows` and of its scores by the trees that left it out;
    /// a row that none did has no scores.
    pub fn map<T: Send>(
        &self,
        rows: &[u32],
        is_parallel: bool,
        of_row: impl Fn(u32, &LabelScores) -> T + Sync,
    ) -> Result<Vec<T>> {
        let blocks: Vec<&[u32]> = rows.chunks(BLOCK).collect();
        let mapped = map_with_worker(
            is_parallel,
            (blocks.len(), 1),
            || Worker::new(self),
            |worker, i| self.map_block(worker, blocks[i], &of_row),
        )?;
        let mut all = with_capacity(rows.len());
        all.extend(mapped.into_iter().flatten());
        Ok(all)
    }

    fn map_block<T>(
        &self,
        worker: &mut Worker,
        rows: &[u32],
        of_row: impl Fn(u32, &LabelScores) -> T,
    ) -> Result<Vec<T>> {
        let mut n_trees = vec![0; rows.len()];
        worker.hits.clear(rows.len(), self.trees.len());
        for (t, tree) in (0..).zip(self.trees) {
            self.control.check()?;
            worker.rows.clear();
            worker.numbers.clear();
            for (number, &row) in (0..).zip(rows) {
                if self.held_out.leaves_out(t as usize, row) {
                    let (columns, values) = self.examples.row(row);
                    worker.rows.push(columns.iter().copied(), values);
                    worker.numbers.push(number);
                    n_trees[number as usize] += 1;
                }
            }
            if !worker.rows.is_empty() {
                let number = |i: u32| worker.numbers[i as usize];
                let (hits, traversal) = (&mut worker.hits, &mut worker.traversal);
                hits.traverse(traversal, (t, tree), &worker.rows, number);
            }
        }
        let scores = &mut worker.scores;
        let each = rows.iter().zip(n_trees).enumerate();
        Ok(each
            .map(|(i, (&row, n_trees))| {
                worker.hits.average(i, self.trees, n_trees, scores);
                of_row(row, scores)
            })
            .collect())
    }
}

/// What a thread works with.
struct Worker {
    traversal: Traversal,
    hits: LeafHits,
    scores: LabelScores,
    /// The rows of a block that a tree left out, and their numbers in the block.
    rows: RaggedRows,
    numbers: Vec<u32>,
}

impl Worker {
    fn new(of: &OutOfSample<'_>) -> Self {
        let arity = of.trees.first().map_or(2, |tree| tree.arity);
        Self {
            traversal: Traversal::new(of.examples.width, arity),
            hits: LeafHits::default(),
            scores: LabelScores::new(of.examples.n_labels),
            rows: RaggedRows::default(),
            numbers: Vec::new(),
        }
    }
}
