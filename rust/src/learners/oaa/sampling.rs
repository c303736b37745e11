//! Negative classes drawn at random, so that an example does not cost all K.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws wrong classes as Vowpal Wabbit's `--oaa_subsample` does: round and
/// round through all classes in one random order, which is as good as drawing
/// without replacement, and even over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NegativeSampler {
    n: u32,
    order: Vec<u32>,
    /// Position of the next class in `order`.
    pub position: usize,
}

impl NegativeSampler {
    /// None where `n` wrong classes are all there are.
    pub fn new(n: u32, n_classes: usize, seed: u64) -> Option<Self> {
        if n as usize >= n_classes {
            return None;
        }
        let mut order: Vec<u32> = (0..n_classes as u32).collect();
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        Some(Self {
            n,
            order,
            position: 0,
        })
    }

    /// By how much a negative drawn counts more than if all were learned: K/n.
    pub fn weight(&self) -> f32 {
        self.order.len() as f32 / self.n as f32
    }

    /// Replaces `into` by classes that are not among `labels`.
    pub fn draw(&mut self, labels: &[u32], into: &mut Vec<u32>) {
        into.clear();
        let n = (self.n as usize).min(self.order.len() - labels.len());
        while into.len() < n {
            let class = self.order[self.position];
            self.position = (self.position + 1) % self.order.len();
            if labels.binary_search(&class).is_err() {
                into.push(class);
            }
        }
    }
}
