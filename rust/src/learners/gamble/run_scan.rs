//! Scans over the rows of a node sorted by code: the best cut, or the best set of categories.
//!
//! A row of class c and weight w that joins a side adds w (2 W_c + w) to the side's sum of squared
//! class weights. The other side's sum is updated in the same way. So a row costs O(1) for any
//! number of classes, and a scan costs O(rows) after sorting. Sorting is O(rows + codes) or
//! O(rows log rows), whichever is less.
//!
//! With two classes the best subset of categories is a prefix of them in the order of their
//! share of one class (Breiman et al., "Classification and Regression Trees", 1984,
//! Theorem 4.5). With more classes no such order exists. The orders by the share of each of the
//! heaviest classes are tried, and each category against all others; of four categories every set
//! is tried. Missing values are a category like any other. Each order costs O(rows + categories log
//! categories).
//!
//! If a column has hundreds of categories, many of them have one or two rows at a node. An order by
//! the shares of these rows would sort the rows by their labels, and every such column would seem
//! to be the best. So the order then comes from other rows, those at the node from which the tree is
//! not grown or a half of those from which it is, with shares drawn to that of the node as if by
//! [`PRIOR_ROWS`] more rows.

use std::cmp::Reverse;
use std::ops::Range;

use super::columns::Coding;
use super::node::{Choice, ColumnBest, Cut, Item, Node, Side};

/// Sums over the rows of one side, in the form to which a row is added in O(1).
#[derive(Debug, Clone, Copy, Default)]
struct SideSums {
    weight: f64,
    /// Sum of the squared class weights of this side.
    square: f64,
    /// Sum over the classes of the weight on this side times the weight at the node.
    cross: f64,
}

impl SideSums {
    fn add(&mut self, weight: f64, [here, both]: &mut [f64; 2]) {
        self.square += weight * (2.0 * *here + weight);
        *here += weight;
        self.cross += weight * *both;
        self.weight += weight;
    }
}

/// Returns the score of the split of `node` into a side of `n_rows` rows with these `sums`, and the
/// rest.
fn score(node: &Node, n_rows: usize, sums: SideSums) -> f64 {
    node.split_score(&Side {
        n_rows,
        weight: sums.weight,
        square: sums.square,
        other_square: node.square - 2.0 * sums.cross + sums.square,
    })
}

/// Returns the score of the split of `node` into the row of `item` and all others.
pub fn score_alone(node: &Node, item: Item) -> f64 {
    let mut sums = SideSums::default();
    let all = node.totals[item.class as usize];
    sums.add(item.weight.into(), &mut [0.0, all]);
    score(node, 1, sums)
}

/// Adds `items` to a side one by one, and stores its sums after each of them. `by_class` has the
/// weight of each class on this side and on both.
fn add_items(
    items: &[Item],
    by_class: &mut [[f64; 2]],
    mut sums: SideSums,
    sums_after: &mut [SideSums],
) -> SideSums {
    for (item, after) in items.iter().zip(sums_after) {
        sums.add(item.weight.into(), &mut by_class[item.class as usize]);
        *after = sums;
    }
    sums
}

/// Resets the weights of a side to zero after `items` were added.
fn clear(by_class: &mut [[f64; 2]], items: &[Item]) {
    if items.len() > by_class.len() {
        by_class.iter_mut().for_each(|[here, _]| *here = 0.0);
    } else {
        for item in items {
            by_class[item.class as usize][0] = 0.0;
        }
    }
}

/// Consecutive items of one code.
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

/// Largest number of codes per row for sorting by counting. With more codes, comparing takes less
/// time than visiting every code.
const MAX_CODES_PER_ROW: usize = 4;

/// Rows of a node's average that count for each category of a column with many of them.
const PRIOR_ROWS: f64 = 10.0;

/// Largest number of categories that a split sends left. Without this limit, the trees would have
/// as many numbers for a column of ids as the column has.
pub const MAX_LISTED: usize = 1024;

/// Largest number of orders of the categories that are tried.
const MAX_ORDERS: usize = 4;

/// Workspace for finding splits by scanning runs.
#[derive(Debug, Default, Clone)]
pub struct RunScan {
    /// Rows sorted by code. Rows of one code keep their order.
    items: Vec<Item>,
    /// Runs of the items, in the order of their codes.
    runs: Vec<Run>,
    /// Code of each row before sorting.
    codes: Vec<u32>,
    counts: Vec<u32>,
    keys: Vec<u64>,
    /// Weight of each class on one side (0 between scans) and at the node.
    by_class: Vec<[f64; 2]>,
    /// Sums of a side after each item.
    sums_after: Vec<SideSums>,
    /// Number of calls of [`offer_cuts`](Self::offer_cuts).
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

    /// Sorts `n` rows by the codes that `code` returns, which are below `n_codes`: by counting,
    /// O(rows + codes), or by comparing, O(rows log rows), whichever is cheaper.
    pub fn sort(
        &mut self,
        n: usize,
        n_codes: usize,
        code: impl Fn(usize) -> u32,
        item: impl Fn(usize) -> Item,
    ) {
        if n_codes > MAX_CODES_PER_ROW * n {
            let mut keys = std::mem::take(&mut self.keys);
            keys.clear();
            keys.extend((0..n).map(|at| u64::from(code(at)) << 32 | at as u64));
            keys.sort_unstable();
            self.read_sorted(keys.iter().copied(), item);
            self.keys = keys;
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
        // Branchless: every code is written, and codes without rows are overwritten.
        for (code, count) in (0..).zip(&mut self.counts) {
            let to = from + *count;
            self.runs[n_runs] = Run { code, from, to };
            n_runs += usize::from(*count > 0);
            *count = from;
            from = to;
        }
        self.runs.truncate(n_runs);
        self.items.resize(n, Item::default());
        for (at, &code) in self.codes.iter().enumerate() {
            let to = &mut self.counts[code as usize];
            self.items[*to as usize] = item(at);
            *to += 1;
        }
    }

    /// Reads rows in the order of `keys`, each a code (32 bits) and a number for `item` (32 bits).
    pub fn read_sorted(
        &mut self,
        keys: impl ExactSizeIterator<Item = u64>,
        item: impl Fn(usize) -> Item,
    ) {
        self.runs.clear();
        self.items.clear();
        for (at, key) in (0..).zip(keys) {
            self.items.push(item(key as u32 as usize));
            let code = (key >> 32) as u32;
            match self.runs.last_mut() {
                Some(run) if run.code == code => run.to += 1,
                _ => self.runs.push(Run {
                    code,
                    from: at,
                    to: at + 1,
                }),
            }
        }
    }

    /// Offers the cuts of the sorted rows to `best`. Rows of `node` that were not sorted all have
    /// the code `implicit`.
    ///
    /// Cuts below that code are scored by their left sides and the others by their right sides, so
    /// that rows of that code are never visited.
    pub fn offer_cuts(
        &mut self,
        node: &Node,
        coding: &Coding,
        implicit: Option<u32>,
        best: &mut ColumnBest,
    ) {
        #[cfg(test)]
        {
            self.n_scans += 1;
        }
        let (by_class, sums_after) = (&mut self.by_class, &mut self.sums_after);
        sums_after.resize(self.items.len().max(sums_after.len()), SideSums::default());
        let (mut runs, mut missing) = (&self.runs[..], 0..0);
        if let Some((last, values)) = runs.split_last() {
            if Some(last.code) == coding.missing_code() {
                (runs, missing) = (values, last.range());
            }
        }
        let n_values = self.items.len() - missing.len();
        let implicit = implicit.filter(|_| self.items.len() < node.len());
        let is_below = |run: &Run| implicit.is_none_or(|code| run.code < code);
        let (below, above) = runs.split_at(runs.partition_point(is_below));
        let n_below = below.last().map_or(0, |run| run.to as usize);
        self.items[n_below..n_values].reverse();
        let (values, missing) = self.items.split_at(n_values);
        let (left_values, right_values) = values.split_at(n_below);
        for missing_left in [false, true] {
            if missing_left && missing.is_empty() {
                break;
            }
            let (left_missing, right_missing) = if missing_left {
                (missing, &[][..])
            } else {
                (&[][..], missing)
            };
            let missing_left = (!missing.is_empty()).then_some(missing_left);
            let start = add_items(left_missing, by_class, SideSums::default(), sums_after);
            add_items(left_values, by_class, start, sums_after);
            for (at, run) in below.iter().enumerate() {
                let n = run.to as usize;
                let left = sums_after[n - 1];
                best.offer(score(node, left_missing.len() + n, left), || {
                    Choice::Cut(Cut {
                        last_left: run.code,
                        first_right: below.get(at + 1).map(|run| run.code).or(implicit),
                        missing_left,
                        left_weight: left.weight,
                    })
                });
            }
            clear(by_class, &self.items);
            let Some(implicit) = implicit else {
                continue;
            };
            let start = add_items(right_missing, by_class, SideSums::default(), sums_after);
            add_items(right_values, by_class, start, sums_after);
            let last_left = std::iter::once(implicit).chain(above.iter().map(|run| run.code));
            for (at, last_left) in last_left.enumerate() {
                let first = above.get(at);
                let n = first.map_or(0, |run| n_values - run.from as usize);
                let right = if n == 0 { start } else { sums_after[n - 1] };
                best.offer(score(node, right_missing.len() + n, right), || {
                    Choice::Cut(Cut {
                        last_left,
                        first_right: first.map(|run| run.code),
                        missing_left,
                        left_weight: node.weight - right.weight,
                    })
                });
            }
            clear(by_class, &self.items);
        }
    }

    /// Returns the items of a code.
    fn items_of(&self, code: u32) -> &[Item] {
        let run = self.runs.binary_search_by_key(&code, |run| run.code);
        run.map_or(&[], |at| &self.items[self.runs[at].range()])
    }

    /// Offers sets of categories of the sorted rows to `best`. The lighter side goes left, so that
    /// a category that the node did not have goes with the heavier side. If there are many
    /// categories, `others` has sorted other rows, which give the orders. With `keeps_ties`,
    /// categories of equal shares, such as all without other rows, stay together.
    pub fn offer_subsets(
        &mut self,
        node: &Node,
        others: Option<&Self>,
        keeps_ties: bool,
        best: &mut ColumnBest,
    ) {
        let (items, runs) = (&self.items, &self.runs);
        let (by_class, sums_after) = (&mut self.by_class, &mut self.sums_after);
        sums_after.resize(items.len().max(sums_after.len()), SideSums::default());
        let mut try_prefixes = |order: &[Run], may_cut: &dyn Fn(usize) -> bool| {
            let (mut sums, mut n_rows) = (SideSums::default(), 0);
            // Length and weight of the best prefix.
            let mut chosen = None;
            for (n, run) in (1..).zip(order) {
                sums = add_items(&items[run.range()], by_class, sums, sums_after);
                n_rows += run.range().len();
                let is_lighter = 2.0 * sums.weight <= node.weight;
                let n_listed = if is_lighter { n } else { runs.len() - n };
                if n_listed <= MAX_LISTED
                    && may_cut(n)
                    && best.offer(score(node, n_rows, sums), || Choice::Subset(Box::default()))
                {
                    chosen = Some((n, sums.weight));
                }
            }
            if let (Some((n, weight)), Some((_, choice))) = (chosen, &mut best.found) {
                let chosen = order[..n].iter().map(|run| run.code).collect();
                *choice = lighter_side(node, weight, chosen, runs.iter().map(|run| run.code));
            }
            for run in order {
                clear(by_class, &items[run.range()]);
            }
        };
        match others {
            // Without rows outside the tree, the order of many categories would be fitted to the
            // rows that score it.
            Some(others) if others.items.is_empty() => return,
            Some(_) => {}
            None => {
                runs.chunks(1).for_each(|run| try_prefixes(run, &|_| true));
                if runs.len() <= MAX_ALONE {
                    return;
                }
                if runs.len() == MAX_ALONE + 1 {
                    // All other sets are a pair of categories with the first one, and the rest.
                    let pairs = runs[1..].iter().map(|run| [runs[0], *run]);
                    pairs.for_each(|pair| try_prefixes(&pair, &|n| n > 1));
                    return;
                }
            }
        }
        let mut classes = Vec::new();
        heaviest_classes(node, &mut classes);
        for class in classes {
            let prior = if others.is_some() { PRIOR_ROWS } else { 0.0 };
            let prior_own = prior * node.totals[class as usize] / node.len() as f64;
            let prior = prior * node.weight / node.len() as f64;
            let share = |run: &Run| {
                let (mut own, mut all) = (prior_own, prior);
                let items = match others {
                    Some(others) => others.items_of(run.code),
                    None => &items[run.range()],
                };
                for item in items {
                    let weight = f64::from(item.weight);
                    all += weight;
                    if item.class == class {
                        own += weight;
                    }
                }
                own / all
            };
            // Shares are not negative, so their bits have the same order.
            let keyed = runs.iter().map(|run| (share(run).to_bits(), *run));
            let mut keyed: Vec<(u64, Run)> = keyed.collect();
            keyed.sort_by_key(|&(bits, _)| Reverse(bits));
            let order: Vec<Run> = keyed.iter().map(|&(_, run)| run).collect();
            let may_cut = |n: usize| !keeps_ties || keyed[n - 1].0 != keyed[n].0;
            try_prefixes(&order[..order.len().saturating_sub(1)], &may_cut);
        }
    }
}

/// Largest number of categories of which every set is one category or all others.
pub const MAX_ALONE: usize = 3;

/// Returns the `chosen` categories, whose weight is `weight`, or the others of those `present`,
/// which rise: the lighter side of `node`.
pub fn lighter_side(
    node: &Node,
    weight: f64,
    mut chosen: Vec<u32>,
    present: impl Iterator<Item = u32>,
) -> Choice {
    chosen.sort_unstable();
    if 2.0 * weight > node.weight {
        let is_other = |code: &u32| chosen.binary_search(code).is_err();
        chosen = present.filter(is_other).collect();
    }
    Choice::Subset(chosen.into())
}

/// Replaces `classes` by at most [`MAX_ORDERS`] classes of the largest weight. One of two classes is
/// enough, as the other gives the reverse order.
pub fn heaviest_classes(node: &Node, classes: &mut Vec<u32>) {
    classes.clear();
    classes.extend(0..node.totals.len() as u32);
    classes.sort_by(|&a, &b| node.totals[b as usize].total_cmp(&node.totals[a as usize]));
    classes.truncate(if classes.len() == 2 { 1 } else { MAX_ORDERS });
}
