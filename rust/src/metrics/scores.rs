//! Propensities of labels, and sums over rows, from which the measures follow.
//!
//! A propensity is how likely it is that a label which is true was also written down: rare labels
//! are missed more often, so that a hit on one is worth more (H. Jain, Y. Prabhu, M. Varma, *Extreme
//! Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label Applications*,
//! KDD 2016).

use super::ranking::Ranked;
use super::Ranking;
use crate::control::Control;
use crate::data::LabelSets;
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

/// Every measure at every cut, in the order of the cuts.
#[derive(Debug, Clone, PartialEq)]
pub struct Measures {
    /// P@k.
    pub precision: Vec<f64>,
    /// nDCG@k.
    pub ndcg: Vec<f64>,
    /// recall@k.
    pub recall: Vec<f64>,
    /// PSP@k, where there are propensities.
    pub psp: Option<Vec<f64>>,
    /// PSnDCG@k, likewise.
    pub psndcg: Option<Vec<f64>>,
}

/// Takes in batches of rows and reports the measures over all of them.
#[derive(Debug, Clone)]
pub struct Scores {
    /// The k of each measure, increasing.
    cuts: Vec<usize>,
    weights: Option<Weights>,
    skip_empty: bool,
    n_rows: u64,
    n_empty: u64,
    /// One per cut.
    sums: Vec<Sums>,
}

/// Sums over rows for one cut.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    hits: f64,
    ndcg: f64,
    recall: f64,
    /// Sum of the weights of the hits, and of the best ranking.
    won: f64,
    most: f64,
    /// The same, discounted by rank.
    won_dcg: f64,
    most_dcg: f64,
}

impl Scores {
    /// For the measures at `cuts`, increasing numbers of at least 1; those that are
    /// scored by propensity only with `weights`. Rows without true labels score 0, as in
    /// the Repository's program, or with `skip_empty` are left out.
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

    /// Takes in a batch: the true labels of each row and its ranking. A batch that is
    /// refused, or interrupted, changes nothing.
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
            row.find_hits(&labels);
            let n = labels.len();
            let ideal = |at: usize| discounts.ideal[self.cuts[at].min(n)];
            let hits = row.hits.iter().map(|&rank| (rank, 1.0));
            discounts.add_up(&self.cuts, hits, |at, hits, dcg| {
                sums[at].hits += hits;
                sums[at].recall += hits / n as f64;
                sums[at].ndcg += dcg / ideal(at);
            });
            if let Some(weights) = &self.weights {
                row.weigh(weights, &labels, number)?;
                let won = row.hits.iter().copied().zip(row.won.iter().copied());
                discounts.add_up(&self.cuts, won, |at, won, dcg| {
                    sums[at].won += won;
                    sums[at].won_dcg += dcg / ideal(at);
                });
                let most = row.most.iter().copied().enumerate();
                discounts.add_up(&self.cuts, most, |at, most, dcg| {
                    sums[at].most += most;
                    sums[at].most_dcg += dcg / ideal(at);
                });
            }
        }
        self.sums = sums;
        self.n_rows += n_rows as u64;
        self.n_empty += n_empty;
        Ok(())
    }

    /// The measures over all rows so far.
    pub fn measures(&self) -> Result<Measures> {
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
        // Without a label there is nothing to be won, and nothing is.
        let share = |won: f64, most: f64| if most > 0.0 { won / most } else { 0.0 };
        let weighted =
            |value: &dyn Fn(usize, &Sums) -> f64| self.weights.as_ref().map(|_| each(value));
        Ok(Measures {
            precision: each(&|k, sums| sums.hits / k as f64 / n),
            ndcg: each(&|_, sums| sums.ndcg / n),
            recall: each(&|_, sums| sums.recall / n),
            psp: weighted(&|_, sums| share(sums.won, sums.most)),
            psndcg: weighted(&|_, sums| share(sums.won_dcg, sums.most_dcg)),
        })
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

    /// Calls `visit` with the number of each of the `cuts` and the sum of the `gains`, each with
    /// its rank, that lie before it, as they are and discounted.
    fn add_up(
        &self,
        cuts: &[usize],
        gains: impl Iterator<Item = (usize, f64)>,
        mut visit: impl FnMut(usize, f64, f64),
    ) {
        let (mut gains, mut sum, mut discounted) = (gains.peekable(), 0.0, 0.0);
        for (at, &k) in cuts.iter().enumerate() {
            while let Some((rank, gain)) = gains.next_if(|&(rank, _)| rank < k) {
                sum += gain;
                discounted += gain * self.at[rank];
            }
            visit(at, sum, discounted);
        }
    }
}

/// What is worked out for a row; kept from row to row for its memory.
#[derive(Default)]
struct Row {
    ranked: Ranked,
    /// Ranks of the hits, from 0, increasing.
    hits: Vec<usize>,
    /// Weight of each hit.
    won: Vec<f64>,
    /// Weights of the true labels, falling.
    most: Vec<f64>,
}

impl Row {
    fn find_hits(&mut self, truth: &[i64]) {
        let is_hit = |label: &i64| truth.binary_search(label).is_ok();
        let ranks = self.ranked.labels.iter().enumerate();
        self.hits.clear();
        self.hits
            .extend(ranks.filter_map(|(rank, label)| is_hit(label).then_some(rank)));
    }

    fn weigh(&mut self, weights: &Weights, truth: &[i64], number: usize) -> Result<()> {
        self.most.clear();
        for &label in truth {
            self.most.push(weights.get(label, number)?);
        }
        self.most.sort_unstable_by(|a, b| b.total_cmp(a));
        self.won.clear();
        for &rank in &self.hits {
            self.won
                .push(weights.get(self.ranked.labels[rank], number)?);
        }
        Ok(())
    }
}
