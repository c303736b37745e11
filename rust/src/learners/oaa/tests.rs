//! Data of all tests; threads and files.

mod behavior;
mod details;
mod growth;
mod pruned;
mod reference;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::chunk::{PolynomialAverage, AVERAGING_POWER};
use super::*;
use crate::control::Control;
use crate::data::{
    Batch, Indices, LabelSets, Labels, Preparation, RowBuffer, Rows, Scaling, Targets, Values,
};
use crate::error::Error;
use crate::file::{Array, Bundle};
use crate::linear::{Optimizer, Power, Preconditioner};
use crate::model::{Classifier, FitOptions, Learner, OnlineLearner, OnlineModel, Query};

type Model = OnlineModel<Oaa>;

/// Returns the learner of a trained model.
fn learner(model: &Model) -> &Oaa {
    &model.members[0].learner
}

/// Returns the scores of all classes, row by row.
fn all_scores(model: &Model, rows: &Rows<'_>, n_threads: usize) -> Vec<f32> {
    let scores = model.predict_scores(&Query::new(rows, n_threads, &control()));
    match scores.unwrap() {
        Array::F32(scores) => scores.into_vec(),
        other => panic!("{other:?}"),
    }
}

/// Sparse rows, labels and label sets that depend on them, and weights.
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
    /// Returns `n` random rows. Column 7 and the last class never occur.
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
        Rows::csr(
            starts,
            columns,
            Values::F32(&self.values),
            self.n_cols,
            false,
        )
        .unwrap()
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

#[test]
fn vector_steps_equal_the_steps_of_the_loss() {
    let scores = std::array::from_fn(|i| (i as f32 - 8.0) / 3.0);
    for loss in LOSSES.into_iter().filter_map(OaaLoss::single) {
        for rate in [1e-9, 0.3, 2.0] {
            let [steps] = super::kernels::negative_steps(loss, &[scores], rate);
            for (p, step) in scores.into_iter().zip(steps) {
                let expected = loss.step(-1.0, p, rate, 1.0);
                assert!(
                    (step - expected).abs() <= 1e-6 * expected.abs(),
                    "{loss:?} {rate} {p}"
                );
            }
        }
    }
}

/// Returns the scores by the last weights, not their average.
fn last_scores(model: &Model, rows: &Rows<'_>) -> Vec<f32> {
    let member = &model.members[0];
    let mut row = RowBuffer::default();
    let mut all = Vec::new();
    for i in 0..rows.n_rows() {
        member.preparation.read(rows, i, &mut row);
        member.learner.preparer.translate(&mut row);
        for tile in &member.learner.tiles {
            let products = |k: usize| {
                let features = row.columns.iter().zip(&row.values);
                features.map(move |(&slot, x)| x * tile.weights[slot as usize * tile.width() + k])
            };
            let n = tile.width().min(model.n_classes() - tile.first);
            all.extend((0..n).map(|k| products(k).sum::<f32>()));
        }
    }
    all
}

#[test]
fn model_does_not_depend_on_the_number_of_threads() {
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
fn training_continues_exactly_after_loading() {
    let data = Data::new(300, 24, 70, 3);
    let (first, more) = (data.batch(), Data::new(300, 24, 70, 4));
    for loss in LOSSES {
        for optimizer in [Optimizer::Pn, Optimizer::Nag] {
            let mut params = Params {
                n_negatives: Some(10),
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
            assert_eq!(fresh.n_features(), 0);
            assert_eq!(fresh.params_json().unwrap(), oaa.params_json().unwrap());
            oaa.fit(&first, FitOptions::threads(1), &control()).unwrap();
            let mut again = Model::from_bytes(&oaa.to_bytes().unwrap()).unwrap();
            for oaa in [&mut oaa, &mut again] {
                oaa.partial_fit(&more.batch(), 1, &control()).unwrap();
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
fn damaged_files_are_refused() {
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
