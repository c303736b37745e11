//! From a block of rows to the scores of their labels.
//!
//! All rows of the block traverse all trees, together or, if they are few, one by one; then the
//! leaves that one row has reached are added up at once, tree after tree, and re-ranking and
//! scorers change the sums.

use std::ops::Range;
use std::sync::OnceLock;

use super::centroids::Reranker;
use super::ensemble::Ldsm;
use super::label_scores::LabelScores;
use super::leaf_hits::LeafHits;
use super::one_against_some::{Calibration, OneAgainstSome};
use super::row_traversal::RowTraversal;
use super::scoring::{Scoring, ScoringMemory};
use super::spread_row::SpreadRow;
use super::top_splits::TopSplits;
use super::traversal::Traversal;
use super::tree::Tree;
use crate::classifier::{keep_best, LabelSelection, TopK};
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;
use crate::pool::Pool;

/// Rows of a block up to which each goes down all trees alone: few would share a node's weights.
const FEW_ROWS: usize = 4;

/// What blocks of rows are predicted in. Some of it is as long as there are labels or columns, which
/// would take longer to make than a row takes to predict.
pub struct PredictionMemory {
    block: RaggedRows,
    buffer: RowBuffer,
    traversal: Traversal,
    row_traversal: RowTraversal,
    hits: LeafHits,
    reranked: SpreadRow,
    scores: LabelScores,
    scoring: ScoringMemory,
}

impl PredictionMemory {
    /// For predictions by `ldsm` as it is now, of rows of `width` columns.
    pub fn new(ldsm: &Ldsm, width: usize) -> Self {
        Self {
            block: RaggedRows::default(),
            buffer: RowBuffer::default(),
            traversal: Traversal::new(width, ldsm.params.arity),
            row_traversal: RowTraversal::default(),
            hits: LeafHits::default(),
            reranked: SpreadRow::default(),
            scores: LabelScores::new(ldsm.n_classes),
            scoring: ScoringMemory::default(),
        }
    }
}

/// What predictions of few rows keep, of the model as it is.
#[derive(Debug, Clone, Default)]
pub struct SingleRows {
    pub memories: Pool<PredictionMemory>,
    /// Made when they are first needed.
    top_splits: OnceLock<TopSplits>,
}

impl SingleRows {
    /// Those of the model's `trees`.
    fn top_splits(&self, trees: &[Tree], width: usize) -> &TopSplits {
        self.top_splits.get_or_init(|| TopSplits::new(trees, width))
    }
}

/// Predicts a block of rows.
pub struct Predictor<'a> {
    ldsm: &'a Ldsm,
    rows: &'a Rows<'a>,
    preparation: &'a Preparation,
    pub block: &'a mut RaggedRows,
    buffer: &'a mut RowBuffer,
    traversal: &'a mut Traversal,
    row_traversal: &'a mut RowTraversal,
    hits: &'a mut LeafHits,
    reranker: Option<Reranker<'a>>,
    /// The trees' scores of the current row.
    scores: &'a mut LabelScores,
    /// Mean number of labels per training example in the leaves of the current row.
    labels_each: f32,
    /// What makes the final scores of these.
    scoring: Scoring<'a>,
    /// How final scores become probabilities, if they do.
    calibration: Option<Calibration>,
}

impl<'a> Predictor<'a> {
    pub fn new(
        ldsm: &'a Ldsm,
        rows: &'a Rows<'a>,
        preparation: &'a Preparation,
        memory: &'a mut PredictionMemory,
    ) -> Self {
        let (params, width) = (&ldsm.params, preparation.width());
        let PredictionMemory {
            block,
            buffer,
            traversal,
            row_traversal,
            hits,
            reranked,
            scores,
            scoring,
        } = memory;
        let reranker = ldsm.centroids.as_ref();
        Self {
            ldsm,
            rows,
            preparation,
            block,
            buffer,
            traversal,
            row_traversal,
            hits,
            reranker: reranker.map(|c| Reranker::new(c, params, width, reranked)),
            scores,
            labels_each: 0.0,
            scoring: Scoring::new(ldsm.scorers.as_ref(), params, scoring),
            calibration: ldsm.scorers.as_ref().map(OneAgainstSome::calibration),
        }
    }

    /// Reads the rows `which` and sends them down all trees.
    pub fn read_block(&mut self, which: Range<usize>, control: &Control) -> Result<()> {
        self.block.clear();
        for i in which {
            self.preparation.read(self.rows, i, self.buffer);
            let columns = self.buffer.columns.iter().copied();
            self.block.push(columns, &self.buffer.values);
        }
        self.hits.clear(self.block.len(), self.ldsm.trees.len());
        let (trees, block, hits) = (&self.ldsm.trees, &*self.block, &mut *self.hits);
        if block.len() <= FEW_ROWS {
            let width = self.preparation.width();
            let top = self.ldsm.single_rows.top_splits(trees, width);
            for i in 0..block.len() {
                control.check()?;
                let row = (i, block.row(i));
                hits.traverse_alone(self.row_traversal, (trees, top), row, width);
            }
            return Ok(());
        }
        for tree in (0..).zip(trees) {
            control.check()?;
            hits.traverse(self.traversal, tree, block, |row| row);
        }
        Ok(())
    }

    /// Numbers of the trees and of the leaves that row `i` of the block reaches in them.
    pub fn leaves(&self, i: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.hits.of_row(i)
    }

    /// Scores row `i` of the block.
    pub fn score_row(&mut self, i: usize) {
        let (trees, scores) = (&self.ldsm.trees, &mut *self.scores);
        self.labels_each = self.hits.average(i, trees, trees.len(), scores);
        let row = self.block.row(i);
        if let Some(reranker) = &mut self.reranker {
            reranker.read(row);
        }
        self.scoring.read(row, scores);
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
            return self.scoring.best(self.scores, top);
        }
        let push = |label, share| top.push(label, self.score(label, share));
        self.scoring.for_each_label(self.scores, push);
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        // Probabilities decide, if there are any: shares of a leaf's labels, made shares of its
        // examples, if not.
        let is_by_likelihood = matches!(selection, LabelSelection::Likely(_));
        let by_share = is_by_likelihood && self.calibration.is_none();
        self.scoring.for_each_label(self.scores, |label, share| {
            if !by_share || share * self.labels_each > 0.5 {
                found.push((label, self.score(label, share)));
            }
        });
        if let LabelSelection::Best(n) = selection {
            keep_best(found, n);
        }
        self.calibrate(found.iter_mut().map(|(_, score)| score));
        match selection {
            LabelSelection::Above(threshold) => found.retain(|&(_, score)| score > threshold),
            LabelSelection::Likely(_) if !by_share => found.retain(|&(_, score)| score > 0.5),
            _ => {}
        }
        match selection {
            LabelSelection::Likely(n) if found.len() < n => {
                self.select(LabelSelection::Best(n), found);
            }
            _ => found.sort_unstable_by_key(|&(label, _)| label),
        }
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
