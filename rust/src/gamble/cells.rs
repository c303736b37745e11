//! The best cut of a feature from the weights of its cells, code by class: the quicker
//! way where a node has at least as many rows as the feature has cells, a fixed factor
//! aside. Its cost is bounded by the number of rows, like that of a sweep over them.

use super::node::Node;
use super::scan::{Best, Cut};
use crate::simd::dispatched;

/// Classes side by side: one 512-bit register, two of 256 bits.
const LANES: usize = 8;

/// Lanes where there are few classes.
pub(super) const FEW_LANES: usize = 4;

/// Cells that cost as much as a row.
const CELLS_PER_ROW: usize = 16;

/// Room for one thread.
#[derive(Debug, Default)]
pub struct Cells {
    weights: Vec<f64>,
    counts: Vec<u32>,
    sums: Vec<[f64; 3]>,
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

    /// The best cut of the rows of `node`, of which each has one of `codes`.
    pub fn best_cut(
        &mut self,
        node: &Node,
        codes: &[u8],
        n_codes: usize,
        missing: bool,
    ) -> Option<Cut> {
        let stride = stride(node);
        self.weights.clear();
        self.weights.resize(n_codes * stride, 0.0);
        self.counts.clear();
        self.counts.resize(n_codes, 0);
        let rows = node.rows.iter().zip(&node.classes).zip(&node.weights);
        for ((&row, &class), &weight) in rows {
            let code = codes[row as usize] as usize;
            self.weights[code * stride + class as usize] += weight;
            self.counts[code] += 1;
        }
        self.sums.resize(n_codes, [0.0; 3]);
        let sums = if stride == FEW_LANES { few_sums } else { sums };
        let n_values = n_codes - usize::from(missing);
        let (values, gone) = self.weights.split_at(n_values * stride);
        let n_gone = self.counts[n_values..].first().copied().unwrap_or(0) as usize;
        let mut best = Best::new(node);
        for missing_left in [false, true] {
            if missing_left && n_gone == 0 {
                break;
            }
            let start = if missing_left { gone } else { &[] };
            sums(values, start, &node.totals, &mut self.sums[..n_values]);
            let (mut rows, mut before) = (if missing_left { n_gone } else { 0 }, None);
            let missing = (n_gone > 0).then_some(missing_left);
            for (code, &count) in self.counts[..n_values].iter().enumerate() {
                if count == 0 {
                    continue;
                }
                if let Some(low) = before {
                    let sums: [f64; 3] = self.sums[low];
                    best.offer(
                        score(node, rows, sums),
                        sums[0],
                        low as u32,
                        Some(code as u32),
                        missing,
                    );
                }
                rows += count as usize;
                before = Some(code);
            }
            if let (Some(low), Some(false)) = (before, missing) {
                let sums: [f64; 3] = self.sums[low];
                best.offer(score(node, rows, sums), sums[0], low as u32, None, missing);
            }
        }
        best.cut
    }
}

/// Score of the cut with `rows` rows on the left, from the weight there and the sums of
/// squares of both sides.
#[inline]
fn score(node: &Node, rows: usize, [weight, left, right]: [f64; 3]) -> Option<f64> {
    let other = node.weight - weight;
    let rest = node.len() - rows;
    if rows < node.min_rows || rest < node.min_rows || weight <= 0.0 || other <= 0.0 {
        return None;
    }
    Some(left / weight + right.min(other * other) / other)
}

dispatched! {
    /// For every code: weight of the codes up to it, sum of the squared weights of their
    /// classes, and of the rest's. `start` is there before the first.
    fn sums(values: &[f64], start: &[f64], totals: &[f64], sums: &mut [[f64; 3]]) {
        laned_sums::<LANES>(values, start, totals, sums);
    }
}

dispatched! {
    /// [`sums`] of few classes.
    fn few_sums(values: &[f64], start: &[f64], totals: &[f64], sums: &mut [[f64; 3]]) {
        laned_sums::<FEW_LANES>(values, start, totals, sums);
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn laned_sums<const N: usize>(
    values: &[f64],
    start: &[f64],
    totals: &[f64],
    sums: &mut [[f64; 3]],
) {
    let stride = values.len() / sums.len().max(1);
    sums.fill([0.0; 3]);
    for at in (0..stride).step_by(N) {
        let mut all = [0.0; N];
        for (all, total) in all.iter_mut().zip(&totals[at..]) {
            *all = *total;
        }
        let mut left = [0.0; N];
        if let Some(start) = start.get(at..at + N) {
            left.copy_from_slice(start);
        }
        for (cells, sums) in values.chunks_exact(stride).zip(sums.iter_mut()) {
            let cells: &[f64; N] = cells[at..].first_chunk().unwrap_or(&[0.0; N]);
            let (mut square, mut other) = ([0.0; N], [0.0; N]);
            for lane in 0..N {
                left[lane] += cells[lane];
                square[lane] = left[lane] * left[lane];
                let right = all[lane] - left[lane];
                other[lane] = right * right;
            }
            sums[0] += fold(left);
            sums[1] += fold(square);
            sums[2] += fold(other);
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
