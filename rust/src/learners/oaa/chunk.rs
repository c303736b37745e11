//! A chunk of examples, prepared once and then learned by one tile of classes after the other; and
//! the state of preparation: feature slots, sampled negatives, the total of the average.
//!
//! The average favors late weights. It is the polynomial-decay averaging of Shamir & Zhang,
//! "Stochastic gradient descent for non-smooth optimization" (ICML 2013), section 4: the weights
//! after example t have a share of about t^[`AVERAGING_POWER`]. This is close to the average over
//! the last of five passes. It also serves streams, because the number of examples need not be
//! known.
//!
//! With C_t the sum of these shares up to t, the average after T examples is
//! `sum_t (1 - C_{t-1}/C_T) delta_t = w - u/C_T` with `u = sum_t C_{t-1} delta_t`.
//! A step is added to w and to u ("average sums") for the same features, so sparse steps stay
//! sparse.

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::data::{Ragged, RaggedRows, RowBuffer};
use crate::file::is_count;
use crate::linear::{Span, StepLimit};

/// Parameters of an example's step that are the same for all features and classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepParams {
    /// Learning rate.
    pub eta: f32,
    /// Importance.
    pub importance: f32,
    /// Limit of the step in the example's direction.
    pub limit: StepLimit,
    /// Factor with which the step is added to the average sums.
    pub average_factor: f32,
    /// Span that scores are clamped to (only "nag").
    pub span: Option<Span>,
}

impl StepParams {
    /// Returns learning rate times importance.
    pub fn rate(&self) -> f32 {
        self.eta * self.importance
    }
}

/// An example of a [`Chunk`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<'a> {
    /// Feature slots; the constant comes last.
    pub slots: &'a [u32],
    /// Values of the features.
    pub values: &'a [f32],
    /// Change of the features' weights for a step of 1; empty with "nag".
    pub direction: &'a [f32],
    /// Classes of the example, increasing.
    pub labels: &'a [u32],
    /// Sampled wrong classes, and their importance relative to the example's; none to learn all
    /// wrong classes.
    pub negatives: Option<(&'a [u32], f32)>,
    /// Parameters of its step.
    pub params: StepParams,
}

/// Examples in contiguous arrays.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Feature slots and values.
    pub rows: RaggedRows,
    direction: Ragged<f32>,
    pub labels: Ragged<u32>,
    negatives: Ragged<u32>,
    pub params: Vec<StepParams>,
    /// Number of classes of the model.
    pub n_classes: usize,
    /// Factor for the average sums before the chunk is learned.
    pub rescaling: Option<f32>,
    /// Relative importance of a sampled wrong class; none if all wrong classes are learned.
    negative_weight: Option<f32>,
}

impl Chunk {
    /// Returns a chunk without examples.
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
        self.rescaling = None;
    }

    /// Adds an example whose columns were replaced by slots.
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

    /// Returns example `i`.
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

/// Samples wrong classes as Vowpal Wabbit's `--oaa_subsample` does: it cycles through all classes in
/// one random order. This amounts to sampling without replacement, and uses all classes equally
/// often.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NegativeSampler {
    n: u32,
    /// All classes in random order; empty if all wrong classes are learned.
    order: Vec<u32>,
    /// Position of the next class in `order`.
    pub position: usize,
}

impl NegativeSampler {
    /// Returns a sampler of `n` wrong classes per example. All of them are learned without `n`, or
    /// if `n` is at least `n_classes`.
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

    /// Returns the weight K/n of a sampled wrong class; none if all are learned.
    pub fn weight(&self) -> Option<f32> {
        (self.n > 0).then(|| self.order.len() as f32 / self.n as f32)
    }

    /// Replaces `into` by sampled classes that are not in `labels`.
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

/// Exponent of an example's number in its share of the average.
pub(super) const AVERAGING_POWER: f64 = 4.0;

/// Total above which all sums are scaled down, long before f32 overflows.
const RESCALED_TOTAL: f64 = 1e18;

/// Largest total: it is scaled down before it gets larger.
const LARGEST_TOTAL: f64 = 1e24;

/// The sum C of the shares, in a unit that changes when C gets too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PolynomialAverage {
    examples: f64,
    /// C before the next example, the factor with which its step is added to u.
    pub total: f64,
}

impl PolynomialAverage {
    /// Returns true if restored sums can come from examples.
    pub fn is_sound(&self) -> bool {
        is_count(&self.examples)
            && self.examples.fract() == 0.0
            && (self.total == 0.0 || (0.5..=LARGEST_TOTAL).contains(&self.total))
    }

    /// Adds the share of the weights after the next example.
    pub fn advance(&mut self) {
        self.examples += 1.0;
        let t = self.examples;
        self.total = if t <= 1.0 {
            1.0
        } else {
            (self.total * ((t + AVERAGING_POWER) / (t - 1.0))).min(LARGEST_TOTAL)
        };
    }

    /// Scales C down if it is too large, and returns the factor for every u: a power of two, so that
    /// nothing is rounded.
    pub fn rescale(&mut self) -> Option<f32> {
        (self.total > RESCALED_TOTAL).then(|| {
            let factor = 2.0f64.powi(-60);
            self.total *= factor;
            factor as f32
        })
    }
}
