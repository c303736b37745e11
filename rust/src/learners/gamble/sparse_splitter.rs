//! Splits by sparse columns, all of which are searched at once.
//!
//! The entries of a node's rows are read row by row; every other value is zero. The entries of the
//! sampled columns are sorted by column, and the runs of each column scanned. This costs O(entries
//! of the node's rows), for any number of rows, columns or classes. If there are very many columns,
//! most of them have one entry at a node. Such a column splits off one row, so its score is known
//! without a scan, and it is scanned only if it can be the best.
//!
//! If all sparse columns have two codes, large nodes add up the weights by column and class instead
//! of sorting: O(entries + columns x classes at the node). This halves the training time on one-hot
//! rows (splice).

use super::columns::Columns;
use super::histogram::{fold, stride, FEW_CLASS_LANES};
use super::node::{BestSplit, Cut, Item, Node};
use super::run_scan::{score_alone, RunScan};
use super::sampling::SampledFeatures;
use crate::simd::dispatched;

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// Marks a column with a single entry at the node; it stands in place of the entries' position.
const SINGLE_ENTRY: u32 = u32::MAX;

/// An entry of a row of the node.
#[derive(Debug, Default, Clone, Copy)]
struct Entry {
    column: u32,
    code: u32,
    /// Position of the row in the node.
    at: u32,
}

/// A row of the node with its code in a column.
#[derive(Debug, Default, Clone, Copy)]
struct CodedItem {
    code: u32,
    item: Item,
}

/// Workspace for finding splits by sparse columns.
#[derive(Debug, Default)]
pub struct SparseSplitter {
    /// Entries of the sampled columns, row by row.
    entries: Vec<Entry>,
    /// Sampled columns that have an entry.
    sampled: Vec<u32>,
    /// Number of entries of each column, later the position of the next one or [`SINGLE_ENTRY`];
    /// 0 between searches.
    places: Vec<u32>,
    /// Entries, column by column.
    sorted: Vec<CodedItem>,
    /// Weights of the entries by column and class.
    cells: Vec<f64>,
    /// Number of entries by column, if leaves need more than one row.
    counts: Vec<u32>,
    /// Weight of each class at the node, with zeros up to the stride.
    totals: Vec<f64>,
    /// Score and weight of the entries of each sampled column.
    scores: Vec<[f64; 2]>,
}

impl SparseSplitter {
    /// Offers to `best` the best split of `node` by each sparse column of `sampled`. `scan` must
    /// have entered the node.
    pub fn find(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        scan: &mut RunScan,
        best: &mut BestSplit,
    ) {
        let n_entries = |&row: &u32| columns.row_entries(row as usize).len();
        let n_entries = node.rows.iter().map(n_entries).sum();
        let n_cells = stride(node) * columns.columns.len();
        if columns.are_binary && n_cells <= CELLS_PER_ENTRY * n_entries {
            self.find_by_cells(node, columns, sampled, best);
        } else {
            self.find_by_runs(node, columns, sampled, n_entries, scan, best);
        }
    }

    /// Sorts the entries of the sampled columns by column and scans each column. The node's rows
    /// have `n_entries` entries in all columns.
    fn find_by_runs(
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
        // Branchless: every entry is written, and those of other columns are overwritten.
        for (at, &row) in (0..).zip(&node.rows) {
            for &(column, code) in columns.row_entries(row as usize) {
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
            scan.offer_cuts(node, coding, column.zero(), best);
        };
        for &Entry { column, code, at } in entries {
            let item = node.items[at as usize];
            let place = &mut self.places[column as usize];
            if *place != SINGLE_ENTRY {
                self.sorted[*place as usize] = CodedItem { code, item };
                *place += 1;
                continue;
            }
            best.enter(column);
            if best.is_beaten_by(score_alone(node, item)) {
                scan_column(column, &[CodedItem { code, item }], best);
            }
        }
        let mut from = 0;
        for &column in &self.sampled {
            let to = std::mem::take(&mut self.places[column as usize]);
            if to != SINGLE_ENTRY {
                best.enter(column);
                scan_column(column, &self.sorted[from..to as usize], best);
                from = to as usize;
            }
        }
    }

    /// Adds up the weights of the entries by column and class. Every column must have two codes,
    /// zero and another. Cells of all columns are filled, as checking for every entry whether its
    /// column is sampled would take longer.
    fn find_by_cells(
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
            for &(column, _) in columns.row_entries(row as usize) {
                self.cells[column as usize * stride + class as usize] += f64::from(weight);
            }
        }
        self.counts.clear();
        if node.min_rows > 1 {
            self.counts.resize(columns.columns.len(), 0);
            let rows = node.rows.iter();
            for &(column, _) in rows.flat_map(|&row| columns.row_entries(row as usize)) {
                self.counts[column as usize] += 1;
            }
        }
        let allowed = node.min_rows..(node.len() + 1).saturating_sub(node.min_rows);
        self.totals.clear();
        self.totals.extend_from_slice(&node.totals);
        self.totals.resize(stride, 0.0);
        self.sampled.clear();
        let sparse = columns.sparse.iter().copied();
        self.sampled
            .extend(sparse.filter(|&column| sampled.contains(column)));
        let (cells, totals) = (&self.cells, &self.totals);
        score_cells(cells, &self.sampled, totals, node.weight, &mut self.scores);
        for (&column, &[score, weight]) in self.sampled.iter().zip(&self.scores) {
            let n_entries = self.counts.get(column as usize);
            if n_entries.is_none_or(|&n| allowed.contains(&(n as usize))) {
                best.enter(column);
                best.offer(score, || {
                    let cut = Cut {
                        last_left: 0,
                        first_right: Some(1),
                        missing_left: None,
                        left_weight: node.weight - weight,
                    };
                    cut.rule(node, &columns.columns[column as usize].coding)
                });
            }
        }
    }
}

dispatched! {
    /// Scores the split between the entries of each of the columns `sampled` and all other rows of
    /// a node of weight `all`, and adds the weight of the entries to each score. `cells` has the
    /// weights of the entries by class, and `totals` those of the node. The score is 0 if a side is
    /// empty.
    fn score_cells(
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
            // A common denominator saves a division.
            let score = (fold(square) * rest + other * weight) / (weight * rest);
            [if weight > 0.0 && rest > 0.0 { score } else { 0.0 }, weight]
        }));
    }
}
