//! Arrays that may lie in a file.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;

use super::{Bundle, Element};
use crate::alloc::collect;
use crate::error::Result;

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
        *elements = bundle.take_flat(name)?;
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
            Storage::Mapped { .. } => collect(self.iter().cloned()),
        }
    }

    /// The vector to be changed, copied from the file if it lies there.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if self.is_mapped() {
            self.0 = Storage::Owned(collect(self.iter().cloned()));
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
            Storage::Owned(elements) => collect(elements[range].iter().cloned()).into(),
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
        collect(elements).into()
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
            Storage::Owned(elements) => collect(elements.iter().cloned()).into(),
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
