//! Training one node: Algorithm 4 of the paper.
//!
//! An epoch takes O(M) per value of an example, and O(|y| M^2 + 2^M) per example for
//! the search of its directions. A slim node keeps the weights that matter for its margins, and
//! routes its examples by these.

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::objective::{Lambdas, NodeStats, NodeStatsSums, ObjectiveSums};
use super::params::Params;
use super::regressors::{kept_features, DenseRegressors, NagRegressors, NodeLoss, Regressors};
use super::tree::{directions, full_margins, is_full, margins};
use crate::control::Control;
use crate::data::{Examples, LocalIds, PackedList};
use crate::error::Result;
use crate::simd::dispatched;
use crate::threads::Pool;

/// Largest share of a slim node's squared margins that dropped weights may make up.
const PRUNED_SHARE: f64 = 0.15;

/// Inputs and settings shared by all nodes.
#[derive(Debug)]
pub struct TrainingContext<'a> {
    pub examples: &'a Examples,
    pub params: &'a Params,
    /// If set, nodes standardize their features and take plain gradient steps.
    pub is_dense: bool,
    pub control: &'a Control,
    /// Copies of nodes' examples, one for each thread.
    pub copies: Pool<NodeData>,
}

/// The examples of a node and their label histogram.
#[derive(Debug, Default, PartialEq)]
pub struct NodeExamples {
    /// The examples in the order of training.
    pub ids: Vec<u32>,
    pub weight: f64,
    /// Labels, in any order, and their weights.
    pub labels: Vec<(u32, f64)>,
}

impl NodeExamples {
    /// Counts the labels of the examples `ids`.
    pub fn new(examples: &Examples, ids: Vec<u32>) -> Self {
        let mut counts = vec![0.0; examples.n_labels];
        let mut weight = 0.0;
        for &id in &ids {
            let importance = f64::from(examples.weight(id));
            weight += importance;
            for &label in examples.labels(id) {
                counts[label as usize] += importance;
            }
        }
        let labels = (0..).zip(counts);
        Self {
            ids,
            weight,
            labels: labels.filter(|&(_, count)| count > 0.0).collect(),
        }
    }
}

/// A copy of a node's examples, which its training reads over and over.
///
/// A node sees few of the features and labels. They are renumbered in the order in which they first
/// occur. So the node's weights and statistics are small arrays that stay in the nearest cache, and
/// an epoch reads two flat arrays from end to end.
#[derive(Debug, Default)]
pub struct NodeData {
    /// The local features.
    pub columns: LocalIds,
    /// The local labels.
    pub labels: LocalIds,
    pub examples: Examples,
}

impl NodeData {
    /// Replaces the examples by copies of `ids`. The memory is used again, because allocating it for
    /// each of thousands of nodes costs a tenth of the training.
    pub fn read(&mut self, examples: &Examples, ids: &[u32]) {
        let Self {
            columns,
            labels,
            examples: own,
        } = self;
        columns.clear();
        columns.widen(examples.width);
        labels.clear();
        labels.widen(examples.n_labels);
        own.rows.clear();
        own.labels.clear();
        let (all_rows, all_labels) = (&examples.rows, &examples.labels);
        let n_values = ids.iter().map(|&id| all_rows.row(id as usize).0.len());
        own.rows.reserve(ids.len(), n_values.sum());
        let n_labels = ids.iter().map(|&id| all_labels.range(id as usize).len());
        own.labels.reserve(ids.len(), n_labels.sum());
        let mut columns_before = None;
        for &id in ids {
            let (row, values) = examples.row(id);
            if columns_before == Some(row) {
                own.rows.push_with_last_columns(values);
            } else {
                let features = row.iter().map(|&column| columns.insert(column));
                own.rows.push(features, values);
                columns_before = Some(row);
            }
            let row = examples.labels(id).iter();
            own.labels.push(row.map(|&label| labels.insert(label)));
        }
        own.weights.clear();
        own.weights
            .extend(ids.iter().map(|&id| examples.weight(id)));
        own.width = columns.len();
        own.n_labels = labels.len();
    }

    /// Returns the local feature that is the constant, the last of `width` columns.
    fn constant(&self, width: usize) -> Option<usize> {
        let constant = self.columns.get(width as u32 - 1);
        constant.map(|feature| feature as usize)
    }

    /// Sends the examples, which are `ids` of the training set of `width` columns, to children by the
    /// `weights` of each local feature, as a prediction does. Calls `visit` with the place of each
    /// example and its margins.
    fn partition<const M: usize>(
        &self,
        ids: &[u32],
        weights: &[[f32; M]],
        bias: [f32; M],
        width: usize,
        mut visit: impl FnMut(u32, &[f32; M]),
    ) -> Vec<NodeExamples> {
        let examples = &self.examples;
        let mut children: [NodeExamples; M] = std::array::from_fn(|_| NodeExamples::default());
        let mut counts = vec![[0.0f64; M]; self.labels.len()];
        for (i, &id) in (0..).zip(ids) {
            let row = examples.row(i);
            // A row that has all local features need not have all columns.
            let has_all_columns = row.0.len() == width && is_full(row.0);
            let margins = if has_all_columns {
                full_margins::<M>(row.1, bias, weights)
            } else {
                margins(row, bias, |feature| weights[feature as usize])
            };
            visit(i, &margins);
            let directions = directions(&margins);
            let importance = f64::from(examples.weight(i));
            for (j, child) in children.iter_mut().enumerate() {
                if directions >> j & 1 == 1 {
                    child.ids.push(id);
                    child.weight += importance;
                    for &label in examples.labels(i) {
                        counts[label as usize][j] += importance;
                    }
                }
            }
        }
        for (j, child) in children.iter_mut().enumerate() {
            let labels = self.labels.keys().iter().zip(&counts);
            let labels = labels.map(|(&label, counts)| (label, counts[j]));
            child.labels = labels.filter(|&(_, count)| count > 0.0).collect();
        }
        children.into()
    }
}

/// A trained node: its regressors, the record of their training, and the examples of its children.
#[derive(Debug, Default, PartialEq)]
pub struct Split {
    /// M weights for each column that has any, without the constant.
    pub weights: PackedList,
    /// Weights of the constant.
    pub biases: Vec<f32>,
    /// Statistics of the trained node, if they are kept.
    pub stats: NodeStats,
    /// Running J at the end of each epoch.
    pub curve: Vec<f32>,
    pub children: Vec<NodeExamples>,
}

impl Split {
    /// Returns whether each child of a node with `n_examples` gets some of them, and none gets all.
    pub fn is_useful(&self, n_examples: usize) -> bool {
        let mut sizes = self.children.iter().map(|child| child.ids.len());
        sizes.all(|n| n > 0 && n < n_examples)
    }
}

impl TrainingContext<'_> {
    /// Trains a node on the examples `ids`, in that order, and sends them to its children.
    pub fn train(&self, ids: &[u32], seed: u64) -> Result<Split> {
        let data = &mut *self.copies.lend(NodeData::default);
        data.read(self.examples, ids);
        // The second number is the number of pairs of children.
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
        let max_updates = self.params.max_updates.map_or(usize::MAX, |n| n as usize);
        let n_epochs = (max_updates / ids.len()).clamp(1, self.params.n_epochs as usize);
        let (mut weights, curve) = self.learn::<M, P>(data, n_epochs, lambdas, &mut random)?;
        let mut split = self.pack(data, &mut weights);
        split.curve = curve;
        let bias = std::array::from_fn(|j| split.biases[j]);
        let width = self.examples.width;
        split.children = if self.params.keep_statistics {
            let mut sums = NodeStatsSums::<M, P>::new(lambdas, data.labels.len());
            let children = data.partition(ids, &weights, bias, width, |i, margins| {
                let weight = data.examples.weight(i);
                sums.add(data.examples.labels(i), weight.into(), margins);
            });
            split.stats = sums.stats();
            children
        } else {
            data.partition(ids, &weights, bias, width, |_, _| {})
        };
        Ok(split)
    }

    /// Trains regressors on `data`. Returns their weights by local feature, and the running J at the
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
        let first_weights = data.columns.keys().iter().map(|_| first_weights());
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

    /// Packs the weights that a node keeps, and replaces `weights` by the packed values.
    fn pack<const M: usize>(&self, data: &NodeData, weights: &mut [[f32; M]]) -> Split {
        let constant = data.constant(self.examples.width);
        let is_slim = self.params.slim_trees;
        let share = if is_slim { PRUNED_SHARE } else { 0.0 };
        let (mut kept, mean_dropped) = kept_features(&data.examples, weights, constant, share);
        let column = |&feature: &usize| data.columns.keys()[feature];
        kept.sort_unstable_by_key(column);
        let biases = constant.map_or([0.0; M], |at| weights[at]);
        let values = kept.iter().flat_map(|&feature| weights[feature]).collect();
        let columns = kept.iter().map(column).collect();
        let packed = PackedList::new(columns, values, M, self.params.precision());
        weights.fill([0.0; M]);
        for (&feature, values) in kept.iter().zip(packed.values.as_chunks::<M>().0) {
            weights[feature] = *values;
        }
        Split {
            weights: packed,
            biases: (0..M).map(|j| biases[j] + mean_dropped[j]).collect(),
            ..Split::default()
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
