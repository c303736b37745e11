//! A small hash map from `u32` to plain data, in one allocation.
//!
//! A tree has one per node, for the labels or the features that came by. They
//! must cost nothing while empty, lie in one piece once filled, and be read
//! in a fixed order; nothing is ever taken out. Open addressing with linear
//! probing, power-of-two capacity, at most three quarters full.

use crate::alloc::filled;
use crate::simd::prefetch;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The key that marks a free slot; no label or feature has it.
const FREE: u32 = u32::MAX;

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
            self.slots.iter_mut().for_each(|slot| slot.key = FREE);
            self.len = 0;
        }
    }

    /// Whether there may be such a key.
    pub fn is_key(key: u32) -> bool {
        key != FREE
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
        debug_assert_ne!(key, FREE);
        loop {
            if let Some(mask) = self.slots.len().checked_sub(1) {
                let mut at = place(key, self.slots.len());
                while self.slots[at].key != key && self.slots[at].key != FREE {
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

    /// Fetches all of it ahead of its use: for tables of few keys.
    #[inline]
    pub fn prefetch_all(&self) {
        let each_line = (LINE / size_of::<Slot<V>>()).max(1);
        self.slots.iter().step_by(each_line).for_each(prefetch);
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.key != FREE)
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
            .filter(|slot| slot.key != FREE)
            .map(|slot| (slot.key, &slot.value))
    }

    /// Replaces `list` by the keys and what `of` makes of their values, in the order of
    /// [`iter`](Self::iter): for a table in a cold place, without a branch that hangs on its slots.
    #[inline]
    pub fn list<T: Copy + Default>(&self, of: impl Fn(&V) -> T, list: &mut Vec<(u32, T)>) {
        list.clear();
        list.resize(self.slots.len(), Default::default());
        let mut n = 0;
        for slot in &self.slots {
            // At most as many were written as slots were read.
            list[n] = (slot.key, of(&slot.value));
            n += usize::from(slot.key != FREE);
        }
        list.truncate(n);
    }

    #[cold]
    fn resize(&mut self, capacity: usize) {
        let free = Slot {
            key: FREE,
            value: V::default(),
        };
        let old = std::mem::replace(&mut self.slots, filled(free, capacity));
        for slot in old.into_iter().filter(|slot| slot.key != FREE) {
            let mut at = place(slot.key, capacity);
            while self.slots[at].key != FREE {
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
        if slot.key == FREE {
            return None;
        }
        at = (at + 1) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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
            let mut list = Vec::new();
            table.list(|&v| v, &mut list);
            prop_assert_eq!(list, table.iter().map(|(k, &v)| (k, v)).collect::<Vec<_>>());
            let again: Table<u32> = table.iter().map(|(k, &v)| (k, v)).collect::<Vec<_>>().into_iter().collect();
            prop_assert_eq!(again.capacity(), table.capacity());
        }
    }
}
