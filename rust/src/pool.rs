//! Working memory that is kept between uses, because it is long to make.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Those that no thread is using. It belongs to what they are for: a copy of that begins with none.
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
    use super::*;

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
