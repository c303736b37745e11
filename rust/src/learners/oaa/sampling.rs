//! Negative classes drawn at random, so that an example does not cost all K.

use crate::alloc::collect;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws wrong classes as Vowpal Wabbit's `--oaa_subsample` does: round and
/// round through all classes in one random order, which is as good as drawing
/// without replacement, and even over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NegativeSampler {
    n: u32,
    /// Empty where all wrong classes are learned.
    order: Vec<u32>,
    /// Position of the next class in `order`.
    pub position: usize,
}

impl NegativeSampler {
    /// For `n` wrong classes per example; all of them without `n`, or where that is all.
    pub fn new(n: Option<u32>, n_classes: usize, seed: u64) -> Self {
        let n = n.filter(|&n| (n as usize) < n_classes);
        let mut order: Vec<u32> = collect(0..n.map_or(0, |_| n_classes as u32));
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        Self {
            n: n.unwrap_or_default(),
            order,
            position: 0,
        }
    }

    /// By how much a negative drawn counts more than if all were learned, K/n; none if they are.
    pub fn weight(&self) -> Option<f32> {
        (self.n > 0).then(|| self.order.len() as f32 / self.n as f32)
    }

    /// Replaces `into` by classes that are not among `labels`.
    pub fn draw(&mut self, labels: &[u32], into: &mut Vec<u32>) {
        into.clear();
        let n = (self.n as usize).min(self.order.len().saturating_sub(labels.len()));
        while into.len() < n {
            let at = self.position % self.order.len();
            self.position = at + 1;
            let class = self.order[at];
            if labels.binary_search(&class).is_err() {
                into.push(class);
            }
        }
    }
}
