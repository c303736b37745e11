//! Labels inside the tree: their ids, and the histogram of a node with its entropy and the bound
//! on the recall of its candidates.

use crate::error::{Error, Result};
use crate::file::is_count;
use crate::linear::Table;
use crate::simd::prefetch;
use crate::tree::PackedF64;
use crate::{persist, record, stored_as};

/// A label's id inside the tree and the scorers, by the order of its first example; [`LabelIndex`]
/// converts it to its class number. Frequent labels turn up early and so have low ids: most
/// histograms and columns know them, and what is kept of them lies side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct LocalId(pub u32);

impl LocalId {
    /// Of a class without an example.
    pub const NONE: Self = Self(u32::MAX);

    /// As an index into arrays of one element per label.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// Local ids of class labels, and class labels of local ids.
#[derive(Debug, Clone)]
pub struct LabelIndex {
    id_of: Vec<LocalId>,
    label_of: Vec<u32>,
}

impl LabelIndex {
    /// For labels below `n_classes`, none of which has an id yet.
    pub fn new(n_classes: usize) -> Self {
        Self {
            id_of: vec![LocalId::NONE; n_classes],
            label_of: Vec::new(),
        }
    }

    /// Adds labels without an id, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        self.id_of.resize(n_classes, LocalId::NONE);
    }

    /// The id of `label`; a new label gets the next one.
    pub fn insert(&mut self, label: u32) -> LocalId {
        let id = &mut self.id_of[label as usize];
        if *id == LocalId::NONE {
            *id = LocalId(self.label_of.len() as u32);
            self.label_of.push(label);
        }
        *id
    }

    #[inline]
    pub fn label(&self, id: LocalId) -> u32 {
        self.label_of[id.at()]
    }

    /// The class labels in the order of their ids.
    pub fn labels(&self) -> &[u32] {
        &self.label_of
    }

    /// Number of classes, with an example or without.
    pub fn n_classes(&self) -> usize {
        self.id_of.len()
    }

    /// Restores the ids of the labels, none of which has one yet.
    fn restore(&mut self) -> Result<()> {
        for (id, &label) in (0..).zip(&self.label_of) {
            match self.id_of.get_mut(label as usize) {
                Some(free) if *free == LocalId::NONE => *free = LocalId(id),
                _ => return Err(Error::data("the labels of the local ids")),
            }
        }
        Ok(())
    }
}

stored_as! {
    LocalId as u32: |id| id.0, LocalId;
}

persist!(LabelIndex {
    Columns labels = label_of;
} check restore);

/// A set of labels that is emptied at every example, at no cost.
#[derive(Debug, Clone, Default)]
pub struct LabelSet {
    /// The round in which each label was last a member.
    round_of: Vec<u32>,
    round: u32,
}

impl LabelSet {
    /// Replaces its members by `labels`.
    pub fn reset(&mut self, labels: &[LocalId]) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.round_of.fill(0);
            self.round = 1;
        }
        for &label in labels {
            self.insert(label);
        }
    }

    /// Adds a label. Returns whether it is new.
    #[inline]
    pub fn insert(&mut self, label: LocalId) -> bool {
        if label.at() >= self.round_of.len() {
            self.round_of.resize(label.at() + 1, 0);
        }
        std::mem::replace(&mut self.round_of[label.at()], self.round) != self.round
    }
}

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
        let is_about = |sum: f64, other: f64| (sum - other).abs() <= MAX_ROUNDING * other;
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
const MAX_ROUNDING: f64 = 1e-3;

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

/// Entropy (nats) of a histogram of sum `n` and entropy `h`, after `d` more of a
/// label of which it held `c`.
///
/// n H changes by n ln n terms only, whatever the number of labels.
#[inline]
pub fn entropy_after(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = n + d;
    if after <= 0.0 {
        return 0.0;
    }
    let others = n - c;
    let share = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
    let mut entropy = h;
    if n > 0.0 {
        // Without this label, over what remains; then all of it over more.
        entropy = (h + share(c / n)) * (n / after) - (n / after).ln() * (others / after);
    }
    entropy - share((c + d) / after)
}

/// By how much n H of a child would grow if `d` more of a label came to it: what
/// routing an example there costs.
#[inline]
pub fn entropy_cost(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = entropy_after(h, n, c, d);
    n * (after - h) + d * after
}

/// Lower bound on the recall of candidates that held `mass` of the `n` seen.
///
/// Eq. 1 of the paper, the multiplier `hyper` in place of its unknown constant.
/// In the authors' program's precision: descent hangs on which of two is larger.
#[inline]
pub fn recall_bound(mass: f64, n: f64, hyper: f64) -> f32 {
    let (mass, n, hyper) = (mass as f32, n as f32, hyper as f32);
    let f = mass / n;
    let deviation = (f * (1.0 - f) / n).sqrt();
    // The constant of the empirical Bernstein bound.
    let worst = 15.0 / (18f32.sqrt() * n);
    // NaN, of a node that has seen nothing, becomes 0.
    (f - hyper.sqrt() * deviation - hyper * worst).max(0.0)
}

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

    #[test]
    fn the_bound_of_the_specification() {
        assert!((recall_bound(172.0, 600.0, 1.0) - 0.26231).abs() < 5e-6);
        assert_eq!(recall_bound(0.0, 0.0, 1.0).to_bits(), 0);
    }

    proptest! {
        #[test]
        fn entropy_is_kept_up(stream in prop::collection::vec((0usize..6, 1u8..5), 1..60)) {
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
                let plain: f64 = counts.iter().filter(|&&c| c > 0.0).map(|c| -c / n * (c / n).ln()).sum();
                prop_assert!((h - plain).abs() < 1e-9, "{h} {plain}");
            }
        }

        #[test]
        fn the_bound_is_below_the_recall(mass in 0u32..1000, more in 0u32..1000, hyper in 0.0f64..20.0) {
            let n = f64::from(mass + more);
            let bound = recall_bound(f64::from(mass), n, hyper);
            prop_assert!(bound >= 0.0 && f64::from(bound) * n <= f64::from(mass) + 1e-3);
        }
    }
}
