//! Tests of 16-bit floats and mapped files.

use super::*;
use std::io::{self, ErrorKind, Read, Write};

#[test]
fn floats_of_16_bits_are_restored() {
    let floats: Vec<f32> = (-2000..2000).map(|i| (i as f32 / 777.0).powi(3)).collect();
    let mut bundle = Bundle::new("k");
    bundle.put("x", floats.clone());
    bundle.put("y", vec![0.1f64]);
    bundle.put("infinite", vec![1.0f32, f32::NEG_INFINITY]);
    bundle.put("small", vec![1e-38f32, -1e-42, 0.0]);
    bundle.put("zeros", vec![0.0f32; 65]);
    bundle.put("kept", floats.clone());
    let mut outer = Bundle::new("outer");
    outer.nest("inner", bundle);
    outer.narrow(|name| name != "inner/kept");
    let mut bundle = Bundle::from_bytes(&outer.to_bytes().unwrap())
        .unwrap()
        .unnest("inner")
        .unwrap();
    let types = ["infinite", "kept", "small", "x", "y", "zeros", "x.scale"];
    let types = types.map(|name| bundle.arrays()[name].dtype().to_string());
    assert_eq!(types, ["F32", "F32", "I16", "I16", "F64", "I16", "F32"]);
    let again = bundle.take::<f32>("x").unwrap();
    for (before, after) in floats.chunks(64).zip(again.chunks(64)) {
        let largest = before.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let errors = before
            .iter()
            .zip(after)
            .map(|(a, b)| (a - b).abs() / largest);
        let error = errors.fold(0.0, f32::max);
        assert!(0.0 < error && error <= 1.01 / 65534.0, "{error}");
    }
    assert_eq!(bundle.take::<f32>("zeros").unwrap(), [0.0; 65]);
    assert_eq!(bundle.take::<f32>("small").unwrap(), [0.0; 3]);
    assert_eq!(bundle.take::<f32>("kept").unwrap(), floats);
    bundle.take_any::<f32>("infinite").unwrap();
    let left: Vec<_> = bundle.arrays().keys().collect();
    assert_eq!(left, ["y"]);
    for sizes in [vec![], vec![1.0f32; 3]] {
        let mut bundle = Bundle::new("k");
        bundle.put("x", vec![1i16; 65]);
        bundle.put("x.scale", sizes);
        assert!(bundle
            .take::<f32>("x")
            .unwrap_err()
            .to_string()
            .contains("its scale"));
    }
}

#[test]
fn mapped_arrays_equal_the_written_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    let mut bundle = small();
    bundle.put("many", (0..1000u16).collect::<Vec<_>>());
    bundle.write(&path).unwrap();
    let mut mapped = Bundle::map(&path).unwrap();
    assert_eq!(mapped.arrays(), bundle.arrays());
    assert_eq!(mapped.to_bytes().unwrap(), bundle.to_bytes().unwrap());
    let mut many = mapped.take_flat::<u16>("many", None).unwrap();
    let is_little = cfg!(target_endian = "little");
    assert_eq!(many.is_mapped(), is_little);
    let part = many.part(10..12);
    assert_eq!(
        (part.is_mapped(), &part),
        (is_little, &Flat::from(vec![10, 11]))
    );
    assert_eq!(many.clone().part(999..1000)[..], [999]);
    // The file may be deleted, and changes affect a copy.
    drop(mapped);
    fs::remove_file(&path).unwrap();
    let before = many.clone();
    many.to_mut()[3] = 7;
    assert_eq!((many[3], before[3], many.is_mapped()), (7, 3, false));
    assert_eq!(before.into_vec(), bundle.take::<u16>("many").unwrap());
}

#[test]
fn unaligned_arrays_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    // The floats follow three bytes, so they are not aligned.
    let index = r#"{"__metadata__":{"xmtree":"{\"kind\":\"k\",\"meta\":{}}"},
        "a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
        "b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}"#;
    let index = format!("{index:width$}", width = index.len().next_multiple_of(8));
    let mut data = vec![1, 2, 3];
    data.extend(1.5f32.to_le_bytes());
    fs::write(&path, sealed_index(&index, &data)).unwrap();
    let mut mapped = Bundle::map(&path).unwrap();
    assert_eq!(mapped, {
        let mut read = Bundle::read(&path).unwrap();
        assert_eq!(read.take_flat::<u8>("a", None).unwrap()[..], [1, 2, 3]);
        read.put("a", vec![1_u8, 2, 3]);
        read
    });
    let floats = mapped.take_flat::<f32>("b", None).unwrap();
    assert_eq!((floats[0], floats.is_mapped()), (1.5, false));
}

/// A sparse file of a quarter of a terabyte, which cannot be read completely.
#[cfg(target_os = "linux")]
#[test]
fn mapping_reads_only_the_index() {
    let n = 1u64 << 36;
    let mut index = format!(
        r#"{{"__metadata__":{{"xmtree":"{{\"kind\":\"k\",\"meta\":{{}}}}"}},"x":{{"dtype":"F32","shape":[{n}],"data_offsets":[0,{}]}}}}"#,
        4 * n
    );
    while index.len() % 8 != 0 {
        index.push(' ');
    }
    let mut bytes = sealed_index(&index, &[]);
    bytes.truncate(bytes.len() - 4);
    let body = 8 + index.len() as u64 + 4 * n;
    bytes[16..24].copy_from_slice(&body.to_le_bytes());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    fs::write(&path, &bytes).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(24 + body + 4).unwrap();
    let mut bundle = Bundle::map(&path).unwrap();
    let x = bundle.take_flat::<f32>("x", None).unwrap();
    assert_eq!((x.len() as u64, x[x.len() - 1]), (n, 0.0));
}

#[test]
fn mapped_files_of_another_length_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    let bytes = small().to_bytes().unwrap();
    let damaged = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        complaint(Bundle::map(&path))
    };
    for len in 0..bytes.len() {
        damaged(&bytes[..len]);
    }
    // Every byte of the header except the padding matters.
    for i in (0..12).chain(16..32) {
        let mut bytes = bytes.clone();
        bytes[i] ^= 255;
        damaged(&bytes);
    }
    assert!(matches!(
        Bundle::map(&directory.path().join("absent")),
        Err(Error::Io { .. })
    ));
}

/// Reads or writes at most `most` bytes per call; call number `failing` returns an error of `kind`.
struct Faulty<T> {
    inner: T,
    most: usize,
    calls: usize,
    failing: usize,
    kind: ErrorKind,
}

impl<T> Faulty<T> {
    fn new(inner: T, most: usize, failing: usize, kind: ErrorKind) -> Self {
        Self {
            inner,
            most,
            calls: 0,
            failing,
            kind,
        }
    }

    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.calls == self.failing {
            return Err(self.kind.into());
        }
        Ok(())
    }
}

impl<W: Write> Write for Faulty<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call()?;
        self.inner.write(&bytes[..bytes.len().min(self.most)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<R: Read> Read for Faulty<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call()?;
        let most = self.most.min(buffer.len());
        self.inner.read(&mut buffer[..most])
    }
}

#[test]
fn calls_may_fail_or_be_partial() {
    let bytes = small().to_bytes().unwrap();
    for most in [1, 7, usize::MAX] {
        let mut whole = Faulty::new(Vec::new(), most, 0, ErrorKind::Other);
        small().encode(&mut whole).ok().unwrap();
        assert_eq!(whole.inner, bytes);
        for failing in 1..=whole.calls {
            let mut interrupted = Faulty::new(Vec::new(), most, failing, ErrorKind::Interrupted);
            small().encode(&mut interrupted).ok().unwrap();
            assert_eq!(interrupted.inner, bytes);
            let mut full = Faulty::new(Vec::new(), most, failing, ErrorKind::StorageFull);
            assert!(small().encode(&mut full).is_err());
        }
        let len = bytes.len() as u64;
        let mut whole = Faulty::new(&bytes[..], most, 0, ErrorKind::Other);
        Bundle::decode(&mut whole, len, "model").ok().unwrap();
        for failing in 1..=whole.calls {
            let interrupted = Faulty::new(&bytes[..], most, failing, ErrorKind::Interrupted);
            let again = Bundle::decode(interrupted, len, "model").ok().unwrap();
            assert_eq!(again.to_bytes().unwrap(), bytes);
            let failed = Faulty::new(&bytes[..], most, failing, ErrorKind::PermissionDenied);
            assert!(Bundle::decode(failed, len, "model").is_err());
        }
    }
}
