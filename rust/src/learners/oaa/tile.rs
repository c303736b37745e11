//! The weights: features outside, classes inside, cut into tiles of classes.
//!
//! A tile holds a row of weights for every feature that was ever seen, for at
//! most 64 classes. Classes do not depend on one another, so a tile can
//! learn a whole chunk of examples, with its weights in the cache, before the
//! next tile does; the outcome is that of taking example after example.

use std::ops::Range;

use super::Params;
use crate::file::Flat;
use crate::linear::{AlignedRow, NagTotals, Optimizer};
use crate::simd::LANES;

/// Most classes of a tile, in units of [`LANES`]: so many sums fit into
/// vector registers.
const MAX_GROUPS: usize = 4;

/// A value for each of [`LANES`] classes.
pub(super) type Lanes = [f32; LANES];

/// Weights and state of up to 64 classes.
#[derive(Debug, Clone)]
pub(super) struct Tile {
    /// The first of its classes.
    pub first: usize,
    /// Number of its classes, in units of [`LANES`]: 1, 2 or 4.
    pub groups: usize,
    /// A row per feature slot.
    pub weights: Flat<f32>,
    /// u of the average, as the weights; empty for "nag".
    pub average_sums: Flat<f32>,
    /// Sums of squared gradients, as the weights; empty but for "nag".
    pub squares: Flat<f32>,
    /// Largest feature sizes, as the weights; empty but for "nag".
    pub scales: Flat<f32>,
    /// What is added to a class's score before it competes: 0, or minus infinity
    /// while the class has not been seen.
    pub unseen_mask: Vec<f32>,
    /// Per class; empty but for "nag".
    pub totals: Vec<NagTotals>,
}

impl Tile {
    /// Tiles for `n_classes`, each with one row, that of the constant feature.
    pub fn for_classes(n_classes: usize, params: &Params) -> Vec<Self> {
        let mut tiles = Vec::new();
        let mut first = 0;
        while first < n_classes {
            // The largest power of two that is not mostly padding.
            let needed = (n_classes - first).div_ceil(LANES);
            let groups = if needed < 3 { needed } else { MAX_GROUPS };
            tiles.push(Self::new(first, groups, params));
            first += groups * LANES;
        }
        for tile in &mut tiles {
            tile.let_compete(n_classes, params);
        }
        tiles
    }

    fn new(first: usize, groups: usize, params: &Params) -> Self {
        let width = groups * LANES;
        let is_nag = params.optimizer == Optimizer::Nag;
        let zeros = |is_kept: bool| Flat::from(vec![0.0; if is_kept { width } else { 0 }]);
        Self {
            first,
            groups,
            weights: vec![params.initial_bias(); width].into(),
            average_sums: zeros(!is_nag),
            squares: zeros(is_nag),
            scales: zeros(is_nag),
            unseen_mask: vec![f32::NEG_INFINITY; width],
            totals: vec![NagTotals::default(); if is_nag { width } else { 0 }],
        }
    }

    /// Vowpal Wabbit, which "nag" follows, lets classes win that it has not seen.
    pub fn let_compete(&mut self, n_classes: usize, params: &Params) {
        if params.optimizer == Optimizer::Nag {
            let masks = self.unseen_mask.iter_mut();
            masks
                .take(n_classes.saturating_sub(self.first))
                .for_each(|mask| *mask = 0.0);
        }
    }

    /// Takes over all that a narrower tile of the same features has of its classes, which are
    /// the first of this one.
    pub fn copy_lanes(&mut self, other: &Self) {
        let (width, narrow) = (self.width(), other.width());
        for (plane, from) in self.planes_mut().into_iter().zip(other.planes()) {
            let rows = plane.to_mut().chunks_exact_mut(width);
            for (row, from) in rows.zip(from.chunks_exact(narrow)) {
                row[..narrow].copy_from_slice(from);
            }
        }
        self.unseen_mask[..narrow].copy_from_slice(&other.unseen_mask);
        self.totals[..other.totals.len()].copy_from_slice(&other.totals);
    }

    /// For prediction only: without what learning keeps beside the weights.
    pub fn forget_state(&mut self) {
        *self = Self {
            weights: std::mem::take(&mut self.weights),
            ..self.without_weights()
        };
    }

    /// The classes alone.
    pub fn without_weights(&self) -> Self {
        Self {
            first: self.first,
            groups: self.groups,
            weights: Flat::default(),
            average_sums: Flat::default(),
            squares: Flat::default(),
            scales: Flat::default(),
            unseen_mask: self.unseen_mask.clone(),
            totals: Vec::new(),
        }
    }

    /// How many planes a tile has that are not empty.
    pub fn n_planes(params: &Params) -> usize {
        2 + usize::from(params.is_adaptive())
    }

    /// Names of the planes, in the order of [`planes`](Self::planes).
    pub const PLANES: [&'static str; 4] = ["weights", "average_sums", "squares", "scales"];

    /// Everything that has a row per feature; some are empty.
    pub fn planes(&self) -> [&Flat<f32>; 4] {
        [
            &self.weights,
            &self.average_sums,
            &self.squares,
            &self.scales,
        ]
    }

    /// As [`planes`](Self::planes), to be changed.
    pub fn planes_mut(&mut self) -> [&mut Flat<f32>; 4] {
        [
            &mut self.weights,
            &mut self.average_sums,
            &mut self.squares,
            &mut self.scales,
        ]
    }

    /// Number of classes, padding included.
    pub fn width(&self) -> usize {
        self.groups * LANES
    }

    /// Where those of `classes` stand that are the tile's.
    #[inline]
    pub fn positions<'a>(&self, classes: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        let (first, width) = (self.first, self.width());
        let positions = classes
            .iter()
            .map(move |&class| (class as usize).wrapping_sub(first));
        positions.filter(move |&position| position < width)
    }

    /// Lets the classes of an example compete from now on.
    #[inline]
    pub fn mark_seen(&mut self, labels: &[u32]) {
        for position in self.positions(labels) {
            self.unseen_mask[position] = 0.0;
        }
    }

    /// Allocates weights for `n_slots` features.
    pub fn grow(&mut self, n_slots: usize) {
        let len = n_slots * self.width();
        for plane in self.planes_mut() {
            if !plane.is_empty() && plane.len() < len {
                let plane = plane.to_mut();
                if plane.capacity() < len {
                    // Less headroom than a Vec takes by itself: this is most of the memory.
                    plane.reserve_exact(len + len / 8 - plane.len());
                }
                plane.resize(len, 0.0);
            }
        }
    }

    /// The weights to predict with, averaged if there is a [`share`](averaged); each register of
    /// them lies in one cache line.
    pub fn prediction_weights(&self, share: Option<f32>) -> AlignedRow<f32> {
        let mut weights = AlignedRow::from(&self.weights[..]);
        if let Some(share) = share {
            for (w, &u) in weights.iter_mut().zip(&self.average_sums) {
                *w = averaged(*w, u, share);
            }
        }
        weights
    }
}

/// The average of a weight with an average sum, of which `share` is taken off.
#[inline(always)]
pub(super) fn averaged(w: f32, average_sum: f32, share: f32) -> f32 {
    w - average_sum * share
}

/// The classes of `tiles`, of all `n_classes`.
pub(super) fn classes(tiles: &[Tile], n_classes: usize) -> Range<usize> {
    let first = tiles.first().map_or(0, |tile| tile.first);
    let end = tiles.last().map_or(0, |tile| tile.first + tile.width());
    first..end.min(n_classes)
}

/// The tiles' values of one each for all `n_classes`; none where the tiles have none.
pub(super) fn by_class<T: Copy>(
    tiles: &[Tile],
    n_classes: usize,
    of: impl Fn(&Tile) -> &Vec<T>,
) -> Vec<T> {
    let values = tiles.iter().flat_map(|tile| of(tile).iter().copied());
    values.take(n_classes).collect()
}

/// Hands values of all classes out to the tiles; what is left over, for padding, stays.
pub(super) fn set_by_class<T: Copy>(
    tiles: &mut [Tile],
    values: &[T],
    of: impl Fn(&mut Tile) -> &mut Vec<T>,
) {
    let of_tiles = tiles.iter_mut().flat_map(|tile| of(tile).iter_mut());
    of_tiles.zip(values).for_each(|(to, &value)| *to = value);
}

/// Calls `each` with every group of G and every lane of it. Not for writing to rows of weights:
/// in a closure the compiler fears that these are what it reads, and takes lane after lane.
#[inline(always)]
pub(super) fn each_lane<const G: usize>(mut each: impl FnMut(usize, usize)) {
    for g in 0..G {
        for lane in 0..LANES {
            each(g, lane);
        }
    }
}

/// The row of `slot` in a plane: one group of lanes after the other.
#[inline(always)]
pub(super) fn row<const G: usize>(plane: &[f32], slot: u32) -> &[Lanes; G] {
    &plane.as_chunks().0.as_chunks().0[slot as usize]
}

/// As [`row`], to be changed.
#[inline(always)]
pub(super) fn row_mut<const G: usize>(plane: &mut [f32], slot: u32) -> &mut [Lanes; G] {
    &mut plane.as_chunks_mut().0.as_chunks_mut().0[slot as usize]
}

/// Calls `$function::<G>` with G, the number of groups of lanes of a tile.
macro_rules! for_groups {
    ($groups:expr, $function:ident ($($arg:expr),* $(,)?)) => {
        match $groups {
            1 => $function::<1>($($arg),*),
            2 => $function::<2>($($arg),*),
            _ => $function::<4>($($arg),*),
        }
    };
}
pub(super) use for_groups;
