//! From the roots to the leaves, for the rows of a block.
//!
//! A block goes through one tree after the other, node by node, so that the rows at a node share its
//! weights.

use super::tree::{directions, margins, Node, Tree};
use crate::control::Control;
use crate::data::RaggedRows;
use crate::error::Result;
use crate::learners::one_against_some::LabelScores;
use crate::tree::NodeId;

/// The working memory of traversals by rows of one width.
#[derive(Debug, Default)]
pub struct Traversal {
    /// The weights of the current node, spread over all columns; allocated when first needed.
    spread: Vec<f32>,
    /// Nodes still to be visited, and where the list of their rows begins.
    nodes: Vec<(NodeId, usize)>,
    /// Rows of these nodes, end to end.
    waiting: Vec<u32>,
    /// Rows of the current node.
    rows: Vec<u32>,
    /// The children that each of these goes to, as bits.
    directions: Vec<u32>,
}

impl Traversal {
    /// Calls `on_leaf` with the number of every leaf and the rows that reach it. A row reaches
    /// its leaves in an order that does not depend on the other rows.
    pub fn run(
        &mut self,
        tree: &Tree,
        block: &RaggedRows,
        width: usize,
        on_leaf: impl FnMut(&[u32], u32),
    ) {
        with_arity!(tree.arity, M => self.run_arity::<M>(tree, block, width, on_leaf));
    }

    fn run_arity<const M: usize>(
        &mut self,
        tree: &Tree,
        block: &RaggedRows,
        width: usize,
        mut on_leaf: impl FnMut(&[u32], u32),
    ) {
        self.nodes.clear();
        self.waiting.clear();
        self.nodes.push((Tree::ROOT, 0));
        self.waiting.extend(0..block.len() as u32);
        while let Some((node, from)) = self.nodes.pop() {
            self.rows.clear();
            self.rows.extend_from_slice(&self.waiting[from..]);
            self.waiting.truncate(from);
            let split = match tree.node(node) {
                Node::Split(number) => number,
                Node::Leaf(number) => {
                    on_leaf(&self.rows, number);
                    continue;
                }
            };
            self.route::<M>(tree, split as usize, block, width);
            let first = tree.first_child(split);
            for j in (0..M as u32).rev() {
                let from = self.waiting.len();
                let rows = self.rows.iter().zip(&self.directions);
                let going = rows.filter(|&(_, directions)| directions >> j & 1 == 1);
                self.waiting.extend(going.map(|(&row, _)| row));
                if self.waiting.len() > from {
                    self.nodes.push((NodeId(first.0 + j), from));
                }
            }
        }
    }

    /// Finds which children of `split` the rows of the current node go to.
    fn route<const M: usize>(
        &mut self,
        tree: &Tree,
        split: usize,
        block: &RaggedRows,
        width: usize,
    ) {
        let (biases, _) = tree.biases.as_chunks::<M>();
        let bias = biases[split];
        let n_columns = tree.routers.range(split).len();
        // Few rows look their columns up, many share a spread; their sums are the
        // same to the bit.
        let n_values = self.rows.len() * block.n_values() / block.len();
        let is_few = n_values * (n_columns.max(1).ilog2() as usize + 1) < 2 * n_columns;
        self.directions.clear();
        let rows = self.rows.iter().map(|&row| block.row(row as usize));
        if is_few {
            let weights = tree.routers.lookup::<M>(split);
            let lookup = |column| weights.get(column);
            self.directions
                .extend(rows.map(|row| directions(&margins(row, bias, lookup))));
            return;
        }
        self.spread.resize(width * M, 0.0);
        let (spread, _) = self.spread.as_chunks_mut::<M>();
        tree.routers.for_each::<M>(split, |column, weights| {
            spread[column as usize] = weights;
        });
        let lookup = |column: u32| spread[column as usize];
        self.directions
            .extend(rows.map(|row| directions(&margins(row, bias, lookup))));
        tree.routers.for_each::<M>(split, |column, _| {
            spread[column as usize] = [0.0; M];
        });
    }
}

/// Leaves whose histograms are fetched before their turn: they lie far apart.
const N_PREFETCHED_LEAVES: usize = 2;

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

/// The leaves that each row of a block reaches, tree after tree, and what they are found with.
#[derive(Debug, Default)]
pub struct LeafHits {
    by_row: Vec<Vec<LeafHit>>,
    traversal: Traversal,
}

impl LeafHits {
    /// For the next block, of `n_rows`, that will traverse about `n_trees`.
    pub fn clear(&mut self, n_rows: usize, n_trees: usize) {
        self.by_row.iter_mut().for_each(Vec::clear);
        let n = self.by_row.len().max(n_rows);
        // Few rows reach more leaves.
        let n_new = n - self.by_row.len();
        self.by_row.reserve(n_new);
        self.by_row
            .resize_with(n, || Vec::with_capacity(2 * n_trees));
    }

    /// Sends all rows of a block, of columns below `width`, through all `trees`.
    pub fn find(
        &mut self,
        trees: &[Tree],
        block: &RaggedRows,
        width: usize,
        control: &Control,
    ) -> Result<()> {
        self.clear(block.len(), trees.len());
        for t in 0..trees.len() as u32 {
            control.check()?;
            self.traverse(trees, t, block, width, |row| row);
        }
        Ok(())
    }

    /// Sends `rows` through tree `t`; row `i` of them is `row_of(i)` of the block.
    pub fn traverse(
        &mut self,
        trees: &[Tree],
        t: u32,
        rows: &RaggedRows,
        width: usize,
        row_of: impl Fn(u32) -> u32,
    ) {
        let tree = &trees[t as usize];
        self.traversal.run(tree, rows, width, |rows, leaf| {
            let hit = LeafHit::new(t, tree, leaf);
            for &row in rows {
                self.by_row[row_of(row) as usize].push(hit.clone());
            }
        });
    }

    /// Numbers of the trees and of the leaves that row `i` reaches in them.
    pub fn leaves(&self, i: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.by_row[i].iter().map(|hit| (hit.tree, hit.leaf))
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
        let hits = &self.by_row[i];
        let histograms = |of: &LeafHit| &trees[of.tree as usize].histograms;
        let mut coming = hits.iter().skip(N_PREFETCHED_LEAVES);
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
