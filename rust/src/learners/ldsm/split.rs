//! Training one node: Algorithm 2 of the paper, and where its examples go then.

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::dense::Dense;
use super::nag::Nag;
use super::objective::{Lambdas, Sums};
use super::purity::{Exact, NodeStats};
use super::view::{Numbers, View};
use super::walk::margins;
use super::{Examples, NodeLoss, Params};
use crate::control::Control;
use crate::error::Result;
use crate::simd::dispatched;

/// What training a node is told beside its examples.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// All examples.
    pub examples: &'a Examples,
    /// Options.
    pub params: &'a Params,
    /// Whether to standardise and take plain steps.
    pub is_dense: bool,
    /// Columns that the tree may use; all where there is none.
    pub used: Option<&'a [bool]>,
    /// Watches and stops.
    pub control: &'a Control,
}

/// A trained node.
#[derive(Debug)]
pub struct Split {
    /// Columns with a weight that is not 0, increasing.
    pub columns: Vec<u32>,
    /// M weights for each of these.
    pub weights: Vec<f32>,
    /// What each child would get.
    pub children: Vec<Share>,
    /// The objective, measured once more on the trained node.
    pub stats: NodeStats,
    /// Running J at the end of each epoch.
    pub curve: Vec<f32>,
}

/// The part of a node's examples that goes to one child.
#[derive(Debug, Default)]
pub struct Share {
    /// The examples, in their order.
    pub ids: Vec<u32>,
    /// Their weight.
    pub weight: f64,
    /// Their labels, increasing, and how much of each there is.
    pub labels: Vec<(u32, f64)>,
}

impl Share {
    /// All of some examples.
    pub fn all(view: &View, ids: Vec<u32>) -> Self {
        let mut counter = Counter::new(view.labels.len());
        for i in 0..view.len() {
            counter.add(view, i);
        }
        counter.share(view, ids)
    }
}

/// A histogram that is being made.
#[derive(Debug, Clone)]
struct Counter {
    weight: f64,
    counts: Vec<f64>,
}

impl Counter {
    fn new(n_labels: usize) -> Self {
        Self {
            weight: 0.0,
            counts: vec![0.0; n_labels],
        }
    }

    fn add(&mut self, view: &View, i: usize) {
        let weight = f64::from(view.weight(i));
        self.weight += weight;
        for &label in view.labels_of(i) {
            self.counts[label as usize] += weight;
        }
    }

    fn share(&self, view: &View, ids: Vec<u32>) -> Share {
        let counts = view.labels.iter().copied().zip(self.counts.iter().copied());
        let mut labels: Vec<(u32, f64)> = counts.filter(|&(_, count)| count > 0.0).collect();
        labels.sort_unstable_by_key(|&(label, _)| label);
        Share {
            ids,
            weight: self.weight,
            labels,
        }
    }
}

impl Split {
    /// Trains a node on the examples `ids`, in that order, and sends them on.
    pub fn train(task: &Task<'_>, ids: &[u32], seed: u64, numbers: &mut Numbers) -> Result<Self> {
        match task.params.arity {
            2 => train::<2, 1>(task, ids, seed, numbers),
            3 => train::<3, 3>(task, ids, seed, numbers),
            4 => train::<4, 6>(task, ids, seed, numbers),
            5 => train::<5, 10>(task, ids, seed, numbers),
            6 => train::<6, 15>(task, ids, seed, numbers),
            7 => train::<7, 21>(task, ids, seed, numbers),
            _ => train::<8, 28>(task, ids, seed, numbers),
        }
    }

    /// Whether every child got something, and none got everything.
    pub fn parts(&self, n_examples: usize) -> bool {
        let mut sizes = self.children.iter().map(|child| child.ids.len());
        sizes.all(|n| n > 0 && n < n_examples)
    }
}

/// The regressors of a node, by the kind of its rows.
enum Regressors<const M: usize> {
    Sparse(Nag<M>),
    Dense(Dense<M>),
}

fn train<const M: usize, const P: usize>(
    task: &Task<'_>,
    ids: &[u32],
    seed: u64,
    numbers: &mut Numbers,
) -> Result<Split> {
    let Task {
        examples,
        params,
        control,
        ..
    } = *task;
    let is_used = |column: u32| task.used.is_none_or(|used| used[column as usize]);
    let view = View::of(examples, ids, is_used, numbers);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let rate = params.learning_rate as f32;
    let small = 1.0 / examples.width as f32;
    let first_weights = view
        .columns
        .iter()
        .map(|_| [0.0; M].map(|_: f32| random.random_range(-0.5..0.5) * small))
        .collect::<Vec<[f32; M]>>()
        .into_iter();
    let mut regressors = if task.is_dense {
        Regressors::Dense(Dense::new(&view, first_weights, rate))
    } else {
        Regressors::Sparse(Nag::new(first_weights, rate))
    };
    let lambdas = Lambdas {
        integrity: params.lambda1,
        penalty: params.lambda2,
    };
    let mut sums = Sums::<M, P>::new(lambdas, view.labels.len());
    let mut curve: Vec<f32> = Vec::new();
    let mut order: Vec<u32> = (0..view.len() as u32).collect();
    for _ in 0..params.n_epochs {
        if params.reshuffle {
            order.shuffle(&mut random);
        }
        let (regressors, sums) = (&mut regressors, &mut sums);
        epoch::<M, P>(
            &view,
            &order,
            params.loss,
            regressors,
            sums,
            &mut random,
            control,
        )?;
        let j = sums.terms().j as f32;
        let is_worse = |before: &f32| f64::from(before - j) < params.min_gain;
        let stops = params.early_stopping && curve.last().is_some_and(is_worse);
        curve.push(j);
        if stops {
            break;
        }
    }
    let weights: Vec<[f32; M]> = match regressors {
        Regressors::Sparse(nag) => nag.weights(small).collect(),
        Regressors::Dense(dense) => {
            let constant = examples.width as u32 - 1;
            let at = view.columns.iter().position(|&column| column == constant);
            dense.weights(at.expect("every example has the constant"), small)
        }
    };
    Ok(send::<M, P>(&view, ids, &weights, lambdas, curve))
}

dispatched! {
/// Takes the regressors through all examples once.
fn epoch[M, P](
    view: &View,
    order: &[u32],
    loss: NodeLoss,
    regressors: &mut Regressors<M>,
    sums: &mut Sums<M, P>,
    random: &mut Pcg64Mcg,
    control: &Control,
) -> Result<()> {
    for (place, &i) in order.iter().enumerate() {
        if place % Control::CHUNK == 0 {
            control.check()?;
        }
        let i = i as usize;
        let labels = view.labels_of(i);
        let weight = view.weight(i);
        let directions = sums.best(labels, f64::from(weight), || random.random());
        let gradients = |margins: &[f32; M]| {
            let mut gradients = [0.0; M];
            for j in 0..M {
                let target = (directions >> j & 1) as f32;
                gradients[j] = weight * (loss.chance(margins[j]) - target);
            }
            gradients
        };
        let mut margins;
        match regressors {
            Regressors::Sparse(nag) => {
                let (row, values) = view.row(i);
                margins = nag.meet(row, values);
                nag.step(row, values, &gradients(&margins), &mut margins);
            }
            Regressors::Dense(dense) => {
                margins = dense.meet(i);
                dense.step(i, &gradients(&margins), &mut margins);
            }
        }
        let reached = margins.map(|margin| margin.clamp(0.0, 1.0));
        sums.add(labels, f64::from(weight), &reached);
    }
    Ok(())
}
}

/// Sends the examples on as a prediction will, and takes stock.
fn send<const M: usize, const P: usize>(
    view: &View,
    ids: &[u32],
    weights: &[[f32; M]],
    lambdas: Lambdas,
    curve: Vec<f32>,
) -> Split {
    let mut exact = Exact::<M, P>::new(lambdas, view.labels.len());
    let mut children = vec![(Vec::new(), Counter::new(view.labels.len())); M];
    for (i, &id) in ids.iter().enumerate() {
        let margins = margins(view.row(i), |feature| weights[feature as usize]);
        exact.add(view.labels_of(i), f64::from(view.weight(i)), &margins);
        let reached = directions(&margins);
        for (j, (child, counter)) in children.iter_mut().enumerate() {
            if reached >> j & 1 == 1 {
                child.push(id);
                counter.add(view, i);
            }
        }
    }
    let mut kept: Vec<usize> = (0..weights.len())
        .filter(|&feature| weights[feature].iter().any(|&w| w != 0.0))
        .collect();
    kept.sort_unstable_by_key(|&feature| view.columns[feature]);
    Split {
        columns: kept.iter().map(|&feature| view.columns[feature]).collect(),
        weights: kept.iter().flat_map(|&feature| weights[feature]).collect(),
        children: children
            .into_iter()
            .map(|(ids, counter)| counter.share(view, ids))
            .collect(),
        stats: exact.stats(),
        curve,
    }
}

/// The children that an example goes to, as bits: those of a margin of at least
/// 1/2, else that of the largest.
#[inline]
pub fn directions(margins: &[f32]) -> u32 {
    let (mut reached, mut best) = (0, 0);
    for (j, &margin) in margins.iter().enumerate() {
        reached |= u32::from(margin >= 0.5) << j;
        if margin > margins[best] {
            best = j;
        }
    }
    if reached == 0 {
        1 << best
    } else {
        reached
    }
}
