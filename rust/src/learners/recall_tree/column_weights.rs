//! Weights by column: for sparse rows of many columns.
//!
//! A column of text has weights for few labels, so they are a short table that a
//! row's candidates are looked up in. Stored by class, each candidate would be a
//! large table of its own, and each lookup a cache miss.

use super::labels::LocalId;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, Record};
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
    tail: FilteredMap,
}

persist!(ColumnWeights {
    Columns columns;
});

record!(Column { head, tail });

/// At least one in so many weights of a head is not 0. With one in four it would take
/// no more memory than a map; but a weight in a head is found without a search, and
/// its neighbours come with it.
const FILLED: usize = 16;

impl Column {
    /// Adds to the scores of the candidates, whose hashes are `hashes`.
    #[inline]
    fn score(&self, x: f32, candidates: &[LocalId], hashes: &[u32], scores: &mut [f32]) {
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
        let beyond = self.head.len();
        for ((&label, &hash), score) in candidates.iter().zip(hashes).zip(scores) {
            if label.at() >= beyond && self.tail.may_have(hash) {
                if let Some(w) = self.tail.get(label, hash) {
                    *score += x * w;
                }
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        let head = (0..).map(LocalId).zip(self.head.iter().copied());
        head.chain(self.tail.iter())
    }

    /// Adds to the weight of `label`.
    #[inline]
    fn add(&mut self, label: LocalId, more: f32) {
        if label.at() >= self.head.len() && self.tail.is_full() {
            self.grow_head();
        }
        match self.head.get_mut(label.at()) {
            Some(weight) => *weight += more,
            None => self.tail.add(label, more),
        }
    }

    /// Before the map must grow: moves as many labels to the head as lie close.
    #[cold]
    fn grow_head(&mut self) {
        let mut below = [0usize; 33];
        for (label, _) in self.tail.iter() {
            below[(u32::BITS - label.0.leading_zeros()) as usize] += 1;
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
            for (label, w) in self.tail.iter() {
                match self.head.get_mut(label.at()) {
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
                && tail.iter().all(|(label, _)| label.at() < n_classes)
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

    /// Adds to `scores` the products of a row with the weights of `candidates`. `hashes` is
    /// scratch space.
    pub fn score(
        &self,
        (columns, values): (&[u32], &[f32]),
        candidates: &[LocalId],
        hashes: &mut Vec<u32>,
        scores: &mut [f32],
    ) {
        hashes.clear();
        hashes.extend(candidates.iter().copied().map(hash));
        let columns = columns
            .iter()
            .map(|&column| self.columns.get(column as usize));
        columns.clone().flatten().for_each(prefetch);
        for column in columns.clone().flatten() {
            column.head.first().into_iter().for_each(prefetch);
            column.tail.prefetch();
        }
        for (column, &x) in columns.zip(values) {
            if let Some(column) = column {
                column.score(x, candidates, hashes, scores);
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

/// Hash of a label, shared by all maps.
#[inline]
fn hash(label: LocalId) -> u32 {
    label.0.wrapping_mul(0x9E37_79B1)
}

/// A small map from labels to weights, fast where a label is absent: most of the candidates that a
/// column is scored for have no weight there. A filter of a few bits per label answers for these
/// from a cache line or two, where a hash table alone would fetch a line for each of them.
///
/// A filter, then slots of a label and a weight, in one allocation; open
/// addressing with linear probing, at most three quarters full. Labels are never
/// removed.
#[derive(Debug, Clone, Default)]
struct FilteredMap {
    words: Vec<u64>,
    len: u32,
    /// There are 2^bits slots.
    bits: u32,
}

/// A slot without a label: it has [`LocalId::NONE`] in its place.
const FREE: u64 = u64::MAX;

/// Bits of the filter per slot, as a power of two.
const FILTER: u32 = 2;

/// The fewest slots, as a power of two: their filter fills a word.
const FEWEST: u32 = 4;

impl FilteredMap {
    #[inline]
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of labels.
    fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether one more label would make it grow.
    #[inline]
    fn is_full(&self) -> bool {
        self.words.is_empty() || (u64::from(self.len) + 1) * 4 > 3 << self.bits
    }

    /// Words of the filter, before the slots; none while there are none.
    #[inline]
    fn filter_len(&self) -> usize {
        (1 << self.bits) >> (6 - FILTER)
    }

    /// Whether a label of this hash may be there. The map must not be empty.
    #[inline]
    fn may_have(&self, hash: u32) -> bool {
        let bit = hash >> (32 - FILTER - self.bits);
        self.words[bit as usize >> 6] >> (bit & 63) & 1 != 0
    }

    /// Where among the words `label` is, or else the free slot where it would be. The map
    /// must not be empty.
    #[inline]
    fn place_of(&self, label: LocalId, hash: u32) -> usize {
        let from = self.filter_len();
        let slots = &self.words[from..];
        let mask = slots.len() - 1;
        let mut at = (hash >> (32 - self.bits)) as usize;
        loop {
            let slot = slots[at & mask];
            if slot >> 32 == u64::from(label.0) || slot == FREE {
                return from + (at & mask);
            }
            at += 1;
        }
    }

    /// The weight of `label`, if it is there. The map must not be empty.
    #[inline]
    fn get(&self, label: LocalId, hash: u32) -> Option<f32> {
        let slot = self.words[self.place_of(label, hash)];
        (slot != FREE).then_some(f32::from_bits(slot as u32))
    }

    /// Adds to the weight of `label`, which is 0 if it is new.
    fn add(&mut self, label: LocalId, more: f32) {
        let hash = hash(label);
        if !self.words.is_empty() {
            let at = self.place_of(label, hash);
            let slot = &mut self.words[at];
            if *slot != FREE {
                *slot = pack(label, f32::from_bits(*slot as u32) + more);
                return;
            }
        }
        if self.is_full() {
            self.grow();
        }
        self.insert(label, hash, more);
    }

    /// Inserts a label that is not there; there must be a free slot.
    fn insert(&mut self, label: LocalId, hash: u32, w: f32) {
        let bit = hash >> (32 - FILTER - self.bits);
        self.words[bit as usize >> 6] |= 1 << (bit & 63);
        let at = self.place_of(label, hash);
        self.words[at] = pack(label, w);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let bits = FEWEST.max(self.bits + 1);
        let old = std::mem::replace(self, Self::with_bits(bits));
        for (label, w) in old.iter() {
            self.insert(label, hash(label), w);
        }
    }

    fn with_bits(bits: u32) -> Self {
        let filter_len = 1 << (bits + FILTER - 6);
        let mut words = vec![FREE; filter_len + (1 << bits)];
        words[..filter_len].fill(0);
        let len = 0;
        Self { words, len, bits }
    }

    /// Labels and weights, in the order of the slots.
    fn iter(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        let slots = self.words[self.filter_len()..]
            .iter()
            .filter(|&&slot| slot != FREE);
        slots.map(|&slot| (LocalId((slot >> 32) as u32), f32::from_bits(slot as u32)))
    }

    /// Prefetches the filter.
    #[inline]
    fn prefetch(&self) {
        self.words.first().into_iter().for_each(prefetch);
    }
}

#[inline]
fn pack(label: LocalId, w: f32) -> u64 {
    u64::from(label.0) << 32 | u64::from(w.to_bits())
}

/// With as many slots as after so many additions.
impl FromIterator<(LocalId, f32)> for FilteredMap {
    fn from_iter<I: IntoIterator<Item = (LocalId, f32)>>(pairs: I) -> Self {
        let pairs: Vec<(LocalId, f32)> = pairs.into_iter().collect();
        if pairs.is_empty() {
            return Self::default();
        }
        let slots = (pairs.len() * 4).div_ceil(3).next_power_of_two();
        let mut map = Self::with_bits(slots.trailing_zeros().max(FEWEST));
        for (label, w) in pairs {
            map.add(label, w);
        }
        map
    }
}

/// As tables, which iterate in another order; the order is not kept.
impl Record for FilteredMap {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        let as_table = |map: &Self| map.iter().map(|(label, w)| (label.0, w)).collect();
        let tables: Vec<Table<f32>> = records.map(as_table).collect();
        Table::put(tables.iter(), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let of_table = |table: &Table<f32>| {
            table
                .iter()
                .map(|(label, &w)| (LocalId(label), w))
                .collect()
        };
        Ok(Table::take(n, name, bundle)?.iter().map(of_table).collect())
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
            let hashes: Vec<u32> = all.iter().copied().map(hash).collect();
            let mut scores = vec![1.0; all.len()];
            column.score(2.0, &all, &hashes, &mut scores);
            for (label, score) in all.iter().zip(scores) {
                let expected = 1.0 + 2.0 * map.get(label).copied().unwrap_or_default();
                prop_assert_eq!(score, expected);
            }
            let filled = column.head.iter().filter(|w| **w != 0.0).count() + 1;
            prop_assert!(filled * FILLED * 2 >= column.head.len());
        }
    }
}
