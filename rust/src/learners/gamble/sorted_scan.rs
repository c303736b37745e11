//! Strategy for a small feature at a node of many classes: the rows, sorted by counting, are
//! added to the left side one after the other.
//!
//! O(rows + codes), whatever the number of classes. A row's weight is read in single precision,
//! which loses nothing: weights are rounded to it.

use super::binning::Coding;
use super::node::Node;
use super::small_feature::{CodeTable, MAX_CODES};
use super::split::Cut;
use crate::simd::dispatched;

/// Bits of a code.
const SHIFT: u32 = 8;

/// A node of so many times fewer rows than the feature has codes is too small: looking at every
/// code would take longer than sorting the rows by comparing them.
const CODES_PER_ROW: usize = 4;

/// A row as it is added to a side: from the lowest bits its code, its class and its weight. Small, as
/// all of them are written in one order and read in another, and written at once.
#[derive(Debug, Default, Clone, Copy)]
pub struct Item(u64);

impl Item {
    /// A row of any code.
    #[inline]
    pub fn new(class: u32, weight: f64) -> Self {
        Self(u64::from((weight as f32).to_bits()) << 32 | u64::from(class << SHIFT))
    }

    #[inline]
    fn with_code(self, code: u8) -> Self {
        Self(self.0 | u64::from(code))
    }

    #[inline]
    fn code(self) -> usize {
        self.0 as usize % MAX_CODES
    }

    #[inline]
    fn class(self) -> usize {
        (self.0 as u32 >> SHIFT) as usize
    }

    #[inline]
    fn weight(self) -> f64 {
        f64::from(f32::from_bits((self.0 >> 32) as u32))
    }
}

/// Finds splits by scanning sorted rows. Workspace for one thread.
#[derive(Debug)]
pub struct SortedScan {
    /// Code of each row of the node.
    codes: Vec<u8>,
    /// The rows, sorted.
    items: Vec<Item>,
    /// Weight of each class on the left, and on both sides.
    by_class: Vec<[f64; 2]>,
    /// The left side up to each code.
    sides: Box<[Side; MAX_CODES]>,
    table: Box<CodeTable>,
}

impl Default for SortedScan {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            items: Vec::new(),
            by_class: Vec::new(),
            sides: Box::new([Side::default(); MAX_CODES]),
            table: Box::default(),
        }
    }
}

/// Of the rows on one side: their weight, the sum of the squared weights of their classes,
/// and the sum of these weights times those on both sides. One register.
type Side = [f64; 4];

dispatched! {
    /// Adds the `items` to a side one after the other, and stores its sums by the item's code.
    /// Of the items of one code the last one counts: no loop that ends after a few rows, which
    /// the processor could not foresee.
    fn add(items: &[Item], by_class: &mut [[f64; 2]], start: Side, sides: &mut [Side; MAX_CODES]) -> Side {
        let mut side = start;
        let mut change = |item: &Item| -> Side {
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
        node.len() * CODES_PER_ROW >= n_codes && node.totals.len() <= 1 << (u32::BITS - SHIFT)
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
                let mut side = Side::default();
                if missing_left {
                    side = add(missing, by_class, side, sides);
                }
                add(values, by_class, side, sides);
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
        self.items.resize(node.len(), Item::default());
        for (&code, &item) in self.codes.iter().zip(&node.items) {
            let to = &mut next[code as usize];
            self.items[*to as usize] = item.with_code(code);
            *to += 1;
        }
    }
}
