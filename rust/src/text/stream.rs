//! Batches of a file, read ahead in the background in constant memory.

use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::reader::{Format, Reader};
use super::svmlight::{Layout, Svmlight, SvmlightOptions};
use super::table::{Batch, Table};
use super::xmc::Xmc;
use crate::control::Control;
use crate::error::{Error, Result};

/// Batches that may wait to be taken.
const WAITING: usize = 2;
/// How often a waiting taker looks at its stop flag.
const BEAT: Duration = Duration::from_millis(50);

/// The batches of a file in order. A thread parses ahead of whoever takes
/// them, another decompresses ahead of it. Dropping the stream ends both.
#[derive(Debug)]
pub struct Stream<L> {
    /// `None` once the last batch, or an error, was handed out.
    batches: Mutex<Option<Receiver<Message<L>>>>,
    parser: Arc<Control>,
}

/// A batch, the end (`None`), or the error that ended it.
type Message<L> = Result<Option<Batch<L>>>;

impl Stream<f64> {
    /// Streams an svmlight file in batches of `size` rows. A stream cannot
    /// find out what only a file's end tells, so everything is given.
    pub fn svmlight(path: &Path, size: usize, layout: Layout) -> Result<Self> {
        let format = Svmlight::new(SvmlightOptions {
            zero_based: Some(layout.zero_based),
            n_features: Some(layout.n_features),
            multilabel: Some(layout.multilabel),
        })?;
        let reader = Reader::open(path, format)?;
        Self::start(reader, size, move |_, table| Svmlight::batch(table, layout))
    }
}

impl Stream<i32> {
    /// Streams an XMC file in batches of `size` rows.
    pub fn xmc(path: &Path, size: usize, multilabel: bool) -> Result<Self> {
        let reader = Reader::open(path, Xmc::new(Some(multilabel)))?;
        Self::start(reader, size, move |format, table| Batch {
            table,
            n_features: format.n_features(),
            n_labels: format.n_labels(),
            multilabel,
        })
    }
}

impl<L: Copy + Send + 'static> Stream<L> {
    fn start<F: Format<Label = L>>(
        reader: Reader<F>,
        size: usize,
        finish: impl Fn(&F, Table<L>) -> Batch<L> + Send + 'static,
    ) -> Result<Self> {
        if size == 0 {
            return Err(Error::parameter("batch_size", size, "at least 1"));
        }
        let (sender, receiver) = sync_channel(WAITING);
        let parser = Arc::new(Control::new(0));
        let control = Arc::clone(&parser);
        std::thread::spawn(move || {
            let last = parse(reader, size, finish, &control, &sender);
            // Nobody listening any more is the ordinary way to be told to stop.
            let _ = sender.send(last.map(|()| None));
        });
        Ok(Self {
            batches: Mutex::new(Some(receiver)),
            parser,
        })
    }

    /// The next batch, `None` after the last; gives up waiting when `control`
    /// says so, and can then be asked again. After an error there is no more.
    pub fn next(&self, control: &Control) -> Result<Option<Batch<L>>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = batches.as_ref() else {
            return Ok(None);
        };
        let message = loop {
            control.check()?;
            match receiver.recv_timeout(BEAT) {
                Ok(message) => break message,
                Err(RecvTimeoutError::Timeout) => {}
                // Only a panic closes the channel without a last word.
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Error::data("the thread that parses the file has died"))
                }
            }
        };
        if !matches!(message, Ok(Some(_))) {
            *batches = None;
        }
        message
    }
}

impl<L> Drop for Stream<L> {
    fn drop(&mut self) {
        // The parser may be waiting for a pipe, where it hears of nothing else.
        self.parser.stop();
    }
}

fn parse<F: Format>(
    mut reader: Reader<F>,
    size: usize,
    finish: impl Fn(&F, Table<F::Label>) -> Batch<F::Label>,
    control: &Control,
    to: &SyncSender<Message<F::Label>>,
) -> Result<()> {
    let mut table = Table::default();
    loop {
        let more = reader.advance(&mut table, size, control)?;
        if table.len() == size || (!more && !table.is_empty()) {
            let batch = finish(&reader.format, std::mem::take(&mut table));
            if to.send(Ok(Some(batch))).is_err() {
                return Ok(());
            }
        }
        if !more {
            return Ok(());
        }
    }
}
