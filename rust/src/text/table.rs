//! Parsed examples, in the arrays of a CSR matrix, and the trait of the formats.

use std::cmp::Ordering;
use std::fmt::Display;

use super::cursor::Cursor;
use crate::error::Error;

/// Rows of features and labels, both in CSR form. Labels have the type `L`: f64 in svmlight files,
/// where a target may be any number, i32 in XMC files, where it is the number of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<L> {
    /// Start of the features of each row, and the end of the last row.
    pub starts: Vec<i64>,
    /// Column of each value, strictly increasing within a row.
    pub columns: Vec<i32>,
    /// The values, all finite.
    pub values: Vec<f32>,
    /// Start of the labels of each row, and the end of the last row.
    pub label_starts: Vec<i64>,
    /// The labels, strictly increasing within a row.
    pub labels: Vec<L>,
}

impl<L> Default for Table<L> {
    fn default() -> Self {
        Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            label_starts: vec![0],
            labels: Vec::new(),
        }
    }
}

impl<L> Table<L> {
    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of a row without features and labels.
    pub(super) const ROW_BYTES: usize = 2 * size_of::<i64>();

    /// Returns the bytes of all rows.
    pub(super) fn n_bytes(&self) -> usize {
        size_of_val(&*self.starts)
            + size_of_val(&*self.columns)
            + size_of_val(&*self.values)
            + size_of_val(&*self.label_starts)
            + size_of_val(&*self.labels)
    }

    /// Ends the row to which features and labels have been pushed.
    pub(super) fn end_row(&mut self) {
        self.starts.push(self.columns.len() as i64);
        self.label_starts.push(self.labels.len() as i64);
    }

    /// Sorts and checks the labels of the row that has not ended yet. If `multilabel` is false
    /// there must be exactly one. Returns true if their number is not one.
    pub(super) fn check_labels(&mut self, multilabel: Option<bool>) -> Result<bool, String>
    where
        L: PartialOrd + Display,
    {
        let from = self.label_starts[self.label_starts.len() - 1] as usize;
        let labels = &mut self.labels[from..];
        let n = labels.len();
        if multilabel == Some(false) && n != 1 {
            let n = if n == 0 {
                "no label".into()
            } else {
                format!("{n} labels")
            };
            return Err(format!("{n}, but multilabel=False asks for exactly one"));
        }
        if !labels.is_sorted_by(|a, b| a < b) {
            labels.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            // Sorted labels that do not increase are equal; so are the two zeros of floats.
            if let Some(at) = (1..n).find(|&at| labels[at - 1] >= labels[at]) {
                return Err(format!("label {} occurs twice", labels[at]));
            }
        }
        Ok(n != 1)
    }

    /// Reserves memory for the rows of `text`, or returns an error if there is not enough. A row
    /// that continues beyond `text` grows the arrays as usual.
    pub(super) fn reserve_for(&mut self, text: &[u8]) -> crate::Result<()> {
        let count = |wanted| text.iter().map(|&byte| usize::from(byte == wanted)).sum();
        let (n_rows, n_features): (usize, usize) = (count(b'\n'), count(b':'));
        let n_labels = n_rows + count(b',');
        let reserved = (self.columns.try_reserve(n_features))
            .and_then(|()| self.values.try_reserve(n_features))
            .and_then(|()| self.labels.try_reserve(n_labels))
            .and_then(|()| self.starts.try_reserve(n_rows))
            .and_then(|()| self.label_starts.try_reserve(n_rows));
        reserved.map_err(|_| {
            let n_held = self.n_rows();
            Error::Memory(format!("no memory for more than {n_held} rows of text"))
        })
    }
}

/// A table with its widths.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<L> {
    /// Features and labels of the rows.
    pub table: Table<L>,
    /// Number of columns of X.
    pub n_features: usize,
    /// Number of columns of y; 0 in svmlight files, where labels are numbers and not columns.
    pub n_labels: usize,
    /// True if y is label sets.
    pub multilabel: bool,
}

/// The number of a line and what is wrong with it.
pub type Fault = (u64, String);

/// One of the two formats. It parses one line after the other.
pub trait Format: Send + 'static {
    /// Type of a label.
    type Label: Copy + Send + 'static;

    /// Reads the line at `cursor` and moves it to the next line. An error says what is wrong with
    /// the line.
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<Self::Label>,
        line: u64,
    ) -> Result<(), String>;

    /// Returns the number of rows that the file claims to have; 0 if it does not say.
    fn announced_rows(&self) -> u64 {
        0
    }

    /// Returns an error if the file must not end here.
    fn end(&self) -> Result<(), String>;

    /// Returns the rows of `table` as a batch. Options that were not given follow from the lines
    /// read so far.
    fn batch(&self, table: Table<Self::Label>) -> Result<Batch<Self::Label>, Fault>;
}

/// Adds to the error `what` of the first data line the other format that the file seems to have.
#[cold]
pub(super) fn wrong_first_line(what: String, line: &[u8]) -> String {
    match foreign_format(line) {
        Some(name) => looks_like(&what, name),
        None => what,
    }
}

/// Adds to the error `what` that the file seems to have the format `name`.
pub(super) fn looks_like(what: &str, name: &str) -> String {
    format!(
        "{what}; this looks like {name}, but only svmlight (\"label index:value ...\") and XMC text \
         (the same below a header \"N D K\") are read"
    )
}

/// Returns the format that a line seems to have, if it is a common one that is not read here.
fn foreign_format(line: &[u8]) -> Option<&'static str> {
    let has = |text: &[u8]| line.windows(text.len()).any(|part| part == text);
    let starts_with_digit = line.first().is_some_and(u8::is_ascii_digit);
    if line.starts_with(b"{") || line.starts_with(b"[") {
        Some("JSON")
    } else if has(b"__label__") {
        Some("fastText's format")
    } else if has(b"|") {
        Some("Vowpal Wabbit's format")
    } else if (has(b",") || has(b"\t")) && !(starts_with_digit && has(b":")) {
        Some("CSV")
    } else {
        None
    }
}
