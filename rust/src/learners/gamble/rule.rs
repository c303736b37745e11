//! Splits as the training rows see them: which codes of which column go left.

/// A set of codes below 256, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Subset([u64; 4]);

impl Subset {
    #[inline]
    pub fn contains(&self, code: u32) -> bool {
        code < 256 && self.0[code as usize / 64] >> (code % 64) & 1 == 1
    }

    /// Adds `code`, which is below 256.
    pub fn insert(&mut self, code: u32) {
        self.0[code as usize / 64] |= 1 << (code % 64);
    }

    /// The codes that are in this set, but not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

/// The codes up to `last_left` go left, and missing values as `missing_left` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    pub last_left: u32,
    /// Between the values of the codes.
    pub value: f32,
    /// The code of missing values.
    pub missing: Option<u32>,
    pub missing_left: bool,
}

/// Which codes go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    Threshold(Threshold),
    Subset(Subset),
}

impl Rule {
    #[inline]
    pub fn goes_left(&self, code: u32) -> bool {
        match self {
            Self::Threshold(cut) if Some(code) == cut.missing => cut.missing_left,
            Self::Threshold(cut) => code <= cut.last_left,
            Self::Subset(left) => left.contains(code),
        }
    }
}

/// A split of a node in two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    pub column: u32,
    pub rule: Rule,
    /// By how much it raises sum_k W_k^2 / W, which is by how much it lowers the
    /// squared error, a constant aside.
    pub gain: f64,
}
