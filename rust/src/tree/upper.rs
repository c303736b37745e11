//! The routers of the upper nodes scored together, for searches.
//!
//! A search for many labels opens most upper nodes, and looks up each value of the row in the table
//! of each of these. With the weights of the upper nodes by column, each value is found once, and its
//! column lists the nodes that have a weight for it.

use crate::data::Ragged;
use crate::linear::Block;
use crate::simd::prefetch;

/// Number of nodes that are scored together. Their scores stay in the first-level cache, and a search
/// opens few of the nodes below, however many there are.
pub const N_UPPER: usize = 4096;

/// Weights of the upper nodes.
#[derive(Debug, Clone)]
pub struct UpperNodes {
    /// The nodes that have a weight for each column, increasing, with these weights.
    columns: Ragged<(u32, f32)>,
}

impl UpperNodes {
    /// Groups the columns and weights of each node by column; there are `width` columns.
    pub fn new(nodes: &Ragged<(u32, f32)>, width: usize) -> Self {
        let by_column = |node, &(column, weight): &(u32, f32)| (column, (node, weight));
        Self {
            columns: nodes.regroup(width, by_column),
        }
    }

    /// Replaces `scores` by those of row `i` of `block` at the first `n` nodes, to the bit the products
    /// with their tables. Without tables, there are no scores.
    pub fn score(&self, block: &Block, i: usize, n: usize, scores: &mut Vec<f32>) {
        scores.clear();
        if self.columns.entries().is_empty() {
            return;
        }
        scores.resize(n, 0.0);
        let (columns, values) = block.row(i);
        let lists = columns
            .iter()
            .map(|&column| self.columns.get(column as usize));
        lists.clone().filter_map(<[_]>::first).for_each(prefetch);
        for (list, &x) in lists.zip(values) {
            let end = list.partition_point(|&(node, _)| (node as usize) < n);
            for &(node, weight) in &list[..end] {
                scores[node as usize] += weight * x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Indices, Preparation, Rows, Scaling, Values};
    use crate::linear::Table;

    #[test]
    fn scores_equal_products_with_the_tables() {
        let (starts, columns) = ([0, 3, 3, 5], [1, 4, 6, 4, 5]);
        let values = [0.3, -1.7, 2.9, 0.1, 5.0];
        let (starts, columns) = (Indices::I32(&starts), Indices::I32(&columns));
        let rows = Rows::csr(starts, columns, Values::F32(&values), 60, false).unwrap();
        let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
        let mut block = Block::default();
        block.fill(&preparation, &rows, 0..3, preparation.width());
        let entries = [
            (0, 4, 0.7),
            (0, 1, 0.9),
            (2, 6, -0.2),
            (2, 4, 1.1),
            (3, 5, 0.6),
        ];
        let mut nodes = Ragged::default();
        for node in 0..4 {
            let own = entries.iter().filter(|entry| entry.0 == node);
            nodes.push(own.map(|&(_, column, w)| (column, w)));
        }
        let upper = UpperNodes::new(&nodes, preparation.width());
        let mut scores = Vec::new();
        for n in [1, 3, 4] {
            for i in 0..3 {
                upper.score(&block, i, n, &mut scores);
                let expected = (0..n as u32).map(|node| {
                    let own = entries.iter().filter(|entry| entry.0 == node);
                    let table: Table<f32> = own.map(|&(_, column, w)| (column, w)).collect();
                    block.dot_slots(i, table.slots())
                });
                assert_eq!(scores, expected.collect::<Vec<_>>());
            }
        }
        UpperNodes::new(&Ragged::default(), 7).score(&block, 0, 4, &mut scores);
        assert!(scores.is_empty());
    }
}
