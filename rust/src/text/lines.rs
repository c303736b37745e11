//! The lines of a file for formats that are parsed elsewhere.

use std::io::ErrorKind;
use std::path::Path;
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
    /// Opens `path` (`-` is stdin) and starts reading it in the background.
    pub fn open(path: &Path) -> Result<Self> {
        let source = Source::open(path)?;
        Ok(Self {
            name: source.name.clone(),
            state: Mutex::new(State {
                blocks: read_blocks(source),
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
