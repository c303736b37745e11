//! The learner's side of the [`OnlineModel`](crate::model::OnlineModel), and its file.

use super::predict::TilePredictor;
use super::pruned::PrunedWeights;
use super::tile::{self, averaged, Tile};
use super::training::{check_memory, count_columns, Oaa, MAX_DENSE_BYTES};
use super::{class_blocks, Params};
use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Flat, Nest, Persist, Record, Report};
use crate::linear::{AlignedRow, NagTotals};
use crate::model::{
    block_rows, First, Learning, LinearScorers, Member, OnlineLearner, PredictOptions, Schedule,
    Start,
};
use crate::threads::Lent;

/// Totals of padding lanes, which a new class may take over. Files of earlier versions lack them.
const SPARE_TOTALS: &str = "spare_totals";

/// Most rows of a block in prediction.
const MAX_BLOCK_ROWS: usize = 256;

/// Fixed cost of a row, in values, and of a value, in classes.
const OVERHEAD_PRODUCTS: usize = 16;

impl OnlineLearner for Oaa {
    const KIND: &'static str = "oaa";
    const NARROW_ARRAYS: &'static [&'static str] = &["weights", "pruned/weights"];
    type Params = Params;
    /// Averaged weights, tile by tile; none if predictions use the weights of the tiles.
    type Frozen = Option<Vec<AlignedRow<f32>>>;
    type Predictor<'a> = TilePredictor<'a>;
    type Memory = ();

    fn name(_params: &Params) -> &'static str {
        "one-against-all"
    }

    fn check_label_sets(_params: &Params) -> Result<()> {
        Ok(())
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let (n_classes, preparation) = (start.n_classes, start.preparation);
        let is_all = start.first == First::All;
        check_memory(params, n_classes, preparation, start.batch, is_all)?;
        let tiles = Tile::for_classes(n_classes, params);
        // Counting takes too long for few classes.
        let n_expected = if is_all && tiles.len() > 1 {
            count_columns(preparation, start.batch)
        } else {
            0
        };
        Ok(Self {
            tiles,
            n_expected,
            ..Self::without_tiles(params, n_classes, preparation.width())
        })
    }

    fn join(
        params: &Params,
        n_classes: usize,
        known: &[usize],
        members: Vec<Member<Self>>,
    ) -> Result<Vec<Member<Self>>> {
        Ok(vec![class_blocks::join(params, n_classes, known, members)?])
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        self.learn_chunks(learning, |progress, answer| answer.count(progress))
    }

    fn fit_otherwise(
        member: &mut Member<Self>,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<bool> {
        let is_pruned = member.learner.params.prune.is_some();
        if is_pruned {
            class_blocks::fit(member, schedule, batch, n_threads, MAX_DENSE_BYTES, control)?;
        }
        Ok(is_pruned)
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
        /// Typical number of values of a row; freezing computes the weights of all slots.
        const VALUES: usize = 32;
        if self.tiles.is_empty() || self.preparer.average_share().is_none() {
            return 0;
        }
        self.preparer.slots.len().div_ceil(VALUES)
    }

    fn scorers(&self) -> Option<&dyn LinearScorers> {
        Some(self)
    }

    /// Reports the number of weights after pruning.
    fn summary(&self, summary: &mut Report) {
        if let Some(pruned) = &self.pruned {
            summary.scalar("n_weights", pruned.n_weights() as u64);
        }
    }

    /// Replaces the weights by those that predictions use.
    fn for_prediction(&self, control: &Control) -> Result<Self> {
        let share = self.preparer.average_share();
        let tiles = self.tiles.iter().map(|tile| {
            control.check()?;
            let weights = tile.prediction_weights(share).to_vec();
            Ok(tile.for_prediction(weights.into()))
        });
        Ok(Self {
            params: self.params.clone(),
            n_classes: self.n_classes,
            preparer: self.preparer.for_prediction(),
            tiles: tiles.collect::<Result<_>>()?,
            pruned: self.pruned.clone(),
            n_expected: 0,
        })
    }

    /// Stores weights and sums tile by tile, as in memory, so that they can be used in the mapped
    /// file. Training continues exactly after loading.
    fn put(&self, bundle: &mut Bundle) {
        self.preparer.put(bundle);
        bundle.put("columns", self.preparer.slots.keys());
        bundle.put_meta("is_pruned", &self.pruned.is_some());
        if let Some(pruned) = &self.pruned {
            return Nest::put(pruned, "pruned", bundle);
        }
        let n_classes = tile::classes(&self.tiles, self.n_classes).len();
        let masks = self.tiles.iter().flat_map(|tile| &tile.unseen_mask);
        let seen: Vec<bool> = masks.take(n_classes).map(|&mask| mask == 0.0).collect();
        bool::put(seen.iter(), "seen", bundle);
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            let planes: Vec<&[f32]> = self.tiles.iter().map(|tile| &**tile.planes()[at]).collect();
            bundle.put(name, planes.concat());
        }
        let totals = self.tiles.iter().flat_map(|tile| &tile.totals);
        NagTotals::put(totals.clone().take(n_classes), "totals", bundle);
        NagTotals::put(totals.skip(n_classes), SPARE_TOTALS, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let is_pruned = bundle.meta().get("is_pruned") == Some(&true.into());
        // Checked first, so that nothing as large as K is allocated unless the file is.
        let class_array = if is_pruned { "pruned/biases" } else { "seen" };
        let is_sound = bundle.arrays().get(class_array).map(Array::len) == Some(n_classes);
        let what = format_args!("its arrays do not have {n_classes} classes");
        bundle.require(is_sound, what)?;
        let tiles = Tile::for_classes(n_classes, params);
        let width = preparation.width();
        Self::take_tiles(params, n_classes, width, tiles, for_prediction, bundle)
    }
}

impl LinearScorers for Oaa {
    /// Visits the weights that predictions use.
    fn for_each_weight(&self, class: u32, visit: &mut dyn FnMut(u32, f32)) {
        let columns = self.preparer.slots.keys().iter().copied().enumerate();
        if let Some(pruned) = &self.pruned {
            return columns.for_each(|(slot, column)| visit(column, pruned.weight(slot, class)));
        }
        let class = class as usize;
        let n_before = self.tiles.partition_point(|tile| tile.first <= class);
        let tile = &self.tiles[n_before - 1];
        let (lane, share) = (class - tile.first, self.preparer.average_share());
        for (slot, column) in columns {
            let at = slot * tile.width() + lane;
            let weight = tile.weights[at];
            let weight = share.map_or(weight, |s| averaged(weight, tile.average_sums[at], s));
            // The constant has the first slot.
            let mask = [tile.unseen_mask[lane], 0.0][slot.min(1)];
            visit(column, weight + mask);
        }
    }
}

impl Oaa {
    /// Reads the state of some of `n_classes`, which are those of the untrained `tiles`.
    pub(super) fn take_tiles(
        params: &Params,
        n_classes: usize,
        width: usize,
        tiles: Vec<Tile>,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let mut oaa = Self::without_tiles(params, n_classes, width);
        let classes = tile::classes(&tiles, n_classes);
        let is_pruned: bool = bundle.take_meta("is_pruned")?;
        oaa.preparer.fill(bundle)?;
        let columns: Vec<u32> = bundle.take("columns")?;
        let is_sound = oaa.preparer.slots.insert_all(&columns);
        let what = "\"columns\" does not begin with the constant, or repeats a column";
        bundle.require(is_sound, what)?;
        let fits = oaa.preparer.fits(params, for_prediction || is_pruned);
        bundle.require(fits, "the state does not fit the optimizer")?;
        if is_pruned {
            let mut inner = bundle.unnest("pruned")?;
            oaa.pruned = Some(PrunedWeights::take(&mut inner, classes, columns.len())?);
            return Ok(oaa);
        }
        oaa.tiles = tiles;
        if for_prediction {
            for tile in &mut oaa.tiles {
                let weights = std::mem::take(&mut tile.weights);
                *tile = tile.for_prediction(weights);
            }
        }
        let seen = bool::take(Some(classes.len()), "seen", bundle)?;
        let masks = oaa.tiles.iter_mut().flat_map(|tile| &mut tile.unseen_mask);
        for (mask, is_seen) in masks.zip(seen) {
            *mask = if is_seen { 0.0 } else { f32::NEG_INFINITY };
        }
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            // Each tile has one row in its planes so far, or none.
            let len = |tile: &Tile| tile.planes()[at].len() * columns.len();
            let n: usize = oaa.tiles.iter().map(len).sum();
            let planes: Flat<f32> = bundle.take_flat(name, Some(n))?;
            let mut start = 0;
            for tile in &mut oaa.tiles {
                let end = start + len(tile);
                *tile.planes_mut()[at] = planes.part(start..end);
                start = end;
            }
        }
        let has_totals = params.is_adaptive() && !for_prediction;
        let n_totals = if has_totals { classes.len() } else { 0 };
        let mut totals = NagTotals::take(Some(n_totals), "totals", bundle)?;
        if bundle.arrays().contains_key(&format!("{SPARE_TOTALS}.t")) {
            totals.extend(NagTotals::take(None, SPARE_TOTALS, bundle)?);
        }
        let lanes = oaa.tiles.iter_mut().flat_map(|tile| &mut tile.totals);
        lanes.zip(totals).for_each(|(lane, totals)| *lane = totals);
        Ok(oaa)
    }
}
