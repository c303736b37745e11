//! Training: examples in chunks, each of which the tiles of classes learn by themselves.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use rayon::prelude::*;

use super::chunk::Chunk;
use super::learner::Oaa;
use super::scoring::BestClass;
use super::tile::Tile;
use super::{adaptive, shared_direction, softmax, Params};
use crate::error::Result;
use crate::linear::Optimizer;
use crate::model::Learning;
use crate::threads::with_threads;

impl Oaa {
    /// Learns the examples chunk by chunk, and calls `on_chunk` with the rows of each, with
    /// itself, and tile by tile with the best class of each example before it was learned.
    ///
    /// Preparing examples looks at no weights: on several threads the next chunk is prepared while
    /// the tiles learn this one. Stopped, what was prepared is learned.
    pub(super) fn learn_chunks(
        &mut self,
        learning: &mut Learning<'_>,
        on_chunk: impl FnMut(&mut Learning<'_>, &[u32], &Chunk, &[Vec<BestClass>]) + Send,
    ) -> Result<()> {
        let learned = catch_unwind(AssertUnwindSafe(|| self.learn_all(learning, on_chunk)));
        learned.unwrap_or_else(|no_memory| {
            self.forget_unweighted();
            self.preparer.rescale_tiles(&mut self.tiles);
            resume_unwind(no_memory)
        })
    }

    /// Forgets the features that not all tiles have weights for, where memory did not suffice.
    fn forget_unweighted(&mut self) {
        let slots = &mut self.preparer.slots;
        let squares = &mut self.preparer.preconditioner.squares;
        let mut n = self
            .tiles
            .iter()
            .map(Tile::n_slots)
            .fold(slots.len(), usize::min);
        if self.params.optimizer == Optimizer::Pn {
            n = n.min(squares.len());
        }
        slots.truncate(n);
        squares.truncate(n);
        self.tiles.iter_mut().for_each(|tile| tile.truncate(n));
    }

    fn learn_all(
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
                Some(loss) => shared_direction::learn(tile, chunk, loss, &mut of_tile),
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
            softmax::learn(self.tiles, chunk, bests);
        }
    }
}

/// The best class of example `i` over some tiles, the lowest of equals.
pub(super) fn best_of_tiles(bests: &[Vec<BestClass>], i: usize) -> Option<BestClass> {
    let bests = bests.iter().filter_map(|bests| bests.get(i));
    let seen = bests.filter(|best| best.score > f32::NEG_INFINITY);
    let top = seen.reduce(|top, best| if best.score > top.score { best } else { top });
    top.copied()
}
