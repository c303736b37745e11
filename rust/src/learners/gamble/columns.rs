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

/// Where at least one of so many rows has an entry, a bit for each row tells whether it has:
/// the bits take no more memory than the entries.
const OFTEN: usize = 64;

/// Codes of a dense column.
#[derive(Debug, Clone, PartialEq)]
pub enum Codes {
    /// At most 256 codes.
    Small(Vec<u8>),
    /// More. With them the rows in the order of their codes, and then of their numbers.
    Large {
        /// Code of each row.
        codes: Vec<u32>,
        /// The rows, sorted.
        order: Vec<u32>,
    },
}

impl Codes {
    /// The code of row `row`.
    pub fn get(&self, row: usize) -> u32 {
        match self {
            Self::Small(codes) => u32::from(codes[row]),
            Self::Large { codes, .. } => codes[row],
        }
    }
}

/// Where the codes of a column are.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// In an array of their own.
    Dense(Codes),
    /// Among the entries of the rows.
    Sparse {
        /// The code of zero, which has no entries.
        zero: u32,
        /// Which rows have an entry, a bit each; none if that are too few.
        with_entry: Option<Vec<u64>>,
    },
}

/// A feature of more than one code.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its column in X.
    pub feature: u32,
    /// What its codes stand for.
    pub coding: Coding,
    /// Where the codes are.
    pub storage: Storage,
}

/// The codes of a column, in brief.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnInfo {
    /// Their number, that of missing values included.
    pub n_codes: u32,
    /// That of missing values, if there are any.
    pub missing: Option<u32>,
    /// That of zero, if it is not among the entries.
    pub zero: Option<u32>,
}

impl ColumnInfo {
    fn of(column: &Column) -> Self {
        Self {
            n_codes: column.coding.n_codes() as u32,
            missing: column.coding.missing_code(),
            zero: match column.storage {
                Storage::Dense(_) => None,
                Storage::Sparse { zero, .. } => Some(zero),
            },
        }
    }
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
    /// Where the entries of each row begin, and where the last row's end.
    starts: Vec<usize>,
    entries: Entries,
    binary: bool,
}

/// Codes that are not those of zero, row by row. In two arrays, as often the columns are all
/// that is read.
#[derive(Debug, Clone, Default, PartialEq)]
struct Entries {
    /// Indices among the columns.
    columns: Vec<u32>,
    codes: Vec<u32>,
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
        let by_feature = ByFeature::read(rows, which, control)?;
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
            by_feature.column(feature, which.len(), params, categorical[feature])
        };
        let features = 0..rows.n_cols();
        let made: Vec<Option<Column>> = if threads {
            features.into_par_iter().map(make).collect::<Result<_>>()?
        } else {
            features.map(make).collect::<Result<_>>()?
        };
        let columns: Vec<Column> = made.into_iter().flatten().collect();
        let (starts, entries) = by_feature.entries(&columns, which.len());
        let binary = columns.iter().all(|column| match column.storage {
            Storage::Dense(_) => true,
            Storage::Sparse { zero, .. } => {
                zero == 0 && column.coding.n_codes() == 2 && !column.coding.missing
            }
        });
        let infos: Vec<ColumnInfo> = columns.iter().map(ColumnInfo::of).collect();
        let is_dense = |at: &u32| infos[*at as usize].zero.is_none();
        Ok(Self {
            dense: (0..columns.len() as u32).filter(is_dense).collect(),
            infos,
            columns,
            starts,
            entries,
            binary,
        })
    }

    /// Columns of the entries of row `row`, rising.
    #[inline]
    pub fn entries(&self, row: usize) -> &[u32] {
        &self.entries.columns[self.starts[row]..self.starts[row + 1]]
    }

    /// Their codes.
    #[inline]
    pub fn entry_codes(&self, row: usize) -> &[u32] {
        &self.entries.codes[self.starts[row]..self.starts[row + 1]]
    }

    /// Whether column `column` is dense.
    #[inline]
    pub fn is_dense(&self, column: u32) -> bool {
        self.info(column).zero.is_none()
    }

    /// The codes of column `column`.
    #[inline]
    pub fn info(&self, column: u32) -> ColumnInfo {
        self.infos[column as usize]
    }

    /// Whether all sparse columns have two codes, of which zero's is the
    /// first.
    pub fn are_binary(&self) -> bool {
        self.binary
    }

    /// Which rows have an entry in column `column`, where that is all that its codes say.
    pub fn rows_with_entry(&self, column: usize) -> Option<&[u64]> {
        match &self.columns[column].storage {
            Storage::Sparse { with_entry, .. } if self.binary => with_entry.as_deref(),
            _ => None,
        }
    }

    /// The code that row `row` has in column `column`.
    pub fn code(&self, column: usize, row: usize) -> u32 {
        match &self.columns[column].storage {
            Storage::Dense(codes) => codes.get(row),
            Storage::Sparse { zero, with_entry } => {
                if let Some(with_entry) = with_entry {
                    if !is_in(with_entry, row) {
                        return *zero;
                    }
                    if self.binary {
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

/// The values that are not zero, feature by feature.
struct ByFeature {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f32>,
}

impl ByFeature {
    fn read(rows: &Rows<'_>, which: &[u32], control: &Control) -> Result<Self> {
        let mut buffer = RowBuffer::default();
        let mut starts = vec![0; rows.n_cols() + 1];
        for chunk in which.chunks(Control::CHUNK) {
            control.check()?;
            for &row in chunk {
                rows.read(row as usize, &mut buffer);
                for &column in &buffer.columns {
                    starts[column as usize + 1] += 1;
                }
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let total = starts[rows.n_cols()];
        let mut next = starts.clone();
        let mut by_feature = Self {
            starts,
            rows: vec![0; total],
            values: vec![0.0; total],
        };
        for (at, &row) in which.iter().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            rows.read(row as usize, &mut buffer);
            for (&column, &value) in buffer.columns.iter().zip(&buffer.values) {
                let to = &mut next[column as usize];
                by_feature.rows[*to] = at as u32;
                by_feature.values[*to] = value;
                *to += 1;
            }
        }
        Ok(by_feature)
    }

    /// The column of `feature`, or none where all rows have one code.
    fn column(
        &self,
        feature: usize,
        n_rows: usize,
        params: &Params,
        categorical: bool,
    ) -> Result<Option<Column>> {
        let span = self.starts[feature]..self.starts[feature + 1];
        let (rows, values) = (&self.rows[span.clone()], &self.values[span]);
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
            Storage::Dense(if coding.n_codes() <= 1 << 8 {
                Codes::Small(codes.into_iter().map(|code| code as u8).collect())
            } else {
                let mut order: Vec<u32> = (0..n_rows as u32).collect();
                order.sort_by_key(|&row| codes[row as usize]);
                Codes::Large { codes, order }
            })
        } else {
            let often = rows.len() * OFTEN >= n_rows;
            let with_entry = often.then(|| {
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
        Ok(Some(Column {
            feature: feature as u32,
            coding,
            storage,
        }))
    }

    /// The codes of the sparse columns, row by row.
    fn entries(&self, columns: &[Column], n_rows: usize) -> (Vec<usize>, Entries) {
        let mut starts = vec![0; n_rows + 1];
        let each = |mut take: Box<dyn FnMut(u32, u32, u32) + '_>| {
            for (at, column) in columns.iter().enumerate() {
                let Storage::Sparse { zero, .. } = column.storage else {
                    continue;
                };
                let feature = column.feature as usize;
                let span = self.starts[feature]..self.starts[feature + 1];
                for (&row, &value) in self.rows[span.clone()].iter().zip(&self.values[span]) {
                    let code = column.coding.code(value);
                    if code != zero {
                        take(row, at as u32, code);
                    }
                }
            }
        };
        each(Box::new(|row, _, _| starts[row as usize + 1] += 1));
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut entries = Entries {
            columns: vec![0; starts[n_rows]],
            codes: vec![0; starts[n_rows]],
        };
        each(Box::new(|row, column, code| {
            let to = &mut next[row as usize];
            entries.columns[*to] = column;
            entries.codes[*to] = code;
            *to += 1;
        }));
        (starts, entries)
    }
}
