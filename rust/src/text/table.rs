//! Parsed examples, in the arrays of a CSR matrix, and what a format of text must offer to be read.

use std::cmp::Ordering;
use std::fmt::Display;

use super::cursor::Cursor;
use crate::error::Error;

/// Rows of features and labels, both in CSR form. `L` is the label's type:
/// f64 in svmlight files, where a target may be any number, i32 in XMC files,
/// where it is the number of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<L> {
    /// Where each row's features begin, and the end of the last row.
    pub starts: Vec<i64>,
    /// Column of each value, strictly increasing within a row.
    pub columns: Vec<i32>,
    /// The values, all finite.
    pub values: Vec<f32>,
    /// Where each row's labels begin, and the end of the last row.
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

    /// Bytes of what is held.
    pub(super) fn size(&self) -> usize {
        self.n_rows() * Self::ROW_BYTES
            + self.columns.len() * (size_of::<i32>() + size_of::<f32>())
            + self.labels.len() * size_of::<L>()
    }

    /// Drops all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.starts.truncate(1);
        self.columns.clear();
        self.values.clear();
        self.label_starts.truncate(1);
        self.labels.clear();
    }

    /// Closes the row to which features and labels have been pushed.
    pub(super) fn end_row(&mut self) {
        self.starts.push(self.columns.len() as i64);
        self.label_starts.push(self.labels.len() as i64);
    }

    /// Sorts the labels pushed to the row that is not closed yet and checks them; with
    /// `multilabel` false there must be exactly one. Whether there is another number of them.
    pub(super) fn check_labels(
        &mut self,
        multilabel: Option<bool>,
        order: fn(&L, &L) -> Ordering,
    ) -> Result<bool, String>
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
            labels.sort_unstable_by(order);
            // Sorted, so "not below the next" is "equal", of the two zeros of floats too.
            if let Some(at) = (1..n).find(|&at| labels[at - 1] >= labels[at]) {
                return Err(format!("label {} stands twice", labels[at]));
            }
        }
        Ok(n != 1)
    }

    /// Reserves memory for the rows of `text`; an error where there is none. What a cut row needs
    /// beyond that grows by itself.
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
    /// The rows.
    pub table: Table<L>,
    /// Number of columns of X.
    pub n_features: usize,
    /// Number of labels there are; 0 in svmlight files, where labels are
    /// numbers and not columns.
    pub n_labels: usize,
    /// Whether y is to be taken as label sets.
    pub multilabel: bool,
}

/// A line and what is wrong with it.
pub(super) type Fault = (u64, String);

/// One of the two formats: reads a line, and says at the end whether that was all.
pub(super) trait Format: Send + 'static {
    type Label: Copy + Send + 'static;

    /// Reads the line at `cursor`, which then stands behind it. If it failed,
    /// what is wrong with the line.
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<Self::Label>,
        line: u64,
    ) -> std::result::Result<(), String>;

    /// Rows that the file says it has.
    fn announced_rows(&self) -> Option<u64> {
        None
    }

    /// Whether a file may end here; if not, why.
    fn end(&self) -> std::result::Result<(), String>;

    /// The rows that were read, by what is known of the file now.
    fn batch(&self, table: Table<Self::Label>) -> std::result::Result<Batch<Self::Label>, Fault>;
}

/// What is wrong with the first line that should hold data, and which other format it seems to be.
#[cold]
pub(super) fn wrong_first_line(what: String, line: &[u8]) -> String {
    match foreign_format(line) {
        Some(name) => looks_like(&what, name),
        None => what,
    }
}

/// The error `what` of a file that seems to be of the format `name`.
pub(super) fn looks_like(what: &str, name: &str) -> String {
    format!(
        "{what}; this looks like {name}, but only svmlight (\"label index:value ...\") and XMC text \
         (the same below a header \"N D K\") are read"
    )
}

/// The format that a line seems to be of, if it is a common one that is not read here.
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
