//! The examples as a tree learns from them: codes, dense columns one array each, sparse ones as
//! entries row by row.

use rayon::prelude::*;

use super::binning::Coding;
use super::params::Params;
use crate::control::Control;
use crate::data::{RowBuffer, Rows};
use crate::error::{Error, Result};

/// A column of which at least this share is not zero is dense, one array of codes; the others
/// are sparse, entries of their rows. A zero costs nothing there, an entry twice to
/// four times as much as a code.
const DENSE: f64 = 0.4;

/// Where at least one of so many rows has an entry, a bit for each row says whether it has:
/// the bits take no more memory than the entries.
const OFTEN: usize = 64;

/// Where the codes of a column are: in an array of their own, or among the entries of the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// At most 256 codes, row by row.
    Small(Vec<u8>),
    /// More. With them the rows in the order of their codes, and then of their numbers.
    Large { codes: Vec<u32>, order: Vec<u32> },
    /// The code `zero` has no entries. Which rows have one, a bit each; none if that are too few.
    Sparse {
        zero: u32,
        with_entry: Option<Vec<u64>>,
    },
}

/// A feature of more than one code.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its column in X.
    pub feature: u32,
    pub coding: Coding,
    pub storage: Storage,
}

/// The codes of a column, in brief.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnInfo {
    /// Their number, that of missing values included.
    pub n_codes: u32,
    /// That of missing values, if there are any.
    pub missing: Option<u32>,
    /// That of zero, if the column is sparse.
    pub zero: Option<u32>,
}

/// All examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// The features of more than one code, in their order.
    pub columns: Vec<Column>,
    /// Those that are dense.
    pub dense: Vec<u32>,
    /// What reading entries needs of each, side by side: where columns are very many, most of
    /// them have an entry or two at a node.
    infos: Vec<ColumnInfo>,
    /// For each row its columns, rising, of another code than that of zero, and these codes.
    entries: Grouped<u32>,
    /// Whether all sparse columns have two codes, of which zero's is the first.
    pub are_binary: bool,
}

/// The examples of a fit. The first are learned, the rest are held out for early stopping.
pub struct Examples<'a> {
    pub columns: &'a Columns,
    pub labels: &'a [u32],
    pub importances: &'a [f32],
    pub n_learned: usize,
    pub n_classes: usize,
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
        let make = |feature: usize| -> Result<Option<Column>> {
            control.check()?;
            Column::new(
                feature,
                &by_feature,
                which.len(),
                params,
                categorical[feature],
            )
        };
        let features = 0..rows.n_cols();
        let made: Vec<Option<Column>> = if threads {
            features.into_par_iter().map(make).collect::<Result<_>>()?
        } else {
            features.map(make).collect::<Result<_>>()?
        };
        let columns: Vec<Column> = made.into_iter().flatten().collect();
        let infos: Vec<ColumnInfo> = columns.iter().map(Column::info).collect();
        let entries = Grouped::new(which.len(), |take| {
            for (at, column) in columns.iter().enumerate() {
                let Storage::Sparse { zero, .. } = column.storage else {
                    continue;
                };
                let feature = column.feature as usize;
                let rows = by_feature.indices(feature).iter();
                for (&row, &value) in rows.zip(by_feature.values(feature)) {
                    let code = column.coding.code(value);
                    if code != zero {
                        take(row, at as u32, code);
                    }
                }
            }
            Ok(())
        })?;
        let is_dense = |at: &u32| infos[*at as usize].zero.is_none();
        let is_binary = |info: &ColumnInfo| {
            info.zero.is_none() || (info.n_codes, info.missing, info.zero) == (2, None, Some(0))
        };
        Ok(Self {
            dense: (0..columns.len() as u32).filter(is_dense).collect(),
            are_binary: infos.iter().all(is_binary),
            infos,
            columns,
            entries,
        })
    }

    /// Columns of the entries of row `row`, rising.
    #[inline]
    pub fn entries(&self, row: usize) -> &[u32] {
        self.entries.indices(row)
    }

    /// Their codes.
    #[inline]
    pub fn entry_codes(&self, row: usize) -> &[u32] {
        self.entries.values(row)
    }

    #[inline]
    pub fn info(&self, column: u32) -> ColumnInfo {
        self.infos[column as usize]
    }

    /// Which rows have an entry in column `column`, where that is all that its codes say.
    pub fn rows_with_entry(&self, column: usize) -> Option<&[u64]> {
        match &self.columns[column].storage {
            Storage::Sparse { with_entry, .. } if self.are_binary => with_entry.as_deref(),
            _ => None,
        }
    }

    /// The code that row `row` has in column `column`.
    pub fn code(&self, column: usize, row: usize) -> u32 {
        match &self.columns[column].storage {
            Storage::Small(codes) => u32::from(codes[row]),
            Storage::Large { codes, .. } => codes[row],
            Storage::Sparse { zero, with_entry } => {
                if let Some(with_entry) = with_entry {
                    if !is_in(with_entry, row) {
                        return *zero;
                    }
                    if self.are_binary {
                        return 1;
                    }
                }
                match self.entries(row).binary_search(&(column as u32)) {
                    Ok(at) => self.entry_codes(row)[at],
                    Err(_) => *zero,
                }
            }
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
        let (rows, values) = (by_feature.indices(feature), by_feature.values(feature));
        let zeros = n_rows - rows.len();
        let coding = Coding::of(feature, values, zeros, params.splits, categorical)?;
        if coding.n_codes() < 2 {
            return Ok(None);
        }
        let zero = if zeros > 0 { coding.code(0.0) } else { 0 };
        // A subset of names is found from all of them, the one of zero too.
        let storage = if categorical || rows.len() as f64 >= DENSE * n_rows as f64 {
            let mut codes = vec![zero; n_rows];
            for (&row, &value) in rows.iter().zip(values) {
                codes[row as usize] = coding.code(value);
            }
            if coding.n_codes() <= 1 << 8 {
                Storage::Small(codes.into_iter().map(|code| code as u8).collect())
            } else {
                let mut order: Vec<u32> = (0..n_rows as u32).collect();
                order.sort_by_key(|&row| codes[row as usize]);
                Storage::Large { codes, order }
            }
        } else {
            let with_entry = (rows.len() * OFTEN >= n_rows).then(|| {
                let mut set = vec![0; n_rows.div_ceil(64)];
                for (&row, &value) in rows.iter().zip(values) {
                    if coding.code(value) != zero {
                        set[row as usize / 64] |= 1 << (row % 64);
                    }
                }
                set
            });
            Storage::Sparse { zero, with_entry }
        };
        Ok(Some(Self {
            feature: feature as u32,
            coding,
            storage,
        }))
    }

    fn info(&self) -> ColumnInfo {
        ColumnInfo {
            n_codes: self.coding.n_codes() as u32,
            missing: self.coding.missing_code(),
            zero: match self.storage {
                Storage::Sparse { zero, .. } => Some(zero),
                _ => None,
            },
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
        let mut starts = vec![0; n + 1];
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
    fn indices(&self, list: usize) -> &[u32] {
        &self.indices[self.starts[list]..self.starts[list + 1]]
    }

    #[inline]
    fn values(&self, list: usize) -> &[T] {
        &self.values[self.starts[list]..self.starts[list + 1]]
    }
}
