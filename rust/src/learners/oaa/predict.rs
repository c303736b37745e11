//! Prediction: blocks of rows through tiles of weights.
//!
//! A tile's weights are used for all rows of a block before those of the next tile. So they come
//! from the cache, and sums stay in registers.

use super::kernels::{score_rows, score_rows_averaged};
use super::tile::Tile;
use super::Oaa;
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;
use crate::linear::AlignedRow;
use crate::model::{Member, OnlineLearner, Predictor, TopK};
use crate::simd::LANES;

/// Predicts blocks of rows, for one thread.
#[derive(Debug)]
pub struct TilePredictor<'a> {
    preparation: &'a Preparation,
    oaa: &'a Oaa,
    /// Weights to predict with, tile by tile; none if they are computed from those of the tiles.
    frozen: Option<&'a [AlignedRow<f32>]>,
    row: RowBuffer,
    /// The rows of the block, with feature slots in place of columns.
    rows: RaggedRows,
    /// Scores of the block by one tile, or of one row by the pruned weights.
    scores: Vec<f32>,
}

impl<'a> TilePredictor<'a> {
    /// Returns a predictor of `member`, with its frozen form if there is one.
    pub(super) fn new(
        member: &'a Member<Oaa>,
        frozen: Option<&'a <Oaa as OnlineLearner>::Frozen>,
    ) -> Self {
        Self {
            preparation: &member.preparation,
            oaa: &member.learner,
            frozen: frozen.and_then(Option::as_deref),
            row: RowBuffer::default(),
            rows: RaggedRows::default(),
            scores: Vec::new(),
        }
    }

    /// Calls `consume` with each tile and its scores for all rows of the block.
    fn score_tiles(
        &mut self,
        control: &Control,
        mut consume: impl FnMut(&Tile, &[f32]),
    ) -> Result<()> {
        let (rows, scores, preparer) = (&self.rows, &mut self.scores, &self.oaa.preparer);
        let share = preparer.average_share();
        for (number, tile) in self.oaa.tiles.iter().enumerate() {
            control.check()?;
            scores.resize(rows.len() * tile.width(), 0.0);
            match (self.frozen, share) {
                (Some(frozen), _) => score_rows(&frozen[number], tile.groups, rows, scores),
                (None, Some(share)) => score_rows_averaged(tile, share, rows, scores),
                (None, None) => score_rows(&tile.weights, tile.groups, rows, scores),
            }
            if let Some(span) = preparer.span {
                scores.iter_mut().for_each(|p| *p = span.clamp(*p));
            }
            consume(tile, scores);
        }
        Ok(())
    }
}

impl Predictor for TilePredictor<'_> {
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        _control: &Control,
    ) -> Result<()> {
        self.rows.clear();
        for i in which {
            self.preparation.read(rows, i, &mut self.row);
            self.oaa.preparer.translate(&mut self.row);
            self.rows
                .push(self.row.columns.iter().copied(), &self.row.values);
        }
        Ok(())
    }

    /// Orders equal scores by class. Classes not seen have no score.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let mut tops = vec![TopK::new(k.min(self.oaa.n_classes)); self.rows.len()];
        if let Some(pruned) = &self.oaa.pruned {
            for (i, top) in tops.iter_mut().enumerate() {
                control.check()?;
                pruned.score(self.rows.row(i), self.oaa.preparer.span, &mut self.scores);
                // Scores of classes not seen are not above the bar.
                top.push_all(self.scores.iter().copied());
            }
        }
        self.score_tiles(control, |tile, scores| {
            for (top, scores) in tops.iter_mut().zip(scores.chunks_exact(tile.width())) {
                push_scores(top, tile, scores);
            }
        })?;
        let out = labels.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k));
        for (top, (labels, scores)) in tops.iter().zip(out) {
            top.write(labels, scores);
        }
        Ok(())
    }

    /// Writes minus infinity for classes not seen.
    fn all_scores(&mut self, scores: &mut [f32], control: &Control) -> Result<bool> {
        let n_classes = self.oaa.n_classes;
        if let Some(pruned) = &self.oaa.pruned {
            for (i, out) in scores.chunks_exact_mut(n_classes).enumerate() {
                control.check()?;
                pruned.score(self.rows.row(i), self.oaa.preparer.span, &mut self.scores);
                out.copy_from_slice(&self.scores);
            }
        }
        self.score_tiles(control, |tile, tile_scores| {
            let rows = scores.chunks_exact_mut(n_classes);
            for (out, scores) in rows.zip(tile_scores.chunks_exact(tile.width())) {
                let masked = scores.iter().zip(&tile.unseen_mask);
                for (out, (score, mask)) in out[tile.first..].iter_mut().zip(masked) {
                    *out = score + mask;
                }
            }
        })?;
        Ok(true)
    }
}

/// Offers a tile's scores to the best of a row.
fn push_scores(top: &mut TopK, tile: &Tile, scores: &[f32]) {
    let masks = tile.unseen_mask.chunks_exact(LANES);
    let groups = scores.chunks_exact(LANES).zip(masks);
    for (first, (scores, mask)) in (tile.first as u32..).step_by(LANES).zip(groups) {
        let bar = top.bar();
        let masked = scores.iter().zip(mask);
        // Most groups have no score above the bar. Without an early exit this vectorizes.
        if masked
            .clone()
            .fold(false, |any, (score, mask)| any | (score + mask > bar))
        {
            for (class, (score, mask)) in (first..).zip(masked) {
                if score + mask > f32::NEG_INFINITY {
                    top.push(class, *score);
                }
            }
        }
    }
}
