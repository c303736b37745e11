//! The cuts of a column: scored by the sums of their left sides, and the [`Histogram`], which finds
//! these sums for large nodes.
//!
//! A histogram adds up the weights by code and class: O(rows) to fill and O(codes x classes at the
//! node) to go over, so it is used where that is at most a fixed multiple of the rows.

use super::columns::Coding;
use super::node::{BestCut, Cut, Item, Node};
use crate::simd::dispatched;

/// The cuts of a column at a node, one after each code present, in their order: the sums of one
/// side of each, which is the left one of the first `n_left`. Workspace.
#[derive(Debug, Default)]
pub struct Cuts {
    codes: Vec<u32>,
    n_left: usize,
    /// Rows on this side.
    rows: Vec<usize>,
    /// Their weight.
    weight: Vec<f64>,
    /// Sum of the squared weights of their classes.
    square: Vec<f64>,
    /// And that of all other rows.
    other_square: Vec<f64>,
    scores: Vec<f64>,
}

impl Cuts {
    /// Begins with the codes present, without that of missing values.
    pub fn set_codes(&mut self, codes: impl Iterator<Item = u32>, n_left: usize) {
        self.n_left = n_left;
        self.codes.clear();
        self.codes.extend(codes);
        let n = self.codes.len();
        if n > self.rows.len() {
            self.rows.resize(n, 0);
            self.weight.resize(n, 0.0);
            self.square.resize(n, 0.0);
            self.other_square.resize(n, 0.0);
            self.scores.resize(n, 0.0);
        }
    }

    /// Sets one side of cut `at`: so many rows, and their weight, square and other square.
    #[inline]
    pub fn set(&mut self, at: usize, n_rows: usize, [weight, square, other_square]: [f64; 3]) {
        self.rows[at] = n_rows;
        self.weight[at] = weight;
        self.square[at] = square;
        self.other_square[at] = other_square;
    }

    /// Offers the cuts to `best`. `missing_left` says where missing values are, if there are any.
    pub fn offer(&mut self, node: &Node, missing_left: Option<bool>, best: &mut BestCut) {
        let n = self.codes.len();
        let (weight, scores) = (&self.weight[..n], &mut self.scores[..n]);
        let squares = self.square.iter().zip(&self.other_square);
        let sides = weight.iter().zip(squares);
        for (score, (&weight, (&square, &other_square))) in scores.iter_mut().zip(sides) {
            let rest = node.weight - weight;
            // A difference of large sums may leave more than there can be.
            let other_square = other_square.max(0.0).min(rest * rest);
            let sum = square / weight + other_square / rest;
            // 0 where rounding leaves a side no weight.
            *score = if weight > 0.0 && rest > 0.0 { sum } else { 0.0 };
        }
        for (at, (&rows, &score)) in self.rows.iter().zip(&*scores).enumerate() {
            if rows >= node.min_rows && rows + node.min_rows <= node.len() {
                let is_left = at < self.n_left;
                best.offer(Cut {
                    score,
                    last_left: self.codes[at],
                    first_right: self.codes.get(at + 1).copied(),
                    missing_left,
                    left_weight: if is_left {
                        weight[at]
                    } else {
                        node.weight - weight[at]
                    },
                });
            }
        }
    }
}

/// Classes side by side: one 512-bit register, two of 256 bits.
const CLASS_LANES: usize = 8;

/// The same where classes are few.
pub const FEW_CLASS_LANES: usize = 4;

/// Cells of the histogram that cost as much as a row.
const CELLS_PER_ROW: usize = 4;

/// Codes of columns that histograms are for.
const MAX_CODES: usize = 256;

/// Cells of a code: one for each class of `node`, and empty ones up to a whole register.
pub fn stride(node: &Node) -> usize {
    let n_classes = node.totals.len();
    if n_classes <= FEW_CLASS_LANES {
        FEW_CLASS_LANES
    } else {
        n_classes.next_multiple_of(CLASS_LANES)
    }
}

/// Finds cuts by histograms. Workspace.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Weights by code and class.
    cells: Vec<f64>,
    cuts: Cuts,
}

impl Histogram {
    /// Whether its cost is bounded by the number of rows of `node`.
    pub fn pays(node: &Node, n_codes: usize) -> bool {
        n_codes * stride(node) <= CELLS_PER_ROW * node.len()
    }

    /// The best cut of a column of this `coding`; `codes` are those of all rows.
    pub fn best_cut(&mut self, node: &Node, codes: &[u8], coding: &Coding) -> Option<Cut> {
        let stride = stride(node);
        self.cells.clear();
        self.cells.resize(coding.n_codes() * stride, 0.0);
        let mut counts = [0; MAX_CODES];
        fill(node, codes, stride, &mut self.cells, &mut counts);
        let n_values = coding.spans.len();
        let (values, missing) = self.cells.split_at(n_values * stride);
        let n_missing = coding
            .missing_code()
            .map_or(0, |code| counts[code as usize]);
        let mut present = [0; MAX_CODES];
        let mut n_present = 0;
        // All are written and those present are kept: no branch that could be mispredicted.
        for (code, &count) in (0..).zip(&counts[..n_values]) {
            present[n_present] = code;
            n_present += usize::from(count > 0);
        }
        let (present, cuts) = (&present[..n_present], &mut self.cuts);
        cuts.set_codes(present.iter().copied(), n_present);
        let mut best = BestCut::new(node);
        for missing_left in [false, true] {
            if missing_left && n_missing == 0 {
                break;
            }
            let start = if missing_left { missing } else { &[] };
            if stride == FEW_CLASS_LANES {
                sum_up::<FEW_CLASS_LANES>(present, values, stride, start, &node.totals, cuts);
            } else {
                sum_up::<CLASS_LANES>(present, values, stride, start, &node.totals, cuts);
            }
            let mut n_left = if missing_left { n_missing } else { 0 };
            for (rows, &code) in cuts.rows.iter_mut().zip(present) {
                n_left += counts[code as usize];
                *rows = n_left;
            }
            cuts.offer(node, (n_missing > 0).then_some(missing_left), &mut best);
        }
        best.cut
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
    counts: &mut [usize; MAX_CODES],
) {
    for (&row, &Item { class, weight }) in node.rows.iter().zip(&node.items) {
        let code = codes[row as usize] as usize;
        cells[code * stride + class as usize] += f64::from(weight);
        counts[code] += 1;
    }
}

dispatched! {
    /// The sums up to each of the codes `present`, N classes side by side. The weights of `start`
    /// are on the left before the first. There are `stride` cells a code.
    fn sum_up[N](present: &[u32], cells: &[f64], stride: usize, start: &[f64], totals: &[f64], cuts: &mut Cuts) {
        let Cuts { weight, square: squares, other_square: other_squares, .. } = cuts;
        for sums in [&mut *weight, &mut *squares, &mut *other_squares] {
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
            let sums = weight.iter_mut().zip(squares.iter_mut()).zip(other_squares.iter_mut());
            for (&code, ((weight, of_left), of_right)) in present.iter().zip(sums) {
                let cells = &cells[code as usize * stride + at..];
                let cells: &[f64; N] = cells.first_chunk().unwrap_or(&[0.0; N]);
                let (mut square, mut other) = ([0.0; N], [0.0; N]);
                for lane in 0..N {
                    left[lane] += cells[lane];
                    square[lane] = left[lane] * left[lane];
                    let right = all[lane] - left[lane];
                    other[lane] = right * right;
                }
                *weight += fold(left);
                *of_left += fold(square);
                *of_right += fold(other);
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
