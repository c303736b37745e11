//! The learner and its training: examples in chunks, each of which the tiles of classes learn by themselves; and new
//! classes for a model that has learned already.
//!
//! Growing keeps full tiles as they are; the last one is widened where it must be, and new ones follow:
//! growing by a class copies one tile at most. A new class begins as all classes do, or takes over a
//! lane that fills up a tile: such lanes learn as classes without an example do.

use rayon::prelude::*;

use super::chunk::{Chunk, NegativeSampler};
use super::kernels::{learn_shared, learn_softmax, BestClass};
use super::preparer::ExamplePreparer;
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::{adaptive, Params};
use crate::control::Control;
use crate::data::{RowBuffer, Scaling};
use crate::error::Result;
use crate::memory;
use crate::model::{Learning, Start};
use crate::simd::LANES;
use crate::threads::with_threads;

/// Bytes of weights that are dense at a time, about, if there are more tiles than threads.
pub(super) const MAX_DENSE_BYTES: usize = 1 << 29;

/// A one-against-all classifier that learns online.
///
/// Right where K times the number of non-zeros of an example is affordable;
/// its accuracy is what trees of logarithmic cost are measured against.
///
/// A class of which no example has been learned has no score and is never
/// predicted (except with the optimizer "nag", which follows Vowpal Wabbit).
#[derive(Debug, Clone)]
pub struct Oaa {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    pub(super) preparer: ExamplePreparer,
    /// None once they are pruned.
    pub(super) tiles: Vec<Tile>,
    /// What is left of the weights after `fit` with `prune`.
    pub(super) pruned: Option<PrunedWeights>,
}

impl Oaa {
    /// One that has learned nothing, for examples of `width` columns.
    pub(super) fn for_width(params: &Params, n_classes: usize, width: usize) -> Self {
        Self {
            tiles: Tile::for_classes(n_classes, params),
            ..Self::without_tiles(params, n_classes, width)
        }
    }

    /// One that has no classes yet of the `n_classes`.
    pub(super) fn without_tiles(params: &Params, n_classes: usize, width: usize) -> Self {
        Self {
            params: params.clone(),
            n_classes,
            preparer: ExamplePreparer::new(params, n_classes, width),
            tiles: Vec::new(),
            pruned: None,
        }
    }

    /// Drops the weights to predict with below `threshold`, and all tiles, one after the other.
    pub(super) fn prune(
        &mut self,
        threshold: f32,
        control: &Control,
    ) -> Result<Vec<PrunedWeights>> {
        let share = self.preparer.average_share();
        let tiles = std::mem::take(&mut self.tiles).into_iter();
        let parts = tiles.map(|tile| {
            control.check()?;
            let weights = tile.prediction_weights(share);
            Ok(PrunedWeights::from_tile(
                &tile,
                &weights,
                self.n_classes,
                threshold,
            ))
        });
        parts.collect()
    }
}

impl Oaa {
    /// Learns the examples chunk by chunk, and calls `on_chunk` with the rows of each, with
    /// itself, and tile by tile with the best class of each example before it was learned.
    ///
    /// Preparing examples looks at no weights: on several threads the next chunk is prepared while
    /// the tiles learn this one. Stopped, what was prepared is learned.
    pub(super) fn learn_chunks(
        &mut self,
        learning: &mut Learning<'_>,
        mut on_chunk: impl FnMut(&mut Learning<'_>, &[u32], &Chunk, &[Vec<BestClass>]) + Send,
    ) -> Result<()> {
        // The softmax needs the scores of all tiles before any may step.
        let single = self.params.loss.single();
        let n_threads = single.map_or(1, |_| learning.n_threads);
        with_threads(n_threads, |parallel| {
            let new_chunk = || Chunk::new(self.n_classes, self.preparer.sampler.weight());
            let (mut chunk, mut next) = (new_chunk(), new_chunk());
            let mut bests: Vec<Vec<BestClass>> = vec![Vec::new(); self.tiles.len()];
            let mut order = learning.order;
            self.prepare_chunk(learning, order, &mut chunk);
            let mut outcome = Ok(());
            while !chunk.rows.is_empty() {
                self.preparer.rescale_tiles(&mut self.tiles);
                let (learned, rest) = order.split_at(chunk.rows.len());
                let rest = if outcome.is_ok() { rest } else { &[] };
                let mut trainer = TileTrainer {
                    params: &self.params,
                    tiles: &mut self.tiles,
                    n_slots: self.preparer.slots.len(),
                };
                if parallel {
                    let preparer = &mut self.preparer;
                    rayon::join(
                        || trainer.learn(&chunk, true, &mut bests),
                        || preparer.fill_chunk(&self.params, learning, rest, &mut next),
                    );
                } else {
                    trainer.learn(&chunk, false, &mut bests);
                }
                on_chunk(learning, learned, &chunk, &bests);
                outcome = outcome.and(learning.report(learned.len()));
                if !parallel {
                    let rest = if outcome.is_ok() { rest } else { &[] };
                    self.prepare_chunk(learning, rest, &mut next);
                }
                std::mem::swap(&mut chunk, &mut next);
                order = rest;
            }
            outcome
        })?
    }

    fn prepare_chunk(&mut self, learning: &mut Learning<'_>, order: &[u32], chunk: &mut Chunk) {
        self.preparer
            .fill_chunk(&self.params, learning, order, chunk);
    }
}

/// What learns a chunk.
struct TileTrainer<'a> {
    params: &'a Params,
    tiles: &'a mut [Tile],
    /// Features that the chunk's examples and those before have.
    n_slots: usize,
}

impl TileTrainer<'_> {
    /// Learns a chunk; `bests` gets, tile by tile, the best class of each example as
    /// it stood before the example was learned.
    fn learn(&mut self, chunk: &Chunk, parallel: bool, bests: &mut [Vec<BestClass>]) {
        let (loss, is_adaptive) = (self.params.loss.single(), self.params.is_adaptive());
        let work = |(tile, bests): (&mut Tile, &mut Vec<BestClass>)| {
            tile.grow(self.n_slots);
            // The lists of other threads' tiles lie in the same cache line: their lengths change
            // with every example, so this one's is kept elsewhere until it is done.
            let mut of_tile = std::mem::take(bests);
            of_tile.clear();
            match loss {
                Some(loss) if is_adaptive => adaptive::learn(tile, chunk, loss, &mut of_tile),
                Some(loss) => learn_shared(tile, chunk, loss, &mut of_tile),
                None => {}
            }
            *bests = of_tile;
        };
        if parallel {
            self.tiles.par_iter_mut().zip(&mut *bests).for_each(work);
        } else {
            self.tiles.iter_mut().zip(&mut *bests).for_each(work);
        }
        if loss.is_none() {
            learn_softmax(self.tiles, chunk, bests);
        }
    }
}

impl Oaa {
    /// Adds classes, so that there are `n_classes`.
    pub(super) fn grow_to(&mut self, n_classes: usize) -> Result<()> {
        let n_slots = self.preparer.slots.len();
        check_growth(&self.params, &self.tiles, n_classes, n_slots)?;
        let mut old = std::mem::take(&mut self.tiles).into_iter();
        for mut tile in Tile::for_classes(n_classes, &self.params) {
            match old.next() {
                Some(known) if known.width() == tile.width() => tile = known,
                narrower => {
                    tile.grow(n_slots);
                    if let Some(narrower) = narrower {
                        tile.copy_lanes(&narrower);
                    }
                }
            }
            tile.let_compete(n_classes, &self.params);
            self.tiles.push(tile);
        }
        let mut sampler =
            NegativeSampler::new(self.params.n_negatives, n_classes, self.params.seed);
        sampler.position = self.preparer.sampler.position;
        self.preparer.sampler = sampler;
        self.n_classes = n_classes;
        Ok(())
    }
}

/// Refuses weights for which there is no memory.
pub(super) fn check_memory(params: &Params, start: &Start<'_>) -> Result<()> {
    let (n_classes, preparation, rows) = (start.n_classes, start.preparation, &start.batch.rows);
    let is_pruned = params.prune.is_some() && start.is_all;
    // Early stopping holds a copy of the best pass.
    let copies = 1 + usize::from(params.early_stopping && start.is_all && params.n_passes > 1);
    let needed = |n_columns: usize| {
        let classes = n_classes.next_multiple_of(LANES) * Tile::n_planes(params) * copies;
        let dense = classes
            .saturating_mul(n_columns)
            .saturating_mul(size_of::<f32>());
        let most = if is_pruned {
            MAX_DENSE_BYTES
        } else {
            usize::MAX
        };
        dense.min(most)
    };
    let mut n_columns = preparation.width();
    if memory::fits(needed(n_columns)) {
        return Ok(());
    }
    if preparation.scaling() != Scaling::Standard {
        // Only columns that occur have weights.
        let (mut row, mut seen) = (RowBuffer::default(), vec![false; n_columns]);
        for i in start.batch.present() {
            preparation.read(rows, i as usize, &mut row);
            row.columns
                .iter()
                .for_each(|&column| seen[column as usize] = true);
        }
        n_columns = seen.into_iter().filter(|&is_seen| is_seen).count();
    }
    let what = format!("one-against-all's weights of {n_classes} classes x {n_columns} features");
    let instead = "prune= holds few of them, n_bits= hashes features into fewer, and \
                   LdSMClassifier, RecallTreeClassifier and LOMTreeClassifier do without";
    memory::check(needed(n_columns), &what, instead)
}

/// Refuses classes for whose weights there is no memory.
fn check_growth(params: &Params, tiles: &[Tile], n_classes: usize, n_slots: usize) -> Result<()> {
    let there: usize = tiles.iter().map(Tile::width).sum();
    let new = n_classes.saturating_sub(there);
    if new == 0 {
        return Ok(());
    }
    let needed = new
        .saturating_mul(Tile::n_planes(params) * size_of::<f32>())
        .saturating_mul(n_slots);
    let what = format!("one-against-all's weights of {new} more classes x {n_slots} features");
    let instead = "LdSMClassifier, RecallTreeClassifier and LOMTreeClassifier do without";
    memory::check(needed, &what, instead)
}
