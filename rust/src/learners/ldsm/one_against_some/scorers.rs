//! Trained scorers: their weights, how they are joined to the trees, and whether they find labels
//! that the trees do not name.

use std::sync::OnceLock;

use super::super::examples::Examples;
use super::super::join::Join;
use super::super::params::Params;
use super::feature_index::FeatureIndex;
use super::sparse_weights::SparseWeights;
use super::svm::Scorer;
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::persist;

/// Weights for the features of a training row, of all labels together and on average, up to which
/// the scorers find labels: the time for a row must not grow with the number of labels. So many
/// take about as long as the traversal of the trees.
const MOST_WEIGHTS_MET: f64 = 65_536.0;

/// The sparse scorers of all labels.
#[derive(Debug, Clone, Default)]
pub struct OneAgainstSome {
    weights: SparseWeights,
    /// Weight of the constant by label; minus infinity for a label without examples.
    biases: Vec<f32>,
    /// Whether labels that no tree names are found, by the index. Else only the best labels of
    /// the trees are scored, by their weights.
    finds_labels: bool,
    /// What the join adds to the trees' score.
    floor: f32,
    /// How the join weighs the scorers' loss.
    weight: f32,
    /// Features, the constant left out.
    n_features: usize,
    /// Made when it is first needed.
    index: OnceLock<FeatureIndex>,
}

persist!(OneAgainstSome {
    Nest weights;
    Columns biases;
    Meta finds_labels;
    Meta floor;
    Meta weight;
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
        let weights = SparseWeights::new(scorers);
        Self {
            finds_labels: weights_met(&weights, examples) <= MOST_WEIGHTS_MET,
            weights,
            biases: scorers.iter().map(bias).collect(),
            n_features: examples.width - 1,
            ..Self::default()
        }
    }

    pub fn set_join(&mut self, (floor, weight): (f32, f32)) {
        (self.floor, self.weight) = (floor, weight);
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

    pub fn finds_labels(&self) -> bool {
        self.finds_labels
    }

    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The weights by feature. They are brought into that order by the first call, in time
    /// proportional to their number.
    pub fn index(&self) -> &FeatureIndex {
        let new = || FeatureIndex::new(&self.weights, self.n_features);
        self.index.get_or_init(new)
    }

    /// Weights for a feature, on average.
    pub fn weights_each(&self) -> usize {
        self.weights.n_entries() / self.n_features.max(1) + 1
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
            ..Self::default()
        };
        scorers.fill(bundle)?;
        let is_join = |x: f32| x.is_finite() && x >= 0.0;
        let is_sound = scorers.biases.len() == n_classes
            && scorers.biases.iter().all(|&bias| bias < f32::INFINITY)
            && scorers.weights.is_sound(n_classes, scorers.n_features)
            && is_join(scorers.floor)
            && is_join(scorers.weight);
        if !is_sound {
            return Err(bundle.damaged("the scorers are of another shape or out of range"));
        }
        Ok(scorers)
    }
}

/// How many weights the features of a row have, on average over `examples`.
fn weights_met(weights: &SparseWeights, examples: &Examples) -> f64 {
    let mut rows_with = vec![0u32; examples.width];
    for row in 0..examples.len() as u32 {
        for &column in examples.row(row).0 {
            rows_with[column as usize] += 1;
        }
    }
    let labels = 0..weights.n_labels();
    let of_label = |label| -> u64 {
        let columns = weights.weights(label).map(|(column, _)| column as usize);
        columns.map(|column| u64::from(rows_with[column])).sum()
    };
    labels.map(of_label).sum::<u64>() as f64 / examples.len() as f64
}
