//! The examples of a fit, as trees are grown from them.
//!
//! Each feature's values become codes: small integers in the order of the values, O(n log n) a
//! feature. A dense column is one array of codes, sparse columns are entries row by row.

use rayon::prelude::*;

use super::{Params, Splits};
use crate::control::Control;
use crate::data::{RowBuffer, Rows};
use crate::error::{Error, Result};

/// Groups of neighbouring values, at most, where splits are binned. With the missing
/// values they fit into a byte.
const BINS: usize = 255;

/// Names that a categorical column may hold: subsets of them are four words of bits.
const CATEGORIES: usize = 255;

/// What the codes of one feature stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Coding {
    /// Smallest and largest value of each code, rising.
    pub spans: Vec<(f32, f32)>,
    pub categorical: bool,
    /// Whether a value was missing; their code is the one after the last.
    pub missing: bool,
}

impl Coding {
    /// Codes for the values that `present` holds. NaN is a missing value; `zeros`
    /// more values are 0.
    pub fn of(
        feature: usize,
        present: &[f32],
        zeros: usize,
        splits: Splits,
        categorical: bool,
    ) -> Result<Self> {
        let mut values: Vec<f32> = present.iter().copied().filter(|v| !v.is_nan()).collect();
        let missing = values.len() < present.len();
        values.sort_unstable_by(f32::total_cmp);
        let (below, above) = values.split_at(values.partition_point(|&v| v < 0.0));
        let count = |sorted| <[f32]>::chunk_by(sorted, f32::eq).map(|same| (same[0], same.len()));
        let zero = (zeros > 0).then_some((0.0, zeros));
        let distinct: Vec<(f32, usize)> = count(below).chain(zero).chain(count(above)).collect();
        if categorical && distinct.len() > CATEGORIES {
            return Err(Error::data(format!(
                "column {feature} has {} categories; a categorical feature may have at most \
                 {CATEGORIES}",
                distinct.len()
            )));
        }
        let spans = if splits == Splits::Exact || distinct.len() <= BINS {
            distinct.iter().map(|&(value, _)| (value, value)).collect()
        } else {
            bins(&distinct)
        };
        Ok(Self {
            spans,
            categorical,
            missing,
        })
    }

    /// The code of a value that was there when the codes were made.
    pub fn code(&self, value: f32) -> u32 {
        if value.is_nan() {
            return self.spans.len() as u32;
        }
        self.spans.partition_point(|&(_, high)| high < value) as u32
    }

    /// Number of codes, that of missing values included.
    pub fn n_codes(&self) -> usize {
        self.spans.len() + usize::from(self.missing)
    }

    pub fn missing_code(&self) -> Option<u32> {
        self.missing.then_some(self.spans.len() as u32)
    }

    /// Where to cut between the codes `low` and `high`, two neighbours among the rows
    /// of a node: the last code to the left, and the threshold (value <= threshold goes
    /// left). It is in the middle, or where that is inside a group, at its nearer end.
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

/// A number from `a` on, but below `b`, in the middle if there is one.
fn midpoint(a: f32, b: f32) -> f32 {
    let middle = f64::midpoint(f64::from(a), f64::from(b)) as f32;
    if middle < b {
        middle
    } else {
        a
    }
}

/// [`BINS`] groups of neighbouring values, one after the other: each takes its share of the rows
/// that are left, divided by the groups that are left.
fn bins(distinct: &[(f32, usize)]) -> Vec<(f32, f32)> {
    let mut left: usize = distinct.iter().map(|&(_, n)| n).sum();
    let mut spans = Vec::with_capacity(BINS);
    let mut at = 0;
    while at < distinct.len() {
        let groups = BINS - spans.len();
        let share = left as f64 / groups as f64;
        let first = at;
        let mut taken = 0;
        // One value at least; the next as long as it brings the group nearer to its share.
        while at < distinct.len()
            && (at == first || taken as f64 + distinct[at].1 as f64 / 2.0 <= share)
            && distinct.len() - at >= groups
        {
            taken += distinct[at].1;
            at += 1;
        }
        left -= taken;
        spans.push((distinct[first].0, distinct[at - 1].0));
    }
    spans
}

/// A column of which at least this share is not zero is dense, one array of codes; the others
/// are sparse, entries of their rows. A zero costs nothing there, an entry twice to
/// four times as much as a code.
const MIN_DENSE_SHARE: f64 = 0.4;

/// Where at least one of so many rows has an entry, a bit for each row says whether it has: the
/// bits take no more memory than the entries.
const MAX_ROWS_PER_ENTRY: usize = 64;

/// Where the codes of a column are: in an array of their own, or among the entries of the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// At most 256 codes, row by row.
    Small(Vec<u8>),
    /// More.
    Large(Vec<u32>),
    /// All rows but those with an entry have the code `zero`.
    Sparse { zero: u32, entries: Entries },
}

/// Which rows have an entry in a sparse column.
#[derive(Debug, Clone, PartialEq)]
pub enum Entries {
    /// A bit for each row; its code is among the entries of the row.
    Frequent(Vec<u64>),
    /// These few, rising, with their codes.
    Rare(Vec<(u32, u32)>),
}

/// A feature of more than one code.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its column in X.
    pub feature: u32,
    pub coding: Coding,
    pub storage: Storage,
}

/// All examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// The features of more than one code, in their order.
    pub columns: Vec<Column>,
    /// Those that are dense.
    pub dense: Vec<u32>,
    /// The others.
    pub sparse: Vec<u32>,
    /// For each row its columns, rising, of another code than that of zero, and these codes.
    entries: Grouped<u32>,
    /// Whether all sparse columns have two codes, of which zero's is the first.
    pub are_binary: bool,
}

impl Columns {
    /// Reads the rows of `which`, which are numbered anew from 0 in their order.
    pub fn new(
        rows: &Rows<'_>,
        which: &[u32],
        params: &Params,
        threads: bool,
        control: &Control,
    ) -> Result<Self> {
        let mut buffer = RowBuffer::default();
        let by_feature = Grouped::new(rows.n_cols(), |take| {
            for (at, &row) in which.iter().enumerate() {
                if at % Control::CHUNK == 0 {
                    control.check()?;
                }
                rows.read(row as usize, &mut buffer);
                for (&feature, &value) in buffer.columns.iter().zip(&buffer.values) {
                    take(feature, at as u32, value);
                }
            }
            Ok(())
        })?;
        let mut categorical = vec![false; rows.n_cols()];
        for &feature in &params.categorical_features {
            let Some(mark) = categorical.get_mut(feature as usize) else {
                let allowed = format!("columns of X, which has {}", rows.n_cols());
                return Err(Error::parameter("categorical_features", feature, allowed));
            };
            *mark = true;
        }
        let make = |feature: usize| {
            let is_categorical = categorical[feature];
            let column = control.check().and_then(|()| {
                Column::new(feature, &by_feature, which.len(), params, is_categorical)
            });
            column.transpose()
        };
        let features = 0..rows.n_cols();
        let mut made = Vec::with_capacity(rows.n_cols());
        if threads {
            let columns = features.into_par_iter().map(make);
            columns.collect_into_vec(&mut made);
        } else {
            made.extend(features.map(make));
        }
        let mut columns: Vec<Column> = Vec::new();
        for column in made.into_iter().flatten() {
            columns.push(column?);
        }
        let entries = Grouped::new(which.len(), |take| {
            for (at, column) in columns.iter().enumerate() {
                let Storage::Sparse { zero, .. } = column.storage else {
                    continue;
                };
                let (rows, values) = by_feature.get(column.feature as usize);
                for (&row, &value) in rows.iter().zip(values) {
                    let code = column.coding.code(value);
                    if code != zero {
                        take(row, at as u32, code);
                    }
                }
            }
            Ok(())
        })?;
        let zero = |at: u32| columns[at as usize].zero();
        let (sparse, dense): (Vec<u32>, Vec<u32>) =
            (0..columns.len() as u32).partition(|&at| zero(at).is_some());
        let is_binary = |&at: &u32| {
            let coding = &columns[at as usize].coding;
            coding.n_codes() == 2 && !coding.missing && zero(at) == Some(0)
        };
        Ok(Self {
            are_binary: sparse.iter().all(is_binary),
            dense,
            sparse,
            columns,
            entries,
        })
    }

    /// The columns, rising, of the entries of row `row`, and their codes.
    #[inline]
    pub fn entries(&self, row: usize) -> (&[u32], &[u32]) {
        self.entries.get(row)
    }

    /// Which rows have an entry in column `column`, where that is all that its codes say.
    pub fn rows_with_entry(&self, column: usize) -> Option<&[u64]> {
        match &self.columns[column].storage {
            Storage::Sparse {
                entries: Entries::Frequent(set),
                ..
            } if self.are_binary => Some(set),
            _ => None,
        }
    }

    /// The code that row `row` has in column `column`.
    pub fn code(&self, column: usize, row: usize) -> u32 {
        match &self.columns[column].storage {
            Storage::Small(codes) => u32::from(codes[row]),
            Storage::Large(codes) => codes[row],
            Storage::Sparse { zero, entries } => match entries {
                Entries::Frequent(set) if !is_in(set, row) => *zero,
                Entries::Frequent(_) if self.are_binary => 1,
                Entries::Frequent(_) => {
                    let (columns, codes) = self.entries(row);
                    let at = columns.binary_search(&(column as u32));
                    at.map_or(*zero, |at| codes[at])
                }
                Entries::Rare(codes) => {
                    let at = codes.binary_search_by_key(&(row as u32), |&(row, _)| row);
                    at.map_or(*zero, |at| codes[at].1)
                }
            },
        }
    }
}

/// Whether `row` is one of a set of rows, a bit each.
#[inline]
pub fn is_in(set: &[u64], row: usize) -> bool {
    set[row / 64] >> (row % 64) & 1 == 1
}

impl Column {
    /// The column of `feature`; none where all rows have one code. `by_feature` has the rows and
    /// values that are not zero.
    fn new(
        feature: usize,
        by_feature: &Grouped<f32>,
        n_rows: usize,
        params: &Params,
        categorical: bool,
    ) -> Result<Option<Self>> {
        let (rows, values) = by_feature.get(feature);
        let zeros = n_rows - rows.len();
        let coding = Coding::of(feature, values, zeros, params.splits, categorical)?;
        if coding.n_codes() < 2 {
            return Ok(None);
        }
        let zero = if zeros > 0 { coding.code(0.0) } else { 0 };
        // A subset of names is found from all of them, the one of zero too.
        let storage = if categorical || rows.len() as f64 >= MIN_DENSE_SHARE * n_rows as f64 {
            let mut codes = vec![zero; n_rows];
            for (&row, &value) in rows.iter().zip(values) {
                codes[row as usize] = coding.code(value);
            }
            if coding.n_codes() <= 1 << 8 {
                Storage::Small(codes.into_iter().map(|code| code as u8).collect())
            } else {
                Storage::Large(codes)
            }
        } else {
            let codes = values.iter().map(|&value| coding.code(value));
            let codes = rows.iter().copied().zip(codes);
            let codes = codes.filter(|&(_, code)| code != zero);
            let entries = if rows.len() * MAX_ROWS_PER_ENTRY >= n_rows {
                let mut set: Vec<u64> = vec![0; n_rows.div_ceil(64)];
                codes.for_each(|(row, _)| set[row as usize / 64] |= 1 << (row % 64));
                Entries::Frequent(set)
            } else {
                let mut entries = Vec::with_capacity(rows.len());
                entries.extend(codes);
                Entries::Rare(entries)
            };
            Storage::Sparse { zero, entries }
        };
        Ok(Some(Self {
            feature: feature as u32,
            coding,
            storage,
        }))
    }

    /// The code of rows without an entry, if the column is sparse.
    pub fn zero(&self) -> Option<u32> {
        match self.storage {
            Storage::Sparse { zero, .. } => Some(zero),
            _ => None,
        }
    }
}

/// Lists of an index and a value each, end to end. In two arrays, as often the indices are all
/// that is read.
#[derive(Debug, Clone, PartialEq)]
struct Grouped<T> {
    /// Where each list begins, and where the last one ends.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Clone + Default> Grouped<T> {
    /// Sorts what `each` takes, the number of a list, index and value, into `n` lists. It is
    /// called twice: to count, and to store.
    fn new(
        n: usize,
        mut each: impl FnMut(&mut dyn FnMut(u32, u32, T)) -> Result<()>,
    ) -> Result<Self> {
        let mut starts: Vec<usize> = vec![0; n + 1];
        each(&mut |list, _, _| starts[list as usize + 1] += 1)?;
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let (mut indices, mut values) = (vec![0; starts[n]], vec![T::default(); starts[n]]);
        each(&mut |list, index, value| {
            let to = &mut next[list as usize];
            indices[*to] = index;
            values[*to] = value;
            *to += 1;
        })?;
        Ok(Self {
            starts,
            indices,
            values,
        })
    }

    #[inline]
    fn get(&self, list: usize) -> (&[u32], &[T]) {
        let span = self.starts[list]..self.starts[list + 1];
        (&self.indices[span.clone()], &self.values[span])
    }
}
