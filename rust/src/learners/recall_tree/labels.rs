//! Labels inside the tree: their ids, the histogram of a node, its entropy and its recall bound.

use super::params::RecallBound;
use crate::file::is_count;
use crate::linear::Table;
use crate::simd::prefetch;
use crate::tree::PackedF64;
use crate::{record, stored_as};

/// Id of a label inside the tree and the scorers, in the order of first examples.
/// [`LocalIds`](crate::data::LocalIds) maps it to the class.
///
/// Frequent labels appear early and so have low ids. Most histograms and columns know them, and
/// their data lies side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct LocalId(pub u32);

impl LocalId {
    /// Returns the id as an index into arrays with one element per label.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

stored_as! {
    LocalId as u32: |id| id.0, LocalId;
}

/// A histogram of labels that knows its F most frequent ones, the candidates, at any time.
///
/// Only the candidates are kept in order. Between calls of [`halve`](Self::halve), counts only grow,
/// one at a time: a label overtakes the candidates with lower counts, and another label becomes a
/// candidate as soon as its count exceeds that of the last one. So the order of the other labels is
/// never needed. Labels of equal counts stay in the order in which they reached them.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct LabelCounts {
    /// The count of each label.
    seen: Table<PackedF64>,
    /// The sum of all counts.
    pub total: f64,
    /// The sum of the counts of the candidates.
    pub mass: f64,
    /// The candidates, the most frequent first.
    top: Vec<LocalId>,
    /// The counts of the candidates.
    pub top_counts: Vec<f64>,
}

impl LabelCounts {
    /// Returns the count of a label.
    pub fn get(&self, label: LocalId) -> f64 {
        self.seen.get(label.0).map_or(0.0, |seen| seen.0)
    }

    /// Adds `weight` to the count of `label`, with at most `capacity` candidates. Returns whether
    /// the label was a candidate before. Costs O(log F), plus the candidates that move.
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

    /// Returns the position of `label`, whose count is `count`, among the candidates.
    fn place_of(&self, label: LocalId, count: f64) -> Option<usize> {
        let from = self.top_counts.partition_point(|&other| other > count);
        let equal = self.top_counts[from..].partition_point(|&other| other >= count);
        let among = self.top[from..from + equal].iter();
        Some(from + among.clone().position(|&other| other == label)?)
    }

    /// Returns the most frequent labels, the most frequent first.
    pub fn candidates(&self) -> &[LocalId] {
        &self.top
    }

    /// Returns the number of labels with a count.
    pub fn n_labels(&self) -> usize {
        self.seen.len()
    }

    /// Returns the labels and their counts, in a fixed but arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (LocalId, f64)> + '_ {
        let seen = self.seen.iter();
        seen.map(|(label, seen)| (LocalId(label), seen.0))
    }

    /// Prefetches the count of a label.
    pub fn prefetch(&self, label: LocalId) {
        self.seen.prefetch(label.0);
    }

    /// Prefetches the counts that the binary searches of [`Self::add`] read first.
    pub fn prefetch_order(&self) {
        for places in [self.top_counts.len() / 4, self.top_counts.len() / 2] {
            self.top_counts.get(places).into_iter().for_each(prefetch);
        }
        self.top_counts.last().into_iter().for_each(prefetch);
    }

    /// Adds the most frequent other labels to the candidates, up to `capacity`. Among labels of equal
    /// counts, the lower id comes first.
    pub fn fill_up(&mut self, capacity: usize) {
        let mut others: Vec<(LocalId, f64)> = self
            .iter()
            .filter(|(label, _)| !self.top.contains(label))
            .collect();
        others.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        others.truncate(capacity.saturating_sub(self.top.len()));
        for (label, count) in others {
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

    /// Drops the counts of labels that are not candidates.
    pub fn keep_candidates(&mut self) {
        let counts = self.top_counts.iter().map(|&count| PackedF64(count));
        let labels = self.top.iter().map(|label| label.0);
        self.seen = labels.zip(counts).collect();
    }

    /// Restores the counts of the candidates, which are not stored. Returns false if the stored
    /// parts contradict each other.
    pub fn restore(&mut self) -> bool {
        let top_counts = self.top.iter().map(|label| self.seen.get(label.0));
        let Some(top_counts) = top_counts.map(|seen| Some(seen?.0)).collect() else {
            return false;
        };
        self.top_counts = top_counts;
        let mut labels = self.top.clone();
        labels.sort_unstable();
        labels.dedup();
        // This id would look like a free slot of the table.
        let are_labels = labels.last() != Some(&LocalId(u32::MAX));
        let is_about = |sum: f64, other: f64| (sum - other).abs() <= MAX_ROUNDING * other;
        let mass: f64 = self.top_counts.iter().sum();
        // A model for prediction has dropped the counts of other labels.
        let seen: f64 = self.seen.iter().map(|(_, count)| count.0).sum();
        self.top_counts.is_sorted_by(|a, b| a >= b)
            && are_labels
            && labels.len() == self.top.len()
            && self.seen.iter().all(|(_, count)| is_count(count))
            && is_about(self.mass, mass)
            && (is_about(self.total, seen) || self.total > seen)
    }
}

/// Relative difference allowed between sums that were added in different orders.
const MAX_ROUNDING: f64 = 1e-3;

record!(LabelCounts {
    total: is_count,
    mass,
    top,
    seen
} .. { top_counts: Vec::new() });

/// Returns the entropy, in nats, of a histogram of sum `n` and entropy `h` after the count `c` of a
/// label grows by `d`.
///
/// The cost does not depend on the number of labels, because only the terms of n and c change.
pub fn entropy_after(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = n + d;
    if after <= 0.0 {
        return 0.0;
    }
    let others = n - c;
    let share = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
    let mut entropy = h;
    if n > 0.0 {
        // Take the term of this label out, then divide the other terms by the new sum.
        entropy = (h + share(c / n)) * (n / after) - (n / after).ln() * (others / after);
    }
    entropy - share((c + d) / after)
}

/// Returns by how much n times the entropy of a child grows if the count of a label grows by `d`.
/// This is the cost of routing an example to the child.
pub fn entropy_cost(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = entropy_after(h, n, c, d);
    n * (after - h) + d * after
}

/// Returns a lower bound on the recall of candidates that have `mass` of the sum `n` of all counts.
///
/// This is Eq. 1 of the paper, with the multiplier `hyper` in place of its unknown constant, and
/// with the last term of `form`. It is computed in the precision of the authors' program, because
/// paths depend on which of two bounds is larger.
pub fn recall_bound(mass: f64, n: f64, hyper: f64, form: RecallBound) -> f32 {
    let (mass, n, hyper) = (mass as f32, n as f32, hyper as f32);
    let f = mass / n;
    let deviation = (f * (1.0 - f) / n).sqrt();
    let worst = match form {
        // 15 is the constant of the empirical Bernstein bound.
        RecallBound::Vw => 15.0 / (18f32.sqrt() * n),
        RecallBound::Paper => 1.0 / n,
    };
    // A node without examples has NaN here, which becomes 0.
    (f - hyper.sqrt() * deviation - hyper * worst).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Bundle, Record};
    use proptest::prelude::*;

    /// Adds to an ordered list of all labels, as the authors' program does.
    fn add_to_list(list: &mut Vec<(LocalId, f64)>, label: LocalId, weight: f64) {
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
        fn candidates_equal_the_front_of_an_ordered_list(
            stream in prop::collection::vec((0u32..12, 1u8..4), 0..200),
            capacity in 1usize..9,
            weighted in any::<bool>(),
        ) {
            let (mut counts, mut list) = (LabelCounts::default(), Vec::new());
            for (label, weight) in stream {
                let label = LocalId(label);
                let weight = if weighted { f64::from(weight) } else { 1.0 };
                counts.add(label, weight, capacity);
                add_to_list(&mut list, label, weight);
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

    #[test]
    fn the_bound_equals_the_example_of_the_specification() {
        let (vw, paper) = (RecallBound::Vw, RecallBound::Paper);
        assert!((recall_bound(172.0, 600.0, 1.0, vw) - 0.26231).abs() < 5e-6);
        // Eq. 1 of the paper: 172/600 - sqrt(172/600 * 428/600 / 600) - 1/600.
        assert!((recall_bound(172.0, 600.0, 1.0, paper) - 0.26654).abs() < 5e-6);
        for form in [vw, paper] {
            assert_eq!(recall_bound(0.0, 0.0, 1.0, form).to_bits(), 0);
        }
    }

    proptest! {
        #[test]
        fn updated_entropy_equals_recomputed_entropy(stream in prop::collection::vec((0usize..6, 1u8..5), 1..60)) {
            let mut counts = [0.0f64; 6];
            let (mut h, mut n) = (0.0, 0.0);
            for (label, d) in stream {
                let d = f64::from(d);
                let cost = entropy_cost(h, n, counts[label], d);
                let after = entropy_after(h, n, counts[label], d);
                prop_assert!((cost - ((n + d) * after - n * h)).abs() < 1e-9);
                h = after;
                n += d;
                counts[label] += d;
                let entropy: f64 = counts.iter().filter(|&&c| c > 0.0).map(|c| -c / n * (c / n).ln()).sum();
                prop_assert!((h - entropy).abs() < 1e-9, "{h} {entropy}");
            }
        }

        #[test]
        fn the_bound_is_below_the_recall(mass in 0u32..1000, more in 0u32..1000, hyper in 0.0f64..20.0) {
            let n = f64::from(mass + more);
            for form in [RecallBound::Vw, RecallBound::Paper] {
                let bound = recall_bound(f64::from(mass), n, hyper, form);
                prop_assert!(bound >= 0.0 && f64::from(bound) * n <= f64::from(mass) + 1e-3);
            }
        }
    }
}
