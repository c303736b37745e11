//! Opening a file: path or stdin, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::{Error, Result};

/// How much of the compressed file is read at once.
const BUFFER: usize = 1 << 18;

/// The longest of the magic numbers.
const MAGIC: usize = 6;

/// A file that was opened but of which nothing has been read yet, so that a
/// missing file is known at once and a slow pipe blocks nobody.
pub(super) struct Source {
    raw: Box<dyn Read + Send>,
    /// The file's name as it was given, `<stdin>` for stdin.
    pub name: String,
    /// Whether text should be passed on as it trickles in.
    pub is_stdin: bool,
}

/// Decompressed bytes and what they were packed in, for messages; `None` if they were plain.
type Text = (Box<dyn Read>, Option<&'static str>);

impl Source {
    /// Opens `path`; `-` is stdin.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                raw: Box::new(io::stdin()),
                name: "<stdin>".into(),
                is_stdin: true,
            });
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::io(&name, e))?;
        Ok(Self {
            raw: Box::new(file),
            name,
            is_stdin: false,
        })
    }

    /// The bytes of a test as if they were a file.
    #[cfg(test)]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self {
            raw: Box::new(Cursor::new(bytes.to_vec())),
            name: "test".into(),
            is_stdin: false,
        }
    }

    /// Looks at the first bytes and unpacks accordingly. The file's suffix
    /// does not count: downloads are renamed, and stdin has none.
    pub fn text(self) -> io::Result<Text> {
        let mut raw = self.raw;
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
