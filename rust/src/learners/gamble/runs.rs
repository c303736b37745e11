//! The rows of a node in the order of one feature's codes, as runs of equal codes, and the sums
//! of one side of a split while runs are added to it.
//!
//! A row of class c and weight w that is added to a side changes the side's sum of squared
//! class weights by w (2 W_c + w), and the other side's by a sum kept alike. So adding a row is
//! O(1), whatever the number of classes.

use super::node::Node;

/// A row of a node, on its own: what a scan needs to know of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Item {
    pub weight: f64,
    /// Its class, as numbered at the node.
    pub class: u32,
    pub code: u32,
}

impl Item {
    fn of(node: &Node, at: usize, code: u32) -> Self {
        Self {
            weight: node.weights[at],
            class: node.classes[at],
            code,
        }
    }
}

/// Items of one code, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub code: u32,
    from: usize,
    to: usize,
}

impl Run {
    pub fn of<'a>(&self, items: &'a [Item]) -> &'a [Item] {
        &items[self.from..self.to]
    }
}

/// One side of a split while rows are added to it, and with it the other.
pub struct Side<'a> {
    node: &'a Node,
    /// W_k on this side.
    by_class: &'a mut Vec<f64>,
    /// W on this side.
    pub weight: f64,
    square: f64,
    /// Sum over the classes of W_k here times W_k at the node.
    cross: f64,
    rows: usize,
}

impl<'a> Side<'a> {
    /// The empty side. `by_class` is a buffer, all zero.
    pub fn new(node: &'a Node, by_class: &'a mut Vec<f64>) -> Self {
        if by_class.len() < node.totals.len() {
            by_class.resize(node.totals.len(), 0.0);
        }
        Self {
            node,
            by_class,
            weight: 0.0,
            square: 0.0,
            cross: 0.0,
            rows: 0,
        }
    }

    #[inline]
    pub fn add(&mut self, items: &[Item]) {
        for item in items {
            let before = &mut self.by_class[item.class as usize];
            self.square += item.weight * (2.0 * *before + item.weight);
            *before += item.weight;
            self.cross += item.weight * self.node.totals[item.class as usize];
            self.weight += item.weight;
        }
        self.rows += items.len();
    }

    /// Makes the buffer zero again, after `items` were added.
    pub fn clear(&mut self, items: &[Item]) {
        for item in items {
            self.by_class[item.class as usize] = 0.0;
        }
    }

    /// Score of the split into this side and the rest; 0 where one of them lacks the rows that it
    /// needs, or rounding leaves it no weight.
    #[inline]
    pub fn score(&self) -> f64 {
        let (other_rows, other) = (self.node.len() - self.rows, self.node.weight - self.weight);
        if self.rows.min(other_rows) < self.node.min_rows || self.weight <= 0.0 || other <= 0.0 {
            return 0.0;
        }
        let other_square = self.node.square - 2.0 * self.cross + self.square;
        // A difference of large sums may leave more than there can be.
        self.square / self.weight + other_square.clamp(0.0, other * other) / other
    }
}

/// Sorts rows into runs, those of one code in their order. Workspace for one thread.
#[derive(Debug, Default)]
pub struct SortedRuns {
    /// The rows, sorted.
    pub items: Vec<Item>,
    /// Their codes, rising.
    pub runs: Vec<Run>,
    counts: Vec<u32>,
    keys: Vec<u64>,
}

impl SortedRuns {
    /// Sorts the rows of `node` by their codes, of which there are `n_codes`, by counting:
    /// O(rows + codes).
    pub fn sort_by_counting(&mut self, node: &Node, codes: &[u8], n_codes: usize) {
        let rows = node.rows.iter().enumerate();
        let code = |row: u32| u32::from(codes[row as usize]);
        self.count(
            rows.map(|(at, &row)| Item::of(node, at, code(row))),
            n_codes,
        );
    }

    /// Sorts items by their codes, of which there are `n_codes`: by counting where that is no
    /// dearer than comparing.
    pub fn sort_items(&mut self, items: &mut [Item], n_codes: usize) {
        if n_codes > 4 * items.len() {
            // Stable, so that items of one code stay in the order of their rows.
            items.sort_by_key(|item| item.code);
            collect(&mut self.items, &mut self.runs, items.iter().copied());
        } else {
            self.count(items.iter().copied(), n_codes);
        }
    }

    fn count(&mut self, items: impl ExactSizeIterator<Item = Item> + Clone, n_codes: usize) {
        self.counts.clear();
        self.counts.resize(n_codes, 0);
        for item in items.clone() {
            self.counts[item.code as usize] += 1;
        }
        self.runs.clear();
        let mut to = 0;
        for (code, count) in (0..).zip(&mut self.counts) {
            let from = to;
            to += *count as usize;
            if *count > 0 {
                self.runs.push(Run { code, from, to });
            }
            *count = from as u32;
        }
        self.items.resize(items.len(), Item::default());
        for item in items {
            let to = &mut self.counts[item.code as usize];
            self.items[*to as usize] = item;
            *to += 1;
        }
    }

    /// Sorts the rows of `node` by their `codes`, with the help of the `order` of all rows: a
    /// large node goes over the presorted rows, a small one sorts its own.
    pub fn sort_presorted(&mut self, node: &Node, codes: &[u32], order: &[u32]) {
        if node.len() * (node.len().ilog2() as usize + 1) < order.len() {
            self.sort_by_comparing(node, |row| codes[row as usize]);
            return;
        }
        // Place of each row at the node, from 1; 0: not there.
        self.counts.clear();
        self.counts.resize(codes.len(), 0);
        let places = &mut self.counts[..];
        for (at, &row) in node.rows.iter().enumerate() {
            places[row as usize] = at as u32 + 1;
        }
        let sorted = order.iter().filter_map(|&row| {
            let at = places[row as usize].checked_sub(1)?;
            Some(Item::of(node, at as usize, codes[row as usize]))
        });
        collect(&mut self.items, &mut self.runs, sorted);
    }

    /// Sorts the rows of `node` by the codes that `code` returns, by comparing: O(rows log rows).
    pub fn sort_by_comparing(&mut self, node: &Node, code: impl Fn(u32) -> u32) {
        self.keys.clear();
        let keys = node.rows.iter().enumerate();
        self.keys
            .extend(keys.map(|(at, &row)| u64::from(code(row)) << 32 | at as u64));
        self.keys.sort_unstable();
        let item = |&key: &u64| Item::of(node, key as u32 as usize, (key >> 32) as u32);
        collect(&mut self.items, &mut self.runs, self.keys.iter().map(item));
    }
}

/// Stores the `sorted` items and their runs.
fn collect(items: &mut Vec<Item>, runs: &mut Vec<Run>, sorted: impl Iterator<Item = Item>) {
    items.clear();
    runs.clear();
    for item in sorted {
        items.push(item);
        let to = items.len();
        match runs.last_mut() {
            Some(run) if run.code == item.code => run.to = to,
            _ => runs.push(Run {
                code: item.code,
                from: to - 1,
                to,
            }),
        }
    }
}
