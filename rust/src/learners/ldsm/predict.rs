//! Prediction as it is used from outside: blocks of rows, shared out to threads.

use super::model::Ldsm;
use super::predictor::Predictor;
use super::selection::{LabelSelection, SparseScores};
use crate::alloc::try_alloc;
use crate::classifier::{block_rows, in_blocks, row_values, TopK};
use crate::control::Control;
use crate::data::Rows;
use crate::error::{Error, Result};

/// Rows that traverse the trees together: many, so that few of a node's weights are
/// read for one row alone.
const BLOCK: usize = 4096;

impl Ldsm {
    /// The `k` labels of highest score for each row, best first, into arrays of
    /// rows x k; [`TopK::NO_LABEL`] and minus infinity where fewer have a score.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        self.check_columns(rows)?;
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.block_rows(rows);
        let parts = labels.chunks_mut(step * k).zip(scores.chunks_mut(step * k));
        let work = |predictor: &mut Predictor<'_>, (labels, scores): (&mut [i32], &mut [f32])| {
            let mut top = TopK::new(k.min(self.n_classes));
            let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (i, (labels, scores)) in rows.enumerate() {
                predictor.score_row(i, control)?;
                predictor.best(&mut top);
                top.write(labels, scores);
            }
            Ok(())
        };
        self.predict_blocks(rows, parts, n_threads, control, work)?;
        Ok((labels, scores))
    }

    /// The selected labels of each row, of those that have a score, and their scores.
    pub fn scores(
        &self,
        rows: &Rows<'_>,
        selection: LabelSelection,
        n_threads: usize,
        control: &Control,
    ) -> Result<SparseScores> {
        self.check_columns(rows)?;
        let mut blocks = Vec::new();
        let n_blocks = rows.n_rows().div_ceil(self.block_rows(rows));
        blocks.resize_with(n_blocks, SparseScores::default);
        let work = |predictor: &mut Predictor<'_>, found: &mut SparseScores| {
            let mut of_row = Vec::new();
            predictor.wants_probabilities = selection == LabelSelection::Likely;
            for i in 0..predictor.n_rows() {
                predictor.score_row(i, control)?;
                predictor.select(selection, &mut of_row);
                found.push(&of_row);
            }
            Ok(())
        };
        self.predict_blocks(rows, blocks.iter_mut(), n_threads, control, work)?;
        Ok(SparseScores::concat(blocks))
    }

    fn block_rows(&self, rows: &Rows<'_>) -> usize {
        block_rows(row_values(self.preparation.as_ref(), rows), BLOCK)
    }

    /// Calls `work` with every block of rows, sent down the trees, and its part of the
    /// output.
    fn predict_blocks<B: Send>(
        &self,
        rows: &Rows<'_>,
        parts: impl Iterator<Item = B>,
        n_threads: usize,
        control: &Control,
        work: impl Fn(&mut Predictor<'_>, B) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let preparation = self.check_columns(rows)?;
        in_blocks(
            rows.n_rows(),
            self.block_rows(rows),
            parts,
            n_threads,
            control,
            || Predictor::new(self, rows, preparation),
            |predictor, which, part| {
                predictor.read_block(which, control)?;
                work(predictor, part)
            },
        )
    }

    /// About how many multiplications a prediction of `rows` takes.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// Nodes that a row visits in a tree.
        const NODES: usize = 32;
        let products = NODES * self.params.arity as usize;
        let trees = row_values(self.preparation.as_ref(), rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(self.trees.len().saturating_mul(products));
        let scorers = self.scorers.as_ref().map_or(0, |oaa| oaa.effort(rows));
        trees.saturating_add(scorers)
    }
}
