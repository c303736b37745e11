//! Typed arrays and their little-endian bytes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::tensor::Dtype;

use super::Flat;

/// How many bytes are converted at a time.
const CHUNK: usize = 1 << 16;

/// No float of a model is larger; see [`Bundle::take`](super::Bundle::take).
pub const LARGEST: f32 = 1e38;
/// The same of double precision, in which counts and sums are kept.
pub(super) const LARGEST_DOUBLE: f64 = 1e100;

/// An element type a model file can hold. Any bytes are one.
pub trait Element: Copy + Sized + 'static {
    /// The type's name in messages.
    const NAME: &'static str;

    /// The elements of `array`, or `array` again if they are of another type.
    fn from_array(array: Array) -> Result<Flat<Self>, Array>;
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

                fn from_array(array: Array) -> Result<Flat<Self>, Array> {
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
                    $(Self::$variant(elements) => for chunk in elements.chunks(CHUNK / $width) {
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
                            buffer.resize((len - elements.len()).min(CHUNK / $width) * $width, 0);
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
                if floats.chunks(CHUNK).all(all_fit) {
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
