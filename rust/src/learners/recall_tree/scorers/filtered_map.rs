//! A small map from labels to weights, fast where a label is absent.
//!
//! Most of the candidates that a column is scored for have no weight there. A
//! filter of a few bits per label answers for these from a cache line or two,
//! where a hash table alone would fetch a line for each of them.

use crate::alloc::filled;
use crate::error::Result;
use crate::file::{Bundle, Record};
use crate::learners::recall_tree::label_index::LocalId;
use crate::linear::Table;
use crate::simd::prefetch;

/// Hash of a label, shared by all maps.
#[inline]
pub(super) fn hash(label: LocalId) -> u32 {
    label.0.wrapping_mul(0x9E37_79B1)
}

/// A filter, then slots of a label and a weight, in one allocation; open
/// addressing with linear probing, at most three quarters full. Labels are never
/// removed.
#[derive(Debug, Clone, Default)]
pub struct FilteredMap {
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
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether one more label would make it grow.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.words.is_empty() || (u64::from(self.len) + 1) * 4 > 3 << self.bits
    }

    /// Words of the filter, before the slots; none while there are none.
    #[inline]
    fn filter_len(&self) -> usize {
        (1 << self.bits) >> (6 - FILTER)
    }

    /// Whether a label of this hash may be there. The map must not be empty.
    #[inline]
    pub(super) fn may_have(&self, hash: u32) -> bool {
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
    pub(super) fn get(&self, label: LocalId, hash: u32) -> Option<f32> {
        let slot = self.words[self.place_of(label, hash)];
        (slot != FREE).then_some(f32::from_bits(slot as u32))
    }

    /// Adds to the weight of `label`, which is 0 if it is new.
    pub(super) fn add(&mut self, label: LocalId, more: f32) {
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
        let mut words = filled(FREE, filter_len + (1 << bits));
        words[..filter_len].fill(0);
        let len = 0;
        Self { words, len, bits }
    }

    /// Labels and weights, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (LocalId, f32)> + '_ {
        let slots = self.words[self.filter_len()..]
            .iter()
            .filter(|&&slot| slot != FREE);
        slots.map(|&slot| (LocalId((slot >> 32) as u32), f32::from_bits(slot as u32)))
    }

    /// Prefetches the filter.
    #[inline]
    pub(super) fn prefetch(&self) {
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
