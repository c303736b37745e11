//! Training one node: Algorithm 2 of the paper.
//!
//! An epoch takes O(M) per value of an example, and O(|y| M^2 + 2^M) per example for
//! the search of its directions.

use std::sync::{Mutex, PoisonError};

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::dense::DenseRegressors;
use super::examples::{Examples, NodeData};
use super::nag::NagRegressors;
use super::node_stats::NodeStats;
use super::objective::{Lambdas, ObjectiveSums};
use super::params::{NodeLoss, Params};
use super::routing::{partition, NodeExamples};
use crate::control::Control;
use crate::error::Result;
use crate::simd::dispatched;

/// What the training of all nodes has in common.
#[derive(Debug)]
pub struct TrainingContext<'a> {
    pub examples: &'a Examples,
    pub params: &'a Params,
    /// Whether to standardise and take plain steps.
    pub is_dense: bool,
    pub control: &'a Control,
    /// Local numbers that no thread is using, so that not every node makes its own.
    pub local_ids: Mutex<Vec<Vec<u32>>>,
}

/// The regressors of a trained node and the record of its training; empty of an untrained one.
#[derive(Default)]
pub struct TrainedNode {
    /// Columns with a weight that is not 0, increasing.
    pub columns: Vec<u32>,
    /// M weights for each of these.
    pub weights: Vec<f32>,
    /// The objective, measured once more on the trained node.
    pub stats: NodeStats,
    /// Running J at the end of each epoch.
    pub curve: Vec<f32>,
}

/// A trained node and the examples that it sends to each child.
pub struct Split {
    pub node: TrainedNode,
    pub children: Vec<NodeExamples>,
}

impl Split {
    /// Whether every child of a node of `n_examples` got some of them, and none all.
    pub fn is_useful(&self, n_examples: usize) -> bool {
        let mut sizes = self.children.iter().map(|child| child.ids.len());
        sizes.all(|n| n > 0 && n < n_examples)
    }
}

impl TrainingContext<'_> {
    /// Trains a node on the examples `ids`, in that order, and sends them on.
    pub fn train(&self, ids: &[u32], seed: u64) -> Result<Split> {
        match self.params.arity {
            2 => self.train_arity::<2, 1>(ids, seed),
            3 => self.train_arity::<3, 3>(ids, seed),
            4 => self.train_arity::<4, 6>(ids, seed),
            5 => self.train_arity::<5, 10>(ids, seed),
            6 => self.train_arity::<6, 15>(ids, seed),
            7 => self.train_arity::<7, 21>(ids, seed),
            _ => self.train_arity::<8, 28>(ids, seed),
        }
    }

    /// A copy of the examples `ids`.
    fn copy(&self, ids: &[u32]) -> NodeData {
        let spare = || self.local_ids.lock();
        let spare = || spare().unwrap_or_else(PoisonError::into_inner);
        let free = spare().pop();
        let mut local_ids = free.unwrap_or_else(|| self.examples.no_local_ids());
        let data = NodeData::new(self.examples, ids, &mut local_ids);
        spare().push(local_ids);
        data
    }

    fn train_arity<const M: usize, const P: usize>(&self, ids: &[u32], seed: u64) -> Result<Split> {
        let (examples, params) = (self.examples, self.params);
        let data = self.copy(ids);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let small = 1.0 / examples.width as f32;
        let mut first_weights = || [0.0; M].map(|_: f32| random.random_range(-0.5..0.5) * small);
        let first_weights = data.columns.iter().map(|_| first_weights());
        let rate = params.learning_rate as f32;
        let mut regressors = if self.is_dense {
            Regressors::Dense(DenseRegressors::new(&data.examples, first_weights, rate))
        } else {
            Regressors::Sparse(NagRegressors::new(first_weights, rate))
        };
        let lambdas = Lambdas {
            integrity: params.lambda1,
            penalty: params.lambda2,
        };
        let mut sums = ObjectiveSums::<M, P>::new(lambdas, data.labels.len());
        let mut curve: Vec<f32> = Vec::new();
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        for _ in 0..params.n_epochs {
            if params.reshuffle {
                order.shuffle(&mut random);
            }
            epoch::<M, P>(
                &data.examples,
                &order,
                params.loss,
                &mut regressors,
                &mut sums,
                &mut random,
                self.control,
            )?;
            let j = sums.terms().j as f32;
            let gains_little = |before: &f32| f64::from(before - j) < params.min_gain;
            let stops = params.early_stopping && curve.last().is_some_and(gains_little);
            curve.push(j);
            if stops {
                break;
            }
        }
        let weights: Vec<[f32; M]> = match regressors {
            Regressors::Sparse(nag) => nag.weights(small).collect(),
            Regressors::Dense(dense) => {
                let constant = examples.width as u32 - 1;
                let at = data.columns.iter().position(|&column| column == constant);
                dense.weights(at.expect("every example has the constant"), small)
            }
        };
        let (children, stats) = partition::<M, P>(&data, ids, &weights, lambdas);
        let mut kept: Vec<usize> = (0..weights.len())
            .filter(|&feature| weights[feature].iter().any(|&w| w != 0.0))
            .collect();
        kept.sort_unstable_by_key(|&feature| data.columns[feature]);
        let node = TrainedNode {
            columns: kept.iter().map(|&feature| data.columns[feature]).collect(),
            weights: kept.iter().flat_map(|&feature| weights[feature]).collect(),
            stats,
            curve,
        };
        Ok(Split { node, children })
    }
}

/// The regressors of a node, by the kind of its rows.
enum Regressors<const M: usize> {
    Sparse(NagRegressors<M>),
    Dense(DenseRegressors<M>),
}

dispatched! {
/// Trains the regressors on all examples once.
fn epoch[M, P](
    data: &Examples,
    order: &[u32],
    loss: NodeLoss,
    regressors: &mut Regressors<M>,
    sums: &mut ObjectiveSums<M, P>,
    random: &mut Pcg64Mcg,
    control: &Control,
) -> Result<()> {
    for (at, &i) in order.iter().enumerate() {
        if at % Control::CHUNK == 0 {
            control.check()?;
        }
        let labels = data.labels(i);
        let weight = data.weight(i);
        let directions = sums.best_directions(labels, f64::from(weight), || random.random());
        let mut targets = [0.0; M];
        for (j, target) in targets.iter_mut().enumerate() {
            *target = (directions >> j & 1) as f32;
        }
        let mut margins;
        match regressors {
            Regressors::Sparse(nag) => {
                let (row, values) = data.row(i);
                margins = nag.observe(row, values);
                let mut gradients = [0.0; M];
                for j in 0..M {
                    gradients[j] = weight * (loss.probability(margins[j]) - targets[j]);
                }
                nag.step(row, values, &gradients, &mut margins);
            }
            Regressors::Dense(dense) => {
                margins = dense.margins(i);
                let mut steps = [0.0; M];
                for j in 0..M {
                    steps[j] = dense.step_length(i, weight, loss, targets[j], margins[j]);
                }
                dense.step(i, &steps, &mut margins);
            }
        }
        let clamped = margins.map(|margin| margin.clamp(0.0, 1.0));
        sums.add(labels, f64::from(weight), &clamped);
    }
    Ok(())
}
}
