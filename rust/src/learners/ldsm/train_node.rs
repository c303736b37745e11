//! Training one node: Algorithm 4 of the paper.
//!
//! An epoch takes O(M) per value of an example, and O(|y| M^2 + 2^M) per example for
//! the search of its directions. Of the weights a slim node keeps those that matter for its margins,
//! and sends its examples on by these.

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::node_data::{partition, NodeData, NodeExamples};
use super::objective::{Lambdas, NodeStats, NodeStatsSums, ObjectiveSums};
use super::params::{NodeLoss, Params};
use super::regressors::{DenseRegressors, NagRegressors, Regressors};
use crate::control::Control;
use crate::data::{Examples, PackedList};
use crate::error::Result;
use crate::simd::dispatched;
use crate::threads::Pool;

/// Share of a slim node's squared margins that its dropped weights may make up.
const PRUNED_SHARE: f64 = 0.15;

/// What the training of all nodes has in common.
#[derive(Debug)]
pub struct TrainingContext<'a> {
    pub examples: &'a Examples,
    pub params: &'a Params,
    /// Whether to standardise and take plain steps.
    pub is_dense: bool,
    pub control: &'a Control,
    /// Copies of nodes' examples, one for each thread.
    pub copies: Pool<NodeData>,
}

/// The regressors of a trained node, and the record of their training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainedNode {
    /// M weights for each column that has any, the constant left out.
    pub weights: PackedList,
    /// Weights of the constant.
    pub biases: Vec<f32>,
    /// The objective, measured once more on the trained node; where it was asked for.
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
        let data = &mut *self.copies.lend(NodeData::default);
        data.read(self.examples, ids);
        // The pairs of children are so many.
        with_arity!(self.params.arity, M => {
            self.train_arity::<M, { M * (M - 1) / 2 }>(data, ids, seed)
        })
    }

    fn train_arity<const M: usize, const P: usize>(
        &self,
        data: &NodeData,
        ids: &[u32],
        seed: u64,
    ) -> Result<Split> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let lambdas = Lambdas {
            integrity: self.params.lambda1,
            penalty: self.params.lambda2,
        };
        let most = self.params.max_updates.map_or(usize::MAX, |n| n as usize);
        let n_epochs = (most / ids.len()).clamp(1, self.params.n_epochs as usize);
        let (mut weights, curve) = self.learn::<M, P>(data, n_epochs, lambdas, &mut random)?;
        let mut node = self.pack(data, &mut weights);
        node.curve = curve;
        let bias = std::array::from_fn(|j| node.biases[j]);
        let children = if self.params.keep_statistics {
            let mut sums = NodeStatsSums::<M, P>::new(lambdas, data.labels.len());
            let children = partition(data, ids, &weights, bias, |i, margins| {
                let weight = data.examples.weight(i);
                sums.add(data.examples.labels(i), weight.into(), margins);
            });
            node.stats = sums.stats();
            children
        } else {
            partition(data, ids, &weights, bias, |_, _| {})
        };
        Ok(Split { node, children })
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
        let mut order: Vec<u32> = (0..data.examples.len() as u32).collect();
        for _ in 0..n_epochs {
            if params.loss.reshuffles() {
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
            curve.push(sums.terms().j as f32);
        }
        let weights = match regressors {
            Regressors::Sparse(nag) => nag.weights(small).collect(),
            Regressors::Dense(dense) => {
                let constant = data.constant(self.examples.width);
                dense.weights(constant.expect("every example has the constant"), small)
            }
        };
        Ok((weights, curve))
    }

    /// The weights that a node keeps, as it holds them; `weights` become those.
    fn pack<const M: usize>(&self, data: &NodeData, weights: &mut [[f32; M]]) -> TrainedNode {
        let constant = data.constant(self.examples.width);
        let is_slim = self.params.slim_trees;
        let share = if is_slim { PRUNED_SHARE } else { 0.0 };
        let Kept {
            features: mut kept,
            mean_dropped,
        } = kept_features(&data.examples, weights, constant, share);
        kept.sort_unstable_by_key(|&feature| data.columns[feature]);
        let biases = constant.map_or([0.0; M], |at| weights[at]);
        let values = kept.iter().flat_map(|&feature| weights[feature]).collect();
        let columns = kept.iter().map(|&feature| data.columns[feature]).collect();
        let packed = PackedList::new(columns, values, M, self.params.precision());
        weights.fill([0.0; M]);
        for (&feature, values) in kept.iter().zip(packed.values.as_chunks::<M>().0) {
            weights[feature] = *values;
        }
        TrainedNode {
            weights: packed,
            biases: (0..M).map(|j| biases[j] + mean_dropped[j]).collect(),
            ..TrainedNode::default()
        }
    }
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

/// What is kept of a node's weights.
pub struct Kept<const M: usize> {
    /// The features.
    pub features: Vec<usize>,
    /// What the dropped ones contribute to the margins on average, for the constant to make up.
    pub mean_dropped: [f32; M],
}

/// Drops the features of the smallest contribution to a node's margins, which together make up at
/// most `share` of it. A feature's contribution is the variance of its part in the margins over
/// `examples`, so neither the scale of the features nor that of the weights matters. `constant`
/// is no feature and not among them.
pub fn kept_features<const M: usize>(
    examples: &Examples,
    weights: &[[f32; M]],
    constant: Option<usize>,
    share: f64,
) -> Kept<M> {
    let is_feature = |&feature: &usize| {
        let mut weights = weights[feature].iter();
        Some(feature) != constant && weights.any(|&w| w != 0.0)
    };
    let mut features: Vec<usize> = (0..weights.len()).filter(is_feature).collect();
    let mut mean_dropped = [0.0f64; M];
    if share > 0.0 {
        let moments = moments(examples, weights.len());
        let contribution = |feature: usize| {
            let squares = weights[feature].map(|w| f64::from(w) * f64::from(w));
            squares.iter().sum::<f64>() * moments[feature].variance
        };
        let mut contributions: Vec<(f64, usize)> = features
            .iter()
            .map(|&feature| (contribution(feature), feature))
            .collect();
        let all: f64 = contributions.iter().map(|&(part, _)| part).sum();
        let n_dropped = part_smallest(&mut contributions, share * all);
        let (dropped, kept) = contributions.split_at(n_dropped);
        for &(_, feature) in dropped {
            for (mean, &w) in mean_dropped.iter_mut().zip(&weights[feature]) {
                *mean += f64::from(w) * moments[feature].mean;
            }
        }
        features = kept.iter().map(|&(_, feature)| feature).collect();
    }
    Kept {
        features,
        mean_dropped: mean_dropped.map(|mean| mean as f32),
    }
}

/// Moves the smallest of `parts` that together make up at most `most` to the front and returns
/// how many these are; of equal ones the first feature's. It takes O(n): the half that the limit
/// lies in is parted again, and nothing is sorted.
fn part_smallest(parts: &mut [(f64, usize)], most: f64) -> usize {
    let (mut start, mut end, mut sum) = (0, parts.len(), 0.0);
    while start < end {
        let middle = (end - start) / 2;
        let rest = &mut parts[start..end];
        rest.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let smaller: f64 = rest[..=middle].iter().map(|&(part, _)| part).sum();
        if sum + smaller <= most {
            sum += smaller;
            start += middle + 1;
        } else {
            end = start + middle;
        }
    }
    start
}

/// Mean and variance of a feature's values.
#[derive(Clone, Copy, Default)]
struct Moments {
    mean: f64,
    variance: f64,
}

/// The moments of each of `n` features.
fn moments(examples: &Examples, n: usize) -> Vec<Moments> {
    let mut moments = vec![Moments::default(); n];
    for i in 0..examples.len() as u32 {
        let (features, values) = examples.row(i);
        for (&feature, &x) in features.iter().zip(values) {
            let moments = &mut moments[feature as usize];
            moments.mean += f64::from(x);
            moments.variance += f64::from(x) * f64::from(x);
        }
    }
    let n_examples = examples.len() as f64;
    for Moments { mean, variance } in &mut moments {
        *mean /= n_examples;
        *variance = (*variance / n_examples - *mean * *mean).max(0.0);
    }
    moments
}
