//! From the root to the leaves: a block of rows at a time, node by node, so that
//! the rows at a node share its weights.

use super::arity::with_arity;
use super::routing::{directions, margins};
use super::tree::{Node, Tree};
use crate::data::RaggedRows;
use crate::tree::NodeId;

/// The working memory of traversals by rows of one width.
#[derive(Default)]
pub struct Traversal {
    /// M for each column.
    spread_len: usize,
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
    pub fn new(width: usize, arity: u32) -> Self {
        Self {
            spread_len: width * arity as usize,
            ..Self::default()
        }
    }

    /// Calls `on_leaf` with the number of every leaf and the rows that reach it. A row reaches
    /// its leaves in an order that does not depend on the other rows.
    pub fn run(&mut self, tree: &Tree, block: &RaggedRows, on_leaf: impl FnMut(&[u32], u32)) {
        with_arity!(tree.arity, M => self.run_arity::<M>(tree, block, on_leaf));
    }

    fn run_arity<const M: usize>(
        &mut self,
        tree: &Tree,
        block: &RaggedRows,
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
            self.route::<M>(tree, split as usize, block);
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
    fn route<const M: usize>(&mut self, tree: &Tree, split: usize, block: &RaggedRows) {
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
        self.spread.resize(self.spread_len, 0.0);
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
