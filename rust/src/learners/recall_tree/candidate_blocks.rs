//! The weights of the candidates at a final node, side by side.
//!
//! A row is scored for all candidates of a node, so their weights for one of its columns lie in a
//! few registers: the layout of one-against-all, for the classes of one node. That takes a fifth
//! of the time of a product for each candidate. A class that is a candidate at several nodes is
//! copied to each of them, so memory is bounded: beyond that nodes have no block, and the classes'
//! own weights give the same scores to the bit.

use super::label_index::LocalId;
use crate::alloc::extend;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::linear::{AlignedRow, Block, Weights};
use crate::simd::LANES;

/// Bytes that all blocks may take together, as much as the top levels of a tree.
const MOST_BYTES: usize = 128 << 20;

/// The weights of the candidates of some final nodes.
#[derive(Debug, Clone, Default)]
pub struct CandidateBlocks {
    /// Padded number of columns.
    width: usize,
    /// For each register of candidates, node after node, [`LANES`] weights for each column.
    lanes: AlignedRow<f32>,
    /// Where the registers of each node begin, and the end of the last.
    starts: Vec<usize>,
}

impl CandidateBlocks {
    /// About how many weights there are for `n_nodes` of `n_candidates` each.
    pub fn n_weights(n_nodes: usize, n_candidates: usize, width: usize) -> usize {
        let of_node = n_candidates.next_multiple_of(LANES).saturating_mul(width);
        let most = MOST_BYTES / size_of::<f32>();
        n_nodes.saturating_mul(of_node).min(most)
    }

    /// Copies the weights of the candidates of each node. `weights`: those of each class, for
    /// `width` columns.
    pub fn new(
        candidates: &Ragged<LocalId>,
        weights: &[Weights<f32>],
        width: usize,
        control: &Control,
    ) -> Result<Self> {
        Self::within(MOST_BYTES, candidates, weights, width, control)
    }

    /// Those of as many nodes as `most_bytes` are enough for, from the first on.
    fn within(
        most_bytes: usize,
        candidates: &Ragged<LocalId>,
        weights: &[Weights<f32>],
        width: usize,
        control: &Control,
    ) -> Result<Self> {
        let mut starts = vec![0];
        let mut n = 0;
        for n_candidates in candidates.lengths() {
            n += n_candidates.div_ceil(LANES);
            if n * width * size_of::<[f32; LANES]>() > most_bytes {
                break;
            }
            starts.push(n);
        }
        let n = starts.last().copied().unwrap_or_default();
        let mut lanes = AlignedRow::new(n * width * LANES);
        let groups = (0..starts.len() - 1).flat_map(|node| candidates.get(node).chunks(LANES));
        for (block, group) in lanes.chunks_exact_mut((width * LANES).max(1)).zip(groups) {
            control.check()?;
            fill(block, group.iter().map(|label| &weights[label.at()]));
        }
        Ok(Self {
            width,
            lanes,
            starts,
        })
    }

    /// Appends the scores of the `n` candidates of node `terminal` for row `i` to `scores`. Whether
    /// there are weights for it.
    #[inline]
    pub fn score(
        &self,
        terminal: u32,
        n: usize,
        block: &Block,
        i: usize,
        scores: &mut Vec<f32>,
    ) -> bool {
        let Some(&[from, to]) = self
            .starts
            .get(terminal as usize..)
            .and_then(<[_]>::first_chunk)
        else {
            return false;
        };
        let end = scores.len() + n;
        let (lanes, _) = self.lanes.as_chunks();
        for register in from..to {
            let lanes = &lanes[register * self.width..(register + 1) * self.width];
            extend(scores, block.dot_lanes(i, lanes));
        }
        scores.truncate(end);
        true
    }
}

/// Writes the weights of up to [`LANES`] classes, a lane for each.
fn fill<'a>(block: &mut [f32], weights: impl Iterator<Item = &'a Weights<f32>>) {
    let (block, _) = block.as_chunks_mut::<LANES>();
    let mut rows: [&[f32]; LANES] = [&[]; LANES];
    let mut n_rows = 0;
    for (lane, weights) in weights.enumerate() {
        match weights {
            Weights::Row(row) => {
                rows[lane] = row;
                n_rows += 1;
            }
            Weights::Table(table) => {
                for (column, &w) in table.iter() {
                    block[column as usize][lane] = w;
                }
            }
        }
    }
    if n_rows == LANES {
        // All rows at once: the block is written in order.
        for (column, lanes) in block.iter_mut().enumerate() {
            for (to, row) in lanes.iter_mut().zip(rows) {
                *to = row[column];
            }
        }
        return;
    }
    for (lane, row) in rows.into_iter().enumerate() {
        for (lanes, &w) in block.iter_mut().zip(row) {
            lanes[lane] = w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Preparation, Rows, Scaling, Values};
    use proptest::prelude::*;

    const WIDTH: usize = 80;

    proptest! {
        #[test]
        fn a_block_scores_as_the_classes_do_one_by_one(
            values in prop::collection::vec(-2.0f32..2.0, 40 * WIDTH),
            lists in prop::collection::vec(prop::collection::vec(0u32..40, 0..40), 1..6),
            n_kept in 0usize..7,
        ) {
            // Every third class knows some columns only, and every seventh none.
            let weights: Vec<Weights<f32>> = (0..).zip(values.chunks(WIDTH)).map(|(class, row)| {
                let known = (0u32..).zip(row.iter().copied()).filter(|(column, _)| column % 4 == 1);
                match class {
                    class if class % 7 == 0 => Weights::default(),
                    class if class % 3 == 0 => Weights::Table(known.collect()),
                    _ => Weights::Row(row.into()),
                }
            }).collect();
            let mut candidates = Ragged::default();
            for list in &lists {
                candidates.push(list.iter().map(|&class| LocalId(class)));
            }
            let sparse: Vec<f32> = (0..WIDTH - 1)
                .map(|at| if at % 7 == 3 { values[at] } else { 0.0 })
                .collect();
            let rows = Rows::dense(Values::F32(&sparse), 1, WIDTH - 1).unwrap();
            let preparation = Preparation::new(Scaling::None, None, &rows).unwrap();
            let mut block = Block::default();
            block.fill(&preparation, &rows, 0..1, WIDTH);
            let of_node = |list: &Vec<u32>| list.len().div_ceil(LANES) * LANES * WIDTH * size_of::<f32>();
            let most_bytes = lists.iter().take(n_kept).map(of_node).sum();
            let blocks =
                CandidateBlocks::within(most_bytes, &candidates, &weights, WIDTH, &Control::new(0)).unwrap();
            for (terminal, list) in lists.iter().enumerate() {
                let mut scores = vec![0.5];
                let is_kept = blocks.score(terminal as u32, list.len(), &block, 0, &mut scores);
                prop_assert!(is_kept || terminal >= n_kept);
                let products = list.iter().map(|&class| block.dot_as_lane(0, &weights[class as usize]));
                let expected: Vec<u32> = products.map(f32::to_bits).collect();
                let found: Vec<u32> = scores[1..].iter().map(|score| score.to_bits()).collect();
                prop_assert_eq!(found, if is_kept { expected } else { vec![] });
            }
            let n_lanes = blocks.lanes.len() * size_of::<f32>();
            prop_assert!(n_lanes <= most_bytes);
        }
    }
}
