//! Thread pools that live for one call, and pools of scratch buffers that are expensive to allocate.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use rayon::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Maximum number of threads per core. More threads only cost memory and time to start.
const MAX_PER_CORE: usize = 4;

/// Number of threads that is allowed on any machine.
const MAX_ON_ANY_MACHINE: usize = 16;

/// Runs `work` in a rayon pool of [`sensible(n_threads)`](sensible) threads.
///
/// The pool lives for this call only, so there is no global state, and a forked child does not
/// inherit a pool without threads. With one thread there is no pool: `work` gets `false` and must
/// not use rayon, which would start its global pool.
pub fn with_threads<T: Send>(n_threads: usize, work: impl FnOnce(bool) -> T + Send) -> Result<T> {
    if n_threads <= 1 {
        return Ok(work(false));
    }
    let n_threads = sensible(n_threads);
    let pool = ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|error| Error::Threads(format!("cannot start {n_threads} threads: {error}")))?;
    Ok(pool.install(|| work(true)))
}

/// Returns `n_threads`, limited to a sensible number for this machine. Estimates of memory per
/// thread must use this number.
pub fn sensible(n_threads: usize) -> usize {
    let n_cores = available_parallelism().map_or(1, usize::from);
    n_threads.min(MAX_ON_ANY_MACHINE.max(MAX_PER_CORE * n_cores))
}

/// Returns `map(worker, i)` for each `i` below `n`, in order, or an error of one of them. Each
/// thread has its own worker and takes `each` numbers at a time; neighbors may all take long, such
/// as frequent labels. `is_parallel` is the argument that [`with_threads`] passes.
pub fn map_with_worker<W: Send, T: Send>(
    is_parallel: bool,
    (n, each): (usize, usize),
    new_worker: impl Fn() -> W + Sync + Send,
    map: impl Fn(&mut W, usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    if !is_parallel {
        let mut worker = new_worker();
        return (0..n).map(|i| map(&mut worker, i)).collect();
    }
    let workers = Pool::default();
    let numbers = (0..n).into_par_iter().with_max_len(each);
    let mapped = numbers.map_init(|| workers.lend(&new_worker), |worker, i| map(worker, i));
    mapped.collect()
}

/// Returns `map(start, chunk)` for each chunk of `size` of the `items`, in order. The chunks do not
/// depend on the number of threads.
pub fn map_chunks<A: Sync, T: Send>(
    is_parallel: bool,
    items: &[A],
    size: usize,
    map: impl Fn(usize, &[A]) -> T + Sync + Send,
) -> Vec<T> {
    let map = |(i, chunk)| map(i * size, chunk);
    if is_parallel {
        items.par_chunks(size).enumerate().map(map).collect()
    } else {
        items.chunks(size).enumerate().map(map).collect()
    }
}

/// A pool of scratch buffers that no thread is using. A clone is empty.
#[derive(Debug)]
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    /// Lends a buffer, which is not kept afterwards unless `is_kept`.
    pub fn lend_if(&self, is_kept: bool, new: impl FnOnce() -> T) -> Lent<'_, T> {
        if is_kept {
            self.lend(new)
        } else {
            Lent::alone(new())
        }
    }

    /// Lends a buffer until it is dropped; creates a `new` one if all are in use.
    pub fn lend(&self, new: impl FnOnce() -> T) -> Lent<'_, T> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lent {
            pool: Some(self),
            item: Some(free.unwrap_or_else(new)),
        }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A buffer that returns to its pool, if it has one, when it is dropped.
#[derive(Debug)]
pub struct Lent<'a, T> {
    pool: Option<&'a Pool<T>>,
    /// None only during `drop`.
    item: Option<T>,
}

impl<T> Lent<'_, T> {
    /// Wraps a buffer that belongs to no pool.
    pub fn alone(item: T) -> Self {
        Self {
            pool: None,
            item: Some(item),
        }
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("present until dropped")
    }
}

impl<T> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("present until dropped")
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // A panic may leave the buffer in an inconsistent state.
        if std::thread::panicking() {
            return;
        }
        if let (Some(pool), Some(item)) = (self.pool, self.item.take()) {
            pool.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_in_order() {
        for (n, each, n_threads) in [(0, 1, 2), (1000, 1, 3), (1000, 7, 2), (5, 8, 2), (9, 2, 1)] {
            let workers = AtomicUsize::new(0);
            let new = || workers.fetch_add(1, Ordering::Relaxed);
            let mapped = with_threads(n_threads, |is_parallel| {
                map_with_worker(is_parallel, (n, each), new, |_, i| Ok(3 * i))
            });
            let expected: Vec<usize> = (0..n).map(|i| 3 * i).collect();
            assert_eq!(mapped.unwrap().unwrap(), expected);
            assert!(workers.into_inner() <= n_threads);
        }
    }

    #[test]
    fn the_number_of_threads_is_limited() {
        let started = with_threads(1_000_000, |_| rayon::current_num_threads());
        assert_eq!(started.unwrap(), sensible(usize::MAX));
        assert_eq!(
            with_threads(3, |_| rayon::current_num_threads()).unwrap(),
            3
        );
    }

    #[test]
    fn errors_are_returned() {
        let map = |(): &mut (), i| if i == 10 { Err(Error::Stopped) } else { Ok(i) };
        for n_threads in [1, 2] {
            let mapped = with_threads(n_threads, |is_parallel| {
                map_with_worker(is_parallel, (1000, 1), || (), map)
            });
            assert!(matches!(mapped.unwrap(), Err(Error::Stopped)));
        }
    }

    #[test]
    fn returned_buffers_are_lent_again() {
        let pool = Pool::default();
        {
            let (mut first, second) = (pool.lend(|| 1), pool.lend(|| 2));
            *first += 10;
            assert_eq!((*first, *second), (11, 2));
        }
        // Variables are dropped last to first, and the last returned buffer is lent first.
        let (first, second, third) = (pool.lend(|| 3), pool.lend(|| 3), pool.lend(|| 3));
        assert_eq!((*first, *second, *third), (11, 2, 3));
        drop(Lent::alone(7));
        assert_eq!(*pool.lend(|| 8), 8);
        assert_eq!(*pool.clone().lend(|| 9), 9);
    }

    #[test]
    fn a_panic_discards_the_buffer() {
        let pool = Pool::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _item = pool.lend(|| 1);
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*pool.lend(|| 2), 2);
    }
}
