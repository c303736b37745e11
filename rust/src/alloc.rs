//! Memory whose size the input decides: an error where there is none. Other allocations are left to
//! the standard library, which ends the process; [`crate::memory`] checks before long work.

use crate::error::{Error, Result};

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
    fn no_memory_is_an_error() {
        for (n, width) in [(1 << 60, 1), (usize::MAX, 2)] {
            let error = try_alloc(n, width, 0u16).unwrap_err();
            assert!(matches!(error, Error::Memory(_)));
        }
        assert_eq!(try_alloc(3, 2, 1).unwrap(), [1; 6]);
        assert!(can_alloc(Some(1)) && !can_alloc(Some(1 << 60)) && !can_alloc(None));
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
