//! Readers whose calls fail, are interrupted or give little.

use std::io::{self, ErrorKind, Read};

use super::*;

/// Reads `bytes`, at most `most` at a time. Call number `failing` ends in an error of `kind`.
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

fn load(bytes: &[u8], most: usize, failing: usize, kind: ErrorKind) -> Result<Batch<i32>> {
    let faulty = Faulty {
        bytes: io::Cursor::new(bytes.to_vec()),
        most,
        calls: 0,
        failing,
        kind,
    };
    load_xmc(Source::reader("faulty", faulty), None, &Control::new(0))
}

#[test]
fn each_call_may_fail_or_give_little() {
    let text = b"3 4 5\n0,3 1:2 2:.5\n\n4 0:1\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut gzip, text).unwrap();
    for bytes in [text.to_vec(), gzip.finish().unwrap()] {
        let expected = load(&bytes, usize::MAX, 0, ErrorKind::Other).unwrap();
        for most in [1, 3, usize::MAX] {
            // And one to see the end.
            let n_calls = bytes.len().div_ceil(most.min(bytes.len())) + 1;
            for failing in 1..=n_calls {
                let interrupted = load(&bytes, most, failing, ErrorKind::Interrupted);
                assert_eq!(interrupted.unwrap(), expected, "{most} {failing}");
                let failed = load(&bytes, most, failing, ErrorKind::PermissionDenied);
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

#[test]
fn text_in_memory_is_read_as_a_file_is() {
    let options = SvmlightOptions::default();
    for text in [
        &b"1 1:2\n0 2:1"[..],
        b"\xef\xbb\xbf1 0:2\n",
        b"",
        b"1 1:x\n",
    ] {
        let control = Control::new(0);
        let of_text = load_svmlight(Source::text("test", text.to_vec()), options, &control);
        let of_reader = load_svmlight(Source::of_bytes(text), options, &control);
        assert_eq!(format!("{of_text:?}"), format!("{of_reader:?}"));
    }
}
