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
//! multiple of the entries.

use super::columns::Columns;
use super::node::{BestSplit, ColumnSplit, Cut, Node};
use super::run_scan::{Item, RunScan};
use super::sampling::SampledFeatures;
use super::small_feature::{fold, stride, FEW_LANES};
use crate::simd::dispatched;

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// In the place of where a column's entries go: it has one at the node.
const ALONE: u32 = u32::MAX;

/// An entry of a row of the node.
#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    column: u32,
    code: u32,
    /// The row, as a place among the node's.
    at: u32,
}

/// Finds splits by sparse columns. Workspace.
#[derive(Debug, Default)]
pub struct SparseSplitter {
    /// Buffer for the entries of the columns sampled, row by row.
    entries: Vec<Entry>,
    /// The columns sampled that have an entry.
    sampled: Vec<u32>,
    /// Of each column the number of its entries, then where the next one goes, or [`ALONE`]; 0
    /// between searches.
    places: Vec<u32>,
    /// Entries, column by column.
    sorted: Vec<Item>,
    pub run_scan: RunScan,
    /// Weights of the entries by column and class.
    cells: Vec<f64>,
    counts: Vec<u32>,
    totals: Vec<f64>,
    /// Score and weight of the entries of each column sampled.
    scores: Vec<[f64; 2]>,
}

impl SparseSplitter {
    /// Offers to `best` the best split of `node` by each of the sparse columns among those
    /// `sampled`.
    pub fn find(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        best: &mut BestSplit,
    ) {
        let entries = |&row: &u32| columns.entries(row as usize).0.len();
        let n_entries = node.rows.iter().map(entries).sum();
        let n_cells = stride(node) * columns.columns.len();
        if columns.are_binary && n_cells <= CELLS_PER_ENTRY * n_entries {
            self.by_cells(node, columns, sampled, best);
        } else {
            self.by_runs(node, columns, sampled, n_entries, best);
        }
    }

    /// From the entries sampled of all `n_entries`, sorted by column.
    fn by_runs(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        n_entries: usize,
        best: &mut BestSplit,
    ) {
        let size = self.entries.len().max(n_entries);
        self.entries.resize(size, Entry::default());
        let mut n = 0;
        // All are written and those sampled are kept: no branch that could be mispredicted.
        for (at, &row) in (0..).zip(&node.rows) {
            let (of_row, codes) = columns.entries(row as usize);
            for (&column, &code) in of_row.iter().zip(codes) {
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
            *place = if n == 1 { ALONE } else { next };
            next += if n == 1 { 0 } else { n };
        }
        self.sorted.resize(next as usize, Item::default());
        let run_scan = &mut self.run_scan;
        let mut scan = |at: u32, entries: &[Item], best: &mut BestSplit| {
            let column = &columns.columns[at as usize];
            let coding = &column.coding;
            let sorted = &mut run_scan.sorted;
            let code = |at: usize| entries[at].code;
            sorted.sort(entries.len(), coding.n_codes(), code, |at, _| entries[at]);
            if let Some(cut) = run_scan.best_cut(node, coding.missing_code(), column.zero()) {
                best.offer(at, ColumnSplit::Cut(cut));
            }
        };
        for &Entry { column, code, at } in entries {
            let item = Item::of(node, at as usize, code);
            let place = &mut self.places[column as usize];
            if *place != ALONE {
                self.sorted[*place as usize] = item;
                *place += 1;
            } else if best.may_be(column, item.score_alone(node)) {
                scan(column, &[item], best);
            }
        }
        let mut from = 0;
        for &column in &self.sampled {
            let to = std::mem::take(&mut self.places[column as usize]);
            if to != ALONE {
                scan(column, &self.sorted[from..to as usize], best);
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
        let rows = node.rows.iter().zip(&node.classes).zip(&node.weights);
        if stride == FEW_LANES {
            // The same, without a multiplication and a check of the class per entry.
            let (cells, _) = self.cells.as_chunks_mut::<FEW_LANES>();
            for ((&row, &class), &weight) in rows {
                let class = class as usize % FEW_LANES;
                for &column in columns.entries(row as usize).0 {
                    cells[column as usize][class] += weight;
                }
            }
        } else {
            for ((&row, &class), &weight) in rows {
                for &column in columns.entries(row as usize).0 {
                    self.cells[column as usize * stride + class as usize] += weight;
                }
            }
        }
        let counted = node.min_rows > 1;
        if counted {
            self.counts.clear();
            self.counts.resize(columns.columns.len(), 0);
            for &row in &node.rows {
                for &column in columns.entries(row as usize).0 {
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
