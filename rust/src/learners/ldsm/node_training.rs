//! Training one node: Algorithm 4 of the paper.
//!
//! An epoch takes O(M) per value of an example, and O(|y| M^2 + 2^M) per example for
//! the search of its directions.

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::arity::with_arity;
use super::dense::DenseRegressors;
use super::examples::{Examples, NodeData};
use super::nag::NagRegressors;
use super::node_stats::{NodeStats, NodeStatsSums};
use super::objective::{Lambdas, ObjectiveSums};
use super::packed::{PackedList, PackedValues};
use super::params::{NodeLoss, Params};
use super::pruning::{kept_features, Kept};
use super::routing::{partition, NodeExamples};
use super::scratch::Scratch;
use crate::alloc::collect;
use crate::control::Control;
use crate::error::Result;
use crate::pool::Pool;
use crate::simd::dispatched;

/// What the training of all nodes has in common.
#[derive(Debug)]
pub struct TrainingContext<'a> {
    pub examples: &'a Examples,
    pub params: &'a Params,
    /// Whether to standardise and take plain steps.
    pub is_dense: bool,
    pub control: &'a Control,
    pub scratches: Pool<Scratch>,
}

/// The regressors of a trained node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainedNode {
    /// M weights for each column that has any, the constant left out.
    pub weights: PackedList,
    /// Those of the constant.
    pub biases: Vec<f32>,
}

/// A trained node, the examples that it sends to each child, and the record of its training.
pub struct Split {
    pub node: TrainedNode,
    pub children: Vec<NodeExamples>,
    /// The objective, measured once more on the trained node; where it was asked for.
    pub stats: NodeStats,
    /// Running J at the end of each epoch.
    pub curve: Vec<f32>,
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
        let scratch = &mut *self.scratches.lend(|| Scratch::new(self.examples));
        // The pairs of children are so many.
        with_arity!(self.params.arity, M => {
            self.train_arity::<M, { M * (M - 1) / 2 }>(ids, seed, scratch)
        })
    }

    fn train_arity<const M: usize, const P: usize>(
        &self,
        ids: &[u32],
        seed: u64,
        scratch: &mut Scratch,
    ) -> Result<Split> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let lambdas = Lambdas {
            integrity: self.params.lambda1,
            penalty: self.params.lambda2,
        };
        let most = self.params.max_updates.map_or(usize::MAX, |n| n as usize);
        let n_epochs = (most / ids.len()).clamp(1, self.params.n_epochs as usize);
        let Scratch { data, local_ids } = scratch;
        data.read(self.examples, ids, local_ids);
        let data = &*data;
        let (mut weights, curve) = self.learn::<M, P>(data, n_epochs, lambdas, &mut random)?;
        let node = self.pack(data, &mut weights);
        let bias = std::array::from_fn(|j| node.biases[j]);
        let mut stats = NodeStats::default();
        let children = if self.params.keep_statistics {
            let mut sums = NodeStatsSums::<M, P>::new(lambdas, data.labels.len());
            let children = partition(data, ids, &weights, bias, |i, margins| {
                let weight = data.examples.weight(i);
                sums.add(data.examples.labels(i), weight.into(), margins);
            });
            stats = sums.stats();
            children
        } else {
            partition(data, ids, &weights, bias, |_, _| {})
        };
        Ok(Split {
            node,
            children,
            stats,
            curve,
        })
    }

    /// The weights that regressors learn from `data`, by local feature, and the running J at the
    /// end of each epoch.
    fn learn<const M: usize, const P: usize>(
        &self,
        data: &NodeData,
        n_epochs: usize,
        lambdas: Lambdas,
        random: &mut Pcg64Mcg,
    ) -> Result<(Vec<[f32; M]>, Vec<f32>)> {
        let params = self.params;
        let small = 1.0 / self.examples.width as f32;
        let mut first_weights = || [0.0; M].map(|_: f32| random.random_range(-0.5..0.5) * small);
        let first_weights = data.columns.iter().map(|_| first_weights());
        let rate = params.learning_rate as f32;
        let mut regressors = if self.is_dense {
            Regressors::Dense(DenseRegressors::new(&data.examples, first_weights, rate))
        } else {
            Regressors::Sparse(NagRegressors::new(first_weights, rate))
        };
        let mut sums = ObjectiveSums::<M, P>::new(lambdas, data.labels.len());
        let mut curve: Vec<f32> = Vec::new();
        let mut order: Vec<u32> = collect(0..data.examples.len() as u32);
        for _ in 0..n_epochs {
            if params.reshuffle {
                order.shuffle(random);
            }
            epoch::<M, P>(
                &data.examples,
                &order,
                params.loss,
                &mut regressors,
                &mut sums,
                random,
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
        let weights = match regressors {
            Regressors::Sparse(nag) => collect(nag.weights(small)),
            Regressors::Dense(dense) => {
                let constant = self.constant(data);
                dense.weights(constant.expect("every example has the constant"), small)
            }
        };
        Ok((weights, curve))
    }

    /// The local feature that is the constant.
    fn constant(&self, data: &NodeData) -> Option<usize> {
        let constant = self.examples.width as u32 - 1;
        data.columns.iter().position(|&column| column == constant)
    }

    /// The weights that a node keeps, as it holds them; `weights` become those.
    fn pack<const M: usize>(&self, data: &NodeData, weights: &mut [[f32; M]]) -> TrainedNode {
        let constant = self.constant(data);
        let share = self.params.pruned_share;
        let Kept {
            features: mut kept,
            mean_dropped,
        } = kept_features(&data.examples, weights, constant, share);
        kept.sort_unstable_by_key(|&feature| data.columns[feature]);
        let biases = constant.map_or([0.0; M], |at| weights[at]);
        let values = kept.iter().flat_map(|&feature| weights[feature]).collect();
        let values = PackedValues::new(values, M, self.params.quantize);
        weights.fill([0.0; M]);
        for (i, &feature) in kept.iter().enumerate() {
            weights[feature] = values.get(i);
        }
        TrainedNode {
            weights: PackedList {
                ids: kept.iter().map(|&feature| data.columns[feature]).collect(),
                values,
            },
            biases: (0..M).map(|j| biases[j] + mean_dropped[j]).collect(),
        }
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
