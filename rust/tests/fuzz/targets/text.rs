//! Targets that read text files of examples, plain and compressed.

use std::io::{Cursor, Write};

use xmtree::data::{Indices, Rows, Values};
use xmtree::text::{
    load, scan_svmlight, Batch, LineBlocks, Source, Svmlight, SvmlightOptions, Xmc,
};
use xmtree::Control;

/// Decompressed bytes after which reading ends: a small file can expand to very many.
const MOST_BYTES: usize = 1 << 24;

/// Returns an optional flag from two bits.
fn flag(bits: u8) -> Option<bool> {
    match bits & 3 {
        0 => None,
        1 => Some(false),
        _ => Some(true),
    }
}

/// Reads svmlight text. The first byte holds the options, the others the text.
pub fn svmlight(data: &[u8]) {
    let Some((&options, text)) = data.split_first() else {
        return;
    };
    let options = SvmlightOptions {
        zero_based: flag(options),
        multilabel: flag(options >> 2),
        n_features: (options >> 4 != 0).then_some(usize::from(options >> 4)),
    };
    let source = || Source::reader("fuzz", Cursor::new(text.to_vec()));
    let control = Control::new(0);
    let format = || Svmlight::new(options).expect("few columns");
    let loaded = load(source(), format(), &control);
    let scanned = scan_svmlight(source(), format(), &control);
    assert_eq!(loaded.is_ok(), scanned.is_ok());
    if let (Ok(batch), Ok(layout)) = (loaded, scanned) {
        assert_eq!(batch.n_features, layout.n_features);
        assert_eq!(batch.multilabel, layout.multilabel);
        assert!(batch.table.labels.iter().all(|label| label.is_finite()));
        check(&batch);
    }
}

/// Reads XMC text. The first byte holds the options, the others the text.
pub fn xmc(data: &[u8]) {
    let Some((&options, text)) = data.split_first() else {
        return;
    };
    let source = Source::reader("fuzz", Cursor::new(text.to_vec()));
    let loaded = load(source, Xmc::new(flag(options)), &Control::new(0));
    if let Ok(batch) = loaded {
        let mut ends = batch.table.label_starts.windows(2);
        let has_sets = ends.any(|ends| ends[1] - ends[0] != 1);
        assert_eq!(batch.multilabel, flag(options).unwrap_or(has_sets));
        let labels = batch.table.labels.iter();
        let n_labels = batch.n_labels as u64;
        assert!(labels.into_iter().all(|&label| (label as u64) < n_labels));
        check(&batch);
    }
}

/// Asserts that the batch holds a sound matrix and a sorted list of labels for each row.
fn check<L: PartialOrd>(batch: &Batch<L>) {
    let table = &batch.table;
    let (starts, columns) = (Indices::I64(&table.starts), Indices::I32(&table.columns));
    let rows = Rows::csr(
        starts,
        columns,
        Values::F32(&table.values),
        batch.n_features,
        false,
    )
    .expect("rows that were read are sound");
    assert_eq!(table.label_starts.len(), rows.n_rows() + 1);
    for ends in table.label_starts.windows(2) {
        let labels = &table.labels[ends[0] as usize..ends[1] as usize];
        assert!(labels.is_sorted_by(|a, b| a < b));
        assert!(batch.multilabel || labels.len() == 1);
    }
}

/// Reads a compressed file. The first byte says how it is made: of the other bytes as they are, or
/// by compressing them and changing one byte, so that most of the file is sound.
pub fn packed(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    let Some((&[at_low, at_high, change], text)) = rest.split_first_chunk::<3>() else {
        return;
    };
    let mut file = match how % 4 {
        0 => rest.to_vec(),
        1 => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text).unwrap();
            gzip.finish().unwrap()
        }
        2 => {
            let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
            xz.write_all(text).unwrap();
            xz.finish().unwrap()
        }
        _ => zstd::encode_all(text, 1).unwrap(),
    };
    if how % 4 > 0 {
        let at = usize::from(u16::from_le_bytes([at_low, at_high])) % file.len();
        file[at] ^= change;
        if how & 4 > 0 {
            file.truncate(at);
        }
        if how & 8 > 0 {
            file.extend_from_within(..);
        }
    }
    let control = Control::new(0);
    let blocks = LineBlocks::read(Source::reader("fuzz", Cursor::new(file.clone()))).unwrap();
    let mut n_bytes = 0;
    while let Ok(Some(block)) = blocks.next(&control) {
        assert!(block.ends_with(b"\n"));
        n_bytes += block.len();
        if n_bytes > MOST_BYTES {
            return;
        }
    }
    if how % 4 > 0 && change == 0 && how & 0b1100 == 0 {
        let missing_end = usize::from(!text.is_empty() && !text.ends_with(b"\n"));
        assert_eq!(n_bytes, text.len() + missing_end);
    }
    let _ = load(
        Source::reader("fuzz", Cursor::new(file)),
        Xmc::new(None),
        &control,
    );
}
