//! The routers of the upper nodes scored together, for searches.
//!
//! A search for many labels opens most upper nodes, and looks up each value of the row in the table
//! of each of these. With the weights of the upper nodes by column, each value is found once, and its
//! column lists the nodes that have a weight for it.

use crate::linear::Block;
use crate::simd::prefetch;

/// Number of nodes that are scored together. Their scores stay in the first-level cache, and a search
/// opens few of the nodes below, however many there are.
pub const N_UPPER: usize = 4096;

/// Weights of the upper nodes, one column after the other.
#[derive(Debug, Clone, Default)]
pub struct UpperNodes {
    /// Start of each column in `entries`, and the end.
    starts: Vec<usize>,
    /// Nodes with their weights, in the order of the nodes.
    entries: Vec<(u32, f32)>,
}

impl UpperNodes {
    /// Creates the lists of `width` columns. `each` passes node, column and weight of all entries to
    /// its argument, the same ones each time that it is called.
    pub fn new(width: usize, each: impl Fn(&mut dyn FnMut(u32, u32, f32))) -> Self {
        let mut starts = vec![0; width + 1];
        each(&mut |_, column, _| starts[column as usize + 1] += 1);
        for column in 0..width {
            starts[column + 1] += starts[column];
        }
        let mut entries = vec![(0, 0.0); starts[width]];
        let mut next = starts.clone();
        each(&mut |node, column, weight| {
            let at = &mut next[column as usize];
            entries[*at] = (node, weight);
            *at += 1;
        });
        Self { starts, entries }
    }

    fn list(&self, column: u32) -> &[(u32, f32)] {
        let column = column as usize;
        &self.entries[self.starts[column]..self.starts[column + 1]]
    }

    /// Replaces `scores` by those of row `i` of `block` at the first `n` nodes, to the bit the products
    /// with their tables. At most [`N_UPPER`] nodes have scores.
    pub fn score(&self, block: &Block, i: usize, n: usize, scores: &mut Vec<f32>) {
        let n = n.min(N_UPPER);
        scores.clear();
        scores.resize(n, 0.0);
        let (columns, values) = block.row(i);
        let lists = columns.iter().map(|&column| self.list(column));
        lists.clone().filter_map(<[_]>::first).for_each(prefetch);
        for (list, &x) in lists.zip(values) {
            let end = list.partition_point(|&(node, _)| (node as usize) < n);
            for &(node, weight) in &list[..end] {
                scores[node as usize] += weight * x;
            }
        }
    }
}
