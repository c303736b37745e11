//! Typed arrays and their little-endian bytes; [`Flat`] arrays may lie in a mapped file.

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::tensor::Dtype;

use super::Bundle;
use crate::error::Result;

/// How many bytes are converted at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// No float of a model is larger; see [`Bundle::take`](super::Bundle::take).
pub const LARGEST: f32 = 1e38;
/// The same of double precision, in which counts and sums are kept.
pub(super) const LARGEST_DOUBLE: f64 = 1e100;

/// An element type a model file can hold. Any bytes are one.
pub trait Element: Copy + Sized + 'static {
    /// The type's name in messages.
    const NAME: &'static str;

    /// The elements of `array`, or `array` again if they are of another type.
    fn from_array(array: Array) -> std::result::Result<Flat<Self>, Array>;
}

macro_rules! element_types {
    ($($variant:ident $type:ident $width:literal),*) => {
        /// A flat array of one of the element types of a model file.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Array {
            $(
                #[doc = concat!("Elements of type `", stringify!($type), "`.")]
                $variant(Flat<$type>),
            )*
        }

        $(
            impl Element for $type {
                const NAME: &'static str = stringify!($type);

                fn from_array(array: Array) -> std::result::Result<Flat<Self>, Array> {
                    match array {
                        Array::$variant(elements) => Ok(elements),
                        other => Err(other),
                    }
                }
            }

            impl From<Flat<$type>> for Array {
                fn from(elements: Flat<$type>) -> Self {
                    Self::$variant(elements)
                }
            }

            impl From<Vec<$type>> for Array {
                fn from(elements: Vec<$type>) -> Self {
                    Self::$variant(elements.into())
                }
            }

            impl From<&[$type]> for Array {
                fn from(elements: &[$type]) -> Self {
                    Self::$variant(elements.to_vec().into())
                }
            }
        )*

        impl Array {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(elements) => elements.len(),)*
                }
            }

            /// The element type's name.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$type>::NAME,)*
                }
            }

            /// Whether it lies in a file.
            pub(super) fn is_mapped(&self) -> bool {
                match self {
                    $(Self::$variant(elements) => elements.is_mapped(),)*
                }
            }

            /// Bytes per element.
            pub(super) fn width(&self) -> usize {
                match self {
                    $(Self::$variant(_) => $width,)*
                }
            }

            pub(super) fn dtype(&self) -> Dtype {
                match self {
                    $(Self::$variant(_) => Dtype::$variant,)*
                }
            }

            pub(super) fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
                let mut buffer = Vec::new();
                match self {
                    $(Self::$variant(elements) => for chunk in elements.chunks(CHUNK_BYTES / $width) {
                        buffer.resize(chunk.len() * $width, 0);
                        for (bytes, element) in buffer.chunks_exact_mut($width).zip(chunk) {
                            bytes.copy_from_slice(&element.to_le_bytes());
                        }
                        writer.write_all(&buffer)?;
                    })*
                }
                Ok(())
            }

            /// Reads `len` elements; `None` for an element type that no model
            /// has. The caller has made sure that the source is that long, which
            /// bounds the allocation.
            pub(super) fn read_from(
                dtype: Dtype,
                len: usize,
                reader: &mut impl Read,
            ) -> io::Result<Option<Self>> {
                match dtype {
                    $(Dtype::$variant => {
                        let mut elements = Vec::new();
                        elements.try_reserve_exact(len)?;
                        let mut buffer = Vec::new();
                        while elements.len() < len {
                            buffer.resize((len - elements.len()).min(CHUNK_BYTES / $width) * $width, 0);
                            reader.read_exact(&mut buffer)?;
                            elements.extend(buffer.chunks_exact($width).map(|bytes| {
                                let mut element = [0; $width];
                                element.copy_from_slice(bytes);
                                <$type>::from_le_bytes(element)
                            }));
                        }
                        Ok(Some(Self::$variant(elements.into())))
                    })*
                    _ => Ok(None),
                }
            }

            /// `len` elements that begin at byte `start` of a file, used where they lie; `None`
            /// where they cannot be.
            pub(super) fn mapped(
                dtype: Dtype,
                len: usize,
                file: &Arc<Mmap>,
                start: usize,
            ) -> Option<Self> {
                match dtype {
                    $(Dtype::$variant => Flat::mapped(file, start, len).map(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

element_types!(
    U8 u8 1, I8 i8 1, U16 u16 2, I16 i16 2, U32 u32 4, I32 i32 4, U64 u64 8, I64 i64 8, F32 f32 4,
    F64 f64 8
);

impl Array {
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first float that is not finite or beyond what learning makes.
    pub(super) fn first_out_of_bounds(&self) -> Option<usize> {
        // Without an early exit in a chunk, so that it vectorizes.
        match self {
            Self::F32(floats) => {
                let is_wrong = |x: &f32| !(-LARGEST..=LARGEST).contains(x);
                let all_fit = |chunk: &[f32]| !chunk.iter().fold(false, |any, x| any | is_wrong(x));
                if floats.chunks(CHUNK_BYTES).all(all_fit) {
                    return None;
                }
                floats.iter().position(is_wrong)
            }
            Self::F64(floats) => {
                let is_wrong = |x: &f64| !(-LARGEST_DOUBLE..=LARGEST_DOUBLE).contains(x);
                floats.iter().position(is_wrong)
            }
            _ => None,
        }
    }
}

/// A flat array: a vector, or a part of a model file that is mapped into memory and read
/// where it lies.
///
/// Reading is the same for both, by the slice that it dereferences to. What changes it
/// ([`to_mut`](Self::to_mut)) copies a mapped one first.
pub struct Flat<T: 'static>(Storage<T>);

enum Storage<T: 'static> {
    Owned(Vec<T>),
    /// Only of an [`Element`]; see [`Flat::mapped`].
    Mapped {
        file: Arc<Mmap>,
        /// First byte: aligned for `T`, and `len` elements lie within the file.
        start: usize,
        len: usize,
    },
}

impl<T: Element> Flat<T> {
    /// `len` elements of `file` from the byte `start` on; none where they are not aligned, do
    /// not lie in the file, or would have to be read in another order of bytes.
    pub(super) fn mapped(file: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let end = start.checked_add(len.checked_mul(size_of::<T>())?)?;
        let bytes = file.get(start..end)?;
        let is_aligned = bytes.as_ptr().cast::<T>().is_aligned();
        (is_aligned && cfg!(target_endian = "little")).then(|| {
            let file = Arc::clone(file);
            Self(Storage::Mapped { file, start, len })
        })
    }

    /// Stores the elements.
    pub fn put(elements: &Self, name: &str, bundle: &mut Bundle)
    where
        super::Array: From<Self>,
    {
        bundle.put(name, elements.clone());
    }

    /// Replaces `elements` by those stored.
    pub fn fill(elements: &mut Self, name: &str, bundle: &mut Bundle) -> Result<()> {
        *elements = bundle.take_flat(name, None)?;
        Ok(())
    }
}

impl<T> Flat<T> {
    /// Whether it lies in a file. Reading all of it would read the file, so what is only
    /// there to find damage leaves it out.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped { .. })
    }
}

impl<T: Clone> Flat<T> {
    /// As a vector, copied from the file if it lies there.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped { .. } => self.iter().cloned().collect(),
        }
    }

    /// The vector to be changed, copied from the file if it lies there.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if self.is_mapped() {
            self.0 = Storage::Owned(self.iter().cloned().collect());
        }
        match &mut self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped { .. } => unreachable!("a copy was made above"),
        }
    }

    /// A part: of a mapped array where it lies, else a copy.
    ///
    /// # Panics
    ///
    /// Where the range does not lie in the array, like a slice.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        match &self.0 {
            Storage::Owned(elements) => elements[range].to_vec().into(),
            Storage::Mapped { file, start, len } => {
                assert!(range.start <= range.end && range.end <= *len);
                Self(Storage::Mapped {
                    file: Arc::clone(file),
                    start: start + range.start * size_of::<T>(),
                    len: range.len(),
                })
            }
        }
    }
}

impl<T> Deref for Flat<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped { file, start, len } => {
                debug_assert!(start + len * size_of::<T>() <= file.len());
                // SAFETY: `Flat::mapped` has checked that so many elements lie there, aligned,
                // and `part` stays within them. T is an `Element`: any bytes are one. The
                // mapping lives as long as `file`, and whoever maps a file promises that nobody
                // changes it (`Bundle::map`).
                unsafe { std::slice::from_raw_parts(file.as_ptr().add(*start).cast(), *len) }
            }
        }
    }
}

impl<T> From<Vec<T>> for Flat<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Storage::Owned(elements))
    }
}

impl<T> FromIterator<T> for Flat<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<T> Default for Flat<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// A mapped one stays where it lies.
impl<T: Clone> Clone for Flat<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Storage::Owned(elements) => elements.clone().into(),
            Storage::Mapped { len, .. } => self.part(0..*len),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Flat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Flat<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for Flat<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        **self == *other
    }
}

impl<T> AsRef<[T]> for Flat<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<'a, T> IntoIterator for &'a Flat<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
