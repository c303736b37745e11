//! Memory whose size the input decides: an error where there is none, before any work. Other
//! allocations are left to the standard library, which ends the process.

use sysinfo::System;

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
        const MIN_BYTES: usize = 4 << 20;
        /// A multiple of the size of pages on every system: other addresses would be refused.
        const PAGE_BYTES: usize = 1 << 16;
        let bytes = memory.capacity() * size_of::<T>();
        if bytes < MIN_BYTES {
            return;
        }
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE_BYTES);
        let len = bytes.saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the range lies in the vector's memory, and the advice keeps what is there.
        let _ = unsafe {
            let start = start.wrapping_add(skipped).cast();
            rustix::mm::madvise(start, len, rustix::mm::Advice::LinuxHugepage)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// An error where `needed` bytes are more than this process can have. `needed` must be a lower
/// bound of what will be held at once, so that nothing is refused that would have fitted. `what`
/// names what needs it, `instead` what to do.
pub(crate) fn check(needed: usize, what: &str, instead: &str) -> Result<()> {
    compare(needed as u64, available(), what, instead)
}

/// Whether `needed` bytes can be had.
pub(crate) fn fits(needed: usize) -> bool {
    check(needed, "", "").is_ok()
}

/// Bytes that this process can have beside those it holds: free memory, what the system would
/// give up for it, and swap, within the limit of a container. None where the system does not tell.
fn available() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let mut bytes = system.available_memory();
    if bytes == 0 {
        return None;
    }
    if let Some(limits) = system.cgroup_limits() {
        // Less what processes hold; files in the cache give way.
        bytes = bytes.min(limits.total_memory.saturating_sub(limits.rss));
    }
    Some(bytes + system.free_swap())
}

fn compare(needed: u64, available: Option<u64>, what: &str, instead: &str) -> Result<()> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    match available {
        Some(available) if needed > available => Err(Error::Memory(format!(
            "{what} need about {:.1} GiB of memory, {:.1} GiB are available; {instead}",
            gib(needed),
            gib(available),
        ))),
        _ => Ok(()),
    }
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

    #[test]
    fn only_what_cannot_fit_is_refused() {
        let gib = 1 << 30;
        assert!(compare(gib, Some(gib), "weights", "").is_ok());
        assert!(compare(u64::MAX, None, "weights", "").is_ok());
        let error = compare(5 * gib / 2, Some(gib), "12 weights", "take fewer").unwrap_err();
        let expected = "12 weights need about 2.5 GiB of memory, 1.0 GiB are available; take fewer";
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, Error::Memory(_)));
        assert!(fits(1 << 16) && check(1 << 16, "", "").is_ok());
        assert!(!fits(usize::MAX) && check(usize::MAX, "", "").is_err());
    }
}
