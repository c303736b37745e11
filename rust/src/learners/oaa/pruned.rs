//! Sparse weights: for each feature, the classes that have a weight for it.
//!
//! A prediction costs O(K) for the constants, plus the weights of the row's features.

use std::ops::Range;

use super::tile::Tile;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, Flat, Persist};
use crate::linear::{bounded_score, Span};
use crate::persist;

/// Weights of all classes that are at least the threshold, 8 bytes each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PrunedWeights {
    /// Weight of the constant feature per class; minus infinity for classes not seen.
    biases: Flat<f32>,
    /// Classes that have a weight for a feature slot, increasing. The first slot, which belongs to
    /// the constant, has none.
    classes: Ragged<u32>,
    /// Weights of these classes.
    weights: Flat<f32>,
}

persist!(PrunedWeights {
    Scores biases;
    Nest classes;
    Flat weights;
});

impl PrunedWeights {
    /// Concatenates the weights of consecutive classes, which have the same slots.
    pub fn concat(parts: &[Self]) -> Self {
        let n_weights = parts.iter().map(|part| part.weights.len()).sum();
        let n_slots = parts.first().map_or(0, |part| part.classes.len());
        let mut classes = Ragged::with_capacity(n_slots, n_weights);
        let mut weights = Vec::with_capacity(n_weights);
        for slot in 0..n_slots {
            let lists = parts.iter().map(|part| part.classes.get(slot));
            classes.push(lists.flatten().copied());
            for part in parts {
                weights.extend_from_slice(&part.weights[part.classes.range(slot)]);
            }
        }
        Self {
            biases: parts
                .iter()
                .flat_map(|part| part.biases.iter().copied())
                .collect(),
            classes,
            weights: weights.into(),
        }
    }

    /// Returns the same weights for classes that follow `first` others.
    pub fn shifted(mut self, first: u32) -> Self {
        let mut classes = Ragged::with_capacity(self.classes.len(), self.weights.len());
        for slot in 0..self.classes.len() {
            classes.push(self.classes.get(slot).iter().map(|class| class + first));
        }
        self.classes = classes;
        self
    }

    /// Keeps the `weights` of a tile's classes that are at least `threshold`.
    pub fn from_tile(tile: &Tile, weights: &[f32], n_classes: usize, threshold: f32) -> Self {
        // The last tile is padded.
        let n = tile.width().min(n_classes - tile.first);
        let mut rows = weights.chunks_exact(tile.width()).map(|row| &row[..n]);
        let constants = rows.next().unwrap_or_default().iter();
        let biases = constants
            .zip(&tile.unseen_mask)
            .map(|(bias, mask)| bias + mask);
        let mut pruned = Self {
            biases: biases.collect(),
            ..Self::default()
        };
        pruned.classes.push([]);
        for row in rows {
            let named = (tile.first as u32..).zip(row.iter().copied());
            let kept = named.filter(|(_, weight)| weight.abs() >= threshold);
            pruned.classes.push(kept.clone().map(|(class, _)| class));
            kept.for_each(|(_, weight)| pruned.weights.to_mut().push(weight));
        }
        pruned
    }

    /// Reads the weights of `classes` for `n_slots` features.
    pub fn take(bundle: &mut Bundle, classes: Range<usize>, n_slots: usize) -> Result<Self> {
        let mut pruned = Self::default();
        pruned.fill(bundle)?;
        let is_mapped = pruned.weights.is_mapped();
        let is_class = |&class: &u32| classes.contains(&(class as usize));
        let is_sound = pruned.biases.len() == classes.len()
            && pruned.classes.len() == n_slots
            && pruned.classes.entries().len() == pruned.weights.len()
            && (is_mapped || pruned.classes.entries().iter().all(is_class));
        bundle.require(is_sound, "the weights do not fit the classes and columns")?;
        Ok(pruned)
    }

    /// Returns the mean number of weights per feature.
    pub fn weights_each(&self) -> usize {
        self.weights.len() / self.classes.len().max(1) + 1
    }

    /// Returns the number of weights, without the constants.
    pub fn n_weights(&self) -> usize {
        self.weights.len()
    }

    /// Returns the weight of a class for a slot.
    pub fn weight(&self, slot: usize, class: u32) -> f32 {
        if slot == 0 {
            return self.biases[class as usize];
        }
        let found = self.classes.get(slot).binary_search(&class);
        found.map_or(0.0, |at| self.weights[self.classes.range(slot).start + at])
    }

    /// Computes the scores of all classes for a row of slots, clamped to `span`.
    pub fn score(
        &self,
        (slots, values): (&[u32], &[f32]),
        span: Option<Span>,
        scores: &mut Vec<f32>,
    ) {
        scores.clear();
        scores.resize(self.biases.len(), 0.0);
        for (&slot, &x) in slots.iter().zip(values) {
            let range = self.classes.range(slot as usize);
            let classes = self.classes.get(slot as usize);
            for (&class, weight) in classes.iter().zip(&self.weights[range]) {
                scores[class as usize] += x * weight;
            }
        }
        // Tiles also add the constant last, as it is the last feature of a row.
        for (score, bias) in scores.iter_mut().zip(self.biases.iter()) {
            *score = bounded_score(*score) + bias;
        }
        if let Some(span) = span {
            scores.iter_mut().for_each(|p| *p = span.clamp(*p));
        }
    }
}
