//! Weights of one regressor: a hash table of the columns that occurred, or a dense row.
//!
//! A tree has a table per node, for labels or features. A table needs no memory while empty, is
//! contiguous and iterated in a fixed order, and entries are never removed. It uses open addressing
//! with linear probing, a power of two as capacity, and is at most three quarters full.
//!
//! Dense rows are aligned to cache lines, so that each vector register of weights is in one line.
//! Unaligned, nearly every register would need two lines.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::file::{check_column, put_lengths, take_lengths, Bundle, Record};
use crate::memory::prefer_large_pages;
use crate::simd::prefetch;

/// Size of a cache line in bytes.
const CACHE_LINE: usize = 64;

/// A row that is aligned to cache lines.
#[derive(Debug, Default)]
pub struct AlignedRow<S> {
    memory: Vec<S>,
    /// Start of the row in `memory`.
    from: usize,
}

impl<S: Copy + Default> AlignedRow<S> {
    /// Maximum number of elements before the row.
    const MARGIN: usize = CACHE_LINE / align_of::<S>();

    /// Creates a row of `len` default values.
    pub fn new(len: usize) -> Self {
        let mut row = Self::default();
        row.grow(len);
        row
    }

    /// Creates an empty row with memory for `capacity` elements, on large pages if there are many.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut memory: Vec<S> = Vec::with_capacity(capacity + Self::MARGIN);
        prefer_large_pages(&mut memory);
        // Alignment is only for speed. If it is impossible, the row is unaligned.
        let from = memory.as_ptr().align_offset(CACHE_LINE);
        let from = if from < Self::MARGIN { from } else { 0 };
        memory.resize(from, S::default());
        Self { memory, from }
    }

    /// Appends `n` default values and returns them.
    pub fn grow(&mut self, n: usize) -> &mut [S] {
        let len = self.len();
        if self.from + len + n > self.memory.capacity() {
            let mut larger = Self::with_capacity((len + n).max(2 * len));
            larger.memory.extend_from_slice(self);
            *self = larger;
        }
        self.memory.resize(self.from + len + n, S::default());
        &mut self[len..]
    }

    /// Replaces the row by `len` default values, in the same memory if possible.
    pub fn reset(&mut self, len: usize) {
        self.memory.truncate(self.from);
        self.grow(len);
    }
}

impl<S> Deref for AlignedRow<S> {
    type Target = [S];

    #[inline]
    fn deref(&self) -> &[S] {
        &self.memory[self.from..]
    }
}

impl<S> DerefMut for AlignedRow<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [S] {
        &mut self.memory[self.from..]
    }
}

impl<S: Copy + Default> From<&[S]> for AlignedRow<S> {
    fn from(values: &[S]) -> Self {
        let mut row = Self::with_capacity(values.len());
        row.memory.extend_from_slice(values);
        row
    }
}

// A derived clone would not be aligned.
impl<S: Copy + Default> Clone for AlignedRow<S> {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

/// Key of free slots, which no label or feature has.
const FREE_KEY: u32 = u32::MAX;

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot<V> {
    key: u32,
    value: V,
}

/// A hash table with `u32` keys. New keys get the value `V::default()`.
#[derive(Debug, Clone, Default)]
pub struct Table<V> {
    slots: Vec<Slot<V>>,
    len: u32,
}

impl<V: Copy + Default> Table<V> {
    /// Creates an empty table with the capacity that `n` insertions lead to.
    pub fn with_capacity(n: usize) -> Self {
        let mut table = Self::default();
        if n > 0 {
            // All at once, because keys in the order of a smaller table's slots would cluster in a
            // growing one.
            table.resize((n * 4).div_ceil(3).next_power_of_two().max(4));
        }
        table
    }

    /// Removes all keys and keeps the memory.
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.slots.iter_mut().for_each(|slot| slot.key = FREE_KEY);
            self.len = 0;
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether the next new key makes the table grow.
    #[inline]
    pub fn is_full(&self) -> bool {
        (self.len as usize + 1) * 4 > self.slots.len() * 3
    }

    /// Returns the value of `key`, if there is one.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&V> {
        lookup(&self.slots, key)
    }

    /// Returns the value of `key`, which is inserted if it is new.
    #[inline]
    pub fn entry(&mut self, key: u32) -> &mut V {
        let at = self.place_of(key);
        &mut self.slots[at].value
    }

    /// Returns the slot of `key`, which is inserted if it is new. The slot is valid until the next
    /// insertion.
    #[inline]
    pub fn place_of(&mut self, key: u32) -> usize {
        debug_assert_ne!(key, FREE_KEY);
        loop {
            if let Some(mask) = self.slots.len().checked_sub(1) {
                let mut at = place(key, self.slots.len());
                while self.slots[at].key != key && self.slots[at].key != FREE_KEY {
                    at = (at + 1) & mask;
                }
                if self.slots[at].key == key {
                    return at;
                }
                if !self.is_full() {
                    let value = V::default();
                    self.slots[at] = Slot { key, value };
                    self.len += 1;
                    return at;
                }
            }
            self.resize((self.slots.len() * 2).max(4));
        }
    }

    /// Returns the value in a slot that [`Self::place_of`] returned.
    #[inline]
    pub fn at_mut(&mut self, place: usize) -> &mut V {
        &mut self.slots[place].value
    }

    /// Prefetches the cache line in which a search for `key` begins.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch_slot(&self.slots, key);
    }

    /// Returns all values for changes.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.key != FREE_KEY)
            .map(|slot| &mut slot.value)
    }

    /// Returns the slots, for [`lookup`].
    pub fn slots(&self) -> &[Slot<V>] {
        &self.slots
    }

    /// Returns keys and values in the order of the slots, which depends on the insertions only.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> + Clone {
        let filled = self.slots.iter().filter(|slot| slot.key != FREE_KEY);
        filled.map(|slot| (slot.key, &slot.value))
    }

    #[cold]
    fn resize(&mut self, capacity: usize) {
        let free = Slot {
            key: FREE_KEY,
            value: V::default(),
        };
        let old = std::mem::replace(&mut self.slots, vec![free; capacity]);
        for slot in old.into_iter().filter(|slot| slot.key != FREE_KEY) {
            let mut at = place(slot.key, capacity);
            while self.slots[at].key != FREE_KEY {
                at = (at + 1) & (capacity - 1);
            }
            self.slots[at] = slot;
        }
    }
}

impl<V: Copy + Default> FromIterator<(u32, V)> for Table<V> {
    fn from_iter<I: IntoIterator<Item = (u32, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        let mut table = Self::with_capacity(pairs.size_hint().0);
        for (key, value) in pairs {
            *table.entry(key) = value;
        }
        table
    }
}

/// Returns the preferred slot of `key`: the upper bits of its product with 2^32 / golden ratio.
#[inline]
fn place(key: u32, capacity: usize) -> usize {
    let bits = capacity.trailing_zeros();
    (key.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize
}

/// Replaces `found` by keys and values in the slots of a table, or in a copy of them. Free slots are
/// as likely as filled ones, so no branch depends on them.
pub fn read_entries<V: Copy + Default>(slots: &[Slot<V>], found: &mut Vec<(u32, V)>) {
    found.clear();
    found.resize(slots.len(), Default::default());
    let mut n = 0;
    for slot in slots {
        found[n] = (slot.key, slot.value);
        n += usize::from(slot.key != FREE_KEY);
    }
    found.truncate(n);
}

/// Prefetches the cache line in which [`lookup`] begins.
#[inline]
pub fn prefetch_slot<V>(slots: &[Slot<V>], key: u32) {
    if !slots.is_empty() {
        prefetch(&slots[place(key, slots.len())]);
    }
}

/// Returns the value of `key` in the slots of a table, or in a copy of them.
#[inline]
pub fn lookup<V>(slots: &[Slot<V>], key: u32) -> Option<&V> {
    if slots.is_empty() {
        return None;
    }
    let mask = slots.len() - 1;
    let mut at = place(key, slots.len());
    loop {
        let slot = &slots[at];
        if slot.key == key {
            return Some(&slot.value);
        }
        if slot.key == FREE_KEY {
            return None;
        }
        at = (at + 1) & mask;
    }
}

/// Weights of one regressor by column, possibly with state of the optimizer.
///
/// They begin as a hash table of the columns that occurred, and become a dense row once the table
/// would take as much memory. The length of the row is a multiple of the SIMD lanes.
#[derive(Debug, Clone)]
pub enum Weights<S: Copy + Default> {
    /// Columns that occurred.
    Table(Table<S>),
    /// All columns.
    Row(AlignedRow<S>),
}

impl<S: Copy + Default> Default for Weights<S> {
    fn default() -> Self {
        Self::Table(Table::default())
    }
}

impl<S: Copy + Default> Weights<S> {
    /// Prepares for at most `incoming` new columns: a table that would not be smaller than a row of
    /// `width` columns becomes a row.
    #[inline]
    pub fn prepare_for(&mut self, incoming: usize, width: usize) {
        if let Self::Table(table) = self {
            // Half of the slots may be free, and a slot also has a key.
            let slots = (table.len() + incoming) * 2;
            if slots * (size_of::<S>() + size_of::<u32>()) >= width * size_of::<S>() {
                self.spread(width);
            }
        }
    }

    /// Converts a table to a row of `width` columns.
    #[cold]
    pub fn spread(&mut self, width: usize) {
        if let Self::Table(_) = self {
            let mut row = AlignedRow::new(width);
            self.for_each(|column, value| row[column] = value);
            *self = Self::Row(row);
        }
    }

    /// Calls `visit` with each column and its weight; for a row, with all columns.
    pub fn for_each(&self, mut visit: impl FnMut(usize, S)) {
        match self {
            Self::Table(table) => table.iter().for_each(|(key, &w)| visit(key as usize, w)),
            Self::Row(row) => (0..)
                .zip(row.iter())
                .for_each(|(column, &w)| visit(column, w)),
        }
    }

    /// Returns whether the weights match `width` columns.
    pub(crate) fn fits(&self, width: usize) -> bool {
        match self {
            Self::Row(row) => row.len() == width,
            Self::Table(table) => table.iter().all(|(column, _)| (column as usize) < width),
        }
    }

    /// Returns the weight of `column`.
    #[inline]
    pub fn get(&self, column: u32) -> S {
        match self {
            Self::Table(table) => table.get(column).copied().unwrap_or_default(),
            Self::Row(row) => row[column as usize],
        }
    }

    /// Calls `change(entry, weight)` for each of `columns`, in order, and inserts missing weights.
    #[inline]
    pub fn change(&mut self, columns: &[u32], mut change: impl FnMut(usize, &mut S)) {
        match self {
            Self::Table(table) => {
                for (entry, &column) in columns.iter().enumerate() {
                    change(entry, table.entry(column));
                }
            }
            Self::Row(row) => {
                for (entry, &column) in columns.iter().enumerate() {
                    change(entry, &mut row[column as usize]);
                }
            }
        }
    }

    /// Number of slots of the table; a dense row has none.
    pub fn n_slots(&self) -> usize {
        match self {
            Self::Table(table) => table.slots.len(),
            Self::Row(_) => 0,
        }
    }

    /// Prefetches the weights of `columns`.
    #[inline]
    pub fn prefetch(&self, columns: &[u32]) {
        /// After the first lines of a row, the processor prefetches by itself.
        const MAX_LINES: usize = 4;
        match self {
            Self::Table(table) => columns.iter().for_each(|&column| table.prefetch(column)),
            Self::Row(row) => {
                let line = (CACHE_LINE / size_of::<S>()).max(1);
                row.iter().step_by(line).take(MAX_LINES).for_each(prefetch);
            }
        }
    }

    /// Converts all values.
    pub(super) fn map<T: Copy + Default>(&self, convert: impl Fn(S) -> T) -> Weights<T> {
        match self {
            Self::Table(table) => {
                let entries = table.iter().map(|(key, &value)| (key, convert(value)));
                Weights::Table(entries.collect())
            }
            Self::Row(row) => {
                let mut converted = AlignedRow::new(row.len());
                for (to, &from) in converted.iter_mut().zip(row.iter()) {
                    *to = convert(from);
                }
                Weights::Row(converted)
            }
        }
    }
}

/// Stores the sorted keys of all tables, and their values.
impl<S: Record + Copy + Default> Record for Table<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        put_lengths(records.clone().map(Table::len), name, bundle);
        let mut entries: Vec<(u32, &S)> = Vec::new();
        for table in records {
            let from = entries.len();
            entries.extend(table.iter());
            entries[from..].sort_unstable_by_key(|&(key, _)| key);
        }
        let keys = entries.iter().map(|&(key, _)| key).collect::<Vec<u32>>();
        bundle.put(&format!("{name}.key"), keys);
        S::put(entries.iter().map(|&(_, value)| value), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let n_entries = lengths.iter().sum();
        let key_name = format!("{name}.key");
        let keys = u32::take(Some(n_entries), &key_name, bundle)?;
        check_column(&keys, |&key| key != FREE_KEY, &key_name, bundle)?;
        let values = S::take(Some(n_entries), name, bundle)?;
        let mut entries = keys.into_iter().zip(values);
        Ok(lengths
            .into_iter()
            .map(|n| Self::from_iter(entries.by_ref().take(n).collect::<Vec<_>>()))
            .collect())
    }
}

/// Stores rows and tables separately.
impl<S: Record + Copy + Default> Record for Weights<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        let rows = records.clone().filter_map(|weights| match weights {
            Self::Row(row) => Some(row),
            Self::Table(_) => None,
        });
        let tables = records.clone().filter_map(|weights| match weights {
            Self::Row(_) => None,
            Self::Table(table) => Some(table),
        });
        let is_row = records.map(|weights| u8::from(matches!(weights, Self::Row(_))));
        bundle.put(&format!("{name}.is_row"), is_row.collect::<Vec<u8>>());
        let row_name = format!("{name}.row");
        put_lengths(rows.clone().map(|row| row.len()), &row_name, bundle);
        S::put(rows.flat_map(|row| row.iter()), &row_name, bundle);
        Table::put(tables, &format!("{name}.table"), bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let is_row = bool::take(n, &format!("{name}.is_row"), bundle)?;
        let n_rows = is_row.iter().filter(|&&is_row| is_row).count();
        let n_tables = is_row.len() - n_rows;
        let rows = Vec::<S>::take(Some(n_rows), &format!("{name}.row"), bundle)?;
        let mut rows = rows.into_iter().map(|row| AlignedRow::from(&row[..]));
        let tables = Table::take(Some(n_tables), &format!("{name}.table"), bundle)?;
        let mut tables = tables.into_iter();
        Ok(is_row
            .into_iter()
            .map_while(|is_row| {
                let row = is_row.then(|| rows.next().map(Self::Row));
                row.unwrap_or_else(|| tables.next().map(Self::Table))
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn is_aligned<S>(row: &AlignedRow<S>) -> bool {
        // An empty row may have no memory.
        row.is_empty() || (row.as_ptr() as usize).is_multiple_of(CACHE_LINE)
    }

    #[test]
    fn rows_stay_aligned() {
        for len in [0, 1, 16, 800, 5000] {
            let mut row = AlignedRow::<f32>::new(len);
            assert!(is_aligned(&row) && row[..] == vec![0.0; len]);
            row.iter_mut().for_each(|w| *w = 1.0);
            let mut copy = row.clone();
            assert!(is_aligned(&copy) && copy[..] == row[..]);
            for len in [len / 2, len, 3 * len] {
                copy.reset(len);
                assert!(is_aligned(&copy) && copy[..] == vec![0.0; len]);
            }
            let mut grown = AlignedRow::<f32>::default();
            for w in &row[..] {
                grown.grow(1)[0] = *w;
                assert!(is_aligned(&grown));
            }
            assert_eq!(grown[..], row[..]);
            grown.grow(3 * len + 1);
            assert!(is_aligned(&grown) && grown[..len] == row[..]);
            assert_eq!(grown[len..], vec![0.0; 3 * len + 1]);
            // A cache line does not have an integer number of these elements.
            let slots = AlignedRow::<[f32; 3]>::new(len);
            assert!(is_aligned(&slots) && slots.len() == len);
            let mut bundle = Bundle::new("test");
            let weights = Weights::Row(row.clone());
            Weights::put([&weights, &weights].into_iter(), "rows", &mut bundle);
            let again = Weights::<f32>::take(Some(2), "rows", &mut bundle).unwrap();
            for weights in again {
                assert!(
                    matches!(weights, Weights::Row(one) if is_aligned(&one) && one[..] == row[..])
                );
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_map(keys in prop::collection::vec(0u32..200, 0..400)) {
            let mut table = Table::<u32>::default();
            let mut map = BTreeMap::new();
            for &key in &keys {
                *table.entry(key * 7919) += 1;
                *map.entry(key * 7919).or_insert(0u32) += 1;
            }
            prop_assert_eq!(table.len(), map.len());
            for key in 0..2000 {
                prop_assert_eq!(table.get(key), map.get(&key));
            }
            let listed: BTreeMap<u32, u32> = table.iter().map(|(k, &v)| (k, v)).collect();
            prop_assert_eq!(listed, map);
            let again: Table<u32> = table.iter().map(|(k, &v)| (k, v)).collect::<Vec<_>>().into_iter().collect();
            prop_assert_eq!(again.slots.len(), table.slots.len());
        }
    }
}
