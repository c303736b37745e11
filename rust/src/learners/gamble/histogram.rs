//! Cuts and sets of categories of large nodes by histograms of the weights.
//!
//! A histogram adds up the weights by code and class: O(rows) to fill and O(codes x classes at the
//! node) to scan. It is used if the second number is at most a fixed multiple of the first. Sets of
//! categories are those of [`run_scan`](super::run_scan).

use std::cmp::Reverse;

use super::columns::Coding;
use super::node::{Choice, ColumnBest, Cut, Item, Node, Side};
use super::run_scan::{heaviest_classes, lighter_side, MAX_ALONE};
use super::sampling::CHUNK_ROWS;
use crate::simd::dispatched;
use crate::threads::map_chunks;

/// Classes that are summed side by side: one 512-bit register or two of 256 bits.
const CLASS_LANES: usize = 8;

/// Classes that are summed side by side at nodes of few classes.
pub const FEW_CLASS_LANES: usize = 4;

/// Cells of the histogram that cost as much as a row.
const CELLS_PER_ROW: usize = 4;

/// Rows of a chunk per cell, so that adding up the cells of chunks costs little.
const CHUNK_ROWS_PER_CELL: usize = 8;

/// Returns the number of cells of a code: one for each class of `node`, rounded up to a whole
/// register.
pub fn stride(node: &Node) -> usize {
    let n_classes = node.totals.len();
    if n_classes <= FEW_CLASS_LANES {
        FEW_CLASS_LANES
    } else {
        n_classes.next_multiple_of(CLASS_LANES)
    }
}

/// Workspace for finding splits by histograms.
#[derive(Debug, Default, Clone)]
pub struct Histogram {
    /// Weights by code and class.
    cells: Vec<f64>,
    /// Rows by code.
    counts: Vec<u32>,
    /// Left side of the cut after each code present.
    sides: Vec<Side>,
    /// Heaviest classes of the node, whose shares order the categories.
    heaviest: Vec<u32>,
    /// Codes present.
    present: Vec<u32>,
    /// Bits of the share of a class in each category, which have the order of shares, and categories.
    keyed: Vec<(u64, u32)>,
    /// Categories in the order of these shares.
    order: Vec<u32>,
    /// Weights by class of the first categories of an order.
    left: Vec<f64>,
}

impl Histogram {
    /// Returns true if the cost of a histogram is bounded by the number of rows of `node`.
    pub fn pays(node: &Node, n_codes: usize) -> bool {
        n_codes * stride(node) <= CELLS_PER_ROW * node.len()
    }

    /// Offers the cuts of a column to `best`. The rows of the node are at the places `rows` of
    /// `codes`.
    pub fn offer_cuts(
        &mut self,
        node: &Node,
        (rows, codes): (&[u32], &[u8]),
        coding: &Coding,
        threads: bool,
        best: &mut ColumnBest,
    ) {
        let stride = stride(node);
        let n_cells = coding.n_codes() * stride;
        let (cells, counts, present) = (&mut self.cells, &mut self.counts, &mut self.present);
        clear(cells, n_cells);
        clear(counts, coding.n_codes());
        let n_rows = CHUNK_ROWS.max(CHUNK_ROWS_PER_CELL * n_cells);
        if node.len() <= n_rows {
            fill(rows, &node.items, codes, stride, cells, counts);
        } else {
            let chunks = map_chunks(threads, rows, n_rows, |start, rows| {
                let (mut cells, mut counts) = (vec![0.0; n_cells], vec![0; coding.n_codes()]);
                let items = &node.items[start..];
                fill(rows, items, codes, stride, &mut cells, &mut counts);
                (cells, counts)
            });
            for (chunk, chunk_counts) in chunks {
                let sums = cells.iter_mut().zip(chunk);
                sums.for_each(|(cell, sum)| *cell += sum);
                let sums = counts.iter_mut().zip(chunk_counts);
                sums.for_each(|(count, n)| *count += n);
            }
        }
        let n_values = coding.spans.len();
        let (values, missing) = cells.split_at(n_values * stride);
        let missing_code = coding.missing_code();
        let n_missing = missing_code.map_or(0, |code| counts[code as usize]);
        let mut n_present = 0;
        clear(present, n_values);
        // Branchless: every code is written, and codes without rows are overwritten.
        for (code, &count) in (0..).zip(&counts[..n_values]) {
            present[n_present] = code;
            n_present += usize::from(count > 0);
        }
        present.truncate(n_present);
        for missing_left in [false, true] {
            if missing_left && n_missing == 0 {
                break;
            }
            let start = if missing_left { missing } else { &[] };
            let mut n_rows = if missing_left { n_missing } else { 0 };
            self.sides.clear();
            self.sides.extend(present.iter().map(|&code| {
                n_rows += counts[code as usize];
                let n_rows = n_rows as usize;
                let empty = Side::default();
                Side { n_rows, ..empty }
            }));
            let (totals, sides) = (&node.totals, &mut self.sides[..]);
            if stride == FEW_CLASS_LANES {
                sum_up::<FEW_CLASS_LANES>(present, values, stride, start, totals, sides);
            } else {
                sum_up::<CLASS_LANES>(present, values, stride, start, totals, sides);
            }
            for (at, side) in sides.iter().enumerate() {
                best.offer(node.split_score(side), || {
                    Choice::Cut(Cut {
                        last_left: present[at],
                        first_right: present.get(at + 1).copied(),
                        missing_left: (n_missing > 0).then_some(missing_left),
                        left_weight: side.weight,
                    })
                });
            }
        }
    }

    /// Offers sets of the categories of a column, which are below `n_codes`, to `best`. The rows of
    /// the node are at the places `rows` of `codes`.
    pub fn offer_subsets(
        &mut self,
        node: &Node,
        (rows, codes): (&[u32], &[u8]),
        n_codes: usize,
        best: &mut ColumnBest,
    ) {
        let stride = stride(node);
        let (cells, counts, present) = (&mut self.cells, &mut self.counts, &mut self.present);
        clear(cells, n_codes * stride);
        clear(counts, n_codes);
        fill(rows, &node.items, codes, stride, cells, counts);
        present.clear();
        present.extend((0..n_codes as u32).filter(|&code| counts[code as usize] > 0));
        let cells_of = |code: u32| &cells[code as usize * stride..][..node.totals.len()];
        let mut offer = |left: &[f64], n_rows: u32, chosen: &[u32]| {
            let mut side = Side {
                n_rows: n_rows as usize,
                ..Side::default()
            };
            for (left, total) in left.iter().zip(&node.totals) {
                side.weight += left;
                side.square += left * left;
                side.other_square += (total - left) * (total - left);
            }
            best.offer(node.split_score(&side), || {
                lighter_side(node, side.weight, chosen.to_vec(), present.iter().copied())
            });
        };
        for code in &*present {
            offer(cells_of(*code), counts[*code as usize], &[*code]);
        }
        if present.len() <= MAX_ALONE {
            return;
        }
        if present.len() == MAX_ALONE + 1 {
            // All other sets are a pair of categories with the first one, and the rest.
            for pair in (1..present.len()).map(|at| [present[0], present[at]]) {
                let [first, other] = pair.map(|code| cells_of(code).iter());
                self.left.clear();
                self.left.extend(first.zip(other).map(|(a, b)| a + b));
                let n_rows = pair.map(|code| counts[code as usize]).iter().sum();
                offer(&self.left, n_rows, &pair);
            }
            return;
        }
        heaviest_classes(node, &mut self.heaviest);
        for &class in &self.heaviest {
            let (keyed, order) = (&mut self.keyed, &mut self.order);
            keyed.clear();
            keyed.extend(present.iter().map(|&code| {
                let (cells, own) = (cells_of(code), class as usize);
                ((cells[own] / cells.iter().sum::<f64>()).to_bits(), code)
            }));
            keyed.sort_by_key(|&(bits, _)| Reverse(bits));
            order.clear();
            order.extend(keyed.iter().map(|&(_, code)| code));
            self.left.clear();
            self.left.resize(node.totals.len(), 0.0);
            let mut n_rows = 0;
            // The first category and all but the last were tried alone.
            for (n, &code) in (1..present.len() - 1).zip(&*order) {
                let cells = cells_of(code);
                self.left
                    .iter_mut()
                    .zip(cells)
                    .for_each(|(left, cell)| *left += cell);
                n_rows += counts[code as usize];
                if n > 1 {
                    offer(&self.left, n_rows, &order[..n]);
                }
            }
        }
    }
}

/// Replaces `numbers` by `n` zeros.
fn clear<T: Clone + Default>(numbers: &mut Vec<T>, n: usize) {
    numbers.clear();
    numbers.resize(n, T::default());
}

/// Adds up the weights of rows by code and class, with `stride` cells per code, and counts the rows
/// of every code. Never inlined, because the loop needs all registers.
#[inline(never)]
fn fill(
    rows: &[u32],
    items: &[Item],
    codes: &[u8],
    stride: usize,
    cells: &mut [f64],
    counts: &mut [u32],
) {
    for (&row, &Item { class, weight }) in rows.iter().zip(items) {
        let code = codes[row as usize] as usize;
        cells[code * stride + class as usize] += f64::from(weight);
        counts[code] += 1;
    }
}

dispatched! {
    /// Adds the sums up to each of the codes `present` to `sides`, N classes at a time. Each code
    /// has `stride` cells, and the weights of `start` are left of the first code.
    fn sum_up[N](
        present: &[u32], cells: &[f64], stride: usize, start: &[f64], totals: &[f64], sides: &mut [Side],
    ) {
        for at in (0..stride).step_by(N) {
            let mut all = [0.0; N];
            for (all, total) in all.iter_mut().zip(&totals[at..]) {
                *all = *total;
            }
            let mut left = [0.0; N];
            if let Some(start) = start.get(at..at + N) {
                left.copy_from_slice(start);
            }
            for (&code, side) in present.iter().zip(sides.iter_mut()) {
                let cells = &cells[code as usize * stride + at..];
                let cells: &[f64; N] = cells.first_chunk().unwrap_or(&[0.0; N]);
                let (mut square, mut other) = ([0.0; N], [0.0; N]);
                for lane in 0..N {
                    left[lane] += cells[lane];
                    square[lane] = left[lane] * left[lane];
                    let right = all[lane] - left[lane];
                    other[lane] = right * right;
                }
                side.weight += fold(left);
                side.square += fold(square);
                side.other_square += fold(other);
            }
        }
    }
}

/// Adds up 4 or 8 lanes pairwise, in a fixed order.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn fold<const N: usize>(lanes: [f64; N]) -> f64 {
    let mut four = [0.0; 4];
    for (lane, value) in lanes.iter().enumerate() {
        four[lane % 4] += value;
    }
    (four[0] + four[2]) + (four[1] + four[3])
}
