//! Text in blocks of whole lines, read and decompressed on a thread of its own.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::source::{Source, Text};
use crate::control::Control;
use crate::error::{Error, Result};

/// Size of a block, but for longer lines. Large enough that handing it over
/// costs nothing, small enough to stay in the second-level cache.
const BLOCK: usize = 1 << 20;
/// Blocks that may wait to be parsed.
const WAITING: usize = 3;
/// No data set has lines this long; a file without line ends does, and must
/// not fill the memory before it is refused.
const LONGEST_LINE: usize = 1 << 28;
/// How often a waiting reader looks at its stop flag.
const BEAT: Duration = Duration::from_millis(50);

/// What the reading thread sends: a block, the end, or why it gave up.
enum Piece {
    Block(Vec<u8>),
    End,
    Failed(Failure),
}

/// Why reading stopped early.
pub(super) enum Failure {
    /// The operating system refused.
    System(io::Error),
    /// What was read is no sound file; with the reason.
    Content(String),
}

/// Blocks of whole lines, every line ending in `\n`, in the order of the file.
pub(super) struct Blocks {
    pieces: Receiver<Piece>,
    ended: bool,
}

/// One step through the file.
pub(super) enum Step {
    /// Some whole lines.
    Block(Vec<u8>),
    /// There is no more.
    End,
    /// The file could not be read to its end.
    Failed(Failure),
}

impl Blocks {
    /// Starts reading. The thread ends by itself when the file does, or when
    /// this is dropped and it next has something to hand over; nobody waits
    /// for it, because it may hang on a pipe.
    pub fn start(source: Source) -> Self {
        let (sender, pieces) = sync_channel(WAITING);
        std::thread::spawn(move || {
            let last = match cut(source, &sender) {
                Ok(()) => Piece::End,
                Err(failure) => Piece::Failed(failure),
            };
            // Nobody listening any more is the ordinary way to be told to stop.
            let _ = sender.send(last);
        });
        Self {
            pieces,
            ended: false,
        }
    }

    /// The next block; gives up when `control` says so.
    pub fn next(&mut self, control: &Control) -> Result<Step> {
        if self.ended {
            return Ok(Step::End);
        }
        loop {
            control.check()?;
            return Ok(match self.pieces.recv_timeout(BEAT) {
                Ok(Piece::Block(block)) => Step::Block(block),
                Ok(Piece::End) => {
                    self.ended = true;
                    Step::End
                }
                Ok(Piece::Failed(failure)) => {
                    self.ended = true;
                    Step::Failed(failure)
                }
                Err(RecvTimeoutError::Timeout) => continue,
                // Only a panic closes the channel without a last word. It must
                // not pass for the end of the file.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::data("the thread that reads the file has died"))
                }
            });
        }
    }
}

/// Reads `source` to its end and sends it in blocks of whole lines.
fn cut(source: Source, to: &SyncSender<Piece>) -> std::result::Result<(), Failure> {
    let trickles = source.is_stdin();
    let Text { mut bytes, packing } = source.text().map_err(Failure::System)?;
    // A plain pipe is passed on as it comes, so that a slow writer's lines are
    // not held back until they fill a block.
    let enough = if trickles && packing.is_none() {
        1
    } else {
        BLOCK
    };
    // The buffer is longer than what is filled, so that a decoder that hands
    // out little at a time does not have it cleared again and again.
    let mut buffer = vec![0; BLOCK];
    let mut filled = 0;
    let mut line_end = 0;
    loop {
        if filled == buffer.len() {
            if filled >= LONGEST_LINE {
                return Err(Failure::Content(format!(
                    "no line end within {LONGEST_LINE} bytes; this is no text of examples"
                )));
            }
            buffer.resize(2 * filled, 0);
        }
        let read = match bytes.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                // What came whole is still parsed, so that the line number of
                // the failure is right.
                send_lines(&mut buffer, filled, line_end, to);
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
            send_lines(&mut buffer, filled, filled, to);
            return Ok(());
        }
        if line_end > 0 && filled >= enough {
            match send_lines(&mut buffer, filled, line_end, to) {
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
    to: &SyncSender<Piece>,
) -> Option<usize> {
    if line_end == 0 {
        return Some(filled);
    }
    let left = filled - line_end;
    let mut rest = vec![0; BLOCK.max(2 * left)];
    rest[..left].copy_from_slice(&buffer[line_end..filled]);
    let mut lines = std::mem::replace(buffer, rest);
    lines.truncate(line_end);
    to.send(Piece::Block(lines)).ok().map(|()| left)
}

fn failure(error: io::Error, packing: Option<&str>) -> Failure {
    match packing {
        // An error of the system keeps its number; the decoders have none.
        Some(packing) if error.raw_os_error().is_none() => {
            Failure::Content(if error.kind() == ErrorKind::UnexpectedEof {
                format!("the {packing} data is truncated here")
            } else {
                format!("the {packing} data is damaged here ({error})")
            })
        }
        _ => Failure::System(error),
    }
}
