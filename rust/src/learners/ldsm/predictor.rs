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
    /// Whether [`LabelSelection::Likely`] will be asked for.
    pub wants_probabilities: bool,
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
    /// The trees' scores of the current row, re-ranked.
    scores: LabelScores,
    /// How likely the current row has each of these labels, in the same order.
    probabilities: Vec<(u32, f32)>,
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
            wants_probabilities: false,
            which: 0..0,
            block: RaggedRows::default(),
            buffer: RowBuffer::default(),
            traversal: Traversal::new(width, params.arity),
            hits: Vec::new(),
            reranker,
            row: 0,
            scores: LabelScores::new(ldsm.n_classes),
            probabilities: Vec::new(),
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
        let labels_each = self.add_leaves(i);
        self.probabilities.clear();
        if self.wants_probabilities {
            // Shares of a leaf's labels become shares of its examples.
            let probabilities = &mut self.probabilities;
            self.scores
                .for_each(|label, share| probabilities.push((label, share * labels_each)));
        }
        if let Some(reranker) = &mut self.reranker {
            reranker.rerank(self.block.row(i), &mut self.scores);
        }
        let Some(scorers) = &self.ldsm.scorers else {
            return Ok(());
        };
        self.margins
            .cover(scorers, self.rows, self.row..self.which.end, control)?;
        for (label, probability) in &mut self.probabilities {
            let margin = self.margins.margin(self.row, *label);
            let by_scorer = self.ldsm.params.scorer_loss.probability(margin);
            *probability = 0.5 * (probability.min(1.0) + by_scorer);
        }
        Ok(())
    }

    /// Averages the histograms of the leaves that row `i` reaches, over the leaves of
    /// each tree and over trees. Returns the mean number of labels per training
    /// example in these leaves.
    fn add_leaves(&mut self, i: usize) -> f32 {
        let trees = &self.ldsm.trees;
        self.scores.clear();
        let mut labels_each = 0.0;
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
                labels_each += share * leaf.labels_each;
            }
        }
        labels_each
    }

    /// The final score of a label of the current row, from its score by the trees.
    fn final_score(&self, label: u32, tree_score: f32) -> f32 {
        if self.ldsm.scorers.is_none() {
            return tree_score;
        }
        self.margins
            .join(&self.ldsm.params, self.row, label, tree_score)
    }

    pub fn best(&self, top: &mut TopK) {
        top.clear();
        // Scorers never raise a score by more than `FLOOR`. Nearly all labels are too
        // low even then and need no margin.
        self.scores.for_each(|label, score| {
            if score + FLOOR >= top.bar() {
                top.push(label, self.final_score(label, score));
            }
        });
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        // In the order of the scores, where there are any.
        let mut probabilities = self.probabilities.iter();
        self.scores.for_each(|label, score| {
            if probabilities.next().is_none_or(|&(_, p)| p > 0.5) {
                found.push((label, self.final_score(label, score)));
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
