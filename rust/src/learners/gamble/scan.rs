//! The best cut of one feature at one node.
//!
//! The squared error of a tree for the encoded labels is least where the weighted Gini
//! score, sum_k W_k^2 / W summed over both sides, is highest. A row of class c and weight
//! w that joins a side changes its sum of squares by w (2 W_c + w). So a sweep over the
//! rows in the order of the feature costs the same for each of them, whatever the number of
//! classes.

use super::node::Node;

/// A row of a node, on its own: what a sweep needs to know of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Item {
    /// Its weight.
    pub weight: f64,
    /// Its class, as numbered at the node.
    pub class: u32,
    /// Its code.
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
    /// The code.
    pub code: u32,
    /// Where its items begin.
    pub from: usize,
    /// Where they end.
    pub to: usize,
}

impl Run {
    /// They themselves.
    pub fn of<'a>(&self, items: &'a [Item]) -> &'a [Item] {
        &items[self.from..self.to]
    }
}

/// A way to cut a feature in two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Sum of sum_k W_k^2 / W over both sides.
    pub score: f64,
    /// The last code at the node that goes left.
    pub low: u32,
    /// The first code at the node that goes right; none if missing values alone do.
    pub high: Option<u32>,
    /// Whether missing values go left; none where there are none.
    pub missing_left: Option<bool>,
    /// Weight of the left side.
    pub left_weight: f64,
}

/// One side of a split while rows join it, and with it the other.
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
    /// The empty side. `by_class` is room to work in, all zero.
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

    /// Lets `items` join.
    #[inline]
    pub fn join(&mut self, items: &[Item]) {
        for item in items {
            let before = &mut self.by_class[item.class as usize];
            self.square += item.weight * (2.0 * *before + item.weight);
            *before += item.weight;
            self.cross += item.weight * self.node.totals[item.class as usize];
            self.weight += item.weight;
        }
        self.rows += items.len();
    }

    /// Leaves the room as it was, where nothing but `items` have joined.
    pub fn clear(self, items: &[Item]) {
        for item in items {
            self.by_class[item.class as usize] = 0.0;
        }
    }

    /// Score of the split into this side and the rest, if both have the rows they need.
    #[inline]
    pub fn score(&self) -> Option<f64> {
        let rest = self.node.len() - self.rows;
        if self.rows < self.node.min_rows || rest < self.node.min_rows {
            return None;
        }
        let square = self.node.square - 2.0 * self.cross + self.square;
        score(self.node.weight, self.weight, self.square, square)
    }
}

/// Score of two sides, one of which has `weight` of `all`. None if rounding leaves the
/// other no weight.
#[inline]
fn score(all: f64, weight: f64, square: f64, other_square: f64) -> Option<f64> {
    let other = all - weight;
    if other <= 0.0 || weight <= 0.0 {
        return None;
    }
    // A difference of large sums may leave more than there can be.
    Some(square / weight + other_square.clamp(0.0, other * other) / other)
}

/// Room for one thread's sweeps.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Weight by class on one side; zero between sweeps.
    pub by_class: Vec<f64>,
    counts: Vec<u32>,
    /// The rows in the order of a feature.
    pub items: Vec<Item>,
    /// Their codes.
    pub runs: Vec<Run>,
    keys: Vec<u64>,
    /// Cuts above zero: score, weight of the left side, last code there and first code of the
    /// other.
    offers: Vec<(Option<f64>, f64, u32, Option<u32>)>,
}

impl Scratch {
    /// Sorts the rows of `node` by their codes of few values.
    pub fn sort_few(&mut self, node: &Node, codes: &[u8], n_codes: usize) {
        let of = |row: &u32| u32::from(codes[*row as usize]);
        self.count(node.rows.iter().map(of), n_codes);
        self.items.resize(node.len(), Item::default());
        for ((row, &class), &weight) in node.rows.iter().zip(&node.classes).zip(&node.weights) {
            self.put(Item {
                weight,
                class,
                code: of(row),
            });
        }
    }

    /// Sorts the few rows of `node` by their codes, those of a code in their order.
    pub fn sort_some(&mut self, node: &Node, codes: &[u8]) {
        self.sort_keys(node, |row| u32::from(codes[row as usize]));
    }

    /// Sorts items by their codes, of which there are `n_codes`.
    pub fn sort_items(&mut self, items: &mut [Item], n_codes: usize) {
        if n_codes > 4 * items.len() {
            // Stable, so that items of one code stay in the order of their rows.
            items.sort_by_key(|item| item.code);
            self.items.clear();
            self.runs.clear();
            for &item in &*items {
                append(&mut self.items, &mut self.runs, item);
            }
            return;
        }
        self.count(items.iter().map(|item| item.code), n_codes);
        self.items.resize(items.len(), Item::default());
        for &item in &*items {
            self.put(item);
        }
    }

    /// Makes the runs of a counting sort.
    fn count(&mut self, codes: impl Iterator<Item = u32>, n_codes: usize) {
        self.counts.clear();
        self.counts.resize(n_codes, 0);
        for code in codes {
            self.counts[code as usize] += 1;
        }
        self.runs.clear();
        let mut to = 0;
        for (code, count) in self.counts.iter_mut().enumerate() {
            let from = to;
            to += *count as usize;
            if *count > 0 {
                let code = code as u32;
                self.runs.push(Run { code, from, to });
            }
            *count = from as u32;
        }
    }

    /// Puts an item to the others of its code.
    #[inline]
    fn put(&mut self, item: Item) {
        let to = &mut self.counts[item.code as usize];
        self.items[*to as usize] = item;
        *to += 1;
    }

    /// Sorts the rows of `node` by their codes of many values: a large node walks the
    /// presorted rows, a small one sorts its own. Either way rows of one code stay in
    /// their order.
    pub fn sort_many(&mut self, node: &Node, codes: &[u32], order: &[u32]) {
        if node.len() * (node.len().ilog2() as usize + 1) < order.len() {
            self.sort_keys(node, |row| codes[row as usize]);
            return;
        }
        self.items.clear();
        self.runs.clear();
        // Place of each row at the node, from 1; 0: not there.
        self.counts.clear();
        self.counts.resize(codes.len(), 0);
        for (at, &row) in node.rows.iter().enumerate() {
            self.counts[row as usize] = at as u32 + 1;
        }
        for &row in order {
            let place = self.counts[row as usize] as usize;
            if place > 0 {
                let item = Item::of(node, place - 1, codes[row as usize]);
                append(&mut self.items, &mut self.runs, item);
            }
        }
    }

    /// Sorts the rows of `node`, of which `code` tells the codes.
    fn sort_keys(&mut self, node: &Node, code: impl Fn(u32) -> u32) {
        self.items.clear();
        self.runs.clear();
        self.keys.clear();
        let keys = node.rows.iter().enumerate();
        self.keys
            .extend(keys.map(|(at, &row)| u64::from(code(row)) << 32 | at as u64));
        self.keys.sort_unstable();
        for &key in &self.keys {
            let item = Item::of(node, key as u32 as usize, (key >> 32) as u32);
            append(&mut self.items, &mut self.runs, item);
        }
    }

    /// The best cut of the sorted rows, where the highest code may be that of missing
    /// values. A node's rows without an item all have the code `rest`.
    pub fn best_cut(
        &mut self,
        node: &Node,
        missing: Option<u32>,
        rest: Option<u32>,
    ) -> Option<Cut> {
        let (runs, gone) = match self.runs.split_last() {
            Some((last, runs)) if Some(last.code) == missing => (runs, Some(last)),
            _ => (&self.runs[..], None),
        };
        let rest = rest.filter(|_| self.items.len() < node.len());
        let (below, above) = match rest {
            Some(rest) => runs.split_at(runs.partition_point(|run| run.code < rest)),
            None => (runs, &runs[..0]),
        };
        let mut best = Best::new(node);
        for missing_left in [false, true] {
            if gone.is_none() && missing_left {
                break;
            }
            let missing = gone.map(|_| missing_left);
            let gone_left = gone.filter(|_| missing_left);
            let gone_right = gone.filter(|_| !missing_left);
            let mut left = Side::new(node, &mut self.by_class);
            gone_left.inspect(|run| left.join(run.of(&self.items)));
            for (at, run) in below.iter().enumerate() {
                left.join(run.of(&self.items));
                let high = below.get(at + 1).map(|run| run.code).or(rest);
                if high.is_some() || gone_right.is_some() {
                    best.offer(left.score(), left.weight, run.code, high, missing);
                }
            }
            left.clear(&self.items);
            let Some(rest) = rest else {
                continue;
            };
            // From the right, so that the rows without an item never have to join; but offered
            // from the left, as of equals the lowest wins.
            let mut right = Side::new(node, &mut self.by_class);
            let all = node.weight;
            self.offers.clear();
            if let Some(run) = gone_right {
                right.join(run.of(&self.items));
                let low = above.last().map_or(rest, |run| run.code);
                self.offers
                    .push((right.score(), all - right.weight, low, None));
            }
            for (at, run) in above.iter().enumerate().rev() {
                right.join(run.of(&self.items));
                let low = at.checked_sub(1).map_or(rest, |before| above[before].code);
                let weight = all - right.weight;
                self.offers
                    .push((right.score(), weight, low, Some(run.code)));
            }
            for &(score, weight, low, high) in self.offers.iter().rev() {
                best.offer(score, weight, low, high, missing);
            }
            right.clear(&self.items);
        }
        best.cut
    }
}

/// Adds a row to the sorted ones.
fn append(items: &mut Vec<Item>, runs: &mut Vec<Run>, item: Item) {
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

/// The first of the best cuts so far.
pub struct Best {
    score: f64,
    tolerance: f64,
    /// The cut, if any is better than none.
    pub cut: Option<Cut>,
}

impl Best {
    /// Better has to be what comes than not to split `node`.
    pub fn new(node: &Node) -> Self {
        Self {
            score: node.score(),
            tolerance: node.tolerance(),
            cut: None,
        }
    }

    /// Takes a cut if it is the best so far.
    #[inline]
    pub fn offer(
        &mut self,
        score: Option<f64>,
        left_weight: f64,
        low: u32,
        high: Option<u32>,
        missing_left: Option<bool>,
    ) {
        if let Some(score) = score.filter(|score| *score > self.score + self.tolerance) {
            self.score = score;
            self.cut = Some(Cut {
                score,
                low,
                high,
                missing_left,
                left_weight,
            });
        }
    }
}
