//! Bundles as bytes and files, in the layout that the module documentation describes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use crc32fast::Hasher;
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};

use super::array::Array;
use super::bundle::{Bundle, Head, UNNAMED};
use super::replace::Replacement;
use crate::error::{Error, Result};

/// Version of the file format that this crate reads and writes.
pub const VERSION: u32 = 3;

/// First bytes of a file. The first one is not text, and a conversion of line ends breaks the last.
const MAGIC: [u8; 8] = *b"\x89XMTREE\n";
/// Size of magic, version, padding and the length of the body.
const HEADER_BYTES: u64 = 24;
/// Size of the checksum.
const TRAILER_BYTES: u64 = 4;
/// Limit that safetensors sets for its header.
const MAX_INDEX_BYTES: u64 = 100_000_000;
/// Key of the only entry of the body's `__metadata__`.
const HEAD_KEY: &str = "xmtree";

/// Converts an error of the file `name`. Its kind is `InvalidData` if the contents are wrong.
fn in_file(error: io::Error, name: &str) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::ModelFile(format!("{name}: {error}")),
        // The length was compared first, so the file has shrunk since.
        ErrorKind::UnexpectedEof => {
            Error::ModelFile(format!("{name}: damaged model: it ends too early"))
        }
        _ => Error::io(name, error),
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

fn damaged(what: impl Display) -> io::Error {
    invalid(format!("damaged model: {what}; copy or save it again"))
}

impl Bundle {
    /// Returns the bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes)
            .map_err(|error| in_file(error, UNNAMED))?;
        Ok(bytes)
    }

    /// Reads the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::decode(bytes, bytes.len() as u64, UNNAMED).map_err(|error| in_file(error, UNNAMED))
    }

    /// Writes a model file atomically: a file at `path` stays until the new one is on the disk.
    pub fn write(&self, path: &Path) -> Result<()> {
        let write = || {
            let mut replacement = Replacement::begin(path)?;
            self.encode(&mut BufWriter::new(&mut replacement.file))?;
            replacement.finish()
        };
        write().map_err(|error| in_file(error, &path.to_string_lossy()))
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy();
        Self::read_file(path, &name).map_err(|error| in_file(error, &name))
    }

    /// Maps a model file into memory, so that arrays are read when they are needed. The checksum
    /// is not compared, because that would read all of the file. Files that are not regular, and
    /// arrays of another byte order, are read.
    ///
    /// The file must not change while the model exists: predictions could be wrong or panic, and
    /// truncating the file could end the process. [`write`](Self::write) is allowed, because it
    /// replaces the file and the mapping keeps the old one.
    pub fn map(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy();
        Self::map_file(path, &name).map_err(|error| in_file(error, &name))
    }

    fn map_file(path: &Path, name: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        // An empty file cannot be mapped.
        if !metadata.is_file() || metadata.len() == 0 {
            return Self::read_file(path, name);
        }
        // SAFETY: the caller guarantees that the file does not change.
        let file = Arc::new(unsafe { Mmap::map(&file) }?);
        let mut reader = Summing::new(&file[..]);
        let index = read_index(&mut reader, file.len() as u64)?;
        let mut rest = reader.inner;
        Self::from_index(&index, name, |info, len| {
            let start = file.len() - rest.len();
            let (_, after) = rest.split_at(info.data_offsets.1 - info.data_offsets.0);
            match Array::mapped(info.dtype, len, &file, start) {
                Some(array) => {
                    rest = after;
                    Ok(Some(array))
                }
                None => Array::read_from(info.dtype, len, &mut rest),
            }
        })
    }

    fn read_file(path: &Path, name: &str) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() {
            return Self::decode(BufReader::new(file), metadata.len(), name);
        }
        // The length of a pipe is unknown, and a device may have no end. So this reads as much as
        // the header promises, and one byte more to find out whether there is more.
        let mut bytes = Vec::new();
        (&mut file).take(HEADER_BYTES).read_to_end(&mut bytes)?;
        if let (true, Some((_, body))) = (bytes.starts_with(&MAGIC), bytes.split_last_chunk()) {
            let rest = u64::from_le_bytes(*body).saturating_add(TRAILER_BYTES + 1);
            file.take(rest).read_to_end(&mut bytes)?;
        }
        Self::decode(bytes.as_slice(), bytes.len() as u64, name)
    }

    pub(super) fn encode(&self, writer: &mut impl Write) -> io::Result<()> {
        let index = self.index()?;
        let mut writer = Summing::new(writer);
        writer.write_all(&MAGIC)?;
        writer.write_all(&VERSION.to_le_bytes())?;
        writer.write_all(&[0; 4])?;
        let data: usize = self.arrays.values().map(|a| a.len() * a.width()).sum();
        writer.write_all(&(8 + index.len() as u64 + data as u64).to_le_bytes())?;
        writer.write_all(&(index.len() as u64).to_le_bytes())?;
        writer.write_all(&index)?;
        for (_, array) in self.in_file_order() {
            array.write_to(&mut writer)?;
        }
        let checksum = writer.hasher.finalize();
        writer.inner.write_all(&checksum.to_le_bytes())?;
        writer.inner.flush()
    }

    /// Returns the arrays sorted by decreasing width of elements, which aligns all of them, and name.
    fn in_file_order(&self) -> Vec<(&String, &Array)> {
        let mut arrays: Vec<_> = self.arrays.iter().collect();
        arrays.sort_by_key(|(_, array)| std::cmp::Reverse(array.width()));
        arrays
    }

    /// Returns the JSON header of the body.
    fn index(&self) -> io::Result<Vec<u8>> {
        let unwritable = |why: &dyn Display| invalid(format!("cannot write the model: {why}"));
        let head = serde_json::to_string(&Head {
            kind: self.kind.clone(),
            meta: self.meta.clone(),
        })
        .map_err(|error| unwritable(&error))?;
        let mut offset = 0;
        let mut infos = Vec::with_capacity(self.arrays.len());
        for (name, array) in self.in_file_order() {
            let start = offset;
            offset += array.len() * array.width();
            let info = TensorInfo {
                dtype: array.dtype(),
                shape: vec![array.len()],
                data_offsets: (start, offset),
            };
            infos.push((name.clone(), info));
        }
        let index = Metadata::new(Some(HashMap::from([(HEAD_KEY.into(), head)])), infos)
            .map_err(|error| unwritable(&error))?;
        let mut index = serde_json::to_vec(&index).map_err(|error| unwritable(&error))?;
        index.resize(index.len().next_multiple_of(8), b' ');
        if index.len() as u64 > MAX_INDEX_BYTES {
            return Err(unwritable(&format_args!(
                "its metadata has {} bytes, at most {MAX_INDEX_BYTES} are allowed",
                index.len()
            )));
        }
        Ok(index)
    }

    /// Reads a model of `len` bytes. Every length in the file is compared with `len` before memory
    /// is allocated for it.
    pub(super) fn decode(reader: impl Read, len: u64, name: &str) -> io::Result<Self> {
        let mut reader = Summing::new(reader);
        let index = read_index(&mut reader, len)?;
        let bundle = Self::from_index(&index, name, |info, len| {
            Array::read_from(info.dtype, len, &mut reader)
        })?;
        let checksum = reader.hasher.clone().finalize();
        if u32::from_le_bytes(read_bytes(&mut reader)?) != checksum {
            return Err(damaged("its checksum does not match its contents"));
        }
        Ok(bundle)
    }

    /// Reads the metadata and the arrays that `index` lists. `read` returns the next array of the
    /// source.
    fn from_index(
        index: &Metadata,
        name: &str,
        mut read: impl FnMut(&TensorInfo, usize) -> io::Result<Option<Array>>,
    ) -> io::Result<Self> {
        let mut arrays = BTreeMap::new();
        for name in index.offset_keys() {
            let array = match index.info(&name) {
                Some(info) if info.shape.len() == 1 => read(info, info.shape[0])?,
                _ => None,
            };
            let array =
                array.ok_or_else(|| damaged(format_args!("array {name:?} is of unknown type")))?;
            arrays.insert(name, array);
        }
        let head = index.metadata().as_ref().and_then(|m| m.get(HEAD_KEY));
        let head = head.ok_or_else(|| damaged("it has no metadata"))?;
        let Head { kind, meta } = serde_json::from_str(head)
            .map_err(|error| damaged(format_args!("its metadata cannot be read ({error})")))?;
        Ok(Self {
            kind,
            meta,
            arrays,
            origin: name.into(),
        })
    }
}

/// Reads the part before the arrays of a model of `len` bytes.
fn read_index(reader: &mut impl Read, len: u64) -> io::Result<Metadata> {
    let body = read_header(reader, len)?;
    let index_len = u64::from_le_bytes(read_bytes(reader)?);
    if index_len > MAX_INDEX_BYTES || index_len > body - 8 {
        return Err(damaged("the length of its index is impossible"));
    }
    let mut index = Vec::new();
    reader.take(index_len).read_to_end(&mut index)?;
    let index: Metadata = serde_json::from_slice(&index)
        .map_err(|error| damaged(format_args!("its index cannot be read ({error})")))?;
    if index.data_len() as u64 != body - 8 - index_len {
        return Err(damaged("its arrays do not fill it"));
    }
    Ok(index)
}

/// Checks the header and returns the length of the body.
fn read_header(reader: &mut impl Read, len: u64) -> io::Result<u64> {
    if len == 0 {
        return Err(invalid("the file is empty, expected an xmtree model"));
    }
    let mut start = Vec::new();
    let mut head = reader.take(MAGIC.len() as u64);
    head.read_to_end(&mut start)?;
    if !MAGIC.starts_with(&start) {
        return Err(invalid(
            "not an xmtree model, or damaged in the first bytes",
        ));
    }
    if len < HEADER_BYTES + 8 + TRAILER_BYTES {
        return Err(damaged(format_args!("it ends after {len} bytes")));
    }
    let version = u32::from_le_bytes(read_bytes(reader)?);
    if version != VERSION {
        let advice = if version > VERSION {
            "upgrade xmtree"
        } else {
            "train it again"
        };
        return Err(invalid(format!(
            "the model has format version {version}, this xmtree reads version {VERSION}; {advice}"
        )));
    }
    let _padding: [u8; 4] = read_bytes(reader)?;
    let body = u64::from_le_bytes(read_bytes(reader)?);
    let expected = body.checked_add(HEADER_BYTES + TRAILER_BYTES);
    if expected != Some(len) || body < 8 {
        return Err(damaged(format_args!(
            "it has {len} bytes, its header promises {}",
            expected.map_or("far more".into(), |bytes| bytes.to_string())
        )));
    }
    Ok(body)
}

fn read_bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A reader or writer that computes the checksum of all bytes.
struct Summing<T> {
    inner: T,
    hasher: Hasher,
}

impl<T> Summing<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hasher: Hasher::new(),
        }
    }
}

impl<R: Read> Read for Summing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
