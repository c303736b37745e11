//! Sparse lists in little memory: the weights of a tree's nodes, the histograms of its leaves.
//!
//! An entry is an id (a column, a label) and M values. Ids are parted into blocks of 2^8 or 2^16,
//! whichever takes less memory: a list says where each of its blocks begins, and of an id only
//! the 8 or 16 bits within its block are held. Values are held as they are, or as 8 bits with a
//! scale for the list and each of the M. So an entry of a node with two children takes 3 or 4
//! bytes in place of 12, and it can still be looked up by its id. The arrays are those of the
//! file, and can be used where they lie in it.

use std::ops::Range;

use super::tree::is_increasing;
use crate::alloc::{extend, push};
use crate::error::{Error, Result};
use crate::file::{Bundle, Flat, Persist};
use crate::persist;
use crate::simd::prefetch;

/// The largest value of a byte.
const MOST: f32 = 127.0;

/// One list that is to be packed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedList {
    /// Increasing.
    pub ids: Vec<u32>,
    pub values: PackedValues,
}

/// M values for each entry, as they will be read.
#[derive(Debug, Clone, PartialEq)]
pub enum PackedValues {
    Exact(Vec<f32>),
    /// Bytes, and what to multiply each of M by.
    Scaled(Vec<i8>, Vec<f32>),
}

impl Default for PackedValues {
    fn default() -> Self {
        Self::Exact(Vec::new())
    }
}

impl PackedValues {
    /// M values for each entry; rounded to bytes if they are to be `small`.
    pub fn new(values: Vec<f32>, m: usize, small: bool) -> Self {
        if !small {
            return Self::Exact(values);
        }
        let mut scales = vec![0.0f32; m];
        for entry in values.chunks(m) {
            for (scale, value) in scales.iter_mut().zip(entry) {
                *scale = scale.max(value.abs() / MOST);
            }
        }
        let byte = |(value, scale): (&f32, &f32)| {
            let byte = (value / scale).round();
            // Where all values are 0, or too small for a scale.
            if byte.is_finite() {
                byte.clamp(-MOST, MOST) as i8
            } else {
                0
            }
        };
        let entries = values.chunks(m);
        let bytes = entries.flat_map(|entry| entry.iter().zip(&scales).map(byte));
        Self::Scaled(bytes.collect(), scales)
    }

    /// The values of entry `i`.
    #[inline]
    pub fn get<const M: usize>(&self, i: usize) -> [f32; M] {
        match self {
            Self::Exact(values) => std::array::from_fn(|j| values[i * M + j]),
            Self::Scaled(bytes, scales) => {
                std::array::from_fn(|j| f32::from(bytes[i * M + j]) * scales[j])
            }
        }
    }
}

/// Lists, end to end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedLists {
    /// M.
    m: usize,
    /// A block has 2 to the power of this ids: 8 or 16.
    bits: u32,
    /// Of each list.
    n_blocks: usize,
    /// Where each block of each list begins, and where the last one ends.
    starts: Flat<u32>,
    /// The lower bits of each id. One of these two is empty.
    bytes_of_ids: Flat<u8>,
    halves_of_ids: Flat<u16>,
    /// One of these two is empty.
    values: Flat<f32>,
    bytes: Flat<i8>,
    /// M for each list, of bytes.
    scales: Flat<f32>,
}

impl PackedLists {
    /// The lists `lists`, whose ids are below `end`.
    pub fn new(lists: &[PackedList], m: usize, end: usize) -> Result<Self> {
        let n_entries: usize = lists.iter().map(|list| list.ids.len()).sum();
        let size = |bits: u32| {
            let starts = lists.len() * n_blocks(end, bits) * size_of::<u32>();
            starts + n_entries * (bits / u8::BITS) as usize
        };
        let mut packed = Self::empty(m, if size(8) < size(16) { 8 } else { 16 }, end);
        let mut starts = vec![0u32];
        for list in lists {
            let mut at = 0;
            for block in 1..=packed.n_blocks {
                let is_inside = |&id: &u32| (id as usize) < block << packed.bits;
                let n = list.ids[at..].partition_point(is_inside);
                packed.push_ids(&list.ids[at..at + n]);
                at += n;
                let end = u32::try_from(packed.n_entries()).map_err(|_| too_many())?;
                push(&mut starts, end);
            }
            match &list.values {
                PackedValues::Exact(own) => extend(packed.values.to_mut(), own.iter().copied()),
                PackedValues::Scaled(own, of_list) => {
                    extend(packed.bytes.to_mut(), own.iter().copied());
                    extend(packed.scales.to_mut(), of_list.iter().copied());
                }
            }
        }
        packed.starts = starts.into();
        Ok(packed)
    }

    fn empty(m: usize, bits: u32, end: usize) -> Self {
        Self {
            m,
            bits,
            n_blocks: n_blocks(end, bits),
            ..Self::default()
        }
    }

    /// Their lower bits.
    fn push_ids(&mut self, ids: &[u32]) {
        if self.bits == 8 {
            extend(self.bytes_of_ids.to_mut(), ids.iter().map(|&id| id as u8));
        } else {
            extend(self.halves_of_ids.to_mut(), ids.iter().map(|&id| id as u16));
        }
    }

    /// Number of entries of all lists.
    pub fn n_entries(&self) -> usize {
        self.bytes_of_ids.len() + self.halves_of_ids.len()
    }

    /// The entries of list `i`.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        let starts = self.starts_of(i);
        starts[0] as usize..starts[self.n_blocks] as usize
    }

    /// Where each block of list `i` begins, and where the last one ends.
    #[inline]
    fn starts_of(&self, i: usize) -> &[u32] {
        &self.starts[i * self.n_blocks..=(i + 1) * self.n_blocks]
    }

    /// Calls `visit` with the ids of list `i`, increasing, and their values.
    #[inline]
    pub fn for_each<const M: usize>(&self, i: usize, visit: impl FnMut(u32, [f32; M])) {
        if self.bits == 8 {
            self.for_each_of(&self.bytes_of_ids, i, visit);
        } else {
            self.for_each_of(&self.halves_of_ids, i, visit);
        }
    }

    #[inline]
    fn for_each_of<const M: usize, I: Copy + Into<u32>>(
        &self,
        ids: &[I],
        i: usize,
        mut visit: impl FnMut(u32, [f32; M]),
    ) {
        let values = self.values_of::<M>(i);
        for (block, ends) in self.starts_of(i).windows(2).enumerate() {
            let range = ends[0] as usize..ends[1] as usize;
            let high = (block << self.bits) as u32;
            let ids = ids[range.clone()].iter().map(|&id| high | id.into());
            if values.exact.is_empty() {
                let bytes = &values.bytes[range];
                ids.zip(bytes)
                    .for_each(|(id, bytes)| visit(id, values.scaled(bytes)));
            } else {
                let exact = &values.exact[range];
                ids.zip(exact).for_each(|(id, exact)| visit(id, *exact));
            }
        }
    }

    /// Values of list `i` that are not 0.
    pub fn n_values(&self, i: usize) -> u32 {
        let Range { start, end } = self.range(i);
        let values = start * self.m..end * self.m;
        let n = if self.values.is_empty() {
            self.bytes[values].iter().filter(|&&byte| byte != 0).count()
        } else {
            self.values[values]
                .iter()
                .filter(|&&value| value != 0.0)
                .count()
        };
        n as u32
    }

    /// List `i`, to look ids up.
    #[inline]
    pub fn lookup<const M: usize>(&self, i: usize) -> Lookup<'_, M> {
        Lookup {
            bits: self.bits,
            starts: self.starts_of(i),
            bytes_of_ids: &self.bytes_of_ids,
            halves_of_ids: &self.halves_of_ids,
            values: self.values_of(i),
        }
    }

    /// The values of list `i`.
    #[inline]
    pub fn values_of<const M: usize>(&self, i: usize) -> ListValues<'_, M> {
        let of_list = self.scales.get(i * M..(i + 1) * M);
        ListValues {
            exact: self.values.as_chunks().0,
            bytes: self.bytes.as_chunks().0,
            scales: of_list.map_or([1.0; M], |scales| std::array::from_fn(|j| scales[j])),
        }
    }

    /// Calls `is_wanted` with each id of list `i`, increasing. Writes those that are, and the
    /// positions of their entries, to the beginning of `found`, and returns how many they are.
    pub fn positions(
        &self,
        i: usize,
        is_wanted: impl Fn(u32) -> bool,
        found: &mut Vec<(u32, u32)>,
    ) -> usize {
        if self.bits == 8 {
            self.positions_of(&self.bytes_of_ids, i, is_wanted, found)
        } else {
            self.positions_of(&self.halves_of_ids, i, is_wanted, found)
        }
    }

    #[inline]
    fn positions_of<I: Copy + Into<u32>>(
        &self,
        ids: &[I],
        i: usize,
        is_wanted: impl Fn(u32) -> bool,
        found: &mut Vec<(u32, u32)>,
    ) -> usize {
        found.resize(found.len().max(self.range(i).len()), (0, 0));
        let mut n = 0;
        for (block, ends) in self.starts_of(i).windows(2).enumerate() {
            let high = (block << self.bits) as u32;
            let ids = &ids[ends[0] as usize..ends[1] as usize];
            for (position, &id) in (ends[0]..).zip(ids) {
                let id = high | id.into();
                // Nobody could foretell a branch.
                found[n] = (id, position);
                n += usize::from(is_wanted(id));
            }
        }
        n
    }

    /// Whether [`Self::positions`] takes less time than looking up `n` ids in list `i`.
    pub fn is_scan_faster(&self, i: usize, n: usize) -> bool {
        let n_entries = self.range(i).len();
        // In cycles, about.
        let scan = 2 * n_entries + 12 * self.n_blocks;
        scan < n * (5 * (n_entries / self.n_blocks + 1).ilog2() as usize + 15)
    }

    /// Fetches list `i`, of a long one the beginning.
    pub fn prefetch(&self, i: usize) {
        let Range { start, end } = self.range(i);
        let values = start * self.m..end * self.m;
        prefetch_lines(self.bytes_of_ids.get(start..end));
        prefetch_lines(self.halves_of_ids.get(start..end));
        prefetch_lines(self.bytes.get(values.clone()));
        prefetch_lines(self.values.get(values));
    }

    /// Fetches where list `i` begins and ends.
    pub fn prefetch_starts(&self, i: usize) {
        let first = i * self.n_blocks;
        prefetch(&self.starts[first]);
        prefetch(&self.starts[first + self.n_blocks]);
    }

    /// From a file: `n` lists of M values with ids below `end`.
    pub fn take(bundle: &mut Bundle, name: &str, n: usize, m: usize, end: usize) -> Result<Self> {
        let mut inner = bundle.unnest(name)?;
        let bits = inner.take_meta("bits")?;
        if ![8, 16].contains(&bits) {
            return Err(inner.damaged("blocks have another size"));
        }
        let mut lists = Self::empty(m, bits, end);
        lists.fill(&mut inner)?;
        let (entries, numbers) = (lists.n_entries(), lists.values.len() + lists.bytes.len());
        let unused = [lists.halves_of_ids.len(), lists.bytes_of_ids.len()][usize::from(bits == 16)];
        let scales = if lists.bytes.is_empty() { 0 } else { n * m };
        let is_sound = lists.starts.len() == n * lists.n_blocks + 1
            && unused == 0
            && lists.starts[0] == 0
            && lists.starts.is_sorted()
            && lists.starts.last() == Some(&(entries as u32))
            && (lists.values.is_empty() || lists.bytes.is_empty())
            && numbers == entries * m
            && [scales, n * m].contains(&lists.scales.len())
            && (lists.is_mapped() || lists.has_sound_entries(end));
        if is_sound {
            return Ok(lists);
        }
        Err(inner.damaged("the lists differ in number or are out of range"))
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new("lists");
        bundle.put_meta("bits", &self.bits);
        self.put(&mut bundle);
        bundle
    }

    fn is_mapped(&self) -> bool {
        self.bytes_of_ids.is_mapped() || self.halves_of_ids.is_mapped()
    }

    /// Whether the values of each list, of one per entry, are not negative and at most `most` of it.
    /// Lists that lie in a file are not read for it.
    pub fn are_at_most(&self, most: impl Fn(usize) -> f32) -> bool {
        let fits = |i: usize| {
            let (span, most) = (self.range(i), most(i));
            let scale = self.scales.get(i).copied().unwrap_or(1.0);
            if self.bytes.is_empty() {
                let mut values = self.values[span].iter();
                values.all(|value| (0.0..=most).contains(value))
            } else {
                let mut bytes = self.bytes[span].iter();
                bytes.all(|&byte| (0.0..=most).contains(&(f32::from(byte) * scale)))
            }
        };
        self.is_mapped() || (0..(self.starts.len() - 1) / self.n_blocks).all(fits)
    }

    /// Whether ids increase and are below `end`.
    fn has_sound_entries(&self, end: usize) -> bool {
        self.starts.windows(2).enumerate().all(|(at, ends)| {
            let high = ((at % self.n_blocks) << self.bits) as u32;
            let ids = (ends[0] as usize..ends[1] as usize).map(|at| high | self.lower_bits(at));
            is_increasing(ids, end)
        })
    }

    #[inline]
    fn lower_bits(&self, at: usize) -> u32 {
        if self.bits == 8 {
            self.bytes_of_ids[at].into()
        } else {
            self.halves_of_ids[at].into()
        }
    }
}

// The numbers of lists, values and ids follow from where they are used.
persist!(PackedLists {
    Flat starts;
    Flat bytes_of_ids;
    Flat halves_of_ids;
    Flat values;
    Flat bytes;
    Flat scales;
});

/// A list whose ids are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a, const M: usize> {
    bits: u32,
    /// Where its blocks begin, and where the last one ends.
    starts: &'a [u32],
    /// Those of all lists; one is empty.
    bytes_of_ids: &'a [u8],
    halves_of_ids: &'a [u16],
    values: ListValues<'a, M>,
}

/// The values of a list by the positions of entries.
#[derive(Debug, Clone, Copy)]
pub struct ListValues<'a, const M: usize> {
    /// Those of all lists; one is empty.
    exact: &'a [[f32; M]],
    bytes: &'a [[i8; M]],
    scales: [f32; M],
}

impl<const M: usize> ListValues<'_, M> {
    /// Those of the entry at `position`.
    #[inline]
    pub fn get(&self, position: usize) -> [f32; M] {
        if self.exact.is_empty() {
            self.scaled(&self.bytes[position])
        } else {
            self.exact[position]
        }
    }

    #[inline]
    fn scaled(&self, bytes: &[i8; M]) -> [f32; M] {
        std::array::from_fn(|j| f32::from(bytes[j]) * self.scales[j])
    }
}

impl<const M: usize> Lookup<'_, M> {
    /// The values of `id`; 0 where it is not in the list.
    #[inline]
    pub fn get(&self, id: u32) -> [f32; M] {
        let block = id as usize >> self.bits;
        let start = self.starts[block] as usize;
        let within = start..self.starts[block + 1] as usize;
        let found = if self.bits == 8 {
            self.bytes_of_ids[within].binary_search(&(id as u8))
        } else {
            self.halves_of_ids[within].binary_search(&(id as u16))
        };
        found.map_or([0.0; M], |at| self.values.get(start + at))
    }
}

/// Fetches the first cache lines of a list, if there is one.
fn prefetch_lines<T>(list: Option<&[T]>) {
    /// Bytes of a cache line; lines that are asked for, after which the processor sees where
    /// reading goes.
    const LINE: usize = 64;
    const LINES: usize = 8;
    let lines = list.unwrap_or_default().chunks(LINE / size_of::<T>());
    lines.take(LINES).for_each(|line| prefetch(&line[0]));
}

fn n_blocks(end: usize, bits: u32) -> usize {
    end.div_ceil(1 << bits).max(1)
}

fn too_many() -> Error {
    Error::data("a tree has more than 2^32 weights or labels; fewer max_nodes or n_bits help")
}
