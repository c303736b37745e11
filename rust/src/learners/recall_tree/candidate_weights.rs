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

/// The position of a label among the candidates of a node, and its weight.
type Entry = (u32, f32);

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
                weights[label.at()].for_each(|column, weight| registers[column][lane] = weight);
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
            let mut table: Table<List> = Table::default();
            for &(column, _) in labels.iter().flat_map(|label| by_label.get(label.at())) {
                table.entry(column).len += 1;
            }
            let mut end = entries.len() as u32;
            for list in table.values_mut() {
                let n = std::mem::take(&mut list.len);
                list.from = end;
                end += n;
            }
            let n_slots = slots.len() + table.slots().len();
            if n_slots * size_of::<Slot<List>>() + end as usize * size_of::<Entry>() > most_bytes {
                break;
            }
            entries.resize(end as usize, (0, 0.0));
            for (place, label) in (0..).zip(labels) {
                for &(column, weight) in by_label.get(label.at()) {
                    let list = table.entry(column);
                    entries[(list.from + list.len) as usize] = (place, weight);
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
        for &(place, weight) in &entries[from as usize..][..len as usize] {
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
    const N_LABELS: u32 = 40;

    proptest! {
        /// Copies give the scores of the weights by label or by column, within the memory allowed.
        #[test]
        fn copies_score_like_the_weights(
            steps in prop::collection::vec((0..WIDTH as u32 - 1, 0..N_LABELS, -2.0f32..2.0), 0..800),
            filled in prop::collection::btree_map(0..WIDTH - 1, -2.0f32..2.0, 0..18),
            lists in prop::collection::vec(prop::collection::btree_set(0..N_LABELS, 0..40), 1..6),
            n_kept in 0usize..7,
        ) {
            // Every third label has a row, all others a table.
            let mut by_label = vec![Weights::<f32>::default(); N_LABELS as usize];
            by_label.iter_mut().step_by(3).for_each(|weights| weights.spread(WIDTH));
            let mut by_column = ColumnWeights::new(WIDTH);
            for &(column, label, step) in &steps {
                by_label[label as usize].change(&[column], |_, weight| *weight += step);
                by_column.add(&[column], &[1.0], &[LocalId(label)], &[step]);
            }
            let mut row = vec![0.0; WIDTH - 1];
            filled.into_iter().for_each(|(column, x)| row[column] = x);
            let rows = Rows::dense(Values::F32(&row), 1, WIDTH - 1, false).unwrap();
            let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
            let mut block = Block::default();
            block.fill(&preparation, &rows, 0..1, WIDTH);
            prop_assert!(block.is_for_lanes(0));

            let listed = by_column.by_label(N_LABELS as usize);
            let control = Control::new(0);
            for is_by_label in [true, false] {
                let copies = |most_bytes, n_nodes: usize| {
                    let mut candidates = Ragged::default();
                    for list in &lists[..n_nodes] {
                        candidates.push(list.iter().map(|&label| LocalId(label)));
                    }
                    if is_by_label {
                        CandidateWeights::lanes(most_bytes, &candidates, &by_label, WIDTH, &control)
                    } else {
                        CandidateWeights::lists(most_bytes, &candidates, &listed, &control)
                    }
                };
                let n_bytes = |copies: &CandidateWeights| match &copies.copies {
                    Copies::None => 0,
                    Copies::Lanes { lanes, .. } => size_of_val(&lanes[..]),
                    Copies::Lists { slots, entries } => size_of_val(&slots[..]) + size_of_val(&entries[..]),
                };
                let n_kept = n_kept.min(lists.len());
                let most_bytes = n_bytes(&copies(MAX_COPIED_BYTES, n_kept).unwrap());
                let copies = copies(most_bytes, lists.len()).unwrap();
                prop_assert_eq!(n_bytes(&copies), most_bytes);
                for (node, list) in lists.iter().enumerate() {
                    let labels: Vec<LocalId> = list.iter().map(|&label| LocalId(label)).collect();
                    let mut expected = vec![0.0; labels.len()];
                    if is_by_label {
                        let scores = labels.iter().map(|label| block.dot_as_lane(0, &by_label[label.at()]));
                        expected = scores.collect();
                    } else {
                        by_column.score(block.row(0), &labels, &mut expected);
                    }
                    let (mut scores, node_id) = (vec![0.5], NodeId(node as u32));
                    let is_copied = copies.score((node_id, labels.len()), (&block, 0), &mut vec![], &mut scores);
                    prop_assert!(is_copied || node >= n_kept);
                    let bits = |scores: &[f32]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!(bits(&scores[1..]), if is_copied { bits(&expected) } else { vec![] });
                }
            }
        }
    }
}
