//! Sparse lists in little memory: weights of a tree's nodes, label histograms of its leaves,
//! weights of scorers.
//!
//! An entry is an id (a column or label) and M values. Ids are grouped into blocks of 2^8 or 2^16,
//! whichever takes less memory. A list stores where each of its blocks begins, and of each id only
//! the 8 or 16 bits within its block. Values are stored exactly, or in 8 or 16 bits with one scale
//! per list and value. So an entry of a node with two children takes 3 or 4 bytes instead of 12,
//! and can still be found by its id. The arrays have the layout of the model file and can be used
//! from a mapped file.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::file::{Bundle, Flat, Persist};
use crate::persist;
use crate::simd::prefetch;

/// Representation of stored values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precision {
    /// Single precision.
    #[default]
    Exact,
    /// Multiples of a scale, up to 127.
    Bits8,
    /// Multiples of a scale, up to 32,767.
    Bits16,
}

impl Precision {
    /// Returns the largest multiple of a scale, if there are scales.
    fn largest(self) -> Option<f32> {
        match self {
            Self::Exact => None,
            Self::Bits8 => Some(i8::MAX.into()),
            Self::Bits16 => Some(i16::MAX.into()),
        }
    }
}

/// A list that is ready to be packed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedList {
    /// Increasing ids.
    pub ids: Vec<u32>,
    /// M values for each id, already rounded.
    pub values: Vec<f32>,
    precision: Precision,
    /// Scales of the M values; empty for exact values.
    scales: Vec<f32>,
}

impl PackedList {
    /// Creates a list with `m` values for each of `ids`, which it rounds to `precision`.
    pub fn new(ids: Vec<u32>, mut values: Vec<f32>, m: usize, precision: Precision) -> Self {
        let mut scales = Vec::new();
        if let Some(largest) = precision.largest() {
            scales.resize(m, 0.0f32);
            for entry in values.chunks(m) {
                for (scale, value) in scales.iter_mut().zip(entry) {
                    *scale = scale.max(value.abs() / largest);
                }
            }
            for entry in values.chunks_mut(m) {
                for (scale, value) in scales.iter().zip(entry) {
                    *value = multiple(*value, *scale, largest) * scale;
                }
            }
        }
        Self {
            ids,
            values,
            precision,
            scales,
        }
    }

    /// Returns the values as multiples of their scales.
    fn multiples(&self) -> impl Iterator<Item = f32> + '_ {
        let largest = self.precision.largest().unwrap_or(f32::MAX);
        let entries = self.values.chunks(self.scales.len().max(1));
        entries.flat_map(move |entry| {
            let values = entry.iter().zip(&self.scales);
            values.map(move |(&value, &scale)| multiple(value, scale, largest))
        })
    }
}

/// Returns `value` as an integer multiple of `scale`, at most `largest`.
fn multiple(value: f32, scale: f32, largest: f32) -> f32 {
    let multiple = (value / scale).round();
    // The scale is 0 if all values are 0 or very small.
    if multiple.is_finite() {
        multiple.clamp(-largest, largest)
    } else {
        0.0
    }
}

/// Packed lists, stored one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedLists {
    /// Number of values per id, M.
    m: usize,
    /// Bits of an id within its block, 8 or 16.
    pub bits: u32,
    /// Number of blocks of each list.
    n_blocks: usize,
    /// Start of each block of each list, and the end of the last one.
    starts: Flat<u32>,
    /// Lower bits of each id, in one of these two arrays.
    bytes_of_ids: Flat<u8>,
    halves_of_ids: Flat<u16>,
    /// Values, in one of these three arrays.
    exact: Flat<f32>,
    bytes: Flat<i8>,
    halves: Flat<i16>,
    /// M scales for each list; empty if values are exact.
    scales: Flat<f32>,
}

impl PackedLists {
    /// Packs `lists`, whose ids are below `end`.
    pub fn new(lists: &[PackedList], m: usize, end: usize) -> Result<Self> {
        let n_entries = lists.iter().map(|list| list.ids.len()).sum();
        Self::with_bits(lists, m, end, bits_of_ids(lists.len(), n_entries, end))
    }

    /// Packs `lists` with so many bits of an id within its block, 8 or 16.
    pub fn with_bits(lists: &[PackedList], m: usize, end: usize, bits: u32) -> Result<Self> {
        let mut packed = Self::empty(m, bits, end);
        let mut starts = vec![0u32];
        for list in lists {
            let mut at = 0;
            for block in 1..=packed.n_blocks {
                let is_inside = |&id: &u32| (id as usize) < block << packed.bits;
                let n = list.ids[at..].partition_point(is_inside);
                let ids = list.ids[at..at + n].iter();
                if packed.bits == 8 {
                    packed.bytes_of_ids.to_mut().extend(ids.map(|&id| id as u8));
                } else {
                    let halves = packed.halves_of_ids.to_mut();
                    halves.extend(ids.map(|&id| id as u16));
                }
                at += n;
                let end = u32::try_from(packed.n_entries()).map_err(|_| {
                    Error::data(
                        "the model has over 2^32 weights or label counts; reduce max_nodes or n_bits",
                    )
                })?;
                starts.push(end);
            }
            packed.scales.to_mut().extend(&list.scales);
            let multiples = list.multiples();
            match list.precision {
                Precision::Exact => packed.exact.to_mut().extend(&list.values),
                Precision::Bits8 => packed.bytes.to_mut().extend(multiples.map(|x| x as i8)),
                Precision::Bits16 => packed.halves.to_mut().extend(multiples.map(|x| x as i16)),
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

    /// Returns list `i`, of one value in 16 bits per id, to be packed with others.
    pub fn list(&self, i: usize) -> PackedList {
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        self.for_each(i, |id, [value]| {
            ids.push(id);
            values.push(value);
        });
        PackedList {
            ids,
            values,
            precision: Precision::Bits16,
            scales: vec![self.scales.get(i).copied().unwrap_or_default()],
        }
    }

    /// Number of entries in all lists.
    pub fn n_entries(&self) -> usize {
        self.bytes_of_ids.len() + self.halves_of_ids.len()
    }

    /// Returns the range of entries of list `i`.
    pub fn range(&self, i: usize) -> Range<usize> {
        let starts = self.block_ends(i);
        starts[0] as usize..starts[self.n_blocks] as usize
    }

    /// Returns the start of each block of list `i`, and the end of the last one.
    fn block_ends(&self, i: usize) -> &[u32] {
        &self.starts[i * self.n_blocks..=(i + 1) * self.n_blocks]
    }

    /// Calls `visit` with each id of list `i`, in increasing order, and its values.
    pub fn for_each<const M: usize>(&self, i: usize, visit: impl FnMut(u32, [f32; M])) {
        if self.bits == 8 {
            self.for_each_id(&self.bytes_of_ids, i, visit);
        } else {
            self.for_each_id(&self.halves_of_ids, i, visit);
        }
    }

    fn for_each_id<const M: usize, I: Copy + Into<u32>>(
        &self,
        ids: &[I],
        i: usize,
        visit: impl FnMut(u32, [f32; M]),
    ) {
        let (values, scales) = self.values::<M>(i);
        match values {
            Values::Exact(values) => self.for_each_value(ids, i, values, scales, visit),
            Values::Bits8(values) => self.for_each_value(ids, i, values, scales, visit),
            Values::Bits16(values) => self.for_each_value(ids, i, values, scales, visit),
        }
    }

    fn for_each_value<const M: usize, I: Copy + Into<u32>, V: Copy + Into<f32>>(
        &self,
        ids: &[I],
        i: usize,
        values: &[[V; M]],
        scales: [f32; M],
        mut visit: impl FnMut(u32, [f32; M]),
    ) {
        for (block, ends) in self.block_ends(i).windows(2).enumerate() {
            let range = ends[0] as usize..ends[1] as usize;
            let high = (block << self.bits) as u32;
            let ids = ids[range.clone()].iter().map(|&id| high | id.into());
            ids.zip(&values[range])
                .for_each(|(id, values)| visit(id, scaled(values, &scales)));
        }
    }

    /// Returns the number of values of list `i` that are not 0.
    pub fn n_values(&self, i: usize) -> u32 {
        let Range { start, end } = self.range(i);
        let range = start * self.m..end * self.m;
        let n = match self.values(i).0 {
            Values::Exact(values) => values[range].iter().filter(|&&[v]| v != 0.0).count(),
            Values::Bits8(values) => values[range].iter().filter(|&&[v]| v != 0).count(),
            Values::Bits16(values) => values[range].iter().filter(|&&[v]| v != 0).count(),
        };
        n as u32
    }

    /// Returns a view of list `i` that finds ids.
    pub fn lookup<const M: usize>(&self, i: usize) -> Lookup<'_, M> {
        let (values, scales) = self.values(i);
        Lookup {
            bits: self.bits,
            starts: self.block_ends(i),
            bytes_of_ids: &self.bytes_of_ids,
            halves_of_ids: &self.halves_of_ids,
            values,
            scales,
        }
    }

    /// Returns the values of all lists, and the scales of list `i`.
    fn values<const M: usize>(&self, i: usize) -> (Values<'_, M>, [f32; M]) {
        let scales = self.scales.get(i * M..(i + 1) * M);
        let values = if !self.bytes.is_empty() {
            Values::Bits8(self.bytes.as_chunks().0)
        } else if !self.halves.is_empty() {
            Values::Bits16(self.halves.as_chunks().0)
        } else {
            Values::Exact(self.exact.as_chunks().0)
        };
        let scales = scales.map_or([1.0; M], |scales| std::array::from_fn(|j| scales[j]));
        (values, scales)
    }

    /// Returns whether a scan of list `i` is faster than `n` lookups.
    pub fn is_scan_faster(&self, i: usize, n: usize) -> bool {
        let n_entries = self.range(i).len();
        // Both sides are estimates in cycles.
        let scan = 2 * n_entries + 12 * self.n_blocks;
        scan < n * (5 * (n_entries / self.n_blocks + 1).ilog2() as usize + 15)
    }

    /// Prefetches the beginning of list `i`.
    pub fn prefetch(&self, i: usize) {
        let Range { start, end } = self.range(i);
        let values = start * self.m..end * self.m;
        prefetch_lines(self.bytes_of_ids.get(start..end));
        prefetch_lines(self.halves_of_ids.get(start..end));
        prefetch_lines(self.bytes.get(values.clone()));
        prefetch_lines(self.exact.get(values));
    }

    /// Reads and checks `n` lists of `m` values per id, with ids below `end`.
    pub fn take(bundle: &mut Bundle, name: &str, n: usize, m: usize, end: usize) -> Result<Self> {
        let mut inner = bundle.unnest(name)?;
        let bits = inner.take_meta("bits")?;
        let is_known = [8, 16].contains(&bits);
        inner.require(
            is_known,
            format_args!("\"bits\" must be 8 or 16, got {bits}"),
        )?;
        let mut lists = Self::empty(m, bits, end);
        lists.fill(&mut inner)?;
        let entries = lists.n_entries();
        let lengths = [lists.exact.len(), lists.bytes.len(), lists.halves.len()];
        let unused = [lists.halves_of_ids.len(), lists.bytes_of_ids.len()][usize::from(bits == 16)];
        let has_scales = lists.exact.is_empty() && entries > 0;
        let is_sound = lists.starts.len() == n * lists.n_blocks + 1
            && unused == 0
            && lists.starts[0] == 0
            && lists.starts.is_sorted()
            && lists.starts.last() == Some(&(entries as u32))
            && lengths.iter().sum::<usize>() == entries * m
            && lengths.contains(&(entries * m))
            && (lists.scales.len() == n * m || lists.scales.is_empty() && !has_scales)
            && (lists.is_mapped() || lists.has_sound_entries(end));
        inner.require(
            is_sound,
            "its packed lists do not match or are out of range",
        )?;
        Ok(lists)
    }

    /// Converts the lists for a file.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new("lists");
        bundle.put_meta("bits", &self.bits);
        self.put(&mut bundle);
        bundle
    }

    fn is_mapped(&self) -> bool {
        self.bytes_of_ids.is_mapped() || self.halves_of_ids.is_mapped()
    }

    /// Returns whether the values of each list `i`, one per id, are from 0 to `most(i)`. Mapped
    /// lists are not checked, as that would read all of the file.
    pub fn are_at_most(&self, most: impl Fn(usize) -> f32) -> bool {
        let fits = |i: usize| {
            let (mut fits, range) = (true, 0.0..=most(i));
            self.for_each(i, |_, [value]| fits &= range.contains(&value));
            fits
        };
        self.is_mapped() || (0..(self.starts.len() - 1) / self.n_blocks).all(fits)
    }

    /// Returns whether ids increase and are below `end`.
    fn has_sound_entries(&self, end: usize) -> bool {
        self.starts.windows(2).enumerate().all(|(at, ends)| {
            let high = ((at % self.n_blocks) << self.bits) as u32;
            let mut ids = (ends[0] as usize..ends[1] as usize).map(|at| high | self.lower_bits(at));
            ids.clone().is_sorted_by(|a, b| a < b) && ids.all(|id| (id as usize) < end)
        })
    }

    fn lower_bits(&self, at: usize) -> u32 {
        if self.bits == 8 {
            self.bytes_of_ids[at].into()
        } else {
            self.halves_of_ids[at].into()
        }
    }
}

// `take` gets the numbers of lists, values and ids from its caller.
persist!(PackedLists {
    Flat starts;
    Flat bytes_of_ids;
    Flat halves_of_ids;
    Flat exact;
    Flat bytes;
    Flat halves;
    Flat scales;
});

/// A view of one list that finds ids.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a, const M: usize> {
    bits: u32,
    /// Start of each block, and the end of the last one.
    starts: &'a [u32],
    /// Ids of all lists; one array is empty.
    bytes_of_ids: &'a [u8],
    halves_of_ids: &'a [u16],
    /// Values of all lists.
    values: Values<'a, M>,
    scales: [f32; M],
}

#[derive(Debug, Clone, Copy)]
enum Values<'a, const M: usize> {
    Exact(&'a [[f32; M]]),
    Bits8(&'a [[i8; M]]),
    Bits16(&'a [[i16; M]]),
}

fn scaled<const M: usize, V: Copy + Into<f32>>(values: &[V; M], scales: &[f32; M]) -> [f32; M] {
    std::array::from_fn(|j| values[j].into() * scales[j])
}

impl<const M: usize> Lookup<'_, M> {
    /// Returns the values of `id`, or zeros if the list does not have it.
    pub fn get(&self, id: u32) -> [f32; M] {
        let block = id as usize >> self.bits;
        let start = self.starts[block] as usize;
        let within = start..self.starts[block + 1] as usize;
        let found = if self.bits == 8 {
            self.bytes_of_ids[within].binary_search(&(id as u8))
        } else {
            self.halves_of_ids[within].binary_search(&(id as u16))
        };
        found.map_or([0.0; M], |at| match self.values {
            Values::Exact(values) => values[start + at],
            Values::Bits8(values) => scaled(&values[start + at], &self.scales),
            Values::Bits16(values) => scaled(&values[start + at], &self.scales),
        })
    }
}

/// Prefetches the first cache lines of a list, if there is one.
fn prefetch_lines<T>(list: Option<&[T]>) {
    const LINE_BYTES: usize = 64;
    /// After these lines, the processor prefetches by itself.
    const MAX_LINES: usize = 8;
    let lines = list.unwrap_or_default().chunks(LINE_BYTES / size_of::<T>());
    lines.take(MAX_LINES).for_each(|line| prefetch(&line[0]));
}

/// Returns the bits of ids with which `n_lists` lists of ids below `end` take less memory.
pub fn bits_of_ids(n_lists: usize, n_entries: usize, end: usize) -> u32 {
    let size = |&bits: &u32| {
        let starts = n_lists * n_blocks(end, bits) * size_of::<u32>();
        starts + n_entries * (bits / u8::BITS) as usize
    };
    [16, 8].into_iter().min_by_key(size).unwrap_or(16)
}

/// Returns the number of blocks for ids below `end`.
fn n_blocks(end: usize, bits: u32) -> usize {
    end.div_ceil(1 << bits).max(1)
}
