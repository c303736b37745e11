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

/// Sums over the rows with a code up to this one, for every code present, in their order.
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
    /// Rows by code.
    pub counts: [u32; MAX_CODES],
    /// The codes that the rows of the node have, rising. In a small node they are much fewer than
    /// the feature has.
    present: [u8; MAX_CODES],
    n_present: usize,
    sums: PrefixSums,
    /// Scores of the cuts after each code present.
    scores: [f64; MAX_CODES],
}

impl Default for CodeTable {
    fn default() -> Self {
        let zero = [0.0; MAX_CODES];
        Self {
            counts: [0; MAX_CODES],
            present: [0; MAX_CODES],
            n_present: 0,
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
    /// Finds the codes present, once the rows are counted.
    pub fn find_present(&mut self) {
        self.n_present = 0;
        // All are written and those present are kept: no branch that could be mispredicted.
        for (code, &count) in (0..=u8::MAX).zip(&self.counts) {
            self.present[self.n_present % MAX_CODES] = code;
            self.n_present += usize::from(count > 0);
        }
    }

    /// The codes present, rising.
    pub fn present(&self) -> &[u8] {
        &self.present[..self.n_present]
    }

    /// The best cut of a feature of this `coding`. The codes present are found; `sum` finds the sums
    /// up to each of them, that of missing values aside, with these on the left or not.
    pub fn best_cut(
        &mut self,
        node: &Node,
        coding: &Coding,
        mut sum: impl FnMut(&[u8], bool, &mut PrefixSums),
    ) -> Option<Cut> {
        let present = &self.present[..self.n_present];
        let (values, n_missing) = match (present.split_last(), coding.missing_code()) {
            (Some((&last, values)), Some(missing)) if u32::from(last) == missing => {
                (values, self.counts[last as usize] as usize)
            }
            _ => (present, 0),
        };
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
            for (at, (&code, &score)) in values.iter().zip(&*scores).enumerate() {
                rows += self.counts[code as usize] as usize;
                if rows >= node.min_rows && all - rows >= node.min_rows {
                    best.offer(Cut {
                        score,
                        last_left: u32::from(code),
                        first_right: values.get(at + 1).map(|&next| u32::from(next)),
                        missing_left: missing,
                        left_weight: sums.weight[at],
                    });
                }
            }
        }
        best.cut
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
