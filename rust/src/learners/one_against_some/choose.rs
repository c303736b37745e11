//! The choice of the power of inverse document frequencies and of the cost, by scorers of a sample of
//! the labels.

use crate::error::Result;
use crate::learners::mix;

/// Share of the columns that rows of words fill at most.
const MAX_FILLED: f64 = 0.1;
/// The cost in mining, and the costs that it is compared with unless one is given. Few features and
/// noisy labels need a lower cost, many features and rare labels a higher one.
pub const COST: f64 = 1.0;
const LOW_COST: f64 = 0.25;
const HIGH_COST: f64 = 4.0;

/// Share of the gain on held-out rows by which a cost above 1 seems better than it is: a label with
/// few rows needs a higher cost if some of them are held out.
const BIAS_TO_HIGH_COST: f64 = 0.04;
/// The same for power 1, for each further step of the sample of labels: a sample has fewer labels to
/// confuse.
const BIAS_TO_POWER: f64 = 0.015;

/// Least number of labels to compare on, approximately, if there are so many.
const MIN_SAMPLED: usize = 256;
/// Values of rows, with [`VALUES_OF_ROW`] for the rest of each row, up to which all labels are
/// compared on. With more values fewer are: the comparison may take about a tenth of the training.
const VALUES_OF_ALL: usize = 125_000;
const VALUES_OF_ROW: usize = 10;
/// At least one label in this many is sampled.
const MAX_STEP: usize = 8;

/// A power and a cost.
pub type Settings = (f64, f64);

/// The settings to choose from.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The cost if it is given.
    cost: Option<f64>,
    /// Powers scale sparse columns only, and suit words but not pixels, which fill more of a row.
    pub has_powers: bool,
    /// One in how many labels is sampled.
    pub step: usize,
}

impl Choice {
    /// Reads the shape of the training: rows of so many values, and columns that are not dense.
    pub fn new(
        cost: Option<f64>,
        n_labels: usize,
        (n_rows, n_values): (usize, usize),
        (n_dense, width): (usize, usize),
    ) -> Self {
        let n_filled = MAX_FILLED * width as f64 * n_rows as f64;
        Self {
            cost,
            has_powers: n_dense + 1 < width && (n_values as f64) < n_filled,
            step: sampling_step(n_labels, n_values, n_rows),
        }
    }

    /// Returns all settings that may be compared, equal powers side by side.
    pub fn all(&self) -> Vec<Settings> {
        let powers: &[f64] = if self.has_powers { &[0.0, 1.0] } else { &[0.0] };
        let costs = match self.cost {
            Some(_) if !self.has_powers => return Vec::new(),
            Some(cost) => vec![cost],
            None => vec![COST, LOW_COST, HIGH_COST],
        };
        let all = powers
            .iter()
            .flat_map(|&power| costs.iter().map(move |&cost| (power, cost)));
        all.filter(|&settings| settings != (1.0, HIGH_COST))
            .collect()
    }

    /// Returns the settings whose scorers rank the rows of the fit best, by the gain of each row with
    /// given settings. All are tried on the same sample of the labels; see [`lead`].
    pub fn best(&self, mut gains: impl FnMut(Settings) -> Result<Vec<f64>>) -> Result<Settings> {
        let (fits_cost, cost) = (self.cost.is_none(), self.cost.unwrap_or(COST));
        let mut best = (0.0, cost);
        if !fits_cost && !self.has_powers {
            return Ok(best);
        }
        let first = gains(best)?;
        let mut most = 0.0;
        let mut consider = |settings, gains: &[f64], bias| {
            let lead = lead(&first, gains, bias);
            if lead > most {
                (most, best) = (lead, settings);
            }
        };
        let mut is_low_worse = false;
        if fits_cost {
            let low = gains((0.0, LOW_COST))?;
            consider((0.0, LOW_COST), &low, 0.0);
            // If a low cost is better, a high one is worse, and the reverse.
            if lead(&first, &low, 0.0) <= 0.0 {
                let high = gains((0.0, HIGH_COST))?;
                consider((0.0, HIGH_COST), &high, BIAS_TO_HIGH_COST);
            }
            is_low_worse = lead(&low, &first, 0.0) > 0.0;
        }
        if self.has_powers {
            let bias = BIAS_TO_POWER * (self.step - 1) as f64;
            consider((1.0, cost), &gains((1.0, cost))?, bias);
            // A high cost gives rare features more weight, too; together they are too much.
            if fits_cost && !is_low_worse {
                consider((1.0, LOW_COST), &gains((1.0, LOW_COST))?, bias);
            }
        }
        Ok(best)
    }
}

/// Returns one in how many labels is sampled, for rows with `n_values` values.
pub(super) fn sampling_step(n_labels: usize, n_values: usize, n_rows: usize) -> usize {
    let by_values = (n_values + VALUES_OF_ROW * n_rows) / VALUES_OF_ALL;
    by_values.min(n_labels / MIN_SAMPLED).clamp(1, MAX_STEP)
}

/// Returns whether a label belongs to the sample of about one in `step`.
pub(super) fn is_sampled(label: usize, step: usize, seed: u64) -> bool {
    mix(label as u64 ^ seed.rotate_left(7)).is_multiple_of(step as u64)
}

/// Returns by how much the gains of rows are larger than `before`, less the standard error of this
/// difference and the share `bias` of all gains before. The differences are paired, because rows
/// differ more than scorers.
pub(super) fn lead(before: &[f64], gains: &[f64], bias: f64) -> f64 {
    let differences = || gains.iter().zip(before).map(|(gain, before)| gain - before);
    let error = differences().map(|d| d * d).sum::<f64>().sqrt();
    differences().sum::<f64>() - error - bias * before.iter().sum::<f64>()
}
