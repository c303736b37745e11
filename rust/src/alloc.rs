//! Memory for what a caller asked for, or an error where there is none: a
//! failed allocation would end the process.
//!
//! Learners grow their arrays deep within their loops, where no `Result` is handed on: there,
//! what finds no memory unwinds with an [`Error::Memory`], as a panic does but without its message,
//! and [`catch_no_memory`] makes the error of it. Small vectors are left to the standard library, which aborts.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::error::{Error, Result};

/// Ends the work, up to [`catch_no_memory`], for want of memory for `n` more elements.
#[cold]
fn give_up<T>(n: usize) -> ! {
    let each = size_of::<T>();
    let what = format!("no memory for {n} x {each} bytes more, which learning or predicting needs");
    resume_unwind(Box::new(Error::Memory(what)))
}

/// What `work` returns; the error where it found no memory. Other panics go on.
///
/// Python's calls do this by themselves. As after any panic, a model that was learning in place has
/// learned a part.
pub fn catch_no_memory<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match panic.downcast() {
        Ok(error) => Err(*error),
        Err(panic) => resume_unwind(panic),
    })
}

/// Room for `n` more elements, as [`Vec::reserve`] makes it.
#[inline]
pub(crate) fn reserve<T>(vec: &mut Vec<T>, n: usize) {
    if n > vec.capacity() - vec.len() && vec.try_reserve(n).is_err() {
        give_up::<T>(n);
    }
}

/// Room for `n` more elements and no others.
pub(crate) fn reserve_exact<T>(vec: &mut Vec<T>, n: usize) {
    if vec.try_reserve_exact(n).is_err() {
        give_up::<T>(n);
    }
}

/// An empty vector with room for `n` elements.
pub(crate) fn with_capacity<T>(n: usize) -> Vec<T> {
    let mut vec = Vec::new();
    reserve_exact(&mut vec, n);
    vec
}

/// [`Vec::push`]
#[inline]
pub(crate) fn push<T>(vec: &mut Vec<T>, value: T) {
    reserve(vec, 1);
    vec.push(value);
}

/// [`Vec::resize`]
#[inline]
pub(crate) fn resize<T: Clone>(vec: &mut Vec<T>, len: usize, value: T) {
    reserve(vec, len.saturating_sub(vec.len()));
    vec.resize(len, value);
}

/// [`Vec::extend`]
#[inline]
pub(crate) fn extend<T>(vec: &mut Vec<T>, values: impl IntoIterator<Item = T>) {
    let values = values.into_iter();
    let (least, most) = values.size_hint();
    reserve(vec, least);
    if most == Some(least) {
        vec.extend(values);
    } else {
        values.for_each(|value| push(vec, value));
    }
}

/// A vector of `n` times this value.
pub(crate) fn filled<T: Clone>(value: T, n: usize) -> Vec<T> {
    let mut vec = with_capacity(n);
    vec.resize(n, value);
    vec
}

/// A vector of `n` zeros: pages that are never written to take no memory.
pub(crate) fn zeros<T: bytemuck::Zeroable>(n: usize) -> Vec<T> {
    bytemuck::allocation::try_zeroed_vec(n).unwrap_or_else(|()| give_up::<T>(n))
}

/// [`Iterator::collect`]
pub(crate) fn collect<T>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let values = values.into_iter();
    let mut vec = with_capacity(values.size_hint().0);
    extend(&mut vec, values);
    vec
}

/// An array of `n` rows of `width` values.
pub(crate) fn try_alloc<T: Clone>(n: usize, width: usize, value: T) -> Result<Vec<T>> {
    let mut array = Vec::new();
    n.checked_mul(width)
        .filter(|&len| array.try_reserve_exact(len).is_ok())
        .map(|len| {
            array.resize(len, value);
            array
        })
        .ok_or_else(|| Error::Memory(format!("no memory for {n} x {width} results")))
}

/// Whether `bytes` could be had in one piece just now.
pub(crate) fn can_alloc(bytes: Option<usize>) -> bool {
    bytes.is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

/// Asks the system for large pages where a vector's memory is large: fewer of them have to be found
/// where it is read at random. What is in it does not change, nor does anything without them.
pub(crate) fn prefer_large_pages<T>(memory: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        /// Less is found quickly as it is.
        const LEAST_BYTES: usize = 4 << 20;
        /// A multiple of the size of pages on every system: other addresses would be refused.
        const PAGE: usize = 1 << 16;
        let bytes = memory.capacity() * size_of::<T>();
        if bytes < LEAST_BYTES {
            return;
        }
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        let len = bytes.saturating_sub(skipped) / PAGE * PAGE;
        // SAFETY: the range lies in the vector's memory, and the advice keeps what is there.
        let _ = unsafe {
            let start = start.wrapping_add(skipped).cast();
            rustix::mm::madvise(start, len, rustix::mm::Advice::LinuxHugepage)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_an_error_and_other_panics_stay() {
        const MUCH: usize = 1 << 60;
        type Ask = fn() -> usize;
        let asks: [Ask; 6] = [
            || with_capacity::<u16>(MUCH).len(),
            || filled(1u16, MUCH).len(),
            || zeros::<u16>(MUCH).len(),
            || collect((0..MUCH).map(|i| i as u16)).len(),
            || {
                let mut vec = vec![1u16];
                resize(&mut vec, MUCH, 0);
                vec.len()
            },
            || {
                let mut vec = vec![1u16];
                extend(&mut vec, std::iter::repeat_n(0, MUCH));
                vec.len()
            },
        ];
        for ask in asks {
            let error = catch_no_memory(|| Ok(ask())).unwrap_err();
            assert!(matches!(&error, Error::Memory(what) if what.contains(" x 2 bytes")));
        }
        assert_eq!(
            catch_no_memory(|| Ok(zeros::<u32>(3))).unwrap(),
            filled(0, 3)
        );
        assert!(matches!(
            catch_no_memory(|| Err::<(), _>(Error::Stopped)),
            Err(Error::Stopped)
        ));
        let panics =
            || catch_no_memory(|| -> Result<()> { std::panic::resume_unwind(Box::new("another")) });
        assert!(std::panic::catch_unwind(panics).is_err());
    }

    #[test]
    fn large_pages_change_nothing_that_a_vector_holds() {
        for len in [0, 1 << 10, 3 << 20] {
            let mut memory: Vec<u32> = (0..len).collect();
            memory.reserve_exact(len as usize);
            let place = memory.as_ptr();
            prefer_large_pages(&mut memory);
            assert_eq!(memory.as_ptr(), place);
            memory.extend(len..2 * len);
            assert!(memory.into_iter().eq(0..2 * len));
        }
    }
}
