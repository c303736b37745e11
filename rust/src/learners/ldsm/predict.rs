//! From a block of rows to the scores of their labels.
//!
//! All rows of the block traverse all trees, together or, if they are few, one by one; then the
//! leaves that one row has reached are added up at once, tree after tree, and re-ranking and
//! scorers change the sums.

use std::ops::Range;

use super::centroids::{Centroids, Reranker};
use super::params::Params;
use super::traverse::LeafHits;
use super::tree::Tree;
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows, SpreadRow};
use crate::error::Result;
use crate::learners::one_against_some::{
    Calibration, LabelScores, OneAgainstSome, Ranker, RankerMemory,
};
use crate::model::{keep_best, LabelSelection, TopK};

/// The parts of a model that predictions read.
#[derive(Debug, Clone, Copy)]
pub struct Learned<'a> {
    pub params: &'a Params,
    pub preparation: &'a Preparation,
    pub trees: &'a [Tree],
    pub centroids: Option<&'a Centroids>,
    pub scorers: Option<&'a OneAgainstSome>,
}

/// Working memory of predictions by one model. Some of it is as long as there are labels or columns,
/// which would take longer to allocate than a row takes to predict.
#[derive(Debug)]
pub struct PredictionMemory {
    block: RaggedRows,
    buffer: RowBuffer,
    hits: LeafHits,
    reranked: SpreadRow,
    scores: LabelScores,
    ranker: RankerMemory,
}

impl PredictionMemory {
    pub fn new(n_classes: usize) -> Self {
        Self {
            block: RaggedRows::default(),
            buffer: RowBuffer::default(),
            hits: LeafHits::default(),
            reranked: SpreadRow::default(),
            scores: LabelScores::new(n_classes),
            ranker: RankerMemory::default(),
        }
    }
}

/// Predicts a block of rows.
pub struct Predictor<'a> {
    learned: Learned<'a>,
    block: &'a mut RaggedRows,
    buffer: &'a mut RowBuffer,
    hits: &'a mut LeafHits,
    reranker: Option<Reranker<'a>>,
    /// The trees' scores of the current row.
    scores: &'a mut LabelScores,
    /// Mean number of labels per training example in the leaves of the current row.
    labels_each: f32,
    /// Makes the final scores of these.
    ranker: Ranker<'a>,
}

impl<'a> Predictor<'a> {
    /// With memory that has been used with this model alone.
    pub fn new(learned: Learned<'a>, memory: &'a mut PredictionMemory) -> Self {
        let PredictionMemory {
            block,
            buffer,
            hits,
            reranked,
            scores,
            ranker,
        } = memory;
        let (beta, width) = (learned.params.beta, learned.preparation.width());
        let reranker = learned.centroids;
        Self {
            learned,
            block,
            buffer,
            hits,
            reranker: reranker.map(|centroids| Reranker::new(centroids, beta, width, reranked)),
            scores,
            labels_each: 0.0,
            ranker: Ranker::new(learned.scorers, ranker),
        }
    }

    /// How final scores become probabilities, if they do.
    fn calibration(&self) -> Option<Calibration> {
        self.learned.scorers.map(|scorers| scorers.calibration)
    }

    /// Reads the rows `which` and sends them through all trees.
    pub fn read_block(
        &mut self,
        rows: &Rows<'_>,
        which: Range<usize>,
        control: &Control,
    ) -> Result<()> {
        let Learned {
            preparation, trees, ..
        } = self.learned;
        self.block.clear();
        for i in which {
            preparation.read(rows, i, self.buffer);
            let columns = self.buffer.columns.iter().copied();
            self.block.push(columns, &self.buffer.values);
        }
        let width = preparation.width();
        self.hits.find(trees, self.block, width, control)
    }

    /// Number of rows of the block.
    pub fn n_rows(&self) -> usize {
        self.block.len()
    }

    /// Numbers of the trees and of the leaves that row `i` of the block reaches in them.
    pub fn leaves(&self, i: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.hits.leaves(i)
    }

    /// Scores row `i` of the block.
    pub fn score_row(&mut self, i: usize) {
        let trees = self.learned.trees;
        self.labels_each = self.hits.average(i, trees, trees.len(), self.scores);
        let row = self.block.row(i);
        if let Some(reranker) = &mut self.reranker {
            reranker.read(row);
        }
        self.ranker.read(row, self.scores);
    }

    /// The final score of a label of the current row, of which the trees' is `share`.
    fn score(&self, label: u32, share: f32) -> f32 {
        let by_trees = match &self.reranker {
            Some(reranker) if share > 0.0 => reranker.rerank(label, share),
            _ => share,
        };
        self.ranker.score(label, by_trees)
    }

    pub fn best(&self, top: &mut TopK) {
        top.clear();
        if self.reranker.is_none() {
            return self.ranker.best(self.scores, top);
        }
        let push = |label, share| top.push(label, self.score(label, share));
        self.ranker.for_each_label(self.scores, push);
    }

    /// The selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        // Probabilities decide, if there are any: shares of a leaf's labels, made shares of its
        // examples, if not.
        let is_by_likelihood = matches!(selection, LabelSelection::Likely(_));
        let by_share = is_by_likelihood && self.calibration().is_none();
        self.ranker.for_each_label(self.scores, |label, share| {
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
        if let Some(calibration) = self.calibration() {
            let scores = scores.into_iter();
            scores
                .filter(|score| **score > f32::NEG_INFINITY)
                .for_each(|score| *score = calibration.probability(*score));
        }
    }
}
