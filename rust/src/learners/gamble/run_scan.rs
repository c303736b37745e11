//! Scans over runs of rows of equal codes: for the best cut of a column of any number of codes, and
//! for the best set of categories.
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

use std::ops::Range;

use super::cuts::Cuts;
use super::node::{BestCut, ColumnSplit, Cut, Item, Node, Subset};

/// What is known of the rows on one side.
#[derive(Debug, Clone, Copy, Default)]
struct SideSums {
    weight: f64,
    /// Sum of the squared weights of their classes.
    square: f64,
    /// Sum of the weights of their classes times those of the classes at the node.
    cross: f64,
}

/// Adds the `items` to a side one after the other, and stores its sums after each.
/// `by_class` has the weight of each class on this side and on both.
fn add_items(
    items: &[Item],
    by_class: &mut [[f64; 2]],
    mut side: SideSums,
    sides: &mut [SideSums],
) -> SideSums {
    for (item, after) in items.iter().zip(sides) {
        let [here, both] = &mut by_class[item.class as usize];
        let weight = f64::from(item.weight);
        side.square += weight * (2.0 * *here + weight);
        *here += weight;
        side.cross += weight * *both;
        side.weight += weight;
        *after = side;
    }
    side
}

/// The sum of the squared weights of the classes on the other side than that of `sums`.
fn other_square(node: &Node, sums: SideSums) -> f64 {
    node.square - 2.0 * sums.cross + sums.square
}

/// Score of the split of `node` into a side of so many rows and of these sums, and the rest; 0
/// where one of them lacks the rows that it needs, or rounding leaves it no weight.
#[inline]
fn score(node: &Node, rows: usize, sums: SideSums) -> f64 {
    let (other_rows, other) = (node.len() - rows, node.weight - sums.weight);
    if rows.min(other_rows) < node.min_rows || sums.weight <= 0.0 || other <= 0.0 {
        return 0.0;
    }
    // A difference of large sums may leave more than there can be.
    sums.square / sums.weight + other_square(node, sums).clamp(0.0, other * other) / other
}

/// Score of the split of `node` into the row of `item` and all others.
#[inline]
pub fn score_alone(node: &Node, item: Item) -> f64 {
    let (weight, all) = (f64::from(item.weight), node.totals[item.class as usize]);
    let (square, cross) = (weight * weight, weight * all);
    let sums = SideSums {
        weight,
        square,
        cross,
    };
    score(node, 1, sums)
}

/// Items of one code, side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Run {
    code: u32,
    from: u32,
    to: u32,
}

impl Run {
    fn range(self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// A node of so many times fewer rows than the feature has codes is sorted by comparing: looking at
/// every code would take longer.
const MAX_CODES_PER_ROW: usize = 4;

/// Finds cuts by scanning runs. Workspace.
#[derive(Debug, Default)]
pub struct RunScan {
    /// The rows, sorted by code, those of one code in their order.
    items: Vec<Item>,
    /// Their codes, rising.
    runs: Vec<Run>,
    /// Code of each row, before sorting.
    codes: Vec<u32>,
    counts: Vec<u32>,
    keys: Vec<u64>,
    /// Weight of each class on one side, 0 between scans, and at the node.
    by_class: Vec<[f64; 2]>,
    /// The sums of a side after each item.
    sides: Vec<SideSums>,
    cuts: Cuts,
    /// How often [`best_cut`](Self::best_cut) was called.
    #[cfg(test)]
    pub n_scans: usize,
}

impl RunScan {
    /// Prepares for scans at `node`.
    pub fn enter(&mut self, node: &Node) {
        self.by_class.clear();
        let totals = node.totals.iter().map(|&total| [0.0, total]);
        self.by_class.extend(totals);
    }

    /// Sorts `n` rows by the codes that `code` returns, of which there are `n_codes`: by counting,
    /// O(rows + codes), or by comparing, O(rows log rows), where that is cheaper.
    pub fn sort(
        &mut self,
        n: usize,
        n_codes: usize,
        code: impl Fn(usize) -> u32,
        item: impl Fn(usize) -> Item,
    ) {
        self.items.resize(n, Item::default());
        if n_codes > MAX_CODES_PER_ROW * n {
            self.keys.clear();
            let key = |at| u64::from(code(at)) << 32 | at as u64;
            self.keys.extend((0..n).map(key));
            self.keys.sort_unstable();
            self.runs.clear();
            for (at, (to, &key)) in (0..).zip(self.items.iter_mut().zip(&self.keys)) {
                *to = item(key as u32 as usize);
                let code = (key >> 32) as u32;
                match self.runs.last_mut() {
                    Some(run) if run.code == code => run.to = at + 1,
                    _ => self.runs.push(Run {
                        code,
                        from: at,
                        to: at + 1,
                    }),
                }
            }
            return;
        }
        self.counts.clear();
        self.counts.resize(n_codes, 0);
        self.codes.clear();
        self.codes.extend((0..n).map(|at| {
            let code = code(at);
            self.counts[code as usize] += 1;
            code
        }));
        self.runs.resize(n_codes, Run::default());
        let (mut n_runs, mut from) = (0, 0);
        // All are written and those of a row are kept: no branch that could be mispredicted.
        for (code, count) in (0..).zip(&mut self.counts) {
            let to = from + *count;
            self.runs[n_runs] = Run { code, from, to };
            n_runs += usize::from(*count > 0);
            *count = from;
            from = to;
        }
        self.runs.truncate(n_runs);
        for (at, &code) in self.codes.iter().enumerate() {
            let to = &mut self.counts[code as usize];
            self.items[*to as usize] = item(at);
            *to += 1;
        }
    }

    /// The best cut of the rows that were sorted, where the highest code may be that of missing
    /// values. Rows of `node` that were not among them all have the code `implicit`.
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
        let has_missing = missing.is_some() && self.runs.last().map(|run| run.code) == missing;
        let n_runs = self.runs.len() - usize::from(has_missing);
        let runs = &self.runs[..n_runs];
        let n_values = runs.last().map_or(0, |run| run.to as usize);
        let implicit = implicit.filter(|_| self.items.len() < node.len());
        let n_below = implicit.map_or(n_runs, |code| runs.partition_point(|run| run.code < code));
        let (below, above) = runs.split_at(n_below);
        let n_items_below = below.last().map_or(0, |run| run.to as usize);
        let codes = below.iter().map(|run| run.code).chain(implicit);
        let codes = codes.chain(above.iter().map(|run| run.code));
        self.cuts.set_codes(codes, n_below);
        let size = self.sides.len().max(self.items.len());
        self.sides.resize(size, SideSums::default());
        // The rows above are added from the right, so that those of the code `implicit` never are.
        self.items[n_items_below..n_values].reverse();
        let mut best = BestCut::new(node);
        for missing_left in [false, true] {
            if missing_left && !has_missing {
                break;
            }
            let (values, missing_items) = self.items.split_at(n_values);
            let (items_below, items_above) = values.split_at(n_items_below);
            let (by_class, sides) = (&mut self.by_class, &mut self.sides);
            let (mut start, mut n_before) = (SideSums::default(), 0);
            if missing_left {
                start = add_items(missing_items, by_class, start, sides);
                n_before = missing_items.len();
            }
            add_items(items_below, by_class, start, sides);
            for (at, run) in below.iter().enumerate() {
                let to = run.to as usize;
                set_cut(&mut self.cuts, node, at, n_before + to, sides[to - 1]);
            }
            clear(by_class, &self.items);
            if implicit.is_some() {
                let (mut sums, mut n_right) = (SideSums::default(), 0);
                if !missing_left {
                    sums = add_items(missing_items, by_class, sums, sides);
                    n_right = missing_items.len();
                }
                let n_missing = n_right;
                add_items(items_above, by_class, sums, sides);
                for (at, run) in above.iter().enumerate().rev() {
                    set_cut(&mut self.cuts, node, n_below + at + 1, n_right, sums);
                    n_right = n_missing + (n_values - run.from as usize);
                    sums = sides[n_values - run.from as usize - 1];
                }
                set_cut(&mut self.cuts, node, n_below, n_right, sums);
                clear(by_class, &self.items);
            }
            let is_left = has_missing.then_some(missing_left);
            self.cuts.offer(node, is_left, &mut best);
        }
        best.cut
    }
}

/// Sets cut `at`, of which one side has so many rows and these `sums`.
fn set_cut(cuts: &mut Cuts, node: &Node, at: usize, n_rows: usize, sums: SideSums) {
    let other_square = other_square(node, sums);
    cuts.set(at, n_rows, [sums.weight, sums.square, other_square]);
}

/// Makes the weights of one side zero again, after `items` were added.
fn clear(by_class: &mut [[f64; 2]], items: &[Item]) {
    if items.len() > by_class.len() {
        by_class.iter_mut().for_each(|[here, _]| *here = 0.0);
    } else {
        for item in items {
            by_class[item.class as usize][0] = 0.0;
        }
    }
}

/// Orders tried: by the shares of so many of the heaviest classes.
const MAX_ORDERS: usize = 4;

impl RunScan {
    /// The best split of the rows that were sorted by sets of categories. The lighter side is on
    /// the left: a category that was not there then goes with the heavier one.
    pub fn best_subset(&mut self, node: &Node) -> Option<ColumnSplit> {
        let (items, runs) = (&self.items, &self.runs);
        let (by_class, sides) = (&mut self.by_class, &mut self.sides);
        sides.resize(sides.len().max(items.len()), SideSums::default());
        let mut all = Subset::default();
        runs.iter().for_each(|run| all.insert(run.code));
        let mut best: Option<(f64, Subset)> = None;
        let mut try_prefixes = |order: &[Run]| {
            let (mut side, mut n_rows) = (SideSums::default(), 0);
            let mut codes = Subset::default();
            for run in order {
                let of_run = &items[run.range()];
                side = add_items(of_run, by_class, side, sides);
                n_rows += of_run.len();
                codes.insert(run.code);
                let to_beat = best.map_or(node.score(), |(score, _)| score) + node.tolerance();
                let found = score(node, n_rows, side);
                if found > to_beat {
                    let is_lighter = 2.0 * side.weight <= node.weight;
                    let left = if is_lighter {
                        codes
                    } else {
                        all.without(&codes)
                    };
                    best = Some((found, left));
                }
            }
            order
                .iter()
                .for_each(|run| clear(by_class, &items[run.range()]));
        };
        let mut ranked: Vec<(f64, Run)> = Vec::with_capacity(runs.len());
        for class in heaviest_classes(node) {
            ranked.clear();
            ranked.extend(runs.iter().map(|run| {
                let (mut own, mut all) = (0.0, 0.0);
                for item in &items[run.range()] {
                    let weight = f64::from(item.weight);
                    all += weight;
                    if item.class == class {
                        own += weight;
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
}

/// The classes of the most weight, at most [`MAX_ORDERS`]; of two the first will do.
fn heaviest_classes(node: &Node) -> Vec<u32> {
    let mut classes: Vec<u32> = (0..node.totals.len() as u32).collect();
    classes.sort_by(|&a, &b| node.totals[b as usize].total_cmp(&node.totals[a as usize]));
    classes.truncate(if classes.len() == 2 { 1 } else { MAX_ORDERS });
    classes
}
