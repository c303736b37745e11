//! Copies of the weights of candidates, for the predictions of a frozen tree.
//!
//! A prediction scores all candidates of a node. Where each label has a row of weights, those of the
//! candidates are copied side by side, 16 candidates a register, one register for each column, as in
//! one-against-all: that takes a fifth of the time of a product for each candidate. Where the
//! weights lie by column, each node gets a hash table of its columns, so that a row looks a column
//! up once for all candidates.
//!
//! A label is copied to every node where it is a candidate, so memory is bounded. Nodes beyond the
//! bound have no copy; the scorers' own weights give the same scores to the bit.

use super::labels::LocalId;
use super::scorers::{ScorerWeights, Scorers};
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::linear::{lookup, prefetch_slot, AlignedRow, Block, Slot, Table, Weights};
use crate::memory::prefer_large_pages;
use crate::simd::{prefetch, LANES};
use crate::tree::NodeId;

/// Bytes of all copies, at most.
const MAX_COPIED_BYTES: usize = 128 << 20;

/// No weights by column are copied if there are more. Sorting them by label takes two further
/// copies for a moment, and the nodes within the bound would hold a small part of them.
const MAX_WEIGHTS: usize = MAX_COPIED_BYTES / size_of::<f32>();

/// Entries in a cache line.
const ENTRIES_PER_LINE: usize = 8;

/// Copies for the first nodes of a tree.
#[derive(Debug, Clone, Default)]
pub struct CandidateWeights {
    /// The first register or slot of each node, and the end of the last.
    starts: Vec<usize>,
    copies: Copies,
}

#[derive(Debug, Clone, Default)]
enum Copies {
    #[default]
    None,
    /// Registers of `width` columns, [`LANES`] weights each.
    Lanes {
        width: usize,
        lanes: AlignedRow<f32>,
    },
    /// Slots of hash tables from columns to lists of entries.
    Lists {
        slots: Vec<Slot<List>>,
        entries: Vec<Entry>,
    },
}

/// The entries of one column of a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct List {
    from: u32,
    len: u32,
}

/// A weight, and the position of its label among the candidates of the node.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    place: u32,
    weight: f32,
}

impl CandidateWeights {
    /// Copies the weights of `candidates`, which has a list for each node.
    pub fn new(candidates: &Ragged<LocalId>, scorers: &Scorers, control: &Control) -> Result<Self> {
        let most_bytes = MAX_COPIED_BYTES;
        match &scorers.weights {
            ScorerWeights::ByLabel(weights) => {
                Self::lanes(most_bytes, candidates, weights, scorers.width(), control)
            }
            ScorerWeights::ByColumn(weights) if weights.n_weights() <= MAX_WEIGHTS => {
                let by_label = weights.by_label(scorers.trained.len());
                Self::lists(most_bytes, candidates, &by_label, control)
            }
            _ => Ok(Self::default()),
        }
    }

    /// Copies rows of `width` weights.
    fn lanes(
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
        let registers = lanes.as_chunks_mut::<LANES>().0.chunks_exact_mut(width);
        for (registers, group) in registers.zip(groups) {
            control.check()?;
            for (lane, label) in group.iter().enumerate() {
                match &weights[label.at()] {
                    Weights::Row(row) => {
                        for (register, &weight) in registers.iter_mut().zip(row.iter()) {
                            register[lane] = weight;
                        }
                    }
                    Weights::Table(table) => {
                        for (column, &weight) in table.iter() {
                            registers[column as usize][lane] = weight;
                        }
                    }
                }
            }
        }
        let copies = Copies::Lanes { width, lanes };
        Ok(Self { starts, copies })
    }

    /// Copies the columns and weights of each label.
    fn lists(
        most_bytes: usize,
        candidates: &Ragged<LocalId>,
        by_label: &Ragged<(u32, f32)>,
        control: &Control,
    ) -> Result<Self> {
        let (mut starts, mut slots, mut entries) = (vec![0], Vec::new(), Vec::new());
        for node in 0..candidates.len() {
            control.check()?;
            let labels = candidates.get(node);
            // The lengths of the lists give their places, then the lists are filled.
            let mut table: Table<List> = Table::new();
            for &(column, _) in labels.iter().flat_map(|label| by_label.get(label.at())) {
                table.entry(column).len += 1;
            }
            let mut end = entries.len() as u32;
            for list in table.values_mut() {
                let n = std::mem::take(&mut list.len);
                list.from = end;
                end += n;
            }
            let n_slots = slots.len() + table.capacity();
            if n_slots * size_of::<Slot<List>>() + end as usize * size_of::<Entry>() > most_bytes {
                break;
            }
            entries.resize(end as usize, Entry::default());
            for (place, label) in (0..).zip(labels) {
                for &(column, weight) in by_label.get(label.at()) {
                    let list = table.entry(column);
                    entries[(list.from + list.len) as usize] = Entry { place, weight };
                    list.len += 1;
                }
            }
            slots.extend_from_slice(table.slots());
            starts.push(n_slots);
        }
        prefer_large_pages(&mut slots);
        prefer_large_pages(&mut entries);
        let copies = Copies::Lists { slots, entries };
        Ok(Self { starts, copies })
    }

    /// Appends the scores of the `n` candidates of `node` for row `i` to `scores`. Returns false if
    /// there is no copy that suits the row. `found` is scratch space.
    #[inline]
    pub fn score(
        &self,
        (node, n): (NodeId, usize),
        (block, i): (&Block, usize),
        found: &mut Vec<(List, f32)>,
        scores: &mut Vec<f32>,
    ) -> bool {
        let starts = self.starts.get(node.at()..);
        let Some(&[from, to]) = starts.and_then(<[_]>::first_chunk) else {
            return false;
        };
        let end = scores.len() + n;
        match &self.copies {
            Copies::Lists { slots, entries } => {
                scores.resize(end, 0.0);
                let sums = &mut scores[end - n..];
                add_lists(&slots[from..to], entries, block.row(i), found, sums);
            }
            Copies::Lanes { width, lanes } if block.is_for_lanes(i) => {
                let (lanes, _) = lanes.as_chunks();
                for registers in lanes[from * width..to * width].chunks_exact(*width) {
                    scores.extend(block.dot_lanes(i, registers));
                }
                scores.truncate(end);
            }
            _ => return false,
        }
        true
    }
}

/// Adds the products of a row with the lists of its columns to `sums`.
///
/// Each of the three steps waits for memory, so all columns take one step before the next.
fn add_lists(
    slots: &[Slot<List>],
    entries: &[Entry],
    (columns, values): (&[u32], &[f32]),
    found: &mut Vec<(List, f32)>,
    sums: &mut [f32],
) {
    for &column in columns {
        prefetch_slot(slots, column);
    }
    found.clear();
    for (&column, &x) in columns.iter().zip(values) {
        if let Some(&list) = lookup(slots, column) {
            let lines = entries[list.from as usize..]
                .iter()
                .step_by(ENTRIES_PER_LINE);
            lines.take(2).for_each(prefetch);
            found.push((list, x));
        }
    }
    for &(List { from, len }, x) in &*found {
        for &Entry { place, weight } in &entries[from as usize..][..len as usize] {
            sums[place as usize] += x * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::column_weights::ColumnWeights;
    use super::*;
    use crate::data::{Preparation, Rows, Scaling, Values};
    use proptest::prelude::*;

    const WIDTH: usize = 80;
    const COLUMNS: u32 = 60;
    const N_LABELS: usize = 40;

    fn block(values: &[f32]) -> Block {
        let rows = Rows::dense(Values::F32(values), 1, values.len(), false).unwrap();
        let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
        let mut block = Block::default();
        block.fill(&preparation, &rows, 0..1, WIDTH);
        block
    }

    fn ragged<'a>(lists: impl IntoIterator<Item = &'a Vec<u32>>) -> Ragged<LocalId> {
        let mut candidates = Ragged::default();
        for list in lists {
            candidates.push(list.iter().map(|&label| LocalId(label)));
        }
        candidates
    }

    /// Returns the bits of the scores of a node; none if it has no copy.
    fn bits(copies: &CandidateWeights, node: usize, n: usize, block: &Block) -> Option<Vec<u32>> {
        let mut scores = vec![0.5];
        let node = (NodeId(node as u32), n);
        let is_copied = copies.score(node, (block, 0), &mut vec![], &mut scores);
        assert_eq!(scores.len(), if is_copied { n + 1 } else { 1 });
        is_copied.then(|| scores[1..].iter().map(|score| score.to_bits()).collect())
    }

    proptest! {
        #[test]
        fn lanes_score_like_rows_one_by_one(
            values in prop::collection::vec(-2.0f32..2.0, N_LABELS * WIDTH),
            lists in prop::collection::vec(prop::collection::vec(0..N_LABELS as u32, 0..40), 1..6),
            n_kept in 0usize..7,
        ) {
            // Every third label knows some columns only, and every seventh none.
            let weights: Vec<Weights<f32>> = (0..).zip(values.chunks(WIDTH)).map(|(label, row)| {
                let known = (0u32..).zip(row.iter().copied()).filter(|(column, _)| column % 4 == 1);
                match label {
                    label if label % 7 == 0 => Weights::default(),
                    label if label % 3 == 0 => Weights::Table(known.collect()),
                    _ => Weights::Row(row.into()),
                }
            }).collect();
            let sparse: Vec<f32> = (0..WIDTH - 1)
                .map(|at| if at % 7 == 3 { values[at] } else { 0.0 })
                .collect();
            let block = block(&sparse);
            let n_bytes = |list: &Vec<u32>| list.len().div_ceil(LANES) * LANES * WIDTH * size_of::<f32>();
            let most_bytes = lists.iter().take(n_kept).map(n_bytes).sum();
            let copies =
                CandidateWeights::lanes(most_bytes, &ragged(&lists), &weights, WIDTH, &Control::new(0)).unwrap();
            for (node, list) in lists.iter().enumerate() {
                let found = bits(&copies, node, list.len(), &block);
                prop_assert!(found.is_some() || node >= n_kept);
                let products = list.iter().map(|&label| block.dot_as_lane(0, &weights[label as usize]));
                let expected: Vec<u32> = products.map(f32::to_bits).collect();
                prop_assert_eq!(found.as_ref().unwrap_or(&expected), &expected);
            }
            let Copies::Lanes { lanes, .. } = &copies.copies else { unreachable!() };
            prop_assert!(size_of_val(&lanes[..]) <= most_bytes);
        }

        #[test]
        fn lists_score_like_columns(
            steps in prop::collection::vec((0..COLUMNS, 0..N_LABELS as u32, -2.0f32..2.0), 0..500),
            lists in prop::collection::vec(prop::collection::btree_set(0..N_LABELS as u32, 0..20), 1..6),
            values in prop::collection::btree_map(0..COLUMNS as usize, -2.0f32..2.0, 0..30),
            n_kept in 0usize..7,
        ) {
            let mut weights = ColumnWeights::new(COLUMNS as usize + 1);
            for &(column, label, step) in &steps {
                weights.add(&[column], &[1.0], &[LocalId(label)], &[step]);
            }
            let by_label = weights.by_label(N_LABELS);
            let copies = |most_bytes, candidates: &Ragged<LocalId>| {
                CandidateWeights::lists(most_bytes, candidates, &by_label, &Control::new(0)).unwrap()
            };
            let n_bytes = |copies: &CandidateWeights| match &copies.copies {
                Copies::Lists { slots, entries } => size_of_val(&slots[..]) + size_of_val(&entries[..]),
                _ => unreachable!(),
            };
            let lists: Vec<Vec<u32>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let candidates = ragged(&lists);
            let all = copies(MAX_COPIED_BYTES, &candidates);
            prop_assert_eq!(all.starts.len(), lists.len() + 1);
            let n_kept = n_kept.min(lists.len());
            let most_bytes = n_bytes(&copies(MAX_COPIED_BYTES, &ragged(&lists[..n_kept])));
            let some = copies(most_bytes, &candidates);
            prop_assert_eq!(n_bytes(&some), most_bytes);
            let mut row = vec![0.0; COLUMNS as usize];
            for (column, x) in values {
                row[column] = x;
            }
            let block = block(&row);
            for node in 0..lists.len() {
                let labels = candidates.get(node);
                let mut expected = vec![0.0; labels.len()];
                weights.score(block.row(0), labels, &mut expected);
                let expected: Vec<u32> = expected.iter().map(|score| score.to_bits()).collect();
                prop_assert_eq!(bits(&all, node, labels.len(), &block), Some(expected.clone()));
                let found = bits(&some, node, labels.len(), &block);
                prop_assert!(found.is_some() || node >= n_kept);
                prop_assert_eq!(found.as_ref().unwrap_or(&expected), &expected);
            }
        }
    }
}
