//! Threads for one call.

use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Runs `work` where rayon's parallel iterators find `n_threads` threads.
///
/// The pool lives for this call alone: no global state, and a forked child
/// does not inherit a pool whose threads are gone. With one thread there is
/// no pool at all: `work` gets `false` and must not use rayon, which would
/// start its global pool.
pub fn with_threads<T: Send>(n_threads: usize, work: impl FnOnce(bool) -> T + Send) -> Result<T> {
    if n_threads <= 1 {
        return Ok(work(false));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|error| Error::data(format!("cannot start {n_threads} threads: {error}")))?;
    Ok(pool.install(|| work(true)))
}
