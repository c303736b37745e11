//! The fast learner against a slow and obvious one, and what must hold beside.

mod behaviour;
mod details;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::average::{PolynomialAverage, POWER};
use super::*;
use crate::classifier::{Classifier, FitOptions, Learner, OnlineLearner, OnlineModel, Query};
use crate::control::Control;
use crate::data::{Batch, Targets};
use crate::data::{Indices, LabelSets, Labels, Preparation, RowBuffer, Rows, Scaling, Values};
use crate::error::Error;
use crate::file::{Array, Bundle};
use crate::linear::{Loss, Optimizer, Power, Preconditioner};

type Model = OnlineModel<Oaa>;

/// The learner of a model that has learned something.
fn learner(model: &Model) -> &Oaa {
    &model.members()[0].learner
}

/// The scores of all classes, row by row.
fn all_scores(model: &Model, rows: &Rows<'_>, n_threads: usize) -> Vec<f32> {
    let scores = model.predict_scores(&Query::new(rows, n_threads, &control()));
    match scores.unwrap() {
        Array::F32(scores) => scores,
        other => panic!("{other:?}"),
    }
}

/// Sparse rows with labels that depend on them, and label sets and weights.
struct Data {
    starts: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<f32>,
    labels: Vec<u32>,
    set_starts: Vec<i32>,
    sets: Vec<i32>,
    weights: Vec<f32>,
    n_cols: usize,
    n_classes: usize,
}

impl Data {
    /// Column 7 never occurs, nor does the last class.
    fn new(n: usize, n_cols: usize, n_classes: usize, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut data = Self {
            starts: vec![0],
            columns: vec![],
            values: vec![],
            labels: vec![],
            set_starts: vec![0],
            sets: vec![],
            weights: vec![],
            n_cols,
            n_classes,
        };
        for _ in 0..n {
            let label = random.random_range(0..n_classes as u32 - 1);
            for column in 0..n_cols {
                let likely = (label as usize * 31 + column * 17) % 7 < 2;
                if column != 7 && random.random::<f64>() < if likely { 0.7 } else { 0.1 } {
                    data.columns.push(column as i32);
                    data.values
                        .push(f32::from(random.random_range(-4i8..=8)) / 4.0);
                }
            }
            data.starts.push(data.columns.len() as i32);
            data.labels.push(label);
            let mut set = vec![
                label as i32,
                (label as i32 * 5 + 3) % (n_classes as i32 - 1),
            ];
            set.sort_unstable();
            set.dedup();
            set.truncate(random.random_range(0..=2));
            data.sets.extend(set);
            data.set_starts.push(data.sets.len() as i32);
            data.weights
                .push([0.0, 0.5, 1.0, 2.0][random.random_range(0..4)]);
        }
        data
    }

    fn rows(&self) -> Rows<'_> {
        let (starts, columns) = (Indices::I32(&self.starts), Indices::I32(&self.columns));
        Rows::csr(starts, columns, Values::F32(&self.values), self.n_cols).unwrap()
    }

    fn labels(&self) -> Targets<'_> {
        Targets::One(Labels::new(&self.labels, self.n_classes).unwrap())
    }

    fn sets(&self) -> Targets<'_> {
        let (starts, labels) = (Indices::I32(&self.set_starts), Indices::I32(&self.sets));
        Targets::Sets(LabelSets::new(starts, labels, self.n_classes).unwrap())
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(self.rows(), self.labels(), None).unwrap()
    }
}

fn control() -> Control {
    Control::new(0)
}

fn params(loss: OaaLoss, optimizer: Optimizer) -> Params {
    Params {
        loss,
        optimizer,
        n_passes: 2,
        ..Params::default()
    }
}

const LOSSES: [OaaLoss; 6] = [
    OaaLoss::Squared,
    OaaLoss::Logistic,
    OaaLoss::Quantile,
    OaaLoss::Hinge,
    OaaLoss::SquaredHinge,
    OaaLoss::Softmax,
];

/// One example after the other, all classes each, everything dense and in
/// double precision; the average is the sum of c_t w_t as its definition has it.
struct Plain {
    params: Params,
    preparation: Preparation,
    preconditioner: Preconditioner,
    weights: Vec<Vec<f64>>,
    /// By how much weights are nearer to zero in use (l1).
    shift: f64,
    /// Sums of squared gradients ("adagrad").
    squares: Vec<Vec<f64>>,
    average: Vec<Vec<f64>>,
    examples: f64,
    wrong: f64,
    weight: f64,
}

impl Plain {
    fn new(params: &Params, n_classes: usize, rows: &Rows<'_>) -> Self {
        let preparation = Preparation::new(params.scaling, params.n_bits, rows).unwrap();
        let width = preparation.width();
        let mut weights = vec![vec![0.0; n_classes]; width];
        weights[width - 1].fill(f64::from(params.initial_bias()));
        Self {
            params: params.clone(),
            preconditioner: Preconditioner::new(Power::Quarter, width),
            average: vec![vec![0.0; n_classes]; width],
            squares: vec![vec![0.0; n_classes]; width],
            preparation,
            weights,
            shift: 0.0,
            examples: 0.0,
            wrong: 0.0,
            weight: 0.0,
        }
    }

    fn scores(weights: &[Vec<f64>], example: &RowBuffer) -> Vec<f64> {
        let mut scores = vec![0.0; weights[0].len()];
        for (&column, &x) in example.columns.iter().zip(&example.values) {
            for (p, w) in scores.iter_mut().zip(&weights[column as usize]) {
                *p += f64::from(x) * w;
            }
        }
        scores
    }

    /// The weights as they predict: those of the constant as they are, the others moved
    /// towards zero.
    fn in_use(&self) -> Vec<Vec<f64>> {
        let mut weights = self.weights.clone();
        let n = weights.len() - 1;
        for w in weights[..n].iter_mut().flatten() {
            *w = (w.abs() - self.shift).max(0.0).copysign(*w);
        }
        weights
    }

    /// Steps of "adagrad" of each class, and the rates of the example's columns.
    fn adapt(&mut self, example: &RowBuffer, p: &[f64], labels: &[u32], h: f32) -> Vec<Vec<f64>> {
        let loss = self.params.loss.single().unwrap();
        let mut changes = vec![vec![0.0; p.len()]; example.columns.len()];
        for k in 0..p.len() {
            let y = if labels.contains(&(k as u32)) {
                1.0
            } else {
                -1.0
            };
            let slope_squared = f64::from(h * loss.slope_squared(y, p[k] as f32));
            if slope_squared == 0.0 {
                continue;
            }
            let (mut ppu, mut rates) = (0.0, Vec::new());
            for (&column, &x) in example.columns.iter().zip(&example.values) {
                let (square, x) = (&mut self.squares[column as usize][k], f64::from(x));
                *square += slope_squared * x * x;
                rates.push(square.sqrt().recip());
                ppu += x * x / square.sqrt();
            }
            let a = self.params.rate() as f32 * h;
            let step = f64::from(loss.step(y, p[k] as f32, a, ppu as f32));
            for ((change, &x), rate) in changes.iter_mut().zip(&example.values).zip(rates) {
                change[k] = step * f64::from(x) * rate;
            }
        }
        changes
    }

    fn learn(&mut self, rows: &Rows<'_>, i: usize, labels: &[u32], h: f32, seen: &mut [bool]) {
        let mut example = RowBuffer::default();
        self.preparation.observe(rows, i, &mut example);
        self.preparation.read(rows, i, &mut example);
        let mut steps = Vec::new();
        let ppu = if self.params.optimizer == Optimizer::Pn {
            self.preconditioner.direction(&example, h, &mut steps);
            1.0
        } else {
            steps.clone_from(&example.values);
            example.values.iter().map(|x| x * x).sum()
        };
        let p = Self::scores(&self.in_use(), &example);
        let best = (0..p.len())
            .filter(|&k| seen[k])
            .max_by(|&a, &b| p[a].total_cmp(&p[b]).then(b.cmp(&a)));
        let right = best.is_some_and(|k| labels.contains(&(k as u32)));
        self.wrong += if right { 0.0 } else { f64::from(h) };
        self.weight += f64::from(h);
        let a = self.params.rate() as f32 * h;
        let adaptive = self.params.optimizer == Optimizer::Adagrad;
        let changes = adaptive.then(|| self.adapt(&example, &p, labels, h));
        let u: Vec<f64> = match self.params.loss.single() {
            Some(_) if adaptive => Vec::new(),
            Some(loss) => (0..p.len())
                .map(|k| {
                    let y = if labels.contains(&(k as u32)) {
                        1.0
                    } else {
                        -1.0
                    };
                    f64::from(loss.step(y, p[k] as f32, a, ppu))
                })
                .collect(),
            None => flow(&p, labels, f64::from(a), f64::from(ppu)),
        };
        labels.iter().for_each(|&label| seen[label as usize] = true);
        for (at, (&column, &d)) in example.columns.iter().zip(&steps).enumerate() {
            for (k, w) in self.weights[column as usize].iter_mut().enumerate() {
                *w += match &changes {
                    Some(changes) => changes[at][k],
                    None => u[k] * f64::from(d),
                };
            }
        }
        // (1 - POWER-dependent share) of the old average, the rest of the new weights.
        self.examples += 1.0;
        let share = (POWER + 1.0) / (self.examples + POWER);
        for (average, weights) in self.average.iter_mut().zip(&self.weights) {
            for (a, w) in average.iter_mut().zip(weights) {
                *a += share * (w - *a);
            }
        }
        let shrink = (-self.params.l2 * f64::from(a)).exp();
        let n = self.weights.len() - 1;
        for w in self.weights[..n].iter_mut().flatten() {
            *w *= shrink;
        }
        self.shift = self.shift * shrink + self.params.l1 * f64::from(a);
    }
}

/// Gradient flow of the cross-entropy in the scores, in unit steps.
fn flow(p: &[f64], labels: &[u32], a: f64, ppu: f64) -> Vec<f64> {
    let (mut p, mut u) = (p.to_vec(), vec![0.0; p.len()]);
    if labels.is_empty() {
        return u;
    }
    let parts = (a * ppu).ceil().clamp(1.0, 32.0);
    for _ in 0..parts as usize {
        let sum: f64 = p.iter().map(|p| p.exp()).sum();
        let chances: Vec<f64> = p.iter().map(|p| p.exp() / sum).collect();
        for k in 0..p.len() {
            let wanted = if labels.contains(&(k as u32)) {
                1.0 / labels.len() as f64
            } else {
                0.0
            };
            let part = (a * ppu / parts).min(1.0);
            p[k] += part * (wanted - chances[k]);
            u[k] += part * (wanted - chances[k]) / ppu;
        }
    }
    u
}

fn labels_of(data: &Data, multilabel: bool, i: usize) -> Vec<u32> {
    if multilabel {
        let span = data.set_starts[i] as usize..data.set_starts[i + 1] as usize;
        data.sets[span].iter().map(|&l| l as u32).collect()
    } else {
        vec![data.labels[i]]
    }
}

#[test]
fn tiles_learn_what_example_after_example_learns() {
    /// Those in which a rounding error cannot decide between a step and none.
    const SMOOTH: [OaaLoss; 3] = [OaaLoss::Squared, OaaLoss::Logistic, OaaLoss::SquaredHinge];
    /// Averaging, l1, l2; so large an l2 that its factor is taken out of the weights meanwhile.
    const OPTIONS: [(bool, f64, f64); 4] = [
        (false, 0.0, 0.0),
        (true, 0.0, 0.0),
        (false, 0.0, 0.01),
        (false, 0.01, 0.2),
    ];
    // More rows than a chunk has; classes for tiles of 4, 4 and 2 groups.
    let data = Data::new(700, 24, 150, 1);
    let rows = data.rows();
    for loss in LOSSES {
        for optimizer in [Optimizer::Pn, Optimizer::Sgd, Optimizer::Adagrad] {
            if optimizer == Optimizer::Adagrad && !SMOOTH.contains(&loss) {
                continue;
            }
            for multilabel in [false, true] {
                for (average, l1, l2) in OPTIONS {
                    let params = Params {
                        average: Average::Chosen(average),
                        scale_weights: false,
                        l1,
                        l2,
                        // Rates at which steps of a chaotic path stay comparable.
                        learning_rate: Some(if optimizer == Optimizer::Pn {
                            0.5
                        } else {
                            0.05
                        }),
                        ..params(loss, optimizer)
                    };
                    let mut plain = Plain::new(&params, 150, &rows);
                    let mut seen = vec![false; 150];
                    for i in (0..700).filter(|&i| data.weights[i] > 0.0) {
                        let labels = labels_of(&data, multilabel, i);
                        plain.learn(&rows, i, &labels, data.weights[i], &mut seen);
                    }
                    let targets = if multilabel {
                        data.sets()
                    } else {
                        data.labels()
                    };
                    let batch =
                        Batch::new(rows, targets, Some(Values::F32(&data.weights))).unwrap();
                    let mut oaa = Model::create(params, 150, multilabel).unwrap();
                    oaa.partial_fit(&batch, 1, None, &control()).unwrap();
                    let got = all_scores(&oaa, &rows, 1);
                    let in_use = plain.in_use();
                    let weights = if average { &plain.average } else { &in_use };
                    let mut example = RowBuffer::default();
                    for i in 0..700 {
                        plain.preparation.read(&rows, i, &mut example);
                        let expected = Plain::scores(weights, &example);
                        for k in (0..150).filter(|&k| seen[k]) {
                            let (got, expected) = (f64::from(got[i * 150 + k]), expected[k]);
                            assert!(
                                (got - expected).abs() < 3e-3,
                                "{loss:?} {optimizer:?} sets {multilabel} average {average} \
                                 l1 {l1} l2 {l2}: row {i} class {k}: {got} not {expected}"
                            );
                        }
                    }
                    let progressive = oaa.progressive_loss().unwrap();
                    assert!((progressive - plain.wrong / plain.weight).abs() < 0.01);
                }
            }
        }
    }
}

#[test]
fn vector_steps_are_the_steps_of_the_loss() {
    // By way of one example: its only update shows the step.
    for loss in LOSSES.into_iter().filter(|loss| loss.single().is_some()) {
        for rate in [1e-9, 0.3, 2.0] {
            let params = Params {
                learning_rate: Some(rate),
                average: Average::Chosen(false),
                scaling: Scaling::None,
                ..params(loss, Optimizer::Sgd)
            };
            let bias = params.initial_bias();
            let mut oaa = Model::create(params, 2, false).unwrap();
            let rows = Rows::dense(Values::F32(&[2.0]), 1, 1).unwrap();
            let one = Targets::One(Labels::new(&[1], 2).unwrap());
            let other = Targets::One(Labels::new(&[0], 2).unwrap());
            for targets in [one, other] {
                let before = oaa
                    .members()
                    .first()
                    .map_or([bias; 2], |member| score_of(&member.learner.tiles[0]));
                let batch = Batch::new(rows, targets, None).unwrap();
                oaa.partial_fit(&batch, 1, None, &control()).unwrap();
                let after = score_of(&learner(&oaa).tiles[0]);
                let Targets::One(labels) = targets else {
                    unreachable!()
                };
                for k in 0..2 {
                    let y = if labels.as_slice()[0] as usize == k {
                        1.0
                    } else {
                        -1.0
                    };
                    let step =
                        loss.single()
                            .unwrap_or(Loss::Hinge)
                            .step(y, before[k], rate as f32, 5.0);
                    let moved = after[k] - before[k];
                    assert!((moved - 5.0 * step).abs() < 1e-5, "{loss:?} {rate} {k}");
                }
            }
        }
    }
}

fn score_of(tile: &super::tile::Tile) -> [f32; 2] {
    let width = tile.width();
    [0, 1].map(|k| tile.weights[k] + 2.0 * tile.weights[width + k])
}

#[test]
fn the_model_does_not_depend_on_the_threads() {
    let data = Data::new(600, 24, 200, 2);
    for optimizer in [Optimizer::Pn, Optimizer::Nag] {
        let fitted = |n_threads| {
            let mut oaa =
                Model::create(params(OaaLoss::SquaredHinge, optimizer), 200, false).unwrap();
            oaa.fit(&data.batch(), FitOptions::threads(n_threads), &control())
                .unwrap();
            oaa
        };
        let (one, three) = (fitted(1), fitted(3));
        assert_eq!(one.to_bytes().unwrap(), three.to_bytes().unwrap());
        assert_eq!(one.progressive_loss(), three.progressive_loss());
        let rows = data.rows();
        let a = one
            .predict_topk(&Query::new(&rows, 1, &control()), 3)
            .unwrap();
        let b = one
            .predict_topk(&Query::new(&rows, 3, &control()), 3)
            .unwrap();
        assert_eq!(a, b);
        let a = all_scores(&one, &rows, 1);
        let b = all_scores(&one, &rows, 2);
        assert_eq!(a, b);
    }
}

#[test]
fn learning_goes_on_after_storing_as_if_nothing_had_happened() {
    let data = Data::new(300, 24, 70, 3);
    let (first, more) = (data.batch(), Data::new(300, 24, 70, 4));
    for loss in LOSSES {
        for optimizer in [
            Optimizer::Pn,
            Optimizer::Nag,
            Optimizer::Adagrad,
            Optimizer::Sgd,
        ] {
            let mut params = Params {
                l1: 1e-4,
                l2: 1e-3,
                n_negatives: Some(10),
                average: Average::Chosen(true),
                n_bits: (loss == OaaLoss::Hinge).then_some(4),
                scaling: if loss == OaaLoss::Squared {
                    Scaling::Standard
                } else {
                    Scaling::Auto
                },
                ..params(loss, optimizer)
            };
            if loss == OaaLoss::Softmax {
                params.n_negatives = None;
                if params.is_adaptive() {
                    continue;
                }
            }
            let mut oaa = Model::create(params, 70, false).unwrap();
            let fresh = Model::from_bytes(&oaa.to_bytes().unwrap()).unwrap();
            assert_eq!((fresh.n_features(), fresh.params()), (0, oaa.params()));
            oaa.fit(&first, FitOptions::threads(1), &control()).unwrap();
            let mut again = Model::from_bytes(&oaa.to_bytes().unwrap()).unwrap();
            for oaa in [&mut oaa, &mut again] {
                oaa.partial_fit(&more.batch(), 1, None, &control()).unwrap();
            }
            assert_eq!(oaa.to_bytes().unwrap(), again.to_bytes().unwrap());
            let rows = more.rows();
            assert_eq!(all_scores(&oaa, &rows, 1), all_scores(&again, &rows, 1));
            assert_eq!(oaa.progressive_loss(), again.progressive_loss());
            assert_eq!(oaa.n_examples_seen(), 900);
        }
    }
}

#[test]
fn made_up_files_are_refused() {
    let data = Data::new(50, 24, 70, 3);
    let mut oaa = Model::create(Params::default(), 70, false).unwrap();
    oaa.fit(&data.batch(), FitOptions::threads(1), &control())
        .unwrap();
    assert!(Model::from_bundle(oaa.to_bundle()).is_ok());
    let refused = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = oaa.to_bundle();
        change(&mut bundle);
        assert!(matches!(
            Model::from_bundle(bundle),
            Err(Error::ModelFile(_))
        ));
    };
    let member_refused = |change: &dyn Fn(&mut Bundle)| {
        refused(&|bundle| {
            let mut member = bundle.unnest("member0").unwrap();
            change(&mut member);
            bundle.nest("member0", member);
        });
    };
    for name in [
        "columns",
        "weights",
        "average_sums",
        "seen",
        "column_squares",
        "totals.t",
    ] {
        member_refused(&|member| {
            let _ = member.take::<u32>(name);
            member.take::<u8>(name).ok();
            member.take::<f32>(name).ok();
        });
    }
    member_refused(&|member| {
        let mut columns = member.take::<u32>("columns").unwrap();
        columns[3] = columns[4];
        member.put("columns", columns);
    });
    refused(&|bundle| {
        let _: usize = bundle.take_meta("n_classes").unwrap();
        bundle.put_meta("n_classes", &0);
    });
}
