//! The training examples in the form from which trees are grown.
//!
//! The values of each feature become codes: small integers in the order of the values, O(n log n)
//! per feature. A dense column is an array of codes, a sparse column has entries in its rows.

use rayon::prelude::*;

use super::{Params, Splits};
use crate::control::Control;
use crate::data::{Ragged, RowBuffer, Rows};
use crate::error::{Error, Result};
use crate::threads::map_chunks;
use crate::tree::partition;

/// Largest number of bins of a column if splits are binned. A code fits into a byte, with one left
/// for missing values.
const MAX_BINS: usize = 255;

/// The values that the codes of one feature stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Coding {
    /// Smallest and largest value of each code, in rising order.
    pub spans: Vec<(f32, f32)>,
    pub categorical: bool,
    /// True if a value was missing. The code of missing values comes after all others.
    pub missing: bool,
}

impl Coding {
    /// Makes codes for the values `present`, where NaN is a missing value, and for `n_zeros` zeros.
    pub fn new(
        present: impl ExactSizeIterator<Item = f32>,
        n_zeros: usize,
        splits: Splits,
        categorical: bool,
    ) -> Self {
        let n_present = present.len();
        let mut values: Vec<f32> = present.filter(|v| !v.is_nan()).collect();
        let missing = values.len() < n_present;
        values.sort_unstable_by(f32::total_cmp);
        let (below, above) = values.split_at(values.partition_point(|&v| v < 0.0));
        let count = |sorted| <[f32]>::chunk_by(sorted, f32::eq).map(|same| (same[0], same.len()));
        let zero = (n_zeros > 0).then_some((0.0, n_zeros));
        let distinct: Vec<(f32, usize)> = count(below).chain(zero).chain(count(above)).collect();
        let is_exact = categorical || splits == Splits::Exact || distinct.len() <= MAX_BINS;
        let spans = if is_exact {
            distinct.iter().map(|&(value, _)| (value, value)).collect()
        } else {
            bins(&distinct)
        };
        Self {
            spans,
            categorical,
            missing,
        }
    }

    /// Returns the code of a value that was among those for which the codes were made.
    pub fn code(&self, value: f32) -> u32 {
        if value.is_nan() {
            return self.spans.len() as u32;
        }
        self.spans.partition_point(|&(_, high)| high < value) as u32
    }

    /// Returns the number of codes, including that of missing values.
    pub fn n_codes(&self) -> usize {
        self.spans.len() + usize::from(self.missing)
    }

    pub fn missing_code(&self) -> Option<u32> {
        self.missing.then_some(self.spans.len() as u32)
    }

    /// Returns the last code to the left and the threshold (value <= threshold goes left) of a cut
    /// between the codes `low` and `high`, which are neighbors among the rows of a node. The
    /// threshold is the middle between their values, or the nearer end of the bin that contains it.
    pub fn cut(&self, low: u32, high: u32) -> (u32, f32) {
        let (low, high) = (low as usize, high as usize);
        let gap = |at: usize, next: usize| midpoint(self.spans[at].1, self.spans[next].0);
        let middle = gap(low, high);
        let at = low + self.spans[low + 1..high].partition_point(|&(from, _)| from <= middle);
        let (from, to) = self.spans[at];
        if to <= middle {
            (at as u32, middle)
        } else if f64::from(middle) - f64::from(from) < f64::from(to) - f64::from(middle) {
            (at as u32 - 1, gap(at - 1, at))
        } else {
            (at as u32, gap(at, at + 1))
        }
    }
}

/// Returns the middle of `a` and `b`, or `a` if the middle is rounded to `b`.
fn midpoint(a: f32, b: f32) -> f32 {
    let middle = f64::midpoint(f64::from(a), f64::from(b)) as f32;
    if middle < b {
        middle
    } else {
        a
    }
}

/// Divides values with their counts into [`MAX_BINS`] bins of neighbors. Each bin in turn takes its
/// share of the remaining rows: their number divided by that of the remaining bins.
fn bins(distinct: &[(f32, usize)]) -> Vec<(f32, f32)> {
    let mut left: usize = distinct.iter().map(|&(_, n)| n).sum();
    let mut spans = Vec::with_capacity(MAX_BINS);
    let mut at = 0;
    while at < distinct.len() {
        let n_bins = MAX_BINS - spans.len();
        let share = left as f64 / n_bins as f64;
        let first = at;
        let mut taken = 0;
        // A bin has at least one value, and gets another one if that brings it nearer to its share.
        while at < distinct.len()
            && (at == first || taken as f64 + distinct[at].1 as f64 / 2.0 <= share)
            && distinct.len() - at >= n_bins
        {
            taken += distinct[at].1;
            at += 1;
        }
        left -= taken;
        spans.push((distinct[first].0, distinct[at - 1].0));
    }
    spans
}

/// Smallest share of non-zero values of a dense column. A zero in a sparse column is free, but an
/// entry costs two to four times as much as a code of a dense column.
const MIN_DENSE_SHARE: f64 = 0.4;

/// Most rows per entry of a sparse column that has a bit for each row. With these, the bits take as
/// many bytes as the entries, which are stored twice.
const MAX_ROWS_PER_ENTRY: usize = 128;

/// The place where the codes of a column are stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// The code of each row, if there are at most 256 codes.
    Small(Vec<u8>),
    /// The code of each row, if there are more codes.
    Large(Vec<u32>),
    /// Entries of the rows. All rows without an entry have the code `zero`. `has_entry` is a bit for
    /// each row; it is empty if entries are very rare.
    Sparse { zero: u32, has_entry: Vec<u64> },
}

/// A feature that has more than one code.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Number of the feature in X.
    pub feature: u32,
    pub coding: Coding,
    pub storage: Storage,
}

/// The values of all training examples as codes.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// Features that have more than one code, in their order.
    pub columns: Vec<Column>,
    /// Numbers of the dense columns.
    pub dense: Vec<u32>,
    /// Numbers of the sparse columns.
    pub sparse: Vec<u32>,
    /// Rows of each sparse column whose code differs from that of zero, in rising order, with their
    /// codes. Dense columns have none.
    column_entries: Ragged<(u32, u32)>,
    /// The same entries by row: columns in rising order, with codes.
    row_entries: Ragged<(u32, u32)>,
    /// True if all sparse columns have two codes and zero has the first.
    pub are_binary: bool,
    /// Codes of all columns in [`Storage::Small`], row by row, if there are many.
    codes_by_row: Vec<u8>,
    /// Position of each of these columns in a row.
    places: Vec<usize>,
    /// Number of these columns.
    width: usize,
}

/// Least number of codes that are stored by row too: the cache of a core holds fewer.
const MIN_CODES_BY_ROW: usize = 1 << 19;

/// Rows of all rows per row of a node that reads its codes by row. Codes of a column that lie closer
/// share cache lines.
const MIN_SPREAD: usize = 8;

impl Columns {
    /// Reads the rows `which` and numbers them from 0 in this order.
    pub fn new(
        rows: &Rows<'_>,
        which: &[u32],
        params: &Params,
        threads: bool,
        control: &Control,
    ) -> Result<Self> {
        let mut buffer = RowBuffer::default();
        let mut by_row = Ragged::default();
        for (at, &row) in which.iter().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            rows.read(row as usize, &mut buffer);
            let features = buffer.columns.iter().copied();
            by_row.push(features.zip(buffer.values.iter().copied()));
        }
        let by_feature = by_row.regroup(rows.n_cols(), |row, &(feature, value)| {
            (feature, (row, value))
        });
        drop(by_row);
        let categorical = &params.categorical_features;
        let unknown = |&&feature: &&u32| feature as usize >= rows.n_cols();
        if let Some(feature) = categorical.iter().find(unknown) {
            let allowed = format!("columns of X, which has {}", rows.n_cols());
            return Err(Error::parameter("categorical_features", feature, allowed));
        }
        let make = |feature: usize| {
            control.check()?;
            let categorical = categorical.contains(&(feature as u32));
            let entries = by_feature.get(feature);
            Ok(Column::new(
                feature,
                entries,
                which.len(),
                params,
                categorical,
            ))
        };
        let features = 0..rows.n_cols();
        let made: Vec<Result<Option<Column>>> = if threads {
            features.into_par_iter().map(make).collect()
        } else {
            features.map(make).collect()
        };
        let columns = made.into_iter().filter_map(Result::transpose);
        let columns: Vec<Column> = columns.collect::<Result<_>>()?;
        let mut column_entries = Ragged::default();
        for column in &columns {
            let entries = match column.zero() {
                Some(_) => by_feature.get(column.feature as usize),
                None => &[],
            };
            let codes = entries
                .iter()
                .map(|&(row, value)| (row, column.coding.code(value)));
            column_entries.push(codes.filter(|&(_, code)| Some(code) != column.zero()));
        }
        let row_entries =
            column_entries.regroup(which.len(), |column, &(row, code)| (row, (column, code)));
        let (sparse, dense): (Vec<u32>, Vec<u32>) =
            (0..columns.len() as u32).partition(|&at| columns[at as usize].zero().is_some());
        let is_binary = |&at: &u32| {
            let column = &columns[at as usize];
            column.coding.n_codes() == 2 && !column.coding.missing && column.zero() == Some(0)
        };
        Ok(Self {
            are_binary: sparse.iter().all(is_binary),
            columns,
            dense,
            sparse,
            column_entries,
            row_entries,
            codes_by_row: Vec::new(),
            places: Vec::new(),
            width: 0,
        }
        .with_codes_by_row(which.len(), threads))
    }

    /// Stores the codes of small columns by row too, if they are many.
    fn with_codes_by_row(mut self, n_rows: usize, threads: bool) -> Self {
        let mut small = Vec::new();
        for column in &self.columns {
            self.places.push(small.len());
            if let Storage::Small(codes) = &column.storage {
                small.push(codes);
            }
        }
        let width = small.len();
        if n_rows * width < MIN_CODES_BY_ROW {
            return self;
        }
        self.width = width;
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        let chunks = map_chunks(threads, &rows, Control::CHUNK, |first, rows| {
            let mut chunk = vec![0; rows.len() * width];
            for (at, codes) in small.iter().enumerate() {
                let codes = &codes[first..first + rows.len()];
                let places = chunk.iter_mut().skip(at).step_by(width);
                places.zip(codes).for_each(|(place, &code)| *place = code);
            }
            chunk
        });
        self.codes_by_row = chunks.concat();
        self
    }

    /// Replaces `into` by the codes of `rows` in each of the columns `group`, if rows lie so far
    /// apart that reading them column by column would miss the cache. Large columns get any codes.
    pub fn gather(&self, rows: &[u32], group: &[u32], into: &mut Vec<u8>) -> bool {
        let (n, width) = (rows.len(), self.width);
        if MIN_SPREAD * n * width > self.codes_by_row.len() || width == 0 {
            return false;
        }
        let place = |&column: &u32| self.places[column as usize].min(width - 1);
        let places: Vec<usize> = group.iter().map(place).collect();
        into.resize(into.len().max(n * group.len()), 0);
        for (at, &row) in rows.iter().enumerate() {
            let codes = &self.codes_by_row[row as usize * width..][..width];
            for (into, &place) in into[at..].iter_mut().step_by(n).zip(&places) {
                *into = codes[place];
            }
        }
        true
    }

    /// Returns the entries of a row: sparse columns in rising order, with codes.
    pub fn row_entries(&self, row: usize) -> &[(u32, u32)] {
        self.row_entries.get(row)
    }

    /// Returns the code of row `row` in column `column`; O(log entries) if the column is sparse and
    /// the row has an entry.
    pub fn code(&self, column: u32, row: u32) -> u32 {
        match &self.columns[column as usize].storage {
            Storage::Small(codes) => codes[row as usize].into(),
            Storage::Large(codes) => codes[row as usize],
            Storage::Sparse { zero, has_entry } => {
                if !has_entry.is_empty() && !has_bit(has_entry, row) {
                    return *zero;
                }
                let entries = self.column_entries.get(column as usize);
                let entry = entries.binary_search_by_key(&row, |&(row, _)| row);
                entry.map_or(*zero, |at| entries[at].1)
            }
        }
    }

    /// Moves the rows whose codes in `column` go left to the front, as [`partition`] does. The place
    /// of the codes is looked up once, not for every row.
    pub fn partition(
        &self,
        column: u32,
        rows: &mut [u32],
        right: &mut Vec<u32>,
        goes_left: impl Fn(u32) -> bool,
    ) -> usize {
        match &self.columns[column as usize].storage {
            Storage::Small(codes) => {
                partition(rows, right, |row| goes_left(codes[row as usize].into()))
            }
            Storage::Large(codes) => partition(rows, right, |row| goes_left(codes[row as usize])),
            Storage::Sparse { has_entry, .. } if self.are_binary && !has_entry.is_empty() => {
                let sides = [goes_left(0), goes_left(1)];
                partition(rows, right, |row| {
                    sides[usize::from(has_bit(has_entry, row))]
                })
            }
            Storage::Sparse { .. } => {
                partition(rows, right, |row| goes_left(self.code(column, row)))
            }
        }
    }
}

/// Returns bit number `row`.
fn has_bit(bits: &[u64], row: u32) -> bool {
    bits[row as usize / 64] >> (row % 64) & 1 == 1
}

impl Column {
    /// Makes the column of `feature` from the rows and values that are not zero. Returns `None` if
    /// all rows have the same code.
    fn new(
        feature: usize,
        entries: &[(u32, f32)],
        n_rows: usize,
        params: &Params,
        categorical: bool,
    ) -> Option<Self> {
        let n_zeros = n_rows - entries.len();
        let values = entries.iter().map(|&(_, value)| value);
        let coding = Coding::new(values, n_zeros, params.splits, categorical);
        if coding.n_codes() < 2 {
            return None;
        }
        let zero = if n_zeros > 0 { coding.code(0.0) } else { 0 };
        // Categorical columns are dense, because the search for a subset needs all rows.
        let storage = if categorical || entries.len() as f64 >= MIN_DENSE_SHARE * n_rows as f64 {
            let mut codes = vec![zero; n_rows];
            for &(row, value) in entries {
                codes[row as usize] = coding.code(value);
            }
            if coding.n_codes() <= 1 << 8 {
                Storage::Small(codes.into_iter().map(|code| code as u8).collect())
            } else {
                Storage::Large(codes)
            }
        } else {
            let mut has_entry = Vec::new();
            if n_rows <= MAX_ROWS_PER_ENTRY * entries.len() {
                has_entry.resize(n_rows.div_ceil(64), 0);
                for &(row, _) in entries {
                    has_entry[row as usize / 64] |= 1 << (row % 64);
                }
            }
            Storage::Sparse { zero, has_entry }
        };
        Some(Self {
            feature: feature as u32,
            coding,
            storage,
        })
    }

    /// Returns the code of rows without an entry if the column is sparse.
    pub fn zero(&self) -> Option<u32> {
        match self.storage {
            Storage::Sparse { zero, .. } => Some(zero),
            _ => None,
        }
    }
}
