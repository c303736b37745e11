//! Working memory that is made once per thread and not once per task.

use std::sync::{Mutex, PoisonError};

/// Pieces of working memory, lent to one task after the other. It makes as many as
/// there are tasks at the same time.
#[derive(Debug)]
pub struct ScratchPool<T, F> {
    free: Mutex<Vec<T>>,
    make: F,
}

impl<T, F: Fn() -> T> ScratchPool<T, F> {
    /// Empty; `make` makes a piece where none is free.
    pub fn new(make: F) -> Self {
        Self {
            free: Mutex::new(Vec::new()),
            make,
        }
    }

    /// Runs `work` with a piece that no other task has at the moment.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = free().pop();
        let mut scratch = scratch.unwrap_or_else(&self.make);
        let result = work(&mut scratch);
        free().push(scratch);
        result
    }
}
