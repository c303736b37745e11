//! The svmlight format: `label[,label...] [qid:n] index:value ... # comment`.

use super::cursor::Cursor;
use super::table::{looks_like, wrong_first_line, Batch, Fault, Format, Table};
use crate::error::Error;

/// Largest column or label: the limit of scipy's smaller index type.
pub(super) const MAX_INDEX: u64 = i32::MAX as u64;

/// Options of an svmlight file. `None` takes the value from the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct SvmlightOptions {
    /// True if indices start at 0. Default: true if index 0 occurs.
    pub zero_based: Option<bool>,
    /// Number of columns. Default: as many as the highest index needs.
    pub n_features: Option<usize>,
    /// True if y is label sets. Default: true unless every row has exactly one label.
    pub multilabel: Option<bool>,
}

/// Options of a file that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// True if indices start at 0.
    pub zero_based: bool,
    /// Number of columns.
    pub n_features: usize,
    /// True if y is label sets.
    pub multilabel: bool,
}

/// Parser of svmlight lines.
#[derive(Debug)]
pub struct Svmlight {
    options: SvmlightOptions,
    columns: Columns,
    /// True after the first row.
    has_rows: bool,
    /// True after a row whose number of labels is not one.
    has_sets: bool,
    /// First line with a label that is not a whole number.
    fraction: Option<u64>,
    lowest: Option<i32>,
    /// The highest index and its line.
    highest: Option<(i32, u64)>,
}

/// The column indices that a line may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// The lowest index in the text.
    pub first: u64,
    /// One more than the highest index in the text.
    pub end: u64,
    /// True if `#` starts a comment.
    pub comments: bool,
    /// Added to the error of an index that would be allowed if indices began at the other number.
    pub advice: &'static str,
}

impl Svmlight {
    /// Returns a parser for a file with these options.
    pub fn new(options: SvmlightOptions) -> crate::Result<Self> {
        if let Some(n) = options.n_features.filter(|&n| n as u64 > MAX_INDEX) {
            let allowed = format!("at most {MAX_INDEX}");
            return Err(Error::parameter("n_features", n, allowed));
        }
        let first = u64::from(options.zero_based == Some(false));
        // Indices of both kinds are allowed until the first index of the file is known.
        let last = u64::from(options.zero_based != Some(true));
        let end = options.n_features.map_or(MAX_INDEX, |n| n as u64) + last;
        Ok(Self {
            options,
            columns: Columns {
                first,
                end: end.min(MAX_INDEX + 1),
                comments: true,
                advice: match options.zero_based {
                    Some(true) => "; if indices begin at 1, pass zero_based=False (--index-base 1)",
                    Some(false) => "; if indices begin at 0, pass zero_based=True (--index-base 0)",
                    None => "",
                },
            },
            has_rows: false,
            has_sets: false,
            fraction: None,
            lowest: None,
            highest: None,
        })
    }

    /// Returns the options given, and the others by the lines read so far.
    pub(super) fn layout(&self) -> Result<Layout, Fault> {
        let multilabel = self.options.multilabel.unwrap_or(self.has_sets);
        if let Some(line) = self.fraction.filter(|_| multilabel) {
            // A CSV file of numbers parses as rows that have labels but no features.
            let what = match self.highest {
                Some(_) => NOT_WHOLE.into(),
                None => looks_like(NOT_WHOLE, "CSV"),
            };
            return Err((line, what));
        }
        let zero_based = self.options.zero_based.unwrap_or(self.lowest == Some(0));
        let first = u64::from(!zero_based);
        let (needed, line) = self
            .highest
            .map_or((first, 0), |(high, line)| (high as u64 + 1, line));
        let end = self.options.n_features.map_or(needed, |n| n as u64 + first);
        if needed > end {
            return Err((
                line,
                format!("feature index {}", outside(needed - 1, first, end)),
            ));
        }
        Ok(Layout {
            zero_based,
            n_features: (end - first) as usize,
            multilabel,
        })
    }
}

impl Format for Svmlight {
    type Label = f64;

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<f64>,
        line: u64,
    ) -> Result<(), String> {
        let (from, is_first) = (cursor.at, !self.has_rows);
        self.row(cursor, table, line).map_err(|what| {
            if is_first {
                wrong_first_line(what, cursor.line_from(from))
            } else {
                what
            }
        })
    }

    fn end(&self) -> Result<(), String> {
        let message = || "the file has no examples".into();
        self.has_rows.then_some(()).ok_or_else(message)
    }

    /// Converts the indices of the text to columns from 0.
    fn batch(&self, mut table: Table<f64>) -> Result<Batch<f64>, Fault> {
        let layout = self.layout()?;
        if !layout.zero_based {
            table.columns.iter_mut().for_each(|column| *column -= 1);
        }
        Ok(Batch {
            table,
            n_features: layout.n_features,
            n_labels: 0,
            multilabel: layout.multilabel,
        })
    }
}

impl Svmlight {
    /// Reads a line, which may be empty or a comment.
    fn row(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<f64>,
        line: u64,
    ) -> Result<(), String> {
        cursor.skip_blanks();
        if matches!(cursor.peek(), b'\n' | b'#') {
            cursor.skip_line();
            return Ok(());
        }
        let from = table.labels.len();
        read_labels(cursor, table)?;
        self.has_sets |= table.check_labels(self.options.multilabel)?;
        let mut labels = table.labels[from..].iter();
        if self.fraction.is_none() && !labels.all(|&label| is_whole(label)) {
            self.fraction = Some(line);
            if self.options.multilabel == Some(true) {
                return Err(NOT_WHOLE.into());
            }
        }
        cursor.skip_blanks();
        if cursor.sees(b"qid:") {
            cursor.skip_token();
        }
        let from = table.columns.len();
        read_features(cursor, self.columns, table)?;
        // `read_features` has sorted the row.
        if let [first, .., last] | [first @ last] = table.columns[from..] {
            self.lowest = Some(self.lowest.map_or(first, |low| low.min(first)));
            if self.highest.is_none_or(|(high, _)| high < last) {
                self.highest = Some((last, line));
            }
        }
        table.end_row();
        self.has_rows = true;
        Ok(())
    }
}

const NOT_WHOLE: &str = "a label of a multilabel file must be a whole number";

/// 2^53: an f64 holds every integer up to this one exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// True if a label can be converted to an i64 without loss.
fn is_whole(label: f64) -> bool {
    label.fract() == 0.0 && label.abs() <= MAX_EXACT_INTEGER
}

fn read_labels(cursor: &mut Cursor<'_>, table: &mut Table<f64>) -> Result<(), String> {
    let from = cursor.at;
    loop {
        let at = cursor.at;
        let label = cursor.double()?;
        if label.abs() >= MAX_EXACT_INTEGER && cursor.has_rounded(at, label) {
            return Err(rounded(cursor, at, label));
        }
        table.labels.push(label);
        match cursor.peek() {
            b',' => cursor.bump(),
            // The line has no label and begins with its first feature.
            b':' if at == from => {
                table.labels.pop();
                cursor.at = from;
                return Ok(());
            }
            b'#' => return Ok(()),
            _ if cursor.at_blank() => return Ok(()),
            _ => return Err(format!("{} is not a label", cursor.quote(at))),
        }
    }
}

/// Returns the error of a label that would be rounded: two labels of different digits must not
/// become one.
#[cold]
fn rounded(cursor: &Cursor<'_>, at: usize, label: f64) -> String {
    format!(
        "label {} would be rounded to {label}; integers up to 2^53 can be labels",
        cursor.quote(at)
    )
}

/// Reads the `index:value` pairs up to the end of the line. Indices are stored as they are in the
/// text. Unsorted pairs, which files of the repository have, are sorted; a repeated index is an
/// error.
pub(super) fn read_features<L>(
    cursor: &mut Cursor<'_>,
    columns: Columns,
    table: &mut Table<L>,
) -> Result<(), String> {
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
        let at = cursor.at;
        let (index, length) = cursor.digits();
        if length == 0 || cursor.peek() != b':' {
            return Err(not_a_pair(cursor, at));
        }
        if index < columns.first || index >= columns.end {
            return Err(out_of_range(index, columns));
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
fn out_of_range(index: u64, columns: Columns) -> String {
    let Columns { first, end, .. } = columns;
    let is_shifted = index < first || (first == 0 && index == end);
    let advice = if is_shifted { columns.advice } else { "" };
    format!("feature index {}{advice}", outside(index, first, end))
}

/// Says that `index` is not between `first` and `end`, for a message.
pub(super) fn outside(index: u64, first: u64, end: u64) -> String {
    if first < end {
        format!("{index} is outside {first} to {}", end - 1)
    } else {
        format!("{index} is not allowed: there are none")
    }
}

#[cold]
fn sort_row(columns: &mut [i32], values: &mut [f32]) -> Result<(), String> {
    let unsorted = columns.iter().copied().zip(values.iter().copied());
    let mut pairs: Vec<(i32, f32)> = unsorted.collect();
    pairs.sort_unstable_by_key(|&(column, _)| column);
    if let Some(twice) = pairs.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("feature index {} occurs twice", twice[0].0));
    }
    for (pair, (column, value)) in pairs.into_iter().zip(columns.iter_mut().zip(values)) {
        (*column, *value) = pair;
    }
    Ok(())
}
