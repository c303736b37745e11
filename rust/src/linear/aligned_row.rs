//! Rows that begin where a cache line does.
//!
//! A register of weights then lies in one line. Where memory is allocated without a say, nearly
//! every one lies across two, both of which are fetched.

use std::ops::{Deref, DerefMut};

use crate::alloc::{extend, filled, prefer_large_pages, reserve_exact, resize, zeros};
use crate::error::Result;
use crate::file::{put_lengths, take_lengths, Bundle, Record};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A row whose first element begins a line.
#[derive(Debug, Default)]
pub struct AlignedRow<S> {
    memory: Vec<S>,
    /// Where the row begins.
    from: usize,
}

impl AlignedRow<f32> {
    /// `len` times the default.
    pub fn new(len: usize) -> Self {
        // In one piece: zeros that nobody has written to take no memory, but on large pages.
        Self::within(zeros(len + Self::MARGIN), len)
    }
}

impl<S: Copy + Default> AlignedRow<S> {
    /// Elements that may lie before the row: after so many, or never, one begins a line.
    const MARGIN: usize = LINE / align_of::<S>();

    /// The default value `len` times.
    pub fn of_default(len: usize) -> Self {
        Self::within(filled(S::default(), len + Self::MARGIN), len)
    }

    fn within(mut memory: Vec<S>, len: usize) -> Self {
        let from = Self::start(&memory);
        memory.truncate(from + len);
        Self { memory, from }
    }

    /// The first element of `memory` that begins a line. Alignment is a matter of speed: without
    /// it the row begins with the memory.
    fn start(memory: &[S]) -> usize {
        let from = memory.as_ptr().align_offset(LINE);
        if from < Self::MARGIN {
            from
        } else {
            0
        }
    }

    /// Elements that there is memory for.
    pub fn capacity(&self) -> usize {
        self.memory.capacity().saturating_sub(self.from)
    }

    /// Makes memory for `len` elements in all, and no more than that; a large one on large pages.
    pub fn reserve(&mut self, len: usize) {
        if self.capacity() >= len {
            return;
        }
        let spare = (len + Self::MARGIN).saturating_sub(self.memory.len());
        reserve_exact(&mut self.memory, spare);
        prefer_large_pages(&mut self.memory);
        // What lies elsewhere now may begin elsewhere in a line.
        let (before, n) = (self.from, self.len());
        self.from = Self::start(&self.memory);
        self.memory.resize(before.max(self.from) + n, S::default());
        self.memory.copy_within(before..before + n, self.from);
        self.memory.truncate(self.from + n);
    }

    /// Cuts it off, or appends the default, so that there are `len` elements.
    pub fn resize(&mut self, len: usize) {
        self.reserve(len);
        resize(&mut self.memory, self.from + len, S::default());
    }

    /// Appends `n` times the default and returns that.
    pub fn grow(&mut self, n: usize) -> &mut [S] {
        let len = self.len();
        if len + n > self.capacity() {
            // As a vector: so many at a time that few are moved often.
            self.reserve((len + n).max(2 * len));
        }
        self.resize(len + n);
        &mut self[len..]
    }

    /// Becomes `len` times the default, in the same memory where that is enough.
    pub fn reset(&mut self, len: usize) {
        self.memory.truncate(self.from);
        self.resize(len);
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
        let mut row = Self::default();
        row.reserve(values.len());
        extend(&mut row.memory, values.iter().copied());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn is_aligned<S>(row: &AlignedRow<S>) -> bool {
        // An empty one may have no memory.
        row.is_empty() || (row.as_ptr() as usize).is_multiple_of(LINE)
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
            grown.resize(len / 2);
            assert_eq!(grown[..], row[..len / 2]);
            // Elements that no line has a whole number of.
            let slots = AlignedRow::<[f32; 3]>::of_default(len);
            assert!(is_aligned(&slots) && slots.len() == len);
            let mut bundle = Bundle::new("test");
            AlignedRow::put([&row, &row].into_iter(), "rows", &mut bundle);
            let again = AlignedRow::<f32>::take(Some(2), "rows", &mut bundle).unwrap();
            assert!(again
                .iter()
                .all(|one| is_aligned(one) && one[..] == row[..]));
        }
    }
}
