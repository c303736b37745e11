//! The weights: a row per feature and a column per class, cut into tiles of classes.
//!
//! A tile holds the weights of at most 64 classes for every feature seen so far. Classes do not
//! depend on each other. So a tile learns a whole chunk of examples while its weights are in the
//! cache, before the next tile does. The result is that of learning one example after the other.

use std::ops::Range;

use super::Params;
use crate::file::Flat;
use crate::linear::{AlignedRow, NagTotals};
use crate::memory::prefer_large_pages;
use crate::simd::LANES;

/// Largest number of groups of [`LANES`] classes in a tile: their sums fit into vector registers.
const MAX_GROUPS: usize = 4;

/// One value for each of [`LANES`] classes.
pub(super) type Lanes = [f32; LANES];

/// Weights and optimizer state of up to 64 classes.
#[derive(Debug, Clone, Default)]
pub(super) struct Tile {
    /// First class.
    pub first: usize,
    /// Number of groups of [`LANES`] classes: 1, 2 or 4.
    pub groups: usize,
    /// A row of weights per feature slot.
    pub weights: Flat<f32>,
    /// u of the average, laid out like the weights; empty for "nag".
    pub average_sums: Flat<f32>,
    /// Sums of squared gradients, laid out like the weights; only for "nag".
    pub squares: Flat<f32>,
    /// Largest absolute feature values, laid out like the weights; only for "nag".
    pub scales: Flat<f32>,
    /// Added to the score of each class before scores are compared: 0, or minus infinity until the
    /// class has been seen.
    pub unseen_mask: Vec<f32>,
    /// Totals of each class; only for "nag".
    pub totals: Vec<NagTotals>,
}

impl Tile {
    /// Returns tiles for `n_classes`, each with the row of the constant feature.
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
        let is_nag = params.is_adaptive();
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

    /// Lets unseen classes compete with "nag", as in Vowpal Wabbit.
    pub fn let_compete(&mut self, n_classes: usize, params: &Params) {
        if params.is_adaptive() {
            let n = n_classes.saturating_sub(self.first).min(self.width());
            self.unseen_mask[..n].fill(0.0);
        }
    }

    /// Copies the state of a narrower tile, which has the same features and the first classes of
    /// this one.
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

    /// Returns a tile of the same classes for prediction only, with `weights` and no optimizer
    /// state.
    pub fn for_prediction(&self, weights: Flat<f32>) -> Self {
        Self {
            first: self.first,
            groups: self.groups,
            weights,
            unseen_mask: self.unseen_mask.clone(),
            ..Self::default()
        }
    }

    /// Returns the number of planes that are not empty.
    pub fn n_planes(params: &Params) -> usize {
        2 + usize::from(params.is_adaptive())
    }

    /// Names of the planes, in the order of [`planes`](Self::planes).
    pub const PLANES: [&'static str; 4] = ["weights", "average_sums", "squares", "scales"];

    /// Returns the arrays that have a row per feature, of which some are empty.
    pub fn planes(&self) -> [&Flat<f32>; 4] {
        [
            &self.weights,
            &self.average_sums,
            &self.squares,
            &self.scales,
        ]
    }

    /// Returns the [`planes`](Self::planes) for writing.
    pub fn planes_mut(&mut self) -> [&mut Flat<f32>; 4] {
        [
            &mut self.weights,
            &mut self.average_sums,
            &mut self.squares,
            &mut self.scales,
        ]
    }

    /// Returns the number of classes, padding included.
    pub fn width(&self) -> usize {
        self.groups * LANES
    }

    /// Returns the positions in the tile of those `classes` that belong to it.
    pub fn positions<'a>(&self, classes: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        let (first, width) = (self.first, self.width());
        let positions = classes
            .iter()
            .map(move |&class| (class as usize).wrapping_sub(first));
        positions.filter(move |&position| position < width)
    }

    /// Lets the classes of an example compete from now on.
    pub fn mark_seen(&mut self, labels: &[u32]) {
        for position in self.positions(labels) {
            self.unseen_mask[position] = 0.0;
        }
    }

    /// Allocates weights for `n_slots` features, and memory for `n_expected` if there is none yet.
    pub fn grow(&mut self, (n_slots, n_expected): (usize, usize)) {
        let (len, expected) = (n_slots * self.width(), n_expected * self.width());
        for plane in self.planes_mut() {
            if !plane.is_empty() && plane.len() < len {
                let plane = plane.to_mut();
                if plane.capacity() < len {
                    // Less headroom than Vec's own growth: the planes are most of the memory.
                    let growing = len + len / 8;
                    let capacity = if expected < len { growing } else { expected };
                    plane.reserve_exact(capacity - plane.len());
                    prefer_large_pages(plane);
                }
                plane.resize(len, 0.0);
            }
        }
    }

    /// Returns the weights to predict with, averaged if there is a [`share`](averaged). Each vector
    /// register of them lies in one cache line.
    pub fn prediction_weights(&self, share: Option<f32>) -> AlignedRow<f32> {
        let mut weights = AlignedRow::from(&self.weights[..]);
        if let Some(share) = share {
            for (w, &u) in weights.iter_mut().zip(self.average_sums.iter()) {
                *w = averaged(*w, u, share);
            }
        }
        weights
    }
}

/// Returns the average of a weight, from which `share` of its average sum is subtracted.
#[inline(always)]
pub(super) fn averaged(w: f32, average_sum: f32, share: f32) -> f32 {
    w - average_sum * share
}

/// Returns the classes of `tiles`, which are consecutive ones of `n_classes`.
pub(super) fn classes(tiles: &[Tile], n_classes: usize) -> Range<usize> {
    let first = tiles.first().map_or(0, |tile| tile.first);
    let end = tiles.last().map_or(0, |tile| tile.first + tile.width());
    first..end.min(n_classes)
}

/// Calls `each` with every group of G and each of its lanes. Rows of weights must not be written
/// in `each`: the compiler would assume that they overlap with what is read, and not vectorize.
#[inline(always)]
pub(super) fn each_lane<const G: usize>(mut each: impl FnMut(usize, usize)) {
    for g in 0..G {
        for lane in 0..LANES {
            each(g, lane);
        }
    }
}

/// Returns the row of `slot` in a plane, by groups of lanes.
#[inline(always)]
pub(super) fn row<const G: usize>(plane: &[f32], slot: u32) -> &[Lanes; G] {
    &plane.as_chunks().0.as_chunks().0[slot as usize]
}

/// Returns the [`row`] of `slot` for writing.
#[inline(always)]
pub(super) fn row_mut<const G: usize>(plane: &mut [f32], slot: u32) -> &mut [Lanes; G] {
    &mut plane.as_chunks_mut().0.as_chunks_mut().0[slot as usize]
}

/// Calls `$function::<G>`, where G is the number of groups of a tile.
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
