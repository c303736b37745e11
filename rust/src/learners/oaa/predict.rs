//! Prediction: blocks of rows through tiles of weights.
//!
//! A tile's weights are used for all rows of a block before the next tile's
//! are, so they come from the cache; sums stay in registers. Blocks are what
//! threads share.

use rayon::prelude::*;

use super::kernels::score_rows;
use super::learner::{Oaa, State};
use crate::alloc::try_alloc;
use crate::classifier::TopK;
use crate::control::Control;
use crate::data::{RowBuffer, Rows, Scaling};
use crate::error::{Error, Result};
use crate::simd::LANES;
use crate::threads::with_threads;

/// Rows of a block.
const BLOCK: usize = 256;

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
        let width = self.n_classes;
        let mut scores = try_alloc(rows.n_rows(), width, 0.0f32)?;
        let all: Vec<u32> = (0..rows.n_rows() as u32).collect();
        control.set_total(all.len() as u64);
        let work = |block: &[u32], out: &mut [f32]| {
            self.score_block(rows, block, out, control)?;
            control.tick(block.len())
        };
        with_threads(n_threads, |parallel| {
            if parallel {
                all.par_chunks(BLOCK)
                    .zip(scores.par_chunks_mut(BLOCK * width))
                    .try_for_each(|(block, out)| work(block, out))
            } else {
                all.chunks(BLOCK)
                    .zip(scores.chunks_mut(BLOCK * width))
                    .try_for_each(|(block, out)| work(block, out))
            }
        })??;
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
        let state = self.ready(rows, control)?;
        let width = self.n_classes;
        state.each_tile(rows, block, control, |tile, groups, scores| {
            for (row, scores) in scores.chunks_exact(groups * LANES).enumerate() {
                let out = &mut out[row * width..(row + 1) * width];
                let absent = &state.tiles[tile].absent;
                let first = state.tiles[tile].first;
                for ((out, score), absent) in out[first..].iter_mut().zip(scores).zip(absent) {
                    *out = score + absent;
                }
            }
        })
    }

    /// [`predict_topk`](Self::predict_topk) for some of the rows.
    pub(super) fn predict_rows(
        &self,
        rows: &Rows<'_>,
        wanted: &[u32],
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let state = self.ready(rows, control)?;
        let mut labels = try_alloc(wanted.len(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(wanted.len(), k, f32::NEG_INFINITY)?;
        control.set_total(wanted.len() as u64);
        let work = |block: &[u32], labels: &mut [i32], scores: &mut [f32]| {
            let mut tops = vec![TopK::new(k.min(self.n_classes)); block.len()];
            state.each_tile(rows, block, control, |tile, groups, scores| {
                let tile = &state.tiles[tile];
                for (top, scores) in tops.iter_mut().zip(scores.chunks_exact(groups * LANES)) {
                    select(top, tile.first as u32, scores, &tile.absent);
                }
            })?;
            let out = labels.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k));
            for (top, (labels, scores)) in tops.iter().zip(out) {
                top.write(labels, scores);
            }
            control.tick(block.len())
        };
        with_threads(n_threads, |parallel| {
            if parallel {
                wanted
                    .par_chunks(BLOCK)
                    .zip(labels.par_chunks_mut(BLOCK * k))
                    .zip(scores.par_chunks_mut(BLOCK * k))
                    .try_for_each(|((block, labels), scores)| work(block, labels, scores))
            } else {
                wanted
                    .chunks(BLOCK)
                    .zip(labels.chunks_mut(BLOCK * k))
                    .zip(scores.chunks_mut(BLOCK * k))
                    .try_for_each(|((block, labels), scores)| work(block, labels, scores))
            }
        })??;
        Ok((labels, scores))
    }

    /// How many products a prediction of `rows`, or a pass of learning over
    /// them, is about; the making of the weights to predict with included.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// What a row costs beside its values, and a value beside the classes.
        const AT_LEAST: usize = 16;
        let mut values = rows.n_values() + AT_LEAST * rows.n_rows();
        if let Some(state) = &self.state {
            if state.feed.preparation.scaling() == Scaling::Standard {
                values = rows.n_rows().saturating_mul(rows.n_cols() + 1);
            }
            if state.settled.get().is_none() {
                values = values.saturating_add(state.feed.slots.len());
            }
        }
        values.saturating_mul(self.n_classes + AT_LEAST)
    }

    fn ready(&self, rows: &Rows<'_>, control: &Control) -> Result<&State> {
        self.check_width(rows)?;
        let state = self.state.as_ref();
        let state = state.ok_or_else(|| Error::data("the model has not learned anything yet"))?;
        let feed = &state.feed;
        let pulled = feed.gravity > 0.0 || feed.shrink < 1.0;
        if (self.params.averages() || pulled) && state.settled.get().is_none() {
            let total = if self.params.averages() {
                feed.average.total()
            } else {
                0.0
            };
            let (gravity, shrink) = (feed.gravity as f32, feed.shrink as f32);
            let settled = state.tiles.iter().map(|tile| {
                control.check()?;
                Ok(tile.settled(total, gravity, shrink))
            });
            let settled = settled.collect::<Result<Vec<Vec<f32>>>>()?;
            // Another thread may have been faster, with the same outcome.
            state.settled.get_or_init(|| settled);
        }
        Ok(state)
    }
}

impl State {
    /// Gives each tile's number, its width in groups of lanes, and its scores
    /// for all rows of the block to `take`.
    fn each_tile(
        &self,
        rows: &Rows<'_>,
        block: &[u32],
        control: &Control,
        mut take: impl FnMut(usize, usize, &[f32]),
    ) -> Result<()> {
        let mut example = RowBuffer::default();
        let mut all = RowBuffer::default();
        let mut ends = Vec::with_capacity(block.len());
        for &i in block {
            self.feed.read(rows, i as usize, &mut example);
            all.columns.extend_from_slice(&example.columns);
            all.values.extend_from_slice(&example.values);
            ends.push(all.columns.len());
        }
        let settled = self.settled.get();
        let mut scores = Vec::new();
        for (number, tile) in self.tiles.iter().enumerate() {
            control.check()?;
            let weights = settled.map_or(&tile.weights, |settled| &settled[number]);
            scores.resize(block.len() * tile.width(), 0.0);
            score_rows(
                weights,
                tile.groups,
                &ends,
                &all.columns,
                &all.values,
                &mut scores,
            );
            if let Some((low, high)) = self.feed.span {
                scores.iter_mut().for_each(|p| *p = p.clamp(low, high));
            }
            take(number, tile.groups, &scores);
        }
        Ok(())
    }
}

/// Offers a tile's scores to the best of a row.
fn select(top: &mut TopK, first: u32, scores: &[f32], absent: &[f32]) {
    for (group, (scores, absent)) in
        (0..).zip(scores.chunks_exact(LANES).zip(absent.chunks_exact(LANES)))
    {
        let bar = top.bar();
        // Without an early exit, so that it vectorises; mostly there is none.
        let mut any = false;
        for (score, absent) in scores.iter().zip(absent) {
            any |= score + absent > bar;
        }
        if any {
            for (lane, (score, absent)) in (0..).zip(scores.iter().zip(absent)) {
                if score + absent > f32::NEG_INFINITY {
                    top.push(first + group * LANES as u32 + lane, *score);
                }
            }
        }
    }
}
