//! The sums of a feature of few codes from the weights of its cells, code by class: the
//! quicker way where a node has at least as many rows as the feature has cells, a fixed
//! factor aside. Its cost is bounded by the number of rows, like that of a sweep over them.

use super::few::{Sums, CODES};
use super::node::Node;
use crate::simd::dispatched;

/// Classes side by side: one 512-bit register, two of 256 bits.
const LANES: usize = 8;

/// Lanes where there are few classes.
pub(super) const FEW_LANES: usize = 4;

/// Cells that cost as much as a row.
const CELLS_PER_ROW: usize = 4;

/// Room for one thread.
#[derive(Debug, Default)]
pub struct Cells {
    /// By code and class.
    weights: Vec<f64>,
}

/// Cells of a code, empty ones included.
pub(super) fn stride(node: &Node) -> usize {
    let n_classes = node.totals.len();
    if n_classes <= FEW_LANES {
        FEW_LANES
    } else {
        n_classes.next_multiple_of(LANES)
    }
}

impl Cells {
    /// Whether this is the quicker way.
    pub fn are_few(node: &Node, n_codes: usize) -> bool {
        n_codes * stride(node) <= CELLS_PER_ROW * node.len()
    }

    /// Adds up the rows of `node`, of which each has one of `codes`, and counts those of
    /// every code.
    pub fn fill(&mut self, node: &Node, codes: &[u8], n_codes: usize, counts: &mut [u32; CODES]) {
        let stride = stride(node);
        self.weights.clear();
        self.weights.resize(n_codes * stride, 0.0);
        counts.fill(0);
        let rows = node.rows.iter().zip(&node.classes).zip(&node.weights);
        for ((&row, &class), &weight) in rows {
            let code = codes[row as usize] as usize;
            self.weights[code * stride + class as usize] += weight;
            counts[code] += 1;
        }
    }

    /// The sums up to each of `n_values` codes; those of the code after them are missing
    /// values.
    pub fn sum(&self, node: &Node, n_values: usize, missing_left: bool, sums: &mut Sums) {
        let stride = stride(node);
        let (values, gone) = self.weights.split_at(n_values * stride);
        let start = if missing_left { gone } else { &[] };
        if stride == FEW_LANES {
            few_sums(values, start, &node.totals, n_values, sums);
        } else {
            many_sums(values, start, &node.totals, n_values, sums);
        }
    }
}

dispatched! {
    /// The sums of `n` codes. The weights of `start` are there before the first.
    fn many_sums(values: &[f64], start: &[f64], totals: &[f64], n: usize, sums: &mut Sums) {
        laned_sums::<LANES>(values, start, totals, n, sums);
    }
}

dispatched! {
    /// [`many_sums`] of few classes.
    fn few_sums(values: &[f64], start: &[f64], totals: &[f64], n: usize, sums: &mut Sums) {
        laned_sums::<FEW_LANES>(values, start, totals, n, sums);
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn laned_sums<const N: usize>(
    values: &[f64],
    start: &[f64],
    totals: &[f64],
    n: usize,
    sums: &mut Sums,
) {
    let stride = values.len() / n.max(1);
    let n = n.min(CODES);
    for sums in [&mut sums.weight, &mut sums.left, &mut sums.right] {
        sums[..n].fill(0.0);
    }
    for at in (0..stride).step_by(N) {
        let mut all = [0.0; N];
        for (all, total) in all.iter_mut().zip(&totals[at..]) {
            *all = *total;
        }
        let mut left = [0.0; N];
        if let Some(start) = start.get(at..at + N) {
            left.copy_from_slice(start);
        }
        for (code, cells) in values.chunks_exact(stride).enumerate().take(n) {
            let cells: &[f64; N] = cells[at..].first_chunk().unwrap_or(&[0.0; N]);
            let (mut square, mut other) = ([0.0; N], [0.0; N]);
            for lane in 0..N {
                left[lane] += cells[lane];
                square[lane] = left[lane] * left[lane];
                let right = all[lane] - left[lane];
                other[lane] = right * right;
            }
            sums.weight[code] += fold(left);
            sums.left[code] += fold(square);
            sums.right[code] += fold(other);
        }
    }
}

/// Adds up the lanes, 4 or 8, pairwise, in a fixed order.
#[inline(always)]
#[allow(clippy::inline_always)]
fn fold<const N: usize>(lanes: [f64; N]) -> f64 {
    let mut four = [0.0; 4];
    for (lane, value) in lanes.iter().enumerate() {
        four[lane % 4] += value;
    }
    (four[0] + four[2]) + (four[1] + four[3])
}

dispatched! {
    /// Scores of cutting the cells of each of the columns `drawn`, a weight per class, off
    /// from the `totals` of a node of weight `all`; 0 where a side would be empty. With each
    /// the weight of the cells.
    pub(super) fn cut_off(
        cells: &[f64], drawn: &[u32], totals: &[f64], all: f64, scores: &mut Vec<[f64; 2]>,
    ) {
        let stride = totals.len();
        scores.clear();
        scores.extend(drawn.iter().map(|&column| {
            let at = column as usize * stride;
            let (mut weight, mut square, mut other) =
                ([0.0; FEW_LANES], [0.0; FEW_LANES], [0.0; FEW_LANES]);
            let (cells, _) = cells[at..at + stride].as_chunks::<FEW_LANES>();
            for (cells, totals) in cells.iter().zip(totals.as_chunks::<FEW_LANES>().0) {
                for lane in 0..FEW_LANES {
                    let rest = totals[lane] - cells[lane];
                    weight[lane] += cells[lane];
                    square[lane] += cells[lane] * cells[lane];
                    other[lane] += rest * rest;
                }
            }
            let (weight, rest) = (fold(weight), all - fold(weight));
            let other = fold(other).min(rest * rest);
            // One division for both sides.
            let score = (fold(square) * rest + other * weight) / (weight * rest);
            [if weight > 0.0 && rest > 0.0 { score } else { 0.0 }, weight]
        }));
    }
}
