//! Parsed examples, in the arrays of a CSR matrix.

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
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// The labels pushed to the row that is not closed yet.
    pub(super) fn open_labels(&mut self) -> &mut [L] {
        let from = self.label_starts[self.label_starts.len() - 1] as usize;
        &mut self.labels[from..]
    }

    /// Room for `bytes` of text, so that rows are pushed without growing.
    pub(super) fn reserve_for(&mut self, bytes: usize) {
        // A feature takes four bytes at least (" 1:1"), about ten as a rule.
        let features = bytes / 8;
        if self.columns.capacity() - self.columns.len() < features {
            self.columns.reserve(features);
            self.values.reserve(features);
        }
    }
}

/// How many labels a row may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one; anything else is an error that names the line.
    Single,
    /// Any number, none included.
    Multi,
    /// Any number; the whole file is single-label if every row has exactly one.
    Auto,
}

impl Arity {
    /// From Python's `multilabel=True | False | "auto"`.
    pub fn from_option(multilabel: Option<bool>) -> Self {
        match multilabel {
            Some(true) => Self::Multi,
            Some(false) => Self::Single,
            None => Self::Auto,
        }
    }

    /// Checks one row, whose labels number `n`.
    pub(super) fn check(self, n: usize) -> Result<(), String> {
        match (self, n) {
            (Self::Single, 0) => Err("no label, but multilabel=False asks for exactly one".into()),
            (Self::Single, 2..) => Err(format!(
                "{n} labels, but multilabel=False asks for exactly one"
            )),
            _ => Ok(()),
        }
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
