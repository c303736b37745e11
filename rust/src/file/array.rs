//! Typed arrays and their little-endian bytes. [`Flat`] arrays may be part of a mapped file.

use std::io::{self, Read, Write};
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::tensor::Dtype;

use crate::simd::first_where;

/// Number of bytes that are converted at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// Maximum size of the floats of a model; see [`Bundle::take`](super::Bundle::take).
pub const LARGEST: f32 = 1e38;
/// Maximum size of the double precision floats of a model, which are counts and sums.
pub(super) const LARGEST_DOUBLE: f64 = 1e100;

/// An element type of model files. All bit patterns must be valid values.
pub trait Element: Copy + Sized + 'static {
    /// Type in safetensors.
    const DTYPE: Dtype;

    /// Returns the elements of `array`, or `array` itself if it has another type.
    fn from_array(array: Array) -> std::result::Result<Flat<Self>, Array>;
}

macro_rules! element_types {
    ($($variant:ident $type:ident),*) => {
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
                const DTYPE: Dtype = Dtype::$variant;

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

            impl From<&[$type]> for Array {
                fn from(elements: &[$type]) -> Self {
                    elements.to_vec().into()
                }
            }

            impl From<Vec<$type>> for Array {
                fn from(elements: Vec<$type>) -> Self {
                    Self::$variant(elements.into())
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

            /// Returns whether the array is part of a mapped file.
            pub(super) fn is_mapped(&self) -> bool {
                match self {
                    $(Self::$variant(elements) => elements.is_mapped(),)*
                }
            }

            /// The element type in safetensors.
            pub(super) fn dtype(&self) -> Dtype {
                match self {
                    $(Self::$variant(_) => Dtype::$variant,)*
                }
            }

            /// Writes the little-endian bytes of all elements.
            pub(super) fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
                let mut buffer = Vec::new();
                match self {
                    $(Self::$variant(elements) => for chunk in elements.chunks(CHUNK_BYTES / 8) {
                        const WIDTH: usize = size_of::<$type>();
                        buffer.resize(chunk.len() * WIDTH, 0);
                        for (bytes, element) in buffer.as_chunks_mut::<WIDTH>().0.iter_mut().zip(chunk) {
                            *bytes = element.to_le_bytes();
                        }
                        writer.write_all(&buffer)?;
                    })*
                }
                Ok(())
            }

            /// Reads `len` elements; None for another element type. The caller has checked the
            /// length of the source, which bounds the allocation.
            pub(super) fn read_from(
                dtype: Dtype,
                len: usize,
                reader: &mut impl Read,
            ) -> io::Result<Option<Self>> {
                match dtype {
                    $(Dtype::$variant => {
                        const WIDTH: usize = size_of::<$type>();
                        let mut elements = Vec::new();
                        elements.try_reserve_exact(len)?;
                        let mut buffer = Vec::new();
                        while elements.len() < len {
                            let n = (len - elements.len()).min(CHUNK_BYTES / WIDTH);
                            buffer.resize(n * WIDTH, 0);
                            reader.read_exact(&mut buffer)?;
                            let (chunks, _) = buffer.as_chunks::<WIDTH>();
                            elements.extend(chunks.iter().map(|&bytes| <$type>::from_le_bytes(bytes)));
                        }
                        Ok(Some(Self::$variant(elements.into())))
                    })*
                    _ => Ok(None),
                }
            }

            /// Returns `len` elements from byte `start` of a mapped file; None if they cannot be
            /// used in place.
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
    U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64
);

impl Array {
    /// Number of bytes of all elements.
    pub fn n_bytes(&self) -> usize {
        self.len() * self.width()
    }

    /// Number of bytes per element.
    pub(super) fn width(&self) -> usize {
        self.dtype().bitsize() / 8
    }

    /// Returns the position of the first float that is not finite or larger than learning allows.
    pub(super) fn first_out_of_bounds(&self) -> Option<usize> {
        let (single, double) = (-LARGEST..=LARGEST, -LARGEST_DOUBLE..=LARGEST_DOUBLE);
        match self {
            Self::F32(floats) => first_where(floats, |x| !single.contains(&x)),
            Self::F64(floats) => first_where(floats, |x| !double.contains(&x)),
            _ => None,
        }
    }
}

/// A flat array: a vector, or a part of a mapped model file.
///
/// Both dereference to a slice. [`to_mut`](Self::to_mut) copies a mapped array first.
#[derive(Debug)]
pub struct Flat<T: 'static>(Storage<T>);

#[derive(Debug)]
enum Storage<T: 'static> {
    Owned(Vec<T>),
    /// Exists only if `T` is an [`Element`]; see [`Flat::mapped`].
    Mapped {
        file: Arc<Mmap>,
        /// First byte, aligned for `T`; `len` elements from here are within the file.
        start: usize,
        len: usize,
    },
}

impl<T: Element> Flat<T> {
    /// Returns `len` elements of `file` from byte `start`; None if they are not aligned, not within
    /// the file, or of another byte order than the machine.
    pub(super) fn mapped(file: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let end = start.checked_add(len.checked_mul(size_of::<T>())?)?;
        let bytes = file.get(start..end)?;
        let is_aligned = bytes.as_ptr().cast::<T>().is_aligned();
        (is_aligned && cfg!(target_endian = "little")).then(|| {
            let file = Arc::clone(file);
            Self(Storage::Mapped { file, start, len })
        })
    }
}

impl<T> Flat<T> {
    /// Returns whether the array is part of a mapped file. Checks that would read all of it only
    /// to find damage are skipped.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped { .. })
    }
}

impl<T: Clone> Flat<T> {
    /// Returns the elements as a vector, copied if mapped.
    pub fn into_vec(mut self) -> Vec<T> {
        std::mem::take(self.to_mut())
    }

    /// Returns the vector for changes, copied if mapped.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if self.is_mapped() {
            self.0 = Storage::Owned(self.iter().cloned().collect());
        }
        match &mut self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped { .. } => unreachable!("copied above"),
        }
    }

    /// Returns a part of the array, which is a copy unless mapped.
    ///
    /// # Panics
    ///
    /// If the range is out of bounds.
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

    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped { file, start, len } => {
                debug_assert!(start + len * size_of::<T>() <= file.len());
                // SAFETY: `Flat::mapped` has checked alignment and bounds, and `part` stays within
                // them. `T` is an `Element`, for which all bit patterns are valid. The mapping
                // lives as long as `file`, and callers of `Bundle::map` guarantee that the file
                // does not change.
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

/// A clone of a mapped array uses the same mapping.
impl<T: Clone> Clone for Flat<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Storage::Owned(elements) => elements.clone().into(),
            Storage::Mapped { len, .. } => self.part(0..*len),
        }
    }
}

impl<T: PartialEq> PartialEq for Flat<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
