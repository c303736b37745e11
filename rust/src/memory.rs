//! Allocations whose size depends on the input: too large ones are an error before any work
//! begins. All other allocations abort the process if they fail, as usual in Rust.

use std::hint::black_box;

use sysinfo::System;

use crate::error::{Error, Result};

/// Allocates an array of `n` rows of `width` values.
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

/// Returns whether the allocator can provide `bytes` in one piece. None, an overflow, is false.
pub(crate) fn can_alloc(bytes: Option<usize>) -> bool {
    let mut trial = Vec::<u8>::new();
    let is_there = bytes.is_some_and(|bytes| trial.try_reserve_exact(bytes).is_ok());
    // The compiler would leave out an allocation that is not used.
    black_box(&trial);
    is_there
}

/// Asks the system for large pages if a vector's memory is large, because random reads then need
/// fewer page lookups. This has no effect besides speed.
pub(crate) fn prefer_large_pages<T>(memory: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        /// Smaller vectors gain nothing.
        const MIN_BYTES: usize = 4 << 20;
        /// A multiple of the page size of every system, as `madvise` requires for addresses.
        const PAGE_BYTES: usize = 1 << 16;
        let bytes = memory.capacity() * size_of::<T>();
        if bytes < MIN_BYTES {
            return;
        }
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE_BYTES);
        let len = bytes.saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the range is within the vector's memory, and the advice keeps its contents.
        let _ = unsafe {
            let start = start.wrapping_add(skipped).cast();
            rustix::mm::madvise(start, len, rustix::mm::Advice::LinuxHugepage)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Returns an error if this process cannot get `needed` more bytes. `needed` must be a lower bound
/// of the memory held at one time, so that nothing that would fit is refused. The message says
/// that `what` needs the memory and suggests `instead`.
pub(crate) fn check(needed: usize, what: &str, instead: &str) -> Result<()> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    match available() {
        Some(available) if needed as u64 > available => Err(Error::Memory(format!(
            "{what} need about {:.1} GiB of memory, {:.1} GiB are available; {instead}",
            gib(needed as u64),
            gib(available),
        ))),
        _ => Ok(()),
    }
}

/// Returns whether this process can get `needed` more bytes.
pub(crate) fn fits(needed: usize) -> bool {
    check(needed, "", "").is_ok()
}

/// Returns the bytes that this process can get besides those it holds: free memory, caches that
/// the system would release, and swap, within the limit of a container. None if unknown.
fn available() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let mut bytes = system.available_memory();
    if bytes == 0 {
        return None;
    }
    if let Some(limits) = system.cgroup_limits() {
        // Cached files count as used memory of a container, but the system releases them.
        bytes = bytes.min(limits.total_memory.saturating_sub(limits.rss));
    }
    Some(bytes + system.free_swap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_that_are_too_large_return_an_error() {
        for (n, width) in [(1 << 60, 1), (usize::MAX, 2)] {
            let error = try_alloc(n, width, 0u16).unwrap_err();
            assert!(matches!(error, Error::Memory(_)));
        }
        assert_eq!(try_alloc(3, 2, 1).unwrap(), [1; 6]);
        assert!(can_alloc(Some(1)) && !can_alloc(Some(1 << 60)) && !can_alloc(None));
    }

    #[test]
    fn large_pages_keep_the_contents_of_a_vector() {
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
    fn only_requests_that_cannot_fit_are_refused() {
        assert!(fits(1 << 16) && check(1 << 16, "", "").is_ok());
        assert!(!fits(usize::MAX));
        let error = check(1 << 60, "12 weights", "take fewer").unwrap_err();
        assert!(matches!(error, Error::Memory(_)));
        let message = error.to_string();
        assert!(
            message.starts_with("12 weights need about 1073741824.0 GiB of memory, "),
            "{message}"
        );
        assert!(
            message.ends_with(" GiB are available; take fewer"),
            "{message}"
        );
    }
}
