//! Driving a format over the blocks of a file: whole files in one piece, or batches that are read
//! ahead in the background in constant memory.

use super::cursor::Cursor;
use super::source::{LineBlocks, ReadAhead, Source};
use super::svmlight::{Layout, Svmlight, SvmlightOptions};
use super::table::{Batch, Fault, Format, Table};
use super::xmc::Xmc;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::memory;

/// A file on its way through a format.
pub(super) struct Reader<F> {
    format: F,
    name: String,
    blocks: LineBlocks,
    block: Vec<u8>,
    at: usize,
    /// Lines read so far, comments and header included.
    lines: u64,
}

impl<F: Format> Reader<F> {
    /// Starts reading `source` in the background.
    pub fn start(source: Source, format: F) -> Result<Self> {
        Ok(Self {
            format,
            name: source.name.clone(),
            blocks: LineBlocks::read(source)?,
            block: Vec::new(),
            at: 0,
            lines: 0,
        })
    }

    /// Adds rows to `table` until it has `limit` or the block at hand is
    /// used up, fetching a block if there is none at hand. False at the end
    /// of the file, which is then known to be complete.
    pub fn advance(
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
        // Of few rows not the whole block, which would be counted again for each of them.
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

    pub fn batch(&self, table: Table<F::Label>) -> Result<Batch<F::Label>> {
        self.format.batch(table).map_err(|fault| self.fault(fault))
    }

    fn fault(&self, (line, what): Fault) -> Error {
        Error::Line {
            file: self.name.clone(),
            line,
            what,
        }
    }

    fn whole(mut self, control: &Control) -> Result<Batch<F::Label>> {
        /// Bytes that need no asking.
        const UNCHECKED_BYTES: usize = 1 << 28;
        let mut table = Table::default();
        let mut asked = UNCHECKED_BYTES;
        while self.advance(&mut table, usize::MAX, control)? {
            let announced = self.format.announced_rows().unwrap_or(0);
            let announced = usize::try_from(announced).unwrap_or(usize::MAX);
            let needed = table
                .size()
                .max(announced.saturating_mul(Table::<F::Label>::ROW_BYTES));
            if needed > asked {
                // As much again, before it is asked once more.
                asked = needed.saturating_mul(2);
                let what = format!("{}: its rows, loaded at once,", self.name);
                memory::check(
                    needed,
                    &what,
                    "read it in batches, with iter_xmc or iter_svmlight",
                )?;
            }
        }
        self.batch(table)
    }
}

/// Reads a whole svmlight file.
pub fn load_svmlight(
    source: Source,
    options: SvmlightOptions,
    control: &Control,
) -> Result<Batch<f64>> {
    Reader::start(source, Svmlight::new(options)?)?.whole(control)
}

/// Reads a whole svmlight file only to find out what its options are.
pub fn scan_svmlight(
    source: Source,
    options: SvmlightOptions,
    control: &Control,
) -> Result<Layout> {
    let mut reader = Reader::start(source, Svmlight::new(options)?)?;
    let mut table = Table::default();
    while reader.advance(&mut table, usize::MAX, control)? {
        table.clear();
    }
    reader.format.layout().map_err(|fault| reader.fault(fault))
}

/// Reads a whole XMC file. `multilabel` is what was asked for;
/// `None`: unless every row has exactly one label.
pub fn load_xmc(source: Source, multilabel: Option<bool>, control: &Control) -> Result<Batch<i32>> {
    Reader::start(source, Xmc::new(multilabel))?.whole(control)
}

/// Batches that may wait to be taken.
const MAX_WAITING_BATCHES: usize = 2;

/// The batches of a file in order. Their thread parses ahead of whoever takes them, another
/// decompresses ahead of it.
pub type Stream<L> = ReadAhead<Batch<L>>;

impl Stream<f64> {
    /// Streams an svmlight file in batches of `size` rows. A stream cannot
    /// find out what depends on a file's end, so every option is given.
    pub fn svmlight(source: Source, size: usize, layout: Layout) -> Result<Self> {
        let format = Svmlight::new(SvmlightOptions {
            zero_based: Some(layout.zero_based),
            n_features: Some(layout.n_features),
            multilabel: Some(layout.multilabel),
        })?;
        Reader::start(source, format)?.stream(size)
    }
}

impl Stream<i32> {
    /// Streams an XMC file in batches of `size` rows.
    pub fn xmc(source: Source, size: usize, multilabel: bool) -> Result<Self> {
        Reader::start(source, Xmc::new(Some(multilabel)))?.stream(size)
    }
}

impl<F: Format> Reader<F> {
    fn stream(mut self, size: usize) -> Result<Stream<F::Label>> {
        if size == 0 {
            return Err(Error::parameter("batch_size", size, "at least 1"));
        }
        Stream::start(MAX_WAITING_BATCHES, move |control, to| {
            let mut table = Table::default();
            let mut more = true;
            while more {
                more = self.advance(&mut table, size, control)?;
                if table.n_rows() == size || (!more && table.n_rows() > 0) {
                    let batch = self.batch(std::mem::take(&mut table))?;
                    if to.send(Ok(Some(batch))).is_err() {
                        break;
                    }
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
