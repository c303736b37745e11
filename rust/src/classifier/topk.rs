//! The k best labels.

/// Collects the k labels of highest score, best first, equal scores in the
/// order of the labels. Meant for small k: an insertion costs O(k).
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    best: Vec<(u32, f32)>,
}

impl TopK {
    /// Label where there are fewer than k.
    pub const NO_LABEL: i32 = -1;

    /// For the `k` best.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            best: Vec::with_capacity(k + 1),
        }
    }

    /// Forgets all labels.
    pub fn clear(&mut self) {
        self.best.clear();
    }

    /// The score that a label of a higher number must exceed to be taken in.
    #[inline]
    pub fn bar(&self) -> f32 {
        match self.best.last() {
            Some(&(_, score)) if self.best.len() == self.k => score,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Takes a label in if it is among the best so far.
    #[inline]
    pub fn push(&mut self, label: u32, score: f32) {
        if self.best.len() == self.k {
            match self.best.last() {
                Some(&last) if ahead((label, score), last) => {}
                _ => return,
            }
        }
        let at = self
            .best
            .partition_point(|&other| ahead(other, (label, score)));
        self.best.insert(at, (label, score));
        self.best.truncate(self.k);
    }

    /// As [`Self::push`] for a label that may have come before: its highest score counts.
    #[inline]
    pub fn push_again(&mut self, label: u32, score: f32) {
        if let Some(at) = self.best.iter().position(|&(known, _)| known == label) {
            if self.best[at].1 >= score {
                return;
            }
            self.best.remove(at);
        }
        self.push(label, score);
    }

    /// Writes labels and scores, best first, and fills up with
    /// [`Self::NO_LABEL`] and minus infinity.
    pub fn write(&self, labels: &mut [i32], scores: &mut [f32]) {
        labels.fill(Self::NO_LABEL);
        scores.fill(f32::NEG_INFINITY);
        for (&(label, score), (l, s)) in self.best.iter().zip(labels.iter_mut().zip(scores)) {
            *l = label as i32;
            *s = score;
        }
    }
}

/// Leaves the `n` labels of highest score, of equal ones the smaller, in any order.
pub fn keep_best(scored: &mut Vec<(u32, f32)>, n: usize) {
    if n < scored.len() {
        scored.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(n);
    }
}

#[inline]
fn ahead(a: (u32, f32), b: (u32, f32)) -> bool {
    a.1 > b.1 || (a.1 == b.1 && a.0 < b.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_sorting(scores in prop::collection::vec(0i8..6, 0..40), k in 0usize..8) {
            let mut top = TopK::new(k);
            for (label, &score) in scores.iter().enumerate() {
                top.push(label as u32, f32::from(score));
            }
            let mut all: Vec<(i8, i32)> = scores.iter().enumerate().map(|(l, &s)| (-s, l as i32)).collect();
            all.sort_unstable();
            let (mut labels, mut values) = (vec![0; k], vec![0.0; k]);
            top.write(&mut labels, &mut values);
            for i in 0..k {
                let expected = all.get(i).map_or((-1, f32::NEG_INFINITY), |&(s, l)| (l, f32::from(-s)));
                prop_assert_eq!((labels[i], values[i]), expected);
            }
        }

        #[test]
        fn of_a_label_that_comes_again_the_highest_score_counts(
            pushed in prop::collection::vec((0u32..9, 0i8..6), 0..40),
            k in 0usize..12,
        ) {
            let (mut top, mut highest) = (TopK::new(k), std::collections::BTreeMap::new());
            for &(label, score) in &pushed {
                top.push_again(label, f32::from(score));
                let known = highest.entry(label).or_insert(score);
                *known = score.max(*known);
            }
            let mut once = TopK::new(k);
            for (&label, &score) in &highest {
                once.push(label, f32::from(score));
            }
            prop_assert_eq!(top.best, once.best);
        }
    }
}
