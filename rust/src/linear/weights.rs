//! The weights of one regressor: a small hash map of the columns that it has seen, or all of them in a row.
//!
//! A tree has a map per node, for the labels or the features that came by. They
//! must cost nothing while empty, lie in one piece once filled, and be read
//! in a fixed order; nothing is ever taken out. Open addressing with linear
//! probing, power-of-two capacity, at most three quarters full.
//!
//! Rows begin where a cache line does, so that a register of weights lies in one line. Where memory is
//! allocated without a say, nearly every register lies across two, both of which are fetched.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::file::{put_lengths, take_lengths, Bundle, Record};
use crate::memory::prefer_large_pages;
use crate::simd::prefetch;

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// A row whose first element begins a line.
#[derive(Debug, Default)]
pub struct AlignedRow<S> {
    memory: Vec<S>,
    /// Where the row begins.
    from: usize,
}

impl<S: Copy + Default> AlignedRow<S> {
    /// Elements that may lie before the row: after so many, or never, one begins a line.
    const MARGIN: usize = CACHE_LINE / align_of::<S>();

    /// The default value `len` times.
    pub fn new(len: usize) -> Self {
        let mut row = Self::default();
        row.grow(len);
        row
    }

    /// An empty row with memory for `capacity` elements, on large pages where there are many.
    fn with_capacity(capacity: usize) -> Self {
        let mut memory: Vec<S> = Vec::with_capacity(capacity + Self::MARGIN);
        prefer_large_pages(&mut memory);
        // Alignment is a matter of speed: without it the row begins with the memory.
        let from = memory.as_ptr().align_offset(CACHE_LINE);
        let from = if from < Self::MARGIN { from } else { 0 };
        memory.resize(from, S::default());
        Self { memory, from }
    }

    /// Appends `n` times the default and returns that.
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

    /// Becomes `len` times the default, in the same memory where that is enough.
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

/// A copy of the memory would be aligned otherwise.
impl<S: Copy + Default> Clone for AlignedRow<S> {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

/// As vectors.
impl<S: Record + Copy + Default> Record for AlignedRow<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
        put_lengths(records.clone().map(|row| row.len()), name, bundle);
        S::put(records.flat_map(|row| row.iter()), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let all = S::take(Some(lengths.iter().sum()), name, bundle)?;
        let mut rest = &all[..];
        let row = |n| {
            let (row, others) = rest.split_at(n);
            rest = others;
            Self::from(row)
        };
        Ok(lengths.into_iter().map(row).collect())
    }
}

/// The key that marks a free slot; no label or feature has it.
const FREE_KEY: u32 = u32::MAX;

/// A key and its value, side by side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot<V> {
    key: u32,
    value: V,
}

/// The map. `V::default()` is what a key has before it is first written.
#[derive(Debug, Clone, Default)]
pub struct Table<V> {
    slots: Vec<Slot<V>>,
    len: u32,
}

impl<V: Copy + Default> Table<V> {
    /// A map without memory of its own.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }

    /// A map with capacity for `n` keys: the capacity it has after `n` insertions.
    pub fn with_capacity(n: usize) -> Self {
        let mut table = Self::new();
        if n > 0 {
            // Keys written in the order of a smaller table's slots would pile
            // up in one corner of a growing one, hence the whole capacity at once.
            table.resize((n * 4).div_ceil(3).next_power_of_two().max(4));
        }
        table
    }

    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.slots.iter_mut().for_each(|slot| slot.key = FREE_KEY);
            self.len = 0;
        }
    }

    /// Whether there may be such a key.
    pub fn is_key(key: u32) -> bool {
        key != FREE_KEY
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of slots held.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more key would make it grow.
    #[inline]
    pub fn is_full(&self) -> bool {
        (self.len as usize + 1) * 4 > self.slots.len() * 3
    }

    /// The value of `key`, if it was ever written.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&V> {
        lookup(&self.slots, key)
    }

    /// The value of `key`, to be changed; the default is inserted if it is new.
    #[inline]
    pub fn entry(&mut self, key: u32) -> &mut V {
        let at = self.place_of(key);
        &mut self.slots[at].value
    }

    /// Where the value of `key` lies until the next key is inserted; the
    /// default is inserted if it is new.
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

    /// The value at a place that [`Self::place_of`] returned.
    #[inline]
    pub fn at_mut(&mut self, place: usize) -> &mut V {
        &mut self.slots[place].value
    }

    /// Fetches the line that `key` is looked for in first, ahead of its use.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch_slot(&self.slots, key);
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.key != FREE_KEY)
            .map(|slot| &mut slot.value)
    }

    /// The slots themselves, for [`lookup`].
    pub fn slots(&self) -> &[Slot<V>] {
        &self.slots
    }

    /// Keys and values, in the order of the slots: the same history gives the
    /// same order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> + Clone {
        self.slots
            .iter()
            .filter(|slot| slot.key != FREE_KEY)
            .map(|slot| (slot.key, &slot.value))
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

/// Where `key` would like to be among `capacity` slots: the upper bits of its
/// product with 2^32 / golden ratio.
#[inline]
fn place(key: u32, capacity: usize) -> usize {
    let bits = capacity.trailing_zeros();
    (key.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize
}

/// Fetches the line that [`lookup`] looks at first, ahead of its use.
#[inline]
pub fn prefetch_slot<V>(slots: &[Slot<V>], key: u32) {
    if !slots.is_empty() {
        prefetch(&slots[place(key, slots.len())]);
    }
}

/// The value of `key` among the slots of a table that may lie elsewhere by now.
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

/// Weights (and whatever an optimiser keeps beside them) by column.
///
/// A node that has seen few columns keeps a hash table of those; once the
/// table would take as much memory as all columns in a row, it becomes that
/// row. The row's length is a multiple of the SIMD lanes.
#[derive(Debug, Clone)]
pub enum Weights<S: Copy + Default> {
    /// Only the columns seen.
    Table(Table<S>),
    /// All columns.
    Row(AlignedRow<S>),
}

impl<S: Copy + Default> Default for Weights<S> {
    fn default() -> Self {
        Self::Table(Table::new())
    }
}

impl<S: Copy + Default> Weights<S> {
    /// Prepares for at most `incoming` further columns: turns into a row
    /// of `width` where a table with them in it would be no smaller.
    #[inline]
    pub fn prepare_for(&mut self, incoming: usize, width: usize) {
        if let Self::Table(table) = self {
            // Every second slot of a grown table may be empty, and a slot
            // carries a key beside the value.
            let slots = (table.len() + incoming) * 2;
            if slots * (size_of::<S>() + size_of::<u32>()) >= width * size_of::<S>() {
                self.spread(width);
            }
        }
    }

    /// All columns in a row of `width`.
    #[cold]
    pub fn spread(&mut self, width: usize) {
        if let Self::Table(table) = self {
            let mut row = AlignedRow::new(width);
            for (column, &value) in table.iter() {
                row[column as usize] = value;
            }
            *self = Self::Row(row);
        }
    }

    /// Calls `visit(entry, weight)` for each of `columns`, in order.
    #[inline]
    pub fn visit(&self, columns: &[u32], mut visit: impl FnMut(usize, S)) {
        match self {
            Self::Table(table) if table.is_empty() => {}
            Self::Table(table) => {
                for (entry, &column) in columns.iter().enumerate() {
                    if let Some(&slot) = table.get(column) {
                        visit(entry, slot);
                    }
                }
            }
            Self::Row(row) => {
                for (entry, &column) in columns.iter().enumerate() {
                    visit(entry, row[column as usize]);
                }
            }
        }
    }

    /// Calls `change(entry, weight)` for each of `columns`, in order.
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

    /// Asks for the weights of `columns` ahead of their use.
    #[inline]
    pub fn prefetch(&self, columns: &[u32]) {
        // Of a row the first lines: the machine notices that more is wanted.
        const MAX_LINES: usize = 4;
        match self {
            Self::Table(table) => columns.iter().for_each(|&column| table.prefetch(column)),
            Self::Row(row) => {
                let line = (64 / size_of::<S>()).max(1);
                row.iter().step_by(line).take(MAX_LINES).for_each(prefetch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn is_aligned<S>(row: &AlignedRow<S>) -> bool {
        // An empty one may have no memory.
        row.is_empty() || (row.as_ptr() as usize).is_multiple_of(CACHE_LINE)
    }

    #[test]
    fn rows_begin_where_lines_do_whatever_happens_to_them() {
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
            // Elements that no line has a whole number of.
            let slots = AlignedRow::<[f32; 3]>::new(len);
            assert!(is_aligned(&slots) && slots.len() == len);
            let mut bundle = Bundle::new("test");
            AlignedRow::put([&row, &row].into_iter(), "rows", &mut bundle);
            let again = AlignedRow::<f32>::take(Some(2), "rows", &mut bundle).unwrap();
            assert!(again
                .iter()
                .all(|one| is_aligned(one) && one[..] == row[..]));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_map(keys in prop::collection::vec(0u32..200, 0..400)) {
            let mut table = Table::<u32>::new();
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
            prop_assert_eq!(again.capacity(), table.capacity());
        }
    }
}
