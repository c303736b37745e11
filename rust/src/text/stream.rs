//! Batches of a file, read ahead in the background in constant memory.

use std::sync::{Arc, Mutex, PoisonError};

use super::reader::Reader;
use super::source::{ReadAhead, Source};
use super::svmlight::{Layout, Svmlight, SvmlightOptions};
use super::table::{Batch, Format, Table};
use super::xmc::Xmc;
use crate::control::Control;
use crate::error::{Error, Result};

/// Batches that may wait to be taken.
const MAX_WAITING_BATCHES: usize = 2;

/// The batches of a file in order. A thread parses ahead of whoever takes
/// them, another decompresses ahead of it. Dropping the stream ends both.
#[derive(Debug)]
pub struct Stream<L> {
    batches: Mutex<ReadAhead<Batch<L>, Error>>,
    parser: Arc<Control>,
}

impl Stream<f64> {
    /// Streams an svmlight file in batches of `size` rows. A stream cannot
    /// find out what depends on a file's end, so every option is given.
    pub fn svmlight(source: Source, size: usize, layout: Layout) -> Result<Self> {
        let format = Svmlight::new(SvmlightOptions {
            zero_based: Some(layout.zero_based),
            n_features: Some(layout.n_features),
            multilabel: Some(layout.multilabel),
        })?;
        Self::start(Reader::start(source, format)?, size)
    }
}

impl Stream<i32> {
    /// Streams an XMC file in batches of `size` rows.
    pub fn xmc(source: Source, size: usize, multilabel: bool) -> Result<Self> {
        Self::start(Reader::start(source, Xmc::new(Some(multilabel)))?, size)
    }
}

impl<L: Copy + Send + 'static> Stream<L> {
    fn start<F: Format<Label = L>>(mut reader: Reader<F>, size: usize) -> Result<Self> {
        if size == 0 {
            return Err(Error::parameter("batch_size", size, "at least 1"));
        }
        let parser = Arc::new(Control::new(0));
        let control = Arc::clone(&parser);
        let batches = ReadAhead::start(MAX_WAITING_BATCHES, move |to| {
            let mut table = Table::default();
            let mut more = true;
            while more {
                more = reader.advance(&mut table, size, &control)?;
                if table.n_rows() == size || (!more && table.n_rows() > 0) {
                    let batch = reader.batch(std::mem::take(&mut table))?;
                    if to.send(Ok(Some(batch))).is_err() {
                        break;
                    }
                }
            }
            Ok(())
        })?;
        Ok(Self {
            batches: Mutex::new(batches),
            parser,
        })
    }

    /// The next batch, `None` after the last; gives up waiting when `control`
    /// says so, and can then be asked again. After an error there is no more.
    pub fn next(&self, control: &Control) -> Result<Option<Batch<L>>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.next(control)?
    }
}

impl<L> Drop for Stream<L> {
    fn drop(&mut self) {
        // The parser may be waiting for a pipe, where it hears of nothing else.
        self.parser.stop();
    }
}
