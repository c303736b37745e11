//! Memory for what a caller asked for, or an error where there is none: a
//! failed allocation would end the process.

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
        .ok_or_else(|| Error::data(format!("no memory for {n} x {width} results")))
}

/// Whether `bytes` could be had in one piece just now.
pub(crate) fn can_alloc(bytes: Option<usize>) -> bool {
    bytes.is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}
