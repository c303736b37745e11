//! Features of at most 256 codes, and their best cut from the sums up to every code.
//!
//! The strategies `histogram` and `sorted_scan` differ in how they find these sums; scoring the
//! cuts by them is the same, O(codes).

use super::binning::Coding;
use super::node::Node;
use super::split::{BestCut, Cut};
use crate::simd::dispatched;

/// Codes that a small feature has at most.
pub const MAX_CODES: usize = 256;

/// Sums over the rows with a code up to this one, for every code.
#[derive(Debug)]
pub struct PrefixSums {
    pub weight: [f64; MAX_CODES],
    /// Sum of the squared weights of their classes.
    pub left: [f64; MAX_CODES],
    /// And that of all other rows.
    pub right: [f64; MAX_CODES],
}

/// What is known of every code of a small feature at a node. Workspace of one strategy.
#[derive(Debug)]
pub struct CodeTable {
    pub counts: [u32; MAX_CODES],
    sums: PrefixSums,
    /// Scores of the cuts after each code.
    scores: [f64; MAX_CODES],
}

impl Default for CodeTable {
    fn default() -> Self {
        let zero = [0.0; MAX_CODES];
        Self {
            counts: [0; MAX_CODES],
            sums: PrefixSums {
                weight: zero,
                left: zero,
                right: zero,
            },
            scores: zero,
        }
    }
}

impl CodeTable {
    /// The best cut of a feature of this `coding`. `counts` is filled; `sum` finds the sums up to
    /// each code of a value from these counts, with missing values on the left or not.
    pub fn best_cut(
        &mut self,
        node: &Node,
        coding: &Coding,
        mut sum: impl FnMut(&[u32], bool, &mut PrefixSums),
    ) -> Option<Cut> {
        let (values, missing) = self.counts[..coding.n_codes()].split_at(coding.spans.len());
        let n_missing = missing.first().map_or(0, |&count| count as usize);
        let (sums, scores, all) = (&mut self.sums, &mut self.scores, node.len());
        let mut best = BestCut::new(node);
        for missing_left in [false, true] {
            if missing_left && n_missing == 0 {
                break;
            }
            sum(values, missing_left, sums);
            score(sums, values.len(), node.weight, scores);
            let missing = (n_missing > 0).then_some(missing_left);
            let mut rows = if missing_left { n_missing } else { 0 };
            for (code, (&count, &score)) in values.iter().zip(&*scores).enumerate() {
                rows += count as usize;
                // The sums of a code without rows are those before it, and no better.
                if rows >= node.min_rows && all - rows >= node.min_rows {
                    best.offer(Cut {
                        score,
                        last_left: code as u32,
                        first_right: None,
                        missing_left: missing,
                        left_weight: sums.weight[code],
                    });
                }
            }
        }
        let mut cut = best.cut?;
        let after = cut.last_left as usize + 1;
        let next = values[after..].iter().position(|&count| count > 0);
        cut.first_right = next.map(|next| (after + next) as u32);
        Some(cut)
    }
}

dispatched! {
    /// Scores of the cuts after each of `n` codes, of a node of weight `all`; 0 where rounding
    /// leaves a side no weight.
    fn score(sums: &PrefixSums, n: usize, all: f64, scores: &mut [f64; MAX_CODES]) {
        let sides = sums.weight.iter().zip(&sums.left).zip(&sums.right);
        for (score, ((&weight, &left), &right)) in scores[..n].iter_mut().zip(sides) {
            let rest = all - weight;
            // A difference of large sums may leave more than there can be.
            let right = right.max(0.0).min(rest * rest);
            let sum = left / weight + right / rest;
            *score = if weight > 0.0 && rest > 0.0 { sum } else { 0.0 };
        }
    }
}
