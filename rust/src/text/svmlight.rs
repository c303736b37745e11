//! The svmlight format: `label[,label...] [qid:n] index:value ... # comment`.

use super::cursor::Cursor;
use super::reader::{Format, Place};
use super::table::{Arity, Batch, Table};
use crate::error::{Error, Result};

/// scipy's smaller index type bounds every column and every label.
pub(super) const MAX_INDEX: u64 = i32::MAX as u64;

/// What the reader is told about a file; `None` means: find out.
#[derive(Debug, Clone, Copy, Default)]
pub struct SvmlightOptions {
    /// Whether indices start at 0. Found out: yes if index 0 occurs.
    pub zero_based: Option<bool>,
    /// Number of columns. Found out: one more than the highest index.
    pub n_features: Option<usize>,
    /// Whether y is label sets. Found out: unless every row has one label.
    pub multilabel: Option<bool>,
}

/// What a whole file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Whether indices start at 0.
    pub zero_based: bool,
    /// Number of columns.
    pub n_features: usize,
    /// Whether y is label sets.
    pub multilabel: bool,
}

/// The parser of svmlight lines.
pub(super) struct Svmlight {
    options: SvmlightOptions,
    arity: Arity,
    columns: Columns,
    /// Rows with other than one label were seen.
    sets: bool,
    /// First line with a label that is no whole number.
    fraction: Option<u64>,
    lowest: Option<i32>,
    highest: Option<i32>,
    /// Line of the highest index.
    highest_line: u64,
}

/// Which column indices are accepted and what becomes of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// The lowest index in the text.
    pub first: u64,
    /// One more than the highest index in the text.
    pub end: u64,
    /// Whether `#` ends the line.
    pub comments: bool,
}

impl Svmlight {
    pub fn new(options: SvmlightOptions) -> Result<Self> {
        if let Some(n) = options.n_features.filter(|&n| n as u64 > MAX_INDEX) {
            return Err(Error::parameter(
                "n_features",
                n,
                format!("at most {MAX_INDEX}"),
            ));
        }
        let first = u64::from(options.zero_based == Some(false));
        // Until it is known whether the file starts at 0 or 1, both must pass.
        let last = u64::from(options.zero_based != Some(true));
        let end = options.n_features.map_or(MAX_INDEX, |n| n as u64) + last;
        Ok(Self {
            options,
            arity: Arity::from_option(options.multilabel),
            columns: Columns {
                first,
                end: end.min(MAX_INDEX + 1),
                comments: true,
            },
            sets: false,
            fraction: None,
            lowest: None,
            highest: None,
            highest_line: 0,
        })
    }

    fn labels(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<f64>,
    ) -> std::result::Result<(), String> {
        let from = cursor.at();
        loop {
            let at = cursor.at();
            table.labels.push(cursor.double()?);
            match cursor.peek() {
                b',' => cursor.bump(),
                // No label: the line begins with its first feature.
                b':' if at == from && self.arity != Arity::Single => {
                    table.labels.pop();
                    cursor.rewind(from);
                    return Ok(());
                }
                b':' if at == from => return self.arity.check(0),
                b'#' => return Ok(()),
                _ if cursor.at_blank() => return Ok(()),
                _ => return Err(format!("{} is not a label", cursor.quote(at))),
            }
        }
    }
}

impl Format for Svmlight {
    type Label = f64;

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<f64>,
        line: u64,
    ) -> std::result::Result<bool, String> {
        cursor.skip_blanks();
        if matches!(cursor.peek(), b'\n' | b'#') {
            cursor.skip_line();
            return Ok(false);
        }
        self.labels(cursor, table)?;
        let labels = table.open_labels();
        self.arity.check(labels.len())?;
        self.sets |= labels.len() != 1;
        if labels.len() > 1 {
            labels.sort_unstable_by(f64::total_cmp);
            // Sorted, so "not below the next" is "equal", of the two zeros too.
            if let Some(at) = (1..labels.len()).find(|&at| labels[at - 1] >= labels[at]) {
                return Err(format!("label {} stands twice", labels[at]));
            }
        }
        if self.fraction.is_none() && labels.iter().any(|&label| !is_whole(label)) {
            self.fraction = Some(line);
            if self.arity == Arity::Multi {
                return Err(NOT_WHOLE.into());
            }
        }
        cursor.skip_blanks();
        if cursor.sees(b"qid:") {
            cursor.skip_token();
        }
        let from = table.columns.len();
        read_features(cursor, self.columns, table)?;
        // The row is sorted by now.
        if let [first, .., last] | [first @ last] = table.columns[from..] {
            self.lowest = Some(self.lowest.map_or(first, |low| low.min(first)));
            if self.highest.is_none_or(|high| high < last) {
                self.highest = Some(last);
                self.highest_line = line;
            }
        }
        table.end_row();
        Ok(true)
    }

    fn end(&self, rows: u64) -> std::result::Result<(), String> {
        if rows == 0 {
            return Err("the file has no examples".into());
        }
        Ok(())
    }

    fn n_features(&self) -> usize {
        self.options.n_features.unwrap_or(0)
    }

    fn n_labels(&self) -> usize {
        0
    }
}

const NOT_WHOLE: &str = "a label of a multilabel file must be a whole number";

/// Whether a label can be passed on as an i64.
fn is_whole(label: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    label.fract() == 0.0 && label.abs() <= EXACT
}

impl Svmlight {
    /// What the file is, now that it was read to its end.
    pub fn layout(&self, place: &Place) -> Result<Layout> {
        let multilabel = self.options.multilabel.unwrap_or(self.sets);
        if let Some(line) = self.fraction.filter(|_| multilabel) {
            return Err(place.fault(line, NOT_WHOLE));
        }
        let zero_based = self.options.zero_based.unwrap_or(self.lowest == Some(0));
        let offset = usize::from(!zero_based);
        let needed = self.highest.map_or(0, |high| high as usize + 1 - offset);
        let n_features = self.options.n_features.unwrap_or(needed);
        if needed > n_features {
            return Err(place.fault(
                self.highest_line,
                out_of_range(
                    (needed - 1 + offset) as u64,
                    offset as u64,
                    (n_features + offset) as u64,
                ),
            ));
        }
        Ok(Layout {
            zero_based,
            n_features,
            multilabel,
        })
    }

    /// Turns indices as they stand in the text into columns from 0.
    pub fn batch(mut table: Table<f64>, layout: Layout) -> Batch<f64> {
        if !layout.zero_based {
            table.columns.iter_mut().for_each(|column| *column -= 1);
        }
        Batch {
            table,
            n_features: layout.n_features,
            n_labels: 0,
            multilabel: layout.multilabel,
        }
    }
}

/// Reads `index:value` pairs to the end of the line, indices as they stand in
/// the text. Unsorted pairs are sorted (files of the repository have them);
/// an index that stands twice is an error, for nobody knows what was meant.
#[inline]
pub(super) fn read_features<L>(
    cursor: &mut Cursor<'_>,
    columns: Columns,
    table: &mut Table<L>,
) -> std::result::Result<(), String> {
    let from = table.columns.len();
    let mut previous = -1;
    let mut sorted = true;
    loop {
        match cursor.peek() {
            b' ' | b'\t' | b'\r' => {
                cursor.bump();
                continue;
            }
            b'\n' => {
                cursor.bump();
                break;
            }
            b'#' if columns.comments => {
                cursor.skip_line();
                break;
            }
            _ => {}
        }
        let at = cursor.at();
        let (index, length) = cursor.digits();
        if length == 0 || cursor.peek() != b':' {
            return Err(not_a_pair(cursor, at));
        }
        if index < columns.first || index >= columns.end {
            return Err(out_of_range(index, columns.first, columns.end));
        }
        cursor.bump();
        let value = cursor.float()?;
        let ends = cursor.at_blank() || (columns.comments && cursor.peek() == b'#');
        if !ends {
            return Err(not_a_pair(cursor, at));
        }
        let index = index as i32;
        sorted &= index > previous;
        previous = index;
        table.columns.push(index);
        table.values.push(value);
    }
    if sorted {
        return Ok(());
    }
    sort_row(&mut table.columns[from..], &mut table.values[from..])
}

#[cold]
fn not_a_pair(cursor: &Cursor<'_>, at: usize) -> String {
    format!("{} is not of the form index:value", cursor.quote(at))
}

#[cold]
fn out_of_range(index: u64, first: u64, end: u64) -> String {
    format!("feature index {index} is outside {first}..{end} (the end excluded)")
}

#[cold]
fn sort_row(columns: &mut [i32], values: &mut [f32]) -> std::result::Result<(), String> {
    let mut pairs: Vec<(i32, f32)> = columns
        .iter()
        .copied()
        .zip(values.iter().copied())
        .collect();
    pairs.sort_unstable_by_key(|&(column, _)| column);
    if let Some(twice) = pairs.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("feature index {} stands twice", twice[0].0));
    }
    for (at, (column, value)) in pairs.into_iter().enumerate() {
        columns[at] = column;
        values[at] = value;
    }
    Ok(())
}
