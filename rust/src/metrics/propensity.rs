//! How likely it is that a label which is true was also written down: rare labels
//! are missed more often, so that a hit on one is worth more.
//!
//! H. Jain, Y. Prabhu, M. Varma, *Extreme Multi-label Loss Functions for
//! Recommendation, Tagging, Ranking & Other Missing Label Applications*, KDD 2016.

use crate::error::{Error, Result};

/// p_l = 1 / (1 + C (N_l + b)^-a) with C = (ln N - 1)(b + 1)^a, where N is the number
/// of training rows and `counts` holds N_l, how many of them carry label l.
///
/// C is not let below 0, which it would be for N < 3: a propensity is at most 1.
pub fn propensities(counts: &[i64], n_rows: usize, a: f64, b: f64) -> Result<Vec<f64>> {
    if !(a.is_finite() && a >= 0.0) {
        return Err(Error::parameter("a", a, "a finite number of at least 0"));
    }
    if !(b.is_finite() && b > 0.0) {
        return Err(Error::parameter("b", b, "a finite number above 0"));
    }
    if n_rows == 0 {
        return Err(Error::data("y has no rows: propensities need at least one"));
    }
    if let Some(label) = counts.iter().position(|&n| n < 0 || n > n_rows as i64) {
        return Err(Error::data(format!(
            "label {label} is counted {} times in {n_rows} rows",
            counts[label]
        )));
    }
    let factor = ((n_rows as f64).ln() - 1.0).max(0.0);
    if factor == 0.0 {
        return Ok(vec![1.0; counts.len()]);
    }
    // The power of a quotient, as powers of its two parts may overflow.
    let propensity = |&n: &i64| 1.0 / (1.0 + factor * ((b + 1.0) / (n as f64 + b)).powf(a));
    let found: Vec<f64> = counts.iter().map(propensity).collect();
    if found.contains(&0.0) {
        return Err(Error::parameter(
            "a",
            a,
            "small enough that no propensity is 0",
        ));
    }
    Ok(found)
}

/// What a hit on each label is worth: its inverse propensity.
#[derive(Debug, Clone)]
pub struct Weights {
    known: Vec<f64>,
    unseen: Option<f64>,
}

impl Weights {
    /// From the propensities of the labels 0, 1, ..., and that of all labels beyond,
    /// if there may be any.
    pub fn new(propensities: &[f64], unseen: Option<f64>) -> Result<Self> {
        // NaN fails the comparisons, too.
        let sound = |p: f64| p > 0.0 && p <= 1.0 && (1.0 / p).is_finite();
        let allowed = "above 0 and at most 1 (not inverse propensities)";
        if let Some(label) = propensities.iter().position(|&p| !sound(p)) {
            let name = format!("propensities[{label}]");
            return Err(Error::parameter(&name, propensities[label], allowed));
        }
        if let Some(p) = unseen.filter(|&p| !sound(p)) {
            return Err(Error::parameter("unseen", p, allowed));
        }
        Ok(Self {
            known: propensities.iter().map(|p| 1.0 / p).collect(),
            unseen: unseen.map(|p| 1.0 / p),
        })
    }

    /// The weight of `label`, which `row` carries.
    #[inline]
    pub(super) fn of(&self, label: u32, row: usize) -> Result<f64> {
        let weight = self.known.get(label as usize).copied().or(self.unseen);
        weight.ok_or_else(|| {
            let n = self.known.len();
            Error::data(format!(
                "row {row} of y_true: label {label} has no propensity, there are {n}"
            ))
        })
    }
}
