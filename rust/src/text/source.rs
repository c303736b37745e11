//! A file's text: opened, decompressed and cut into blocks of whole lines, on a thread of its own.
//!
//! The kind of compression is told by the first bytes, not by the file's name. Channels are bounded, so
//! reading ahead takes constant memory.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::control::Control;
use crate::error::{Error, Result};

/// How much of the compressed file is read at once.
const READ_BYTES: usize = 1 << 18;

/// The longest of the magic numbers.
const MAGIC_BYTES: usize = 6;

/// Where text comes from. A file is open, but nothing of it has been read yet, so that a
/// missing one is known at once and a slow pipe blocks nobody.
pub struct Source {
    bytes: Box<dyn Read + Send>,
    /// The file's name as it was given, `<stdin>` for stdin.
    pub(super) name: String,
    /// Whether text should be passed on as it trickles in.
    is_stdin: bool,
}

/// Decompressed bytes and what they were packed in, for messages; `None` if they were plain.
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

    /// What `reader` reads, packed or not; messages call it `name`.
    pub fn reader(name: &str, reader: impl Read + Send + 'static) -> Self {
        Self {
            bytes: Box::new(reader),
            name: name.into(),
            is_stdin: false,
        }
    }

    /// The bytes of a test as if they were a file.
    #[cfg(test)]
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self::reader("test", Cursor::new(bytes.to_vec()))
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Looks at the first bytes and unpacks accordingly. The file's suffix
/// does not count: downloads are renamed, and stdin has none.
fn unpacked(mut raw: Box<dyn Read + Send>) -> io::Result<Text> {
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
        // 0x184d2a5? are the skippable frames that some packers begin with.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let mut text = zstd::stream::read::Decoder::with_buffer(whole)?;
            // Files packed with --long ask for windows beyond the default of 128 MiB.
            let is_wide = cfg!(target_pointer_width = "64");
            text.window_log_max(if is_wide { 31 } else { 30 })?;
            (Box::new(text), Some("zstd"))
        }
        _ => (Box::new(whole.into_inner()), None),
    })
}

/// How often a waiting taker looks at its stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An item, the end (`None`), or the error that ended it.
type Message<T> = Result<Option<T>>;

/// Where the thread puts its items.
pub(super) type Sender<T> = SyncSender<Message<T>>;

/// Items of a file in order, made by a thread ahead of whoever takes them. Dropping it ends the
/// thread.
#[derive(Debug)]
pub struct ReadAhead<T> {
    /// `None` once the end, or an error, was handed out.
    messages: Mutex<Option<Receiver<Message<T>>>>,
    /// Stops the thread.
    worker: Arc<Control>,
}

impl<T: Send + 'static> ReadAhead<T> {
    /// Starts `work`, whose items may wait, `waiting` at a time, to be taken. The thread
    /// ends by itself when the work does, or when this is dropped and it next has something
    /// to hand over or looks at its control; nobody waits for it, because it may hang on a pipe.
    /// An error where the system starts no thread.
    pub(super) fn start(
        waiting: usize,
        work: impl FnOnce(&Control, &Sender<T>) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let worker = Arc::new(Control::new(0));
        let control = Arc::clone(&worker);
        let read = move || {
            let last = work(&control, &sender);
            // That nobody receives any more is the ordinary signal to stop.
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

    /// The next item, `None` after the last; gives up waiting when `control` says so, and
    /// can then be asked again. After an error of the thread there is no more.
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
                // Only a panic closes the channel without a last word. It must
                // not pass for the end of the file.
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
        // The thread may be waiting for another one, where it hears of nothing else.
        self.worker.stop();
    }
}

/// Size of a block, but for longer lines. Large enough that handing it over
/// costs nothing, small enough to stay in the second-level cache.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that may wait to be parsed.
const MAX_WAITING_BLOCKS: usize = 3;
/// No data set has lines this long; a file without line ends does, and must
/// not fill the memory before it is refused.
const MAX_LINE_BYTES: usize = 1 << 28;

/// The text of a file, plain or compressed, in blocks of whole lines, each ending in `\n`.
pub type LineBlocks = ReadAhead<Vec<u8>>;

impl LineBlocks {
    /// Starts reading `source` in the background.
    pub fn read(source: Source) -> Result<Self> {
        Self::start(MAX_WAITING_BLOCKS, move |_, to| {
            let mut n_lines = 0;
            let ended = cut(source.bytes, source.is_stdin, to, &mut n_lines);
            ended.map_err(|error| match error.kind() {
                ErrorKind::InvalidData => Error::Line {
                    file: source.name,
                    line: n_lines + 1,
                    what: error.to_string(),
                },
                _ => Error::io(source.name, error),
            })
        })
    }
}

/// Reads `raw` to its end and sends it, unpacked, in blocks of whole lines, which it counts. An
/// error of the kind `InvalidData` says that what was read is no sound file, any other that the
/// operating system refused.
fn cut(
    raw: Box<dyn Read + Send>,
    trickles: bool,
    to: &Sender<Vec<u8>>,
    n_lines: &mut u64,
) -> io::Result<()> {
    let (mut bytes, packing) = unpacked(raw)?;
    // A plain pipe is passed on as it comes, so that a slow writer's lines are
    // not held back until they fill a block.
    let enough = if trickles && packing.is_none() {
        1
    } else {
        BLOCK_BYTES
    };
    // The buffer is longer than what is filled, so that a decoder that hands
    // out little at a time does not have it cleared again and again.
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut filled = 0;
    let mut line_end = 0;
    loop {
        if filled == buffer.len() {
            if filled >= MAX_LINE_BYTES {
                return Err(unsound(format!(
                    "no line end within {MAX_LINE_BYTES} bytes; this is no text of examples"
                )));
            }
            buffer.try_reserve(filled)?;
            buffer.resize(2 * filled, 0);
        }
        let read = match bytes.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                // What came whole is still parsed, so that the line number of
                // the failure is right.
                send_lines(&mut buffer, filled, line_end, to, n_lines);
                return Err(failure(error, packing));
            }
        };
        let fresh = &buffer[filled..filled + read];
        if let Some(at) = fresh.iter().rposition(|&b| b == b'\n') {
            line_end = filled + at + 1;
        }
        filled += read;
        if read == 0 {
            if filled > line_end {
                buffer.truncate(filled);
                buffer.push(b'\n');
                filled += 1;
            }
            send_lines(&mut buffer, filled, filled, to, n_lines);
            return Ok(());
        }
        if line_end > 0 && filled >= enough {
            match send_lines(&mut buffer, filled, line_end, to, n_lines) {
                Some(left) => filled = left,
                None => return Ok(()),
            }
            line_end = 0;
        }
    }
}

/// Sends the bytes before `line_end` and keeps those up to `filled`; how many
/// that is, or `None` when nobody listens any more.
fn send_lines(
    buffer: &mut Vec<u8>,
    filled: usize,
    line_end: usize,
    to: &Sender<Vec<u8>>,
    n_lines: &mut u64,
) -> Option<usize> {
    if line_end == 0 {
        return Some(filled);
    }
    let left = filled - line_end;
    let mut rest = vec![0; BLOCK_BYTES.max(2 * left)];
    rest[..left].copy_from_slice(&buffer[line_end..filled]);
    let mut lines = std::mem::replace(buffer, rest);
    lines.truncate(line_end);
    let ends = lines.iter().map(|&byte| u64::from(byte == b'\n'));
    *n_lines += ends.sum::<u64>();
    to.send(Ok(Some(lines))).ok().map(|()| left)
}

fn failure(error: io::Error, packing: Option<&str>) -> io::Error {
    match packing {
        // An error of the system keeps its number; the decoders have none.
        Some(packing) if error.raw_os_error().is_none() => {
            unsound(if error.kind() == ErrorKind::UnexpectedEof {
                format!("the {packing} data is truncated here")
            } else {
                format!("the {packing} data is damaged here ({error})")
            })
        }
        _ => error,
    }
}

fn unsound(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    /// All blocks as one text, and the error that ended them.
    fn read(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        let blocks = LineBlocks::read(Source::from_bytes(bytes)).unwrap();
        let mut text = Vec::new();
        loop {
            match blocks.next(&Control::new(0)) {
                Ok(Some(block)) => text.extend(block),
                Ok(None) => return (text, None),
                Err(error) => return (text, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn blocks_hold_whole_lines() {
        let text = "some words of a line\n".repeat(60_000);
        for bytes in [
            text.as_bytes(),
            text.trim_end().as_bytes(),
            &gzip(text.as_bytes()),
        ] {
            assert_eq!(read(bytes), (text.as_bytes().to_vec(), None));
        }
        assert_eq!(read(b""), (Vec::new(), None));
    }

    #[test]
    fn damage_is_told_by_its_line() {
        let packed = gzip(b"one\ntwo\n");
        let (text, error) = read(&packed[..packed.len() - 4]);
        assert_eq!(text, b"one\ntwo\n");
        assert_eq!(error.unwrap(), "test:3: the gzip data is truncated here");
    }
}
