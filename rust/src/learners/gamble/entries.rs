//! The best cuts of the features that are kept as entries, all of them at once: the
//! entries of a node's rows are read row by row, and what is not among them is zero.
//! The cost is that of the entries, whatever the number of rows, features or classes.

use super::cells::{cut_off, stride, FEW_LANES};
use super::columns::Columns;
use super::node::Node;
use super::scan::{Cut, Item, Scratch};

/// Cells that cost as much as an entry.
const CELLS_PER_ENTRY: usize = 4;

/// The slot of a column that was not drawn, or not met.
const NONE: u32 = u32::MAX;

/// Room for one thread.
#[derive(Debug, Default)]
pub struct Gather {
    /// Place of each column among the drawn ones; [`NONE`] between sorts.
    slots: Vec<u32>,
    /// Entries of each drawn column at the node, then where its next one goes.
    ends: Vec<usize>,
    /// Entries, column by column.
    sorted: Vec<Item>,
    cells: Vec<f64>,
    counts: Vec<u32>,
    totals: Vec<f64>,
    scores: Vec<[f64; 2]>,
}

impl Gather {
    /// Calls `found` with the best cut of each of the columns `drawn`, in their order.
    pub fn best_cuts(
        &mut self,
        node: &Node,
        columns: &Columns,
        drawn: &[u32],
        scratch: &mut Scratch,
        mut found: impl FnMut(u32, Cut),
    ) {
        if columns.are_binary() && cells_are_few(node, columns) {
            self.binary_cuts(node, columns, drawn, found);
        } else {
            self.sort(node, columns, drawn);
            let mut from = 0;
            for (slot, &column) in drawn.iter().enumerate() {
                let to = self.ends[slot];
                let entries = &mut self.sorted[from..to];
                from = to;
                if entries.is_empty() {
                    continue;
                }
                let of = columns.brief(column);
                scratch.sort_items(entries, of.n_codes as usize);
                if let Some(cut) = scratch.best_cut(node, of.missing, of.zero) {
                    found(column, cut);
                }
            }
        }
    }

    /// The columns that have an entry at the node and are drawn.
    pub fn met(
        &mut self,
        node: &Node,
        columns: &Columns,
        is_drawn: impl Fn(&u32) -> bool,
    ) -> Vec<u32> {
        self.slots.resize(columns.columns.len(), NONE);
        let mut met = Vec::new();
        for &row in &node.rows {
            for &column in columns.entries(row as usize) {
                let slot = &mut self.slots[column as usize];
                if *slot == NONE {
                    *slot = 0;
                    met.push(column);
                }
            }
        }
        for &column in &met {
            self.slots[column as usize] = NONE;
        }
        met.retain(is_drawn);
        met
    }

    /// Sorts the entries of the drawn columns by column.
    fn sort(&mut self, node: &Node, columns: &Columns, drawn: &[u32]) {
        self.slots.resize(columns.columns.len(), NONE);
        for (slot, &column) in drawn.iter().enumerate() {
            self.slots[column as usize] = slot as u32;
        }
        self.ends.clear();
        self.ends.resize(drawn.len(), 0);
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
        for &column in drawn {
            self.slots[column as usize] = NONE;
        }
    }

    /// The cuts of columns of two codes, zero and another, from the weights of the
    /// other's cells, class by class. All columns' cells are filled: to ask of every
    /// entry whether its column was drawn would take longer.
    fn binary_cuts(
        &mut self,
        node: &Node,
        columns: &Columns,
        drawn: &[u32],
        mut found: impl FnMut(u32, Cut),
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
            self.count(node, columns);
        }
        let fits = node.min_rows..(node.len() + 1).saturating_sub(node.min_rows);
        self.totals.clear();
        self.totals.extend_from_slice(&node.totals);
        self.totals.resize(stride, 0.0);
        let (cells, totals) = (&self.cells, &self.totals);
        cut_off(cells, drawn, totals, node.weight, &mut self.scores);
        let mut bar = node.score() + node.tolerance();
        for (&column, &[score, weight]) in drawn.iter().zip(&self.scores) {
            let rows_fit = || !counted || fits.contains(&(self.counts[column as usize] as usize));
            if score > bar && rows_fit() {
                // Those that are as good are wanted too: of equals the first column counts.
                bar = bar.max(score - node.tolerance());
                let cut = Cut {
                    score,
                    low: 0,
                    high: Some(1),
                    missing_left: None,
                    left_weight: node.weight - weight,
                };
                found(column, cut);
            }
        }
    }

    /// Counts the entries of every column at the node.
    fn count(&mut self, node: &Node, columns: &Columns) {
        self.counts.clear();
        self.counts.resize(columns.columns.len(), 0);
        for &row in &node.rows {
            for &column in columns.entries(row as usize) {
                self.counts[column as usize] += 1;
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
