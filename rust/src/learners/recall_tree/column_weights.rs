//! Weights of scorers by column, for sparse rows of many columns.
//!
//! A column of text has weights for few labels, so they form a short table, in which the candidates
//! of a row are looked up. With the weights of each label together, each candidate would have a large
//! table of its own, and each lookup would be a cache miss.

use super::labels::LocalId;
use crate::data::Ragged;
use crate::linear::Table;
use crate::simd::prefetch;
use crate::{persist, record};

/// The weights of each column.
#[derive(Debug, Clone, Default)]
pub struct ColumnWeights {
    pub columns: Vec<Column>,
}

/// The weights of one column.
///
/// Frequent labels have low ids. Most columns have weights for these, so they lie side by side. A
/// hash table has the weights of all other labels.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub struct Column {
    /// The weights of the labels 0, 1, ...; their number is a power of two or 0.
    head: Vec<f32>,
    /// The weights of further labels.
    tail: Table<f32>,
}

persist!(ColumnWeights {
    Columns columns;
});

record!(Column { head, tail });

/// At least one weight of a head in this many is not 0. With one in four, a head would take no more
/// memory than a hash table. But a weight in a head is found without a search, and its neighbors lie
/// in the same cache line.
const MAX_HEAD_PER_WEIGHT: usize = 16;

/// Labels move from the tail to the head only if the tail has this many or more.
const MIN_MOVED: usize = 12;

impl Column {
    /// Adds the products with `x` to the scores of the candidates.
    fn score(&self, x: f32, candidates: &[LocalId], scores: &mut [f32]) {
        if let Some(last) = self.head.len().checked_sub(1) {
            for (score, &label) in scores.iter_mut().zip(candidates) {
                // Branchless, because it is hard to predict which labels are beyond the head.
                let w = self.head[label.at().min(last)];
                let within = label.at() <= last;
                *score += if within { x * w } else { 0.0 };
            }
        }
        if self.tail.len() == 0 {
            return;
        }
        for (&label, score) in candidates.iter().zip(scores) {
            if label.at() >= self.head.len() {
                if let Some(w) = self.tail.get(label.0) {
                    *score += x * w;
                }
            }
        }
    }

    fn tail(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        self.tail.iter().map(|(label, &w)| (LocalId(label), w))
    }

    /// Returns the labels with their weights, of which some in the head are 0.
    pub fn iter(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        let head = (0..).map(LocalId).zip(self.head.iter().copied());
        head.chain(self.tail())
    }

    /// Returns the weight of `label`.
    pub fn get(&self, label: LocalId) -> f32 {
        let weight = self.head.get(label.at());
        *weight.or_else(|| self.tail.get(label.0)).unwrap_or(&0.0)
    }

    /// Adds to the weight of `label`.
    fn add(&mut self, label: LocalId, more: f32) {
        let may_move = self.tail.len() >= MIN_MOVED && self.tail.is_full();
        if label.at() >= self.head.len() && may_move {
            self.grow_head();
        }
        match self.head.get_mut(label.at()) {
            Some(weight) => *weight += more,
            None => *self.tail.entry(label.0) += more,
        }
    }

    /// Moves labels that lie close together to the head. Called before the tail has to grow.
    #[cold]
    fn grow_head(&mut self) {
        let mut below = [0usize; 33];
        for (label, _) in self.tail() {
            below[(u32::BITS - label.0.leading_zeros()) as usize] += 1;
        }
        let mut filled = self.head.iter().filter(|&&w| w != 0.0).count();
        let mut head = self.head.len();
        for (bits, n) in below.iter().enumerate() {
            filled += n;
            if (1usize << bits) > head && filled * MAX_HEAD_PER_WEIGHT >= 1 << bits {
                head = 1 << bits;
            }
        }
        if head > self.head.len() {
            self.head.resize(head, 0.0);
            let mut beyond = Vec::new();
            for (label, &w) in self.tail.iter() {
                match self.head.get_mut(label as usize) {
                    Some(weight) => *weight = w,
                    None => beyond.push((label, w)),
                }
            }
            self.tail = beyond.into_iter().collect();
        }
    }
}

impl ColumnWeights {
    /// Creates `n_columns` columns without weights.
    pub fn new(n_columns: usize) -> Self {
        Self {
            columns: vec![Column::default(); n_columns],
        }
    }

    /// Returns whether restored weights belong to labels below `n_classes`, and heads have a valid
    /// length.
    pub fn fits(&self, n_classes: usize) -> bool {
        self.columns.iter().all(|Column { head, tail }| {
            (head.is_empty() || head.len().is_power_of_two())
                && tail.iter().all(|(label, _)| (label as usize) < n_classes)
        })
    }

    /// Returns the number of weights, including those in heads that are 0.
    pub fn n_weights(&self) -> usize {
        let n_weights = |column: &Column| column.head.len() + column.tail.len();
        self.columns.iter().map(n_weights).sum()
    }

    /// Returns the columns and weights of each of `n_labels` labels, without weights of 0.
    pub fn by_label(&self, n_labels: usize) -> Ragged<(u32, f32)> {
        let mut by_column = Ragged::default();
        for column in &self.columns {
            by_column.push(column.iter().filter(|&(_, w)| w != 0.0));
        }
        by_column.regroup(n_labels, |column, &(label, w): &(LocalId, f32)| {
            (label.0, (column, w))
        })
    }

    /// Adds the products of a row with the weights of `candidates` to `scores`.
    pub fn score(
        &self,
        (columns, values): (&[u32], &[f32]),
        candidates: &[LocalId],
        scores: &mut [f32],
    ) {
        let columns = columns
            .iter()
            .map(|&column| self.columns.get(column as usize));
        columns.clone().flatten().for_each(prefetch);
        for column in columns.clone().flatten() {
            column.head.first().into_iter().for_each(prefetch);
            column.tail.slots().first().into_iter().for_each(prefetch);
        }
        for (column, &x) in columns.zip(values) {
            if let Some(column) = column {
                column.score(x, candidates, scores);
            }
        }
    }

    /// Adds each of `steps` times the direction to the weights of its label.
    pub fn add(&mut self, columns: &[u32], direction: &[f32], labels: &[LocalId], steps: &[f32]) {
        for (&column, &d) in columns.iter().zip(direction) {
            let column = &mut self.columns[column as usize];
            for (&label, &step) in labels.iter().zip(steps) {
                if step != 0.0 {
                    column.add(label, step * d);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_column_equals_a_map(labels in prop::collection::vec(0u32..400, 0..600), few in any::<bool>()) {
            let (mut column, mut map) = (Column::default(), BTreeMap::new());
            for (i, &label) in labels.iter().enumerate() {
                let label = LocalId(if few { label } else { label * label });
                column.add(label, i as f32);
                *map.entry(label).or_insert(0.0f32) += i as f32;
            }
            let all: Vec<LocalId> = (0..400).map(|label| LocalId(if few { label } else { label * label })).collect();
            let mut scores = vec![1.0; all.len()];
            column.score(2.0, &all, &mut scores);
            for (label, score) in all.iter().zip(scores) {
                let expected = 1.0 + 2.0 * map.get(label).copied().unwrap_or_default();
                prop_assert_eq!(score, expected);
                prop_assert_eq!(1.0 + 2.0 * column.get(*label), expected);
            }
            let filled = column.head.iter().filter(|w| **w != 0.0).count() + 1;
            prop_assert!(filled * MAX_HEAD_PER_WEIGHT * 2 >= column.head.len());
        }
    }
}
