//! From a block of rows to the scores of their labels.
//!
//! All rows of the block traverse all trees; then the leaves that one row has reached
//! are added up at once, tree after tree, and re-ranking and scorers change the sums.

use std::ops::Range;

use super::centroids::Reranker;
use super::ensemble::Ldsm;
use super::label_scores::LabelScores;
use super::leaf_hits::LeafHits;
use super::scoring::Scoring;
use super::traversal::Traversal;
use crate::classifier::{keep_best, LabelSelection, TopK};
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;

/// Predicts one block of rows after the other.
pub struct Predictor<'a> {
    ldsm: &'a Ldsm,
    rows: &'a Rows<'a>,
    preparation: &'a Preparation,
    pub block: RaggedRows,
    buffer: RowBuffer,
    traversal: Traversal,
    hits: LeafHits,
    reranker: Option<Reranker<'a>>,
    /// The trees' scores of the current row.
    scores: LabelScores,
    /// Mean number of labels per training example in the leaves of the current row.
    labels_each: f32,
    /// What makes the final scores of these.
    scoring: Scoring<'a>,
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
            block: RaggedRows::default(),
            buffer: RowBuffer::default(),
            traversal: Traversal::new(width, params.arity),
            hits: LeafHits::default(),
            reranker,
            scores: LabelScores::new(ldsm.n_classes),
            labels_each: 0.0,
            scoring: Scoring::new(ldsm.scorers.as_ref(), params),
        }
    }

    /// Reads the rows `which` and sends them down all trees.
    pub fn read_block(&mut self, which: Range<usize>, control: &Control) -> Result<()> {
        self.block.clear();
        for i in which {
            self.preparation.read(self.rows, i, &mut self.buffer);
            let columns = self.buffer.columns.iter().copied();
            self.block.push(columns, &self.buffer.values);
        }
        self.hits.clear(self.block.len(), self.ldsm.trees.len());
        for tree in (0..).zip(&self.ldsm.trees) {
            control.check()?;
            let (traversal, block) = (&mut self.traversal, &self.block);
            self.hits.traverse(traversal, tree, block, |row| row);
        }
        Ok(())
    }

    /// Scores row `i` of the block.
    pub fn score_row(&mut self, i: usize) {
        let (trees, scores) = (&self.ldsm.trees, &mut self.scores);
        self.labels_each = self.hits.average(i, trees, trees.len(), scores);
        let row = self.block.row(i);
        if let Some(reranker) = &mut self.reranker {
            reranker.read(row);
        }
        self.scoring.read(row, scores);
    }

    /// Whether the current row rather has a label than not, by its share of the labels in the
    /// leaves and by its scorer.
    fn is_likely(&self, label: u32, share: f32) -> bool {
        // Shares of a leaf's labels become shares of its examples.
        let probability = share * self.labels_each;
        match self.scoring.probability(label) {
            None => probability > 0.5,
            Some(by_scorer) => 0.5 * (probability.min(1.0) + by_scorer) > 0.5,
        }
    }

    /// The final score of a label of the current row, of which the trees' is `share`.
    fn score(&self, label: u32, share: f32) -> f32 {
        let by_trees = match &self.reranker {
            Some(reranker) if share > 0.0 => reranker.rerank(label, share),
            _ => share,
        };
        self.scoring.score(label, by_trees)
    }

    pub fn best(&self, top: &mut TopK) {
        top.clear();
        if self.reranker.is_none() {
            return self.scoring.best(&self.scores, top);
        }
        let push = |label, share| top.push(label, self.score(label, share));
        self.scoring.for_each_label(&self.scores, push);
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        self.scoring.for_each_label(&self.scores, |label, share| {
            if selection != LabelSelection::Likely || self.is_likely(label, share) {
                found.push((label, self.score(label, share)));
            }
        });
        match selection {
            LabelSelection::Above(threshold) => found.retain(|&(_, score)| score > threshold),
            LabelSelection::Best(n) => keep_best(found, n),
            LabelSelection::Likely => {}
        }
        found.sort_unstable_by_key(|&(label, _)| label);
    }
}
