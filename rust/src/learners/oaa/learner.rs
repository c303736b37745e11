//! The learner: chunks of examples, tiles of classes, and what it adds to the
//! [`OnlineModel`](crate::classifier::OnlineModel) around it.

use rayon::prelude::*;

use super::chunk::Chunk;
use super::predict::TilePredictor;
use super::preparer::ExamplePreparer;
use super::scoring::BestClass;
use super::tile::{self, Tile};
use super::{adaptive, shared_direction, softmax, Params};
use crate::alloc::can_alloc;
use crate::classifier::{block_rows, Learning, Member, OnlineLearner, PredictOptions, Start};
use crate::control::Control;
use crate::data::Preparation;
use crate::error::{Error, Result};
use crate::file::{Bundle, Flat, Persist, Record};
use crate::linear::NagTotals;
use crate::threads::with_threads;

/// Bytes that a class takes before anything is learned of it, at least.
const CLASS: usize = 16;

/// Rows of a block that is predicted.
const BLOCK: usize = 256;

/// What a row costs beside its values, and a value beside the classes, in products.
const AT_LEAST: usize = 16;

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
    pub(super) tiles: Vec<Tile>,
}

impl Oaa {
    /// One that has learned nothing, for examples of `width` columns.
    pub(super) fn of_width(params: &Params, n_classes: usize, width: usize) -> Self {
        Self {
            params: params.clone(),
            n_classes,
            preparer: ExamplePreparer::new(params, n_classes, width),
            tiles: Tile::for_classes(n_classes, params),
        }
    }

    /// Learns a chunk; `bests` gets, tile by tile, the best class of each example as
    /// it stood before the example was learned.
    fn learn_chunk(&mut self, chunk: &Chunk, parallel: bool, bests: &mut [Vec<BestClass>]) {
        let n_slots = self.preparer.slots.len();
        let (loss, is_adaptive) = (self.params.loss.single(), self.params.is_adaptive());
        let work = |(tile, bests): (&mut Tile, &mut Vec<BestClass>)| {
            tile.grow(n_slots);
            bests.clear();
            match loss {
                Some(loss) if is_adaptive => adaptive::learn(tile, chunk, loss, bests),
                Some(loss) => shared_direction::learn(tile, chunk, loss, bests),
                None => {}
            }
        };
        if parallel {
            self.tiles.par_iter_mut().zip(&mut *bests).for_each(work);
        } else {
            self.tiles.iter_mut().zip(&mut *bests).for_each(work);
        }
        if loss.is_none() {
            softmax::learn(&mut self.tiles, chunk, bests);
        }
    }
}

/// The best class of example `i` over all tiles, the lowest of equals.
fn best_of_tiles(bests: &[Vec<BestClass>], i: usize) -> Option<u32> {
    let bests = bests.iter().filter_map(|bests| bests.get(i));
    let seen = bests.filter(|best| best.score > f32::NEG_INFINITY);
    let top = seen.reduce(|top, best| if best.score > top.score { best } else { top });
    top.map(|top| top.class)
}

impl OnlineLearner for Oaa {
    const KIND: &'static str = "oaa";
    const NARROW: &'static [&'static str] = &["weights"];
    const LABEL_SETS: bool = true;
    const ANSWERS: bool = true;
    type Params = Params;
    /// The weights to predict with, tile by tile, where they are not those of the tiles.
    type Frozen = Option<Vec<Vec<f32>>>;
    type Predictor<'a> = TilePredictor<'a>;

    fn name(_params: &Params) -> &'static str {
        "one-against-all"
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        if !can_alloc(n_classes.checked_mul(CLASS)) {
            return Err(Error::data(format!("no memory for {n_classes} classes")));
        }
        Ok(Self::of_width(params, n_classes, start.preparation.width()))
    }

    /// With label sets an answer is right if it is one of them (1 - P@1). Answers use the
    /// weights as they are, not their average; there is none before a class has been seen.
    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        // The softmax needs the scores of all tiles before any may step.
        let single = self.params.loss.single();
        let n_threads = single.map_or(1, |_| learning.n_threads);
        with_threads(n_threads, |parallel| {
            let mut chunk = Chunk::new(self.n_classes, self.preparer.sampler.weight());
            let mut bests: Vec<Vec<BestClass>> = vec![Vec::new(); self.tiles.len()];
            let mut order = learning.order;
            while !order.is_empty() {
                self.preparer.rescale(&mut self.tiles);
                self.preparer
                    .fill_chunk(&self.params, learning, order, &mut chunk);
                self.learn_chunk(&chunk, parallel, &mut bests);
                let (learned, rest) = order.split_at(chunk.rows.len());
                for (i, &row) in learned.iter().enumerate() {
                    let class = best_of_tiles(&bests, i);
                    if let Some(predicted) = &mut learning.predicted {
                        predicted[row as usize] = class.map_or(-1, |class| class as i32);
                    }
                    let labels = chunk.labels.get(i);
                    let is_right = class.is_some_and(|class| labels.binary_search(&class).is_ok());
                    let params = chunk.params[i];
                    learning.progress.count(!is_right, params.importance);
                }
                order = rest;
                learning.report(learned.len())?;
            }
            Ok(())
        })?
    }

    fn freeze(&self, control: &Control) -> Result<Option<Vec<Vec<f32>>>> {
        let preparer = &self.preparer;
        let total = preparer.average.total();
        if total == 0.0 && preparer.l1_shift == 0.0 && preparer.shrink == 1.0 {
            return Ok(None);
        }
        let (l1_shift, shrink) = (preparer.l1_shift as f32, preparer.shrink as f32);
        let weights = self.tiles.iter().map(|tile| {
            control.check()?;
            Ok(tile.prediction_weights(total, l1_shift, shrink))
        });
        weights.collect::<Result<_>>().map(Some)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: &'a [Self::Frozen],
        _options: &PredictOptions,
    ) -> TilePredictor<'a> {
        TilePredictor::new(&members[0], frozen[0].as_deref())
    }

    fn block_rows(row_values: usize) -> usize {
        block_rows(row_values, BLOCK)
    }

    fn effort(&self, row_values: usize, _k: usize, _options: &PredictOptions) -> usize {
        (row_values + AT_LEAST).saturating_mul(self.n_classes + AT_LEAST)
    }

    fn freeze_effort(&self) -> usize {
        let n_slots = self.preparer.slots.len();
        n_slots.saturating_mul(self.n_classes + AT_LEAST)
    }

    /// The weights to predict with in the place of those to learn with.
    fn for_prediction(&self, control: &Control) -> Result<Self> {
        let weights = self.freeze(control)?;
        let mut tiles = Vec::with_capacity(self.tiles.len());
        for (number, tile) in self.tiles.iter().enumerate() {
            let frozen = weights
                .as_ref()
                .map(|weights| weights[number].clone().into());
            tiles.push(Tile {
                weights: frozen.unwrap_or_else(|| tile.weights.clone()),
                ..Tile::without_weights(tile)
            });
        }
        Ok(Self {
            params: self.params.clone(),
            n_classes: self.n_classes,
            preparer: self.preparer.for_prediction(),
            tiles,
        })
    }

    /// Weights and sums are stored as they lie in memory, tile after tile, so that they can be
    /// used in the file. Learning goes on after loading as if nothing had happened.
    fn put(&self, bundle: &mut Bundle) {
        self.preparer.put(bundle);
        bundle.put("columns", self.preparer.slots.columns());
        let masks = tile::by_class(&self.tiles, self.n_classes, |tile| &tile.unseen_mask);
        let seen: Vec<bool> = masks.iter().map(|&mask| mask == 0.0).collect();
        bool::put(seen.iter(), "seen", bundle);
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            let planes: Vec<&[f32]> = self.tiles.iter().map(|tile| &**tile.planes()[at]).collect();
            bundle.put(name, planes.concat());
        }
        let totals = tile::by_class(&self.tiles, self.n_classes, |tile| &tile.totals);
        NagTotals::put(totals.iter(), "totals", bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        // First of all: nothing as large as K is made unless the file is.
        let seen = bool::take(Some(n_classes), "seen", bundle)?;
        let mut oaa = Self::of_width(params, n_classes, preparation.width());
        oaa.preparer.fill(bundle)?;
        let columns: Vec<u32> = bundle.take("columns")?;
        if !oaa.preparer.slots.insert_all(&columns) {
            return Err(bundle.damaged("the columns are not the constant and others, once each"));
        }
        if for_prediction {
            oaa.tiles.iter_mut().for_each(Tile::forget_state);
        }
        if !oaa.preparer.fits(params, for_prediction) {
            return Err(bundle.damaged("the state does not fit the optimizer"));
        }
        let n_slots = columns.len();
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            let of_tile = |tile: &Tile| match tile.planes()[at].is_empty() {
                true => 0,
                false => n_slots * tile.width(),
            };
            let planes: Flat<f32> =
                bundle.take_flat_exactly(name, oaa.tiles.iter().map(of_tile).sum())?;
            let mut start = 0;
            for tile in &mut oaa.tiles {
                let end = start + of_tile(tile);
                *tile.planes_mut()[at] = planes.part(start..end);
                start = end;
            }
        }
        let unseen = seen
            .iter()
            .map(|&seen| if seen { 0.0 } else { f32::NEG_INFINITY });
        let unseen: Vec<f32> = unseen.collect();
        tile::set_by_class(&mut oaa.tiles, &unseen, |tile| &mut tile.unseen_mask);
        let has_totals = oaa.preparer.span.is_some() && !for_prediction;
        let n_totals = if has_totals { n_classes } else { 0 };
        let totals = NagTotals::take(Some(n_totals), "totals", bundle)?;
        tile::set_by_class(&mut oaa.tiles, &totals, |tile| &mut tile.totals);
        Ok(oaa)
    }
}
