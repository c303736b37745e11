//! Threads for one call, and working memory that is expensive to make and kept between uses.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use rayon::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Threads for each core, at most: more would only take memory and time to start.
const MAX_PER_CORE: usize = 4;

/// As many threads are started on any machine, if they are asked for.
const MAX_ON_ANY_MACHINE: usize = 16;

/// Runs `work` where rayon's parallel iterators find `n_threads` threads, or as many as make sense
/// on this machine.
///
/// The pool lives for this call alone: no global state, and a forked child
/// does not inherit a pool whose threads are gone. With one thread there is
/// no pool at all: `work` gets `false` and must not use rayon, which would
/// start its global pool.
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

/// `n_threads`, or as many as make sense on this machine: what needs memory for each thread is to
/// count these.
pub fn sensible(n_threads: usize) -> usize {
    let n_cores = available_parallelism().map_or(1, usize::from);
    n_threads.min(MAX_ON_ANY_MACHINE.max(MAX_PER_CORE * n_cores))
}

/// What `of_number` makes of each number below `n`, in their order, or an error of one. Each thread
/// works with a worker of its own on `each` numbers at a time: numbers that lie together may all take
/// long, as those of frequent labels do. `is_parallel` is what [`with_threads`] says.
pub fn map_with_worker<W: Send, T: Send>(
    is_parallel: bool,
    (n, each): (usize, usize),
    new_worker: impl Fn() -> W + Sync + Send,
    of_number: impl Fn(&mut W, usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    if !is_parallel {
        let mut worker = new_worker();
        return (0..n).map(|i| of_number(&mut worker, i)).collect();
    }
    let workers = Pool::default();
    let numbers = (0..n).into_par_iter().with_max_len(each);
    let mapped = numbers.map_init(
        || workers.lend(&new_worker),
        |worker, i| of_number(worker, i),
    );
    mapped.collect()
}

/// A pool of scratch buffers that no thread is using. A copy of their owner begins with none.
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    /// One until it is dropped; a `new` one where all are in use.
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

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

/// What goes back to its pool, if it has one.
pub struct Lent<'a, T> {
    pool: Option<&'a Pool<T>>,
    /// Always there until it is dropped.
    item: Option<T>,
}

impl<T> Lent<'_, T> {
    /// For one use alone.
    pub fn alone(item: T) -> Self {
        Self {
            pool: None,
            item: Some(item),
        }
    }
}

impl<T: Default> Default for Lent<'_, T> {
    fn default() -> Self {
        Self::alone(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Lent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.item.fmt(f)
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("it is there until it is dropped")
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // What a panic left half done is not used again.
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
    fn numbers_come_in_their_order() {
        for (n, each, n_threads) in [(0, 1, 2), (1000, 1, 3), (1000, 7, 2), (5, 8, 2), (9, 2, 1)] {
            let workers = AtomicUsize::new(0);
            let new = || workers.fetch_add(1, Ordering::Relaxed);
            let mapped = with_threads(n_threads, |is_parallel| {
                map_with_worker(is_parallel, (n, each), new, |_, i| Ok(3 * i))
            });
            let wanted: Vec<usize> = (0..n).map(|i| 3 * i).collect();
            assert_eq!(mapped.unwrap().unwrap(), wanted);
            assert!(workers.into_inner() <= n_threads);
        }
    }

    #[test]
    fn no_more_threads_start_than_make_sense() {
        let started = with_threads(1_000_000, |_| rayon::current_num_threads());
        assert_eq!(started.unwrap(), sensible(usize::MAX));
        assert_eq!(
            with_threads(3, |_| rayon::current_num_threads()).unwrap(),
            3
        );
    }

    #[test]
    fn an_error_ends_it() {
        let of_number = |(): &mut (), i| if i == 10 { Err(Error::Stopped) } else { Ok(i) };
        for n_threads in [1, 2] {
            let mapped = with_threads(n_threads, |is_parallel| {
                map_with_worker(is_parallel, (1000, 1), || (), of_number)
            });
            assert!(matches!(mapped.unwrap(), Err(Error::Stopped)));
        }
    }

    #[test]
    fn what_was_lent_is_lent_again() {
        let pool = Pool::default();
        {
            let (mut first, second) = (pool.lend(|| 1), pool.lend(|| 2));
            *first += 10;
            assert_eq!((*first, *second), (11, 2));
        }
        // In the order of their return, the last first: variables are dropped last to first.
        let (first, second, third) = (pool.lend(|| 3), pool.lend(|| 3), pool.lend(|| 3));
        assert_eq!((*first, *second, *third), (11, 2, 3));
        drop(Lent::alone(7));
        assert_eq!(*pool.lend(|| 8), 8);
        assert_eq!(*pool.clone().lend(|| 9), 9);
    }

    #[test]
    fn what_a_panic_left_is_thrown_away() {
        let pool = Pool::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _item = pool.lend(|| 1);
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*pool.lend(|| 2), 2);
    }
}
