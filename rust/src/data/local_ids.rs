//! Numbers of keys (columns, labels, classes) in the order of their first occurrence.

use crate::error::{Error, Result};
use crate::persist;

/// Numbers keys from 0 in the order of their first occurrence. So arrays by number are only as long
/// as there are keys that occurred, and frequent keys, which occur early, lie side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalIds {
    /// Number + 1 of each key, 0 for none. Pages that stay zero take no memory.
    ids: Vec<u32>,
    keys: Vec<u32>,
}

// Files keep the name that the keys had in the Recall Tree, the only learner that stores them so.
persist!(LocalIds {
    Columns labels = keys;
} check restore);

impl LocalIds {
    /// Returns numbers for keys below `n_keys`, none of which has occurred.
    pub fn new(n_keys: usize) -> Self {
        Self {
            ids: vec![0; n_keys],
            keys: Vec::new(),
        }
    }

    /// Allows keys below `n_keys`, if there are not as many already.
    pub fn widen(&mut self, n_keys: usize) {
        self.ids.resize(n_keys.max(self.ids.len()), 0);
    }

    /// Returns the bound of the keys.
    pub fn n_keys(&self) -> usize {
        self.ids.len()
    }

    /// Returns the number of keys that have occurred.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the key of each number.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Returns the number of `key`, the next one if it has none.
    pub fn insert(&mut self, key: u32) -> u32 {
        let id = &mut self.ids[key as usize];
        if *id == 0 {
            self.keys.push(key);
            *id = self.keys.len() as u32;
        }
        *id - 1
    }

    /// Numbers stored `keys` in order. Returns false if a key is out of range or comes twice, or if
    /// others have numbers already.
    pub fn insert_all(&mut self, keys: &[u32]) -> bool {
        let mut numbered = (0..).zip(keys);
        let fits = |&key: &u32| (key as usize) < self.ids.len();
        keys.iter().all(fits)
            && numbered.all(|(id, &key)| self.insert(key) == id)
            && self.len() == keys.len()
    }

    /// Returns the number of `key`, if it has one.
    pub fn get(&self, key: u32) -> Option<u32> {
        self.ids[key as usize].checked_sub(1)
    }

    /// Takes the numbers back, in time proportional to them.
    pub fn clear(&mut self) {
        for key in self.keys.drain(..) {
            self.ids[key as usize] = 0;
        }
    }

    fn restore(&mut self) -> Result<()> {
        let keys = std::mem::take(&mut self.keys);
        let is_sound = self.insert_all(&keys);
        is_sound
            .then_some(())
            .ok_or_else(|| Error::data("a key of the local ids is out of range or stands twice"))
    }
}
