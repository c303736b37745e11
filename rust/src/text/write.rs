//! Writing XMC text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::Control;
use crate::data::{LabelSets, RowBuffer, Rows};
use crate::error::{Error, Result};

/// Writes `rows` and `labels` to `path`, packed by its suffix (.gz, .xz, .zst,
/// else not at all). Values are written in the fewest digits that read back as
/// the same f32; zeros are left out. The file appears whole or not at all: it
/// is written under another name and then renamed.
pub fn save_xmc(
    path: &Path,
    rows: &Rows<'_>,
    labels: &LabelSets<'_>,
    control: &Control,
) -> Result<()> {
    if rows.n_rows() != labels.len() {
        return Err(Error::data(format!(
            "X has {} rows, y has {}",
            rows.n_rows(),
            labels.len()
        )));
    }
    let failed = |error| Error::io(path.display(), error);
    let draft = Draft::create(path).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(
        1 << 18,
        Packer::by_suffix(path, draft.file()?).map_err(failed)?,
    );
    writeln!(
        writer,
        "{} {} {}",
        rows.n_rows(),
        rows.n_cols(),
        labels.n_classes()
    )
    .map_err(failed)?;
    let mut line = Vec::new();
    let (mut row, mut set) = (RowBuffer::default(), Vec::new());
    for at in 0..rows.n_rows() {
        if at % Control::CHUNK == 0 {
            control.check()?;
        }
        rows.read(at, &mut row);
        labels.read(at, &mut set);
        line.clear();
        write_line(&mut line, &set, &row)
            .and_then(|()| writer.write_all(&line))
            .map_err(failed)?;
    }
    let packer = writer.into_inner().map_err(|e| failed(e.into_error()))?;
    packer.finish().map_err(failed)?;
    draft.publish(path).map_err(failed)
}

fn write_line(line: &mut Vec<u8>, labels: &[u32], row: &RowBuffer) -> io::Result<()> {
    for (at, label) in labels.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(line, "{comma}{label}")?;
    }
    if labels.is_empty() && row.columns.is_empty() {
        // An empty line would do, but many readers drop those.
        line.push(b' ');
    }
    for (column, &value) in row.columns.iter().zip(&row.values) {
        // Debug, unlike Display, falls back on exponents; it also puts ".0"
        // behind whole numbers, of which count data consists.
        if value.fract() == 0.0 && value.abs() < 1e7 {
            write!(line, " {column}:{}", value as i32)?;
        } else {
            write!(line, " {column}:{value:?}")?;
        }
    }
    line.push(b'\n');
    Ok(())
}

/// The file while it is being written; removed unless it is published.
struct Draft {
    path: PathBuf,
    file: File,
    published: bool,
}

impl Draft {
    fn create(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(io::Error::from_raw_os_error(EISDIR));
        };
        // The same directory, for a rename does not cross file systems.
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(
            ".{}-{}.tmp",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        let path = path.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Self {
            path,
            file,
            published: false,
        })
    }

    fn file(&self) -> Result<File> {
        self.file
            .try_clone()
            .map_err(|e| Error::io(self.path.display(), e))
    }

    fn publish(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // It failed already; a second failure would hide the first.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// "Is a directory", so that Python raises its own error for it.
const EISDIR: i32 = 21;

enum Packer {
    Plain(File),
    Gzip(flate2::write::GzEncoder<File>),
    Xz(liblzma::write::XzEncoder<File>),
    Zstd(zstd::stream::write::Encoder<'static, File>),
}

impl Packer {
    fn by_suffix(path: &Path, file: File) -> io::Result<Self> {
        Ok(match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(
                file,
                flate2::Compression::default(),
            )),
            Some("xz") => Self::Xz(liblzma::write::XzEncoder::new(file, 6)),
            Some("zst") => {
                let mut encoder = zstd::stream::write::Encoder::new(file, 9)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            _ => Self::Plain(file),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(drop),
            Self::Xz(encoder) => encoder.finish().map(drop),
            Self::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Xz(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Xz(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
