//! Lists of different lengths in one array: sparse rows, label sets, the labels of a tree's nodes.

use std::ops::Range;

use crate::error::{require, Result};
use crate::file::{put_lengths, take_lengths, Bundle, Flat, Persist, Record};
use crate::persist;

/// Lists of different lengths, stored one after the other. Entries from a mapped file stay there if
/// their type is an element type of files.
#[derive(Debug, Clone, PartialEq)]
pub struct Ragged<T: 'static> {
    /// Start of each list, and the end of the last one.
    starts: Vec<usize>,
    entries: Flat<T>,
}

impl<T: Clone> Default for Ragged<T> {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl<T: Clone> Ragged<T> {
    /// Creates an empty value with memory for `n` lists of `n_entries` entries in total.
    pub fn with_capacity(n: usize, n_entries: usize) -> Self {
        let mut starts = Vec::with_capacity(n + 1);
        starts.push(0);
        Self {
            starts,
            entries: Vec::with_capacity(n_entries).into(),
        }
    }

    /// Appends a list.
    pub fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.entries.to_mut().extend(list);
        self.starts.push(self.entries.len());
    }

    /// Appends the last list again.
    pub fn push_last(&mut self) {
        let last = self.range(self.len() - 1);
        self.entries.to_mut().extend_from_within(last);
        self.starts.push(self.entries.len());
    }

    /// Removes all lists and keeps the memory.
    pub fn clear(&mut self) {
        self.starts.truncate(1);
        self.entries.to_mut().clear();
    }

    /// Reserves memory for exactly `n` more lists of `n_entries` entries in total.
    pub fn reserve(&mut self, n: usize, n_entries: usize) {
        self.starts.reserve_exact(n);
        self.entries.to_mut().reserve_exact(n_entries);
    }

    /// Returns the range of list `i` in all entries.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.starts[i]..self.starts[i + 1]
    }

    /// Returns list `i`.
    pub fn get(&self, i: usize) -> &[T] {
        &self.entries[self.range(i)]
    }

    /// Returns the lists.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let entries: &[T] = &self.entries;
        self.starts
            .windows(2)
            .map(|pair| &entries[pair[0]..pair[1]])
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the start of each list, and the end of the last one.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Returns the length of each list.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Returns the entries of all lists.
    pub fn entries(&self) -> &Flat<T> {
        &self.entries
    }

    /// Returns lists of what `map` returns for each entry, without None.
    #[must_use]
    pub fn filter_map<U: Clone>(&self, map: impl Fn(&T) -> Option<U>) -> Ragged<U> {
        let mut mapped = Ragged::default();
        let lists = self.iter();
        lists.for_each(|list| mapped.push(list.iter().filter_map(&map)));
        mapped
    }

    /// Distributes the entries to `n` new lists, as in a transpose: `place(i, entry)` returns the new
    /// list of an entry of list `i`, and its new value. The order of entries is kept.
    pub fn regroup<U: Clone + Default>(
        &self,
        n: usize,
        place: impl Fn(u32, &T) -> (u32, U),
    ) -> Ragged<U> {
        let placed = || {
            let lists = (0u32..).zip(self.starts.windows(2));
            lists.flat_map(|(i, ends)| {
                let entries = self.entries[ends[0]..ends[1]].iter();
                entries.map(move |entry| (i, entry))
            })
        };
        // Shifted by two: lengths at first, then starts, which advance to ends as entries are placed.
        let mut starts: Vec<usize> = vec![0; n + 2];
        for (i, entry) in placed() {
            starts[place(i, entry).0 as usize + 2] += 1;
        }
        for i in 2..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut entries = vec![U::default(); self.entries.len()];
        for (i, entry) in placed() {
            let (list, entry) = place(i, entry);
            let at = &mut starts[list as usize + 1];
            entries[*at] = entry;
            *at += 1;
        }
        starts.truncate(n + 1);
        Ragged {
            starts,
            entries: entries.into(),
        }
    }
}

const ENTRIES: &str = "list";

impl<R: Record + Clone> Persist for Ragged<R> {
    fn put(&self, bundle: &mut Bundle) {
        put_lengths(self.lengths(), ENTRIES, bundle);
        R::put(self.entries.iter(), ENTRIES, bundle);
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        self.clear();
        let mut end = 0;
        for n in take_lengths(None, ENTRIES, bundle)? {
            end += n;
            self.starts.push(end);
        }
        self.entries = R::take_flat(Some(end), ENTRIES, bundle)?;
        Ok(())
    }
}

/// Owned sparse rows, stored one after the other.
#[derive(Debug, Clone, Default)]
pub struct RaggedRows {
    columns: Ragged<u32>,
    values: Vec<f32>,
}

impl RaggedRows {
    /// Appends a row with one column for each of `values`.
    pub fn push(&mut self, columns: impl IntoIterator<Item = u32>, values: &[f32]) {
        self.columns.push(columns);
        self.values.extend_from_slice(values);
        debug_assert_eq!(self.columns.entries().len(), self.values.len());
    }

    /// Appends a row with the columns of the last one.
    pub fn push_with_last_columns(&mut self, values: &[f32]) {
        self.columns.push_last();
        self.values.extend_from_slice(values);
        debug_assert_eq!(self.columns.entries().len(), self.values.len());
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.values.clear();
    }

    /// Reserves memory for exactly `n` more rows of `n_values` values in total.
    pub fn reserve(&mut self, n: usize, n_values: usize) {
        self.columns.reserve(n, n_values);
        self.values.reserve_exact(n_values);
    }

    /// Returns columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.columns.range(i);
        (&self.columns.entries()[range.clone()], &self.values[range])
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Number of values in all rows.
    pub fn n_values(&self) -> usize {
        self.values.len()
    }

    /// Returns an error if restored columns and values do not match.
    fn check_lengths(&self) -> Result<()> {
        let fits = self.columns.entries().len() == self.values.len();
        require(fits, "rows have another number of columns than values")
    }
}

persist!(RaggedRows {
    Nest columns;
    Columns values;
} check check_lengths);

/// A sparse row as a dense array, which is reused for one row after the other.
#[derive(Debug, Default)]
pub struct SpreadRow {
    by_column: Vec<f32>,
    columns: Vec<u32>,
}

impl SpreadRow {
    /// Replaces the row by one whose columns are below `width`. Values of equal columns, which stem
    /// from hashing, are added.
    pub fn replace(&mut self, (columns, values): (&[u32], &[f32]), width: usize) {
        for column in self.columns.drain(..) {
            self.by_column[column as usize] = 0.0;
        }
        self.by_column.resize(width, 0.0);
        self.columns.extend(columns);
        for (&column, x) in columns.iter().zip(values) {
            self.by_column[column as usize] += x;
        }
    }

    /// Returns the columns in the order of the row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Returns the value of each column, 0 if the row has none.
    pub fn by_column(&self) -> &[f32] {
        &self.by_column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_stored_and_restored() {
        let mut lists = Ragged::default();
        for list in [vec![3u32, 1], vec![], vec![4]] {
            lists.push(list);
        }
        assert_eq!((lists.len(), lists.starts()), (3, &[0, 2, 2, 3][..]));
        assert_eq!(
            [lists.get(0), lists.get(1), lists.get(2)],
            [&[3, 1][..], &[], &[4]]
        );
        assert!(lists.lengths().eq([2, 0, 1]));
        let mut longer = lists.clone();
        longer.push_last();
        assert_eq!((longer.len(), longer.get(3)), (4, lists.get(2)));
        let mut bundle = Bundle::new("lists");
        lists.put(&mut bundle);
        let mut again = Ragged::<u32>::default();
        again.fill(&mut bundle.clone()).unwrap();
        assert_eq!(again, lists);
        bundle.take::<u32>("list").unwrap();
        bundle.put("list", vec![1u32; 4]);
        assert!(again.fill(&mut bundle).is_err());
        lists.clear();
        assert_eq!(lists, Ragged::default());
    }

    #[test]
    fn regrouping_keeps_the_order() {
        let mut lists = Ragged::default();
        for list in [vec![3u32, 1], vec![], vec![1, 0]] {
            lists.push(list);
        }
        let regrouped = lists.regroup(5, |i, &entry| (entry, i));
        let expected: [&[u32]; 5] = [&[2], &[0, 2], &[], &[0], &[]];
        assert_eq!(regrouped.len(), 5);
        for (i, list) in expected.into_iter().enumerate() {
            assert_eq!(regrouped.get(i), list);
        }
        let none = Ragged::<u32>::default().regroup(0, |i, &entry| (entry, i));
        assert_eq!(none, Ragged::default());
    }
}
