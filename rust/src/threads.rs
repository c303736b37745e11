//! Threads for one call.

use rayon::prelude::*;
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

/// What `of_number` makes of each number below `n`, in their order, or an error of one. Each thread
/// works with a worker of its own, on `least` numbers at a time at least. `is_parallel` is what
/// [`with_threads`] says.
pub fn map_with_worker<W, T: Send>(
    is_parallel: bool,
    (n, least): (usize, usize),
    new_worker: impl Fn() -> W + Sync + Send,
    of_number: impl Fn(&mut W, usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    if is_parallel {
        let numbers = (0..n).into_par_iter().with_min_len(least);
        return numbers.map_init(new_worker, of_number).collect();
    }
    let mut worker = new_worker();
    (0..n).map(|i| of_number(&mut worker, i)).collect()
}
