//! The weights of the first splits of all trees by column, for a row that is predicted alone.
//!
//! The splits that were made first are those that most rows visit, and they have the most weights.
//! A single row would search them for each of its columns, with a cache miss at most of them. Here
//! the weights of all these splits for one column lie side by side, so a row reads one run of
//! memory per column, although it visits only some of the splits. Products are added up in the
//! order of the row's columns, as everywhere, so margins are the same to the bit.

use std::sync::Arc;

use super::tree::Tree;
use crate::data::Ragged;

/// Maximum number of splits per tree. More of them gain little time for their memory.
const MAX_SPLITS: usize = 128;
/// Maximum number of entries of the trees' lists, with M weights each, in case the model is large.
const MAX_ENTRIES: usize = 1 << 22;

/// The weights of the first splits of all trees by column.
#[derive(Debug, Clone)]
pub struct TopSplits {
    /// Number of splits per tree.
    n_splits: usize,
    /// Number of regressors of these splits: M for each split of each tree.
    n_regressors: usize,
    /// For each column the numbers of regressors, increasing, and the bytes of their weights: six
    /// bytes instead of eight.
    by_column: Ragged<(u16, [u8; 4])>,
}

impl TopSplits {
    /// Copies weights of `trees` for rows of `width` columns, in time proportional to both.
    pub fn new(trees: &[Arc<Tree>], width: usize) -> Self {
        let arities: usize = trees.iter().map(|tree| tree.arity as usize).sum();
        let fits = |&split: &usize| {
            let lists = trees.iter().filter(|tree| split < tree.n_splits());
            let ends = lists.map(|tree| tree.routers.range(split).end);
            (1..=MAX_ENTRIES).contains(&ends.sum())
        };
        let most = MAX_SPLITS.min(usize::from(u16::MAX) / arities.max(1));
        let n_splits = (0..most).take_while(fits).count();
        let mut by_regressor = Ragged::default();
        for tree in trees {
            with_arity!(tree.arity, M => push_weights::<M>(tree, n_splits, &mut by_regressor));
        }
        let place =
            |id: u32, &(column, weight): &(u32, f32)| (column, (id as u16, weight.to_ne_bytes()));
        Self {
            n_splits,
            n_regressors: by_regressor.len(),
            by_column: by_regressor.regroup(width, place),
        }
    }

    /// Fills the empty `products` with the products of a row, whose constant comes last, with all
    /// regressors. Leaves it empty if the row is so dense that multiplying the splits of its paths
    /// is faster.
    pub fn multiply(&self, row: (&[u32], &[f32]), products: &mut Vec<f32>) {
        let n = row.0.len() - 1;
        if n * self.n_splits > self.by_column.len() {
            return;
        }
        products.resize(self.n_regressors, 0.0);
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            for &(id, weight) in self.by_column.get(column as usize) {
                products[usize::from(id)] += f32::from_ne_bytes(weight) * x;
            }
        }
    }
}

/// Appends the columns and weights of each regressor of the first splits; nothing for a split that
/// the tree does not have.
fn push_weights<const M: usize>(tree: &Tree, n_splits: usize, lists: &mut Ragged<(u32, f32)>) {
    let mut list = Vec::new();
    for split in 0..n_splits {
        list.clear();
        if split < tree.n_splits() {
            let routers = &tree.routers;
            routers.for_each::<M>(split, |column, weights| list.push((column, weights)));
        }
        for j in 0..M {
            lists.push(list.iter().map(|&(column, weights)| (column, weights[j])));
        }
    }
}
