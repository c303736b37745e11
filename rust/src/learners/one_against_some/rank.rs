//! The best labels of a row, by scores of another model joined with the margins of scorers.
//!
//! A row's labels are those that the other model names or that have a weight for a feature of the row.
//! Where these are too many, they are the best by the scores joined with what the largest weights say.
//! The model decides which, not the rows that are predicted together: a prediction depends on its row
//! alone. Without scorers the scores of the other model are final.

use super::join::Join;
use super::margins::{MarginMemory, RowMargins};
use super::weights::{OneAgainstSome, LABELS_PER_BLOCK};
use crate::data::PackedLists;
use crate::model::{keep_best, TopK};
use crate::simd::dispatched;

/// The labels of one row that have a score above 0, and their scores.
#[derive(Debug)]
pub struct LabelScores {
    scores: Vec<f32>,
    /// The labels that have a score; not kept where there are so few labels that
    /// looking at all of them is faster.
    touched: Option<Vec<u32>>,
}

/// Up to so many labels it is faster to look at all of them than to note which have
/// a score: the leaves of many trees have thousands of entries.
const MAX_SCANNED_LABELS: usize = 4096;

impl LabelScores {
    /// No scores yet, of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Self {
            scores: vec![0.0; n_labels],
            touched: (n_labels > MAX_SCANNED_LABELS).then(Vec::new),
        }
    }

    /// Removes all scores, for the next row.
    pub fn clear(&mut self) {
        match &mut self.touched {
            None => self.scores.fill(0.0),
            Some(touched) => {
                for label in touched.drain(..) {
                    self.scores[label as usize] = 0.0;
                }
            }
        }
    }

    /// Adds histogram `i` of `histograms`, times `scale`.
    pub fn add(&mut self, histograms: &PackedLists, i: usize, scale: f32) {
        let scores = &mut self.scores;
        // Above 0, however small: this is how a label that was touched is known.
        let added = |count: f32| (count * scale).max(f32::MIN_POSITIVE);
        match &mut self.touched {
            None => histograms.for_each(i, |label, [count]| {
                scores[label as usize] += added(count);
            }),
            Some(touched) => histograms.for_each(i, |label, [count]| {
                let score = &mut scores[label as usize];
                if *score == 0.0 {
                    touched.push(label);
                }
                *score += added(count);
            }),
        }
    }

    /// The scores by label; 0 where there is none.
    pub fn by_label(&self) -> &[f32] {
        &self.scores
    }

    /// Calls `visit` with every label that has a score, and the score, in an order
    /// that stays the same until [`Self::clear`].
    pub fn for_each(&self, mut visit: impl FnMut(u32, f32)) {
        match &self.touched {
            None => {
                for (label, &score) in (0..).zip(&self.scores) {
                    if score > 0.0 {
                        visit(label, score);
                    }
                }
            }
            Some(touched) => {
                for &label in touched {
                    visit(label, self.scores[label as usize]);
                }
            }
        }
    }
}

/// Labels that are scored where not all are: so many of the best by the other model alone, and by it
/// and the largest weights. Where a label follows from many small weights, the largest say little.
const CANDIDATES: usize = 64;

/// What rows are ranked in, kept between uses.
#[derive(Debug, Default)]
pub struct RankerMemory {
    margins: MarginMemory,
    candidates: Vec<(u32, f32)>,
}

/// Makes the final scores of one row after the other.
pub struct Ranker<'a> {
    join: Join,
    /// If there are scorers.
    margins: Option<RowMargins<'a>>,
    /// Where not all margins are known: the labels that are scored and their scores by the other
    /// model, falling.
    candidates: &'a mut Vec<(u32, f32)>,
}

impl<'a> Ranker<'a> {
    /// With memory that has been used with these scorers alone.
    pub fn new(scorers: Option<&'a OneAgainstSome>, memory: &'a mut RankerMemory) -> Self {
        let margins = &mut memory.margins;
        Self {
            join: scorers.map_or(Join::default(), |scorers| scorers.join),
            margins: scorers.map(|scorers| RowMargins::new(scorers, margins)),
            candidates: &mut memory.candidates,
        }
    }

    /// Makes a row the current one; `scores` are the other model's.
    pub fn read(&mut self, row: (&[u32], &[f32]), scores: &LabelScores) {
        if let Some(margins) = &mut self.margins {
            margins.read(row);
            if !margins.is_complete() {
                find_candidates(self.join, margins, scores, self.candidates);
            }
        }
    }

    /// The final score of a label of the current row, from its score by the other model.
    pub fn score(&self, label: u32, score: f32) -> f32 {
        match &self.margins {
            None => score,
            Some(margins) => self.join.score(score, margins.margin(label)),
        }
    }

    /// Calls `visit` with each label of the current row and its score by the other model.
    pub fn for_each_label(&self, scores: &LabelScores, mut visit: impl FnMut(u32, f32)) {
        match &self.margins {
            None => scores.for_each(visit),
            Some(margins) if margins.is_complete() => {
                scores.for_each(&mut visit);
                margins.for_each_found(|label, _| {
                    if scores.by_label()[label as usize] == 0.0 {
                        visit(label, 0.0);
                    }
                });
            }
            Some(_) => {
                for &(label, score) in &*self.candidates {
                    visit(label, score);
                }
            }
        }
    }

    /// The best labels of the current row.
    pub fn best(&self, scores: &LabelScores, top: &mut TopK) {
        let join = self.join;
        let Some(margins) = &self.margins else {
            return scores.for_each(|label, score| top.push(label, score));
        };
        if !margins.is_complete() {
            for &(label, score) in &*self.candidates {
                // Scorers raise a score by the floor at most.
                if score + join.floor < top.bar() {
                    break;
                }
                top.push(label, join.score(score, margins.margin(label)));
            }
            return;
        }
        // Labels that are named come first: few others reach the bar that they set.
        scores.for_each(|label, score| {
            let margin = margins.index_margin(label);
            if join.upper_bound(score, margin) >= top.bar() {
                top.push(label, join.score(score, margin));
            }
        });
        let lists = [scores.by_label(), margins.products(), margins.biases()];
        for block in margins.met_blocks() {
            best_of_unnamed(join, block * LABELS_PER_BLOCK, lists, top);
        }
    }
}

/// The labels of a row that are scored where not all are, and their `scores`, falling.
fn find_candidates(
    join: Join,
    margins: &RowMargins<'_>,
    scores: &LabelScores,
    candidates: &mut Vec<(u32, f32)>,
) {
    let by_label = scores.by_label();
    candidates.clear();
    scores.for_each(|label, score| candidates.push((label, score)));
    let bound = |label, score| join.upper_bound(score, margins.index_margin(label));
    let named = candidates
        .iter()
        .map(|&(label, score)| (label, bound(label, score)));
    let mut by_bound: Vec<(u32, f32)> = named.collect();
    margins.for_each_found(|label, _| {
        if by_label[label as usize] == 0.0 {
            by_bound.push((label, bound(label, 0.0)));
        }
    });
    keep_best(candidates, CANDIDATES);
    keep_best(&mut by_bound, CANDIDATES);
    let by_bound = by_bound.into_iter().map(|(label, _)| label);
    candidates.extend(by_bound.map(|label| (label, by_label[label as usize])));
    candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    candidates.dedup();
}

/// Takes the best of those labels of a block that no other model names, from the other model's scores, the
/// products and the biases of all labels.
fn best_of_unnamed(join: Join, from: usize, lists: [&[f32]; 3], top: &mut TopK) {
    let to = lists[0].len().min(from + LABELS_PER_BLOCK);
    let [scores, products, biases] = lists.map(|list| &list[from..to]);
    let mut least = join.least_margin(top.bar());
    if let (Ok(products), Ok(biases)) = (products.try_into(), biases.try_into()) {
        if !has_margin(least, products, biases) {
            return;
        }
    }
    for (i, (&product, bias)) in products.iter().zip(biases).enumerate() {
        let margin = product + bias;
        if product != 0.0 && margin >= least && scores[i] == 0.0 {
            top.push((from + i) as u32, join.score(0.0, margin));
            least = join.least_margin(top.bar());
        }
    }
}

dispatched! {
    /// Whether a label that has a product may have a margin of at least `least`.
    fn has_margin(least: f32, products: &[f32; LABELS_PER_BLOCK], biases: &[f32; LABELS_PER_BLOCK]) -> bool {
        let mut n = 0;
        for i in 0..LABELS_PER_BLOCK {
            let is_above = (products[i] + biases[i] >= least) & (products[i] != 0.0);
            n += u32::from(is_above);
        }
        n > 0
    }
}
