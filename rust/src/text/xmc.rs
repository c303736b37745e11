//! The format of the Extreme Classification Repository: a header
//! `N D K`, then per row `label,label,... index:value ...`, all from 0.

use super::cursor::Cursor;
use super::reader::Format;
use super::svmlight::{read_features, Columns, MAX_INDEX};
use super::table::{Arity, Table};

/// The three numbers of the first line.
#[derive(Debug, Clone, Copy)]
struct Header {
    rows: u64,
    features: u64,
    labels: u64,
}

/// The parser of XMC lines.
pub(super) struct Xmc {
    arity: Arity,
    header: Option<Header>,
    rows: u64,
    sets: bool,
}

impl Xmc {
    pub fn new(multilabel: Option<bool>) -> Self {
        Self {
            arity: Arity::from_option(multilabel),
            header: None,
            rows: 0,
            sets: false,
        }
    }

    /// Whether y is label sets, by what was asked for or what was seen.
    pub fn multilabel(&self) -> bool {
        match self.arity {
            Arity::Multi => true,
            Arity::Single => false,
            Arity::Auto => self.sets,
        }
    }

    /// Whether a row with other than one label was seen.
    pub fn has_sets(&self) -> bool {
        self.sets
    }
}

impl Format for Xmc {
    type Label = i32;

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        table: &mut Table<i32>,
        _line: u64,
    ) -> Result<bool, String> {
        let Some(header) = self.header else {
            self.header = Some(read_header(cursor)?);
            return Ok(false);
        };
        if self.rows == header.rows {
            cursor.skip_blanks();
            if cursor.peek() == b'\n' {
                cursor.bump();
                return Ok(false);
            }
            return Err(format!(
                "one row more than the {} that the header announces",
                header.rows
            ));
        }
        if !cursor.at_blank() {
            read_labels(cursor, header.labels, table)?;
        }
        let labels = table.open_labels();
        self.arity.check(labels.len())?;
        self.sets |= labels.len() != 1;
        if !labels.is_sorted_by(|a, b| a < b) {
            labels.sort_unstable();
            if let Some(at) = (1..labels.len()).find(|&at| labels[at - 1] == labels[at]) {
                return Err(format!("label {} stands twice", labels[at]));
            }
        }
        let columns = Columns {
            first: 0,
            end: header.features,
            comments: false,
        };
        read_features(cursor, columns, table)?;
        table.end_row();
        self.rows += 1;
        Ok(true)
    }

    fn end(&self, rows: u64) -> Result<(), String> {
        match self.header {
            None => Err("the file is empty; it begins with a header \"N D K\"".into()),
            Some(header) if rows < header.rows => Err(format!(
                "the file ends after {rows} of the {} rows that the header announces",
                header.rows
            )),
            Some(_) => Ok(()),
        }
    }

    fn n_features(&self) -> usize {
        self.header.map_or(0, |header| header.features as usize)
    }

    fn n_labels(&self) -> usize {
        self.header.map_or(0, |header| header.labels as usize)
    }
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<Header, String> {
    let from = cursor.at();
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
        return Err(format!(
            "the header must be three counts, \"N D K\" (rows, features, labels); it begins with {}",
            cursor.quote(from)
        ));
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
    let from = cursor.at();
    loop {
        let at = cursor.at();
        let (label, length) = cursor.digits();
        if length == 0 {
            return Err(format!("{} is not a list of labels", cursor.quote(from)));
        }
        if cursor.peek() == b':' {
            return Err(format!(
                "{} stands where labels should; a row without labels begins with a space",
                cursor.quote(at)
            ));
        }
        if label >= end {
            return Err(format!(
                "label {label} is outside 0..{end} (the end excluded)"
            ));
        }
        table.labels.push(label as i32);
        if cursor.peek() == b',' {
            cursor.bump();
        } else if cursor.at_blank() {
            return Ok(());
        } else {
            return Err(format!("{} is not a list of labels", cursor.quote(from)));
        }
    }
}
