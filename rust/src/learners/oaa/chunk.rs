//! A chunk of examples, prepared once and then learned by one tile of classes
//! after the other, and what preparing examples keeps: slots, drawn negatives, the average's total.
//!
//! The average favors late weights. Shamir & Zhang, "Stochastic gradient descent for non-smooth
//! optimization" (ICML 2013), section 4, polynomial-decay averaging: the weights after example t
//! count with about t^[`AVERAGING_POWER`]. That is close to an average over the last pass of
//! five and needs no number of examples in advance, so it serves streams too.
//!
//! With C_t the sum of these counts up to t, the average after T examples is
//! `sum_t (1 - C_{t-1}/C_T) delta_t = w - u/C_T` with `u = sum_t C_{t-1} delta_t`.
//! A step adds to w and to u ("average sums") in the same places, so sparse steps
//! stay sparse.

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::data::{Ragged, RaggedRows, RowBuffer};
use crate::file::is_count;
use crate::linear::{Span, StepLimit};

/// What a step depends on beside features and classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepParams {
    /// Learning rate.
    pub eta: f32,
    /// Importance.
    pub importance: f32,
    /// How far a step in the chunk's direction may go.
    pub limit: StepLimit,
    /// With which factor a step is added to the average sums.
    pub average_factor: f32,
    /// What scores are clamped to, if anything ("nag").
    pub span: Option<Span>,
}

impl StepParams {
    /// Learning rate times importance.
    #[inline]
    pub fn rate(&self) -> f32 {
        self.eta * self.importance
    }
}

/// An example of a [`Chunk`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<'a> {
    /// Feature slots, the constant's last.
    pub slots: &'a [u32],
    /// The features' values.
    pub values: &'a [f32],
    /// By how much the features' weights change for a step of 1 ; empty with "nag".
    pub direction: &'a [f32],
    /// Its classes, increasing.
    pub labels: &'a [u32],
    /// The classes to learn as not being its own, and their importance relative to the
    /// example's; none: all others.
    pub negatives: Option<(&'a [u32], f32)>,
    /// The rest.
    pub params: StepParams,
}

/// Examples one behind the other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Slots and values.
    pub rows: RaggedRows,
    direction: Ragged<f32>,
    pub labels: Ragged<u32>,
    negatives: Ragged<u32>,
    pub params: Vec<StepParams>,
    /// Number of classes of the model.
    pub n_classes: usize,
    /// Relative importance of a sampled negative; none: all negatives are learned.
    negative_weight: Option<f32>,
}

impl Chunk {
    /// No example yet.
    pub fn new(n_classes: usize, negative_weight: Option<f32>) -> Self {
        Self {
            n_classes,
            negative_weight,
            ..Self::default()
        }
    }

    /// Removes all examples.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.direction.clear();
        self.labels.clear();
        self.negatives.clear();
        self.params.clear();
    }

    /// Adds an example whose columns have been turned into slots.
    pub fn push(
        &mut self,
        row: &RowBuffer,
        direction: &[f32],
        labels: &[u32],
        negatives: &[u32],
        params: StepParams,
    ) {
        self.rows.push(row.columns.iter().copied(), &row.values);
        self.direction.push(direction.iter().copied());
        self.labels.push(labels.iter().copied());
        self.negatives.push(negatives.iter().copied());
        self.params.push(params);
    }

    /// Example `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Example<'_> {
        let (slots, values) = self.rows.row(i);
        Example {
            slots,
            values,
            direction: self.direction.get(i),
            labels: self.labels.get(i),
            negatives: self
                .negative_weight
                .map(|weight| (self.negatives.get(i), weight)),
            params: self.params[i],
        }
    }
}

/// Rows ("slots") are given to columns when they first occur, so that memory
/// grows with the features seen and not with the width of X.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FeatureSlots {
    /// Slot + 1 per column, 0 for none: pages of zeros that are never touched
    /// take no memory.
    slots: Vec<u32>,
    columns: Vec<u32>,
}

impl FeatureSlots {
    /// For columns below `width`, none of which has a slot.
    pub fn new(width: usize) -> Self {
        Self {
            slots: vec![0; width],
            columns: Vec::new(),
        }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The column of each slot.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The slot of `column`, a new one if it has none.
    #[inline]
    pub fn get_or_insert(&mut self, column: u32) -> u32 {
        let slot = &mut self.slots[column as usize];
        if *slot == 0 {
            self.columns.push(column);
            *slot = self.columns.len() as u32;
        }
        *slot - 1
    }

    /// Gives slots to stored `columns` in their order; false where the first does not have
    /// slot 0 already, or another one is too high or has a slot.
    pub fn insert_all(&mut self, columns: &[u32]) -> bool {
        let mut numbered = (0..).zip(columns);
        let fits = |&column: &u32| (column as usize) < self.slots.len();
        !columns.is_empty()
            && columns.iter().all(fits)
            && numbered.all(|(slot, &column)| self.get_or_insert(column) == slot)
    }

    /// The slot of `column`, if it has one.
    #[inline]
    fn get(&self, column: u32) -> Option<u32> {
        self.slots[column as usize].checked_sub(1)
    }

    /// Turns the columns of a row to be predicted into slots; those without a slot,
    /// of which nothing was learned, are left out.
    pub fn translate(&self, row: &mut RowBuffer) {
        let mut n = 0;
        for at in 0..row.columns.len() {
            if let Some(slot) = self.get(row.columns[at]) {
                row.columns[n] = slot;
                row.values[n] = row.values[at];
                n += 1;
            }
        }
        row.columns.truncate(n);
        row.values.truncate(n);
    }
}

/// Draws wrong classes as Vowpal Wabbit's `--oaa_subsample` does: round and
/// round through all classes in one random order, which is as good as drawing
/// without replacement, and even over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NegativeSampler {
    n: u32,
    /// Empty where all wrong classes are learned.
    order: Vec<u32>,
    /// Position of the next class in `order`.
    pub position: usize,
}

impl NegativeSampler {
    /// For `n` wrong classes per example; all of them without `n`, or where that is all.
    pub fn new(n: Option<u32>, n_classes: usize, seed: u64) -> Self {
        let n = n.filter(|&n| (n as usize) < n_classes);
        let mut order: Vec<u32> = (0..n.map_or(0, |_| n_classes as u32)).collect();
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        Self {
            n: n.unwrap_or_default(),
            order,
            position: 0,
        }
    }

    /// By how much a negative drawn counts more than if all were learned, K/n; none if they are.
    pub fn weight(&self) -> Option<f32> {
        (self.n > 0).then(|| self.order.len() as f32 / self.n as f32)
    }

    /// Replaces `into` by classes that are not among `labels`.
    pub fn draw(&mut self, labels: &[u32], into: &mut Vec<u32>) {
        into.clear();
        let n = (self.n as usize).min(self.order.len().saturating_sub(labels.len()));
        while into.len() < n {
            let at = self.position % self.order.len();
            self.position = at + 1;
            let class = self.order[at];
            if labels.binary_search(&class).is_err() {
                into.push(class);
            }
        }
    }
}

/// Growth of the weights' counts.
pub(super) const AVERAGING_POWER: f64 = 4.0;

/// Above this all sums are scaled down, long before f32 overflows.
const RESCALED_TOTAL: f64 = 1e18;

/// No total is larger: it is scaled down before.
const LARGEST_TOTAL: f64 = 1e24;

/// The sum C of the counts, in a unit that changes when C gets too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PolynomialAverage {
    examples: f64,
    total: f64,
}

impl PolynomialAverage {
    /// C before the next example, the factor with which its step is added to `u`.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Whether restored sums are such as examples make, between two that are scaled down.
    pub fn is_sound(&self) -> bool {
        is_count(&self.examples)
            && self.examples.fract() == 0.0
            && (self.total == 0.0 || (0.5..=LARGEST_TOTAL).contains(&self.total))
    }

    /// Counts the weights after the next example.
    pub fn advance(&mut self) {
        self.examples += 1.0;
        let t = self.examples;
        self.total = if t <= 1.0 {
            1.0
        } else {
            (self.total * ((t + AVERAGING_POWER) / (t - 1.0))).min(LARGEST_TOTAL)
        };
    }

    /// What to multiply every `u` by so that C stays within bounds, if
    /// anything: a power of two, so that nothing is rounded.
    pub fn rescale(&mut self) -> Option<f32> {
        (self.total > RESCALED_TOTAL).then(|| {
            let factor = 2.0f64.powi(-60);
            self.total *= factor;
            factor as f32
        })
    }
}
