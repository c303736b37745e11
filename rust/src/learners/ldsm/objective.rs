//! The objective of a node (Eq. 2 of the paper) and the search for the directions
//! that lower it most (Algorithm 3).
//!
//! The state is sums instead of the paper's running means: multiplied by C, the number of labels
//! seen, the objective reads
//!
//! ```text
//! C J = sum_{j<l} |T_j - T_l| - lambda1 sum_k sum_{j<l} |S_j^k - S_l^k| + lambda2 |sum_j T_j - C|
//! ```
//!
//! with T_j = C P_j and S_j^k = l(k) P_j^k, without quotients. Only differences of two children
//! enter, and an example moves a difference by +1 if it goes to the first child only, by -1 if it
//! goes to the second only, and else by 0. So one pass over the labels of an example sums three
//! values per pair of children, from which the costs of all 2^M - 1 sets of directions follow:
//! O(|y| M^2 + 2^M) per example instead of O(|y| 2^M M^2).

use crate::file::is_statistic;
use crate::record;

/// Weights of the objective's terms.
#[derive(Debug, Clone, Copy)]
pub struct Lambdas {
    pub integrity: f64,
    pub penalty: f64,
}

/// The objective and its terms; `j = balance - lambda1 integrity + lambda2 penalty`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectiveTerms {
    pub j: f64,
    /// B, the imbalance of the children.
    pub balance: f64,
    /// CI, the integrity of the labels: larger if each label goes to one child.
    pub integrity: f64,
    /// MWP, the penalty for examples that go to more or fewer children than one.
    pub penalty: f64,
}

record!(ObjectiveTerms {
    j: is_statistic,
    balance: is_statistic,
    integrity: is_statistic,
    penalty: is_statistic
});

/// Running sums of a node with M children, which are P = M (M - 1) / 2 pairs.
#[derive(Debug, Clone)]
pub struct ObjectiveSums<const M: usize, const P: usize> {
    lambdas: Lambdas,
    /// C, the weight of the labels seen.
    pub labels_seen: f64,
    /// T_j, sums of clamped margins, in which an example counts once per label.
    margins: [f64; M],
    /// S_j^k - S_l^k of each label and pair.
    label_gaps: Vec<[f64; P]>,
}

/// The contribution of a pair of children to the objective if an example goes to neither or both of
/// them, to the first only, to the second only.
type PairCosts = [f64; 3];

/// Largest M: with more children, the 2^M - 1 sets of directions are too many to compare for each
/// example.
pub const MAX_CHILDREN: usize = 8;
const MAX_SETS: usize = 1 << MAX_CHILDREN;

impl<const M: usize, const P: usize> ObjectiveSums<M, P> {
    pub fn new(lambdas: Lambdas, n_labels: usize) -> Self {
        Self {
            lambdas,
            labels_seen: 0.0,
            margins: [0.0; M],
            label_gaps: vec![[0.0; P]; n_labels],
        }
    }

    /// Returns the set of directions, as bits, that minimizes the objective once an example of these
    /// labels and `weight` has gone there. `coin` decides between equal sets; the set of all
    /// directions never wins a tie.
    pub fn best_directions(
        &self,
        labels: &[u32],
        weight: f64,
        mut coin: impl FnMut() -> bool,
    ) -> u32 {
        let costs = Self::cost_of_all_sets(&self.pair_costs(labels, weight));
        let n = weight * labels.len() as f64;
        let above = self.margins.iter().sum::<f64>() - self.labels_seen - n;
        // The penalty depends on the number of directions only.
        let mut penalties = [0.0; MAX_CHILDREN + 1];
        for (directions, penalty) in penalties[..=M].iter_mut().enumerate() {
            *penalty = self.lambdas.penalty * (above + n * directions as f64).abs();
        }
        let everywhere = (1u32 << M) - 1;
        let (mut best, mut lowest) = (everywhere, f64::INFINITY);
        for set in 1..=everywhere {
            let cost = costs[set as usize] + penalties[set.count_ones() as usize];
            if cost < lowest || (cost == lowest && set != everywhere && coin()) {
                (best, lowest) = (set, cost);
            }
        }
        best
    }

    /// Returns the total cost of the pairs for each set of directions.
    ///
    /// Children are added one by one, and each doubles the number of sets. The cost of a set without
    /// or with the new child is the cost of the set so far plus that of the new child's pairs. The
    /// latter is summed for all sets in the same way.
    fn cost_of_all_sets(pair_costs: &[PairCosts; P]) -> [f64; MAX_SETS] {
        let mut costs = [0.0; MAX_SETS];
        for j in 1..M {
            let n = 1 << j;
            let mut without = [0.0; MAX_SETS / 2];
            let mut with = [0.0; MAX_SETS / 2];
            for i in 0..j {
                let [both_or_none, first, second] = pair_costs[Self::pair(i, j)];
                let n = 1 << i;
                for set in 0..n {
                    without[n + set] = without[set] + first;
                    without[set] += both_or_none;
                    with[n + set] = with[set] + both_or_none;
                    with[set] += second;
                }
            }
            for set in 0..n {
                costs[n + set] = costs[set] + with[set];
                costs[set] += without[set];
            }
        }
        costs
    }

    /// Returns the costs of each pair for an example of these labels and `weight`.
    fn pair_costs(&self, labels: &[u32], weight: f64) -> [PairCosts; P] {
        // Every other label is added to separate sums, so that additions need not wait for each other.
        let mut halves = [[[0.0f64; P]; 3]; 2];
        let mut add = |half: usize, label: u32| {
            let gaps = &self.label_gaps[label as usize];
            let [still, first, second] = &mut halves[half];
            for pair in 0..P {
                still[pair] += gaps[pair].abs();
                first[pair] += (gaps[pair] + weight).abs();
                second[pair] += (gaps[pair] - weight).abs();
            }
        };
        let (twos, last) = labels.as_chunks::<2>();
        for &[a, b] in twos {
            add(0, a);
            add(1, b);
        }
        last.iter().for_each(|&label| add(0, label));
        let [mut integrity, other] = halves;
        for (sum, other) in integrity
            .as_flattened_mut()
            .iter_mut()
            .zip(other.as_flattened())
        {
            *sum += other;
        }
        let n = weight * labels.len() as f64;
        let mut pair_costs = [[0.0; 3]; P];
        for (pair, &(j, l)) in Self::PAIRS.iter().enumerate() {
            let gap = self.margins[j] - self.margins[l];
            for (case, moved) in [0.0, n, -n].into_iter().enumerate() {
                let unevenness = (gap + moved).abs();
                pair_costs[pair][case] =
                    unevenness - self.lambdas.integrity * integrity[case][pair];
            }
        }
        pair_costs
    }

    /// Adds an example of these labels and clamped margins.
    pub fn add(&mut self, labels: &[u32], weight: f64, clamped: &[f32; M]) {
        let n = weight * labels.len() as f64;
        self.labels_seen += n;
        let mut moved = [0.0; P];
        for (moved, &(j, l)) in moved.iter_mut().zip(&Self::PAIRS) {
            *moved = weight * (f64::from(clamped[j]) - f64::from(clamped[l]));
        }
        for (sum, &margin) in self.margins.iter_mut().zip(clamped) {
            *sum += n * f64::from(margin);
        }
        for &label in labels {
            let gaps = &mut self.label_gaps[label as usize];
            for pair in 0..P {
                gaps[pair] += moved[pair];
            }
        }
    }

    /// Returns the objective and its terms over all examples added.
    pub fn terms(&self) -> ObjectiveTerms {
        let c = self.labels_seen;
        let pairs = Self::PAIRS.iter();
        let balance: f64 = pairs
            .map(|&(j, l)| (self.margins[j] - self.margins[l]).abs())
            .sum();
        let integrity: f64 = self.label_gaps.iter().flatten().map(|gap| gap.abs()).sum();
        let penalty = (self.margins.iter().sum::<f64>() - c).abs();
        let (balance, integrity, penalty) = (balance / c, integrity / c, penalty / c);
        let gain = self.lambdas.integrity * integrity;
        ObjectiveTerms {
            j: balance - gain + self.lambdas.penalty * penalty,
            balance,
            integrity,
            penalty,
        }
    }

    /// Returns P_j.
    pub fn shares(&self) -> [f64; M] {
        self.margins.map(|sum| sum / self.labels_seen)
    }

    /// Returns the number of the pair of children i < j.
    const fn pair(i: usize, j: usize) -> usize {
        i * (2 * M - i - 1) / 2 + j - i - 1
    }

    /// The pairs of children i < j.
    const PAIRS: [(usize, usize); P] = {
        assert!(P == M * (M - 1) / 2, "P must be the number of pairs");
        let mut pairs = [(0, 0); P];
        let (mut at, mut j) = (0, 0);
        while j < M {
            let mut l = j + 1;
            while l < M {
                pairs[at] = (j, l);
                at += 1;
                l += 1;
            }
            j += 1;
        }
        pairs
    };
}

/// The objective of a trained node, its balancedness and its purity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeStats {
    pub terms: ObjectiveTerms,
    /// beta = max_j |P_j - mean_l P_l|; 0 if all children are reached equally often.
    pub balancedness: f64,
    /// alpha = (1/M) sum_j sum_i pi_i min(P_j^i, sum_l P_l^i - P_j^i); 0 if no label goes to two
    /// children.
    pub purity: f64,
}

record!(NodeStats {
    terms,
    balancedness: is_statistic,
    purity: is_statistic
});

type Statistic = fn(&NodeStats) -> f64;

impl NodeStats {
    /// The columns of reports.
    pub const COLUMNS: [(&'static str, Statistic); 6] = [
        ("j", |stats| stats.terms.j),
        ("balance", |stats| stats.terms.balance),
        ("class_integrity", |stats| stats.terms.integrity),
        ("multiway_penalty", |stats| stats.terms.penalty),
        ("balancedness", |stats| stats.balancedness),
        ("purity", |stats| stats.purity),
    ];
}

impl Default for NodeStats {
    /// Returns NaN, the statistics of a node that was not trained.
    fn default() -> Self {
        let [j, balance, integrity, penalty, balancedness, purity] = [f64::NAN; 6];
        Self {
            terms: ObjectiveTerms {
                j,
                balance,
                integrity,
                penalty,
            },
            balancedness,
            purity,
        }
    }
}

/// Sums over one pass of a trained node's examples.
pub struct NodeStatsSums<const M: usize, const P: usize> {
    objective: ObjectiveSums<M, P>,
    /// S_j^i, sums of clamped margins of the examples of each label.
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
