//! Opens text, decompresses it and cuts it into blocks of whole lines, on a thread of its own.
//!
//! The first bytes of a file say how it is compressed. Channels are bounded, so reading ahead takes
//! constant memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::mem;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::control::Control;
use crate::error::{Error, Result};

/// Bytes that are read from the file, or decompressed, at once.
const READ_BYTES: usize = 1 << 18;

/// Length of the longest magic number.
const MAGIC_BYTES: usize = 6;

/// A place that text is read from. A file is open, so a missing one is reported at once, but
/// nothing has been read, so a slow pipe does not block the caller.
pub struct Source {
    bytes: Box<dyn Read + Send>,
    /// Name of the file as it was given, `<stdin>` for stdin.
    pub(super) name: String,
    /// True if text must be passed on as it arrives.
    is_stdin: bool,
}

/// Decompressed bytes and the name of the compression, for messages; `None` for plain text.
type Text = (Box<dyn Read>, Option<&'static str>);

impl Source {
    /// Opens `path`; `-` is stdin.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                bytes: Box::new(io::stdin()),
                name: "<stdin>".into(),
                is_stdin: true,
            });
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::io(&name, e))?;
        Ok(Self::reader(&name, file))
    }

    /// A source of the bytes of `reader`, compressed or not. Messages call it `name`.
    pub fn reader(name: &str, reader: impl Read + Send + 'static) -> Self {
        Self {
            bytes: Box::new(reader),
            name: name.into(),
            is_stdin: false,
        }
    }
}

/// Returns the text of `raw`, decompressed as its first bytes say. The suffix of the file does not
/// count: downloads are renamed, and stdin has none.
fn decompressed(mut raw: Box<dyn Read + Send>) -> io::Result<Text> {
    let mut magic = Vec::with_capacity(MAGIC_BYTES);
    raw.by_ref()
        .take(MAGIC_BYTES as u64)
        .read_to_end(&mut magic)?;
    let start = magic.clone();
    let whole = BufReader::with_capacity(READ_BYTES, Cursor::new(magic).chain(raw));
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => {
            let text = flate2::bufread::MultiGzDecoder::new(whole);
            (Box::new(text), Some("gzip"))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let text = liblzma::bufread::XzDecoder::new_multi_decoder(whole);
            (Box::new(text), Some("xz"))
        }
        // 0x184d2a5? are skippable frames, which some programs write first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let mut text = zstd::stream::read::Decoder::with_buffer(whole)?;
            // Files compressed with --long need windows beyond the default of 128 MiB.
            let is_wide = cfg!(target_pointer_width = "64");
            text.window_log_max(if is_wide { 31 } else { 30 })?;
            (Box::new(text), Some("zstd"))
        }
        _ => (Box::new(whole.into_inner()), None),
    })
}

/// Time after which a waiting receiver looks at its stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An item, the end (`None`), or the error that ended the work.
type Message<T> = Result<Option<T>>;

/// The end of a channel into which the thread puts its items.
pub(super) type Sender<T> = SyncSender<Message<T>>;

/// The items of a file in order. A thread produces them before they are needed. Dropping this ends
/// the thread.
#[derive(Debug)]
pub struct ReadAhead<T> {
    /// `None` once the end, or an error, was returned.
    messages: Mutex<Option<Receiver<Message<T>>>>,
    /// The stop flag of the thread.
    worker: Arc<Control>,
}

impl<T: Send + 'static> ReadAhead<T> {
    /// Starts a thread that does `work`. Up to `waiting` items wait to be received.
    ///
    /// The thread ends with its work. After this is dropped, it ends when it next sends an item or
    /// checks its control. It is never joined, because it may be blocked by a pipe. An error means
    /// that the system cannot start a thread.
    pub(super) fn start(
        waiting: usize,
        work: impl FnOnce(&Control, &Sender<T>) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let worker = Arc::new(Control::new(0));
        let control = Arc::clone(&worker);
        let read = move || {
            let last = work(&control, &sender);
            // A closed channel is the ordinary signal to stop.
            let _ = sender.send(last.map(|()| None));
        };
        thread::Builder::new()
            .spawn(read)
            .map_err(|error| Error::Threads(format!("no thread to read the file: {error}")))?;
        Ok(Self {
            messages: Mutex::new(Some(receiver)),
            worker,
        })
    }

    /// Returns the next item, `None` after the last one or after an error. Stops waiting when
    /// `control` says so; the next call then continues.
    pub fn next(&self, control: &Control) -> Result<Option<T>> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = &*messages else {
            return Ok(None);
        };
        let message = loop {
            control.check()?;
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok(message) => break message,
                Err(RecvTimeoutError::Timeout) => {}
                // Only a panic closes the channel without a last message. It must not look like
                // the end of the file.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::data("the thread that reads the file has died"))
                }
            }
        };
        if !matches!(message, Ok(Some(_))) {
            *messages = None;
        }
        message
    }
}

impl<T> Drop for ReadAhead<T> {
    fn drop(&mut self) {
        // The thread may be waiting for another thread, where a closed channel does not stop it.
        self.worker.stop();
    }
}

/// Least size of a block. Sending a block of this size costs almost nothing, and it stays in the
/// second-level cache.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that may wait to be parsed.
const MAX_WAITING_BLOCKS: usize = 3;
/// Longest line. No data set has lines this long, but a file without line ends does, and it must
/// not fill the memory before it is refused.
const MAX_LINE_BYTES: usize = 1 << 28;

/// The text of a file, decompressed, in blocks of whole lines. Each line ends in `\n`.
pub type LineBlocks = ReadAhead<Vec<u8>>;

impl LineBlocks {
    /// Starts reading `source` in the background.
    pub fn read(source: Source) -> Result<Self> {
        Self::start(MAX_WAITING_BLOCKS, move |_, to| send_blocks(source, to))
    }
}

/// Sends the text of `source` in blocks of whole lines.
fn send_blocks(source: Source, to: &Sender<Vec<u8>>) -> Result<()> {
    let Source {
        bytes,
        name,
        is_stdin,
    } = source;
    let (text, compression) = decompressed(bytes).map_err(|error| Error::io(&name, error))?;
    let unsound = |n_lines: u64, what: String| Error::Line {
        file: name.clone(),
        line: n_lines + 1,
        what,
    };
    let mut n_lines = 0;
    // The lines of a slow writer are not held back until they fill a block.
    let at_once = is_stdin && compression.is_none();
    let min_bytes = if at_once { 1 } else { BLOCK_BYTES };
    let mut text = BufReader::with_capacity(READ_BYTES, text);
    let mut block = Vec::new();
    // Length of the whole lines in the block.
    let mut end = 0;
    loop {
        let read = match text.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                // The lines before the failure are still parsed, and their own errors come first.
                send_lines(&mut block, end, to, &mut n_lines);
                return Err(match compression {
                    // Errors of the system have a number, errors of the decoders do not.
                    Some(kind) if error.raw_os_error().is_none() => {
                        let what = if error.kind() == ErrorKind::UnexpectedEof {
                            format!("the {kind} data is truncated here")
                        } else {
                            format!("the {kind} data is damaged here ({error})")
                        };
                        unsound(n_lines, what)
                    }
                    _ => Error::io(&name, error),
                });
            }
            Ok([]) => {
                if end < block.len() {
                    block.push(b'\n');
                }
                end = block.len();
                send_lines(&mut block, end, to, &mut n_lines);
                return Ok(());
            }
            Ok(read) => read,
        };
        if let Some(at) = read.iter().rposition(|&byte| byte == b'\n') {
            end = block.len() + at + 1;
        }
        let n_read = read.len();
        let reserved = block.try_reserve(n_read);
        reserved.map_err(|error| Error::io(&name, error.into()))?;
        block.extend_from_slice(read);
        text.consume(n_read);
        if end == 0 && block.len() >= MAX_LINE_BYTES {
            let what = format!(
                "no line end within {MAX_LINE_BYTES} bytes; this is not a text of examples"
            );
            return Err(unsound(n_lines, what));
        }
        if end > 0 && block.len() >= min_bytes {
            if !send_lines(&mut block, end, to, &mut n_lines) {
                return Ok(());
            }
            end = 0;
        }
    }
}

/// Sends the first `end` bytes of `block`, which are whole lines, and keeps the others. Returns
/// false if the receiver is gone.
fn send_lines(block: &mut Vec<u8>, end: usize, to: &Sender<Vec<u8>>, n_lines: &mut u64) -> bool {
    if end == 0 {
        return true;
    }
    let mut rest = Vec::with_capacity(BLOCK_BYTES + READ_BYTES);
    rest.extend_from_slice(&block[end..]);
    let mut lines = mem::replace(block, rest);
    lines.truncate(end);
    let ends = lines.iter().map(|&byte| u64::from(byte == b'\n'));
    *n_lines += ends.sum::<u64>();
    to.send(Ok(Some(lines))).is_ok()
}
