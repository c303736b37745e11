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

    /// Whether a file may end here; if not, why.
    fn end(&self) -> std::result::Result<(), String>;

    /// The rows that were read, by what is known of the file now.
    fn batch(&self, table: Table<Self::Label>) -> std::result::Result<Batch<Self::Label>, Fault>;
}
