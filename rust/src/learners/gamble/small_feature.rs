//! Two strategies for features of at most 256 codes. Both find the sums up to every code; scoring
//! the cuts by them is the same, O(codes).
//!
//! [`Histogram`], for large nodes, adds up the weights by code and class: O(rows) to fill and O(codes x
//! classes at the node) to go over, so it is used where that is at most a fixed multiple of the rows.
//! [`SortedScan`], for nodes of many classes, adds the rows to the left side in the order of their
//! codes: O(rows + codes), whatever the number of classes.

use super::columns::Coding;
use super::node::{BestCut, Cut, Node, PackedRow};
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

/// Classes side by side: one 512-bit register, two of 256 bits.
const CLASS_LANES: usize = 8;

pub const FEW_LANES: usize = 4;

/// Cells of the histogram that cost as much as a row.
const CELLS_PER_ROW: usize = 4;

/// Cells of a code: one for each class of `node`, and empty ones up to a whole register.
pub fn stride(node: &Node) -> usize {
    let n_classes = node.totals.len();
    if n_classes <= FEW_LANES {
        FEW_LANES
    } else {
        n_classes.next_multiple_of(CLASS_LANES)
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
                    sum_up::<CLASS_LANES>(present, values, stride, start, &node.totals, sums);
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

/// A node of so many times fewer rows than the feature has codes is too small: looking at every
/// code would take longer than sorting the rows by comparing them.
const CODES_PER_ROW: usize = 4;

/// Finds splits by scanning sorted rows. Workspace for one thread.
#[derive(Debug)]
pub struct SortedScan {
    /// Code of each row of the node.
    codes: Vec<u8>,
    /// The rows, sorted.
    items: Vec<PackedRow>,
    /// Weight of each class on the left, and on both sides.
    by_class: Vec<[f64; 2]>,
    /// The left side up to each code.
    sides: Box<[SideSums; MAX_CODES]>,
    table: Box<CodeTable>,
}

impl Default for SortedScan {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            items: Vec::new(),
            by_class: Vec::new(),
            sides: Box::new([SideSums::default(); MAX_CODES]),
            table: Box::default(),
        }
    }
}

/// Of the rows on one side: their weight, the sum of the squared weights of their classes,
/// and the sum of these weights times those on both sides. One register.
type SideSums = [f64; 4];

dispatched! {
    /// Adds the `items` to a side one after the other, and stores its sums by the item's code.
    /// Of the items of one code the last one counts: no loop that ends after a few rows, which
    /// the processor could not foresee.
    fn add_rows(items: &[PackedRow], by_class: &mut [[f64; 2]], start: SideSums, sides: &mut [SideSums; MAX_CODES]) -> SideSums {
        let mut side = start;
        let mut change = |item: &PackedRow| -> SideSums {
            let [here, both] = &mut by_class[item.class()];
            let weight = item.weight();
            let square = weight * (2.0 * *here + weight);
            *here += weight;
            [weight, square, weight * *both, 0.0]
        };
        let (pairs, last) = items.as_chunks::<2>();
        // Two at a time, so that only every other one has to wait for the sums before it.
        for [first, second] in pairs {
            let one = change(first);
            let two = change(second);
            let (mut half, mut both) = ([0.0; 4], [0.0; 4]);
            for lane in 0..4 {
                half[lane] = side[lane] + one[lane];
                both[lane] = side[lane] + (one[lane] + two[lane]);
            }
            sides[first.code()] = half;
            sides[second.code()] = both;
            side = both;
        }
        for item in last {
            let one = change(item);
            for lane in 0..4 {
                side[lane] += one[lane];
            }
            sides[item.code()] = side;
        }
        side
    }
}

impl SortedScan {
    /// Whether `node` has rows enough for `n_codes`, and so few classes that a class and a code
    /// fit into an integer.
    pub fn pays(node: &Node, n_codes: usize) -> bool {
        node.len() * CODES_PER_ROW >= n_codes
            && node.totals.len() <= 1 << (u32::BITS - PackedRow::CODE_BITS)
    }

    pub fn best_cut(&mut self, node: &Node, codes: &[u8], coding: &Coding) -> Option<Cut> {
        self.sort(node, codes);
        let missing = coding.missing_code();
        let n_missing = missing.map_or(0, |code| self.table.counts[code as usize] as usize);
        let n_values = node.len() - n_missing;
        let (items, by_class, sides) = (&self.items, &mut self.by_class, &mut self.sides);
        self.table
            .best_cut(node, coding, |present, missing_left, sums| {
                by_class.clear();
                by_class.extend(node.totals.iter().map(|&total| [0.0, total]));
                // Missing values have the last code.
                let (values, missing) = items.split_at(n_values);
                let mut side = SideSums::default();
                if missing_left {
                    side = add_rows(missing, by_class, side, sides);
                }
                add_rows(values, by_class, side, sides);
                for (at, &code) in present.iter().enumerate() {
                    let [weight, square, cross, _] = sides[usize::from(code)];
                    sums.weight[at] = weight;
                    sums.left[at] = square;
                    sums.right[at] = node.square - 2.0 * cross + square;
                }
            })
    }

    /// Sorts the rows of `node` by their codes, those of a code in their order, and counts
    /// those of every code.
    fn sort(&mut self, node: &Node, codes: &[u8]) {
        let counts = &mut self.table.counts;
        counts.fill(0);
        self.codes.clear();
        self.codes.extend(node.rows.iter().map(|&row| {
            let code = codes[row as usize];
            counts[code as usize] += 1;
            code
        }));
        let mut next = [0; MAX_CODES];
        let mut from = 0;
        self.table.find_present();
        for &code in self.table.present() {
            next[usize::from(code)] = from;
            from += self.table.counts[usize::from(code)];
        }
        self.items.resize(node.len(), PackedRow::default());
        for (&code, &item) in self.codes.iter().zip(&node.items) {
            let to = &mut next[code as usize];
            self.items[*to as usize] = item.with_code(code);
            *to += 1;
        }
    }
}
