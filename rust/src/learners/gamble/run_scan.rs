//! Strategy for dense columns of any number of codes: the rows as runs of equal codes, which are
//! added to the left side one after the other.
//!
//! O(rows) after sorting. A feature of many codes comes with all rows in its order, and a large
//! node picks its own from them: O(rows of the training set). A small node sorts its rows:
//! O(rows log rows), which is also cheaper than a table of all codes where a small feature has
//! many times more codes than the node has rows.

use super::columns::{Columns, Storage};
use super::node::Node;
use super::runs::{Side, SortedRuns};
use super::split_strategy::{BestCut, ColumnSplit, Cut, Found, SplitStrategy};

/// Finds splits by scanning runs. Workspace for one thread.
#[derive(Debug, Default)]
pub struct RunScan {
    /// The rows in the order of a feature.
    pub sorted: SortedRuns,
    /// Weight by class on one side; zero between scans.
    by_class: Vec<f64>,
    /// Cuts above the code of rows without an item: score, weight of the left side, last code
    /// there and first code of the other.
    cuts_above: Vec<(f64, f64, u32, Option<u32>)>,
}

impl SplitStrategy for RunScan {
    fn best_splits(&mut self, node: &Node, columns: &Columns, wanted: &[u32], found: &mut Found) {
        for &at in wanted {
            let column = &columns.columns[at as usize];
            match &column.storage {
                Storage::Small(codes) => {
                    let code = |row: u32| u32::from(codes[row as usize]);
                    self.sorted.sort_by_comparing(node, code);
                }
                Storage::Large { codes, order } => self.sorted.sort_presorted(node, codes, order),
                Storage::Sparse { .. } => continue,
            }
            let cut = self.best_cut(node, column.coding.missing_code(), None);
            found.extend(cut.map(|cut| (at, ColumnSplit::Cut(cut))));
        }
    }
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
            let missing = missing_run.map(|_| missing_left);
            let on_left = missing_run.filter(|_| missing_left);
            let on_right = missing_run.filter(|_| !missing_left);
            let mut left = Side::new(node, &mut self.by_class);
            on_left.inspect(|run| left.add(run.of(items)));
            for (at, run) in below.iter().enumerate() {
                left.add(run.of(items));
                let first_right = below.get(at + 1).map(|run| run.code).or(implicit);
                if first_right.is_some() || on_right.is_some() {
                    best.offer(left.score(), left.weight, run.code, first_right, missing);
                }
            }
            left.clear(items);
            let Some(implicit) = implicit else {
                continue;
            };
            // From the right, so that the rows without an item never have to be added; but offered
            // from the left, as of equals the lowest wins.
            let mut right = Side::new(node, &mut self.by_class);
            let all = node.weight;
            let cuts_above = &mut self.cuts_above;
            cuts_above.clear();
            if let Some(run) = on_right {
                right.add(run.of(items));
                let last_left = above.last().map_or(implicit, |run| run.code);
                cuts_above.push((right.score(), all - right.weight, last_left, None));
            }
            for (at, run) in above.iter().enumerate().rev() {
                right.add(run.of(items));
                let last_left = if at > 0 { above[at - 1].code } else { implicit };
                let weight = all - right.weight;
                cuts_above.push((right.score(), weight, last_left, Some(run.code)));
            }
            for &(score, weight, last_left, first_right) in cuts_above.iter().rev() {
                best.offer(score, weight, last_left, first_right, missing);
            }
            right.clear(items);
        }
        best.cut
    }
}
