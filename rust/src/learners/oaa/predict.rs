//! Prediction: blocks of rows through tiles of weights.
//!
//! A tile's weights are used for all rows of a block before the next tile's
//! are, so they come from the cache; sums stay in registers. Blocks are what
//! threads share.

use super::learner::{Oaa, State};
use super::scoring::score_rows;
use super::tile::Tile;
use crate::alloc::try_alloc;
use crate::classifier::{in_blocks, TopK};
use crate::control::Control;
use crate::data::{RowBuffer, Rows, Scaling};
use crate::error::{Error, Result};
use crate::simd::LANES;

/// Rows of a block.
const BLOCK: usize = 256;

/// What a thread needs to score a block: its rows' entries, and scores of a tile.
#[derive(Debug, Default)]
struct Workspace {
    row: RowBuffer,
    entries: RowBuffer,
    ends: Vec<usize>,
    scores: Vec<f32>,
}

impl Oaa {
    /// The `k` best classes of each row and their scores, best first, equal
    /// scores in the order of the classes. Classes never seen have no score;
    /// where fewer than `k` have one the rest is [`TopK::NO_LABEL`] and minus
    /// infinity.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        let all: Vec<u32> = (0..rows.n_rows() as u32).collect();
        self.predict_rows(rows, &all, k, n_threads, control)
    }

    /// The scores of all classes, row by row; minus infinity for classes
    /// never seen.
    pub fn decision_function(
        &self,
        rows: &Rows<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<f32>> {
        let mut scores = try_alloc(rows.n_rows(), self.n_classes, 0.0f32)?;
        let all: Vec<u32> = (0..rows.n_rows() as u32).collect();
        in_blocks(
            all.len(),
            BLOCK,
            scores.chunks_mut(BLOCK * self.n_classes),
            n_threads,
            control,
            || (),
            |(), block, out| self.score_block(rows, &all[block], out, control),
        )?;
        Ok(scores)
    }

    /// [`decision_function`](Self::decision_function) for some rows, few enough to
    /// be a block, into `out`.
    pub(crate) fn score_block(
        &self,
        rows: &Rows<'_>,
        block: &[u32],
        out: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let state = self.state_to_predict(rows, control)?;
        let (width, mut workspace) = (self.n_classes, Workspace::default());
        state.score_tiles(rows, block, control, &mut workspace, |tile, scores| {
            for (out, scores) in out
                .chunks_exact_mut(width)
                .zip(scores.chunks_exact(tile.width()))
            {
                let masked = scores.iter().zip(&tile.unseen_mask);
                for (out, (score, mask)) in out[tile.first..].iter_mut().zip(masked) {
                    *out = score + mask;
                }
            }
        })
    }

    /// [`predict_topk`](Self::predict_topk) for the rows `which`.
    pub(super) fn predict_rows(
        &self,
        rows: &Rows<'_>,
        which: &[u32],
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let state = self.state_to_predict(rows, control)?;
        let mut labels = try_alloc(which.len(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(which.len(), k, f32::NEG_INFINITY)?;
        let parts = labels
            .chunks_mut(BLOCK * k)
            .zip(scores.chunks_mut(BLOCK * k));
        in_blocks(
            which.len(),
            BLOCK,
            parts,
            n_threads,
            control,
            Workspace::default,
            |workspace, block, (labels, scores)| {
                let block = &which[block];
                let mut tops = vec![TopK::new(k.min(self.n_classes)); block.len()];
                state.score_tiles(rows, block, control, workspace, |tile, scores| {
                    for (top, scores) in tops.iter_mut().zip(scores.chunks_exact(tile.width())) {
                        push_scores(top, tile, scores);
                    }
                })?;
                let out = labels.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k));
                for (top, (labels, scores)) in tops.iter().zip(out) {
                    top.write(labels, scores);
                }
                Ok(())
            },
        )?;
        Ok((labels, scores))
    }

    /// About how many products a prediction of `rows`, or a pass of learning over
    /// them, takes; the weights to predict with included.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// What a row costs beside its values, and a value beside the classes.
        const AT_LEAST: usize = 16;
        let mut values = rows.n_values() + AT_LEAST * rows.n_rows();
        if let Some(state) = &self.state {
            if state.preparer.preparation.scaling() == Scaling::Standard {
                values = rows.n_rows().saturating_mul(rows.n_cols() + 1);
            }
            if state.prediction_weights.get().is_none() {
                values = values.saturating_add(state.preparer.slots.len());
            }
        }
        values.saturating_mul(self.n_classes + AT_LEAST)
    }

    /// The state, with the weights to predict with computed.
    fn state_to_predict(&self, rows: &Rows<'_>, control: &Control) -> Result<&State> {
        self.check_width(rows)?;
        let state = self.state.as_ref();
        let state = state.ok_or_else(|| Error::data("the model has not learned anything yet"))?;
        let preparer = &state.preparer;
        let is_regularized = preparer.l1_shift > 0.0 || preparer.shrink < 1.0;
        let differ = self.params.averages() || is_regularized;
        if differ && state.prediction_weights.get().is_none() {
            let total = if self.params.averages() {
                preparer.average.total()
            } else {
                0.0
            };
            let (l1_shift, shrink) = (preparer.l1_shift as f32, preparer.shrink as f32);
            let weights = state.tiles.iter().map(|tile| {
                control.check()?;
                Ok(tile.prediction_weights(total, l1_shift, shrink))
            });
            let weights = weights.collect::<Result<Vec<Vec<f32>>>>()?;
            // Another thread may have been faster, with the same outcome.
            state.prediction_weights.get_or_init(|| weights);
        }
        Ok(state)
    }
}

impl State {
    /// Calls `consume` with each tile and its scores for all rows of the block.
    fn score_tiles(
        &self,
        rows: &Rows<'_>,
        block: &[u32],
        control: &Control,
        workspace: &mut Workspace,
        mut consume: impl FnMut(&Tile, &[f32]),
    ) -> Result<()> {
        let Workspace {
            row,
            entries,
            ends,
            scores,
        } = workspace;
        entries.columns.clear();
        entries.values.clear();
        ends.clear();
        for &i in block {
            self.preparer.read(rows, i as usize, row);
            entries.columns.extend_from_slice(&row.columns);
            entries.values.extend_from_slice(&row.values);
            ends.push(entries.columns.len());
        }
        let prediction_weights = self.prediction_weights.get();
        for (number, tile) in self.tiles.iter().enumerate() {
            control.check()?;
            let weights = prediction_weights.map_or(&tile.weights, |weights| &weights[number]);
            scores.resize(block.len() * tile.width(), 0.0);
            score_rows(
                weights,
                tile.groups,
                ends,
                &entries.columns,
                &entries.values,
                scores,
            );
            if let Some(span) = self.preparer.span {
                scores.iter_mut().for_each(|p| *p = span.clamp(*p));
            }
            consume(tile, scores);
        }
        Ok(())
    }
}

/// Adds a tile's scores to the best of a row.
fn push_scores(top: &mut TopK, tile: &Tile, scores: &[f32]) {
    let groups = scores
        .chunks_exact(LANES)
        .zip(tile.unseen_mask.chunks_exact(LANES));
    for (group, (scores, mask)) in (0..).zip(groups) {
        let bar = top.bar();
        // Without an early exit, so that it vectorises; mostly there is none.
        let mut any = false;
        for (score, mask) in scores.iter().zip(mask) {
            any |= score + mask > bar;
        }
        if any {
            for (lane, (score, mask)) in (0..).zip(scores.iter().zip(mask)) {
                if score + mask > f32::NEG_INFINITY {
                    top.push(tile.first as u32 + group * LANES as u32 + lane, *score);
                }
            }
        }
    }
}
