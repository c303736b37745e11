//! Training one node, compared with a slow version step by step.

use std::collections::BTreeMap;

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::objective::{NodeStatsSums, ObjectiveSums};
use super::super::regressors::{DenseRegressors, NagRegressors};
use super::super::train_node::TrainingContext;
use super::super::tree::directions;
use super::choices::Means;
use super::regressors::{slow_step, SlowDense, SlowNag};
use super::*;
use crate::threads::Pool;

type Row = Vec<(u32, f32)>;

/// Regressors, whose margins decide the choices because these can depend on the last bit, and slow
/// regressors that are compared with them.
enum Pair<const M: usize> {
    Sparse(NagRegressors<M>, SlowNag),
    Dense(DenseRegressors<M>, SlowDense<M>),
}

impl<const M: usize> Pair<M> {
    /// Learns row `i`, which has the local `features`, and returns the margins afterwards.
    fn learn(
        &mut self,
        (i, row, features): (usize, &Row, &[u32]),
        params: &Params,
        weight: f32,
        chosen: u32,
    ) -> ([f32; M], [f64; M]) {
        let (loss, rate) = (params.loss, params.learning_rate);
        let target = |j: usize| (chosen >> j & 1) as f32;
        let gradient = |margin: f64, j: usize| {
            let x = match loss {
                NodeLoss::Centred => 4.0 * margin - 2.0,
                NodeLoss::Logistic => margin,
            };
            f64::from(weight) * (1.0 / (1.0 + (-x).exp()) - f64::from(target(j)))
        };
        match self {
            Self::Sparse(nag, slow) => {
                let values: Vec<f32> = row.iter().map(|&(_, x)| x).collect();
                let mut margins = nag.observe(features, &values);
                let gradients: [f32; M] =
                    std::array::from_fn(|j| weight * (loss.probability(margins[j]) - target(j)));
                nag.step(features, &values, &gradients, &mut margins);
                // Both take the same step: a gradient near 0 can be a rounding error, and its size
                // hardly changes the step.
                let met: [f64; M] = slow.observe(row);
                for (j, &found) in gradients.iter().enumerate() {
                    let wanted = gradient(met[j], j);
                    assert!((f64::from(found) - wanted).abs() < 1e-3, "{found} {wanted}");
                }
                slow.step(row, f64::from(rate as f32), &gradients);
                (margins, slow.margins(row))
            }
            Self::Dense(dense, slow) => {
                let mut margins = dense.margins(i as u32);
                let length = |j| dense.step_length(i as u32, weight, loss, target(j), margins[j]);
                let steps = std::array::from_fn(length);
                dense.step(i as u32, &steps, &mut margins);
                let (met, length) = (slow.margins(i), slow.length(i));
                let (rate, weight) = (f64::from(rate as f32), f64::from(weight));
                let steps = std::array::from_fn(|j| {
                    slow_step(loss, rate, weight, met[j], target(j).into(), length)
                });
                slow.step(i, &steps);
                (margins, slow.margins(i))
            }
        }
    }

    /// Returns the slow weights of each feature for the rows before standardization, where weights
    /// below `small` are 0; None for weights that are too near to `small` to decide.
    fn weights(&self, rows: &[Row], columns: &[u32], small: f64) -> Vec<[Option<f64>; M]> {
        let kept = |weight: f64, small: f64| {
            let is_kept = weight.abs() >= small;
            ((weight.abs() - small).abs() > 1e-4).then_some(is_kept)
        };
        match self {
            // The product of a weight with the largest value counts, if that is above 1.
            Self::Sparse(_, slow) => {
                let weights_of = |&column: &u32| {
                    let values = rows.iter().flatten().filter(|&&(other, _)| other == column);
                    let unit = values.fold(1.0f32, |most, &(_, x)| most.max(x.abs()));
                    std::array::from_fn(|j| {
                        let weight = slow.weights[&(column, j)];
                        let is_kept = kept(weight, small / f64::from(unit))?;
                        Some(if is_kept { weight } else { 0.0 })
                    })
                };
                columns.iter().map(weights_of).collect()
            }
            Self::Dense(_, slow) => {
                let mut bias = slow.bias.map(Some);
                let weights_of = |f: usize| {
                    std::array::from_fn(|j| {
                        let is_kept = kept(slow.weights[f][j], small);
                        let (weight, offset) = match is_kept {
                            Some(true) => slow.plain(f, j),
                            _ => (0.0, 0.0),
                        };
                        bias[j] = bias[j].and_then(|bias| is_kept.map(|_| bias - offset));
                        is_kept.map(|_| weight)
                    })
                };
                let mut weights: Vec<[Option<f64>; M]> =
                    (0..columns.len()).map(weights_of).collect();
                let constant = columns.iter().position(|&column| column as usize == WIDTH);
                weights[constant.unwrap()] = bias;
                weights
            }
        }
    }
}

#[allow(clippy::too_many_lines)]
fn check<const M: usize, const P: usize>(
    data: &Data,
    params: &Params,
    is_dense: bool,
    ids: &[u32],
    seed: u64,
) -> std::result::Result<(), TestCaseError> {
    let params = &Params {
        arity: M as u32,
        ..params.clone()
    };
    let examples = data.examples();
    let control = control();
    let context = TrainingContext {
        examples: &examples,
        params,
        is_dense,
        control: &control,
        copies: Pool::default(),
    };
    // Train again, with buffers that are used a second time.
    let split = context.train(ids, seed).unwrap();
    let again = context.train(ids, seed).unwrap();
    prop_assert_eq!(&split.weights, &again.weights);
    let node = &split;

    // The original examples, with the constant last.
    let present = data.present();
    let rows: Vec<Row> = ids
        .iter()
        .map(|&id| {
            let row = data.row(present[id as usize]).into_iter();
            row.chain([(WIDTH as u32, 1.0)]).collect()
        })
        .collect();
    let labels: Vec<Vec<u32>> = ids
        .iter()
        .map(|&id| data.labels_of(present[id as usize]))
        .collect();
    let weights: Vec<f32> = ids
        .iter()
        .map(|&id| data.weight(present[id as usize]))
        .collect();

    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let small = 1.0 / (WIDTH as f32 + 1.0);
    let rate = params.learning_rate as f32;
    let (mut columns, mut first): (Vec<u32>, Vec<[f32; M]>) = (Vec::new(), Vec::new());
    for &(column, _) in rows.iter().flatten() {
        if !columns.contains(&column) {
            first.push([(); M].map(|()| random.random_range(-0.5f32..0.5) * small));
            columns.push(column);
        }
    }
    let mut regressors = if is_dense {
        let slow = SlowDense::new(&rows, &weights, &columns, &first);
        let node = node_data(&examples, ids);
        let dense = DenseRegressors::new(&node.examples, first.into_iter(), rate);
        Pair::Dense(dense, slow)
    } else {
        let mut slow = SlowNag::default();
        for (&column, own) in columns.iter().zip(&first) {
            for (j, &weight) in own.iter().enumerate() {
                slow.weights.insert((column, j), f64::from(weight));
            }
        }
        Pair::Sparse(NagRegressors::<M>::new(first.into_iter(), rate), slow)
    };
    let lambdas = Lambdas {
        integrity: params.lambda1,
        penalty: params.lambda2,
    };
    let mut sums = ObjectiveSums::<M, P>::new(lambdas, N_CLASSES);
    let mut means = Means::new(lambdas, M, N_CLASSES);
    let all_labels: Vec<u32> = (0..N_CLASSES as u32).collect();
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    let mut curve = Vec::new();
    for _ in 0..params.n_epochs {
        if params.loss == NodeLoss::Centred {
            order.shuffle(&mut random);
        }
        for &i in &order {
            let i = i as usize;
            let weight = f64::from(weights[i]);
            // The tests of `choices` check the search.
            let chosen = sums.best_directions(&labels[i], weight, || random.random());
            let features: Vec<u32> = rows[i]
                .iter()
                .map(|&(column, _)| columns.iter().position(|&c| c == column).unwrap() as u32)
                .collect();
            let row = (i, &rows[i], &features[..]);
            let (margins, wanted) = regressors.learn(row, params, weights[i], chosen);
            for (found, wanted) in margins.iter().zip(wanted) {
                prop_assert!(
                    is_near((*found).into(), wanted, 1e-3),
                    "{margins:?} {wanted:?}"
                );
            }
            sums.add(
                &labels[i],
                weight,
                &margins.map(|margin| margin.clamp(0.0, 1.0)),
            );
            let cut = wanted.map(|margin| margin.clamp(0.0, 1.0));
            means.add(&labels[i], weight, &cut);
        }
        curve.push(means.cost(&all_labels));
    }
    prop_assert_eq!(split.curve.len(), curve.len());
    for (found, wanted) in split.curve.iter().zip(&curve) {
        prop_assert!(
            is_near((*found).into(), *wanted, 1e-5),
            "{:?} {curve:?}",
            split.curve
        );
    }
    let kept = &node.weights;
    let constant = examples.width as u32 - 1;
    let found = |column: u32, j: usize| match kept.ids.binary_search(&column) {
        Ok(at) => kept.values[at * M + j],
        Err(_) if column == constant => node.biases[j],
        Err(_) => 0.0,
    };
    let mut all = kept.values.chunks(M);
    prop_assert!(all.all(|weights| weights.iter().any(|&w| w != 0.0)));
    prop_assert!(kept
        .ids
        .iter()
        .all(|column| columns.contains(column) && *column < constant));
    let wanted = regressors.weights(&rows, &columns, small.into());
    for (&column, wanted) in columns.iter().zip(wanted) {
        for (j, wanted) in wanted.into_iter().enumerate() {
            prop_assert!(
                wanted.is_none_or(|wanted| is_near(found(column, j).into(), wanted, 1e-3)),
                "dense: {is_dense}, {column} {j} {} {wanted:?}",
                found(column, j)
            );
        }
    }
    let margins_of = |row: &Row| {
        let mut margins = [0.0; M];
        for &(column, x) in row {
            (0..M).for_each(|j| margins[j] += found(column, j) * x);
        }
        margins
    };

    // The examples of each child.
    for (j, child) in split.children.iter().enumerate() {
        let (mut own, mut weight, mut counts) = (Vec::new(), 0.0, BTreeMap::new());
        for (i, row) in rows.iter().enumerate() {
            let margins = margins_of(row);
            let highest = margins.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let goes = if highest >= 0.5 {
                margins[j] >= 0.5
            } else {
                margins.iter().position(|&margin| margin == highest) == Some(j)
            };
            prop_assert_eq!(directions(&margins) >> j & 1 == 1, goes);
            if goes {
                own.push(ids[i]);
                weight += f64::from(weights[i]);
                for &label in &labels[i] {
                    *counts.entry(label).or_insert(0.0) += f64::from(weights[i]);
                }
            }
        }
        prop_assert_eq!(&child.ids, &own);
        prop_assert_eq!(child.weight, weight);
        let found: BTreeMap<u32, f64> = child.labels.iter().copied().collect();
        prop_assert_eq!(found.len(), child.labels.len());
        prop_assert_eq!(found, counts);
    }
    let sizes = split.children.iter().map(|child| child.ids.len());
    let parts = sizes.clone().min().unwrap() > 0 && sizes.max().unwrap() < ids.len();
    prop_assert_eq!(split.is_useful(ids.len()), parts);
    let mut exact = NodeStatsSums::<M, P>::new(lambdas, N_CLASSES);
    for (i, row) in rows.iter().enumerate() {
        exact.add(&labels[i], weights[i].into(), &margins_of(row));
    }
    let wanted = exact.stats();
    prop_assert!(is_near(split.stats.terms.j, wanted.terms.j, 1e-5));
    prop_assert!(is_near(split.stats.purity, wanted.purity, 1e-5));
    prop_assert!(is_near(split.stats.balancedness, wanted.balancedness, 1e-5));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_node_is_trained_as_in_the_paper(
        data in data(40),
        (lambda1, lambda2, learning_rate) in (0.1f64..4.0, 0.1f64..4.0, 0.05f64..1.0),
        is_logistic in any::<bool>(),
        (seed, shift) in (0u64..1000, 0usize..40),
    ) {
        let params = Params {
            lambda1,
            lambda2,
            learning_rate,
            loss: if is_logistic { NodeLoss::Logistic } else { NodeLoss::Centred },
            n_epochs: 4,
            ..params()
        };
        let n = data.present().len() as u32;
        let mut ids: Vec<u32> = (0..n).collect();
        ids.rotate_left(shift % n as usize);
        check::<2, 1>(&data, &params, false, &ids, seed)?;
        check::<3, 3>(&data, &params, false, &ids, seed)?;
        check::<4, 6>(&data, &params, false, &ids, seed)?;
        // With long plain steps the two would diverge.
        let params = Params { learning_rate: learning_rate / 20.0, ..params };
        check::<2, 1>(&data, &params, true, &ids, seed)?;
        check::<4, 6>(&data, &params, true, &ids, seed)?;
    }
}
