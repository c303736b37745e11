//! What a trained node does to its examples, by the definitions of the paper.

use super::objective::{Lambdas, Sums, Terms};

/// The objective of a node and the two properties that it stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeStats {
    /// J and its terms.
    pub terms: Terms,
    /// beta = max_j |P_j - mean_l P_l|; 0: all children are reached equally often.
    pub balancedness: f64,
    /// alpha = (1/M) sum_j sum_i pi_i min(P_j^i, sum_l P_l^i - P_j^i); 0: no label
    /// is at two children.
    pub purity: f64,
}

/// One of the numbers.
type Number = fn(&NodeStats) -> f64;

impl NodeStats {
    /// Each of the numbers, by name.
    pub const NAMED: [(&'static str, Number); 6] = [
        ("j", |stats| stats.terms.j),
        ("balance", |stats| stats.terms.balance),
        ("class_integrity", |stats| stats.terms.integrity),
        ("multiway_penalty", |stats| stats.terms.penalty),
        ("balancedness", |stats| stats.balancedness),
        ("purity", |stats| stats.purity),
    ];

    /// Of a node that was not trained.
    pub const NONE: Self = Self {
        terms: Terms::NONE,
        balancedness: f64::NAN,
        purity: f64::NAN,
    };
}

/// Sums over the examples of a trained node, each of which is seen once.
#[derive(Debug)]
pub struct Exact<const M: usize, const P: usize> {
    sums: Sums<M, P>,
    /// S_j^i: clamped margins of the examples of each label.
    of_label: Vec<[f64; M]>,
    labels_seen: f64,
}

impl<const M: usize, const P: usize> Exact<M, P> {
    /// Of `n_labels` labels.
    pub fn new(lambdas: Lambdas, n_labels: usize) -> Self {
        Self {
            sums: Sums::new(lambdas, n_labels),
            of_label: vec![[0.0; M]; n_labels],
            labels_seen: 0.0,
        }
    }

    /// Takes in an example.
    pub fn add(&mut self, labels: &[u32], weight: f64, margins: &[f32; M]) {
        let reached = margins.map(|margin| margin.clamp(0.0, 1.0));
        self.sums.add(labels, weight, &reached);
        self.labels_seen += weight * labels.len() as f64;
        for &label in labels {
            let sums = &mut self.of_label[label as usize];
            for j in 0..M {
                sums[j] += weight * f64::from(reached[j]);
            }
        }
    }

    /// What they come to.
    pub fn stats(&self) -> NodeStats {
        let shares = self.sums.shares();
        let mean = shares.iter().sum::<f64>() / M as f64;
        let mut mixed = 0.0;
        for sums in &self.of_label {
            let all: f64 = sums.iter().sum();
            mixed += sums.iter().map(|&s| s.min(all - s)).sum::<f64>();
        }
        NodeStats {
            terms: self.sums.terms(),
            balancedness: shares.iter().map(|p| (p - mean).abs()).fold(0.0, f64::max),
            purity: mixed / (M as f64 * self.labels_seen),
        }
    }
}
