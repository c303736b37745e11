//! Reads a file with the parser of its format: the whole file, or batches that a thread parses
//! before they are needed, in constant memory.

use super::cursor::Cursor;
use super::source::{LineBlocks, ReadAhead, Source};
use super::svmlight::{Layout, Svmlight};
use super::table::{Batch, Fault, Format, Table};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::memory;

/// Reads a whole file.
pub fn load<F: Format>(source: Source, format: F, control: &Control) -> Result<Batch<F::Label>> {
    /// Size of a table up to which the available memory is not checked.
    const UNCHECKED_BYTES: usize = 1 << 28;
    let mut reader = Reader::start(source, format)?;
    let mut table = Table::default();
    let mut checked = UNCHECKED_BYTES;
    while reader.advance(&mut table, usize::MAX, control)? {
        let announced = usize::try_from(reader.format.announced_rows()).unwrap_or(usize::MAX);
        let announced_bytes = announced.saturating_mul(Table::<F::Label>::ROW_BYTES);
        let needed = table.n_bytes().max(announced_bytes);
        if needed > checked {
            // The question is slow, so it is repeated only when the size has doubled.
            checked = needed.saturating_mul(2);
            let what = format!("{}: its rows, loaded at once,", reader.name);
            let instead = "read it in batches, with iter_xmc or iter_svmlight";
            memory::check(needed, &what, instead)?;
        }
    }
    reader.batch(table)
}

/// Reads a whole svmlight file only to find its layout.
pub fn scan_svmlight(source: Source, format: Svmlight, control: &Control) -> Result<Layout> {
    let mut reader = Reader::start(source, format)?;
    while reader.advance(&mut Table::default(), usize::MAX, control)? {}
    reader.format.layout().map_err(|fault| reader.fault(fault))
}

/// Batches that may wait to be received.
const MAX_WAITING_BATCHES: usize = 2;

/// The batches of a file in order. One thread parses them before they are needed, another
/// decompresses the text.
pub type Stream<L> = ReadAhead<Batch<L>>;

/// Streams a file in batches of `size` rows. All options of `format` must be known: a stream cannot
/// find out what depends on the end of the file.
pub fn stream<F: Format>(source: Source, format: F, size: usize) -> Result<Stream<F::Label>> {
    if size == 0 {
        return Err(Error::parameter("batch_size", size, "at least 1"));
    }
    let mut reader = Reader::start(source, format)?;
    Stream::start(MAX_WAITING_BATCHES, move |control, to| {
        let mut table = Table::default();
        let mut more = true;
        while more {
            more = reader.advance(&mut table, size, control)?;
            if table.n_rows() == size || (!more && table.n_rows() > 0) {
                let batch = reader.batch(std::mem::take(&mut table))?;
                if to.send(Ok(Some(batch))).is_err() {
                    break;
                }
            }
        }
        Ok(())
    })
}

/// A file that is being parsed.
struct Reader<F> {
    format: F,
    name: String,
    blocks: LineBlocks,
    block: Vec<u8>,
    /// Bytes of the block that have been parsed.
    at: usize,
    /// Lines read so far, comments and header included.
    lines: u64,
}

impl<F: Format> Reader<F> {
    /// Starts reading `source` in the background.
    fn start(source: Source, format: F) -> Result<Self> {
        Ok(Self {
            format,
            name: source.name.clone(),
            blocks: LineBlocks::read(source)?,
            block: Vec::new(),
            at: 0,
            lines: 0,
        })
    }

    /// Adds rows to `table` until it has `limit` rows or the block ends. Fetches the next block if
    /// the last one has ended. Returns false at the end of the file, after checking that the file
    /// is complete.
    fn advance(
        &mut self,
        table: &mut Table<F::Label>,
        limit: usize,
        control: &Control,
    ) -> Result<bool> {
        if self.at >= self.block.len() {
            let Some(block) = self.blocks.next(control)? else {
                let ended = self.format.end().map(|()| false);
                return ended.map_err(|what| self.fault((self.lines.max(1), what)));
            };
            self.block = block;
            // Some editors begin a file with U+FEFF.
            let has_mark = self.lines == 0 && self.block.starts_with(b"\xef\xbb\xbf");
            self.at = if has_mark { 3 } else { 0 };
        }
        // Counting the whole block again for each small batch would take longer than parsing.
        let text = &self.block[self.at..];
        table.reserve_for(&text[..text.len().min(limit.saturating_mul(64))])?;
        let mut cursor = Cursor::new(&self.block, self.at);
        while !cursor.is_done() && table.n_rows() < limit {
            self.lines += 1;
            if let Err(what) = self.format.line(&mut cursor, table, self.lines) {
                return Err(self.fault((self.lines, what)));
            }
        }
        self.at = cursor.at;
        Ok(true)
    }

    fn batch(&self, table: Table<F::Label>) -> Result<Batch<F::Label>> {
        self.format.batch(table).map_err(|fault| self.fault(fault))
    }

    fn fault(&self, (line, what): Fault) -> Error {
        Error::Line {
            file: self.name.clone(),
            line,
            what,
        }
    }
}

#[cfg(test)]
mod tests;
