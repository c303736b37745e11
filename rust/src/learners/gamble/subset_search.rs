//! Strategy for categorical columns: the best subset of the categories.
//!
//! With two classes the best subset is a prefix of the categories in the order of their
//! share of one class (Breiman et al., "Classification and Regression Trees", 1984,
//! Theorem 4.5). With more there is no such order, so those by the shares of the
//! heaviest classes are tried, and each category against all others. A missing value is
//! a category like any other. O(rows + categories log categories) per order tried.

use super::binning::Coding;
use super::node::Node;
use super::run_scan::{Run, Side, SortedRuns};
use super::split::{ColumnSplit, Subset};

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
    for class in heaviest(node) {
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
fn heaviest(node: &Node) -> Vec<u32> {
    let mut classes: Vec<u32> = (0..node.totals.len() as u32).collect();
    classes.sort_by(|&a, &b| node.totals[b as usize].total_cmp(&node.totals[a as usize]));
    classes.truncate(if classes.len() == 2 { 1 } else { ORDERS });
    classes
}
