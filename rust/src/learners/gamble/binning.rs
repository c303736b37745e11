//! The values of one feature as small integers, its codes: equal values have equal
//! codes, and the greater of two codes stands for the greater values. O(n log n) a feature.

use super::params::Splits;
use crate::error::{Error, Result};

/// Groups of neighbouring values, at most, where splits are binned. With the missing
/// values they fit into a byte.
const BINS: usize = 255;

/// Names that a categorical column may hold: subsets of them are four words of bits.
const CATEGORIES: usize = 255;

/// What the codes of one feature stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Coding {
    /// Smallest and largest value of each code, rising.
    pub spans: Vec<(f32, f32)>,
    pub categorical: bool,
    /// Whether a value was missing; their code is the one after the last.
    pub missing: bool,
}

impl Coding {
    /// Codes for the values that `present` holds. NaN is a missing value; `zeros`
    /// more values are 0.
    pub fn of(
        feature: usize,
        present: &[f32],
        zeros: usize,
        splits: Splits,
        categorical: bool,
    ) -> Result<Self> {
        let mut values: Vec<f32> = present.iter().copied().filter(|v| !v.is_nan()).collect();
        let missing = values.len() < present.len();
        values.sort_unstable_by(f32::total_cmp);
        let (below, above) = values.split_at(values.partition_point(|&v| v < 0.0));
        let count = |sorted| <[f32]>::chunk_by(sorted, f32::eq).map(|same| (same[0], same.len()));
        let zero = (zeros > 0).then_some((0.0, zeros));
        let distinct: Vec<(f32, usize)> = count(below).chain(zero).chain(count(above)).collect();
        if categorical && distinct.len() > CATEGORIES {
            return Err(Error::data(format!(
                "column {feature} has {} categories; a categorical feature may have at most \
                 {CATEGORIES}",
                distinct.len()
            )));
        }
        let spans = if splits == Splits::Exact || distinct.len() <= BINS {
            distinct.iter().map(|&(value, _)| (value, value)).collect()
        } else {
            bins(&distinct)
        };
        Ok(Self {
            spans,
            categorical,
            missing,
        })
    }

    /// The code of a value that was there when the codes were made.
    pub fn code(&self, value: f32) -> u32 {
        if value.is_nan() {
            return self.spans.len() as u32;
        }
        self.spans.partition_point(|&(_, high)| high < value) as u32
    }

    /// Number of codes, that of missing values included.
    pub fn n_codes(&self) -> usize {
        self.spans.len() + usize::from(self.missing)
    }

    pub fn missing_code(&self) -> Option<u32> {
        self.missing.then_some(self.spans.len() as u32)
    }

    /// Where to cut between the codes `low` and `high`, two neighbours among the rows
    /// of a node: the last code to the left, and the threshold (value <= threshold goes
    /// left). It is in the middle, or where that is inside a group, at its nearer end.
    pub fn cut(&self, low: u32, high: u32) -> (u32, f32) {
        let (low, high) = (low as usize, high as usize);
        let gap = |at: usize, next: usize| midpoint(self.spans[at].1, self.spans[next].0);
        let middle = gap(low, high);
        let at = low + self.spans[low + 1..high].partition_point(|&(from, _)| from <= middle);
        let (from, to) = self.spans[at];
        if to <= middle {
            (at as u32, middle)
        } else if f64::from(middle) - f64::from(from) < f64::from(to) - f64::from(middle) {
            (at as u32 - 1, gap(at - 1, at))
        } else {
            (at as u32, gap(at, at + 1))
        }
    }
}

/// A number from `a` on, but below `b`, in the middle if there is one.
fn midpoint(a: f32, b: f32) -> f32 {
    let middle = f64::midpoint(f64::from(a), f64::from(b)) as f32;
    if middle < b {
        middle
    } else {
        a
    }
}

/// [`BINS`] groups of neighbouring values, one after the other: each takes its share of the rows
/// that are left, divided by the groups that are left.
fn bins(distinct: &[(f32, usize)]) -> Vec<(f32, f32)> {
    let mut left: usize = distinct.iter().map(|&(_, n)| n).sum();
    let mut spans = Vec::with_capacity(BINS);
    let mut at = 0;
    while at < distinct.len() {
        let groups = BINS - spans.len();
        let share = left as f64 / groups as f64;
        let first = at;
        let mut taken = 0;
        // One value at least; the next as long as it brings the group nearer to its share.
        while at < distinct.len()
            && (at == first || taken as f64 + distinct[at].1 as f64 / 2.0 <= share)
            && distinct.len() - at >= groups
        {
            taken += distinct[at].1;
            at += 1;
        }
        left -= taken;
        spans.push((distinct[first].0, distinct[at - 1].0));
    }
    spans
}
