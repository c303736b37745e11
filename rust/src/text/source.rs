//! Opening a file: path or stdin, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::{Error, Result};

/// How much of the compressed file is read at once.
const BUFFER: usize = 1 << 18;

/// The longest of the magic numbers.
const MAGIC: usize = 6;

/// Where text comes from. A file is open, but nothing of it has been read yet, so that a
/// missing one is known at once and a slow pipe blocks nobody.
pub struct Source {
    pub(super) bytes: Bytes,
    /// The file's name as it was given, `<stdin>` for stdin.
    pub(super) name: String,
    /// Whether text should be passed on as it trickles in.
    pub(super) is_stdin: bool,
}

pub(super) enum Bytes {
    /// To be read, and unpacked.
    Reader(Box<dyn Read + Send>),
    /// Plain text that is there already.
    Text(Vec<u8>),
}

/// Decompressed bytes and what they were packed in, for messages; `None` if they were plain.
type Text = (Box<dyn Read>, Option<&'static str>);

impl Source {
    /// Opens `path`; `-` is stdin.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                bytes: Bytes::Reader(Box::new(io::stdin())),
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
            bytes: Bytes::Reader(Box::new(reader)),
            name: name.into(),
            is_stdin: false,
        }
    }

    /// Plain text in memory; messages call it `name`.
    pub fn text(name: &str, text: Vec<u8>) -> Self {
        Self {
            bytes: Bytes::Text(text),
            name: name.into(),
            is_stdin: false,
        }
    }

    /// The bytes of a test as if they were a file.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
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
pub(super) fn unpacked(mut raw: Box<dyn Read + Send>) -> io::Result<Text> {
    let mut magic = Vec::with_capacity(MAGIC);
    raw.by_ref().take(MAGIC as u64).read_to_end(&mut magic)?;
    let start = magic.clone();
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(magic).chain(raw));
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
            (Box::new(zstd_text(whole)?), Some("zstd"))
        }
        _ => (Box::new(whole.into_inner()), None),
    })
}

fn zstd_text(raw: impl BufRead) -> io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
    // Files packed with --long ask for windows beyond the default of 128 MiB.
    decoder.window_log_max(if cfg!(target_pointer_width = "64") {
        31
    } else {
        30
    })?;
    Ok(decoder)
}
