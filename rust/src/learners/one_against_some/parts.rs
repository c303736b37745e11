//! Scorers of some of the labels, and their join to those of all labels.

use super::dense::DenseWeights;
use super::layout::Layout;
use super::rank::OneAgainstSome;
use super::train::HeldOut;
use super::weights::LabelWeights;
use crate::data::PackedLists;
use crate::error::{require, Result};
use crate::file::{Bundle, Columns, Persist, Record};

/// The scorers of some labels.
#[derive(Debug, Default)]
pub struct GroupScorers {
    /// Name of the model, which all its parts have.
    pub model: String,
    /// The labels, increasing.
    pub labels: Vec<u32>,
    /// Scorers of these labels. Join and calibration are those of all labels together.
    pub scorers: OneAgainstSome,
    /// By label, rows of the fit and their margins by a scorer that is trained without them.
    pub held_out: Vec<HeldOut>,
}

impl Persist for GroupScorers {
    fn put(&self, bundle: &mut Bundle) {
        bundle.put_meta("model", &self.model);
        bundle.put_meta("width", &(self.scorers.weights.n_features + 1));
        Columns::put(&self.labels, "labels", bundle);
        Columns::put(&self.held_out, "held_out", bundle);
        bundle.nest("scorers", self.scorers.to_bundle());
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        let width: usize = bundle.take_meta("width")?;
        self.model = bundle.take_meta("model")?;
        self.labels = bundle.take("labels")?;
        self.held_out = Record::take(None, "held_out", bundle)?;
        let is_sound = width > 0
            && self.labels.is_sorted_by(|a, b| a < b)
            && [0, self.labels.len()].contains(&self.held_out.len());
        bundle.require(is_sound, "its labels and scorers do not match")?;
        let mut scorers = bundle.unnest("scorers")?;
        self.scorers = OneAgainstSome::take(&mut scorers, self.labels.len(), width)?;
        Ok(())
    }
}

impl GroupScorers {
    /// Creates the scorers of `labels`, increasing, with these weights and no join yet.
    pub fn new(labels: &[u32], weights: LabelWeights) -> Self {
        let labels = labels.to_vec();
        let scorers = OneAgainstSome {
            weights,
            ..OneAgainstSome::default()
        };
        Self {
            labels,
            scorers,
            ..Self::default()
        }
    }
}

impl LabelWeights {
    /// Joins weights for the same columns. `places` has for each label its part and its number there.
    pub fn join(parts: &[&Self], places: &[(u32, u32)], (threshold, bits): Layout) -> Result<Self> {
        let first = parts[0];
        let columns = |part: &Self| (part.n_features, part.dense.columns.columns().to_vec());
        let are_alike = parts.iter().all(|part| columns(part) == columns(first));
        require(are_alike, "the scorers of groups have other columns")?;
        let mut dense = DenseWeights::new(&first.dense.columns, places.len());
        let (mut lists, mut biases) = (Vec::new(), Vec::new());
        for (label, &(part, i)) in places.iter().enumerate() {
            let (part, i) = (parts[part as usize], i as usize);
            lists.push(part.lists.list(i));
            biases.push(part.biases[i]);
            dense.copy(label, &part.dense, i);
        }
        let mut joined = Self::default();
        (joined.index_threshold, joined.n_features) = (threshold, first.n_features);
        joined.lists = PackedLists::with_bits(&lists, 1, first.n_features, bits)?;
        (joined.biases, joined.dense) = (biases.into(), dense);
        Ok(joined)
    }
}

impl OneAgainstSome {
    /// Returns these scorers, which have no weights yet, with those of `parts`, which have each label
    /// once.
    pub fn with_parts(&self, parts: &[GroupScorers]) -> Result<Self> {
        let mut places = vec![(u32::MAX, 0); self.weights.biases.len()];
        for (part, GroupScorers { labels, .. }) in (0..).zip(parts) {
            for (number, &label) in (0..).zip(labels) {
                if let Some(place) = places.get_mut(label as usize) {
                    *place = (part, number);
                }
            }
        }
        let n_labels: usize = parts.iter().map(|part| part.labels.len()).sum();
        let is_placed = |&(part, _): &(u32, u32)| part < u32::MAX;
        let are_complete = n_labels == places.len() && places.iter().all(is_placed);
        require(are_complete, "the scorers of a group are missing")?;
        let weights: Vec<&LabelWeights> = parts.iter().map(|part| &part.scorers.weights).collect();
        let is_same = weights[0].n_features == self.weights.n_features;
        require(is_same, "the scorers of groups have other columns")?;
        Ok(Self {
            weights: LabelWeights::join(&weights, &places, weights[0].layout())?,
            ..self.clone()
        })
    }
}
