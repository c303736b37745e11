//! Sums over rows, from which the measures follow.

use super::ranking::Ranked;
use super::shallow::{Hits, DEEPEST, MANY};
use super::{Ranking, Weights};
use crate::control::Control;
use crate::data::{Indices, LabelSets};
use crate::error::{Error, Result};

/// Rows between two looks at the stop flag.
const CHUNK: usize = 1024;

/// Up to so many true labels are looked through, more are searched by halves.
const FEW: usize = 16;

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
        let (starts, labels) = truth.parts();
        let (sums, n_empty) = match labels {
            Indices::I32(labels) => self.sums_with(starts, labels, ranking, control)?,
            Indices::I64(labels) => self.sums_with(starts, labels, ranking, control)?,
        };
        self.sums = sums;
        self.n_rows += n_rows as u64;
        self.n_empty += n_empty;
        Ok(())
    }

    /// The sums with a batch added, and how many of its rows have no label.
    fn sums_with<T: Copy + Into<i64>>(
        &self,
        starts: Indices<'_>,
        labels: &[T],
        ranking: &Ranking<'_>,
        control: &Control,
    ) -> Result<(Vec<Sums>, u64)> {
        let deepest = self.cuts[self.cuts.len() - 1];
        let discounts = Discounts::new(deepest);
        let mut sums = self.sums.clone();
        // Rows that score the same but for weights, having as many true labels and hits at the
        // same ranks, are of a few dozen kinds. To count them by kind and to measure each
        // kind once is most of the speed.
        let mut kinds = vec![0; MANY << DEEPEST];
        let mut row = Row::default();
        let mut n_empty = 0;
        let mut at_once = Vec::with_capacity(CHUNK);
        for first in (0..ranking.n_rows).step_by(CHUNK) {
            control.check()?;
            let rows = first..ranking.n_rows.min(first + CHUNK);
            ranking.hits(rows.clone(), deepest, (starts, labels), &mut at_once)?;
            for number in rows {
                let truth = &labels[starts.get(number)..starts.get(number + 1)];
                let known = at_once.get(number - first).copied();
                // The hits of rows with many labels are still to be found.
                let counted = known.filter(|_| truth.len() < MANY);
                if counted.is_none() {
                    ranking.read(number, deepest, &mut row.ranked)?;
                }
                match counted {
                    _ if truth.is_empty() => {
                        n_empty += 1;
                        continue;
                    }
                    Some(bits) => {
                        kinds[truth.len() << DEEPEST | usize::from(bits)] += 1;
                        if self.weights.is_some() {
                            row.take_hits(bits);
                        }
                    }
                    None => {
                        row.find_hits(truth);
                        row.add_plain(&self.cuts, &discounts, truth.len(), 1, &mut sums);
                    }
                }
                if let Some(weights) = &self.weights {
                    row.weigh(weights, ranking, truth, number)?;
                    row.add_weighted(&self.cuts, &discounts, &mut sums);
                }
            }
        }
        for (kind, count) in kinds.into_iter().enumerate().filter(|kind| kind.1 > 0) {
            row.take_hits((kind % (1 << DEEPEST)) as Hits);
            row.add_plain(&self.cuts, &discounts, kind >> DEEPEST, count, &mut sums);
        }
        Ok((sums, n_empty))
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
        let sums = at.iter().scan(0.0, |sum, d| {
            *sum += d;
            Some(*sum)
        });
        let ideal = std::iter::once(0.0).chain(sums).collect();
        Self { at, ideal }
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
    /// Weights of the true labels, as they come and falling.
    unsorted: Vec<f64>,
    most: Vec<f64>,
}

impl Row {
    fn take_hits(&mut self, mut bits: Hits) {
        self.hits.clear();
        while bits != 0 {
            self.hits.push(bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }

    fn find_hits<T: Copy + Into<i64>>(&mut self, truth: &[T]) {
        self.hits.clear();
        for (rank, &label) in self.ranked.labels.iter().enumerate() {
            let hit = if truth.len() <= FEW {
                truth.iter().any(|&one| one.into() == label)
            } else {
                truth
                    .binary_search_by_key(&label, |&one| one.into())
                    .is_ok()
            };
            if hit {
                self.hits.push(rank);
            }
        }
    }

    /// Adds `count` rows with these hits and `n` true labels.
    fn add_plain(
        &self,
        cuts: &[usize],
        discounts: &Discounts,
        n: usize,
        count: u64,
        sums: &mut [Sums],
    ) {
        let (mut hits, mut dcg) = (0, 0.0);
        for (&k, sums) in cuts.iter().zip(sums) {
            while hits < self.hits.len() && self.hits[hits] < k {
                dcg += discounts.at[self.hits[hits]];
                hits += 1;
            }
            sums.hits += count * hits as u64;
            sums.recall += count as f64 * (hits as f64 / n as f64);
            sums.ndcg += count as f64 * (dcg / discounts.ideal[k.min(n)]);
        }
    }

    fn weigh<T: Copy + Into<i64>>(
        &mut self,
        weights: &Weights,
        ranking: &Ranking<'_>,
        truth: &[T],
        number: usize,
    ) -> Result<()> {
        self.unsorted.clear();
        for &label in truth {
            self.unsorted.push(weights.of(label.into() as u32, number)?);
        }
        sort_falling(&self.unsorted, &mut self.most);
        self.won.clear();
        for &rank in &self.hits {
            let label = ranking.label(number, rank);
            // A hit is a true label, so a u32.
            let label = label.unwrap_or_else(|| self.ranked.labels[rank]) as u32;
            self.won.push(weights.of(label, number)?);
        }
        Ok(())
    }

    fn add_weighted(&self, cuts: &[usize], discounts: &Discounts, sums: &mut [Sums]) {
        let n = self.most.len();
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

/// Replaces `into` by `values`, falling.
fn sort_falling(values: &[f64], into: &mut Vec<f64>) {
    into.clear();
    into.extend_from_slice(values);
    if values.len() > FEW {
        into.sort_unstable_by(|a, b| b.total_cmp(a));
        return;
    }
    // Each goes to the place that as many others are before. A sort decides by branches
    // that nobody can foresee, and for a few values these cost more than all pairs do.
    for (at, &value) in values.iter().enumerate() {
        let (before, behind) = values.split_at(at);
        let larger = behind.iter().map(|&v| usize::from(v > value));
        let not_smaller = before.iter().map(|&v| usize::from(v >= value));
        into[larger.sum::<usize>() + not_smaller.sum::<usize>()] = value;
    }
}
