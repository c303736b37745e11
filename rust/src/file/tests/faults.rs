//! Writers and readers whose calls fail, are interrupted or take little.

use std::io::{self, ErrorKind, Read, Write};

use super::*;

/// Takes or gives at most `most` bytes a call; call number `failing` ends in an error of `kind`.
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
fn each_call_may_fail_or_do_little() {
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
