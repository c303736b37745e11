//! The best cut of a feature of few codes, at most 256: from the sums up to every code,
//! whichever way they are found.

use super::cells::Cells;
use super::node::Node;
use super::scan::{Best, Cut, Scratch};
use super::sweep::Sweep;
use crate::simd::dispatched;

/// Codes there are at most.
pub(super) const CODES: usize = 256;

/// A node of so many times fewer rows than codes sorts its rows: to look at every code
/// would take longer.
const CODES_PER_ROW: usize = 4;

/// Of the rows with a code up to this one, for every code.
#[derive(Debug)]
pub struct Sums {
    /// Their weight.
    pub weight: [f64; CODES],
    /// Sum of the squared weights of their classes.
    pub left: [f64; CODES],
    /// And that of all other rows.
    pub right: [f64; CODES],
}

/// Room for one thread.
#[derive(Debug)]
pub struct Few {
    cells: Cells,
    sweep: Sweep,
    /// Rows of each code.
    counts: [u32; CODES],
    sums: Box<Sums>,
    scores: [f64; CODES],
}

impl Default for Few {
    fn default() -> Self {
        let zero = [0.0; CODES];
        Self {
            cells: Cells::default(),
            sweep: Sweep::default(),
            counts: [0; CODES],
            sums: Box::new(Sums {
                weight: zero,
                left: zero,
                right: zero,
            }),
            scores: zero,
        }
    }
}

impl Few {
    /// The best cut of the rows of `node`, of which each has one of `codes`; the last of
    /// the `n_codes` is that of missing values, if any are `missing`.
    pub fn best_cut(
        &mut self,
        scratch: &mut Scratch,
        node: &Node,
        codes: &[u8],
        n_codes: usize,
        missing: bool,
    ) -> Option<Cut> {
        if Cells::are_few(node, n_codes) {
            self.by_cells(node, codes, n_codes, missing)
        } else if node.len() * CODES_PER_ROW < n_codes || !Sweep::takes(node) {
            let missing = missing.then(|| n_codes as u32 - 1);
            scratch.sort_some(node, codes);
            scratch.best_cut(node, missing, None)
        } else {
            self.by_sweep(node, codes, n_codes, missing)
        }
    }

    /// From the weights of all cells.
    pub fn by_cells(
        &mut self,
        node: &Node,
        codes: &[u8],
        n_codes: usize,
        missing: bool,
    ) -> Option<Cut> {
        self.cells.fill(node, codes, n_codes, &mut self.counts);
        let (cells, n_values) = (&self.cells, n_codes - usize::from(missing));
        let sum = |missing_left, sums: &mut Sums| cells.sum(node, n_values, missing_left, sums);
        let (sums, scores) = (&mut self.sums, &mut self.scores);
        best(node, &self.counts[..n_codes], n_values, sums, scores, sum)
    }

    /// From the rows in the order of their codes.
    pub fn by_sweep(
        &mut self,
        node: &Node,
        codes: &[u8],
        n_codes: usize,
        missing: bool,
    ) -> Option<Cut> {
        self.sweep.sort(node, codes, &mut self.counts);
        let (sweep, n_values) = (&mut self.sweep, n_codes - usize::from(missing));
        let counts = &self.counts[..n_codes];
        let sum = |missing_left, sums: &mut Sums| {
            sweep.sum(node, &counts[..n_values], missing_left, sums);
        };
        best(
            node,
            counts,
            n_values,
            &mut self.sums,
            &mut self.scores,
            sum,
        )
    }
}

/// The best cut by the sums that `sum` finds, with missing values to the left or not.
fn best(
    node: &Node,
    counts: &[u32],
    n_values: usize,
    sums: &mut Sums,
    scores: &mut [f64; CODES],
    mut sum: impl FnMut(bool, &mut Sums),
) -> Option<Cut> {
    let (values, gone) = counts.split_at(n_values);
    let n_gone = gone.first().map_or(0, |&count| count as usize);
    let all = node.len();
    let mut best = Best::new(node);
    for missing_left in [false, true] {
        if missing_left && n_gone == 0 {
            break;
        }
        sum(missing_left, sums);
        score(sums, n_values, node.weight, scores);
        let missing = (n_gone > 0).then_some(missing_left);
        let mut rows = if missing_left { n_gone } else { 0 };
        for (low, (&count, &score)) in values.iter().zip(&*scores).enumerate() {
            rows += count as usize;
            // The sums of a code without rows are those before it, and no better.
            if rows >= node.min_rows && all - rows >= node.min_rows {
                best.offer(Some(score), sums.weight[low], low as u32, None, missing);
            }
        }
    }
    let mut cut = best.cut?;
    let after = cut.low as usize + 1;
    let next = values[after..].iter().position(|&count| count > 0);
    cut.high = next.map(|next| (after + next) as u32);
    Some(cut)
}

dispatched! {
    /// Scores of the cuts after each of `n` codes, of a node of weight `all`; 0 where rounding
    /// leaves a side no weight.
    fn score(sums: &Sums, n: usize, all: f64, scores: &mut [f64; CODES]) {
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
