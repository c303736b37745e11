//! The learner and its training: the tiles of classes learn examples in chunks, each tile by itself.
//!
//! New classes leave full tiles as they are. The last tile is widened if necessary, and new tiles
//! follow: adding a class copies at most one tile. A new class starts like all classes, or takes
//! over a lane of padding, which has learned like a class without examples.

use rayon::prelude::*;

use super::chunk::{Chunk, NegativeSampler};
use super::kernels::{learn_softmax, BestClass};
use super::preparer::ExamplePreparer;
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::{adaptive, kernels, Params};
use crate::control::Control;
use crate::data::{Batch, Preparation, RowBuffer, Scaling};
use crate::error::Result;
use crate::file::is_score;
use crate::model::{Learning, Mistakes};
use crate::simd::LANES;
use crate::threads::with_threads;
use crate::{memory, record};

/// Approximate number of bytes of weights in memory while the others are pruned or not yet learned,
/// if there are more tiles than threads.
pub(super) const MAX_DENSE_BYTES: usize = 1 << 29;

/// An online one-against-all classifier.
///
/// It suits data for which K times the number of non-zeros of an example is affordable. Trees with
/// logarithmic cost are compared with its accuracy.
///
/// A class that no example had has no score and is never predicted, except with the optimizer
/// "nag", which follows Vowpal Wabbit.
#[derive(Debug, Clone)]
pub struct Oaa {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    pub(super) preparer: ExamplePreparer,
    /// Tiles of the classes; empty after pruning.
    pub(super) tiles: Vec<Tile>,
    /// Weights that remain after `fit` with `prune`.
    pub(super) pruned: Option<PrunedWeights>,
    /// Features that `fit` will see, for which tiles reserve memory; 0 if unknown.
    pub(super) n_expected: usize,
}

/// The best class of some tiles for an example, before it was learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// Score of the class; minus infinity if no class of the tiles had been seen.
    score: f32,
    is_right: bool,
    /// Importance of the example.
    importance: f32,
}

record!(Answer {
    score: is_score,
    is_right,
    importance
});

impl Answer {
    /// Returns the answer for example `i` of a chunk, from the best class of each tile. Equal scores
    /// go to the lowest class.
    fn new(bests: &[Vec<BestClass>], chunk: &Chunk, i: usize) -> Self {
        let unseen = BestClass {
            score: f32::NEG_INFINITY,
            class: u32::MAX,
        };
        let best = bests.iter().map(|bests| bests[i]);
        let best = best.fold(unseen, |a, b| if b.score > a.score { b } else { a });
        Self {
            score: best.score,
            is_right: chunk.labels.get(i).binary_search(&best.class).is_ok(),
            importance: chunk.params[i].importance,
        }
    }

    /// Returns the better of two answers for an example. Equal scores go to `self`, whose classes
    /// come first.
    pub fn or(self, other: Self) -> Self {
        if other.score > self.score {
            other
        } else {
            self
        }
    }

    /// Adds the answer to the progressive loss. With label sets it is right if the class is one of
    /// them (1 - P@1).
    pub fn count(&self, progress: &mut Mistakes) {
        progress.count(!self.is_right, self.importance);
    }
}

impl Oaa {
    /// Returns a learner without tiles, for examples of `width` columns.
    pub(super) fn without_tiles(params: &Params, n_classes: usize, width: usize) -> Self {
        Self {
            params: params.clone(),
            n_classes,
            preparer: ExamplePreparer::new(params, n_classes, width),
            tiles: Vec::new(),
            pruned: None,
            n_expected: 0,
        }
    }

    /// Learns the examples chunk by chunk, and calls `on_answer` with the answer for each before it
    /// was learned, by the current weights and not their average.
    ///
    /// The next chunk is prepared before, or while, the tiles learn this one, as preparation uses no
    /// weights. After a stop the prepared chunk is learned too.
    pub(super) fn learn_chunks(
        &mut self,
        learning: &mut Learning<'_>,
        mut on_answer: impl FnMut(&mut Mistakes, Answer) + Send,
    ) -> Result<()> {
        // The softmax needs the scores of all tiles before any of them may step.
        let single = self.params.loss.single();
        let n_threads = single.map_or(1, |_| learning.n_threads);
        with_threads(n_threads, |parallel| {
            let new_chunk = || Chunk::new(self.n_classes, self.preparer.sampler.weight());
            let (mut chunk, mut next) = (new_chunk(), new_chunk());
            let mut bests: Vec<Vec<BestClass>> = vec![Vec::new(); self.tiles.len()];
            let mut order = learning.order;
            let (params, tiles, preparer) = (&self.params, &mut self.tiles, &mut self.preparer);
            preparer.fill_chunk(params, learning, order, &mut chunk);
            let mut outcome = Ok(());
            while chunk.rows.len() > 0 {
                let n_slots = (preparer.slots.len(), self.n_expected);
                let n_learned = chunk.rows.len();
                order = if outcome.is_ok() {
                    &order[n_learned..]
                } else {
                    &[]
                };
                let mut learn =
                    || learn_chunk(params, tiles, n_slots, &chunk, parallel, &mut bests);
                let mut prepare = || preparer.fill_chunk(params, learning, order, &mut next);
                if parallel {
                    rayon::join(learn, prepare);
                } else {
                    learn();
                    prepare();
                }
                for i in 0..n_learned {
                    on_answer(learning.progress, Answer::new(&bests, &chunk, i));
                }
                outcome = outcome.and(learning.report(n_learned));
                std::mem::swap(&mut chunk, &mut next);
            }
            outcome
        })?
    }

    /// Drops the tiles one after the other and keeps their prediction weights of at least `prune`,
    /// if that parameter is given.
    pub(super) fn prune(&mut self, control: &Control) -> Result<()> {
        let Some(threshold) = self.params.prune else {
            return Ok(());
        };
        let share = self.preparer.average_share();
        let mut parts = Vec::new();
        for tile in std::mem::take(&mut self.tiles) {
            control.check()?;
            let (weights, threshold) = (tile.prediction_weights(share), threshold as f32);
            let part = PrunedWeights::from_tile(&tile, &weights, self.n_classes, threshold);
            parts.push(part);
        }
        self.pruned = Some(PrunedWeights::concat(&parts));
        self.preparer = self.preparer.for_prediction();
        Ok(())
    }

    /// Adds classes, so that there are `n_classes`.
    pub(super) fn grow_to(&mut self, n_classes: usize) -> Result<()> {
        let n_slots = self.preparer.slots.len();
        let n_lanes: usize = self.tiles.iter().map(Tile::width).sum();
        let new = n_classes.saturating_sub(n_lanes);
        let needed =
            (new * Tile::n_planes(&self.params) * size_of::<f32>()).saturating_mul(n_slots);
        memory::check(
            needed,
            &format!("one-against-all's weights of {new} more classes x {n_slots} features"),
            "use LdSMClassifier, RecallTreeClassifier or LOMTreeClassifier",
        )?;
        let mut old = std::mem::take(&mut self.tiles).into_iter();
        for mut tile in Tile::for_classes(n_classes, &self.params) {
            match old.next() {
                Some(known) if known.width() == tile.width() => tile = known,
                narrower => {
                    tile.grow((n_slots, n_slots));
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

/// Learns a chunk. `n_slots` has the number of features of its examples and those before, and that
/// for which there should be memory. Replaces `bests`, per tile, by the best class of each example
/// before it was learned.
fn learn_chunk(
    params: &Params,
    tiles: &mut [Tile],
    n_slots: (usize, usize),
    chunk: &Chunk,
    parallel: bool,
    bests: &mut [Vec<BestClass>],
) {
    let loss = params.loss.single();
    let work = |(tile, bests): (&mut Tile, &mut Vec<BestClass>)| {
        tile.grow(n_slots);
        if let Some(factor) = chunk.rescaling {
            let sums = tile.average_sums.to_mut().iter_mut();
            sums.for_each(|u| *u *= factor);
        }
        // The vectors of other threads' tiles lie in the same cache line, and their lengths change
        // with every example. So this one is moved out until the tile is done.
        let mut own_bests = std::mem::take(bests);
        own_bests.clear();
        match loss {
            Some(loss) if params.is_adaptive() => {
                adaptive::learn(tile, chunk, loss, &mut own_bests);
            }
            Some(loss) => kernels::learn(tile, chunk, loss, &mut own_bests),
            None => {}
        }
        *bests = own_bests;
    };
    if parallel {
        // One tile at a time, because all threads wait for the last tile of a chunk.
        let tiles = tiles.par_iter_mut().zip(&mut *bests);
        tiles.with_max_len(1).for_each(work);
    } else {
        tiles.iter_mut().zip(&mut *bests).for_each(work);
    }
    if loss.is_none() {
        learn_softmax(tiles, chunk, bests);
    }
}

/// Returns the number of columns of a batch, after preparation.
pub(super) fn count_columns(preparation: &Preparation, batch: &Batch<'_>) -> usize {
    let width = preparation.width();
    if preparation.scaling() == Scaling::Standard {
        return width;
    }
    let (mut row, mut seen) = (RowBuffer::default(), vec![false; width]);
    for i in batch.present() {
        preparation.read(&batch.rows, i as usize, &mut row);
        let columns = row.columns.iter();
        columns.for_each(|&column| seen[column as usize] = true);
    }
    seen.into_iter().filter(|&is_seen| is_seen).count()
}

/// Refuses weights of `n_classes` that do not fit into memory. `is_all` is true for `fit`.
pub(super) fn check_memory(
    params: &Params,
    n_classes: usize,
    preparation: &Preparation,
    batch: &Batch<'_>,
    is_all: bool,
) -> Result<()> {
    let is_pruned = params.prune.is_some() && is_all;
    let most_bytes = if is_pruned {
        MAX_DENSE_BYTES
    } else {
        usize::MAX
    };
    // Early stopping keeps a copy of the best pass.
    let copies = 1 + usize::from(params.early_stopping && is_all && params.n_passes > 1);
    let n_lanes = n_classes.next_multiple_of(LANES);
    let column_bytes = n_lanes * Tile::n_planes(params) * copies * size_of::<f32>();
    let needed = |n_columns| column_bytes.saturating_mul(n_columns).min(most_bytes);
    if memory::fits(needed(preparation.width())) {
        return Ok(());
    }
    // Only columns that occur have weights.
    let n_columns = count_columns(preparation, batch);
    let what = format!("one-against-all's weights of {n_classes} classes x {n_columns} features");
    let instead = "set prune= to keep few of them or n_bits= to hash features into fewer, or use \
                   LdSMClassifier, RecallTreeClassifier or LOMTreeClassifier";
    memory::check(needed(n_columns), &what, instead)
}
