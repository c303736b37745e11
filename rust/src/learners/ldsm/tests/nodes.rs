//! Training one node, against a slow version step by step.

use std::collections::BTreeMap;

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::nag::NagRegressors;
use super::super::node_stats::NodeStatsSums;
use super::super::node_training::TrainingContext;
use super::super::objective::ObjectiveSums;
use super::super::routing::directions;
use super::regressors::SlowNag;
use super::*;

type Row = Vec<(u32, f32)>;

/// The whole objective from running means, of all labels.
fn objective(
    params: &Params,
    seen: f64,
    reached: &[f64],
    of_label: &BTreeMap<u32, (f64, Vec<f64>)>,
) -> f64 {
    let apart = |means: &[f64]| -> f64 {
        let pairs = (0..means.len()).flat_map(|l| (0..l).map(move |j| (j, l)));
        pairs.map(|(j, l)| (means[j] - means[l]).abs()).sum()
    };
    let integrity: f64 = of_label
        .values()
        .map(|(n, means)| n / seen * apart(means))
        .sum();
    let penalty = (reached.iter().sum::<f64>() - 1.0).abs();
    apart(reached) - params.lambda1 * integrity + params.lambda2 * penalty
}

#[allow(clippy::too_many_lines)]
fn check<const M: usize, const P: usize>(
    data: &Data,
    params: &Params,
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
        is_dense: false,
        control: &control,
    };
    let mut local_ids = LocalIds::new(WIDTH + 1, N_CLASSES);
    let split = context.train(ids, seed, &mut local_ids).unwrap();
    let node = &split.node;

    // The examples as they came, the constant last.
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
    let mut slow = SlowNag::default();
    for &(column, _) in rows.iter().flatten() {
        if !columns.contains(&column) {
            let weights = [(); M].map(|()| random.random_range(-0.5f32..0.5) * small);
            for (j, &weight) in weights.iter().enumerate() {
                slow.weights.insert((column, j), f64::from(weight));
            }
            first.push(weights);
            columns.push(column);
        }
    }
    // Choices can hang on the last bit, which only the regressors themselves have.
    let mut nag = NagRegressors::<M>::new(first.into_iter(), rate);
    let lambdas = Lambdas {
        integrity: params.lambda1,
        penalty: params.lambda2,
    };
    let mut sums = ObjectiveSums::<M, P>::new(lambdas, N_CLASSES);
    let (mut seen, mut reached) = (0.0, vec![0.0; M]);
    let mut of_label: BTreeMap<u32, (f64, Vec<f64>)> = BTreeMap::new();
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    let mut curve = Vec::new();
    for _ in 0..params.n_epochs {
        if params.reshuffle {
            order.shuffle(&mut random);
        }
        for &i in &order {
            let i = i as usize;
            let weight = f64::from(weights[i]);
            // `choices` has how it chooses.
            let chosen = sums.best_directions(&labels[i], weight, || random.random());
            let (features, values): (Vec<u32>, Vec<f32>) = rows[i]
                .iter()
                .map(|&(column, x)| (columns.iter().position(|&c| c == column).unwrap() as u32, x))
                .unzip();
            let gradient = |margin: f64, j: usize| {
                let x = match params.loss {
                    NodeLoss::Centred => 4.0 * margin - 2.0,
                    NodeLoss::Logistic => margin,
                };
                weight * (1.0 / (1.0 + (-x).exp()) - f64::from(chosen >> j & 1))
            };
            let mut margins = nag.observe(&features, &values);
            let gradients = std::array::from_fn(|j| {
                let x = match params.loss {
                    NodeLoss::Centred => 4.0 * margins[j] - 2.0,
                    NodeLoss::Logistic => margins[j],
                };
                weights[i] * (1.0 / (1.0 + (-x).exp()) - (chosen >> j & 1) as f32)
            });
            nag.step(&features, &values, &gradients, &mut margins);
            sums.add(
                &labels[i],
                weight,
                &margins.map(|margin| margin.clamp(0.0, 1.0)),
            );
            let met: [f64; M] = slow.observe(&rows[i]);
            let gradients: [f32; M] = std::array::from_fn(|j| gradient(met[j], j) as f32);
            slow.step(&rows[i], rate.into(), &gradients);
            let cut = slow
                .margins::<M>(&rows[i])
                .map(|margin| margin.clamp(0.0, 1.0));
            let n = weight * labels[i].len() as f64;
            seen += n;
            for j in 0..M {
                reached[j] = ((seen - n) * reached[j] + n * cut[j]) / seen;
            }
            for &label in &labels[i] {
                let (count, means) = of_label.entry(label).or_insert((0.0, vec![0.0; M]));
                *count += weight;
                for j in 0..M {
                    means[j] = ((*count - weight) * means[j] + weight * cut[j]) / *count;
                }
            }
        }
        curve.push(objective(params, seen, &reached, &of_label));
        let last = curve.len() - 1;
        if params.early_stopping && last > 0 && curve[last - 1] - curve[last] < params.min_gain {
            break;
        }
    }
    prop_assert_eq!(node.curve.len(), curve.len());
    for (found, wanted) in node.curve.iter().zip(&curve) {
        prop_assert!(
            is_near((*found).into(), *wanted, 1e-5),
            "{:?} {curve:?}",
            node.curve
        );
    }
    let found = |column: u32, j: usize| match node.columns.binary_search(&column) {
        Ok(at) => node.weights[at * M + j],
        Err(_) => 0.0,
    };
    prop_assert_eq!(node.weights.len(), node.columns.len() * M);
    prop_assert!(node
        .weights
        .chunks(M)
        .all(|weights| weights.iter().any(|&w| w != 0.0)));
    // Small is what a weight of the largest value comes to, values of at least 1.
    let unit = |column: u32| {
        let values = rows.iter().flatten().filter(|&&(other, _)| other == column);
        values.fold(1.0f32, |most, &(_, x)| most.max(x.abs()))
    };
    prop_assert!(node.columns.iter().all(|column| columns.contains(column)));
    for (&(column, j), &weight) in &slow.weights {
        let small = f64::from(small / unit(column));
        let is_small = weight.abs() < small;
        if (weight.abs() - small).abs() > 1e-4 {
            let wanted = if is_small { 0.0 } else { weight };
            prop_assert!(
                is_near(found(column, j).into(), wanted, 1e-3),
                "{column} {j} {weight}"
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

    // Where they go, and what that comes to.
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
        prop_assert_eq!(
            &child.labels,
            &counts.into_iter().collect::<Vec<(u32, f64)>>()
        );
    }
    let sizes = split.children.iter().map(|child| child.ids.len());
    let parts = sizes.clone().min().unwrap() > 0 && sizes.max().unwrap() < ids.len();
    prop_assert_eq!(split.is_useful(ids.len()), parts);
    let mut exact = NodeStatsSums::<M, P>::new(lambdas, N_CLASSES);
    for (i, row) in rows.iter().enumerate() {
        exact.add(&labels[i], weights[i].into(), &margins_of(row));
    }
    let wanted = exact.stats();
    prop_assert!(is_near(node.stats.terms.j, wanted.terms.j, 1e-5));
    prop_assert!(is_near(node.stats.purity, wanted.purity, 1e-5));
    prop_assert!(is_near(node.stats.balancedness, wanted.balancedness, 1e-5));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_node_is_trained_as_the_paper_has_it(
        data in data(40),
        (lambda1, lambda2, learning_rate) in (0.1f64..4.0, 0.1f64..4.0, 0.05f64..1.0),
        (is_logistic, reshuffle, early_stopping) in any::<(bool, bool, bool)>(),
        (seed, shift) in (0u64..1000, 0usize..40),
    ) {
        let params = Params {
            lambda1,
            lambda2,
            learning_rate,
            loss: if is_logistic { NodeLoss::Logistic } else { NodeLoss::Centred },
            reshuffle,
            early_stopping,
            min_gain: 0.01,
            n_epochs: 4,
            ..params()
        };
        let n = data.present().len() as u32;
        let mut ids: Vec<u32> = (0..n).collect();
        ids.rotate_left(shift % n as usize);
        check::<2, 1>(&data, &params, &ids, seed)?;
        check::<3, 3>(&data, &params, &ids, seed)?;
        check::<4, 6>(&data, &params, &ids, seed)?;
    }

    /// Standardised rows learn as those that have been standardised before.
    #[test]
    fn dense_nodes_do_not_see_the_units(data in data(40), seed in 0u64..1000) {
        let params = Params { arity: 3, n_epochs: 4, learning_rate: 0.05, ..params() };
        let mut scaled = data.clone();
        for (column, x) in scaled.columns.iter().zip(&mut scaled.values) {
            // Powers of two round nothing.
            *x *= 2f32.powi(column % 3 - 4);
        }
        let train = |data: &Data| {
            let examples = data.examples();
            let control = control();
            let context = TrainingContext { examples: &examples, params: &params, is_dense: true, control: &control };
            let ids: Vec<u32> = (0..examples.len() as u32).collect();
            context.train(&ids, seed, &mut LocalIds::new(WIDTH + 1, N_CLASSES)).unwrap().node
        };
        let (node, other) = (train(&data), train(&scaled));
        prop_assert_eq!(node.curve, other.curve);
    }
}
