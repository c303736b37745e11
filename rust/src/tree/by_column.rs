//! The routers of hash tables scored together, for searches.
//!
//! A search for many labels opens many routers, and looks up each value of the row in the table of
//! each of these. With the weights of all routers by column, each value is found once, and its column
//! lists the routers that have a weight for it.

use std::ops::Range;

use crate::linear::Block;
use crate::simd::prefetch;

/// The weights of each column, one column after the other.
#[derive(Debug, Clone, Default)]
pub struct ColumnLists {
    /// Start of each column in `entries`, and the end.
    starts: Vec<usize>,
    /// Routers with their weights, in the order of the routers.
    entries: Vec<(u32, f32)>,
    n_routers: usize,
}

impl ColumnLists {
    /// Lists the weights of routers below `n_routers`. `each` calls its argument with router, column
    /// below `width`, and weight, the same ones each time that it is called.
    pub fn new(n_routers: usize, width: usize, each: impl Fn(&mut dyn FnMut(u32, u32, f32))) -> Self {
        let mut starts = vec![0; width + 1];
        each(&mut |_, column, _| starts[column as usize + 1] += 1);
        for column in 0..width {
            starts[column + 1] += starts[column];
        }
        let mut entries = vec![(0, 0.0); starts[width]];
        let mut next = starts.clone();
        each(&mut |router, column, weight| {
            let at = &mut next[column as usize];
            entries[*at] = (router, weight);
            *at += 1;
        });
        Self {
            starts,
            entries,
            n_routers,
        }
    }

    fn list(&self, column: u32) -> Range<usize> {
        let column = column as usize;
        self.starts[column]..self.starts[column + 1]
    }
}

/// The scores of all routers for one row, zeros between the rows.
#[derive(Debug, Clone, Default)]
pub struct RouterScores {
    scores: Vec<f32>,
    /// The lists that were added.
    added: Vec<Range<usize>>,
}

impl RouterScores {
    /// Replaces the scores by those of row `i` of `block`, to the bit the products with the tables.
    /// Returns none if the row's lists have more than `most` weights.
    pub fn score(&mut self, lists: &ColumnLists, block: &Block, i: usize, most: usize) -> &[f32] {
        self.scores.resize(lists.n_routers, 0.0);
        for list in self.added.drain(..) {
            for &(router, _) in &lists.entries[list] {
                self.scores[router as usize] = 0.0;
            }
        }
        let (columns, values) = block.row(i);
        self.added.extend(columns.iter().map(|&column| lists.list(column)));
        if self.added.iter().map(Range::len).sum::<usize>() > most {
            self.added.clear();
            return &[];
        }
        for list in &self.added {
            lists.entries[list.clone()].first().into_iter().for_each(prefetch);
        }
        for (list, &x) in self.added.iter().zip(values) {
            for &(router, weight) in &lists.entries[list.clone()] {
                self.scores[router as usize] += weight * x;
            }
        }
        &self.scores
    }
}
