//! Reads and writes the format of the Extreme Classification Repository: a header `N D K`, then
//! for each row `label,label,... index:value ...`. Labels and indices start at 0.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::cursor::Cursor;
use super::svmlight::{outside, read_features, Columns, MAX_INDEX};
use super::table::{wrong_first_line, Batch, Fault, Format, Table};
use crate::control::Control;
use crate::data::{LabelSets, RowBuffer, Rows};
use crate::error::Error;
use crate::file::Replacement;

/// The three numbers of the first line.
#[derive(Debug, Clone, Copy, Default)]
struct Header {
    rows: u64,
    features: u64,
    labels: u64,
}

/// Parser of XMC lines.
#[derive(Debug)]
pub struct Xmc {
    multilabel: Option<bool>,
    header: Option<Header>,
    /// Rows read so far.
    rows: u64,
    /// True after a row whose number of labels is not one.
    has_sets: bool,
}

impl Xmc {
    /// Returns a parser. `multilabel` says if y is label sets; `None` means unless every row has
    /// exactly one label.
    pub fn new(multilabel: Option<bool>) -> Self {
        Self {
            multilabel,
            header: None,
            rows: 0,
            has_sets: false,
        }
    }
}

impl Format for Xmc {
    type Label = i32;

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<i32>,
        _line: u64,
    ) -> Result<(), String> {
        let Some(header) = self.header else {
            self.header = Some(read_header(cursor)?);
            return Ok(());
        };
        if self.rows == header.rows {
            cursor.skip_blanks();
            if cursor.peek() == b'\n' {
                cursor.bump();
                return Ok(());
            }
            return Err(format!(
                "one row more than the {} that the header announces",
                header.rows
            ));
        }
        if !cursor.at_blank() {
            read_labels(cursor, header.labels, table)?;
        }
        self.has_sets |= table.check_labels(self.multilabel)?;
        let columns = Columns {
            first: 0,
            end: header.features,
            comments: false,
            advice: "; indices of XMC text begin at 0",
        };
        read_features(cursor, columns, table)?;
        table.end_row();
        self.rows += 1;
        Ok(())
    }

    fn announced_rows(&self) -> u64 {
        self.header.map_or(0, |header| header.rows)
    }

    fn end(&self) -> Result<(), String> {
        match self.header {
            None => Err("the file is empty; it begins with a header \"N D K\"".into()),
            Some(Header { rows, .. }) if self.rows < rows => Err(format!(
                "the file ends after {} of the {rows} rows that the header announces",
                self.rows
            )),
            Some(_) => Ok(()),
        }
    }

    fn batch(&self, table: Table<i32>) -> Result<Batch<i32>, Fault> {
        let header = self.header.unwrap_or_default();
        Ok(Batch {
            table,
            n_features: header.features as usize,
            n_labels: header.labels as usize,
            multilabel: self.multilabel.unwrap_or(self.has_sets),
        })
    }
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<Header, String> {
    let from = cursor.at;
    let mut numbers = [0; 3];
    let mut sound = true;
    for number in &mut numbers {
        cursor.skip_blanks();
        let (value, length) = cursor.digits();
        *number = value;
        sound &= length > 0 && cursor.at_blank();
    }
    cursor.skip_blanks();
    if !sound || cursor.peek() != b'\n' {
        let what = format!(
            "the header must be three counts, \"N D K\" (rows, features, labels); it begins with {}",
            cursor.quote(from)
        );
        return Err(wrong_first_line(what, cursor.line_from(from)));
    }
    cursor.bump();
    let [rows, features, labels] = numbers;
    for (count, what) in [(features, "features"), (labels, "labels")] {
        if count > MAX_INDEX {
            return Err(format!(
                "the header announces {count} {what}; at most {MAX_INDEX} can be indexed"
            ));
        }
    }
    Ok(Header {
        rows,
        features,
        labels,
    })
}

fn read_labels(cursor: &mut Cursor<'_>, end: u64, table: &mut Table<i32>) -> Result<(), String> {
    let from = cursor.at;
    loop {
        let at = cursor.at;
        let (label, length) = cursor.digits();
        if length > 0 && cursor.peek() == b':' {
            return Err(format!(
                "{} is where labels should be; a row without labels begins with a space",
                cursor.quote(at)
            ));
        }
        if length > 0 && label >= end {
            let advice = if label == end {
                "; labels of XMC text begin at 0"
            } else {
                ""
            };
            return Err(format!("label {}{advice}", outside(label, 0, end)));
        }
        let has_more = cursor.peek() == b',';
        if length == 0 || !(has_more || cursor.at_blank()) {
            return Err(format!("{} is not a list of labels", cursor.quote(from)));
        }
        table.labels.push(label as i32);
        if !has_more {
            return Ok(());
        }
        cursor.bump();
    }
}

/// Writes `rows` and `labels` to `path`, compressed if its suffix is .gz, .xz or .zst. Values have
/// the fewest digits that read back as the same f32; zeros are left out. The file appears whole or
/// not at all.
pub fn save_xmc(
    path: &Path,
    rows: &Rows<'_>,
    labels: &LabelSets<'_>,
    control: &Control,
) -> crate::Result<()> {
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
) -> crate::Result<()> {
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
    // A flush would make the compressor end its block early.
    let written = writer.into_inner().map(drop);
    written.map_err(|error| failed(error.into_error()))
}

fn write_line(to: &mut impl Write, labels: &[u32], row: &RowBuffer) -> io::Result<()> {
    for (at, label) in labels.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(to, "{comma}{label}")?;
    }
    if labels.is_empty() && row.columns.is_empty() {
        // Many readers skip empty lines.
        write!(to, " ")?;
    }
    for (column, &value) in row.columns.iter().zip(&row.values) {
        // Debug, unlike Display, writes exponents. It also writes ".0" after whole numbers, which
        // are common in counts.
        if value.fract() == 0.0 && value.abs() < 1e7 {
            write!(to, " {column}:{}", value as i32)?;
        } else {
            write!(to, " {column}:{value:?}")?;
        }
    }
    writeln!(to)
}
