//! The weights of the candidates at a final node by column, for rows of few of many columns.
//!
//! The scorers' own tables know a column's weights for all labels. There each of a row's columns is
//! searched for each candidate, most of which have no weight for it. Here a node has a table of its
//! columns, each with the list of the candidates that have a weight for it: a row looks its columns
//! up once for the node, and touches nothing else than it adds. A label that is a candidate at
//! several nodes is copied to each of them, so memory is bounded: beyond that nodes have no table,
//! and the scorers' own give the same scores to the bit.

use super::label_index::LocalId;
use super::scorers::ColumnWeights;
use crate::alloc::{extend, filled, prefer_large_pages, push, resize};
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::linear::{lookup, prefetch_slot, Slot, Table};
use crate::simd::prefetch;

/// Bytes that all tables may take together.
const MOST_BYTES: usize = 128 << 20;

/// Of scorers with more weights no tables are made.
const MOST_WEIGHTS: usize = MOST_BYTES / size_of::<f32>();

/// About how many weights a label has, where that matters little.
const OF_LABEL: usize = 256;

/// The weights of the candidates of some final nodes.
#[derive(Debug, Clone, Default)]
pub struct CandidateTables {
    /// Where the slots of each node end, from the first on.
    ends: Vec<usize>,
    /// Of each node a table: where the list of a column begins.
    slots: Vec<Slot<u32>>,
    /// The lists of all columns of all nodes. In each first a bit for every candidate of the node,
    /// set if it has a weight, then the bits of these weights.
    lists: Vec<u32>,
}

/// Flags in a word.
const BITS: usize = u32::BITS as usize;

/// Words in a cache line.
const LINE: usize = 16;

/// Words that have a flag for each of `n` candidates.
fn n_words(n: usize) -> usize {
    n.div_ceil(BITS)
}

impl CandidateTables {
    /// About how many weights there are for `n_nodes` of `n_candidates` each.
    pub fn n_weights(n_nodes: usize, n_candidates: usize) -> usize {
        let of_node = n_candidates.saturating_mul(OF_LABEL);
        n_nodes.saturating_mul(of_node).min(MOST_WEIGHTS)
    }

    /// Copies the weights of the candidates of each node.
    pub fn new(
        candidates: &Ragged<LocalId>,
        weights: &ColumnWeights,
        n_labels: usize,
        control: &Control,
    ) -> Result<Self> {
        Self::within(MOST_BYTES, candidates, weights, n_labels, control)
    }

    /// Those of as many nodes as `most_bytes` are enough for, from the first on.
    fn within(
        most_bytes: usize,
        candidates: &Ragged<LocalId>,
        weights: &ColumnWeights,
        n_labels: usize,
        control: &Control,
    ) -> Result<Self> {
        let mut made = Self::default();
        // To bring them into the order of labels takes two copies for a moment. Of a model of more
        // weights tables would hold a small part.
        if weights.n_weights() > MOST_WEIGHTS {
            return Ok(made);
        }
        let by_label = weights.by_label(n_labels);
        // Of each of the node's columns: where its list begins, and where its next weight goes;
        // before that, how many there are.
        let mut places: Vec<(u32, u32)> = filled((0, 0), weights.columns.len());
        let mut columns = Vec::new();
        for node in 0..candidates.len() {
            control.check()?;
            let labels = candidates.get(node);
            let n_flags = n_words(labels.len());
            let mut n_weights = 0;
            for &(column, _) in labels.iter().flat_map(|label| by_label.get(label.at())) {
                let (_, n) = &mut places[column as usize];
                if *n == 0 {
                    push(&mut columns, column);
                }
                *n += 1;
                n_weights += 1;
            }
            let mut table = Table::with_capacity(columns.len());
            let n_listed = made.lists.len() + columns.len() * n_flags + n_weights;
            let n_slots = made.slots.len() + table.capacity();
            if n_slots * size_of::<Slot<u32>>() + n_listed * size_of::<u32>() > most_bytes {
                break;
            }
            let mut list = made.lists.len() as u32;
            resize(&mut made.lists, n_listed, 0);
            for &column in &columns {
                *table.entry(column) = list;
                let place = &mut places[column as usize];
                let (from, first, n) = (list, list + n_flags as u32, place.1);
                *place = (from, first);
                list = first + n;
            }
            extend(&mut made.slots, table.slots().iter().copied());
            push(&mut made.ends, n_slots);
            for (place, label) in labels.iter().enumerate() {
                for &(column, weight) in by_label.get(label.at()) {
                    let (list, next) = &mut places[column as usize];
                    made.lists[*list as usize + place / BITS] |= 1 << (place % BITS);
                    made.lists[*next as usize] = weight.to_bits();
                    *next += 1;
                }
            }
            for column in columns.drain(..) {
                places[column as usize] = (0, 0);
            }
        }
        prefer_large_pages(&mut made.slots);
        prefer_large_pages(&mut made.lists);
        Ok(made)
    }

    /// Whether node `terminal` has a table.
    #[inline]
    pub fn has(&self, terminal: u32) -> bool {
        (terminal as usize) < self.ends.len()
    }

    /// The table of node `terminal`, which [has](Self::has) one.
    fn slots(&self, terminal: usize) -> &[Slot<u32>] {
        let from = terminal
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.slots[from..self.ends[terminal]]
    }

    /// Appends the scores of the `n` candidates of node `terminal`, which [has](Self::has) a table,
    /// to `scores`. `found` is scratch space.
    pub fn score(
        &self,
        terminal: u32,
        n: usize,
        (columns, values): (&[u32], &[f32]),
        found: &mut Vec<(u32, f32)>,
        scores: &mut Vec<f32>,
    ) {
        let slots = self.slots(terminal as usize);
        // Each of the three steps waits for memory, so all columns take one before the next.
        for &column in columns {
            prefetch_slot(slots, column);
        }
        found.clear();
        for (&column, &x) in columns.iter().zip(values) {
            if let Some(&list) = lookup(slots, column) {
                let lines = self.lists[list as usize..].iter().step_by(LINE);
                lines.take(2).for_each(prefetch);
                push(found, (list, x));
            }
        }
        let (from, n_flags) = (scores.len(), n_words(n));
        resize(scores, from + n_flags * BITS, 0.0);
        let (sums, _) = scores[from..].as_chunks_mut::<BITS>();
        for &(list, x) in &*found {
            let (flags, weights) = self.lists[list as usize..].split_at(n_flags);
            let mut weights = weights.iter();
            for (&flags, sums) in flags.iter().zip(&mut *sums) {
                let mut flags = flags;
                // As many weights as flags; the flags come first, so that none is missing.
                while let Some(&weight) = (flags != 0).then(|| weights.next()).flatten() {
                    sums[flags.trailing_zeros() as usize % BITS] += x * f32::from_bits(weight);
                    flags &= flags - 1;
                }
            }
        }
        scores.truncate(from + n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u32 = 60;

    proptest! {
        #[test]
        fn a_table_scores_as_the_columns_do(
            steps in prop::collection::vec((0..WIDTH, 0u32..40, -2.0f32..2.0), 0..500),
            lists in prop::collection::vec(prop::collection::btree_set(0u32..40, 0..20), 1..6),
            values in prop::collection::btree_map(0..WIDTH, -2.0f32..2.0, 0..30),
            n_kept in 0usize..7,
        ) {
            let mut weights = ColumnWeights::default();
            weights.reserve_columns(WIDTH as usize);
            for &(column, label, step) in &steps {
                weights.add(&[column], &[1.0], &[LocalId(label)], &[step]);
            }
            let mut candidates = Ragged::default();
            for list in &lists {
                candidates.push(list.iter().map(|&label| LocalId(label)));
            }
            let (columns, values): (Vec<u32>, Vec<f32>) = values.into_iter().unzip();
            let row = (&columns[..], &values[..]);
            let all = CandidateTables::new(&candidates, &weights, 40, &Control::new(0)).unwrap();
            prop_assert_eq!(all.ends.len(), lists.len());
            let bytes = |tables: &CandidateTables| {
                size_of_val(&tables.slots[..]) + size_of_val(&tables.lists[..])
            };
            let n_kept = n_kept.min(lists.len());
            let mut first = Ragged::default();
            (0..n_kept).for_each(|node| first.push(candidates.get(node).iter().copied()));
            let first = CandidateTables::new(&first, &weights, 40, &Control::new(0)).unwrap();
            let some = CandidateTables::within(bytes(&first), &candidates, &weights, 40, &Control::new(0)).unwrap();
            // Nodes without weights take no memory.
            prop_assert!(some.ends.len() >= n_kept);
            prop_assert!(bytes(&some) == bytes(&first));
            for terminal in 0..lists.len() {
                let labels = candidates.get(terminal);
                let mut expected = vec![0.0; labels.len()];
                weights.score(row, labels, &mut vec![], &mut expected);
                for tables in [&all, &some] {
                    if !tables.has(terminal as u32) {
                        continue;
                    }
                    let mut scores = vec![0.5];
                    tables.score(terminal as u32, labels.len(), row, &mut vec![], &mut scores);
                    let bits = |scores: &[f32]| scores.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!(bits(&scores[1..]), bits(&expected));
                }
            }
        }
    }
}
