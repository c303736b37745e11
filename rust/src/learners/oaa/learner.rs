//! The learner: its parts, its file, and what it adds to the
//! [`OnlineModel`](crate::model::OnlineModel) around it.

use std::ops::Range;

use super::kernels::best_of_tiles;
use super::predict::TilePredictor;
use super::pruned::PrunedWeights;
use super::tile::{self, Tile};
use super::training::{check_memory, Oaa, MAX_DENSE_BYTES};
use super::{class_blocks, Params};
use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Flat, Nest, Persist, Record, Report};
use crate::linear::{AlignedRow, NagTotals};
use crate::model::{block_rows, Learning, Member, OnlineLearner, PredictOptions, Schedule, Start};
use crate::threads::Lent;

/// The totals of lanes without a class, which a new class may take over; files had none once.
const SPARE_TOTALS: &str = "spare_totals";

/// Rows of a block that is predicted.
const MAX_BLOCK_ROWS: usize = 256;

/// What a row costs beside its values, and a value beside the classes, in products.
const OVERHEAD_PRODUCTS: usize = 16;

impl OnlineLearner for Oaa {
    const KIND: &'static str = "oaa";
    const NARROW_ARRAYS: &'static [&'static str] = &["weights", "pruned/weights"];
    const LABEL_SETS: bool = true;
    type Params = Params;
    /// The weights to predict with, tile by tile, where they are not those of the tiles.
    type Frozen = Option<Vec<AlignedRow<f32>>>;
    type Predictor<'a> = TilePredictor<'a>;
    type Memory = ();

    fn name(_params: &Params) -> &'static str {
        "one-against-all"
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        check_memory(params, start)?;
        Ok(Self::for_width(
            params,
            n_classes,
            start.preparation.width(),
        ))
    }

    /// With label sets an answer is right if it is one of them (1 - P@1). Answers use the
    /// weights as they are, not their average; there is none before a class has been seen.
    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        self.learn_chunks(learning, |learning, rows, chunk, bests| {
            for i in 0..rows.len() {
                let class = best_of_tiles(bests, i).map(|best| best.class);
                let labels = chunk.labels.get(i);
                let is_right = class.is_some_and(|class| labels.binary_search(&class).is_ok());
                learning
                    .progress
                    .count(!is_right, chunk.params[i].importance);
            }
        })
    }

    fn fit_in_bulk(
        member: &mut Member<Self>,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<bool> {
        let Some(threshold) = member.learner.params.prune else {
            return Ok(false);
        };
        let (threshold, resources) = (threshold as f32, (n_threads, MAX_DENSE_BYTES));
        class_blocks::fit(member, schedule, batch, threshold, resources, control)?;
        Ok(true)
    }

    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        self.grow_to(n_classes)
    }

    fn check_stream(params: &Params) -> Result<()> {
        match params.prune {
            None => Ok(()),
            Some(prune) => Err(Error::parameter(
                "prune",
                prune,
                "None for partial_fit, which needs all weights; fit learns from scratch",
            )),
        }
    }

    fn freeze(&self, control: &Control) -> Result<Option<Vec<AlignedRow<f32>>>> {
        let share = self.preparer.average_share();
        if self.tiles.is_empty() || share.is_none() {
            return Ok(None);
        }
        let weights = self.tiles.iter().map(|tile| {
            control.check()?;
            Ok(tile.prediction_weights(share))
        });
        weights.collect::<Result<_>>().map(Some)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [Self::Frozen]>,
        _options: &PredictOptions,
        _memory: Lent<'a, ()>,
    ) -> TilePredictor<'a> {
        TilePredictor::new(&members[0], frozen.map(|frozen| &frozen[0]))
    }

    fn block_rows(row_values: usize) -> usize {
        block_rows(row_values, MAX_BLOCK_ROWS)
    }

    fn effort(&self, row_values: usize, _k: usize, _options: &PredictOptions) -> usize {
        if let Some(pruned) = &self.pruned {
            let products = row_values.saturating_mul(pruned.weights_each() + OVERHEAD_PRODUCTS);
            return products.saturating_add(self.n_classes);
        }
        (row_values + OVERHEAD_PRODUCTS).saturating_mul(self.n_classes + OVERHEAD_PRODUCTS)
    }

    fn freeze_rows(&self) -> usize {
        /// Values of a row, about: freezing computes the weights of all slots.
        const VALUES: usize = 32;
        if self.tiles.is_empty() || self.preparer.average_share().is_none() {
            return 0;
        }
        self.preparer.slots.len().div_ceil(VALUES)
    }

    /// Of pruned weights how many there are.
    fn summary(&self, summary: &mut Report) {
        if let Some(pruned) = &self.pruned {
            summary.scalar("n_weights", pruned.n_weights() as u64);
        }
    }

    /// The weights to predict with in the place of those to learn with.
    fn for_prediction(&self, control: &Control) -> Result<Self> {
        let weights = self.freeze(control)?;
        let mut tiles = Vec::with_capacity(self.tiles.len());
        for (number, tile) in self.tiles.iter().enumerate() {
            let frozen = weights
                .as_ref()
                .map(|weights| weights[number].to_vec().into());
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
            pruned: self.pruned.clone(),
        })
    }

    /// Weights and sums are stored as they lie in memory, tile after tile, so that they can be
    /// used in the file. Learning goes on after loading as if nothing had happened.
    fn put(&self, bundle: &mut Bundle) {
        self.preparer.put(bundle);
        bundle.put("columns", self.preparer.slots.columns());
        bundle.put_meta("is_pruned", &self.pruned.is_some());
        if let Some(pruned) = &self.pruned {
            return Nest::put(pruned, "pruned", bundle);
        }
        let n_classes = tile::classes(&self.tiles, self.n_classes).len();
        let masks = tile::by_class(&self.tiles, n_classes, |tile| &tile.unseen_mask);
        let seen: Vec<bool> = masks.iter().map(|&mask| mask == 0.0).collect();
        bool::put(seen.iter(), "seen", bundle);
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            let planes: Vec<&[f32]> = self.tiles.iter().map(|tile| &**tile.planes()[at]).collect();
            bundle.put(name, planes.concat());
        }
        let totals = tile::by_class(&self.tiles, usize::MAX, |tile| &tile.totals);
        let (totals, spare) = totals.split_at(totals.len().min(n_classes));
        NagTotals::put(totals.iter(), "totals", bundle);
        NagTotals::put(spare.iter(), SPARE_TOTALS, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let is_pruned = bundle.meta().get("is_pruned") == Some(&true.into());
        // First of all: nothing as large as K is made unless the file is.
        let of_each_class = if is_pruned { "pruned/biases" } else { "seen" };
        if bundle.arrays().get(of_each_class).map(Array::len) != Some(n_classes) {
            return Err(bundle.damaged(format_args!("it does not have {n_classes} classes")));
        }
        let mut tiles = Vec::new();
        if !is_pruned {
            tiles = Tile::for_classes(n_classes, params);
        }
        let width = preparation.width();
        Self::take_tiles(
            params,
            (0..n_classes, n_classes),
            width,
            tiles,
            for_prediction,
            bundle,
        )
    }
}

impl Oaa {
    /// What was stored of the classes `of_block` of all `n_classes`: of these `tiles`, which have
    /// learned nothing, or pruned.
    pub(super) fn take_tiles(
        params: &Params,
        (of_block, n_classes): (Range<usize>, usize),
        width: usize,
        tiles: Vec<Tile>,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let mut oaa = Self {
            tiles,
            ..Self::without_tiles(params, n_classes, width)
        };
        let is_pruned: bool = bundle.take_meta("is_pruned")?;
        oaa.preparer.fill(bundle)?;
        let columns: Vec<u32> = bundle.take("columns")?;
        if !oaa.preparer.slots.insert_all(&columns) {
            return Err(bundle.damaged("the columns are not the constant and others, once each"));
        }
        if !oaa.preparer.fits(params, for_prediction || is_pruned) {
            return Err(bundle.damaged("the state does not fit the optimizer"));
        }
        if is_pruned {
            let mut inner = bundle.unnest("pruned")?;
            oaa.pruned = Some(PrunedWeights::take(&mut inner, of_block, columns.len())?);
            return Ok(oaa);
        }
        let seen = bool::take(Some(of_block.len()), "seen", bundle)?;
        let n_slots = columns.len();
        if for_prediction {
            oaa.tiles.iter_mut().for_each(Tile::forget_state);
        }
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            let is_kept = |tile: &Tile| usize::from(!tile.planes()[at].is_empty());
            let of_tile = |tile: &Tile| is_kept(tile) * n_slots * tile.width();
            let planes: Flat<f32> =
                bundle.take_flat(name, Some(oaa.tiles.iter().map(of_tile).sum()))?;
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
        let n_totals = if has_totals { of_block.len() } else { 0 };
        let mut totals = NagTotals::take(Some(n_totals), "totals", bundle)?;
        if bundle.arrays().contains_key(&format!("{SPARE_TOTALS}.t")) {
            totals.extend(NagTotals::take(None, SPARE_TOTALS, bundle)?);
        }
        tile::set_by_class(&mut oaa.tiles, &totals, |tile| &mut tile.totals);
        Ok(oaa)
    }
}
