//! Writing XMC text.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::control::Control;
use crate::data::{LabelSets, RowBuffer, Rows};
use crate::error::{Error, Result};
use crate::file::Replacement;

/// Writes `rows` and `labels` to `path`, packed by its suffix (.gz, .xz, .zst,
/// else not at all). Values are written in the fewest digits that read back as
/// the same f32; zeros are left out. The file appears whole or not at all.
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
    let mut replacement = Replacement::begin(path).map_err(failed)?;
    let file = &mut replacement.file;
    let write = |to: &mut dyn Write| write_rows(to, rows, labels, control, failed);
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("gz") => {
            let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            write(&mut gzip)?;
            gzip.finish().map_err(failed)?;
        }
        Some("xz") => {
            let mut xz = liblzma::write::XzEncoder::new(file, 6);
            write(&mut xz)?;
            xz.finish().map_err(failed)?;
        }
        Some("zst") => {
            let mut zstd = zstd::stream::write::Encoder::new(file, 9).map_err(failed)?;
            zstd.include_checksum(true).map_err(failed)?;
            write(&mut zstd)?;
            zstd.finish().map_err(failed)?;
        }
        _ => write(file)?,
    }
    replacement.finish().map_err(failed)
}

fn write_rows(
    to: &mut dyn Write,
    rows: &Rows<'_>,
    labels: &LabelSets<'_>,
    control: &Control,
    failed: impl Fn(io::Error) -> Error + Copy,
) -> Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 18, to);
    let (n_rows, n_cols, n_labels) = (rows.n_rows(), rows.n_cols(), labels.n_classes());
    writeln!(writer, "{n_rows} {n_cols} {n_labels}").map_err(failed)?;
    let (mut row, mut set) = (RowBuffer::default(), Vec::new());
    for at in 0..n_rows {
        if at % Control::CHUNK == 0 {
            control.check()?;
        }
        rows.read(at, &mut row);
        labels.read(at, &mut set);
        write_line(&mut writer, &set, &row).map_err(failed)?;
    }
    // Not flushed: that would cut a packer's blocks short.
    let written = writer.into_inner().map(drop);
    written.map_err(|error| failed(error.into_error()))
}

fn write_line(to: &mut impl Write, labels: &[u32], row: &RowBuffer) -> io::Result<()> {
    for (at, label) in labels.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(to, "{comma}{label}")?;
    }
    if labels.is_empty() && row.columns.is_empty() {
        // An empty line would do, but many readers drop those.
        write!(to, " ")?;
    }
    for (column, &value) in row.columns.iter().zip(&row.values) {
        // Debug, unlike Display, falls back on exponents; it also puts ".0"
        // behind whole numbers, of which count data consists.
        if value.fract() == 0.0 && value.abs() < 1e7 {
            write!(to, " {column}:{}", value as i32)?;
        } else {
            write!(to, " {column}:{value:?}")?;
        }
    }
    writeln!(to)
}
