//! Borrowed arrays of indices and values, of either width.

/// Borrowed indices, 32 or 64 bits wide: scipy uses either, by size.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    /// 32-bit.
    I32(&'a [i32]),
    /// 64-bit.
    I64(&'a [i64]),
}

impl Indices<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::I32(slice) => slice.len(),
            Self::I64(slice) => slice.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `at`, which has been checked to be non-negative.
    pub(crate) fn get(&self, at: usize) -> usize {
        match self {
            Self::I32(slice) => slice[at] as usize,
            Self::I64(slice) => slice[at] as usize,
        }
    }

    pub(crate) fn raw(&self, at: usize) -> i64 {
        match self {
            Self::I32(slice) => i64::from(slice[at]),
            Self::I64(slice) => slice[at],
        }
    }
}

/// Borrowed feature values, single or double precision.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision, rounded to single as rows are read.
    F64(&'a [f64]),
}

impl Values<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(slice) => slice.len(),
            Self::F64(slice) => slice.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the first value stands that single precision cannot hold as a
    /// finite number, or as NaN where values may be missing.
    pub(super) fn first_unusable(&self, may_be_missing: bool) -> Option<usize> {
        // One sum over a chunk is not finite if any of its values is not;
        // only then is the chunk looked at value by value.
        match (self, may_be_missing) {
            (Self::F32(slice), false) => first_where(slice, |v| !v.is_finite()),
            (Self::F64(slice), false) => first_where(slice, |v| !(v as f32).is_finite()),
            (Self::F32(slice), true) => first_where(slice, f32::is_infinite),
            (Self::F64(slice), true) => first_where(slice, |v| (v as f32).is_infinite()),
        }
    }

    pub(super) fn raw(&self, at: usize) -> f64 {
        match self {
            Self::F32(slice) => f64::from(slice[at]),
            Self::F64(slice) => slice[at],
        }
    }
}

fn first_where<T: Copy>(slice: &[T], bad: impl Fn(T) -> bool) -> Option<usize> {
    const CHUNK: usize = 64;
    for (c, chunk) in slice.chunks(CHUNK).enumerate() {
        // No early exit inside a chunk, so that the test vectorises.
        if chunk.iter().fold(false, |any, &v| any | bad(v)) {
            return chunk.iter().position(|&v| bad(v)).map(|at| c * CHUNK + at);
        }
    }
    None
}
