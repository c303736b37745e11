//! Models whose scorers are in parts: how they become a whole, and predictions with one part in
//! memory at a time. Labels and scores are those of the whole model.

use super::model::Ldsm;
use crate::data::{Preparation, RaggedRows};
use crate::error::{require, Error, Result};
use crate::learners::one_against_some::{
    GroupScorers, LabelScores, OneAgainstSome, Ranker, N_CANDIDATES,
};
use crate::model::{keep_best, Blocks, Query, TopK, TopKArrays};

/// Number of rows that a thread ranks together.
const STEP: usize = 512;

/// A prepared row and its best labels so far.
#[derive(Debug, Clone, Default)]
struct Row {
    columns: Vec<u32>,
    values: Vec<f32>,
    /// The labels that the trees find, their scores, best first, and these re-ranked by centroids.
    by_trees: Vec<(u32, f32, f32)>,
    /// Labels and their final scores.
    best: Vec<(u32, f32)>,
    /// Candidates by an index that is not complete: labels, their bounds and final scores.
    by_bound: Vec<(u32, f32, f32)>,
}

/// Ranks rows by the scorers of a part; kept between rows.
struct PartRanker<'a> {
    part: &'a GroupScorers,
    ranker: Ranker,
    /// Scores of the trees, and these re-ranked if the model has centroids.
    scores: LabelScores,
    reranked: Option<LabelScores>,
    block: RaggedRows,
}

impl<'a> PartRanker<'a> {
    fn new(part: &'a GroupScorers, is_reranked: bool) -> Self {
        Self {
            part,
            ranker: Ranker::default(),
            scores: LabelScores::new(part.labels.len()),
            reranked: is_reranked.then(|| LabelScores::new(part.labels.len())),
            block: RaggedRows::default(),
        }
    }

    /// Adds the labels of the part that may be among the `k` best of rows.
    fn rank(&mut self, rows: &mut [Row], k: usize) {
        self.block.clear();
        for row in rows.iter() {
            self.block.push(row.columns.iter().copied(), &row.values);
        }
        let (
            GroupScorers {
                labels, scorers, ..
            },
            ranker,
        ) = (self.part, &mut self.ranker);
        let number = |label| labels.binary_search(&label).ok().map(|i| i as u32);
        let mut top = TopK::new(k.min(labels.len()));
        for (i, row) in rows.iter_mut().enumerate() {
            self.scores.clear();
            self.reranked.iter_mut().for_each(LabelScores::clear);
            for &(label, score, reranked) in &row.by_trees {
                if let Some(i) = number(label) {
                    self.scores.set(i, score);
                    if let Some(scores) = &mut self.reranked {
                        scores.set(i, reranked);
                    }
                }
            }
            ranker.read(scorers, &self.block, i, &self.scores);
            let before = self.reranked.as_ref().unwrap_or(&self.scores).by_label();
            let score = |i: u32| ranker.score(scorers, i, before[i as usize]);
            if scorers.weights.is_index_complete() {
                top.clear();
                if self.reranked.is_some() {
                    let visit = |i, _| top.push(i, score(i));
                    ranker.for_each_label(scorers, &self.scores, 0.0, visit);
                } else {
                    ranker.best(scorers, &self.scores, &mut top);
                }
                let best = top.entries().map(|(i, score)| (labels[i as usize], score));
                row.best.extend(best);
                keep_best(&mut row.best, k);
                continue;
            }
            for &(label, ..) in row.by_trees.iter().take(N_CANDIDATES) {
                if let Some(i) = number(label) {
                    row.best.push((label, score(i)));
                }
            }
            for &(i, bound) in ranker.by_bound() {
                let label = labels[i as usize];
                row.by_bound.push((label, bound, score(i)));
            }
            let by_bound = &mut row.by_bound;
            by_bound.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            by_bound.truncate(N_CANDIDATES);
        }
    }
}

impl Ldsm {
    /// Returns the model with this join, and the scorers of all groups; without weights if there are
    /// no groups.
    pub fn joined(mut self, join: GroupScorers, parts: &[GroupScorers]) -> Result<Self> {
        self.scorers = Some(join.scorers);
        if parts.is_empty() {
            return Ok(self);
        }
        self.whole(parts)
    }

    /// Returns a model whose scorers have no weights with those of all groups.
    pub fn whole(mut self, parts: &[GroupScorers]) -> Result<Self> {
        self.scorers = Some(self.without_weights()?.with_parts(parts)?);
        Ok(self)
    }

    /// Returns the `k` best labels of each row and their scores, with the scorers of all `parts`.
    /// Takes a few kilobytes for each row.
    pub fn predict_topk_by_group(
        &self,
        query: &Query<'_>,
        k: usize,
        parts: impl Iterator<Item = Result<GroupScorers>>,
    ) -> Result<TopKArrays> {
        let OneAgainstSome {
            join, calibration, ..
        } = *self.without_weights()?;
        let mut rows = self.rows(query)?;
        let width = self.preparation.as_ref().map(Preparation::width);
        let mut n_labels = 0;
        for part in parts {
            let mut part = part?;
            part.scorers.join = join;
            let last = part.labels.last();
            let fits = Some(part.scorers.weights.n_features + 1) == width
                && last.is_none_or(|&last| (last as usize) < self.n_classes);
            require(fits, "trees and scorers do not match")?;
            n_labels += part.labels.len();
            let blocks = Blocks {
                query,
                step: STEP,
                new_predictor: || PartRanker::new(&part, self.centroids.is_some()),
            };
            blocks.each(rows.chunks_mut(STEP), |ranker, _, rows| {
                ranker.rank(rows, k);
                Ok(())
            })?;
        }
        let is_complete = n_labels == self.n_classes;
        require(is_complete, "the scorers of a group are missing")?;
        let k_found = k.min(self.n_classes);
        let blocks = Blocks {
            query,
            step: STEP,
            new_predictor: || TopK::new(k_found),
        };
        blocks.top_k(k, |top, which, labels, scores| {
            let places = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (row, (labels, scores)) in rows[which].iter().zip(places) {
                let by_bound = row.by_bound.iter().map(|&(label, _, score)| (label, score));
                let mut found: Vec<(u32, f32)> = row.best.iter().copied().chain(by_bound).collect();
                found.sort_unstable_by_key(|&(label, _)| label);
                found.dedup_by_key(|&mut (label, _)| label);
                top.clear();
                found
                    .iter()
                    .for_each(|&(label, score)| top.push(label, score));
                top.write(labels, scores);
                for score in scores
                    .iter_mut()
                    .filter(|score| **score > f32::NEG_INFINITY)
                {
                    *score = calibration.probability(*score);
                }
            }
            Ok(())
        })
    }

    /// Returns the scorers of a model whose weights are in parts.
    pub(super) fn without_weights(&self) -> Result<&OneAgainstSome> {
        let scorers = self.scorers.as_ref();
        let scorers = scorers.filter(|scorers| scorers.weights.lists.n_entries() == 0);
        scorers.ok_or_else(|| Error::data("the scorers of this model are not in parts"))
    }

    /// Prepares the rows and finds their labels by the trees.
    fn rows(&self, query: &Query<'_>) -> Result<Vec<Row>> {
        let blocks = self.blocks(query, None)?;
        blocks.fill(1, Row::default(), |predictor, which, rows: &mut [Row]| {
            predictor.read_block(query.rows, which, query.control)?;
            for (i, row) in rows.iter_mut().enumerate() {
                predictor.score_row(i);
                let (columns, values) = predictor.row(i);
                (row.columns, row.values) = (columns.to_vec(), values.to_vec());
                let by_trees = &mut row.by_trees;
                predictor.for_each_label(0.0, |label, score| {
                    by_trees.push((label, score, predictor.score(label, score)));
                });
                by_trees.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                by_trees.shrink_to_fit();
            }
            Ok(())
        })
    }
}
