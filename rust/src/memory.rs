//! Whether there is memory for what a learner is about to do: better an error before any work than
//! a process that the system ends after an hour.

use sysinfo::System;

use crate::error::{Error, Result};

/// An error where `needed` bytes are more than this process can have. `needed` must be a lower
/// bound of what will be held at once, so that nothing is refused that would have fitted. `what`
/// names what needs it, `instead` what to do.
pub(crate) fn check(needed: usize, what: &str, instead: &str) -> Result<()> {
    compare(needed as u64, available(), what, instead)
}

/// Whether `needed` bytes can be had.
pub(crate) fn fits(needed: usize) -> bool {
    available().is_none_or(|available| needed as u64 <= available)
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
