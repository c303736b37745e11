use std::io::{self, ErrorKind, Read, Write};

use super::super::{SvmlightOptions, Xmc};
use super::*;
use proptest::prelude::*;

fn source(bytes: &[u8]) -> Source {
    Source::reader("test", io::Cursor::new(bytes.to_vec()))
}

fn svmlight(text: &[u8], options: SvmlightOptions) -> Result<Batch<f64>> {
    let format = Svmlight::new(options)?;
    load(source(text), format, &Control::new(0))
}

fn xmc(text: &[u8], multilabel: Option<bool>) -> Result<Batch<i32>> {
    let format = Xmc::new(multilabel);
    load(source(text), format, &Control::new(0))
}

#[test]
fn reads_xmc() {
    let batch = xmc(b"4 6 9\n3,1 5:2.5 0:-1e-3\n \n 2:4\t3:1 \r\n8\n\n", None).unwrap();
    assert_eq!(
        (batch.n_features, batch.n_labels, batch.multilabel),
        (6, 9, true)
    );
    let table = batch.table;
    assert_eq!(table.starts, [0, 2, 2, 4, 4]);
    assert_eq!(table.columns, [0, 5, 2, 3]);
    assert_eq!(table.values, [-1e-3, 2.5, 4.0, 1.0]);
    assert_eq!(table.label_starts, [0, 2, 2, 2, 3]);
    assert_eq!(table.labels, [1, 3, 8]);
}

#[test]
fn reads_svmlight() {
    let text = b"# head\n+1 qid:7 1:.5 3:2 # end\n\n-2.5\t10:1e0#x\r\n1";
    let batch = svmlight(text, SvmlightOptions::default()).unwrap();
    assert_eq!((batch.n_features, batch.multilabel), (10, false));
    assert_eq!(batch.table.starts, [0, 2, 3, 3]);
    assert_eq!(batch.table.columns, [0, 2, 9]);
    assert_eq!(batch.table.values, [0.5, 2.0, 1.0]);
    assert_eq!(batch.table.labels, [1.0, -2.5, 1.0]);

    let batch = svmlight(b"3,1 0:1\n2:5\n", SvmlightOptions::default()).unwrap();
    assert_eq!((batch.n_features, batch.multilabel), (3, true));
    assert_eq!(batch.table.columns, [0, 2]);
    assert_eq!(batch.table.labels, [1.0, 3.0]);
    assert_eq!(batch.table.label_starts, [0, 2, 2]);
}

#[test]
fn broken_xmc_lines_are_reported() {
    let cases: [(&[u8], &str); 23] = [
        (b"", "test:1: the file is empty"),
        (b"\n", "test:1: the header must be three counts"),
        (b"1 2\n", "test:1: the header must be three counts"),
        (
            b"1 2 3 4\n0 0:1\n",
            "test:1: the header must be three counts",
        ),
        (b"1 x 3\n", "test:1: the header must be three counts"),
        (b"1 2 3.5\n", "test:1: the header must be three counts"),
        (
            b"1 3000000000 3\n0 0:1\n",
            "test:1: the header announces 3000000000 features",
        ),
        (
            b"2 2 2\n0 0:1\n",
            "test:2: the file ends after 1 of the 2 rows",
        ),
        (
            b"1 2 2\n0 0:1\n\n1 1:1\n",
            "test:4: one row more than the 1",
        ),
        (
            b"1 2 2\n2 0:1\n",
            "test:2: label 2 is outside 0 to 1; labels of XMC text begin at 0",
        ),
        (
            b"1 2 2\n0 2:1\n",
            "test:2: feature index 2 is outside 0 to 1; indices of XMC text begin at 0",
        ),
        (
            b"1 0 2\n0 2:1\n",
            "test:2: feature index 2 is not allowed: there are none",
        ),
        (
            b"1 2 2\n0 99999999999999999999:1\n",
            "test:2: feature index 18446744073709551615 is outside",
        ),
        (
            b"2 2 2\n0 0:1\n0 -1:1\n",
            "test:3: '-1:1' is not of the form index:value",
        ),
        (
            b"1 2 2\n0 1\n",
            "test:2: '1' is not of the form index:value",
        ),
        (b"1 2 2\n0 1:x\n", "test:2: 'x' is not a number"),
        (
            b"1 2 2\n0 1:1x\n",
            "test:2: '1:1x' is not of the form index:value",
        ),
        (
            b"1 2 2\n0 1:nan\n",
            "test:2: 'nan': all values must be finite",
        ),
        (
            b"1 3 2\n0 1:1 0:2 1:1\n",
            "test:2: feature index 1 occurs twice",
        ),
        (b"1 2 2\n1,0,1 1:1\n", "test:2: label 1 occurs twice"),
        (b"1 2 2\n0, 1:1\n", "test:2: '0,' is not a list of labels"),
        (b"1 2 2\n1:1\n", "test:2: '1:1' is where labels should be"),
        (
            b"\x7fELF\x02\x01\x01\x00",
            "test:1: the header must be three counts",
        ),
    ];
    for (text, expected) in cases {
        let message = xmc(text, None).unwrap_err().to_string();
        assert!(
            message.starts_with(expected),
            "{message:?} is not {expected:?}"
        );
    }
    let message = xmc(b"2 2 2\n0 0:1\n0,1 0:1\n", Some(false))
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("test:3: 2 labels"), "{message}");
}

#[test]
fn broken_svmlight_lines_are_reported() {
    let auto = SvmlightOptions::default();
    let options = |zero_based, n_features, multilabel| SvmlightOptions {
        zero_based,
        n_features,
        multilabel,
    };
    let cases: [(&[u8], SvmlightOptions, &str); 19] = [
        (b"", auto, "test:1: the file has no examples"),
        (b"# nothing\n\n", auto, "test:2: the file has no examples"),
        (b"1 1:1\nx 1:1\n", auto, "test:2: 'x' is not a number"),
        (
            b"1 1:1\n1 1:1 1:2\n",
            auto,
            "test:2: feature index 1 occurs twice",
        ),
        (b"1 1:1\n1 1:\n", auto, "test:2: '' is not a number"),
        (
            b"1 1:1\n1 1:inf\n",
            auto,
            "test:2: 'inf': all values must be finite",
        ),
        (b"nan 1:1\n", auto, "test:1: 'nan': all values"),
        (
            b"label,text\n",
            auto,
            "test:1: 'label,text' is not a number; this looks like CSV, but only svmlight",
        ),
        (
            b"# made by\n1 | a:1\n",
            auto,
            "test:2: '|' is not of the form index:value; this looks like Vowpal Wabbit's format",
        ),
        (b"what is this\n", auto, "test:1: 'what' is not a number"),
        (
            b"1 2147483648:1\n",
            auto,
            "test:1: feature index 2147483648 is outside",
        ),
        (
            b"1 1:1\n1 0:1\n",
            options(Some(false), None, None),
            "test:2: feature index 0 is outside 1 to 2147483647; if indices begin at 0, pass",
        ),
        (
            b"1 1:1\n1 4:1\n",
            options(None, Some(3), None),
            "test:2: feature index 4 is outside 0 to 3",
        ),
        (
            b"1 0:1\n1 3:1\n",
            options(None, Some(3), None),
            "test:2: feature index 3 is outside 0 to 2",
        ),
        (
            b"1 0:1\n1 3:1\n",
            options(Some(true), Some(3), None),
            "test:2: feature index 3 is outside 0 to 2; if indices begin at 1, pass zero_based=False",
        ),
        (
            b"1 0:1\n1,2 3:1\n",
            options(None, None, Some(false)),
            "test:2: 2 labels, but multilabel=False",
        ),
        (
            b"1 0:1\n3:1\n",
            options(None, None, Some(false)),
            "test:2: no label, but multilabel=False",
        ),
        (
            b"1 0:1\n1.5 3:1\n1,2\n",
            auto,
            "test:2: a label of a multilabel file must be a whole",
        ),
        (
            b"9007199254740992 1:1\n-9007199254740993 1:1\n",
            auto,
            "test:2: label '-9007199254740993' would be rounded to -9007199254740992; integers up",
        ),
    ];
    for exact in ["+18014398509481984", "9007199254740993.0", "1e300"] {
        svmlight(format!("{exact} 1:1\n").as_bytes(), auto).unwrap();
    }
    for (text, options, expected) in cases {
        let message = svmlight(text, options).unwrap_err().to_string();
        assert!(
            message.starts_with(expected),
            "{message:?} is not {expected:?}"
        );
    }
}

fn packed(text: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text).unwrap();
    [
        ("gzip", gzip.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zstd", zstd::encode_all(text, 1).unwrap()),
    ]
}

/// Text in lines of very different lengths; 4000 rows are several blocks, 1500 are two.
fn long_text(n_rows: usize) -> Vec<u8> {
    let mut text = format!("{n_rows} 100000 10\n").into_bytes();
    for row in 0..n_rows {
        write!(text, "{}", row % 10).unwrap();
        for column in 0..(if row == 2000 { 100_000 } else { row % 200 }) {
            write!(text, " {column}:{}", (column % 7) as f32 / 8.0).unwrap();
        }
        text.push(b'\n');
    }
    text
}

#[test]
fn compressed_files_read_like_plain_ones() {
    let text = long_text(4000);
    assert!(text.len() > 4 << 20);
    let plain = xmc(&text, None).unwrap();
    assert_eq!(plain.table.n_rows(), 4000);
    let (head, tail) = text.split_at(text.len() / 2);
    for ((packing, mut bytes), (_, rest)) in packed(head).into_iter().zip(packed(tail)) {
        let line_ended = [head, b"\n"].concat();
        assert!(read_blocks(&bytes) == (line_ended, None), "{packing}");
        // Concatenated compressed files are one file.
        bytes.extend(rest);
        assert_eq!(xmc(&bytes, None).unwrap(), plain, "{packing}, joined");
    }
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    let text = long_text(1500);
    assert!(text.len() > 1 << 20);
    for (packing, bytes) in packed(&text) {
        for keep in [9, bytes.len() / 2, bytes.len() - 1] {
            let message = xmc(&bytes[..keep], None).unwrap_err().to_string();
            let expected = format!("the {packing} data is truncated here");
            assert!(message.ends_with(&expected), "{keep}: {message}");
        }
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].fill(0xa5);
        assert!(
            matches!(xmc(&damaged, None), Err(Error::Line { .. })),
            "{packing}"
        );
    }
}

/// All blocks of a file as one text, and the error that ended them.
fn read_blocks(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
    let blocks = LineBlocks::read(source(bytes)).unwrap();
    let mut text = Vec::new();
    loop {
        match blocks.next(&Control::new(0)) {
            Ok(Some(block)) => {
                assert!(block.ends_with(b"\n"));
                text.extend(block);
            }
            Ok(None) => return (text, None),
            Err(error) => return (text, Some(error.to_string())),
        }
    }
}

#[test]
fn blocks_hold_whole_lines() {
    let text = "some words of a line\n".repeat(60_000);
    let (_, gzip) = packed(text.as_bytes()).into_iter().next().unwrap();
    for bytes in [text.as_bytes(), text.trim_end().as_bytes(), &gzip] {
        assert_eq!(read_blocks(bytes), (text.as_bytes().to_vec(), None));
    }
    assert_eq!(read_blocks(b""), (Vec::new(), None));
}

#[test]
fn damage_is_reported_with_its_line() {
    let (_, gzip) = packed(b"one\ntwo\n").into_iter().next().unwrap();
    let (text, error) = read_blocks(&gzip[..gzip.len() - 4]);
    assert_eq!(text, b"one\ntwo\n");
    assert_eq!(error.unwrap(), "test:3: the gzip data is truncated here");
}

#[test]
fn a_stopped_control_ends_reading() {
    let control = Control::new(0);
    control.stop();
    let source = source(b"1 1 1\n0 0:1\n");
    let outcome = load(source, Xmc::new(None), &control);
    assert!(matches!(outcome, Err(Error::Stopped)));
}

fn assert_sound<L>(batch: &Batch<L>) {
    let table = &batch.table;
    assert_eq!(table.columns.len(), table.values.len());
    assert_eq!(table.starts.len(), table.label_starts.len());
    assert!(table.values.iter().all(|value| value.is_finite()));
    for span in table.starts.windows(2) {
        let row = &table.columns[span[0] as usize..span[1] as usize];
        assert!(row.is_sorted_by(|a, b| a < b));
        assert!(row
            .iter()
            .all(|&c| (0..batch.n_features as i64).contains(&i64::from(c))));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(batch) = svmlight(&bytes, SvmlightOptions::default()) { assert_sound(&batch); }
        if let Ok(batch) = xmc(&bytes, None) { assert_sound(&batch); }
    }

    // Only characters of the formats, so that some texts are parsed far.
    #[test]
    fn similar_text_is_read_or_refused(text in "[0-3 ,:.\n#e-]{0,60}") {
        if let Ok(batch) = svmlight(text.as_bytes(), SvmlightOptions::default()) { assert_sound(&batch); }
        let text = format!("2 3 4\n{text}");
        if let Ok(batch) = xmc(text.as_bytes(), None) { assert_sound(&batch); }
    }

    #[test]
    fn damaged_compressed_files_do_not_panic(at in 0usize..80, byte: u8) {
        for (_, mut bytes) in packed(b"2 3 4\n0 0:1\n1 2:1\n") {
            let n = bytes.len();
            bytes[at % n] = byte;
            let _ = xmc(&bytes, None);
        }
    }
}

/// Reads `bytes`, at most `most` at once. Call number `failing` fails with an error of `kind`.
struct Faulty {
    bytes: io::Cursor<Vec<u8>>,
    most: usize,
    calls: usize,
    failing: usize,
    kind: ErrorKind,
}

impl Read for Faulty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls == self.failing {
            return Err(self.kind.into());
        }
        let most = self.most.min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

fn load_faulty(bytes: &[u8], most: usize, failing: usize, kind: ErrorKind) -> Result<Batch<i32>> {
    let faulty = Faulty {
        bytes: io::Cursor::new(bytes.to_vec()),
        most,
        calls: 0,
        failing,
        kind,
    };
    let source = Source::reader("faulty", faulty);
    load(source, Xmc::new(None), &Control::new(0))
}

#[test]
fn any_read_may_fail_or_be_short() {
    let text = b"3 4 5\n0,3 1:2 2:.5\n\n4 0:1\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    for bytes in [text.to_vec(), gzip.finish().unwrap()] {
        let expected = load_faulty(&bytes, usize::MAX, 0, ErrorKind::Other).unwrap();
        for most in [1, 3, usize::MAX] {
            // One more call finds the end.
            let n_calls = bytes.len().div_ceil(most.min(bytes.len())) + 1;
            for failing in 1..=n_calls {
                let interrupted = load_faulty(&bytes, most, failing, ErrorKind::Interrupted);
                assert_eq!(interrupted.unwrap(), expected, "{most} {failing}");
                let failed = load_faulty(&bytes, most, failing, ErrorKind::PermissionDenied);
                match failed {
                    Err(Error::Io { path, .. } | Error::Line { file: path, .. }) => {
                        assert_eq!(path, "faulty");
                    }
                    other => panic!("{most} {failing}: {other:?}"),
                }
            }
        }
    }
}
