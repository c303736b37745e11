//! Sums over rows, from which the measures follow.

use super::{Ranked, Ranking, Weights};
use crate::control::Control;
use crate::data::LabelSets;
use crate::error::{Error, Result};

/// Rows between two looks at the stop flag.
const CHUNK: usize = 1024;

/// Up to so many true labels are looked through; more are searched by halves.
const FEW: usize = 16;

/// What becomes of rows without true labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// They score 0, as in the Repository's program.
    #[default]
    Zero,
    /// They are left out.
    Skip,
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

/// Takes in batches of rows and tells the measures over all of them.
#[derive(Debug, Clone)]
pub struct Scores {
    /// The k of each measure, increasing.
    cuts: Vec<usize>,
    weights: Option<Weights>,
    empty: Empty,
    n_rows: u64,
    n_empty: u64,
    /// One per cut.
    sums: Vec<Sums>,
}

/// Sums over rows for one cut.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    hits: u64,
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
    /// scored by propensity only with `weights`.
    pub fn new(cuts: &[usize], weights: Option<Weights>, empty: Empty) -> Result<Self> {
        let increasing = cuts.windows(2).all(|pair| pair[0] < pair[1]);
        if cuts.first().is_none_or(|&k| k == 0) || !increasing {
            let allowed = "increasing integers of at least 1";
            return Err(Error::parameter("k", format!("{cuts:?}"), allowed));
        }
        Ok(Self {
            cuts: cuts.to_vec(),
            weights,
            empty,
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
        if truth.len() != ranking.len() {
            return Err(Error::data(format!(
                "y_true has {} rows, y_pred {}",
                truth.len(),
                ranking.len()
            )));
        }
        let deepest = self.cuts[self.cuts.len() - 1];
        if ranking.width() < deepest {
            return Err(Error::data(format!(
                "y_pred has {} columns, k is {deepest}; k must be at most the number of columns",
                ranking.width()
            )));
        }
        let discounts = Discounts::new(deepest);
        let mut sums = self.sums.clone();
        let mut n_empty = 0;
        let mut row = Row::default();
        for number in 0..truth.len() {
            if number % CHUNK == 0 {
                control.check()?;
            }
            ranking.read(number, deepest, &mut row.ranked)?;
            truth.read(number, &mut row.truth);
            if row.truth.is_empty() {
                n_empty += 1;
                continue;
            }
            row.find_hits();
            row.add_plain(&self.cuts, &discounts, &mut sums);
            if let Some(weights) = &self.weights {
                row.weigh(weights, number)?;
                row.add_weighted(&self.cuts, &discounts, &mut sums);
            }
        }
        self.sums = sums;
        self.n_rows += truth.len() as u64;
        self.n_empty += n_empty;
        Ok(())
    }

    /// The measures over all rows so far.
    pub fn measures(&self) -> Result<Measures> {
        let n = match self.empty {
            Empty::Zero => self.n_rows,
            Empty::Skip => self.n_rows - self.n_empty,
        } as f64;
        if self.n_rows == 0 {
            return Err(Error::data(
                "y_true has no rows: there is nothing to average",
            ));
        }
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
            precision: each(&|k, sums| sums.hits as f64 / k as f64 / n),
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
        let mut sum = 0.0;
        let sums = at.iter().map(|d| {
            sum += d;
            sum
        });
        let ideal = std::iter::once(0.0).chain(sums).collect();
        Self { at, ideal }
    }
}

/// What is worked out for a row; kept from row to row for its memory.
#[derive(Default)]
struct Row {
    truth: Vec<u32>,
    ranked: Ranked,
    /// Ranks of the hits, from 0, increasing.
    hits: Vec<usize>,
    /// Weight of each hit.
    won: Vec<f64>,
    /// Weights of the true labels, falling.
    most: Vec<f64>,
}

impl Row {
    fn find_hits(&mut self) {
        self.hits.clear();
        for (rank, &label) in self.ranked.labels().iter().enumerate() {
            let Ok(label) = u32::try_from(label) else {
                continue;
            };
            let hit = if self.truth.len() <= FEW {
                self.truth.contains(&label)
            } else {
                self.truth.binary_search(&label).is_ok()
            };
            if hit {
                self.hits.push(rank);
            }
        }
    }

    fn add_plain(&self, cuts: &[usize], discounts: &Discounts, sums: &mut [Sums]) {
        let n = self.truth.len();
        let (mut hits, mut dcg) = (0, 0.0);
        for (&k, sums) in cuts.iter().zip(sums) {
            while hits < self.hits.len() && self.hits[hits] < k {
                dcg += discounts.at[self.hits[hits]];
                hits += 1;
            }
            sums.hits += hits as u64;
            sums.recall += hits as f64 / n as f64;
            sums.ndcg += dcg / discounts.ideal[k.min(n)];
        }
    }

    fn weigh(&mut self, weights: &Weights, number: usize) -> Result<()> {
        self.most.clear();
        for &label in &self.truth {
            self.most.push(weights.of(label, number)?);
        }
        self.most.sort_unstable_by(|a, b| b.total_cmp(a));
        self.won.clear();
        for &rank in &self.hits {
            // A hit is a true label, so a u32.
            let label = self.ranked.labels()[rank] as u32;
            self.won.push(weights.of(label, number)?);
        }
        Ok(())
    }

    fn add_weighted(&self, cuts: &[usize], discounts: &Discounts, sums: &mut [Sums]) {
        let n = self.truth.len();
        let (mut hits, mut won, mut won_dcg) = (0, 0.0, 0.0);
        let (mut rank, mut most, mut most_dcg) = (0, 0.0, 0.0);
        for (&k, sums) in cuts.iter().zip(sums) {
            while hits < self.hits.len() && self.hits[hits] < k {
                won += self.won[hits];
                won_dcg += self.won[hits] * discounts.at[self.hits[hits]];
                hits += 1;
            }
            while rank < k.min(n) {
                most += self.most[rank];
                most_dcg += self.most[rank] * discounts.at[rank];
                rank += 1;
            }
            sums.won += won;
            sums.most += most;
            sums.won_dcg += won_dcg / discounts.ideal[k.min(n)];
            sums.most_dcg += most_dcg / discounts.ideal[k.min(n)];
        }
    }
}
