//! Training one node, against a slow version step by step.

use std::collections::BTreeMap;

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::objective::Sums;
use super::super::split::{directions, Split, Task};
use super::*;

/// M regressors by column, in the precision and order of the sums of the real ones,
/// so that no choice hangs on rounding.
struct Slow<const M: usize> {
    weights: BTreeMap<u32, [f32; M]>,
    largest: BTreeMap<u32, f32>,
    squares: BTreeMap<u32, [f32; M]>,
    norm: f64,
    seen: f64,
    rate: f32,
}

type Row = Vec<(u32, f32)>;

impl<const M: usize> Slow<M> {
    fn margins(&self, row: &Row) -> [f32; M] {
        let mut margins = [0.0; M];
        for (column, x) in row {
            if let Some(weights) = self.weights.get(column) {
                (0..M).for_each(|j| margins[j] += weights[j] * x);
            }
        }
        margins
    }

    fn meet(&mut self, row: &Row) -> [f32; M] {
        let mut length = 0.0f32;
        for &(column, x) in row {
            let largest = self.largest.entry(column).or_insert(x.abs());
            if x.abs() > *largest {
                let shrunk = *largest / x.abs();
                self.weights
                    .get_mut(&column)
                    .unwrap()
                    .iter_mut()
                    .for_each(|w| *w *= shrunk);
                *largest = x.abs();
            }
            let unit = x * largest.recip();
            length += unit * unit;
        }
        self.seen += 1.0;
        self.norm += f64::from(length);
        self.margins(row)
    }

    fn step(&mut self, row: &Row, gradients: &[f32; M], margins: &mut [f32; M]) {
        let scale = self.rate * (self.seen / self.norm).sqrt() as f32;
        for &(column, x) in row {
            let unit = x * self.largest[&column].recip();
            let squares = self.squares.entry(column).or_insert([0.0; M]);
            let weights = self.weights.get_mut(&column).unwrap();
            for j in 0..M {
                squares[j] += (gradients[j] * x).powi(2) + f32::MIN_POSITIVE;
                let step = scale * gradients[j] * unit / squares[j].sqrt();
                weights[j] -= step;
                margins[j] -= step * x;
            }
        }
    }
}

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

fn check<const M: usize, const P: usize>(
    data: &Data,
    params: &Params,
    ids: &[u32],
    seed: u64,
    used: Option<&[bool]>,
) -> std::result::Result<(), TestCaseError> {
    let params = &Params {
        arity: M as u32,
        ..params.clone()
    };
    let examples = data.examples();
    let control = control();
    let task = Task {
        examples: &examples,
        params,
        is_dense: false,
        used,
        control: &control,
    };
    let mut numbers = Numbers::new(WIDTH + 1, N_CLASSES);
    let split = Split::train(&task, ids, seed, &mut numbers).unwrap();

    // The examples as they came, the constant last.
    let present = data.present();
    let rows: Vec<Row> = ids
        .iter()
        .map(|&id| {
            let row = data.row(present[id as usize]).into_iter();
            let is_used = |&(column, _): &(u32, f32)| used.is_none_or(|used| used[column as usize]);
            row.filter(is_used).chain([(WIDTH as u32, 1.0)]).collect()
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
    let mut slow = Slow::<M> {
        weights: BTreeMap::new(),
        largest: BTreeMap::new(),
        squares: BTreeMap::new(),
        norm: 0.0,
        seen: 0.0,
        rate: params.learning_rate as f32,
    };
    for &(column, _) in rows.iter().flatten() {
        if !slow.weights.contains_key(&column) {
            let first = [(); M].map(|()| random.random_range(-0.5f32..0.5) * small);
            slow.weights.insert(column, first);
        }
    }
    let lambdas = Lambdas {
        integrity: params.lambda1,
        penalty: params.lambda2,
    };
    let mut sums = Sums::<M, P>::new(lambdas, N_CLASSES);
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
            let chosen = sums.best(&labels[i], weight, || random.random());
            let mut margins = slow.meet(&rows[i]);
            let gradients = std::array::from_fn(|j| {
                let x = match params.loss {
                    NodeLoss::Centred => 4.0 * margins[j] - 2.0,
                    NodeLoss::Logistic => margins[j],
                };
                let chance = 1.0 / (1.0 + (-x).exp());
                weights[i] * (chance - (chosen >> j & 1) as f32)
            });
            slow.step(&rows[i], &gradients, &mut margins);
            // What a step comes to is what the new weights say.
            let again = slow.margins(&rows[i]);
            for j in 0..M {
                prop_assert!(
                    is_near(margins[j].into(), again[j].into(), 1e-4),
                    "{margins:?} {again:?}"
                );
            }
            let cut = margins.map(|margin| margin.clamp(0.0, 1.0));
            sums.add(&labels[i], weight, &cut);
            let n = weight * labels[i].len() as f64;
            seen += n;
            for j in 0..M {
                reached[j] = ((seen - n) * reached[j] + n * f64::from(cut[j])) / seen;
            }
            for &label in &labels[i] {
                let (count, means) = of_label.entry(label).or_insert((0.0, vec![0.0; M]));
                *count += weight;
                for j in 0..M {
                    means[j] = ((*count - weight) * means[j] + weight * f64::from(cut[j])) / *count;
                }
            }
        }
        curve.push(objective(params, seen, &reached, &of_label));
        let last = curve.len() - 1;
        if params.early_stopping && last > 0 && curve[last - 1] - curve[last] < params.min_gain {
            break;
        }
    }
    prop_assert_eq!(split.curve.len(), curve.len());
    for (found, wanted) in split.curve.iter().zip(&curve) {
        prop_assert!(
            is_near((*found).into(), *wanted, 1e-5),
            "{:?} {curve:?}",
            split.curve
        );
    }
    for weights in slow.weights.values_mut() {
        for weight in weights.iter_mut().filter(|weight| weight.abs() < small) {
            *weight = 0.0;
        }
    }
    slow.weights
        .retain(|_, weights| weights.iter().any(|&w| w != 0.0));
    let columns: Vec<u32> = slow.weights.keys().copied().collect();
    prop_assert_eq!(&split.columns, &columns);
    let wanted: Vec<f32> = slow.weights.values().flatten().copied().collect();
    for (found, wanted) in split.weights.iter().zip(&wanted) {
        prop_assert!(
            is_near((*found).into(), (*wanted).into(), 1e-5),
            "{found} {wanted}"
        );
    }
    prop_assert_eq!(split.weights.len(), wanted.len());

    // Where they go, and what that comes to.
    for (j, child) in split.children.iter().enumerate() {
        let (mut own, mut weight, mut counts) = (Vec::new(), 0.0, BTreeMap::new());
        for (i, row) in rows.iter().enumerate() {
            let margins = slow.margins(row);
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
    prop_assert_eq!(split.parts(ids.len()), parts);
    let mut exact = super::super::purity::Exact::<M, P>::new(lambdas, N_CLASSES);
    for (i, row) in rows.iter().enumerate() {
        exact.add(&labels[i], weights[i].into(), &slow.margins(row));
    }
    let wanted = exact.stats();
    prop_assert!(is_near(split.stats.terms.j, wanted.terms.j, 1e-5));
    prop_assert!(is_near(split.stats.purity, wanted.purity, 1e-5));
    prop_assert!(is_near(split.stats.balancedness, wanted.balancedness, 1e-5));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_node_is_trained_as_the_paper_has_it(
        data in data(40),
        (lambda1, lambda2, learning_rate) in (0.1f64..4.0, 0.1f64..4.0, 0.05f64..1.0),
        (is_logistic, reshuffle, early_stopping) in any::<(bool, bool, bool)>(),
        (seed, shift, share) in (0u64..1000, 0usize..40, 0usize..4),
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
        let used: Vec<bool> = (0..=WIDTH).map(|column| column == WIDTH || column % 4 != share).collect();
        let used = (share > 0).then_some(&used[..]);
        check::<2, 1>(&data, &params, &ids, seed, used)?;
        check::<3, 3>(&data, &params, &ids, seed, used)?;
        check::<4, 6>(&data, &params, &ids, seed, used)?;
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
            let task = Task { examples: &examples, params: &params, is_dense: true, used: None, control: &control };
            let ids: Vec<u32> = (0..examples.len() as u32).collect();
            Split::train(&task, &ids, seed, &mut Numbers::new(WIDTH + 1, N_CLASSES)).unwrap()
        };
        let (split, other) = (train(&data), train(&scaled));
        prop_assert_eq!(split.curve, other.curve);
    }
}
