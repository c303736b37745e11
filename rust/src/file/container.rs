//! Bundles as bytes and as files; the layout is in the module's head.

use std::collections::{BTreeMap, HashMap};
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

/// The newest version of the file format this crate reads, and the one it writes.
pub const VERSION: u32 = 3;

/// Not text (the first byte), and broken by any conversion of line ends.
const MAGIC: [u8; 8] = *b"\x89XMTREE\n";
/// Magic, version, padding, length of the body.
const HEADER: u64 = 24;
/// The checksum.
const TRAILER: u64 = 4;
/// What safetensors allows its own header to be.
const MAX_INDEX: u64 = 100_000_000;
/// The one entry of the body's `__metadata__`.
const HEAD_KEY: &str = "xmtree";

pub(super) type Streamed<T> = std::result::Result<T, Trouble>;

/// What can go wrong while bytes stream; the caller knows the file's name.
pub(super) enum Trouble {
    System(io::Error),
    Contents(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The length was compared first, so the file shrank since.
            ErrorKind::UnexpectedEof => Self::contents("damaged model: it ends too early"),
            _ => Self::System(error),
        }
    }
}

impl Trouble {
    fn contents(what: impl Into<String>) -> Self {
        Self::Contents(what.into())
    }

    fn in_file(self, name: &str) -> Error {
        match self {
            Self::System(error) => Error::io(name, error),
            Self::Contents(what) => Error::ModelFile(format!("{name}: {what}")),
        }
    }
}

impl Bundle {
    /// The bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes)
            .map_err(|trouble| trouble.in_file(UNNAMED))?;
        Ok(bytes)
    }

    /// Reads the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::decode(bytes, bytes.len() as u64, UNNAMED).map_err(|trouble| trouble.in_file(UNNAMED))
    }

    /// Writes a model file, whole or not at all: whatever stood there before
    /// stays until the new file is safely on the disk.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.write_file(path)
            .map_err(|trouble| trouble.in_file(&path.to_string_lossy()))
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy();
        Self::read_file(path, &name).map_err(|trouble| trouble.in_file(&name))
    }

    /// Opens a model file whose arrays are used where they lie, so that only what is needed is
    /// read, when it is needed. The checksum is not compared: it would take reading all of it.
    /// What is no regular file, or lies there in another order of bytes, is read.
    ///
    /// The file must not be changed while the model lives: a model that reads other numbers
    /// than those it has checked may answer wrongly, panic, or end the process if the file was
    /// cut. Replacing it by [`write`](Self::write) is no change, as the old one stays until
    /// nobody uses it any more.
    pub fn map(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy();
        Self::map_file(path, &name).map_err(|trouble| trouble.in_file(&name))
    }

    fn map_file(path: &Path, name: &str) -> Streamed<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        // An empty file cannot be mapped.
        if !metadata.is_file() || metadata.len() == 0 {
            return Self::read_file(path, name);
        }
        // SAFETY: that nobody changes the file meanwhile is what the caller promises.
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

    fn write_file(&self, path: &Path) -> Streamed<()> {
        let mut replacement = Replacement::begin(path)?;
        self.encode(&mut BufWriter::new(&mut replacement.file))?;
        Ok(replacement.finish()?)
    }

    fn read_file(path: &Path, name: &str) -> Streamed<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() {
            return Self::decode(BufReader::new(file), metadata.len(), name);
        }
        // A pipe does not say how long it is, and a device may have no end: what the header promises
        // is read, and a byte that shows whether there is more.
        let mut bytes = Vec::new();
        (&mut file).take(HEADER).read_to_end(&mut bytes)?;
        if let (true, Some((_, body))) = (bytes.starts_with(&MAGIC), bytes.split_last_chunk()) {
            let rest = u64::from_le_bytes(*body).saturating_add(TRAILER + 1);
            file.take(rest).read_to_end(&mut bytes)?;
        }
        Self::decode(bytes.as_slice(), bytes.len() as u64, name)
    }

    pub(super) fn encode(&self, writer: &mut impl Write) -> Streamed<()> {
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
        Ok(writer.inner.flush()?)
    }

    /// Wide elements first, so that all arrays are aligned; then by name.
    fn in_file_order(&self) -> Vec<(&String, &Array)> {
        let mut arrays: Vec<_> = self.arrays.iter().collect();
        arrays.sort_by_key(|(_, array)| std::cmp::Reverse(array.width()));
        arrays
    }

    /// The JSON header of the body.
    fn index(&self) -> Streamed<Vec<u8>> {
        let unwritable = |why: String| Trouble::contents(format!("cannot be written: {why}"));
        let head = serde_json::to_string(&Head {
            kind: self.kind.clone(),
            meta: self.meta.clone(),
        })
        .map_err(|error| unwritable(error.to_string()))?;
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
            .map_err(|error| unwritable(error.to_string()))?;
        let mut index =
            serde_json::to_vec(&index).map_err(|error| unwritable(error.to_string()))?;
        index.resize(index.len().next_multiple_of(8), b' ');
        if index.len() as u64 > MAX_INDEX {
            return Err(unwritable(format!(
                "its metadata takes {} bytes, at most {MAX_INDEX} are allowed",
                index.len()
            )));
        }
        Ok(index)
    }

    /// Reads a model of `len` bytes. Every length read from the file is compared
    /// with `len` before anything is allocated for it.
    pub(super) fn decode(reader: impl Read, len: u64, name: &str) -> Streamed<Self> {
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

    /// The arrays that `index` lists, each of which `read` takes from where the last one ended,
    /// and the metadata.
    fn from_index(
        index: &Metadata,
        name: &str,
        mut read: impl FnMut(&TensorInfo, usize) -> io::Result<Option<Array>>,
    ) -> Streamed<Self> {
        let mut arrays = BTreeMap::new();
        for name in index.offset_keys() {
            let array = match index.info(&name) {
                Some(info) if info.shape.len() == 1 => read(info, info.shape[0])?,
                _ => None,
            };
            let array =
                array.ok_or_else(|| damaged(&format!("array {name:?} is of no known type")))?;
            arrays.insert(name, array);
        }
        let head = index.metadata().as_ref().and_then(|m| m.get(HEAD_KEY));
        let head = head.ok_or_else(|| damaged("it has no metadata"))?;
        let Head { kind, meta } = serde_json::from_str(head)
            .map_err(|error| damaged(&format!("its metadata cannot be read ({error})")))?;
        Ok(Self {
            kind,
            meta,
            arrays,
            origin: name.into(),
        })
    }
}

/// Reads everything before the arrays of a model of `len` bytes.
fn read_index(reader: &mut impl Read, len: u64) -> Streamed<Metadata> {
    let body = read_header(reader, len)?;
    let index_len = u64::from_le_bytes(read_bytes(reader)?);
    if index_len > MAX_INDEX || index_len > body - 8 {
        return Err(damaged("the length of its index is impossible"));
    }
    let mut index = Vec::new();
    reader.take(index_len).read_to_end(&mut index)?;
    let index: Metadata = serde_json::from_slice(&index)
        .map_err(|error| damaged(&format!("its index cannot be read ({error})")))?;
    if index.data_len() as u64 != body - 8 - index_len {
        return Err(damaged("its arrays do not fill it"));
    }
    Ok(index)
}

/// Checks the header against the length of the file, gives that of the body.
fn read_header(reader: &mut impl Read, len: u64) -> Streamed<u64> {
    let foreign = || Trouble::contents("not an xmtree model, or damaged at its very beginning");
    if len == 0 {
        return Err(Trouble::contents("empty, where a model was expected"));
    }
    if len < HEADER + 8 + TRAILER {
        let mut start = Vec::new();
        reader.take(MAGIC.len() as u64).read_to_end(&mut start)?;
        return Err(if MAGIC.starts_with(&start) {
            damaged(&format!("it ends after {len} bytes"))
        } else {
            foreign()
        });
    }
    if read_bytes(reader)? != MAGIC {
        return Err(foreign());
    }
    let version = u32::from_le_bytes(read_bytes(reader)?);
    if version > VERSION {
        return Err(Trouble::contents(format!(
            "model of format version {version}, this xmtree reads up to {VERSION}; \
             upgrade xmtree to load it"
        )));
    }
    if version == 0 {
        return Err(damaged("its format version is 0"));
    }
    if version < VERSION {
        return Err(Trouble::contents(format!(
            "model of format version {version}, this xmtree reads version {VERSION} only; \
             train it again"
        )));
    }
    let _padding: [u8; 4] = read_bytes(reader)?;
    let body = u64::from_le_bytes(read_bytes(reader)?);
    let expected = body.checked_add(HEADER + TRAILER);
    if expected != Some(len) || body < 8 {
        return Err(damaged(&format!(
            "it has {len} bytes, its header promises {}",
            expected.map_or("far more".into(), |bytes| bytes.to_string())
        )));
    }
    Ok(body)
}

fn damaged(what: &str) -> Trouble {
    Trouble::Contents(format!("damaged model: {what}; copy or save it again"))
}

fn read_bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Sums up what is read or written.
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
