//! The sums of a feature of few codes from a node's rows in the order of their codes: each
//! joins the left side in turn, at a cost that does not depend on the number of classes.

use super::few::{Sums, CODES};
use super::node::Node;
use crate::simd::dispatched;

/// Bits of a code.
const SHIFT: u32 = 8;

/// A row as it joins a side. Small, as all of them are written in one order and read in
/// another.
#[derive(Debug, Default, Clone, Copy)]
struct Item {
    /// Its class and, in the lowest bits, its code.
    class_and_code: u32,
    weight: f32,
}

/// Room for one thread.
#[derive(Debug)]
pub struct Sweep {
    /// Code of each row of the node.
    codes: Vec<u8>,
    /// The rows, sorted.
    items: Vec<Item>,
    /// Weight of each class on the left, and on both sides.
    by_class: Vec<[f64; 2]>,
    /// The left side up to each code.
    sides: Box<[Side; CODES]>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            items: Vec::new(),
            by_class: Vec::new(),
            sides: Box::new([Side::default(); CODES]),
        }
    }
}

/// Of the rows on one side: their weight, the sum of the squared weights of their classes,
/// and the sum of these weights times those on both sides. One register.
type Side = [f64; 4];

dispatched! {
    /// Lets the `items` join a side one after the other, and writes what it is then to the
    /// item's code. Of the items of one code the last one counts: no loop that ends after a
    /// few rows, which the processor could not foresee.
    fn join(items: &[Item], by_class: &mut [[f64; 2]], start: Side, sides: &mut [Side; CODES]) -> Side {
        let mut side = start;
        let mut change = |item: &Item| -> Side {
            let [here, both] = &mut by_class[(item.class_and_code >> SHIFT) as usize];
            let weight = f64::from(item.weight);
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
            sides[first.class_and_code as usize % CODES] = half;
            sides[second.class_and_code as usize % CODES] = both;
            side = both;
        }
        for item in last {
            let one = change(item);
            for lane in 0..4 {
                side[lane] += one[lane];
            }
            sides[item.class_and_code as usize % CODES] = side;
        }
        side
    }
}

impl Sweep {
    /// Whether the classes of a node have numbers small enough.
    pub fn takes(node: &Node) -> bool {
        node.totals.len() <= 1 << (u32::BITS - SHIFT)
    }

    /// Sorts the rows of `node` by their codes, those of a code in their order, and counts
    /// those of every code.
    pub fn sort(&mut self, node: &Node, codes: &[u8], counts: &mut [u32; CODES]) {
        counts.fill(0);
        self.codes.clear();
        self.codes.extend(node.rows.iter().map(|&row| {
            let code = codes[row as usize];
            counts[code as usize] += 1;
            code
        }));
        let mut next = [0; CODES];
        let mut from = 0;
        for (next, &count) in next.iter_mut().zip(&*counts) {
            *next = from;
            from += count;
        }
        self.items.resize(node.len(), Item::default());
        let rows = self.codes.iter().zip(&node.classes).zip(&node.weights);
        for ((&code, &class), &weight) in rows {
            let to = &mut next[code as usize];
            self.items[*to as usize] = Item {
                class_and_code: class << SHIFT | u32::from(code),
                weight: weight as f32,
            };
            *to += 1;
        }
    }

    /// The sums up to each of the codes of values, which `counts` rows have; all others are
    /// missing.
    pub fn sum(&mut self, node: &Node, counts: &[u32], missing_left: bool, sums: &mut Sums) {
        self.by_class.clear();
        self.by_class
            .extend(node.totals.iter().map(|&total| [0.0, total]));
        let n_present = counts.iter().map(|&count| count as usize).sum();
        let (present, missing) = self.items.split_at(n_present);
        let sides = &mut self.sides;
        let mut side = Side::default();
        if missing_left {
            side = join(missing, &mut self.by_class, side, sides);
        }
        join(present, &mut self.by_class, side, sides);
        for (code, &count) in counts.iter().enumerate() {
            if count > 0 {
                side = sides[code];
            }
            let [weight, square, cross, _] = side;
            sums.weight[code] = weight;
            sums.left[code] = square;
            sums.right[code] = node.square - 2.0 * cross + square;
        }
    }
}
