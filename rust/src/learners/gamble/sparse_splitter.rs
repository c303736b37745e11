//! Strategy for sparse columns, all of them at once: the entries of a node's rows are read row by
//! row, and what is not among them is zero.
//!
//! O(entries of the node's rows), whatever the number of rows, columns or classes: the entries of
//! the columns sampled are sorted by column, and the runs of each column scanned. Where columns
//! are very many, most of them have one entry at a node. Such a column splits off one row, so its
//! score is known without a scan, and it is scanned only where it may be the best.
//!
//! Where all sparse columns have two codes the weights are added up by column and class instead of
//! sorted: O(entries + columns x classes at the node), chosen where that is at most a fixed
//! multiple of the entries. One-hot rows (splice) are learned in half of the time.

use super::columns::Columns;
use super::cuts::{fold, stride, FEW_CLASS_LANES};
use super::node::{BestSplit, ColumnSplit, Cut, Item, Node};
use super::run_scan::{score_alone, RunScan};
use super::sampling::SampledFeatures;
use crate::simd::dispatched;

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// In the place of where a column's entries go: it has one at the node.
const SINGLE_ENTRY: u32 = u32::MAX;

/// An entry of a row of the node.
#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    column: u32,
    code: u32,
    /// The row, as a place among the node's.
    at: u32,
}

/// A row of the node with its code in a column.
#[derive(Debug, Default, Clone, Copy)]
struct CodedItem {
    code: u32,
    item: Item,
}

/// Finds splits by sparse columns. Workspace.
#[derive(Debug, Default)]
pub struct SparseSplitter {
    /// Buffer for the entries of the columns sampled, row by row.
    entries: Vec<Entry>,
    /// The columns sampled that have an entry.
    sampled: Vec<u32>,
    /// Of each column the number of its entries, then where the next one goes, or
    /// [`SINGLE_ENTRY`]; 0 between searches.
    places: Vec<u32>,
    /// Entries, column by column.
    sorted: Vec<CodedItem>,
    /// Weights of the entries by column and class.
    cells: Vec<f64>,
    counts: Vec<u32>,
    totals: Vec<f64>,
    /// Score and weight of the entries of each column sampled.
    scores: Vec<[f64; 2]>,
}

impl SparseSplitter {
    /// Offers to `best` the best split of `node` by each of the sparse columns among those
    /// `sampled`. `scan` has entered the node.
    pub fn find(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        scan: &mut RunScan,
        best: &mut BestSplit,
    ) {
        let n_entries = |&row: &u32| columns.entries_of_row(row as usize).len();
        let n_entries = node.rows.iter().map(n_entries).sum();
        let n_cells = stride(node) * columns.columns.len();
        if columns.are_binary && n_cells <= CELLS_PER_ENTRY * n_entries {
            self.by_cells(node, columns, sampled, best);
        } else {
            self.by_runs(node, columns, sampled, n_entries, scan, best);
        }
    }

    /// From the entries sampled of all `n_entries`, sorted by column.
    fn by_runs(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        n_entries: usize,
        scan: &mut RunScan,
        best: &mut BestSplit,
    ) {
        let size = self.entries.len().max(n_entries);
        self.entries.resize(size, Entry::default());
        let mut n = 0;
        // All are written and those sampled are kept: no branch that could be mispredicted.
        for (at, &row) in (0..).zip(&node.rows) {
            for &(column, code) in columns.entries_of_row(row as usize) {
                self.entries[n] = Entry { column, code, at };
                n += usize::from(sampled.contains(column));
            }
        }
        let entries = &self.entries[..n];
        self.places.resize(columns.columns.len(), 0);
        self.sampled.clear();
        for entry in entries {
            let n = &mut self.places[entry.column as usize];
            if *n == 0 {
                self.sampled.push(entry.column);
            }
            *n += 1;
        }
        let mut next = 0;
        for &column in &self.sampled {
            let place = &mut self.places[column as usize];
            let n = *place;
            *place = if n == 1 { SINGLE_ENTRY } else { next };
            next += if n == 1 { 0 } else { n };
        }
        self.sorted.resize(next as usize, CodedItem::default());
        let mut scan_column = |at: u32, entries: &[CodedItem], best: &mut BestSplit| {
            let column = &columns.columns[at as usize];
            let coding = &column.coding;
            let (code, item) = (|at: usize| entries[at].code, |at: usize| entries[at].item);
            scan.sort(entries.len(), coding.n_codes(), code, item);
            if let Some(cut) = scan.best_cut(node, coding.missing_code(), column.zero()) {
                best.offer(at, ColumnSplit::Cut(cut));
            }
        };
        for &Entry { column, code, at } in entries {
            let item = node.items[at as usize];
            let place = &mut self.places[column as usize];
            if *place != SINGLE_ENTRY {
                self.sorted[*place as usize] = CodedItem { code, item };
                *place += 1;
            } else if best.may_be(column, score_alone(node, item)) {
                scan_column(column, &[CodedItem { code, item }], best);
            }
        }
        let mut from = 0;
        for &column in &self.sampled {
            let to = std::mem::take(&mut self.places[column as usize]);
            if to != SINGLE_ENTRY {
                scan_column(column, &self.sorted[from..to as usize], best);
                from = to as usize;
            }
        }
    }

    /// From the weights of the entries by column and class, where every column has two codes,
    /// zero and another. The cells of all columns are filled: asking of every entry whether its
    /// column is sampled would take longer.
    fn by_cells(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        best: &mut BestSplit,
    ) {
        let stride = stride(node);
        self.cells.clear();
        self.cells.resize(columns.columns.len() * stride, 0.0);
        for (&row, &Item { class, weight }) in node.rows.iter().zip(&node.items) {
            for &(column, _) in columns.entries_of_row(row as usize) {
                self.cells[column as usize * stride + class as usize] += f64::from(weight);
            }
        }
        let counted = node.min_rows > 1;
        if counted {
            self.counts.clear();
            self.counts.resize(columns.columns.len(), 0);
            for &row in &node.rows {
                for &(column, _) in columns.entries_of_row(row as usize) {
                    self.counts[column as usize] += 1;
                }
            }
        }
        let fits = node.min_rows..(node.len() + 1).saturating_sub(node.min_rows);
        self.totals.clear();
        self.totals.extend_from_slice(&node.totals);
        self.totals.resize(stride, 0.0);
        self.sampled.clear();
        let is_sampled = |column: &u32| sampled.contains(*column);
        let sparse = columns.sparse.iter().copied();
        self.sampled.extend(sparse.filter(is_sampled));
        let (cells, totals) = (&self.cells, &self.totals);
        cut_off(cells, &self.sampled, totals, node.weight, &mut self.scores);
        for (&column, &[score, weight]) in self.sampled.iter().zip(&self.scores) {
            let rows_fit = || !counted || fits.contains(&(self.counts[column as usize] as usize));
            if best.may_be(column, score) && rows_fit() {
                let cut = Cut {
                    score,
                    last_left: 0,
                    first_right: Some(1),
                    missing_left: None,
                    left_weight: node.weight - weight,
                };
                best.offer(column, ColumnSplit::Cut(cut));
            }
        }
    }
}

dispatched! {
    /// Scores of cutting the cells of each of the columns `sampled`, a weight per class, off
    /// from the `totals` of a node of weight `all`; 0 where a side would be empty. With each
    /// the weight of the cells.
    fn cut_off(
        cells: &[f64], sampled: &[u32], totals: &[f64], all: f64, scores: &mut Vec<[f64; 2]>,
    ) {
        let stride = totals.len();
        scores.clear();
        scores.extend(sampled.iter().map(|&column| {
            let at = column as usize * stride;
            let (mut weight, mut square, mut other) =
                ([0.0; FEW_CLASS_LANES], [0.0; FEW_CLASS_LANES], [0.0; FEW_CLASS_LANES]);
            let (cells, _) = cells[at..at + stride].as_chunks::<FEW_CLASS_LANES>();
            for (cells, totals) in cells.iter().zip(totals.as_chunks::<FEW_CLASS_LANES>().0) {
                for lane in 0..FEW_CLASS_LANES {
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
