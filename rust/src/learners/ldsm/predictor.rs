//! From a block of rows to the scores of their labels.
//!
//! All rows of the block traverse all trees; then the leaves that one row has reached
//! are added up at once, tree after tree, and re-ranking and scorers change the sums.

use std::ops::Range;

use super::centroids::Reranker;
use super::ensemble::Ldsm;
use super::label_scores::LabelScores;
use super::scorers::{ScorerMargins, FLOOR};
use super::traversal::Traversal;
use crate::classifier::{LabelSelection, TopK};
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;
use crate::simd::prefetch;

/// Leaves whose histograms are fetched before their turn: they lie far apart.
const AHEAD: usize = 2;
/// Labels of a cache line, and lines of a histogram that are fetched; the
/// processor fetches the others by itself.
const LINE: usize = 8;
const LINES: usize = 4;

/// A leaf that a row reaches, with what is looked up once for all rows that do.
#[derive(Debug, Clone)]
struct LeafHit {
    tree: u32,
    /// 1 / the sum of the leaf's histogram.
    inverse_mass: f32,
    /// Labels per training example.
    labels_each: f32,
    /// Where the histogram is, among all of the tree's.
    labels: Range<usize>,
}

/// Predicts one block of rows after the other.
pub struct Predictor<'a> {
    ldsm: &'a Ldsm,
    rows: &'a Rows<'a>,
    preparation: &'a Preparation,
    /// The numbers of the block's rows.
    which: Range<usize>,
    pub block: RaggedRows,
    buffer: RowBuffer,
    traversal: Traversal,
    /// The leaves that each row of the block reaches, tree after tree.
    hits: Vec<Vec<LeafHit>>,
    reranker: Option<Reranker<'a>>,
    /// The number of the current row.
    row: usize,
    /// The trees' scores of the current row.
    scores: LabelScores,
    /// Mean number of labels per training example in the leaves of the current row.
    labels_each: f32,
    margins: ScorerMargins,
}

impl<'a> Predictor<'a> {
    pub fn new(ldsm: &'a Ldsm, rows: &'a Rows<'a>, preparation: &'a Preparation) -> Self {
        let (params, width) = (&ldsm.params, preparation.width());
        let reranker = ldsm
            .centroids
            .as_ref()
            .map(|centroids| Reranker::new(centroids, params, width));
        Self {
            ldsm,
            rows,
            preparation,
            which: 0..0,
            block: RaggedRows::default(),
            buffer: RowBuffer::default(),
            traversal: Traversal::new(width, params.arity),
            hits: Vec::new(),
            reranker,
            row: 0,
            scores: LabelScores::new(ldsm.n_classes),
            labels_each: 0.0,
            margins: ScorerMargins::default(),
        }
    }

    /// Reads the rows `which` and sends them down all trees.
    pub fn read_block(&mut self, which: Range<usize>, control: &Control) -> Result<()> {
        self.which = which.clone();
        self.block.clear();
        for i in which {
            self.preparation.read(self.rows, i, &mut self.buffer);
            let columns = self.buffer.columns.iter().copied();
            self.block.push(columns, &self.buffer.values);
        }
        self.hits.iter_mut().for_each(Vec::clear);
        let n = self.hits.len().max(self.block.len());
        // Few rows reach more leaves.
        let usual = 2 * self.ldsm.trees.len();
        self.hits.resize_with(n, || Vec::with_capacity(usual));
        for (t, tree) in (0..).zip(&self.ldsm.trees) {
            control.check()?;
            let hits = &mut self.hits;
            self.traversal.run(tree, &self.block, |rows, leaf| {
                let inverse_mass = tree.inverse_mass[leaf.at()];
                let hit = LeafHit {
                    tree: t,
                    inverse_mass,
                    labels_each: (tree.weight[leaf.at()] as f32 * inverse_mass).recip(),
                    labels: tree.labels.range(leaf.at()),
                };
                for &row in rows {
                    hits[row as usize].push(hit.clone());
                }
            });
        }
        Ok(())
    }

    /// Scores row `i` of the block; rows come in order.
    pub fn score_row(&mut self, i: usize, control: &Control) -> Result<()> {
        self.row = self.which.start + i;
        self.add_leaves(i);
        if let Some(reranker) = &mut self.reranker {
            reranker.read(self.block.row(i));
        }
        if let Some(scorers) = &self.ldsm.scorers {
            let ahead = self.row..self.which.end;
            self.margins.cover(scorers, self.rows, ahead, control)?;
        }
        Ok(())
    }

    /// Averages the histograms of the leaves that row `i` reaches, over the leaves of
    /// each tree and over trees.
    fn add_leaves(&mut self, i: usize) {
        let trees = &self.ldsm.trees;
        self.scores.clear();
        self.labels_each = 0.0;
        let tree_share = (trees.len() as f32).recip();
        let hits = &self.hits[i];
        let histogram = |of: &LeafHit| &trees[of.tree as usize].labels.entries()[of.labels.clone()];
        let mut coming = hits.iter().skip(AHEAD);
        for leaves in hits.chunk_by(|a, b| a.tree == b.tree) {
            let share = tree_share / leaves.len() as f32;
            for leaf in leaves {
                if let Some(leaf) = coming.next() {
                    let lines = histogram(leaf).chunks(LINE).take(LINES);
                    lines.for_each(|line| prefetch(&line[0]));
                }
                self.scores.add(histogram(leaf), share * leaf.inverse_mass);
                self.labels_each += share * leaf.labels_each;
            }
        }
    }

    /// Whether the current row rather has a label than not, by its share of the labels in the
    /// leaves and by its scorer.
    fn is_likely(&self, label: u32, share: f32) -> bool {
        // Shares of a leaf's labels become shares of its examples.
        let probability = share * self.labels_each;
        if self.ldsm.scorers.is_none() {
            return probability > 0.5;
        }
        let margin = self.margins.margin(self.row, label);
        let by_scorer = self.ldsm.params.scorer_loss.probability(margin);
        0.5 * (probability.min(1.0) + by_scorer) > 0.5
    }

    /// The score of a label of the current row by the trees, re-ranked.
    fn reranked(&self, label: u32, score: f32) -> f32 {
        let reranker = self.reranker.as_ref();
        reranker.map_or(score, |reranker| reranker.rerank(label, score))
    }

    /// The final score of a label of the current row, from its re-ranked score.
    fn joined(&self, label: u32, score: f32) -> f32 {
        match &self.ldsm.scorers {
            None => score,
            Some(_) => self.margins.join(&self.ldsm.params, self.row, label, score),
        }
    }

    pub fn best(&self, top: &mut TopK) {
        top.clear();
        // Scorers never raise a score by more than `FLOOR`. Nearly all labels are too
        // low even then and need no margin.
        self.scores.for_each(|label, score| {
            let score = self.reranked(label, score);
            if score + FLOOR >= top.bar() {
                top.push(label, self.joined(label, score));
            }
        });
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        self.scores.for_each(|label, score| {
            if selection != LabelSelection::Likely || self.is_likely(label, score) {
                found.push((label, self.joined(label, self.reranked(label, score))));
            }
        });
        match selection {
            LabelSelection::Above(threshold) => found.retain(|&(_, score)| score > threshold),
            LabelSelection::Best(n) if n < found.len() => {
                // Of equal scores the smaller label, as everywhere.
                found.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                found.truncate(n);
            }
            _ => {}
        }
        found.sort_unstable_by_key(|&(label, _)| label);
    }
}
