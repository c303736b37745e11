//! A trained model: the labels' weights, how it is joined to another, and which weights find labels
//! that the other does not name.

use std::sync::OnceLock;

use super::join::{Calibration, Join};
use super::svm::Scorer;
use crate::data::{Examples, PackedList, PackedLists, Precision, Ragged};
use crate::error::Result;
use crate::file::{Bundle, Flat, Persist};
use crate::persist;
use crate::simd::axpy;

/// What the margins of all labels of a training row may cost, in additions of single weights, for
/// the index to have all weights: so many take about as long as scoring single candidates does.
const MAX_ADDITIONS: f64 = 32_768.0;
/// Weights that a training row meets, those of all labels for its features, where it is more: then
/// the index has the largest alone, as time and memory must not grow with the number of labels.
/// They find the labels of a row as well as all weights do, since those that speak for a label are
/// few.
const INDEX_WEIGHTS_PER_ROW: f64 = 2048.0;

/// The sparse scorers of all labels.
#[derive(Debug, Clone, Default)]
pub struct OneAgainstSome {
    /// By label, in 16 bits.
    weights: PackedLists,
    /// Weight of the constant by label; minus infinity for a label without examples.
    biases: Flat<f32>,
    /// Weights of the index are at least this; none: it has all of them.
    pub(super) index_threshold: Option<f32>,
    pub join: Join,
    /// How joined scores become probabilities.
    pub calibration: Calibration,
    /// The power of inverse document frequencies that scaled the features in training; the weights
    /// have the scales in them.
    pub idf_power: f64,
    /// C of the problems that the scorers solve.
    pub cost: f64,
    /// Features, the constant left out.
    n_features: usize,
    /// Made when it is first needed.
    index: OnceLock<FeatureIndex>,
}

persist!(OneAgainstSome {
    Scores biases;
    Meta index_threshold;
    Meta join;
    Meta calibration;
    Meta idf_power;
    Meta cost;
});

impl OneAgainstSome {
    pub const KIND: &'static str = "one_against_some";

    /// From the scorer of each label, trained on `examples`; those of labels without examples
    /// are missing.
    pub fn new<'a>(
        scorers: impl Iterator<Item = Option<&'a Scorer>> + Clone,
        examples: &Examples,
    ) -> Result<Self> {
        let bias = |scorer: Option<&Scorer>| scorer.map_or(f32::NEG_INFINITY, |s| s.bias);
        let n_features = examples.width - 1;
        let none = Scorer::default();
        let packed = scorers
            .clone()
            .map(|scorer| packed(scorer.unwrap_or(&none)));
        let packed: Vec<PackedList> = packed.collect();
        let weights = PackedLists::new(&packed, 1, n_features)?;
        Ok(Self {
            index_threshold: index_threshold(&weights, packed.len(), examples),
            weights,
            biases: scorers.map(bias).collect(),
            n_features,
            ..Self::default()
        })
    }

    pub fn weights(&self) -> &PackedLists {
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
        let (n_labels, threshold) = (self.biases.len(), self.index_threshold);
        let new = || FeatureIndex::new(&self.weights, n_labels, self.n_features, threshold);
        self.index.get_or_init(new)
    }

    /// Weights for a feature, on average.
    pub fn weights_each(&self) -> usize {
        self.weights.n_entries() / self.n_features.max(1) + 1
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        self.put(&mut bundle);
        bundle.nest("weights", self.weights.to_bundle());
        bundle
    }

    /// From a file, for rows of `width` columns, the constant among them.
    pub fn take(bundle: &mut Bundle, n_classes: usize, width: usize) -> Result<Self> {
        bundle.expect_kind(Self::KIND)?;
        let mut scorers = Self {
            n_features: width - 1,
            weights: PackedLists::take(bundle, "weights", n_classes, 1, width - 1)?,
            ..Self::default()
        };
        scorers.fill(bundle)?;
        let is_number = |x: f64| x.is_finite() && x >= 0.0;
        let is_join = |x: f32| is_number(x.into());
        let is_sound = scorers.biases.len() == n_classes
            && scorers.biases.iter().all(|&bias| bias < f32::INFINITY)
            && scorers.index_threshold.is_none_or(f32::is_finite)
            && is_join(scorers.join.floor)
            && is_join(scorers.join.weight)
            && is_number(scorers.idf_power)
            && is_number(scorers.cost)
            && scorers.calibration.is_sound();
        if !is_sound {
            return Err(bundle.damaged("the scorers are of another shape or out of range"));
        }
        Ok(scorers)
    }
}

/// A scorer's weights; those that round to 0 are left out.
fn packed(scorer: &Scorer) -> PackedList {
    let largest = scorer
        .weights
        .iter()
        .fold(0.0f32, |most, (_, w)| most.max(w.abs()));
    let least = 0.5 * largest / f32::from(i16::MAX);
    let kept = scorer.weights.iter().filter(|(_, w)| w.abs() > least);
    let (ids, values) = kept.copied().unzip();
    PackedList::new(ids, values, 1, Precision::Bits16)
}

/// [`OneAgainstSome::index_threshold`] for rows like `examples`.
fn index_threshold(weights: &PackedLists, n_labels: usize, examples: &Examples) -> Option<f32> {
    /// The bits of a float above 0 grow with it; their upper half tells thresholds well enough.
    const SHIFT: u32 = 16;
    let rows_with = examples.column_counts();
    // The weights for each column, and how often the rows meet one above 0 of such bits.
    let mut weights_for = vec![0usize; examples.width];
    let mut n_met = vec![0u64; 1 << (31 - SHIFT)];
    for label in 0..n_labels {
        weights.for_each(label, |column, [weight]| {
            weights_for[column as usize] += 1;
            if weight > 0.0 {
                let n = u64::from(rows_with[column as usize]);
                n_met[(weight.to_bits() >> SHIFT) as usize] += n;
            }
        });
    }
    let n_rows = examples.len() as f64;
    let cost = |(&rows, &n): (&u32, &usize)| f64::from(rows) * additions(n, n_labels);
    let total: f64 = rows_with.iter().zip(&weights_for).map(cost).sum();
    // All labels are also looked at.
    if total <= (MAX_ADDITIONS - additions(n_labels, n_labels)) * n_rows {
        return None;
    }
    let (mut bits, mut n) = (n_met.len(), 0);
    while bits > 1 && (n + n_met[bits - 1]) as f64 <= INDEX_WEIGHTS_PER_ROW * n_rows {
        bits -= 1;
        n += n_met[bits];
    }
    Some(f32::from_bits((bits as u32) << SHIFT))
}

/// Labels that are marked together as met.
pub const LABELS_PER_BLOCK: usize = 64;
/// A feature for which one label in so many has a weight has a weight for each label: adding
/// zeros takes less time than skipping them. Its memory is at most four times that of a list.
const MAX_LABELS_PER_DENSE_WEIGHT: usize = 8;
/// Stands for features that have a list.
const LISTED: u32 = u32::MAX;

/// Whether a feature with `n` weights has a row in place of a list.
fn is_dense(n: usize, n_labels: usize) -> bool {
    n * MAX_LABELS_PER_DENSE_WEIGHT > n_labels
}

/// What a feature with `n` weights costs a row, in additions to the sums of single labels; sums of
/// labels side by side take a part of the time.
pub fn additions(n: usize, n_labels: usize) -> f64 {
    const SIDE_BY_SIDE: f64 = 8.0;
    if is_dense(n, n_labels) {
        n_labels as f64 / SIDE_BY_SIDE
    } else {
        n as f64
    }
}

/// Weights by feature.
#[derive(Debug, Clone)]
pub struct FeatureIndex {
    n_labels: usize,
    /// Labels, increasing, and weights of each feature.
    lists: Ragged<(u32, f32)>,
    /// Which of `rows` a feature has in place of a list.
    row_of: Vec<u32>,
    /// A weight for each label, end to end.
    rows: Vec<f32>,
}

impl FeatureIndex {
    /// The index of the `weights` of `n_labels` labels for `width` features, or of those of at least
    /// `threshold`, which are all in lists. Takes time and memory proportional to both.
    pub fn new(
        weights: &PackedLists,
        n_labels: usize,
        width: usize,
        threshold: Option<f32>,
    ) -> Self {
        let is_kept = |weight| threshold.is_none_or(|least| weight >= least);
        let (mut row_of, mut n_rows) = (vec![LISTED; width], 0);
        if threshold.is_none() {
            let mut n_weights = vec![0usize; width];
            for label in 0..n_labels {
                weights.for_each::<1>(label, |column, _| n_weights[column as usize] += 1);
            }
            for (row, &n) in row_of.iter_mut().zip(&n_weights) {
                if is_dense(n, n_labels) {
                    *row = n_rows;
                    n_rows += 1;
                }
            }
        }
        let mut rows = vec![0.0f32; n_rows as usize * n_labels];
        let (mut by_label, mut list) = (Ragged::with_capacity(n_labels, 0), Vec::new());
        for label in 0..n_labels {
            list.clear();
            weights.for_each(label, |column, [weight]| match row_of[column as usize] {
                LISTED if is_kept(weight) => list.push((column, weight)),
                LISTED => {}
                row => rows[row as usize * n_labels + label] = weight,
            });
            by_label.push(list.iter().copied());
        }
        Self {
            n_labels,
            lists: by_label.regroup(width, |label, &(column, w)| (column, (label, w))),
            row_of,
            rows,
        }
    }

    /// Adds the weights for feature `column`, times `x`, to the labels' `sums`, and marks their
    /// blocks in `is_met`.
    #[inline]
    pub fn add(&self, column: u32, x: f32, sums: &mut [f32], is_met: &mut [bool]) {
        let column = column as usize;
        if self.row_of[column] != LISTED {
            let from = self.row_of[column] as usize * self.n_labels;
            axpy(x, &self.rows[from..from + self.n_labels], sums);
            is_met.fill(true);
            return;
        }
        for &(label, weight) in self.list(column) {
            sums[label as usize] += x * weight;
            is_met[label as usize / LABELS_PER_BLOCK] = true;
        }
    }

    /// The labels that have a weight for feature `column`, increasing, and the weights; nothing
    /// if it has a weight for each label.
    #[inline]
    pub fn list(&self, column: usize) -> &[(u32, f32)] {
        self.lists.get(column)
    }
}
