//! What a format of text must offer to be read.

use super::cursor::Cursor;
use super::table::{Batch, Table};

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
