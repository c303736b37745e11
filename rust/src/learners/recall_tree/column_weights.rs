//! Weights by column: for sparse rows of many columns.
//!
//! A column of text has weights for few labels, so they are a short table that a
//! row's candidates are looked up in. Stored by class, each candidate would be a
//! large table of its own, and each lookup a cache miss.

use super::labels::LocalId;
use crate::data::Ragged;
use crate::linear::Table;
use crate::simd::prefetch;
use crate::{persist, record};

/// Weights per column and label.
#[derive(Debug, Clone, Default)]
pub struct ColumnWeights {
    pub columns: Vec<Column>,
}

/// One column's weights.
///
/// The frequent labels have low ids: most columns have weights of them, and they lie
/// side by side. The others are in a map.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub struct Column {
    /// Weights of the labels 0, 1, ...; a power of two of them, or none.
    head: Vec<f32>,
    /// Weights of further labels.
    tail: Table<f32>,
}

persist!(ColumnWeights {
    Columns columns;
});

record!(Column { head, tail });

/// At least one in so many weights of a head is not 0. With one in four it would take
/// no more memory than a map; but a weight in a head is found without a search, and
/// its neighbours come with it.
const MAX_HEAD_PER_WEIGHT: usize = 16;

/// Labels of a map, at least, that are moved to a head.
const MIN_MOVED: usize = 12;

impl Column {
    /// Adds to the scores of the candidates.
    #[inline]
    fn score(&self, x: f32, candidates: &[LocalId], scores: &mut [f32]) {
        if let Some(last) = self.head.len().checked_sub(1) {
            for (score, &label) in scores.iter_mut().zip(candidates) {
                // No branch: which labels are beyond the head is hard to predict.
                let w = self.head[label.at().min(last)];
                let within = label.at() <= last;
                *score += if within { x * w } else { 0.0 };
            }
        }
        if self.tail.is_empty() {
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

    fn iter(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        let head = (0..).map(LocalId).zip(self.head.iter().copied());
        head.chain(self.tail())
    }

    /// Adds to the weight of `label`.
    #[inline]
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

    /// Before the map must grow: moves as many labels to the head as lie close.
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
    /// Whether weights that were restored are sound, and of labels below `n_classes`.
    pub fn fits(&self, n_classes: usize) -> bool {
        self.columns.iter().all(|Column { head, tail }| {
            (head.is_empty() || head.len().is_power_of_two())
                && tail.iter().all(|(label, _)| (label as usize) < n_classes)
        })
    }

    /// Number of weights, among them some of 0.
    pub fn n_weights(&self) -> usize {
        let of = |Column { head, tail }: &Column| head.len() + tail.len();
        self.columns.iter().map(of).sum()
    }

    /// The columns and weights of each of `n_labels`, without those of 0.
    pub fn by_label(&self, n_labels: usize) -> Ragged<(u32, f32)> {
        let mut by_column = Ragged::default();
        for column in &self.columns {
            by_column.push(column.iter().filter(|&(_, w)| w != 0.0));
        }
        by_column.regroup(n_labels, |column, &(label, w): &(LocalId, f32)| {
            (label.0, (column, w))
        })
    }

    /// Makes the columns at least `n`.
    pub fn reserve_columns(&mut self, n: usize) {
        if self.columns.len() < n {
            self.columns.resize(n, Column::default());
        }
    }

    /// Adds to `scores` the products of a row with the weights of `candidates`.
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

    /// Adds `steps` times the direction to the weights of `labels`; where a step
    /// is 0, nothing.
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
        fn a_column_is_a_map(labels in prop::collection::vec(0u32..400, 0..600), few in any::<bool>()) {
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
            }
            let filled = column.head.iter().filter(|w| **w != 0.0).count() + 1;
            prop_assert!(filled * MAX_HEAD_PER_WEIGHT * 2 >= column.head.len());
        }
    }
}
