//! The way down in prediction: a block of rows at a time, node by node, so that
//! the rows at a node share its weights.

use super::split::directions;
use super::tree::Tree;
use crate::data::{Preparation, RowBuffer, Rows};
use crate::tree::NodeId;

/// Prepared rows, end to end.
#[derive(Debug, Default)]
pub struct RowBlock {
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    buffer: RowBuffer,
}

impl RowBlock {
    /// Replaces the block by some of `rows`.
    pub fn read(
        &mut self,
        rows: &Rows<'_>,
        which: std::ops::Range<usize>,
        preparation: &Preparation,
    ) {
        self.ends.clear();
        self.columns.clear();
        self.values.clear();
        for i in which {
            preparation.read(rows, i, &mut self.buffer);
            self.columns.extend_from_slice(&self.buffer.columns);
            self.values.extend_from_slice(&self.buffer.values);
            self.ends.push(self.columns.len());
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: u32) -> (&[u32], &[f32]) {
        let i = i as usize;
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        let range = from..self.ends[i];
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Room for walking trees of rows of one width.
#[derive(Debug)]
pub struct Walker {
    /// The weights of the node at hand, spread over all columns.
    spread: Vec<f32>,
    width: usize,
    /// Nodes still to be visited, and where the list of their rows begins.
    nodes: Vec<(NodeId, usize)>,
    /// Rows of these nodes, end to end.
    waiting: Vec<u32>,
    /// Rows of the node at hand.
    here: Vec<u32>,
    reached: Vec<u32>,
}

impl Walker {
    /// For rows of `width` columns and trees of `arity`.
    pub fn new(width: usize, arity: u32) -> Self {
        Self {
            spread: vec![0.0; width * arity as usize],
            width,
            nodes: Vec::new(),
            waiting: Vec::new(),
            here: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// Calls `arrive` with every leaf and the rows that come to it. A row comes to
    /// its leaves in an order that does not depend on the other rows.
    pub fn walk(&mut self, tree: &Tree, block: &RowBlock, arrive: impl FnMut(&[u32], NodeId)) {
        match tree.arity {
            2 => self.walk_arity::<2>(tree, block, arrive),
            3 => self.walk_arity::<3>(tree, block, arrive),
            4 => self.walk_arity::<4>(tree, block, arrive),
            5 => self.walk_arity::<5>(tree, block, arrive),
            6 => self.walk_arity::<6>(tree, block, arrive),
            7 => self.walk_arity::<7>(tree, block, arrive),
            _ => self.walk_arity::<8>(tree, block, arrive),
        }
    }

    fn walk_arity<const M: usize>(
        &mut self,
        tree: &Tree,
        block: &RowBlock,
        mut arrive: impl FnMut(&[u32], NodeId),
    ) {
        self.nodes.clear();
        self.waiting.clear();
        self.nodes.push((Tree::ROOT, 0));
        self.waiting.extend(0..block.len() as u32);
        while let Some((node, from)) = self.nodes.pop() {
            self.here.clear();
            self.here.extend_from_slice(&self.waiting[from..]);
            self.waiting.truncate(from);
            let Some(first) = tree.children(node) else {
                arrive(&self.here, node);
                continue;
            };
            self.route::<M>(tree, node, block);
            for j in (0..M as u32).rev() {
                let from = self.waiting.len();
                let rows = self.here.iter().zip(&self.reached);
                let going = rows.filter(|&(_, reached)| reached >> j & 1 == 1);
                self.waiting.extend(going.map(|(&row, _)| row));
                if self.waiting.len() > from {
                    self.nodes.push((NodeId(first.0 + j), from));
                }
            }
        }
    }

    /// Which children the rows at hand go to.
    fn route<const M: usize>(&mut self, tree: &Tree, node: NodeId, block: &RowBlock) {
        let (columns, weights) = tree.routers(node);
        let (weights, _) = weights.as_chunks::<M>();
        let (spread, _) = self.spread.as_chunks_mut::<M>();
        let spread = &mut spread[..self.width];
        // Few rows look their columns up, many share a spread; their sums are the
        // same to the bit.
        let n_values = self.here.len() * block.columns.len() / block.len();
        let is_few = n_values * (columns.len().max(1).ilog2() as usize + 1) < 2 * columns.len();
        self.reached.clear();
        if is_few {
            let rows = self.here.iter().map(|&row| block.row(row));
            let lookup = |column: u32| match columns.binary_search(&column) {
                Ok(at) => weights[at],
                Err(_) => [0.0; M],
            };
            self.reached
                .extend(rows.map(|row| directions(&margins(row, lookup))));
            return;
        }
        for (&column, weights) in columns.iter().zip(weights) {
            spread[column as usize] = *weights;
        }
        let rows = self.here.iter().map(|&row| block.row(row));
        let lookup = |column: u32| spread[column as usize];
        self.reached
            .extend(rows.map(|row| directions(&margins(row, lookup))));
        for &column in columns {
            spread[column as usize] = [0.0; M];
        }
    }
}

/// The margins of a row, by the weights of its columns.
#[inline]
pub fn margins<const M: usize>(
    (columns, values): (&[u32], &[f32]),
    weights: impl Fn(u32) -> [f32; M],
) -> [f32; M] {
    let mut margins = [0.0f32; M];
    for (&column, &x) in columns.iter().zip(values) {
        let weights = weights(column);
        for j in 0..M {
            margins[j] += weights[j] * x;
        }
    }
    margins
}
