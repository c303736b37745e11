//! The examples of a fit, as trees are grown from them.
//!
//! Each feature's values become codes: small integers in the order of the values, O(n log n) a
//! feature. A dense column is one array of codes, sparse columns are entries row by row.

use rayon::prelude::*;

use super::{Params, Splits};
use crate::control::Control;
use crate::data::{Ragged, RowBuffer, Rows};
use crate::error::{Error, Result};

/// Groups of neighbouring values, at most, where splits are binned. With the missing
/// values they fit into a byte.
const MAX_BINS: usize = 255;

/// Names that a categorical column may hold: subsets of them are four words of bits.
const MAX_CATEGORIES: usize = 255;

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
    /// Codes for the values `present`. NaN is a missing value; `zeros` more values are 0.
    pub fn new(
        feature: usize,
        present: impl ExactSizeIterator<Item = f32>,
        zeros: usize,
        splits: Splits,
        categorical: bool,
    ) -> Result<Self> {
        let n_present = present.len();
        let mut values: Vec<f32> = present.filter(|v| !v.is_nan()).collect();
        let missing = values.len() < n_present;
        values.sort_unstable_by(f32::total_cmp);
        let (below, above) = values.split_at(values.partition_point(|&v| v < 0.0));
        let count = |sorted| <[f32]>::chunk_by(sorted, f32::eq).map(|same| (same[0], same.len()));
        let zero = (zeros > 0).then_some((0.0, zeros));
        let distinct: Vec<(f32, usize)> = count(below).chain(zero).chain(count(above)).collect();
        if categorical && distinct.len() > MAX_CATEGORIES {
            return Err(Error::data(format!(
                "column {feature} has {} categories; a categorical feature may have at most \
                 {MAX_CATEGORIES}",
                distinct.len()
            )));
        }
        let spans = if splits == Splits::Exact || distinct.len() <= MAX_BINS {
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

/// [`MAX_BINS`] groups of neighbouring values, one after the other: each takes its share of the rows
/// that are left, divided by the groups that are left.
fn bins(distinct: &[(f32, usize)]) -> Vec<(f32, f32)> {
    let mut left: usize = distinct.iter().map(|&(_, n)| n).sum();
    let mut spans = Vec::with_capacity(MAX_BINS);
    let mut at = 0;
    while at < distinct.len() {
        let groups = MAX_BINS - spans.len();
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

/// Where the codes of a column are: in an array of their own, or among the entries of the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// At most 256 codes, row by row.
    Small(Vec<u8>),
    /// More.
    Large(Vec<u32>),
    /// All rows but those with an entry have the code `zero`.
    Sparse { zero: u32 },
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
    /// For each column the rows, rising, of another code than that of zero, and these codes; none
    /// of a dense column.
    of_columns: Ragged<(u32, u32)>,
    /// The same for each row: columns, rising, and codes.
    of_rows: Ragged<(u32, u32)>,
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
        let mut categorical = vec![false; rows.n_cols()];
        for &feature in &params.categorical_features {
            let Some(mark) = categorical.get_mut(feature as usize) else {
                let allowed = format!("columns of X, which has {}", rows.n_cols());
                return Err(Error::parameter("categorical_features", feature, allowed));
            };
            *mark = true;
        }
        let make = |feature: usize| {
            let (entries, is_categorical) = (by_feature.get(feature), categorical[feature]);
            let column = control
                .check()
                .and_then(|()| Column::new(feature, entries, which.len(), params, is_categorical));
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
        let mut of_columns = Ragged::default();
        for column in &columns {
            let entries = by_feature.get(column.feature as usize).iter();
            let codes = entries.map(|&(row, value)| (row, column.coding.code(value)));
            let zero = column.zero();
            of_columns.push(codes.filter(|&(_, code)| zero.is_some_and(|zero| code != zero)));
        }
        let of_rows = of_columns.regroup(which.len(), |column, &(row, code)| (row, (column, code)));
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
            of_columns,
            of_rows,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.of_rows.len()
    }

    /// The columns, rising, of the entries of row `row`, and their codes.
    #[inline]
    pub fn entries_of_row(&self, row: usize) -> &[(u32, u32)] {
        self.of_rows.get(row)
    }

    /// The rows, rising, of the entries of the sparse column `column`, and their codes.
    pub fn entries_of_column(&self, column: usize) -> &[(u32, u32)] {
        self.of_columns.get(column)
    }
}

impl Column {
    /// The column of `feature`; none where all rows have one code. `entries` are the rows and
    /// values that are not zero.
    fn new(
        feature: usize,
        entries: &[(u32, f32)],
        n_rows: usize,
        params: &Params,
        categorical: bool,
    ) -> Result<Option<Self>> {
        let zeros = n_rows - entries.len();
        let values = entries.iter().map(|&(_, value)| value);
        let coding = Coding::new(feature, values, zeros, params.splits, categorical)?;
        if coding.n_codes() < 2 {
            return Ok(None);
        }
        let zero = if zeros > 0 { coding.code(0.0) } else { 0 };
        // A subset of names is found from all of them, the one of zero too.
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
            Storage::Sparse { zero }
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
            Storage::Sparse { zero } => Some(zero),
            _ => None,
        }
    }
}
