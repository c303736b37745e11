//! Copies of the weights of the candidates where paths end, for the predictions of a frozen tree.
//!
//! A row is scored for all candidates of a final node. Where classes have rows of weights, the
//! candidates' lie side by side ([`Lanes`]): that takes a fifth of the time of a product for each
//! candidate. Where weights are kept by column, each node has a table of its columns
//! ([`Lists`]): a row looks its columns up once for the node, not for each candidate. A class
//! that is a candidate at several nodes is copied to each of them, so memory is bounded: beyond
//! that nodes have no copy, and the classes' own weights give the same scores to the bit.

use super::column_weights::ColumnWeights;
use super::labels::LocalId;
use super::scorers::Scorers;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::linear::{lookup, prefetch_slot, AlignedRow, Block, Slot, Table, Weights};
use crate::memory::prefer_large_pages;
use crate::simd::{prefetch, LANES};

/// Bytes that all copies may take together.
const MAX_COPIED_BYTES: usize = 128 << 20;

/// Of scorers by column with more weights no copies are made.
const MAX_COPIED_WEIGHTS: usize = MAX_COPIED_BYTES / size_of::<f32>();

/// The copies of all final nodes, as the scorers keep their weights.
#[derive(Debug, Clone)]
pub enum CandidateWeights {
    /// None, of scorers that learn one by one.
    None,
    /// Of weights by class.
    Lanes(Lanes),
    /// Of weights by column.
    Lists(Lists),
}

impl CandidateWeights {
    /// Copies the weights of the candidates of each node, of `n_labels` in all.
    pub fn new(
        candidates: &Ragged<LocalId>,
        scorers: &Scorers,
        n_labels: usize,
        control: &Control,
    ) -> Result<Self> {
        let most = MAX_COPIED_BYTES;
        Ok(match scorers {
            Scorers::Single(_) => Self::None,
            Scorers::Joint(joint) if joint.by_class.is_empty() => {
                let weights = &joint.by_column;
                Self::Lists(Lists::within(most, candidates, weights, n_labels, control)?)
            }
            Scorers::Joint(joint) => {
                let weights = &joint.by_class;
                Self::Lanes(Lanes::within(
                    most,
                    candidates,
                    weights,
                    joint.width,
                    control,
                )?)
            }
        })
    }

    /// About how many weights are copied for `n_nodes` of `n_candidates` each.
    pub fn n_weights(scorers: &Scorers, n_nodes: usize, n_candidates: usize) -> usize {
        /// About how many weights a label has by column, where that matters little.
        const WEIGHTS_PER_LABEL: usize = 256;
        let of_label = match scorers {
            Scorers::Single(_) => 0,
            Scorers::Joint(joint) if joint.by_class.is_empty() => WEIGHTS_PER_LABEL,
            Scorers::Joint(joint) => joint.width,
        };
        let of_node = n_candidates
            .next_multiple_of(LANES)
            .saturating_mul(of_label);
        n_nodes.saturating_mul(of_node).min(MAX_COPIED_WEIGHTS)
    }

    /// Appends the scores of the `n` candidates of node `terminal` for row `i` to `scores`. False,
    /// and nothing done, where there is no copy that suits the row. `found` is scratch space.
    #[inline]
    pub fn score(
        &self,
        (terminal, n): (u32, usize),
        (block, i): (&Block, usize),
        found: &mut Vec<(u32, f32)>,
        scores: &mut Vec<f32>,
    ) -> bool {
        match self {
            Self::Lists(lists) if lists.has(terminal) => {
                lists.score(terminal, n, block.row(i), found, scores);
                true
            }
            Self::Lanes(lanes) if block.is_for_lanes(i) => {
                lanes.score((terminal, n), (block, i), scores)
            }
            _ => false,
        }
    }
}

/// The weights of the candidates of some final nodes, side by side: 16 candidates a register, one
/// register for each column, as in one-against-all.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    /// Padded number of columns.
    width: usize,
    /// For each register of candidates, node after node, [`LANES`] weights for each column.
    lanes: AlignedRow<f32>,
    /// Where the registers of each node begin, and the end of the last.
    starts: Vec<usize>,
}

impl Lanes {
    /// Copies the weights of the candidates of as many nodes as `most_bytes` are enough for, from
    /// the first on. `weights`: those of each class, for `width` columns.
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
    fn score(
        &self,
        (terminal, n): (u32, usize),
        (block, i): (&Block, usize),
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
            scores.extend(block.dot_lanes(i, lanes));
        }
        scores.truncate(end);
        true
    }
}

/// Writes the weights of up to [`LANES`] classes, a lane for each.
fn fill<'a>(block: &mut [f32], weights: impl Iterator<Item = &'a Weights<f32>>) {
    let (block, _) = block.as_chunks_mut::<LANES>();
    for (lane, weights) in weights.enumerate() {
        match weights {
            Weights::Row(row) => {
                for (lanes, &w) in block.iter_mut().zip(row.iter()) {
                    lanes[lane] = w;
                }
            }
            Weights::Table(table) => {
                for (column, &w) in table.iter() {
                    block[column as usize][lane] = w;
                }
            }
        }
    }
}

/// The weights of the candidates of some final nodes, as lists by column.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Where the slots of each node end, from the first on.
    ends: Vec<usize>,
    /// Of each node a table: where the list of a column begins.
    slots: Vec<Slot<u32>>,
    /// The lists of all columns of all nodes. In each first a bit for every candidate of the node,
    /// set if it has a weight, then the bits of these weights.
    lists: Vec<u32>,
}

/// Flags in a word.
const FLAGS_PER_WORD: usize = u32::BITS as usize;

/// Words in a cache line.
const WORDS_PER_LINE: usize = 16;

/// Words that have a flag for each of `n` candidates.
fn n_words(n: usize) -> usize {
    n.div_ceil(FLAGS_PER_WORD)
}

impl Lists {
    /// Copies the weights of the candidates of as many nodes as `most_bytes` are enough for, from
    /// the first on.
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
        if weights.n_weights() > MAX_COPIED_WEIGHTS {
            return Ok(made);
        }
        let by_label = weights.by_label(n_labels);
        // Of each of the node's columns: where its list begins, and where its next weight goes;
        // before that, how many there are.
        let mut places: Vec<(u32, u32)> = vec![(0, 0); weights.columns.len()];
        let mut columns = Vec::new();
        for node in 0..candidates.len() {
            control.check()?;
            let labels = candidates.get(node);
            let n_flags = n_words(labels.len());
            let mut n_weights = 0;
            for &(column, _) in labels.iter().flat_map(|label| by_label.get(label.at())) {
                let (_, n) = &mut places[column as usize];
                if *n == 0 {
                    columns.push(column);
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
            made.lists.resize(n_listed, 0);
            for &column in &columns {
                *table.entry(column) = list;
                let place = &mut places[column as usize];
                let (from, first, n) = (list, list + n_flags as u32, place.1);
                *place = (from, first);
                list = first + n;
            }
            made.slots.extend(table.slots().iter().copied());
            made.ends.push(n_slots);
            for (place, label) in labels.iter().enumerate() {
                for &(column, weight) in by_label.get(label.at()) {
                    let (list, next) = &mut places[column as usize];
                    made.lists[*list as usize + place / FLAGS_PER_WORD] |=
                        1 << (place % FLAGS_PER_WORD);
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
    fn has(&self, terminal: u32) -> bool {
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
    fn score(
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
                let lines = self.lists[list as usize..].iter().step_by(WORDS_PER_LINE);
                lines.take(2).for_each(prefetch);
                found.push((list, x));
            }
        }
        let (from, n_flags) = (scores.len(), n_words(n));
        scores.resize(from + n_flags * FLAGS_PER_WORD, 0.0);
        let (sums, _) = scores[from..].as_chunks_mut::<FLAGS_PER_WORD>();
        for &(list, x) in &*found {
            let (flags, weights) = self.lists[list as usize..].split_at(n_flags);
            let mut weights = weights.iter();
            for (&flags, sums) in flags.iter().zip(&mut *sums) {
                let mut flags = flags;
                // As many weights as flags; the flags come first, so that none is missing.
                while let Some(&weight) = (flags != 0).then(|| weights.next()).flatten() {
                    sums[flags.trailing_zeros() as usize % FLAGS_PER_WORD] +=
                        x * f32::from_bits(weight);
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
    use crate::data::{Preparation, Rows, Scaling, Values};
    use proptest::prelude::*;

    const WIDTH: usize = 80;
    const COLUMNS: u32 = 60;

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
            let rows = Rows::dense(Values::F32(&sparse), 1, WIDTH - 1, false).unwrap();
            let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
            let mut block = Block::default();
            block.fill(&preparation, &rows, 0..1, WIDTH);
            let of_node = |list: &Vec<u32>| list.len().div_ceil(LANES) * LANES * WIDTH * size_of::<f32>();
            let most_bytes = lists.iter().take(n_kept).map(of_node).sum();
            let blocks =
                Lanes::within(most_bytes, &candidates, &weights, WIDTH, &Control::new(0)).unwrap();
            for (terminal, list) in lists.iter().enumerate() {
                let mut scores = vec![0.5];
                let is_kept = blocks.score((terminal as u32, list.len()), (&block, 0), &mut scores);
                prop_assert!(is_kept || terminal >= n_kept);
                let products = list.iter().map(|&class| block.dot_as_lane(0, &weights[class as usize]));
                let expected: Vec<u32> = products.map(f32::to_bits).collect();
                let found: Vec<u32> = scores[1..].iter().map(|score| score.to_bits()).collect();
                prop_assert_eq!(found, if is_kept { expected } else { vec![] });
            }
            let n_lanes = blocks.lanes.len() * size_of::<f32>();
            prop_assert!(n_lanes <= most_bytes);
        }

        #[test]
        fn a_table_scores_as_the_columns_do(
            steps in prop::collection::vec((0..COLUMNS, 0u32..40, -2.0f32..2.0), 0..500),
            lists in prop::collection::vec(prop::collection::btree_set(0u32..40, 0..20), 1..6),
            values in prop::collection::btree_map(0..COLUMNS, -2.0f32..2.0, 0..30),
            n_kept in 0usize..7,
        ) {
            let mut weights = ColumnWeights::default();
            weights.reserve_columns(COLUMNS as usize);
            for &(column, label, step) in &steps {
                weights.add(&[column], &[1.0], &[LocalId(label)], &[step]);
            }
            let mut candidates = Ragged::default();
            for list in &lists {
                candidates.push(list.iter().map(|&label| LocalId(label)));
            }
            let (columns, values): (Vec<u32>, Vec<f32>) = values.into_iter().unzip();
            let row = (&columns[..], &values[..]);
            let all = Lists::within(MAX_COPIED_BYTES, &candidates, &weights, 40, &Control::new(0)).unwrap();
            prop_assert_eq!(all.ends.len(), lists.len());
            let bytes = |tables: &Lists| {
                size_of_val(&tables.slots[..]) + size_of_val(&tables.lists[..])
            };
            let n_kept = n_kept.min(lists.len());
            let mut first = Ragged::default();
            (0..n_kept).for_each(|node| first.push(candidates.get(node).iter().copied()));
            let first = Lists::within(MAX_COPIED_BYTES, &first, &weights, 40, &Control::new(0)).unwrap();
            let some = Lists::within(bytes(&first), &candidates, &weights, 40, &Control::new(0)).unwrap();
            // Nodes without weights take no memory.
            prop_assert!(some.ends.len() >= n_kept);
            prop_assert!(bytes(&some) == bytes(&first));
            for terminal in 0..lists.len() {
                let labels = candidates.get(terminal);
                let mut expected = vec![0.0; labels.len()];
                weights.score(row, labels, &mut expected);
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
