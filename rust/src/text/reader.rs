//! Driving a format over the blocks of a file, and whole files in one piece.

use std::path::Path;

use super::blocks::{Blocks, Failure, Step};
use super::cursor::Cursor;
use super::source::Source;
use super::svmlight::{Layout, Svmlight, SvmlightOptions};
use super::table::{Batch, Table};
use super::xmc::Xmc;
use crate::control::Control;
use crate::error::{Error, Result};

/// One of the two formats: reads a line, and says at the end whether that was all.
pub(super) trait Format: Send + 'static {
    /// What a label is.
    type Label: Copy + Send + 'static;

    /// Reads the line at `cursor`, which then stands behind it. Whether that
    /// made a row; if it failed, what is wrong with the line.
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<Self::Label>,
        line: u64,
    ) -> std::result::Result<bool, String>;

    /// Whether a file may end after `rows` rows; if not, why.
    fn end(&self, rows: u64) -> std::result::Result<(), String>;

    /// Number of columns as far as it is known.
    fn n_features(&self) -> usize;

    /// Number of labels as far as it is known.
    fn n_labels(&self) -> usize;
}

/// The file's name, to which a line number makes an error.
#[derive(Debug, Clone)]
pub(super) struct Place(String);

impl Place {
    pub fn fault(&self, line: u64, what: impl Into<String>) -> Error {
        Error::Line {
            file: self.0.clone(),
            line,
            what: what.into(),
        }
    }
}

/// A file on its way through a format.
pub(super) struct Reader<F> {
    pub format: F,
    pub place: Place,
    blocks: Blocks,
    block: Vec<u8>,
    at: usize,
    /// Lines read so far, comments and header included.
    lines: u64,
    rows: u64,
}

impl<F: Format> Reader<F> {
    /// Opens `path` (`-` is stdin) and starts reading it in the background.
    pub fn open(path: &Path, format: F) -> Result<Self> {
        Ok(Self::start(Source::open(path)?, format))
    }

    pub(super) fn start(source: Source, format: F) -> Self {
        Self {
            format,
            place: Place(source.name().into()),
            blocks: Blocks::start(source),
            block: Vec::new(),
            at: 0,
            lines: 0,
            rows: 0,
        }
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
            match self.blocks.next(control)? {
                Step::Block(block) => self.block = block,
                Step::End => {
                    return match self.format.end(self.rows) {
                        Ok(()) => Ok(false),
                        Err(what) => Err(self.place.fault(self.lines.max(1), what)),
                    }
                }
                Step::Failed(Failure::System(source)) => {
                    return Err(Error::io(&self.place.0, source))
                }
                Step::Failed(Failure::Content(what)) => {
                    return Err(self.place.fault(self.lines + 1, what))
                }
            }
            self.at = 0;
            skip_byte_order_mark(self.lines, &self.block, &mut self.at);
        }
        table.reserve_for((self.block.len() - self.at).min(limit.saturating_mul(64)));
        let mut cursor = Cursor::new(&self.block, self.at);
        while !cursor.is_done() && table.len() < limit {
            self.lines += 1;
            match self.format.line(&mut cursor, table, self.lines) {
                Ok(made_row) => self.rows += u64::from(made_row),
                Err(what) => return Err(self.place.fault(self.lines, what)),
            }
        }
        self.at = cursor.at();
        Ok(true)
    }

    fn whole(&mut self, control: &Control) -> Result<Table<F::Label>> {
        let mut table = Table::default();
        while self.advance(&mut table, usize::MAX, control)? {}
        Ok(table)
    }

    /// Reads on without keeping anything, `step` rows at a time, until `seen`
    /// has seen enough.
    fn scan(&mut self, control: &Control, step: usize, seen: impl Fn(&F) -> bool) -> Result<()> {
        let mut table = Table::default();
        while !seen(&self.format) && self.advance(&mut table, step, control)? {
            table.clear();
        }
        Ok(())
    }
}

/// Some editors begin a file with U+FEFF.
fn skip_byte_order_mark(lines: u64, block: &[u8], at: &mut usize) {
    if lines == 0 && block.starts_with(b"\xef\xbb\xbf") {
        *at = 3;
    }
}

/// Reads a whole svmlight file (`-`: stdin).
pub fn load_svmlight(
    path: &Path,
    options: SvmlightOptions,
    control: &Control,
) -> Result<Batch<f64>> {
    svmlight_from(Reader::open(path, Svmlight::new(options)?)?, control)
}

fn svmlight_from(mut reader: Reader<Svmlight>, control: &Control) -> Result<Batch<f64>> {
    let table = reader.whole(control)?;
    let layout = reader.format.layout(&reader.place)?;
    Ok(Svmlight::batch(table, layout))
}

/// Reads a whole svmlight file only to find out what its options are.
pub fn scan_svmlight(path: &Path, options: SvmlightOptions, control: &Control) -> Result<Layout> {
    let mut reader = Reader::open(path, Svmlight::new(options)?)?;
    reader.scan(control, usize::MAX, |_| false)?;
    reader.format.layout(&reader.place)
}

/// Reads a whole XMC file (`-`: stdin). `multilabel` is what was asked for;
/// `None`: unless every row has exactly one label.
pub fn load_xmc(path: &Path, multilabel: Option<bool>, control: &Control) -> Result<Batch<i32>> {
    xmc_from(Reader::open(path, Xmc::new(multilabel))?, control)
}

fn xmc_from(mut reader: Reader<Xmc>, control: &Control) -> Result<Batch<i32>> {
    let table = reader.whole(control)?;
    Ok(Batch {
        table,
        n_features: reader.format.n_features(),
        n_labels: reader.format.n_labels(),
        multilabel: reader.format.multilabel(),
    })
}

/// Reads an XMC file up to the first row with other than one label. Whether
/// there is one.
pub fn xmc_is_multilabel(path: &Path, control: &Control) -> Result<bool> {
    let mut reader = Reader::open(path, Xmc::new(None))?;
    // Row by row: a bad line behind the one that settles it is not our business.
    reader.scan(control, 1, Xmc::has_sets)?;
    Ok(reader.format.has_sets())
}

#[cfg(test)]
mod tests;
