//! From the trees' scores of a row to its final scores.
//!
//! Without scorers the trees' scores are final. With them a row's labels are those that a tree
//! names or that have a weight for a feature of the row. Where these are too many, they are the
//! best by the trees' scores joined with what the largest weights say. The model decides which, not
//! the rows that are predicted together: a prediction depends on its row alone.

use super::join::Join;
use super::label_scores::LabelScores;
use super::one_against_some::{
    IndexMargins, MarginMemory, OneAgainstSome, PartialMargins, RowMargins, BLOCK,
};
use super::params::Params;
use crate::classifier::{keep_best, TopK};
use crate::simd::{dispatched, LANES};

/// Labels that are scored where not all are: so many of the best by the trees alone, and by trees
/// and largest weights. Where a label follows from many small weights, the largest say little.
const CANDIDATES: usize = 64;

/// What rows are scored in, kept between uses.
#[derive(Debug, Default)]
pub struct ScoringMemory {
    margins: MarginMemory,
    is_met: Vec<bool>,
    candidates: Vec<(u32, f32)>,
}

/// Makes the final scores of one row after the other.
pub struct Scoring<'a> {
    join: Join,
    margins: Margins<'a>,
}

/// What knows the margins of the current row.
enum Margins<'a> {
    /// There are no scorers.
    None,
    OfAll {
        margins: IndexMargins<'a>,
        biases: &'a [f32],
        /// Whether a block of labels has one that a tree or a scorer names.
        is_met: &'a mut Vec<bool>,
    },
    OfCandidates {
        margins: PartialMargins<'a>,
        /// The labels that are scored and their scores by the trees, falling.
        candidates: &'a mut Vec<(u32, f32)>,
    },
}

impl<'a> Scoring<'a> {
    /// With memory that has been used with these scorers alone.
    pub fn new(
        scorers: Option<&'a OneAgainstSome>,
        params: &Params,
        memory: &'a mut ScoringMemory,
    ) -> Self {
        let none = Join {
            floor: 0.0,
            weight: 0.0,
        };
        let ScoringMemory {
            margins,
            is_met,
            candidates,
        } = memory;
        let margins = match scorers.map(|scorers| RowMargins::new(scorers, margins)) {
            None => Margins::None,
            Some(RowMargins::Complete(margins)) => Margins::OfAll {
                biases: margins.biases(),
                margins,
                is_met,
            },
            Some(RowMargins::Partial(margins)) => Margins::OfCandidates {
                margins,
                candidates,
            },
        };
        Self {
            join: scorers.map_or(none, |scorers| scorers.join(params)),
            margins,
        }
    }

    /// Makes a row the current one; `scores` are the trees'.
    pub fn read(&mut self, row: (&[u32], &[f32]), scores: &LabelScores) {
        match &mut self.margins {
            Margins::None => {}
            Margins::OfAll {
                margins, is_met, ..
            } => {
                margins.read(row);
                is_met.clear();
                is_met.extend(margins.is_met());
                scores.mark_blocks::<BLOCK>(is_met);
            }
            Margins::OfCandidates {
                margins,
                candidates,
            } => {
                margins.read(row);
                candidates.clear();
                scores.for_each(|label, score| candidates.push((label, score)));
                keep_best(candidates, CANDIDATES);
                let of_trees = candidates.len();
                let join = self.join;
                let mut add = |label, tree_score| {
                    let bound = join.upper_bound(tree_score, margins.partial_margin(label));
                    candidates.push((label, bound));
                };
                let by_trees = scores.by_label();
                scores.for_each(&mut add);
                let found = margins.found().map(|(label, _)| label);
                found
                    .filter(|&label| by_trees[label as usize] == 0.0)
                    .for_each(|label| add(label, 0.0));
                let mut by_bound = candidates.split_off(of_trees);
                keep_best(&mut by_bound, CANDIDATES);
                candidates.append(&mut by_bound);
                for (label, score) in candidates.iter_mut() {
                    *score = by_trees[*label as usize];
                }
                candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                candidates.dedup();
            }
        }
    }

    /// The margin of a label of the current row, if there are scorers.
    fn margin(&self, label: u32) -> Option<f32> {
        match &self.margins {
            Margins::None => None,
            Margins::OfAll { margins, .. } => Some(margins.margin(label)),
            Margins::OfCandidates { margins, .. } => Some(margins.margin(label)),
        }
    }

    /// The final score of a label of the current row, from its score by the trees.
    pub fn score(&self, label: u32, tree_score: f32) -> f32 {
        match self.margin(label) {
            None => tree_score,
            Some(margin) => self.join.score(tree_score, margin),
        }
    }

    /// Calls `visit` with each label of the current row and its score by the trees.
    pub fn for_each_label(&self, scores: &LabelScores, mut visit: impl FnMut(u32, f32)) {
        match &self.margins {
            Margins::None => scores.for_each(visit),
            Margins::OfAll {
                margins, is_met, ..
            } => {
                let (scores, products) = (scores.by_label(), margins.products());
                for block in (0..is_met.len()).filter(|&block| is_met[block]) {
                    let labels = block * BLOCK..scores.len().min((block + 1) * BLOCK);
                    for label in labels.filter(|&i| scores[i] > 0.0 || products[i] != 0.0) {
                        visit(label as u32, scores[label]);
                    }
                }
            }
            Margins::OfCandidates { candidates, .. } => {
                for &(label, score) in &**candidates {
                    visit(label, score);
                }
            }
        }
    }

    /// The best labels of the current row.
    pub fn best(&self, scores: &LabelScores, top: &mut TopK) {
        let join = self.join;
        match &self.margins {
            Margins::None => scores.for_each(|label, score| top.push(label, score)),
            Margins::OfAll {
                margins,
                biases,
                is_met,
            } => {
                let lists = [scores.by_label(), margins.products(), *biases];
                if scores.is_listed() {
                    // Labels that trees name come first: few others reach the bar that they set.
                    scores.for_each(|label, score| {
                        let margin = margins.margin(label);
                        if join.upper_bound(score, margin) >= top.bar() {
                            top.push(label, join.score(score, margin));
                        }
                    });
                    let is_met = margins.is_met();
                    for block in (0..is_met.len()).filter(|&block| is_met[block]) {
                        best_of_unnamed(join, block * BLOCK, lists, top);
                    }
                } else {
                    for block in (0..is_met.len()).filter(|&block| is_met[block]) {
                        best_of_block(join, block * BLOCK, lists, top);
                    }
                }
            }
            Margins::OfCandidates {
                margins,
                candidates,
            } => {
                for &(label, score) in &**candidates {
                    // Scorers raise a score by the floor at most.
                    if score + join.floor < top.bar() {
                        break;
                    }
                    top.push(label, join.score(score, margins.margin(label)));
                }
            }
        }
    }
}

/// Takes the best of those labels of a block that no tree names, from the trees' scores, the
/// products and the biases of all labels.
fn best_of_unnamed(join: Join, from: usize, lists: [&[f32]; 3], top: &mut TopK) {
    let to = lists[0].len().min(from + BLOCK);
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
    fn has_margin(least: f32, products: &[f32; BLOCK], biases: &[f32; BLOCK]) -> bool {
        let mut n = 0;
        for i in 0..BLOCK {
            let is_above = (products[i] + biases[i] >= least) & (products[i] != 0.0);
            n += u32::from(is_above);
        }
        n > 0
    }
}

/// Takes the best of a block of labels, from the trees' scores, the products and the biases of
/// all labels. Labels come in their order: of equal scores the first is the best.
fn best_of_block(join: Join, from: usize, lists: [&[f32]; 3], top: &mut TopK) {
    let to = lists[0].len().min(from + BLOCK);
    let [scores, products, biases] = lists.map(|list| &list[from..to]);
    let runs = (to - from).div_ceil(LANES);
    let may_exceed = match (scores.try_into(), products.try_into(), biases.try_into()) {
        (Ok(scores), Ok(products), Ok(biases)) => {
            runs_above(join, top.bar(), scores, products, biases)
        }
        // The last block.
        _ => [true; BLOCK / LANES],
    };
    for run in (0..runs).filter(|&run| may_exceed[run]) {
        for i in run * LANES..(to - from).min((run + 1) * LANES) {
            let (score, product) = (scores[i], products[i]);
            let margin = product + biases[i];
            let is_named = score > 0.0 || product != 0.0;
            if is_named && join.upper_bound(score, margin) > top.bar() {
                top.push((from + i) as u32, join.score(score, margin));
            }
        }
    }
}

dispatched! {
    /// Of each run of labels, whether one may have a score above `bar`.
    fn runs_above(
        join: Join,
        bar: f32,
        scores: &[f32; BLOCK],
        products: &[f32; BLOCK],
        biases: &[f32; BLOCK],
    ) -> [bool; BLOCK / LANES] {
        let mut found = [false; BLOCK / LANES];
        for (run, found) in found.iter_mut().enumerate() {
            let mut n = 0;
            for i in run * LANES..(run + 1) * LANES {
                let margin = products[i] + biases[i];
                n += u32::from(join.upper_bound(scores[i], margin) > bar);
            }
            *found = n > 0;
        }
        found
    }
}
