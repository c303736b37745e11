//! Splits by sparse columns, all of which are searched at once.
//!
//! The entries of a node's rows are read row by row; every other value is zero. The entries of the
//! sampled columns are grouped by column and sorted by code, and the runs of each column scanned. This
//! costs O(n log n) for n entries of the node's rows, for any number of rows, columns or classes. If
//! there are very many columns, most of them have one entry at a node. Such a column splits off one
//! row, so its score is known without a scan, and it is scanned only if it can be the best.
//!
//! If all sparse columns have two codes, large nodes add up the weights by column and class instead
//! of sorting: O(entries + columns x classes at the node). This halves the training time on one-hot
//! rows (splice).

use super::columns::Columns;
use super::histogram::{fold, stride, FEW_CLASS_LANES};
use super::node::{BestSplit, Choice, ColumnBest, Cut, Item, Node};
use super::run_scan::{score_alone, RunScan};
use super::sampling::SampledFeatures;

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// Workspace for finding splits by sparse columns.
#[derive(Debug, Default, Clone)]
pub struct SparseSplitter {
    /// Entries of the sampled columns, row by row: the column, and as a key the code (32 bits) and the
    /// position of the row in the node (32 bits). There is memory for the entries of all columns.
    entries: Vec<(u32, u64)>,
    /// The keys of the entries, column by column.
    keys: Vec<u64>,
    /// Columns with entries at the node.
    found: Vec<u32>,
    /// Number of entries by column, then where the keys of the next one go; 0 between nodes.
    places: Vec<usize>,
    /// Weights of the entries by column and class.
    cells: Vec<f64>,
    /// Number of entries by column, if leaves need more than one row.
    counts: Vec<u32>,
    /// Weight of each class at the node, with zeros up to the stride.
    totals: Vec<f64>,
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
        let n_entries: usize = node.rows.iter().map(n_entries).sum();
        let n_cells = stride(node) * columns.columns.len();
        if columns.are_binary && n_cells <= CELLS_PER_ENTRY * n_entries {
            self.find_by_cells(node, columns, sampled, best);
        } else {
            self.entries
                .resize(self.entries.len().max(n_entries), (0, 0));
            self.find_by_runs(node, columns, sampled, scan, best);
        }
    }

    /// Groups the entries of the sampled columns by column and scans each column.
    fn find_by_runs(
        &mut self,
        node: &Node,
        columns: &Columns,
        sampled: SampledFeatures<'_>,
        scan: &mut RunScan,
        best: &mut BestSplit,
    ) {
        let mut n = 0;
        // Branchless: every entry is written, and those of other columns are overwritten.
        for (at, &row) in (0..).zip(&node.rows) {
            for &(column, code) in columns.row_entries(row as usize) {
                self.entries[n] = (column, u64::from(code) << 32 | at);
                n += usize::from(sampled.contains(column));
            }
        }
        let entries = &self.entries[..n];
        self.places.resize(columns.columns.len(), 0);
        self.found.clear();
        for &(column, _) in entries {
            let count = &mut self.places[column as usize];
            if *count == 0 {
                self.found.push(column);
            }
            *count += 1;
        }
        self.found.sort_unstable();
        let mut end = 0;
        for &column in &self.found {
            let place = &mut self.places[column as usize];
            (*place, end) = (end, end + *place);
        }
        self.keys.resize(self.keys.len().max(n), 0);
        for &(column, key) in entries {
            let place = &mut self.places[column as usize];
            self.keys[*place] = key;
            *place += 1;
        }
        let item = |at: usize| node.items[at];
        let mut start = 0;
        for &number in &self.found {
            let end = std::mem::take(&mut self.places[number as usize]);
            let keys = &mut self.keys[start..end];
            start = end;
            if let [key] = keys {
                let score = score_alone(node, item(*key as u32 as usize));
                if !best.is_beaten_by(number, score) {
                    continue;
                }
            }
            keys.sort_unstable();
            let column = &columns.columns[number as usize];
            scan.read_sorted(keys.iter().copied(), item);
            let mut own = ColumnBest::new(node);
            scan.offer_cuts(node, &column.coding, column.zero(), &mut own);
            best.offer(number, own);
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
        let (blocks, _) = self.cells.as_chunks_mut::<FEW_CLASS_LANES>();
        let n_blocks = stride / FEW_CLASS_LANES;
        for (&row, &Item { class, weight }) in node.rows.iter().zip(&node.items) {
            let (class, weight) = (class as usize, f64::from(weight));
            let (block, lane) = (class / FEW_CLASS_LANES, class % FEW_CLASS_LANES);
            let columns = columns.row_entries(row as usize).iter();
            let columns = columns.map(|&(column, _)| column as usize);
            // A loop without a multiplication is faster.
            if n_blocks == 1 {
                columns.for_each(|column| blocks[column][lane] += weight);
            } else {
                columns.for_each(|column| blocks[column * n_blocks + block][lane] += weight);
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
        self.totals.clone_from(&node.totals);
        self.totals.resize(stride, 0.0);
        for &column in columns.sparse.iter().filter(|&&at| sampled.contains(at)) {
            let n_entries = self.counts.get(column as usize);
            if n_entries.is_some_and(|&n| !allowed.contains(&(n as usize))) {
                continue;
            }
            let cells = &self.cells[column as usize * stride..][..stride];
            let (weight, score) = score_cells(cells, &self.totals, node.weight);
            if !best.is_beaten_by(column, score) {
                continue;
            }
            let mut own = ColumnBest::new(node);
            own.offer(score, || {
                Choice::Cut(Cut {
                    last_left: 0,
                    first_right: Some(1),
                    missing_left: None,
                    left_weight: node.weight - weight,
                })
            });
            best.offer(column, own);
        }
    }
}

/// Returns the weight of the rows with the class weights `cells`, and the score of the split
/// between them and all other rows of a node with the class weights `totals` and the weight `all`.
/// The score is 0 if a side is empty.
fn score_cells(cells: &[f64], totals: &[f64], all: f64) -> (f64, f64) {
    let [mut weight, mut square, mut other] = [[0.0; FEW_CLASS_LANES]; 3];
    let (cells, _) = cells.as_chunks::<FEW_CLASS_LANES>();
    for (cells, totals) in cells.iter().zip(totals.as_chunks::<FEW_CLASS_LANES>().0) {
        for lane in 0..FEW_CLASS_LANES {
            let rest = totals[lane] - cells[lane];
            weight[lane] += cells[lane];
            square[lane] += cells[lane] * cells[lane];
            other[lane] += rest * rest;
        }
    }
    let weight = fold(weight);
    let rest = all - weight;
    let other = fold(other).min(rest * rest);
    if weight <= 0.0 || rest <= 0.0 {
        return (weight, 0.0);
    }
    // A common denominator saves a division.
    let score = (fold(square) * rest + other * weight) / (weight * rest);
    (weight, score)
}
