//! Propensities of labels, and the sums over rows that the measures are computed from.
//!
//! A propensity is the probability that a true label is in the data. Rare labels are missing more
//! often, so a hit on one counts more (H. Jain, Y. Prabhu, M. Varma, *Extreme Multi-label Loss
//! Functions for Recommendation, Tagging, Ranking & Other Missing Label Applications*, KDD 2016).

use super::ranking::Ranked;
use super::Ranking;
use crate::control::Control;
use crate::data::LabelSets;
use crate::error::{Error, Result};

/// Returns p_l = 1 / (1 + C (N_l + b)^-a) with C = (ln N - 1)(b + 1)^a for each label l. N is the
/// number of training rows, and `counts` holds N_l, the number of rows with label l.
///
/// C is raised to 0 if it is negative, which happens for N < 3: a propensity is at most 1.
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
    // A power of the quotient, because powers of its two parts may overflow.
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

/// Weights of hits: the inverse propensities of the labels.
#[derive(Debug, Clone)]
pub struct Weights {
    known: Vec<f64>,
    unseen: Option<f64>,
}

impl Weights {
    /// Weights from the propensities of the labels 0, 1, ... `unseen` is the propensity of all
    /// further labels; `None` refuses them.
    pub fn new(propensities: &[f64], unseen: Option<f64>) -> Result<Self> {
        // The comparisons are false for NaN too.
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

    /// Returns the weight of `label`, a true label of `row`.
    fn get(&self, label: i64, row: usize) -> Result<f64> {
        let weight = self.known.get(label as usize).copied().or(self.unseen);
        weight.ok_or_else(|| {
            let n = self.known.len();
            Error::data(format!(
                "row {row} of y_true: label {label} has no propensity, there are {n}"
            ))
        })
    }
}

/// The name of a measure, and its value at every cut k, in the order of the cuts.
pub type Measure = (&'static str, Vec<f64>);

/// Computes the measures over all rows of any number of batches.
#[derive(Debug, Clone)]
pub struct Scores {
    /// Values of k, in ascending order.
    cuts: Vec<usize>,
    weights: Option<Weights>,
    skip_empty: bool,
    n_rows: u64,
    n_empty: u64,
    /// Sums for each cut.
    sums: Vec<Sums>,
}

/// Sums over rows for one cut.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    hits: f64,
    ndcg: f64,
    recall: f64,
    /// Sums of the weights of the hits, and of the ideal ranking.
    won: f64,
    most: f64,
    /// Both sums, discounted by rank.
    won_dcg: f64,
    most_dcg: f64,
}

impl Scores {
    /// Sums for the measures at `cuts`, ascending numbers of at least 1. Propensity-scored measures
    /// need `weights`. Rows without true labels score 0, as in the Repository's program;
    /// `skip_empty` leaves them out.
    pub fn new(cuts: &[usize], weights: Option<Weights>, skip_empty: bool) -> Result<Self> {
        let increasing = cuts.windows(2).all(|pair| pair[0] < pair[1]);
        if cuts.first().is_none_or(|&k| k == 0) || !increasing {
            let allowed = "increasing integers of at least 1";
            return Err(Error::parameter("k", format!("{cuts:?}"), allowed));
        }
        Ok(Self {
            cuts: cuts.to_vec(),
            weights,
            skip_empty,
            n_rows: 0,
            n_empty: 0,
            sums: vec![Sums::default(); cuts.len()],
        })
    }

    /// Adds a batch: the true labels of each row and its ranking. A batch that is refused or
    /// interrupted changes nothing.
    pub fn add(
        &mut self,
        truth: &LabelSets<'_>,
        ranking: &Ranking<'_>,
        control: &Control,
    ) -> Result<()> {
        let Ranking { n_rows, width, .. } = *ranking;
        if truth.len() != n_rows {
            let n_true = truth.len();
            return Err(Error::data(format!(
                "y_true has {n_true} rows, y_pred {n_rows}"
            )));
        }
        let deepest = self.cuts[self.cuts.len() - 1];
        if width < deepest {
            return Err(Error::data(format!(
                "y_pred has {width} columns, k is {deepest}; k must be at most the number of columns"
            )));
        }
        let (starts, all) = truth.parts();
        let discounts = Discounts::new(deepest);
        let (mut sums, mut n_empty) = (self.sums.clone(), 0);
        let (mut row, mut labels) = (Row::default(), Vec::new());
        for number in 0..n_rows {
            if number % Control::CHUNK == 0 {
                control.check()?;
            }
            labels.clear();
            labels.extend((starts.get(number)..starts.get(number + 1)).map(|at| all.raw(at)));
            ranking.read(number, deepest, &mut row.ranked)?;
            if labels.is_empty() {
                n_empty += 1;
                continue;
            }
            row.compare(&labels, self.weights.as_ref(), number)?;
            let n = labels.len();
            row.weights.sort_unstable_by(|a, b| b.total_cmp(a));
            for (sums, &k) in sums.iter_mut().zip(&self.cuts) {
                let ideal = discounts.ideal[k.min(n)];
                let hits = row.hits.iter().take_while(|hit| hit.rank < k);
                let (found, dcg) = discounts.sum(hits.clone().map(|hit| (hit.rank, 1.0)));
                sums.hits += found;
                sums.recall += found / n as f64;
                sums.ndcg += dcg / ideal;
                if self.weights.is_some() {
                    let (won, dcg) = discounts.sum(hits.map(|hit| (hit.rank, hit.weight)));
                    sums.won += won;
                    sums.won_dcg += dcg / ideal;
                    let best = row.weights.iter().copied().take(k).enumerate();
                    let (most, dcg) = discounts.sum(best);
                    sums.most += most;
                    sums.most_dcg += dcg / ideal;
                }
            }
        }
        self.sums = sums;
        self.n_rows += n_rows as u64;
        self.n_empty += n_empty;
        Ok(())
    }

    /// Returns the measures over all rows so far: precision, ndcg (nDCG) and recall, with propensities
    /// also psp (PSP) and psndcg (PSnDCG).
    pub fn measures(&self) -> Result<Vec<Measure>> {
        if self.n_rows == 0 {
            return Err(Error::data(
                "y_true has no rows: there is nothing to average",
            ));
        }
        let skipped = if self.skip_empty { self.n_empty } else { 0 };
        let n = (self.n_rows - skipped) as f64;
        if n == 0.0 {
            return Err(Error::data(
                "y_true has no row with a label: with empty=\"skip\" nothing is left to average",
            ));
        }
        let each = |value: &dyn Fn(usize, &Sums) -> f64| -> Vec<f64> {
            let cuts = self.cuts.iter().zip(&self.sums);
            cuts.map(|(&k, sums)| value(k, sums)).collect()
        };
        // Both sums are 0 if no row has a label.
        let share = |won: f64, most: f64| if most > 0.0 { won / most } else { 0.0 };
        let mut found = vec![
            ("precision", each(&|k, sums| sums.hits / k as f64 / n)),
            ("ndcg", each(&|_, sums| sums.ndcg / n)),
            ("recall", each(&|_, sums| sums.recall / n)),
        ];
        if self.weights.is_some() {
            found.push(("psp", each(&|_, sums| share(sums.won, sums.most))));
            let psndcg = each(&|_, sums| share(sums.won_dcg, sums.most_dcg));
            found.push(("psndcg", psndcg));
        }
        Ok(found)
    }
}

/// d_r and I(k), with ranks from 0.
struct Discounts {
    at: Vec<f64>,
    ideal: Vec<f64>,
}

impl Discounts {
    fn new(k: usize) -> Self {
        let at: Vec<f64> = (0..k).map(|r| 1.0 / (r as f64 + 2.0).log2()).collect();
        let sums = at.iter().scan(0.0, |sum, d| {
            *sum += d;
            Some(*sum)
        });
        let ideal = std::iter::once(0.0).chain(sums).collect();
        Self { at, ideal }
    }

    /// Returns the sum of gains and the sum discounted by rank. `gains` holds pairs of a rank and a
    /// gain.
    fn sum(&self, gains: impl Iterator<Item = (usize, f64)>) -> (f64, f64) {
        gains.fold((0.0, 0.0), |(sum, discounted), (rank, gain)| {
            (sum + gain, discounted + gain * self.at[rank])
        })
    }
}

/// A predicted label that is true.
struct Hit {
    /// Rank from 0.
    rank: usize,
    /// Inverse propensity; 1 without propensities.
    weight: f64,
}

/// The ranking and the hits of one row, with buffers that are reused for the next row.
#[derive(Default)]
struct Row {
    ranked: Ranked,
    /// Hits in ascending order of rank.
    hits: Vec<Hit>,
    /// Weights of the true labels, in the order of the labels; 1 without propensities.
    weights: Vec<f64>,
}

impl Row {
    /// Finds the hits of the ranking among the true labels of row `number`.
    fn compare(&mut self, truth: &[i64], weights: Option<&Weights>, number: usize) -> Result<()> {
        self.weights.clear();
        for &label in truth {
            self.weights
                .push(weights.map_or(Ok(1.0), |known| known.get(label, number))?);
        }
        let weight = |label| truth.binary_search(label).ok().map(|at| self.weights[at]);
        let ranks = self.ranked.labels.iter().enumerate();
        let hits =
            ranks.filter_map(|(rank, label)| weight(label).map(|weight| Hit { rank, weight }));
        self.hits.clear();
        self.hits.extend(hits);
        Ok(())
    }
}
