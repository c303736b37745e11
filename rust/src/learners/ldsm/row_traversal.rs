//! One row from the roots of all trees to their leaves.
//!
//! The nodes of a path lie far apart, and a row alone waits for each of them. So the trees take
//! turns, a node each, and what a tree reads in its turn is fetched in those of others. Margins and
//! the order of leaves are those of a block of rows, to the bit.

use super::arity::with_arity;
use super::routing::{directions, margins};
use super::top_splits::TopSplits;
use super::tree::{Node, Tree};
use crate::simd::prefetch;
use crate::tree::NodeId;

/// Turns before a tree's own in which its node's weights are fetched, and where they begin.
const FETCH: usize = 2;
const FETCH_STARTS: usize = 4;

/// The working memory of traversals by single rows.
#[derive(Debug, Default)]
pub struct RowTraversal {
    paths: Vec<Path>,
    row: ColumnSet,
    /// Whether the row's columns increase; hashed ones do not.
    is_sorted: bool,
    /// Columns that the current node and the row share, and where the node's weights for them are;
    /// longer than need be.
    shared: Vec<(u32, u32)>,
    /// Products with the first splits of each tree, so many.
    products: Vec<f32>,
    n_top: usize,
}

/// Where the row is in a tree.
#[derive(Debug, Clone, Default)]
struct Path {
    /// Nodes still to be visited, the next one last.
    nodes: Vec<NodeId>,
    /// Leaves that have been reached, by number.
    leaves: Vec<u32>,
}

/// The columns of a row.
#[derive(Debug, Default)]
struct ColumnSet {
    /// For each 64 columns a bit for each, and how many of the row's columns come before.
    words: Vec<(u64, u32)>,
    columns: Vec<u32>,
}

impl ColumnSet {
    /// Replaces the columns by increasing ones below `width`.
    fn replace(&mut self, columns: &[u32], width: usize) {
        self.words.resize(width.div_ceil(64), (0, 0));
        for column in self.columns.drain(..) {
            self.words[column as usize / 64] = (0, 0);
        }
        for (i, &column) in (0..).zip(columns) {
            let word = &mut self.words[column as usize / 64];
            if word.0 == 0 {
                word.1 = i;
            }
            word.0 |= 1 << (column % 64);
        }
        self.columns.extend(columns);
    }

    #[inline]
    fn contains(&self, column: u32) -> bool {
        self.words[column as usize / 64].0 >> (column % 64) & 1 == 1
    }

    /// How many of the row's columns come before `column`.
    #[inline]
    fn rank(&self, column: u32) -> usize {
        let (bits, before) = self.words[column as usize / 64];
        let below = bits & ((1 << (column % 64)) - 1);
        before as usize + below.count_ones() as usize
    }
}

impl RowTraversal {
    /// Calls `on_leaf` with the number of each tree and its leaves that the row reaches, tree after
    /// tree, in the order of [`Traversal::run`](super::traversal::Traversal::run).
    pub fn run(
        &mut self,
        (trees, top): (&[Tree], &TopSplits),
        row: (&[u32], &[f32]),
        width: usize,
        on_leaf: impl FnMut(u32, u32),
    ) {
        let arity = trees.first().map_or(2, |tree| tree.arity);
        with_arity!(arity, M => self.run_arity::<M>((trees, top), row, width, on_leaf));
    }

    fn run_arity<const M: usize>(
        &mut self,
        (trees, top): (&[Tree], &TopSplits),
        row: (&[u32], &[f32]),
        width: usize,
        mut on_leaf: impl FnMut(u32, u32),
    ) {
        let n = trees.len();
        let columns = &row.0[..row.0.len() - 1];
        self.is_sorted = columns.is_sorted_by(|a, b| a < b);
        if self.is_sorted {
            self.row.replace(columns, width);
        }
        self.n_top = top.multiply::<M>(row, &mut self.products);
        self.paths.resize_with(n, Path::default);
        for path in &mut self.paths {
            path.nodes.push(Tree::ROOT);
            path.leaves.clear();
        }
        let mut n_left = n;
        while n_left > 0 {
            for t in 0..n {
                self.fetch(trees, t);
                let Some(node) = self.paths[t].nodes.pop() else {
                    continue;
                };
                match trees[t].node(node) {
                    Node::Split(split) => {
                        let chosen = if (split as usize) < self.n_top {
                            self.chosen_at_top::<M>(&trees[t], split, top.slot(split as usize, t))
                        } else {
                            self.chosen::<M>(&trees[t], split, row)
                        };
                        self.descend::<M>(&trees[t], t, split, chosen);
                    }
                    Node::Leaf(leaf) => {
                        trees[t].prefetch_leaf(leaf);
                        self.paths[t].leaves.push(leaf);
                    }
                }
                match self.paths[t].nodes.last() {
                    Some(&next) => trees[t].prefetch_node(next),
                    None => n_left -= 1,
                }
            }
        }
        for (t, path) in (0..).zip(&self.paths) {
            path.leaves.iter().for_each(|&leaf| on_leaf(t, leaf));
        }
    }

    /// Fetches what trees read whose turns come after that of tree `t`.
    fn fetch(&self, trees: &[Tree], t: usize) {
        let coming = |turns: usize| {
            let tree = (t + turns) % trees.len();
            let node = *self.paths[tree].nodes.last()?;
            match trees[tree].node(node) {
                Node::Split(split) if split as usize >= self.n_top => {
                    Some((&trees[tree], split as usize))
                }
                _ => None,
            }
        };
        if let Some((tree, split)) = coming(FETCH_STARTS) {
            tree.routers.prefetch_starts(split);
            prefetch(&tree.biases[split * tree.arity as usize]);
        }
        if let Some((tree, split)) = coming(FETCH) {
            tree.routers.prefetch(split);
        }
    }

    /// Puts the `chosen` children of `split` on the path of tree number `t`.
    #[inline]
    fn descend<const M: usize>(&mut self, tree: &Tree, t: usize, split: u32, chosen: u32) {
        let first = tree.first_child(split);
        let children = (0..M as u32).rev().filter(|j| chosen >> j & 1 == 1);
        let nodes = &mut self.paths[t].nodes;
        nodes.extend(children.map(|j| NodeId(first.0 + j)));
    }

    /// The children that the row goes to from a split whose products are known.
    #[inline]
    fn chosen_at_top<const M: usize>(&self, tree: &Tree, split: u32, slot: usize) -> u32 {
        let bias = tree.biases.as_chunks::<M>().0[split as usize];
        let products = self.products.as_chunks::<M>().0[slot];
        let margins: [f32; M] = std::array::from_fn(|j| products[j] + bias[j]);
        directions(&margins)
    }

    /// The children that the row goes to from `split`, as bits.
    fn chosen<const M: usize>(&mut self, tree: &Tree, split: u32, row: (&[u32], &[f32])) -> u32 {
        let (biases, _) = tree.biases.as_chunks::<M>();
        let (number, bias) = (split as usize, biases[split as usize]);
        let (columns, values) = row;
        let routers = &tree.routers;
        if self.is_sorted && routers.is_scan_faster(number, columns.len()) {
            let n = routers.positions(number, |column| self.row.contains(column), &mut self.shared);
            let of_split = routers.values_of::<M>(number);
            let mut margins = [0.0f32; M];
            for &(column, position) in &self.shared[..n] {
                let (x, weights) = (
                    values[self.row.rank(column)],
                    of_split.get(position as usize),
                );
                for j in 0..M {
                    margins[j] += weights[j] * x;
                }
            }
            let margins: [f32; M] = std::array::from_fn(|j| margins[j] + bias[j]);
            directions(&margins)
        } else {
            let weights = routers.lookup::<M>(number);
            directions(&margins(row, bias, |column| weights.get(column)))
        }
    }
}
