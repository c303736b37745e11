//! Strategies over runs of rows of equal codes: [`RunScan`] for columns of any number of codes,
//! [`SubsetSearch`] for categories.
//!
//! A row of class c and weight w that is added to a side changes the side's sum of squared
//! class weights by w (2 W_c + w), and the other side's by a sum kept alike. So adding a row is
//! O(1), whatever the number of classes, and a scan O(rows) after sorting, which is O(rows + codes)
//! or O(rows log rows), whichever is less.
//!
//! With two classes the best subset of categories is a prefix of them in the order of their
//! share of one class (Breiman et al., "Classification and Regression Trees", 1984,
//! Theorem 4.5). With more there is no such order, so those by the shares of the
//! heaviest classes are tried, and each category against all others. A missing value is
//! a category like any other. O(rows + categories log categories) per order tried.

use super::columns::Coding;
use super::node::{BestCut, ColumnSplit, Cut, Node, Subset};

/// A row of a node, on its own: what a scan needs to know of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Item {
    pub weight: f64,
    /// Its class, as numbered at the node.
    pub class: u32,
    pub code: u32,
}

impl Item {
    /// Row `at` of `node`, of this code.
    #[inline]
    pub fn of(node: &Node, at: usize, code: u32) -> Self {
        Self {
            weight: node.weights[at],
            class: node.classes[at],
            code,
        }
    }

    /// Score of the split of `node` into this row and all others.
    #[inline]
    pub fn score_alone(&self, node: &Node) -> f64 {
        let (weight, all) = (self.weight, node.totals[self.class as usize]);
        score(node, 1, weight, weight * weight, weight * all)
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

    /// Score of the split into this side and the rest.
    #[inline]
    pub fn score(&self) -> f64 {
        score(self.node, self.rows, self.weight, self.square, self.cross)
    }
}

/// Score of the split of `node` into a side of these sums, as [`Side`] has them, and the rest; 0
/// where one of them lacks the rows that it needs, or rounding leaves it no weight.
#[inline]
fn score(node: &Node, rows: usize, weight: f64, square: f64, cross: f64) -> f64 {
    let (other_rows, other) = (node.len() - rows, node.weight - weight);
    if rows.min(other_rows) < node.min_rows || weight <= 0.0 || other <= 0.0 {
        return 0.0;
    }
    let other_square = node.square - 2.0 * cross + square;
    // A difference of large sums may leave more than there can be.
    square / weight + other_square.clamp(0.0, other * other) / other
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
    /// Sorts the rows of `node` by the codes that `code` returns, of which there are `n_codes`.
    pub fn sort_rows(&mut self, node: &Node, n_codes: usize, code: impl Fn(u32) -> u32) {
        let code = |at: usize| code(node.rows[at]);
        self.sort(node.len(), n_codes, code, |at, code| {
            Item::of(node, at, code)
        });
    }

    /// Sorts `n` items by the codes that `code` returns, of which there are `n_codes`: by counting,
    /// O(items + codes), or by comparing, O(items log items), where that is cheaper.
    pub fn sort(
        &mut self,
        n: usize,
        n_codes: usize,
        code: impl Fn(usize) -> u32,
        item: impl Fn(usize, u32) -> Item,
    ) {
        if n_codes > 4 * n {
            self.keys.clear();
            let key = |at| u64::from(code(at)) << 32 | at as u64;
            self.keys.extend((0..n).map(key));
            self.keys.sort_unstable();
            let keys = self.keys.iter();
            let sorted = keys.map(|&key| item(key as u32 as usize, (key >> 32) as u32));
            collect(&mut self.items, &mut self.runs, sorted);
            return;
        }
        self.counts.clear();
        self.counts.resize(n_codes, 0);
        for at in 0..n {
            self.counts[code(at) as usize] += 1;
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
        self.items.resize(n, Item::default());
        for at in 0..n {
            let code = code(at);
            let to = &mut self.counts[code as usize];
            self.items[*to as usize] = item(at, code);
            *to += 1;
        }
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

/// Finds splits by scanning runs. Workspace for one thread.
#[derive(Debug, Default)]
pub struct RunScan {
    /// The rows in the order of a feature.
    pub sorted: SortedRuns,
    /// Weight by class on one side; zero between scans.
    by_class: Vec<f64>,
    /// Cuts above the code of rows without an item.
    cuts_above: Vec<Cut>,
    /// How often [`best_cut`](Self::best_cut) was called.
    #[cfg(test)]
    pub n_scans: usize,
}

impl RunScan {
    /// The best cut of the rows sorted in [`Self::sorted`], where the highest code may be that
    /// of missing values. Rows of `node` without an item all have the code `implicit`.
    pub fn best_cut(
        &mut self,
        node: &Node,
        missing: Option<u32>,
        implicit: Option<u32>,
    ) -> Option<Cut> {
        #[cfg(test)]
        {
            self.n_scans += 1;
        }
        let SortedRuns { items, runs, .. } = &self.sorted;
        let (runs, missing_run) = match runs.split_last() {
            Some((last, runs)) if Some(last.code) == missing => (runs, Some(last)),
            _ => (&runs[..], None),
        };
        let implicit = implicit.filter(|_| items.len() < node.len());
        let (below, above) = match implicit {
            Some(implicit) => runs.split_at(runs.partition_point(|run| run.code < implicit)),
            None => (runs, &runs[..0]),
        };
        let mut best = BestCut::new(node);
        let n_sides = 1 + usize::from(missing_run.is_some());
        for missing_left in [false, true].into_iter().take(n_sides) {
            let cut =
                |score: f64, left_weight: f64, last_left: u32, first_right: Option<u32>| Cut {
                    score,
                    last_left,
                    first_right,
                    missing_left: missing_run.map(|_| missing_left),
                    left_weight,
                };
            let on_left = missing_run.filter(|_| missing_left);
            let on_right = missing_run.filter(|_| !missing_left);
            let mut left = Side::new(node, &mut self.by_class);
            on_left.inspect(|run| left.add(run.of(items)));
            for (at, run) in below.iter().enumerate() {
                left.add(run.of(items));
                let first_right = below.get(at + 1).map(|run| run.code).or(implicit);
                if first_right.is_some() || on_right.is_some() {
                    best.offer(cut(left.score(), left.weight, run.code, first_right));
                }
            }
            left.clear(items);
            let Some(implicit) = implicit else {
                continue;
            };
            // From the right, so that the rows without an item never have to be added; but offered
            // from the left, as of equals the lowest wins.
            let mut right = Side::new(node, &mut self.by_class);
            self.cuts_above.clear();
            if let Some(run) = on_right {
                right.add(run.of(items));
                let last_left = above.last().map_or(implicit, |run| run.code);
                let weight = node.weight - right.weight;
                self.cuts_above
                    .push(cut(right.score(), weight, last_left, None));
            }
            for (at, run) in above.iter().enumerate().rev() {
                right.add(run.of(items));
                let last_left = if at > 0 { above[at - 1].code } else { implicit };
                let weight = node.weight - right.weight;
                self.cuts_above
                    .push(cut(right.score(), weight, last_left, Some(run.code)));
            }
            self.cuts_above
                .iter()
                .rev()
                .for_each(|&cut| best.offer(cut));
            right.clear(items);
        }
        best.cut
    }
}

/// Orders tried: by the shares of so many of the heaviest classes.
const ORDERS: usize = 4;

/// Finds splits by sets of categories. Workspace for one thread.
#[derive(Debug, Default)]
pub struct SubsetSearch {
    sorted: SortedRuns,
    /// Weight by class on one side; zero between searches.
    by_class: Vec<f64>,
}

impl SubsetSearch {
    pub fn best_split(
        &mut self,
        node: &Node,
        codes: &[u8],
        coding: &Coding,
    ) -> Option<ColumnSplit> {
        let code = |row: u32| u32::from(codes[row as usize]);
        self.sorted.sort_rows(node, coding.n_codes(), code);
        best_subset(node, &self.sorted, &mut self.by_class)
    }
}

/// The best split of the `sorted` rows. The lighter side is on the left: a category that was not
/// there then goes with the heavier one.
fn best_subset(node: &Node, sorted: &SortedRuns, by_class: &mut Vec<f64>) -> Option<ColumnSplit> {
    let SortedRuns { items, runs, .. } = sorted;
    let mut all = Subset::default();
    runs.iter().for_each(|run| all.insert(run.code));
    let mut best: Option<(f64, Subset)> = None;
    let mut try_prefixes = |order: &[Run]| {
        let (mut side, mut codes) = (Side::new(node, by_class), Subset::default());
        for run in order {
            side.add(run.of(items));
            codes.insert(run.code);
            let to_beat = best.map_or(node.score(), |(score, _)| score) + node.tolerance();
            if side.score() > to_beat {
                let is_lighter = 2.0 * side.weight <= node.weight;
                let left = if is_lighter {
                    codes
                } else {
                    all.without(&codes)
                };
                best = Some((side.score(), left));
            }
        }
        order.iter().for_each(|run| side.clear(run.of(items)));
    };
    let mut ranked: Vec<(f64, Run)> = Vec::with_capacity(runs.len());
    for class in heaviest_classes(node) {
        ranked.clear();
        ranked.extend(runs.iter().map(|run| {
            let (mut own, mut all) = (0.0, 0.0);
            for item in run.of(items) {
                all += item.weight;
                if item.class == class {
                    own += item.weight;
                }
            }
            (own / all, *run)
        }));
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let order: Vec<Run> = ranked.iter().map(|&(_, run)| run).collect();
        try_prefixes(&order[..order.len().saturating_sub(1)]);
    }
    runs.chunks(1).for_each(try_prefixes);
    best.map(|(score, left)| ColumnSplit::Subset { score, left })
}

/// The classes of the most weight, at most [`ORDERS`]; of two the first will do.
fn heaviest_classes(node: &Node) -> Vec<u32> {
    let mut classes: Vec<u32> = (0..node.totals.len() as u32).collect();
    classes.sort_by(|&a, &b| node.totals[b as usize].total_cmp(&node.totals[a as usize]));
    classes.truncate(if classes.len() == 2 { 1 } else { ORDERS });
    classes
}
