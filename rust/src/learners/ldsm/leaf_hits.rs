//! The leaves that the rows of a block reach in all trees, and their mean histogram.

use super::label_scores::LabelScores;
use super::row_traversal::RowTraversal;
use super::top_splits::TopSplits;
use super::traversal::Traversal;
use super::tree::Tree;
use crate::alloc::reserve;
use crate::data::RaggedRows;

/// Leaves whose histograms are fetched before their turn: they lie far apart.
const AHEAD: usize = 2;

/// A leaf that a row reaches, with what is looked up once for all rows that do.
#[derive(Debug, Clone)]
struct LeafHit {
    tree: u32,
    /// 1 / the sum of the leaf's histogram.
    inverse_mass: f32,
    /// Labels per training example.
    labels_each: f32,
    /// Its number.
    leaf: u32,
}

impl LeafHit {
    fn new(number: u32, tree: &Tree, leaf: u32) -> Self {
        Self {
            tree: number,
            inverse_mass: tree.inverse_masses[leaf as usize],
            labels_each: tree.labels_each[leaf as usize],
            leaf,
        }
    }
}

/// The leaves that each row of a block reaches, tree after tree.
#[derive(Debug, Default)]
pub struct LeafHits {
    of_row: Vec<Vec<LeafHit>>,
}

impl LeafHits {
    /// For the next block, of `n_rows`, that will traverse about `n_trees`.
    pub fn clear(&mut self, n_rows: usize, n_trees: usize) {
        self.of_row.iter_mut().for_each(Vec::clear);
        let n = self.of_row.len().max(n_rows);
        // Few rows reach more leaves.
        let n_new = n - self.of_row.len();
        reserve(&mut self.of_row, n_new);
        self.of_row
            .resize_with(n, || Vec::with_capacity(2 * n_trees));
    }

    /// Sends `rows` through tree number `t`; row `i` of them is `row_of(i)` of the block.
    pub fn traverse(
        &mut self,
        traversal: &mut Traversal,
        (t, tree): (u32, &Tree),
        rows: &RaggedRows,
        row_of: impl Fn(u32) -> u32,
    ) {
        traversal.run(tree, rows, |rows, leaf| {
            let hit = LeafHit::new(t, tree, leaf);
            for &row in rows {
                self.of_row[row_of(row) as usize].push(hit.clone());
            }
        });
    }

    /// Sends row `i` of the block, of columns below `width`, through all `trees`.
    pub fn traverse_alone(
        &mut self,
        traversal: &mut RowTraversal,
        (trees, top): (&[Tree], &TopSplits),
        (i, row): (usize, (&[u32], &[f32])),
        width: usize,
    ) {
        let hits = &mut self.of_row[i];
        traversal.run((trees, top), row, width, |t, leaf| {
            hits.push(LeafHit::new(t, &trees[t as usize], leaf));
        });
    }

    /// Numbers of the trees and of the leaves that row `i` reaches in them.
    pub fn of_row(&self, i: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.of_row[i].iter().map(|hit| (hit.tree, hit.leaf))
    }

    /// Averages the histograms of the leaves that row `i` reaches, over the leaves of each
    /// tree and over the `n_trees` that it has traversed. Returns the mean number of labels
    /// per training example in these leaves.
    pub fn average(
        &self,
        i: usize,
        trees: &[Tree],
        n_trees: usize,
        scores: &mut LabelScores,
    ) -> f32 {
        scores.clear();
        let mut labels_each = 0.0;
        let tree_share = (n_trees as f32).recip();
        let hits = &self.of_row[i];
        let histograms = |of: &LeafHit| &trees[of.tree as usize].histograms;
        let mut coming = hits.iter().skip(AHEAD);
        for leaves in hits.chunk_by(|a, b| a.tree == b.tree) {
            let share = tree_share / leaves.len() as f32;
            for leaf in leaves {
                if let Some(leaf) = coming.next() {
                    histograms(leaf).prefetch(leaf.leaf as usize);
                }
                let scale = share * leaf.inverse_mass;
                scores.add(histograms(leaf), leaf.leaf as usize, scale);
                labels_each += share * leaf.labels_each;
            }
        }
        labels_each
    }
}
