//! Trained scorers: their weights, how they are joined to the trees, and which weights find labels
//! that the trees do not name.

use std::sync::OnceLock;

use super::super::examples::Examples;
use super::super::join::Join;
use super::super::params::Params;
use super::calibration::Calibration;
use super::feature_index::{additions, FeatureIndex};
use super::sparse_weights::SparseWeights;
use super::svm::Scorer;
use crate::alloc::zeros;
use crate::error::Result;
use crate::file::{Bundle, Flat, Persist};
use crate::metrics::{Line, Shares};
use crate::persist;

/// What the margins of all labels of a training row may cost, in additions of single weights, for
/// the index to have all weights: so many take about as long as scoring single candidates does.
const MOST_ADDITIONS: f64 = 32_768.0;
/// Weights that a training row meets, those of all labels for its features, where it is more: then
/// the index has the largest alone, as time and memory must not grow with the number of labels.
/// They find the labels of a row as well as all weights do, since those that speak for a label are
/// few.
const WEIGHTS_MET: f64 = 2048.0;

/// The sparse scorers of all labels.
#[derive(Debug, Clone, Default)]
pub struct OneAgainstSome {
    weights: SparseWeights,
    /// Weight of the constant by label; minus infinity for a label without examples.
    biases: Flat<f32>,
    /// Weights of the index are at least this; none: it has all of them.
    index_threshold: Option<f32>,
    /// What the join adds to the trees' score.
    floor: f32,
    /// How the join weighs the scorers' loss.
    weight: f32,
    /// How joined scores become probabilities: a [`Calibration`].
    offset: f32,
    slope: f32,
    shares_slope: f64,
    shares_rest: f64,
    shares_top_slope: f64,
    shares_intercept: f64,
    /// How the scorers' features were scaled.
    idf_power: f64,
    /// C of their problems.
    cost: f64,
    /// Features, the constant left out.
    n_features: usize,
    /// Made when it is first needed.
    index: OnceLock<FeatureIndex>,
}

persist!(OneAgainstSome {
    Nest weights;
    Scores biases;
    Meta index_threshold;
    Meta floor;
    Meta weight;
    Meta offset;
    Meta slope;
    Meta shares_slope;
    Meta shares_rest;
    Meta shares_top_slope;
    Meta shares_intercept;
    Meta idf_power;
    Meta cost;
});

impl OneAgainstSome {
    pub const KIND: &'static str = "one_against_some";

    /// From the scorer of each label, trained on `examples`; those of labels without examples
    /// are missing.
    pub fn new(scorers: &[Option<Scorer>], examples: &Examples) -> Self {
        let bias = |scorer: &Option<Scorer>| match scorer {
            Some(scorer) => scorer.bias,
            None => f32::NEG_INFINITY,
        };
        let weights = SparseWeights::new(scorers, examples.width - 1);
        Self {
            index_threshold: index_threshold(&weights, examples),
            weights,
            biases: scorers.iter().map(bias).collect(),
            n_features: examples.width - 1,
            ..Self::default()
        }
    }

    pub fn set_join(&mut self, (floor, weight): (f32, f32)) {
        (self.floor, self.weight) = (floor, weight);
    }

    pub fn set_trained_with(&mut self, idf_power: f64, cost: f64) {
        (self.idf_power, self.cost) = (idf_power, cost);
    }

    /// The power of inverse document frequencies that scaled the features in training; the
    /// weights have the scales in them.
    pub fn idf_power(&self) -> f64 {
        self.idf_power
    }

    /// C of the problems that they solve.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    pub fn set_calibration(&mut self, calibration: Calibration) {
        (self.offset, self.slope) = (calibration.offset, calibration.slope);
        let shares = calibration.shares;
        (self.shares_slope, self.shares_rest) = (shares.slope, shares.rest);
        (self.shares_top_slope, self.shares_intercept) = (shares.top.slope, shares.top.intercept);
    }

    /// How joined scores become probabilities.
    pub fn calibration(&self) -> Calibration {
        Calibration {
            offset: self.offset,
            slope: self.slope,
            shares: Shares {
                slope: self.shares_slope,
                rest: self.shares_rest,
                top: Line {
                    slope: self.shares_top_slope,
                    intercept: self.shares_intercept,
                },
            },
        }
    }

    /// How margins are joined; a `scorer_weight` that is given replaces the fitted one.
    pub fn join(&self, params: &Params) -> Join {
        Join {
            floor: self.floor,
            weight: params.scorer_weight.map_or(self.weight, |b| b as f32),
        }
    }

    pub fn weights(&self) -> &SparseWeights {
        &self.weights
    }

    pub fn biases(&self) -> &[f32] {
        &self.biases
    }

    /// Whether the index has all weights.
    pub fn is_index_complete(&self) -> bool {
        self.index_threshold.is_none()
    }

    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The weights, or the largest, by feature. They are brought into that order by the first
    /// call, in time proportional to their number.
    pub fn index(&self) -> &FeatureIndex {
        let new = || FeatureIndex::new(&self.weights, self.n_features, self.index_threshold);
        self.index.get_or_init(new)
    }

    /// Weights for a feature, on average.
    pub fn weights_each(&self) -> usize {
        self.weights.len() / self.n_features.max(1) + 1
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        self.put(&mut bundle);
        bundle
    }

    /// From a file, for rows of `width` columns, the constant among them.
    pub fn take(bundle: &mut Bundle, n_classes: usize, width: usize) -> Result<Self> {
        bundle.expect_kind(Self::KIND)?;
        let mut scorers = Self {
            n_features: width - 1,
            weights: SparseWeights::empty(width - 1),
            ..Self::default()
        };
        scorers.fill(bundle)?;
        let is_number = |x: f64| x.is_finite() && x >= 0.0;
        let is_join = |x: f32| is_number(x.into());
        let is_sound = scorers.biases.len() == n_classes
            && scorers.biases.iter().all(|&bias| bias < f32::INFINITY)
            && scorers.weights.is_sound(n_classes, scorers.n_features)
            && scorers.index_threshold.is_none_or(f32::is_finite)
            && is_join(scorers.floor)
            && is_join(scorers.weight)
            && is_number(scorers.idf_power)
            && is_number(scorers.cost)
            && scorers.calibration().is_sound();
        if !is_sound {
            return Err(bundle.damaged("the scorers are of another shape or out of range"));
        }
        Ok(scorers)
    }
}

/// [`OneAgainstSome::index_threshold`] for rows like `examples`.
fn index_threshold(weights: &SparseWeights, examples: &Examples) -> Option<f32> {
    /// The bits of a float above 0 grow with it; their upper half tells thresholds well enough.
    const SHIFT: u32 = 16;
    let mut rows_with: Vec<u32> = zeros(examples.width);
    for row in 0..examples.len() as u32 {
        for &column in examples.row(row).0 {
            rows_with[column as usize] += 1;
        }
    }
    // The weights for each column, and how often the rows meet one above 0 of such bits.
    let mut weights_for: Vec<usize> = zeros(examples.width);
    let mut n_met_of = zeros::<u64>(1 << (31 - SHIFT));
    for label in 0..weights.n_labels() {
        for (column, weight) in weights.weights(label) {
            weights_for[column as usize] += 1;
            if weight > 0.0 {
                let n = u64::from(rows_with[column as usize]);
                n_met_of[(weight.to_bits() >> SHIFT) as usize] += n;
            }
        }
    }
    let n_rows = examples.len() as f64;
    let n_labels = weights.n_labels();
    let cost = |(&rows, &n): (&u32, &usize)| f64::from(rows) * additions(n, n_labels);
    let total: f64 = rows_with.iter().zip(&weights_for).map(cost).sum();
    // All labels are also looked at.
    if total <= (MOST_ADDITIONS - additions(n_labels, n_labels)) * n_rows {
        return None;
    }
    let (mut bits, mut n) = (n_met_of.len(), 0);
    while bits > 1 && (n + n_met_of[bits - 1]) as f64 <= WEIGHTS_MET * n_rows {
        bits -= 1;
        n += n_met_of[bits];
    }
    Some(f32::from_bits((bits as u32) << SHIFT))
}
