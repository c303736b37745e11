//! Weights by column: for sparse rows of many columns.
//!
//! A column of text says something of few labels, so its weights are a short
//! table that a row's candidates are looked up in; the other way round each
//! candidate would be a large table of its own, and each lookup a cache miss.

use crate::simd::prefetch;
use crate::tree::Table;

/// Weights per column and label.
#[derive(Debug, Clone)]
pub struct Columns {
    columns: Vec<Column>,
}

/// One column's weights.
///
/// Labels are numbered as they turn up, so that the frequent ones have low
/// numbers: of these most columns know something, and their weights lie side by
/// side. The others are in a table.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub struct Column {
    /// Weights of the labels 0, 1, ...; a power of two of them, or none.
    head: Vec<f32>,
    /// Weights of further labels.
    tail: Table<f32>,
}

/// Of a head, at least one in so many is filled: then it takes no more room than
/// a table of these.
const FILLED: usize = 4;

/// Tables up to this are read from end to end instead of being searched for each
/// candidate.
const SHORT: usize = 32;

/// The candidates at hand.
#[derive(Debug, Clone, Default)]
pub struct Places {
    labels: Vec<u32>,
    /// Place + 1 of each label that is a candidate now, else 0.
    of: Vec<u16>,
}

impl Places {
    /// Replaces the candidates; costs as much as there are old and new ones.
    pub fn set(&mut self, candidates: &[u32]) {
        for &label in &self.labels {
            self.of[label as usize] = 0;
        }
        self.labels.clear();
        self.labels.extend_from_slice(candidates);
        let highest = candidates.iter().max().map_or(0, |&label| label as usize);
        if self.of.len() <= highest {
            self.of.resize(highest + 1, 0);
        }
        for (place, &label) in candidates.iter().enumerate() {
            // More candidates than this have no place and are searched for.
            self.of[label as usize] = u16::try_from(place + 1).unwrap_or(0);
        }
    }

    /// Whether every candidate has a place.
    fn are_complete(&self) -> bool {
        self.labels.len() < usize::from(u16::MAX)
    }
}

impl Column {
    /// From saved weights.
    pub fn from_parts(head: Vec<f32>, tail: Table<f32>) -> Option<Self> {
        let sound = head.is_empty() || head.len().is_power_of_two();
        sound.then_some(Self { head, tail })
    }

    /// The weights of the first labels.
    pub fn head(&self) -> &[f32] {
        &self.head
    }

    /// Those of the others.
    pub fn tail(&self) -> &Table<f32> {
        &self.tail
    }

    /// Adds to the scores of the candidates.
    #[inline]
    fn score(&self, x: f32, places: &Places, scores: &mut [f32]) {
        if let Some(last) = self.head.len().checked_sub(1) {
            for (score, &label) in scores.iter_mut().zip(&places.labels) {
                // No branch: which labels are beyond the head is hard to guess.
                let w = self.head[(label as usize).min(last)];
                let within = (label as usize) <= last;
                *score += if within { x * w } else { 0.0 };
            }
        }
        if self.tail.is_empty() {
            return;
        }
        if self.tail.capacity() <= SHORT && places.are_complete() {
            for (label, w) in self.tail.iter() {
                let place = places.of.get(label as usize).copied().unwrap_or(0);
                if place != 0 {
                    scores[usize::from(place) - 1] += x * w;
                }
            }
        } else {
            for (score, &label) in scores.iter_mut().zip(&places.labels) {
                if label as usize >= self.head.len() {
                    if let Some(w) = self.tail.get(label) {
                        *score += x * w;
                    }
                }
            }
        }
    }

    /// The weight of `label`, to be changed.
    #[inline]
    fn entry(&mut self, label: u32) -> &mut f32 {
        if (label as usize) < self.head.len() {
            return &mut self.head[label as usize];
        }
        if self.tail.is_full() {
            self.grow_head();
            if (label as usize) < self.head.len() {
                return &mut self.head[label as usize];
            }
        }
        self.tail.entry(label)
    }

    /// Before the table must grow: takes as many labels out of it as lie close.
    #[cold]
    fn grow_head(&mut self) {
        let mut below = [0usize; 33];
        for (label, _) in self.tail.iter() {
            below[(u32::BITS - label.leading_zeros()) as usize] += 1;
        }
        let mut filled = self.head.iter().filter(|&&w| w != 0.0).count();
        let mut head = self.head.len();
        for (bits, n) in below.iter().enumerate() {
            filled += n;
            if (1usize << bits) > head && filled * FILLED >= 1 << bits {
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

impl Columns {
    /// Nothing learned yet.
    pub fn new(n_columns: usize) -> Self {
        Self {
            columns: vec![Column::default(); n_columns],
        }
    }

    /// From saved weights.
    pub fn from_parts(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// The weights of each column.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Makes room for columns up to `n`.
    pub fn reach(&mut self, n: usize) {
        if self.columns.len() < n {
            self.columns.resize(n, Column::default());
        }
    }

    /// Adds to `scores` the products of a row with the weights of `places`.
    pub fn score(&self, columns: &[u32], values: &[f32], places: &Places, scores: &mut [f32]) {
        for &column in columns {
            if let Some(column) = self.columns.get(column as usize) {
                column.head.first().into_iter().for_each(prefetch);
                column.tail.slots().first().into_iter().for_each(prefetch);
            }
        }
        for (&column, &x) in columns.iter().zip(values) {
            if let Some(column) = self.columns.get(column as usize) {
                column.score(x, places, scores);
            }
        }
    }

    /// Adds `steps` times the direction to the weights of `labels`; where a step
    /// is 0, nothing.
    pub fn add(&mut self, columns: &[u32], direction: &[f32], labels: &[u32], steps: &[f32]) {
        for (&column, &d) in columns.iter().zip(direction) {
            let column = &mut self.columns[column as usize];
            for (&label, &step) in labels.iter().zip(steps) {
                if step != 0.0 {
                    *column.entry(label) += step * d;
                }
            }
        }
    }

    /// Asks for `columns` ahead of their use.
    pub fn prefetch(&self, columns: &[u32]) {
        for &column in columns {
            self.columns.get(column as usize).into_iter().for_each(prefetch);
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
                let label = if few { label } else { label * label };
                *column.entry(label) += i as f32;
                *map.entry(label).or_insert(0.0f32) += i as f32;
            }
            let candidates: Vec<u32> = (0..400).map(|label| if few { label } else { label * label }).collect();
            let mut places = Places::default();
            places.set(&[3, 1000, 5]);
            places.set(&candidates);
            let mut scores = vec![1.0; candidates.len()];
            column.score(2.0, &places, &mut scores);
            for (label, score) in candidates.iter().zip(scores) {
                let expected = 1.0 + 2.0 * map.get(label).copied().unwrap_or_default();
                prop_assert_eq!(score, expected);
            }
            let filled = column.head.iter().filter(|w| **w != 0.0).count() + 1;
            prop_assert!(filled * FILLED * 2 >= column.head.len());
        }
    }
}
