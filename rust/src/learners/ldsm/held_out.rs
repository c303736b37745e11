//! The rows that trees leave out, and what the trees that did not learn a row say of it.

use std::ops::Range;

use super::traverse::LeafHits;
use super::tree::Tree;
use crate::control::Control;
use crate::data::{Examples, LabelScores, RaggedRows};
use crate::error::Result;
use crate::learners::one_against_some::{Candidates, RowCandidates};
use crate::random::mix;
use crate::threads::map_with_worker;

/// Share of the rows that each tree leaves out.
const SHARE: f64 = 0.2;

/// Systematic sampling: a row has a random place on a circle of length 1, and tree t leaves
/// out those in the arc of length `share` that begins at t times `share`. So of T trees each
/// row is left out by T times `share`, rounded up or down, and no tree needs a list.
#[derive(Debug, Clone, Copy)]
pub struct HeldOut {
    pub share: f64,
    pub seed: u64,
    pub n_rows: usize,
}

impl HeldOut {
    pub fn new(seed: u64, n_rows: usize) -> Self {
        Self {
            share: SHARE,
            seed,
            n_rows,
        }
    }

    /// Whether `tree` does not train on `row`.
    pub fn leaves_out(self, tree: usize, row: u32) -> bool {
        // Each tree keeps one row at least.
        if row as usize == tree % self.n_rows {
            return false;
        }
        let hash = mix(self.seed ^ (u64::from(row) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
        let place = (hash >> 11) as f64 / (1u64 << 53) as f64;
        // Where the arc begins is at 0 now.
        let begin = (tree as f64 * self.share).fract();
        let place = place - begin + f64::from(u8::from(place < begin));
        place < self.share
    }

    /// The rows that `tree` trains on.
    pub fn training_rows(self, tree: usize) -> impl Iterator<Item = u32> {
        (0..self.n_rows as u32).filter(move |&row| !self.leaves_out(tree, row))
    }
}

/// Rows that traverse the trees together.
const BLOCK: usize = 4096;

/// What the trees that left a row out say of it; of a row that none did, nothing.
pub fn candidates(
    examples: &Examples,
    trees: &[Tree],
    held_out: HeldOut,
    n_negatives: usize,
    is_parallel: bool,
    control: &Control,
) -> Result<Candidates> {
    let n_rows = examples.len() as u32;
    let new_scorer = || OutOfSampleScorer::new(examples, trees, held_out);
    let one_block = |scorer: &mut OutOfSampleScorer<'_>, block: usize| {
        let from = (block * BLOCK) as u32;
        let rows = from..n_rows.min(from + BLOCK as u32);
        let mut found = Vec::with_capacity(rows.len());
        scorer.score(rows, control, |row, scores| {
            found.push(RowCandidates::new(examples, row, scores, n_negatives));
        })?;
        Ok(found)
    };
    let blocks = (examples.len().div_ceil(BLOCK), 1);
    let found = map_with_worker(is_parallel, blocks, new_scorer, one_block)?;
    Ok(found.into_iter().flatten().collect())
}

/// Scores rows by the trees that left them out.
pub struct OutOfSampleScorer<'a> {
    examples: &'a Examples,
    trees: &'a [Tree],
    held_out: HeldOut,
    hits: LeafHits,
    scores: LabelScores,
    /// The rows of a block that a tree left out.
    rows: RaggedRows,
}

impl<'a> OutOfSampleScorer<'a> {
    pub fn new(examples: &'a Examples, trees: &'a [Tree], held_out: HeldOut) -> Self {
        Self {
            examples,
            trees,
            held_out,
            hits: LeafHits::default(),
            scores: LabelScores::new(examples.n_labels),
            rows: RaggedRows::default(),
        }
    }

    /// Calls `visit` with each of `rows` and its scores.
    pub fn score(
        &mut self,
        rows: Range<u32>,
        control: &Control,
        mut visit: impl FnMut(u32, &LabelScores),
    ) -> Result<()> {
        let (mut n_trees, mut numbers) = (vec![0; rows.len()], Vec::new());
        self.hits.clear(rows.len(), self.trees.len());
        for t in 0..self.trees.len() as u32 {
            control.check()?;
            self.rows.clear();
            numbers.clear();
            for (number, row) in (0..).zip(rows.clone()) {
                if self.held_out.leaves_out(t as usize, row) {
                    let (columns, values) = self.examples.row(row);
                    self.rows.push(columns.iter().copied(), values);
                    numbers.push(number);
                    n_trees[number as usize] += 1;
                }
            }
            if !self.rows.is_empty() {
                let (hits, width) = (&mut self.hits, self.examples.width);
                hits.traverse(self.trees, t, &self.rows, width, |i| numbers[i as usize]);
            }
        }
        for (i, (row, n_trees)) in rows.zip(n_trees).enumerate() {
            self.hits.average(i, self.trees, n_trees, &mut self.scores);
            visit(row, &self.scores);
        }
        Ok(())
    }
}
