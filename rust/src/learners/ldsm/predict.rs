//! From rows to labels with scores.

use std::ops::Range;

use super::centroids::reranked;
use super::forest::Ldsm;
use super::score::Scores;
use super::scorers::{self, Verdicts};
use super::walk::{RowBlock, Walker};
use crate::alloc::try_alloc;
use crate::classifier::TopK;
use crate::classifier::{block_rows, in_blocks, row_values};
use crate::classifier::{Classifier, PredictOptions, Task};
use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::simd::prefetch;

/// Rows that walk the trees together: many, so that few of a node's weights are
/// read for one row alone.
const BLOCK: usize = 4096;

/// Leaves whose histograms are fetched before their turn: they lie far apart.
const AHEAD: usize = 2;
/// Labels of a cache line, and lines that are fetched of a histogram; the
/// processor finds out about the others by itself.
const LINE: usize = 8;
const LINES: usize = 4;

/// Scores of some labels of each row, in CSR form.
#[derive(Debug, Default)]
pub struct SparseScores {
    /// Where each row begins, and the end.
    pub starts: Vec<i64>,
    /// Labels, increasing in each row.
    pub labels: Vec<i32>,
    /// Their scores.
    pub scores: Vec<f32>,
}

/// Which labels of a row are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// Those of a score above this.
    Above(f32),
    /// The so many best.
    Best(usize),
    /// Those that are more likely there than not.
    Likely,
}

impl Ldsm {
    /// The `k` labels of highest score for each row, best first, into arrays of
    /// rows x k; [`TopK::NO_LABEL`] and minus infinity where fewer have a score.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let preparation = self.check_columns(rows)?;
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.block_rows(rows);
        let parts = labels.chunks_mut(step * k).zip(scores.chunks_mut(step * k));
        let work = |judge: &mut Judge<'_>, (labels, scores): (&mut [i32], &mut [f32])| {
            let mut top = TopK::new(k.min(self.n_classes));
            let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (i, (labels, scores)) in rows.enumerate() {
                judge.score(i, control)?;
                judge.best(&mut top);
                top.write(labels, scores);
            }
            Ok(())
        };
        self.in_blocks((rows, preparation), step, parts, n_threads, control, work)?;
        Ok((labels, scores))
    }

    /// The wanted labels of each row that have a score, and these.
    pub fn scores(
        &self,
        rows: &Rows<'_>,
        wanted: Wanted,
        n_threads: usize,
        control: &Control,
    ) -> Result<SparseScores> {
        let preparation = self.check_columns(rows)?;
        let step = self.block_rows(rows);
        let mut blocks = Vec::new();
        blocks.resize_with(rows.n_rows().div_ceil(step), SparseScores::default);
        let parts = blocks.iter_mut();
        let work = |judge: &mut Judge<'_>, found: &mut SparseScores| {
            let mut of_row = Vec::new();
            judge.wants_chances = wanted == Wanted::Likely;
            for i in 0..judge.block.len() {
                judge.score(i, control)?;
                judge.select(wanted, &mut of_row);
                found.starts.push(of_row.len() as i64);
                let labels = of_row.iter().map(|&(label, _)| label as i32);
                found.labels.extend(labels);
                found.scores.extend(of_row.iter().map(|&(_, score)| score));
            }
            Ok(())
        };
        self.in_blocks((rows, preparation), step, parts, n_threads, control, work)?;
        Ok(SparseScores::join(blocks))
    }

    fn block_rows(&self, rows: &Rows<'_>) -> usize {
        block_rows(row_values(self.preparation.as_ref(), rows), BLOCK)
    }

    fn in_blocks<B: Send>(
        &self,
        (rows, preparation): (&Rows<'_>, &Preparation),
        step: usize,
        parts: impl Iterator<Item = B>,
        n_threads: usize,
        control: &Control,
        work: impl Fn(&mut Judge<'_>, B) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let new_judge = || Judge::new(self, rows, preparation.width());
        in_blocks(
            rows.n_rows(),
            step,
            parts,
            n_threads,
            control,
            new_judge,
            |judge, which, part| {
                judge.first = which.start;
                judge.judged = which.start;
                judge.block.read(rows, which, preparation);
                judge.walk(control)?;
                work(judge, part)
            },
        )
    }

    /// How many products a prediction of `rows` is about.
    pub fn effort(&self, rows: &Rows<'_>) -> usize {
        /// Nodes that a row visits in a tree.
        const NODES: usize = 32;
        let ways = NODES * self.params.arity as usize;
        let trees = row_values(self.preparation.as_ref(), rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(self.trees.len().saturating_mul(ways));
        let scorers = self.scorers.as_ref().map_or(0, |oaa| {
            let options = &PredictOptions::NONE;
            oaa.effort(rows, Task::Predict { k: 1, options })
        });
        trees.saturating_add(scorers)
    }
}

impl SparseScores {
    /// Blocks, whose `starts` are lengths so far, one after the other.
    fn join(blocks: Vec<Self>) -> Self {
        let mut all = Self::default();
        all.starts.push(0);
        for block in blocks {
            let mut end = all.labels.len() as i64;
            all.starts.extend(block.starts.iter().map(|n| {
                end += n;
                end
            }));
            all.labels.extend(block.labels);
            all.scores.extend(block.scores);
        }
        all
    }
}

/// A leaf that a row comes to: what is looked up of it while many rows arrive, and
/// need not be looked up again row by row.
#[derive(Debug, Clone)]
struct Arrival {
    tree: u32,
    /// 1 / the sum of the leaf's histogram.
    inverse_mass: f32,
    /// Labels per training example.
    labels_each: f32,
    /// Where the histogram is, among all of the tree's.
    labels: Range<usize>,
}

/// What predicts blocks of rows.
struct Judge<'a> {
    ldsm: &'a Ldsm,
    rows: &'a Rows<'a>,
    /// Number of the block's first row.
    first: usize,
    block: RowBlock,
    walker: Walker,
    /// The leaves that each row comes to, tree after tree.
    arrivals: Vec<Vec<Arrival>>,
    /// Labels of the row at hand.
    scores: Scores,
    /// How likely each of them is there.
    chances: Vec<(u32, f32)>,
    /// Whether that is wanted.
    wants_chances: bool,
    /// The row at hand, spread over all columns.
    spread: Vec<f32>,
    verdicts: Verdicts,
    /// The row at hand, by its number.
    row: usize,
    /// The first row that these do not cover.
    judged: usize,
}

impl<'a> Judge<'a> {
    fn new(ldsm: &'a Ldsm, rows: &'a Rows<'a>, width: usize) -> Self {
        Self {
            ldsm,
            rows,
            first: 0,
            block: RowBlock::default(),
            walker: Walker::new(width, ldsm.params.arity),
            arrivals: Vec::new(),
            scores: Scores::new(ldsm.n_classes),
            chances: Vec::new(),
            wants_chances: false,
            spread: vec![0.0; if ldsm.centroids.is_some() { width } else { 0 }],
            verdicts: Verdicts::default(),
            row: 0,
            judged: 0,
        }
    }

    /// Sends the block down all trees.
    fn walk(&mut self, control: &Control) -> Result<()> {
        self.arrivals.iter_mut().for_each(Vec::clear);
        let n = self.arrivals.len().max(self.block.len());
        // Few rows come to more leaves.
        let usual = 2 * self.ldsm.trees.len();
        self.arrivals.resize_with(n, || Vec::with_capacity(usual));
        for (t, tree) in (0..).zip(&self.ldsm.trees) {
            control.check()?;
            let arrivals = &mut self.arrivals;
            self.walker.walk(tree, &self.block, |rows, leaf| {
                let inverse_mass = tree.inverse_mass[leaf.at()];
                let arrival = Arrival {
                    tree: t,
                    inverse_mass,
                    labels_each: (tree.weight[leaf.at()] as f32 * inverse_mass).recip(),
                    labels: tree.labels.range(leaf.at()),
                };
                for &row in rows {
                    arrivals[row as usize].push(arrival.clone());
                }
            });
        }
        Ok(())
    }

    /// Scores row `i` of the block; rows come in order.
    fn score(&mut self, i: usize, control: &Control) -> Result<()> {
        let trees = &self.ldsm.trees;
        self.scores.clear();
        // Labels per training example in the leaves, on average.
        let mut expected = 0.0;
        let each = (trees.len() as f32).recip();
        let arrivals = &self.arrivals[i];
        let histogram = |of: &Arrival| &trees[of.tree as usize].labels.entries()[of.labels.clone()];
        let mut coming = arrivals.iter().skip(AHEAD);
        for leaves in arrivals.chunk_by(|a, b| a.tree == b.tree) {
            let share = each / leaves.len() as f32;
            for leaf in leaves {
                if let Some(leaf) = coming.next() {
                    let labels = histogram(leaf).chunks(LINE).take(LINES);
                    labels.for_each(|line| prefetch(&line[0]));
                }
                self.scores.add(histogram(leaf), share * leaf.inverse_mass);
                expected += share * leaf.labels_each;
            }
        }
        self.chances.clear();
        if self.wants_chances {
            // Shares of a leaf's labels become shares of its examples.
            let chances = &mut self.chances;
            self.scores
                .each(|label, share| chances.push((label, share * expected)));
        }
        self.rerank(i);
        self.judge(i, control)
    }

    /// Lets the distance from each label's examples have a say.
    fn rerank(&mut self, i: usize) {
        let Some(centroids) = &self.ldsm.centroids else {
            return;
        };
        let (beta, gamma) = (self.ldsm.params.beta as f32, self.ldsm.params.gamma as f32);
        let (columns, values) = self.block.row(i as u32);
        // All but the constant, which comes last.
        let entries = || columns.iter().zip(values).take(columns.len() - 1);
        let mut square = 0.0;
        for (&column, &x) in entries() {
            // Of what has been hashed to one column the sum is squared.
            let sum = &mut self.spread[column as usize];
            square += x * (2.0 * *sum + x);
            *sum += x;
        }
        self.scores.change(|label, score| {
            let distance = centroids.distance(label, &self.spread, square);
            reranked(score, distance, beta, gamma)
        });
        for (&column, _) in entries() {
            self.spread[column as usize] = 0.0;
        }
    }

    /// Lets the scorers have their say on the row and its labels' chances.
    fn judge(&mut self, i: usize, control: &Control) -> Result<()> {
        let Some(scorers) = &self.ldsm.scorers else {
            return Ok(());
        };
        let row = self.first + i;
        if row >= self.judged {
            let n = scorers::ROWS.min(self.first + self.block.len() - row);
            self.verdicts.score(scorers, self.rows, row, n, control)?;
            self.judged = row + n;
        }
        self.row = row;
        for (label, chance) in &mut self.chances {
            *chance =
                0.5 * (chance.min(1.0) + self.verdicts.chance(&self.ldsm.params, row, *label));
        }
        Ok(())
    }

    /// What a label's score by the trees becomes.
    fn weighed(&self, label: u32, score: f32) -> f32 {
        if self.ldsm.scorers.is_none() {
            return score;
        }
        let params = &self.ldsm.params;
        self.verdicts.weigh(params, self.row, label, score)
    }

    /// The best labels of the row at hand.
    fn best(&self, top: &mut TopK) {
        top.clear();
        // Scorers never raise a score by more than this: nearly all labels fall short
        // before they are asked.
        let most = scorers::FLOOR;
        self.scores.each(|label, score| {
            if score + most >= top.bar() {
                top.push(label, self.weighed(label, score));
            }
        });
    }

    /// The wanted labels of the row at hand, increasing.
    fn select(&self, wanted: Wanted, found: &mut Vec<(u32, f32)>) {
        found.clear();
        match wanted {
            Wanted::Above(threshold) => self.scores.each(|label, score| {
                let score = self.weighed(label, score);
                if score > threshold {
                    found.push((label, score));
                }
            }),
            Wanted::Best(n) => {
                self.scores
                    .each(|label, score| found.push((label, self.weighed(label, score))));
                if n < found.len() {
                    // Ties to the smaller label, as everywhere.
                    found.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                    found.truncate(n);
                }
            }
            Wanted::Likely => {
                let mut chances = self.chances.iter();
                self.scores.each(|label, score| {
                    // Both are in the same order.
                    if chances.next().is_some_and(|&(_, chance)| chance > 0.5) {
                        found.push((label, self.weighed(label, score)));
                    }
                });
            }
        }
        found.sort_unstable_by_key(|&(label, _)| label);
    }
}
