//! The weights: features outside, classes inside, cut into tiles of classes.
//!
//! A tile holds a row of weights for every feature that was ever seen, for at
//! most 64 classes. Classes do not depend on one another, so a tile can
//! learn a whole chunk of examples, with its weights in the cache, before the
//! next tile does; the outcome is that of taking example after example.

use super::adaptive;
use super::chunk::Chunk;
use super::kernels::{self, Best, Rule};
use crate::linear::Optimizer;
use crate::simd::LANES;

/// Most classes of a tile, in units of [`LANES`]: so many sums fit into
/// vector registers.
const MOST_GROUPS: usize = 4;

/// Weights and state of up to 64 classes.
#[derive(Debug, Clone)]
pub(super) struct Tile {
    /// The first of its classes.
    pub first: usize,
    /// Number of its classes, in units of [`LANES`]: 1, 2 or 4.
    pub groups: usize,
    /// A row per feature slot.
    pub weights: Vec<f32>,
    /// u of the average, as the weights; empty without averaging.
    pub drift: Vec<f32>,
    /// Sums of squared gradients, as the weights; empty unless adaptive.
    pub squares: Vec<f32>,
    /// Largest feature sizes, as the weights; empty but for "nag".
    pub scales: Vec<f32>,
    /// Per class: 0, or minus infinity while the class has not been seen.
    pub absent: Vec<f32>,
    /// Per class: sum of importances ("nag").
    pub times: Vec<f64>,
    /// Per class: sum of normalised squares ("nag").
    pub norms: Vec<f64>,
}

impl Tile {
    /// Tiles for `n_classes`, each with one row, that of the constant feature.
    pub fn cover(n_classes: usize, rule: Rule, bias: f32) -> Vec<Self> {
        let mut tiles = Vec::new();
        let mut first = 0;
        while first < n_classes {
            let left = (n_classes - first).div_ceil(LANES);
            // The largest power of two that is not mostly padding.
            let groups = match left {
                1 => 1,
                2 => 2,
                _ => MOST_GROUPS,
            };
            tiles.push(Self::new(first, groups, n_classes, rule, bias));
            first += groups * LANES;
        }
        tiles
    }

    fn new(first: usize, groups: usize, n_classes: usize, rule: Rule, bias: f32) -> Self {
        let width = groups * LANES;
        let adaptive = rule.adaptive;
        let nag = rule.optimizer == Optimizer::Nag;
        let row = |wanted: bool, value: f32| vec![value; if wanted { width } else { 0 }];
        let absent = (first..first + width)
            // Vowpal Wabbit, which "nag" follows, lets any class win.
            .map(|class| {
                if nag && class < n_classes {
                    0.0
                } else {
                    f32::NEG_INFINITY
                }
            })
            .collect();
        Self {
            first,
            groups,
            weights: row(true, bias),
            drift: row(rule.averages, 0.0),
            squares: row(adaptive, 0.0),
            scales: row(nag, 0.0),
            absent,
            times: vec![0.0; if nag { width } else { 0 }],
            norms: vec![0.0; if nag { width } else { 0 }],
        }
    }

    /// Names of the planes, in the order of [`planes`](Self::planes).
    pub const PLANES: [&'static str; 4] = ["weights", "drift", "squares", "scales"];

    /// Everything that has a row per feature; some are empty.
    pub fn planes(&self) -> [&Vec<f32>; 4] {
        [&self.weights, &self.drift, &self.squares, &self.scales]
    }

    /// As [`planes`](Self::planes), to be changed.
    pub fn planes_mut(&mut self) -> [&mut Vec<f32>; 4] {
        let Self {
            weights,
            drift,
            squares,
            scales,
            ..
        } = self;
        [weights, drift, squares, scales]
    }

    /// Number of classes, padding included.
    pub fn width(&self) -> usize {
        self.groups * LANES
    }

    /// Makes room for `n_slots` features.
    pub fn grow(&mut self, n_slots: usize) {
        let len = n_slots * self.width();
        for plane in self.planes_mut() {
            if !plane.is_empty() && plane.len() < len {
                if plane.capacity() < len {
                    // Less headroom than a Vec takes by itself: this is most of the memory.
                    plane.reserve_exact(len + len / 8 - plane.len());
                }
                plane.resize(len, 0.0);
            }
        }
    }

    /// Learns a chunk; `best` gets the best class of each example as it stood
    /// before the example was learned.
    pub fn learn(&mut self, chunk: &Chunk, rule: Rule, best: &mut Vec<Best>) {
        best.clear();
        if rule.adaptive {
            adaptive::learn(self, chunk, rule, best);
        } else {
            kernels::learn(self, chunk, rule, best);
        }
    }

    /// Multiplies all sums of the average.
    pub fn rescale_drift(&mut self, factor: f32) {
        self.drift.iter_mut().for_each(|u| *u *= factor);
    }

    /// Multiplies weights and sums of the average, the constant's excepted.
    pub fn rescale(&mut self, factor: f32) {
        let width = self.width();
        for plane in [&mut self.weights, &mut self.drift] {
            plane.iter_mut().skip(width).for_each(|w| *w *= factor);
        }
    }

    /// The weights to predict with: averaged if there is an average (of total
    /// `total`), brought towards zero by `gravity` and shrunk by `shrink`.
    pub fn settled(&self, total: f64, gravity: f32, shrink: f32) -> Vec<f32> {
        let mut weights = self.weights.clone();
        if total > 0.0 {
            let share = total.recip() as f32;
            for (w, u) in weights.iter_mut().zip(&self.drift) {
                *w -= u * share;
            }
        }
        if gravity > 0.0 || shrink < 1.0 {
            for w in weights.iter_mut().skip(self.width()) {
                *w = kernels::pulled(*w, gravity) * shrink;
            }
        }
        weights
    }
}
