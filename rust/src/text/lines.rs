//! The lines of a file for formats that are parsed elsewhere.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use super::blocks::{read_blocks, Blocks};
use super::source::Source;
use crate::control::Control;
use crate::error::{Error, Result};

/// The text of a file, plain or compressed, in blocks of whole lines, each ending in `\n`.
/// A thread reads and decompresses ahead of whoever takes them.
#[derive(Debug)]
pub struct LineBlocks {
    name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    blocks: Blocks,
    /// Lines handed out so far.
    lines: u64,
}

impl LineBlocks {
    /// Starts reading `source` in the background.
    pub fn start(source: Source) -> Result<Self> {
        Ok(Self {
            name: source.name.clone(),
            state: Mutex::new(State {
                blocks: read_blocks(source)?,
                lines: 0,
            }),
        })
    }

    /// The next block, `None` after the last; gives up waiting when `control` says so, and
    /// can then be asked again. After an error there is no more.
    pub fn next(&self, control: &Control) -> Result<Option<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.blocks.next(control)?;
        let block = next.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => Error::Line {
                file: self.name.clone(),
                line: state.lines + 1,
                what: error.to_string(),
            },
            _ => Error::io(&self.name, error),
        })?;
        let ends = block.iter().flatten().filter(|&&byte| byte == b'\n');
        state.lines += ends.count() as u64;
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    /// All blocks as one text, and the error that ended them.
    fn read(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        let blocks = LineBlocks::start(Source::of_bytes(bytes)).unwrap();
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
