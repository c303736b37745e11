//! Strategy for sparse columns, all of them at once: the entries of a node's rows are read row by
//! row, and what is not among them is zero.
//!
//! O(entries of the node's rows), and as much again to scan the runs of each column, whatever the
//! number of rows, features or classes. Where all sparse columns have two codes the weights are
//! added up by column and class instead of sorted: O(entries + columns x classes at the node),
//! chosen where that is at most a fixed multiple of the entries.

use super::columns::Columns;
use super::histogram::{fold, stride, FEW_LANES};
use super::node::Node;
use super::run_scan::RunScan;
use super::runs::Item;
use super::split_strategy::{ColumnSplit, Cut, Found, SplitStrategy};
use crate::simd::dispatched;

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// The slot of a column that is not wanted.
const NONE: u32 = u32::MAX;

/// Finds splits by sparse columns. Workspace.
#[derive(Debug, Default)]
pub struct SparseSplitter {
    /// Place of each column among the wanted ones; [`NONE`] between sorts.
    slots: Vec<u32>,
    /// Entries of each wanted column at the node, then where its next one goes.
    ends: Vec<usize>,
    /// Entries, column by column.
    sorted: Vec<Item>,
    run_scan: RunScan,
    /// Weights of the entries by column and class.
    cells: Vec<f64>,
    counts: Vec<u32>,
    totals: Vec<f64>,
    /// Score and weight of the entries of each wanted column.
    scores: Vec<[f64; 2]>,
}

impl SplitStrategy for SparseSplitter {
    fn best_splits(&mut self, node: &Node, columns: &Columns, wanted: &[u32], found: &mut Found) {
        if columns.are_binary && cells_are_few(node, columns) {
            self.by_cells(node, columns, wanted, found);
        } else {
            self.by_runs(node, columns, wanted, found);
        }
    }
}

impl SparseSplitter {
    /// The columns that have an entry at the node and `is_wanted` accepts.
    pub fn columns_with_entries(
        &mut self,
        node: &Node,
        columns: &Columns,
        is_wanted: impl Fn(&u32) -> bool,
    ) -> Vec<u32> {
        self.slots.resize(columns.columns.len(), NONE);
        let mut found = Vec::new();
        for &row in &node.rows {
            for &column in columns.entries(row as usize) {
                let slot = &mut self.slots[column as usize];
                if *slot == NONE {
                    *slot = 0;
                    found.push(column);
                }
            }
        }
        for &column in &found {
            self.slots[column as usize] = NONE;
        }
        found.retain(is_wanted);
        found
    }

    /// From the entries of each column, sorted.
    fn by_runs(&mut self, node: &Node, columns: &Columns, wanted: &[u32], found: &mut Found) {
        self.sort(node, columns, wanted);
        let mut from = 0;
        for (slot, &column) in wanted.iter().enumerate() {
            let to = self.ends[slot];
            let entries = &mut self.sorted[from..to];
            from = to;
            if entries.is_empty() {
                continue;
            }
            let info = columns.info(column);
            let scan = &mut self.run_scan;
            scan.sorted.sort_items(entries, info.n_codes as usize);
            let cut = scan.best_cut(node, info.missing, info.zero);
            found.extend(cut.map(|cut| (column, ColumnSplit::Cut(cut))));
        }
    }

    /// Sorts the entries of the columns `wanted` by column.
    fn sort(&mut self, node: &Node, columns: &Columns, wanted: &[u32]) {
        self.slots.resize(columns.columns.len(), NONE);
        for (slot, &column) in wanted.iter().enumerate() {
            self.slots[column as usize] = slot as u32;
        }
        self.ends.clear();
        self.ends.resize(wanted.len(), 0);
        for &row in &node.rows {
            for &column in columns.entries(row as usize) {
                if let Some(n) = self.ends.get_mut(self.slots[column as usize] as usize) {
                    *n += 1;
                }
            }
        }
        let mut next = 0;
        for n in &mut self.ends {
            let from = next;
            next += *n;
            *n = from;
        }
        self.sorted.resize(next, Item::default());
        for ((&row, &class), &weight) in node.rows.iter().zip(&node.classes).zip(&node.weights) {
            let codes = columns.entry_codes(row as usize);
            for (&column, &code) in columns.entries(row as usize).iter().zip(codes) {
                if let Some(to) = self.ends.get_mut(self.slots[column as usize] as usize) {
                    self.sorted[*to] = Item {
                        weight,
                        class,
                        code,
                    };
                    *to += 1;
                }
            }
        }
        for &column in wanted {
            self.slots[column as usize] = NONE;
        }
    }

    /// From the weights of the entries by column and class, where every column has two codes,
    /// zero and another. The cells of all columns are filled: asking of every entry whether its
    /// column is wanted would take longer.
    fn by_cells(&mut self, node: &Node, columns: &Columns, wanted: &[u32], found: &mut Found) {
        let stride = stride(node);
        self.cells.clear();
        self.cells.resize(columns.columns.len() * stride, 0.0);
        let rows = node.rows.iter().zip(&node.classes).zip(&node.weights);
        if stride == FEW_LANES {
            // The same, without a multiplication and a check of the class per entry.
            let (cells, _) = self.cells.as_chunks_mut::<FEW_LANES>();
            for ((&row, &class), &weight) in rows {
                let class = class as usize % FEW_LANES;
                for &column in columns.entries(row as usize) {
                    cells[column as usize][class] += weight;
                }
            }
        } else {
            for ((&row, &class), &weight) in rows {
                for &column in columns.entries(row as usize) {
                    self.cells[column as usize * stride + class as usize] += weight;
                }
            }
        }
        let counted = node.min_rows > 1;
        if counted {
            self.counts.clear();
            self.counts.resize(columns.columns.len(), 0);
            for &row in &node.rows {
                for &column in columns.entries(row as usize) {
                    self.counts[column as usize] += 1;
                }
            }
        }
        let fits = node.min_rows..(node.len() + 1).saturating_sub(node.min_rows);
        self.totals.clear();
        self.totals.extend_from_slice(&node.totals);
        self.totals.resize(stride, 0.0);
        let (cells, totals) = (&self.cells, &self.totals);
        cut_off(cells, wanted, totals, node.weight, &mut self.scores);
        let mut to_beat = node.score() + node.tolerance();
        for (&column, &[score, weight]) in wanted.iter().zip(&self.scores) {
            let rows_fit = || !counted || fits.contains(&(self.counts[column as usize] as usize));
            if score > to_beat && rows_fit() {
                // Those that are as good are wanted too: of equals the first column counts.
                to_beat = to_beat.max(score - node.tolerance());
                let cut = Cut {
                    score,
                    last_left: 0,
                    first_right: Some(1),
                    missing_left: None,
                    left_weight: node.weight - weight,
                };
                found.push((column, ColumnSplit::Cut(cut)));
            }
        }
    }
}

/// Whether it pays to have cells for all columns.
fn cells_are_few(node: &Node, columns: &Columns) -> bool {
    let entries = |&row: &u32| columns.entries(row as usize).len();
    let n_entries: usize = node.rows.iter().map(entries).sum();
    stride(node) * columns.columns.len() <= CELLS_PER_ENTRY * n_entries
}

dispatched! {
    /// Scores of cutting the cells of each of the columns `wanted`, a weight per class, off
    /// from the `totals` of a node of weight `all`; 0 where a side would be empty. With each
    /// the weight of the cells.
    fn cut_off(
        cells: &[f64], wanted: &[u32], totals: &[f64], all: f64, scores: &mut Vec<[f64; 2]>,
    ) {
        let stride = totals.len();
        scores.clear();
        scores.extend(wanted.iter().map(|&column| {
            let at = column as usize * stride;
            let (mut weight, mut square, mut other) =
                ([0.0; FEW_LANES], [0.0; FEW_LANES], [0.0; FEW_LANES]);
            let (cells, _) = cells[at..at + stride].as_chunks::<FEW_LANES>();
            for (cells, totals) in cells.iter().zip(totals.as_chunks::<FEW_LANES>().0) {
                for lane in 0..FEW_LANES {
                    let rest = totals[lane] - cells[lane];
                    weight[lane] += cells[lane];
                    square[lane] += cells[lane] * cells[lane];
                    other[lane] += rest * rest;
                }
            }
            let (weight, rest) = (fold(weight), all - fold(weight));
            let other = fold(other).min(rest * rest);
            // One division for both sides.
            let score = (fold(square) * rest + other * weight) / (weight * rest);
            [if weight > 0.0 && rest > 0.0 { score } else { 0.0 }, weight]
        }));
    }
}
