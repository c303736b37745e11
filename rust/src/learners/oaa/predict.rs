//! Prediction: blocks of rows through tiles of weights.
//!
//! A tile's weights are used for all rows of a block before those of the next tile. So they come
//! from the cache, and sums stay in registers.

use super::kernels::score_rows;
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

    /// Computes the scores of all rows and classes. Calls `consume` with a row of the block, the
    /// first of some consecutive classes, and their scores: minus infinity for classes not seen and
    /// for padding.
    fn score(
        &mut self,
        control: &Control,
        mut consume: impl FnMut(usize, usize, &[f32]),
    ) -> Result<()> {
        let (rows, scores, preparer) = (&self.rows, &mut self.scores, &self.oaa.preparer);
        if let Some(pruned) = &self.oaa.pruned {
            for i in 0..rows.len() {
                control.check()?;
                pruned.score(rows.row(i), preparer.span, scores);
                consume(i, 0, scores);
            }
        }
        for (number, tile) in self.oaa.tiles.iter().enumerate() {
            control.check()?;
            scores.resize(rows.len() * tile.width(), 0.0);
            let (weights, share) = match self.frozen {
                Some(frozen) => (&frozen[number][..], None),
                None => (&tile.weights[..], preparer.average_share()),
            };
            score_rows(tile, weights, share, preparer.span, rows, scores);
            for (i, scores) in scores.chunks_exact(tile.width()).enumerate() {
                consume(i, tile.first, scores);
            }
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

    /// Orders equal scores by class. Classes not seen have no score.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let mut tops = vec![TopK::new(k.min(self.oaa.n_classes)); self.rows.len()];
        self.score(control, |i, first, scores| {
            push_scores(&mut tops[i], first as u32, scores);
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
        self.score(control, |i, first, part| {
            let out = &mut scores[i * n_classes..][first..n_classes];
            let n = out.len().min(part.len());
            out[..n].copy_from_slice(&part[..n]);
        })?;
        Ok(true)
    }
}

/// Offers the scores of the classes from `first` on to the best of a row.
fn push_scores(top: &mut TopK, mut first: u32, scores: &[f32]) {
    let (groups, rest) = scores.as_chunks::<LANES>();
    for group in groups {
        let bar = top.bar();
        // Most groups have no score above the bar. Without an early exit this vectorizes.
        if group.iter().fold(false, |any, &score| any | (score > bar)) {
            push_each(top, first, group);
        }
        first += LANES as u32;
    }
    push_each(top, first, rest);
}

fn push_each(top: &mut TopK, first: u32, scores: &[f32]) {
    for (class, &score) in (first..).zip(scores) {
        if score > f32::NEG_INFINITY {
            top.push(class, score);
        }
    }
}
