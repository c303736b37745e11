//! The labels seen at a node, of which the most frequent are its candidates.

use super::label_index::LocalId;
use crate::file::is_count;
use crate::linear::Table;
use crate::record;
use crate::simd::prefetch;
use crate::tree::PackedF64;

/// A histogram of labels whose F most frequent are known at any time.
///
/// Only these are kept in order, and only an increment changes anything: a label
/// overtakes those before it that have less, and one from outside gets in as soon
/// as it has more than the last. So the order outside is never needed. Equal
/// counts stay in the order in which they were reached.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct LabelCounts {
    /// How much of each label was seen.
    seen: Table<PackedF64>,
    /// Sum of all counts.
    pub total: f64,
    /// Sum of the candidates' counts.
    pub mass: f64,
    /// The most frequent labels, best first.
    top: Vec<LocalId>,
    /// Their counts.
    pub top_counts: Vec<f64>,
}

impl LabelCounts {
    #[inline]
    pub fn get(&self, label: LocalId) -> f64 {
        self.seen.get(label.0).map_or(0.0, |seen| seen.0)
    }

    /// Adds `weight` of `label`; there may be `capacity` candidates. Returns
    /// whether the label was one of them before. Costs O(log F), plus what it moves.
    pub fn add(&mut self, label: LocalId, weight: f64, capacity: usize) -> bool {
        let seen = self.seen.entry(label.0);
        let before = seen.0;
        let count = before + weight;
        seen.0 = count;
        self.total += weight;
        let known = self.place_of(label, before);
        let at = match known {
            Some(at) => {
                self.mass += weight;
                at
            }
            None if self.top.len() < capacity => {
                self.top.push(label);
                self.top_counts.push(count);
                self.mass += count;
                self.top.len() - 1
            }
            None => {
                let last = self.top.len() - 1;
                if count <= self.top_counts[last] {
                    return false;
                }
                self.mass += count - self.top_counts[last];
                self.top[last] = label;
                last
            }
        };
        let to = self.top_counts[..at].partition_point(|&other| other >= count);
        self.top[to..=at].rotate_right(1);
        self.top_counts[to..=at].rotate_right(1);
        self.top[to] = label;
        self.top_counts[to] = count;
        known.is_some()
    }

    /// The position among the candidates of `label`, of which `count` was seen.
    fn place_of(&self, label: LocalId, count: f64) -> Option<usize> {
        let from = self.top_counts.partition_point(|&other| other > count);
        let equal = self.top_counts[from..].partition_point(|&other| other >= count);
        let among = self.top[from..from + equal].iter();
        Some(from + among.clone().position(|&other| other == label)?)
    }

    /// The most frequent labels, best first.
    #[inline]
    pub fn candidates(&self) -> &[LocalId] {
        &self.top
    }

    pub fn n_labels(&self) -> usize {
        self.seen.len()
    }

    /// Labels and how much of each was seen, in a fixed but arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (LocalId, f64)> + '_ {
        let seen = self.seen.iter();
        seen.map(|(label, seen)| (LocalId(label), seen.0))
    }

    #[inline]
    pub fn prefetch(&self, label: LocalId) {
        self.seen.prefetch(label.0);
    }

    /// Prefetches what the binary searches of [`Self::add`] read.
    #[inline]
    pub fn prefetch_order(&self) {
        for places in [self.top_counts.len() / 4, self.top_counts.len() / 2] {
            self.top_counts.get(places).into_iter().for_each(prefetch);
        }
        self.top_counts.last().into_iter().for_each(prefetch);
    }

    /// Makes more labels candidates, the most frequent of the others, up to `capacity`; of equal
    /// counts the label seen first by the tree.
    pub fn fill_up(&mut self, capacity: usize) {
        if self.top.len() >= capacity.min(self.n_labels()) {
            return;
        }
        let mut is_known = self.top.clone();
        is_known.sort_unstable();
        let others = self
            .iter()
            .filter(|(label, _)| is_known.binary_search(label).is_err());
        let mut others: Vec<(LocalId, f64)> = others.collect();
        others.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for (label, count) in others.into_iter().take(capacity - self.top.len()) {
            self.top.push(label);
            self.top_counts.push(count);
            self.mass += count;
        }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        self.seen.values_mut().for_each(|seen| seen.0 /= 2.0);
        self.top_counts.iter_mut().for_each(|count| *count /= 2.0);
        self.total /= 2.0;
        self.mass /= 2.0;
    }

    /// Forgets how often labels were seen that are no candidates.
    pub fn keep_candidates(&mut self) {
        let counts = self.top_counts.iter().map(|&count| PackedF64(count));
        let labels = self.top.iter().map(|label| label.0);
        self.seen = labels.zip(counts).collect();
    }

    /// Restores what is not stored; false where the stored parts are no histogram.
    pub fn restore(&mut self) -> bool {
        let top_counts = self.top.iter().map(|label| self.seen.get(label.0));
        let Some(top_counts) = top_counts.map(|seen| Some(seen?.0)).collect() else {
            return false;
        };
        self.top_counts = top_counts;
        let mut labels = self.top.clone();
        labels.sort_unstable();
        labels.dedup();
        // A label that is none looks like a free slot.
        let are_labels = labels.last() != Some(&LocalId::NONE);
        let is_about = |sum: f64, other: f64| (sum - other).abs() <= ROUNDING * other;
        let mass: f64 = self.top_counts.iter().sum();
        // Labels that are no candidates may have been dropped for prediction.
        let seen: f64 = self.seen.iter().map(|(_, count)| count.0).sum();
        self.top_counts.is_sorted_by(|a, b| a >= b)
            && are_labels
            && labels.len() == self.top.len()
            && self.seen.iter().all(|(_, count)| is_count(count))
            && is_about(self.mass, mass)
            && (is_about(self.total, seen) || self.total > seen)
    }
}

/// By how much sums of counts may differ that were added up in another order.
const ROUNDING: f64 = 1e-3;

/// Whether it is a sum of counts that are at most as large as one together.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_sum_of_counts(sum: &f64) -> bool {
    is_count(&(sum / 2.0))
}

record!(LabelCounts {
    total: is_count,
    mass: is_sum_of_counts,
    top,
    seen
} .. { top_counts: Vec::new() });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Bundle, Record};
    use proptest::prelude::*;

    /// What the authors' program does: all labels in one list, in order.
    fn plain(list: &mut Vec<(LocalId, f64)>, label: LocalId, weight: f64) {
        let known = list.iter().position(|&(other, _)| other == label);
        let mut at = known.unwrap_or(list.len());
        if known.is_none() {
            list.push((label, 0.0));
        }
        list[at].1 += weight;
        while at > 0 && list[at - 1].1 < list[at].1 {
            list.swap(at - 1, at);
            at -= 1;
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_list(
            stream in prop::collection::vec((0u32..12, 1u8..4), 0..200),
            capacity in 1usize..9,
            weighted in any::<bool>(),
        ) {
            let (mut counts, mut list) = (LabelCounts::default(), Vec::new());
            for (label, weight) in stream {
                let label = LocalId(label);
                let weight = if weighted { f64::from(weight) } else { 1.0 };
                counts.add(label, weight, capacity);
                plain(&mut list, label, weight);
                let top = &list[..list.len().min(capacity)];
                let labels: Vec<LocalId> = top.iter().map(|&(label, _)| label).collect();
                let expected: Vec<f64> = top.iter().map(|&(_, count)| count).collect();
                prop_assert_eq!(counts.candidates(), &labels[..]);
                prop_assert_eq!(&counts.top_counts, &expected);
                prop_assert!((counts.mass - expected.iter().sum::<f64>()).abs() < 1e-9);
                prop_assert_eq!(counts.get(label), list.iter().find(|l| l.0 == label).unwrap().1);
            }
            let mut bundle = Bundle::new("test");
            LabelCounts::put([&counts].into_iter(), "counts", &mut bundle);
            let mut again = LabelCounts::take(Some(1), "counts", &mut bundle).unwrap().remove(0);
            prop_assert!(again.restore());
            prop_assert_eq!(again.top_counts, counts.top_counts);
        }
    }
}
