//! Prediction: blocks of rows through tiles of weights.
//!
//! A tile's weights are used for all rows of a block before the next tile's
//! are, so they come from the cache; sums stay in registers.

use super::kernels::{score_rows, score_rows_averaged};
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::Oaa;
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;
use crate::linear::AlignedRow;
use crate::model::{Member, OnlineLearner, Predictor, TopK};
use crate::simd::LANES;

/// What one thread predicts with: a block of rows, and its scores by one tile.
#[derive(Debug)]
pub struct TilePredictor<'a> {
    preparation: &'a Preparation,
    oaa: &'a Oaa,
    weights: PredictionWeights<'a>,
    row: RowBuffer,
    /// The block, with slots for columns.
    rows: RaggedRows,
    scores: Vec<f32>,
}

/// Where the weights to predict with are, tile by tile.
#[derive(Debug, Clone, Copy)]
enum PredictionWeights<'a> {
    /// They are those of the tiles.
    Tiles,
    /// Made of them beforehand.
    Frozen(&'a [AlignedRow<f32>]),
    /// To be made of them as they are read, with this share of the average sums.
    Averaged(f32),
}

impl<'a> TilePredictor<'a> {
    /// For predictions of `member`, by its frozen form if there is one.
    pub(super) fn new(
        member: &'a Member<Oaa>,
        frozen: Option<&'a <Oaa as OnlineLearner>::Frozen>,
    ) -> Self {
        let weights = match frozen {
            Some(Some(weights)) => PredictionWeights::Frozen(weights),
            Some(None) => PredictionWeights::Tiles,
            None => {
                let share = member.learner.preparer.average_share();
                share.map_or(PredictionWeights::Tiles, PredictionWeights::Averaged)
            }
        };
        Self {
            preparation: &member.preparation,
            oaa: &member.learner,
            weights,
            row: RowBuffer::default(),
            rows: RaggedRows::default(),
            scores: Vec::new(),
        }
    }

    /// The scores of all classes for row `i` of the block, minus infinity for those never seen.
    fn score_pruned(&mut self, pruned: &PrunedWeights, i: usize) {
        pruned.score(self.rows.row(i), &mut self.scores);
        if let Some(span) = self.oaa.preparer.span {
            self.scores.iter_mut().for_each(|p| *p = span.clamp(*p));
        }
    }

    /// Calls `consume` with each tile and its scores for all rows of the block.
    fn score_tiles(
        &mut self,
        control: &Control,
        mut consume: impl FnMut(&Tile, &[f32]),
    ) -> Result<()> {
        for (number, tile) in self.oaa.tiles.iter().enumerate() {
            control.check()?;
            let (rows, scores) = (&self.rows, &mut self.scores);
            scores.resize(rows.len() * tile.width(), 0.0);
            match self.weights {
                PredictionWeights::Tiles => score_rows(&tile.weights, tile.groups, rows, scores),
                PredictionWeights::Frozen(all) => {
                    score_rows(&all[number], tile.groups, rows, scores);
                }
                PredictionWeights::Averaged(share) => {
                    score_rows_averaged(tile, share, rows, scores);
                }
            }
            if let Some(span) = self.oaa.preparer.span {
                self.scores.iter_mut().for_each(|p| *p = span.clamp(*p));
            }
            consume(tile, &self.scores);
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
            self.oaa.preparer.slots.translate(&mut self.row);
            self.rows
                .push(self.row.columns.iter().copied(), &self.row.values);
        }
        Ok(())
    }

    /// Equal scores stand in the order of the classes. Classes never seen have no score.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        if let Some(pruned) = &self.oaa.pruned {
            let mut top = TopK::new(k.min(self.oaa.n_classes));
            let out = labels.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k));
            for (i, (labels, scores)) in out.enumerate() {
                control.check()?;
                self.score_pruned(pruned, i);
                top.clear();
                for (class, &score) in (0..).zip(&self.scores) {
                    // Those never seen are not above it.
                    if score > top.bar() {
                        top.push(class, score);
                    }
                }
                top.write(labels, scores);
            }
            return Ok(());
        }
        let mut tops = vec![TopK::new(k.min(self.oaa.n_classes)); self.rows.len()];
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

    /// Minus infinity for classes never seen.
    fn all_scores(&mut self, scores: &mut [f32], control: &Control) -> Result<bool> {
        let n_classes = self.oaa.n_classes;
        if let Some(pruned) = &self.oaa.pruned {
            for (i, out) in scores.chunks_exact_mut(n_classes).enumerate() {
                control.check()?;
                self.score_pruned(pruned, i);
                out.copy_from_slice(&self.scores);
            }
            return Ok(true);
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
        // Without an early exit, so that it vectorises; mostly there is none.
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
