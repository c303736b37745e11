//! Strategy for a small feature at a large node: a histogram of the weights, code by class.
//!
//! O(rows) to fill it and O(codes x classes at the node) to go over it, which is why it is
//! chosen only where that is at most a fixed multiple of the rows: see [`Histogram::pays`].

use super::binning::Coding;
use super::node::Node;
use super::small_feature::{CodeTable, PrefixSums, MAX_CODES};
use super::split::Cut;
use crate::simd::dispatched;

/// Classes side by side: one 512-bit register, two of 256 bits.
const LANES: usize = 8;

pub const FEW_LANES: usize = 4;

/// Cells of the histogram that cost as much as a row.
const CELLS_PER_ROW: usize = 4;

/// Cells of a code: one for each class of `node`, and empty ones up to a whole register.
pub fn stride(node: &Node) -> usize {
    let n_classes = node.totals.len();
    if n_classes <= FEW_LANES {
        FEW_LANES
    } else {
        n_classes.next_multiple_of(LANES)
    }
}

/// Finds splits by histograms. Workspace for one thread.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Weights by code and class.
    cells: Vec<f64>,
    table: Box<CodeTable>,
}

impl Histogram {
    /// Whether its cost is bounded by the number of rows of `node`.
    pub fn pays(node: &Node, n_codes: usize) -> bool {
        n_codes * stride(node) <= CELLS_PER_ROW * node.len()
    }

    pub fn best_cut(&mut self, node: &Node, codes: &[u8], coding: &Coding) -> Option<Cut> {
        let stride = stride(node);
        self.cells.clear();
        self.cells.resize(coding.n_codes() * stride, 0.0);
        let counts = &mut self.table.counts;
        counts.fill(0);
        fill(node, codes, stride, &mut self.cells, counts);
        self.table.find_present();
        let (values, missing) = self.cells.split_at(coding.spans.len() * stride);
        self.table
            .best_cut(node, coding, |present, missing_left, sums| {
                let start = if missing_left { missing } else { &[] };
                if stride == FEW_LANES {
                    sum_up::<FEW_LANES>(present, values, stride, start, &node.totals, sums);
                } else {
                    sum_up::<LANES>(present, values, stride, start, &node.totals, sums);
                }
            })
    }
}

/// Adds up the weights of the rows of `node` by code and class, `stride` cells a code, and counts
/// the rows of every code. Never inlined: the loop needs all registers.
#[inline(never)]
fn fill(
    node: &Node,
    codes: &[u8],
    stride: usize,
    cells: &mut [f64],
    counts: &mut [u32; MAX_CODES],
) {
    let rows = node.rows.iter().zip(&node.classes).zip(&node.weights);
    for ((&row, &class), &weight) in rows {
        let code = codes[row as usize] as usize;
        cells[code * stride + class as usize] += weight;
        counts[code] += 1;
    }
}

dispatched! {
    /// The sums up to each of the codes `present`, N classes side by side. The weights of `start`
    /// are on the left before the first. There are `stride` cells a code.
    fn sum_up[N](present: &[u8], cells: &[f64], stride: usize, start: &[f64], totals: &[f64], sums: &mut PrefixSums) {
        for sums in [&mut sums.weight, &mut sums.left, &mut sums.right] {
            sums[..present.len()].fill(0.0);
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
            for (place, &code) in present.iter().enumerate().take(MAX_CODES) {
                let cells = &cells[usize::from(code) * stride + at..];
                let cells: &[f64; N] = cells.first_chunk().unwrap_or(&[0.0; N]);
                let (mut square, mut other) = ([0.0; N], [0.0; N]);
                for lane in 0..N {
                    left[lane] += cells[lane];
                    square[lane] = left[lane] * left[lane];
                    let right = all[lane] - left[lane];
                    other[lane] = right * right;
                }
                sums.weight[place] += fold(left);
                sums.left[place] += fold(square);
                sums.right[place] += fold(other);
            }
        }
    }
}

/// Adds up the lanes, 4 or 8, pairwise, in a fixed order.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fold<const N: usize>(lanes: [f64; N]) -> f64 {
    let mut four = [0.0; 4];
    for (lane, value) in lanes.iter().enumerate() {
        four[lane % 4] += value;
    }
    (four[0] + four[2]) + (four[1] + four[3])
}
