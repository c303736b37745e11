//! From a block of rows to the scores of their labels.
//!
//! All rows of the block traverse all trees; then the leaves that one row has reached
//! are added up at once, tree after tree, and re-ranking and scorers change the sums.

use std::ops::Range;

use super::centroids::Reranker;
use super::ensemble::Ldsm;
use super::join::Join;
use super::label_scores::LabelScores;
use super::leaf_hits::LeafHits;
use super::one_against_some::{Calibration, IndexMargins, OneAgainstSome};
use super::traversal::Traversal;
use crate::classifier::{LabelSelection, TopK};
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
    /// The margins of the scorers, if there are any, and how to join them.
    scorers: Option<(IndexMargins<'a>, Join)>,
    /// How final scores become probabilities, if they do.
    calibration: Option<Calibration>,
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
            scorers: ldsm
                .scorers
                .as_ref()
                .map(|scorers| (IndexMargins::new(scorers), scorers.join(params))),
            calibration: ldsm.scorers.as_ref().map(OneAgainstSome::calibration),
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

    /// Scores row `i` of the block; rows come in order.
    pub fn score_row(&mut self, i: usize) {
        let (trees, scores) = (&self.ldsm.trees, &mut self.scores);
        self.labels_each = self.hits.average(i, trees, trees.len(), scores);
        let row = self.block.row(i);
        if let Some(reranker) = &mut self.reranker {
            reranker.read(row);
        }
        if let Some((margins, _)) = &mut self.scorers {
            margins.read(row);
        }
    }

    /// Whether the current row rather has a label than not, by its share of the labels in the
    /// leaves and by its scorer.
    fn is_likely(&self, label: u32, share: f32) -> bool {
        // Shares of a leaf's labels become shares of its examples.
        let probability = share * self.labels_each;
        let Some((margins, _)) = &self.scorers else {
            return probability > 0.5;
        };
        let by_scorer = Join::probability(margins.margin(label));
        0.5 * (probability.min(1.0) + by_scorer) > 0.5
    }

    /// The score of a label of the current row by the trees, re-ranked.
    fn reranked(&self, label: u32, score: f32) -> f32 {
        let reranker = self.reranker.as_ref();
        reranker.map_or(score, |reranker| reranker.rerank(label, score))
    }

    /// The final score of a label of the current row, from its re-ranked score.
    fn joined(&self, label: u32, score: f32) -> f32 {
        match &self.scorers {
            None => score,
            Some((margins, join)) => join.score(score, margins.margin(label)),
        }
    }

    /// Calls `visit` with the labels that only the scorers find for the current row, and
    /// their final scores, but for labels below `bar`.
    fn for_each_unknown_to_trees(&self, bar: f32, mut visit: impl FnMut(u32, f32)) {
        let Some((margins, join)) = &self.scorers else {
            return;
        };
        let least = join.least_margin(bar);
        for (label, margin) in margins.touched() {
            if margin >= least && !self.scores.contains(label) {
                visit(label, join.score(0.0, margin));
            }
        }
    }

    pub fn best(&self, top: &mut TopK) {
        top.clear();
        let Some((margins, join)) = &self.scorers else {
            let scores = &self.scores;
            return scores.for_each(|label, score| top.push(label, self.reranked(label, score)));
        };
        // Scorers never raise a score by more than the floor. Nearly all labels are too
        // low even then and need no margin.
        let mut take = |label, score| {
            if score + join.floor >= top.bar() {
                top.push(label, join.score(score, margins.margin(label)));
            }
        };
        match &self.reranker {
            None => self.scores.for_each(take),
            Some(reranker) => self
                .scores
                .for_each(|label, score| take(label, reranker.rerank(label, score))),
        }
        self.for_each_unknown_to_trees(top.bar(), |label, score| top.push(label, score));
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        // Probabilities decide, if there are any.
        let by_share = selection == LabelSelection::Likely && self.calibration.is_none();
        self.scores.for_each(|label, score| {
            if !by_share || self.is_likely(label, score) {
                found.push((label, self.joined(label, self.reranked(label, score))));
            }
        });
        self.for_each_unknown_to_trees(f32::NEG_INFINITY, |label, score| {
            found.push((label, score));
        });
        if let LabelSelection::Best(n) = selection {
            if n < found.len() {
                // Of equal scores the smaller label, as everywhere.
                found.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                found.truncate(n);
            }
        }
        self.calibrate(found.iter_mut().map(|(_, score)| score));
        match selection {
            LabelSelection::Above(threshold) => found.retain(|&(_, score)| score > threshold),
            LabelSelection::Likely if !by_share => found.retain(|&(_, score)| score > 0.5),
            _ => {}
        }
        found.sort_unstable_by_key(|&(label, _)| label);
    }

    /// Makes probabilities of final scores, where there are scorers. What is no score, minus
    /// infinity, stays.
    pub fn calibrate<'s>(&self, scores: impl IntoIterator<Item = &'s mut f32>) {
        if let Some(calibration) = self.calibration {
            let scores = scores.into_iter();
            scores
                .filter(|score| **score > f32::NEG_INFINITY)
                .for_each(|score| *score = calibration.probability(*score));
        }
    }
}
