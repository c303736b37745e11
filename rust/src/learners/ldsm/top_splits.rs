//! The first splits of all trees, by column, for rows that are predicted alone.
//!
//! The splits of the lowest numbers are those that nearly every row visits, and they have the most
//! weights. A row alone would look each of its columns up in each of them, one cache miss after
//! the other. Here the weights of all these splits for a column lie side by side. Products are
//! added up in the order of the row's columns, as they are everywhere: margins are the same to the
//! bit.

use super::arity::with_arity;
use super::tree::Tree;
use crate::alloc::zeros;

/// Splits of each tree that are here at most: below them a row's own node costs less than a
/// whole level.
const MOST_SPLITS: usize = 128;
/// Entries at most, of 2 + 4 M bytes: memory stays small whatever the size of the model.
const MOST_ENTRIES: usize = 1 << 22;

/// The weights of the first splits of all trees.
#[derive(Debug, Clone)]
pub struct TopSplits {
    n_trees: usize,
    /// Of each tree.
    n_splits: usize,
    /// Where each column's entries begin, and where the last ones end.
    starts: Vec<u32>,
    /// Of each entry the number of the split times the number of trees, plus that of the tree;
    /// increasing for each column.
    slots: Vec<u16>,
    /// M weights for each entry.
    weights: Vec<f32>,
}

impl TopSplits {
    /// For rows of columns below `width`. Takes time proportional to these and to the weights.
    pub fn new(trees: &[Tree], width: usize) -> Self {
        let n_trees = trees.len();
        let arity = trees.first().map_or(2, |tree| tree.arity);
        let longest = trees.iter().map(Tree::n_splits).max().unwrap_or(0);
        let most = longest.min(usize::from(u16::MAX) / n_trees.max(1));
        let mut top = Self {
            n_trees,
            n_splits: 0,
            starts: Vec::new(),
            slots: Vec::new(),
            weights: Vec::new(),
        };
        let mut n_entries = 0;
        for split in 0..most.min(MOST_SPLITS) {
            let having = trees.iter().filter(|tree| split < tree.n_splits());
            n_entries += having
                .map(|tree| tree.routers.range(split).len())
                .sum::<usize>();
            if n_entries > MOST_ENTRIES {
                break;
            }
            top.n_splits += 1;
        }
        with_arity!(arity, M => top.read::<M>(trees, width));
        top
    }

    /// Brings the weights of the splits into the order of columns.
    fn read<const M: usize>(&mut self, trees: &[Tree], width: usize) {
        // First how many entries each column has, shifted by two; then where the next one goes.
        let mut starts = zeros(width + 2);
        self.for_each_entry::<M>(trees, |_, column, _| starts[column as usize + 2] += 1);
        for i in 2..starts.len() {
            starts[i] += starts[i - 1];
        }
        let n_entries = starts[starts.len() - 1] as usize;
        let (mut slots, mut weights) = (zeros(n_entries), zeros(n_entries * M));
        let (of_entries, _) = weights.as_chunks_mut::<M>();
        self.for_each_entry::<M>(trees, |slot, column, weights| {
            let at = &mut starts[column as usize + 1];
            slots[*at as usize] = slot as u16;
            of_entries[*at as usize] = weights;
            *at += 1;
        });
        starts.pop();
        (self.starts, self.slots, self.weights) = (starts, slots, weights);
    }

    /// Calls `visit` with slot, column and weights of each entry, slots increasing.
    fn for_each_entry<const M: usize>(
        &self,
        trees: &[Tree],
        mut visit: impl FnMut(usize, u32, [f32; M]),
    ) {
        for split in 0..self.n_splits {
            for (t, tree) in trees.iter().enumerate() {
                if split < tree.n_splits() {
                    let slot = self.slot(split, t);
                    tree.routers
                        .for_each::<M>(split, |column, weights| visit(slot, column, weights));
                }
            }
        }
    }

    /// Adds up the products of a row, whose constant comes last, with the splits of each tree that
    /// are worth it. Returns how many these are; `sums` has M for each of their slots.
    pub fn multiply<const M: usize>(&self, row: (&[u32], &[f32]), sums: &mut Vec<f32>) -> usize {
        let n = row.0.len() - 1;
        // Of a row that fills so much of the columns, a node of its own costs less than all those
        // of a level.
        let width = self.starts.len() - 1;
        let n_splits = self.n_splits.min(width / n.max(1));
        let end = n_splits * self.n_trees;
        sums.clear();
        sums.resize(end * M, 0.0);
        let (sums, _) = sums.as_chunks_mut::<M>();
        let (weights, _) = self.weights.as_chunks::<M>();
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            let column = column as usize;
            let entries = self.starts[column] as usize..self.starts[column + 1] as usize;
            let entries = self.slots[entries.clone()].iter().zip(&weights[entries]);
            for (&slot, weights) in entries {
                let Some(sums) = sums.get_mut(usize::from(slot)) else {
                    break;
                };
                for j in 0..M {
                    sums[j] += weights[j] * x;
                }
            }
        }
        n_splits
    }

    /// Where the sums of split `split` of tree `t` begin, in units of M.
    #[inline]
    pub fn slot(&self, split: usize, t: usize) -> usize {
        split * self.n_trees + t
    }
}
