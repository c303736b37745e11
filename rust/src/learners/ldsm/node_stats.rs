//! How well a trained node parts its examples: its objective and the properties
//! that the paper defines, measured over the node's examples.

use super::objective::{Lambdas, ObjectiveSums, ObjectiveTerms};
use crate::file::is_statistic;
use crate::record;

/// The objective of a trained node, its balancedness and its purity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeStats {
    pub terms: ObjectiveTerms,
    /// beta = max_j |P_j - mean_l P_l|; 0: all children are reached equally often.
    pub balancedness: f64,
    /// alpha = (1/M) sum_j sum_i pi_i min(P_j^i, sum_l P_l^i - P_j^i); 0: no label
    /// is at two children.
    pub purity: f64,
}

record!(NodeStats {
    terms,
    balancedness: is_statistic,
    purity: is_statistic
});

type Number = fn(&NodeStats) -> f64;

impl NodeStats {
    pub const NAMED: [(&'static str, Number); 6] = [
        ("j", |stats| stats.terms.j),
        ("balance", |stats| stats.terms.balance),
        ("class_integrity", |stats| stats.terms.integrity),
        ("multiway_penalty", |stats| stats.terms.penalty),
        ("balancedness", |stats| stats.balancedness),
        ("purity", |stats| stats.purity),
    ];
}

impl Default for NodeStats {
    /// Those of a node that was not trained.
    fn default() -> Self {
        let terms = ObjectiveTerms {
            j: f64::NAN,
            balance: f64::NAN,
            integrity: f64::NAN,
            penalty: f64::NAN,
        };
        Self {
            terms,
            balancedness: f64::NAN,
            purity: f64::NAN,
        }
    }
}

/// Sums over the examples of a trained node, each of which is seen once.
pub struct NodeStatsSums<const M: usize, const P: usize> {
    objective: ObjectiveSums<M, P>,
    /// S_j^i: clamped margins of the examples of each label.
    label_margins: Vec<[f64; M]>,
}

impl<const M: usize, const P: usize> NodeStatsSums<M, P> {
    pub fn new(lambdas: Lambdas, n_labels: usize) -> Self {
        Self {
            objective: ObjectiveSums::new(lambdas, n_labels),
            label_margins: vec![[0.0; M]; n_labels],
        }
    }

    pub fn add(&mut self, labels: &[u32], weight: f64, margins: &[f32; M]) {
        let clamped = margins.map(|margin| margin.clamp(0.0, 1.0));
        self.objective.add(labels, weight, &clamped);
        for &label in labels {
            let sums = &mut self.label_margins[label as usize];
            for j in 0..M {
                sums[j] += weight * f64::from(clamped[j]);
            }
        }
    }

    pub fn stats(&self) -> NodeStats {
        let shares = self.objective.shares();
        let mean = shares.iter().sum::<f64>() / M as f64;
        let mut mixed = 0.0;
        for sums in &self.label_margins {
            let all: f64 = sums.iter().sum();
            mixed += sums.iter().map(|&s| s.min(all - s)).sum::<f64>();
        }
        NodeStats {
            terms: self.objective.terms(),
            balancedness: shares.iter().map(|p| (p - mean).abs()).fold(0.0, f64::max),
            purity: mixed / (M as f64 * self.objective.labels_seen),
        }
    }
}
