//! New classes for a model that has learned already.
//!
//! Full tiles stay as they are; the last one is widened where it must be, and new ones follow:
//! growing by a class copies one tile at most.
//!
//! The lanes that fill up a tile learn as classes without an example do. A new class takes over
//! such a lane, or a copy of one: it then knows all negatives so far, and is to the bit the class
//! that it would be had it been known from the start. So a model that grows keeps a lane to spare
//! ([`Tile::with_spare_lane`]). Where there was none before it first grew, and with the softmax and
//! sampled negatives, which leave these lanes out, new classes start from nothing.

use super::learner::Oaa;
use super::sampling::NegativeSampler;
use super::tile::Tile;
use super::Params;
use crate::error::Result;
use crate::linear::NagTotals;
use crate::memory;

impl Oaa {
    /// Adds classes, so that there are `n_classes`.
    pub(super) fn grow_to(&mut self, n_classes: usize) -> Result<()> {
        let n_slots = self.preparer.slots.len();
        check_memory(&self.params, &self.tiles, n_classes, n_slots)?;
        let spare = self.tiles.last().and_then(|tile| {
            let at = tile.width() - 1;
            (tile.first + at >= self.n_classes).then(|| Lane::of(tile, at))
        });
        let mut old = std::mem::take(&mut self.tiles).into_iter();
        for mut tile in Tile::with_spare_lane(n_classes, &self.params) {
            match old.next() {
                Some(known) if known.width() == tile.width() => tile = known,
                narrower => {
                    tile.grow(n_slots);
                    let n_known = narrower.as_ref().map_or(0, Tile::width);
                    if let Some(lane) = &spare {
                        (n_known..tile.width()).for_each(|at| lane.put(&mut tile, at));
                    }
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

/// All that a tile has of one class.
struct Lane {
    planes: [Vec<f32>; 4],
    totals: Option<NagTotals>,
}

impl Lane {
    fn of(tile: &Tile, at: usize) -> Self {
        let width = tile.width();
        Self {
            planes: tile
                .planes()
                .map(|plane| plane.iter().skip(at).step_by(width).copied().collect()),
            totals: tile.totals.get(at).copied(),
        }
    }

    fn put(&self, tile: &mut Tile, at: usize) {
        let width = tile.width();
        for (plane, values) in tile.planes_mut().into_iter().zip(&self.planes) {
            let lane = plane.to_mut().iter_mut().skip(at).step_by(width);
            lane.zip(values).for_each(|(to, &value)| *to = value);
        }
        if let (Some(to), Some(totals)) = (tile.totals.get_mut(at), self.totals) {
            *to = totals;
        }
    }
}

/// Refuses classes for whose weights there is no memory.
fn check_memory(params: &Params, tiles: &[Tile], n_classes: usize, n_slots: usize) -> Result<()> {
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
