//! Text in blocks of whole lines, read and decompressed on a thread of its own.

use std::io::{self, ErrorKind, Read};

use super::ahead::{ReadAhead, Sender};
use super::source::{unpacked, Bytes, Source};
use crate::error::Result;

/// Size of a block, but for longer lines. Large enough that handing it over
/// costs nothing, small enough to stay in the second-level cache.
const BLOCK: usize = 1 << 20;
/// Blocks that may wait to be parsed.
const WAITING: usize = 3;
/// No data set has lines this long; a file without line ends does, and must
/// not fill the memory before it is refused.
const LONGEST_LINE: usize = 1 << 28;

/// Blocks of whole lines, every line ending in `\n`, in the order of the file.
/// An error of the kind `InvalidData` says that what was read is no sound
/// file, any other that the operating system refused.
pub(super) type Blocks = ReadAhead<Vec<u8>, io::Error>;

/// Starts reading `source`.
pub(super) fn read_blocks(source: Source) -> Result<Blocks> {
    let trickles = source.is_stdin;
    match source.bytes {
        Bytes::Reader(raw) => ReadAhead::start(WAITING, move |to| cut(raw, trickles, to)),
        Bytes::Text(mut lines) => {
            if !lines.ends_with(b"\n") {
                lines.push(b'\n');
            }
            Ok(ReadAhead::ready(lines))
        }
    }
}

/// Reads `raw` to its end and sends it, unpacked, in blocks of whole lines.
fn cut(
    raw: Box<dyn Read + Send>,
    trickles: bool,
    to: &Sender<Vec<u8>, io::Error>,
) -> io::Result<()> {
    let (mut bytes, packing) = unpacked(raw)?;
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
                return Err(unsound(format!(
                    "no line end within {LONGEST_LINE} bytes; this is no text of examples"
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
    to: &Sender<Vec<u8>, io::Error>,
) -> Option<usize> {
    if line_end == 0 {
        return Some(filled);
    }
    let left = filled - line_end;
    let mut rest = vec![0; BLOCK.max(2 * left)];
    rest[..left].copy_from_slice(&buffer[line_end..filled]);
    let mut lines = std::mem::replace(buffer, rest);
    lines.truncate(line_end);
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
