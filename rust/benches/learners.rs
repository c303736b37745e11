//! How fast the learners learn and predict, without Python, on one thread.
//!
//! Everything is online: one call learns all rows once, on top of a copy of a
//! model that has seen them, so that what is timed is a model at work, not its
//! growth from nothing. Copying is not timed.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    criterion_group, criterion_main, BatchSize, BenchmarkGroup, Criterion, SamplingMode, Throughput,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xmtree::classifier::{Classifier, Learner, Schedule};
use xmtree::data::{Batch, Targets};
use xmtree::data::{Indices, Labels, Rows, Scaling, Values};
use xmtree::learners::label_tree::{self, LabelOrder, LabelTree, Policy};
use xmtree::learners::lomtree::{self, Forest};
use xmtree::learners::oaa::{self, Oaa};
use xmtree::learners::recall_tree::{self, RecallTree};
use xmtree::linear::{Loss, Optimizer};
use xmtree::Control;

/// A data set in memory: each class has columns (or a centre) of its own, and
/// its rows are that with noise.
struct Set {
    name: &'static str,
    n_classes: usize,
    n_rows: usize,
    n_cols: usize,
    /// Start of each row; empty if dense.
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<f32>,
    labels: Vec<u32>,
}

impl Set {
    /// Many classes, few of very many features: 2/3 of a row's non-zeros are its class's.
    fn sparse() -> Self {
        const NNZ: usize = 30;
        let (n_classes, n_rows, n_cols) = (1000, 20_000, 10_000);
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let own: Vec<Vec<i32>> = (0..n_classes)
            .map(|_| {
                (0..NNZ)
                    .map(|_| random.random_range(0..n_cols as i32))
                    .collect()
            })
            .collect();
        let mut set = Self::empty("sparse", n_classes, n_rows, n_cols);
        set.starts.push(0);
        for _ in 0..n_rows {
            let label = random.random_range(0..n_classes);
            let mut row: Vec<i32> = Vec::with_capacity(NNZ);
            while row.len() < NNZ {
                let column = if random.random_bool(2.0 / 3.0) {
                    own[label][random.random_range(0..NNZ)]
                } else {
                    random.random_range(0..n_cols as i32)
                };
                if let Err(place) = row.binary_search(&column) {
                    row.insert(place, column);
                }
            }
            set.columns.extend(row);
            set.values
                .extend((0..NNZ).map(|_| random.random_range(0.5..1.5f32)));
            set.starts.push(set.columns.len() as i64);
            set.labels.push(label as u32);
        }
        set
    }

    /// Few classes, few features, all of them present.
    fn dense() -> Self {
        let (n_classes, n_rows, n_cols) = (26, 20_000, 16);
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let centres: Vec<f32> = (0..n_classes * n_cols)
            .map(|_| random.random_range(-1.0..1.0f32))
            .collect();
        let mut set = Self::empty("dense", n_classes, n_rows, n_cols);
        for _ in 0..n_rows {
            let label = random.random_range(0..n_classes);
            let centre = &centres[label * n_cols..(label + 1) * n_cols];
            set.values
                .extend(centre.iter().map(|c| c + random.random_range(-1.0..1.0f32)));
            set.labels.push(label as u32);
        }
        set
    }

    fn empty(name: &'static str, n_classes: usize, n_rows: usize, n_cols: usize) -> Self {
        Self {
            name,
            n_classes,
            n_rows,
            n_cols,
            starts: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
            labels: Vec::new(),
        }
    }

    fn rows(&self) -> Rows<'_> {
        let values = Values::F32(&self.values);
        if self.starts.is_empty() {
            Rows::dense(values, self.n_rows, self.n_cols)
        } else {
            let starts = Indices::I64(&self.starts);
            Rows::csr(starts, Indices::I32(&self.columns), values, self.n_cols)
        }
        .expect("sound rows")
    }

    fn batch(&self) -> Batch<'_> {
        let labels = Labels::new(&self.labels, self.n_classes).expect("sound labels");
        Batch::new(self.rows(), Targets::One(labels), None).expect("as many labels as rows")
    }
}

/// The defaults of the Python class.
fn lomtree_params() -> lomtree::Params {
    lomtree::Params {
        loss: Loss::SquaredHinge,
        optimizer: Optimizer::Pn,
        scaling: Scaling::Auto,
        n_bits: None,
        learning_rate: 1.0,
        decay: 1.0,
        nodes_per_class: 64.0,
        max_internal: None,
        swap_resistance: 4.0,
        split_threshold: 5.0,
        soft_depth: Some(2.0),
        reset_recycled: false,
        score_clamp: Some(1.0),
        weighted_counts: true,
        leaf_smoothing: 1.0,
        n_estimators: 1,
        schedule: Schedule {
            n_passes: 1,
            seed: 0,
            early_stopping: false,
            validation_fraction: 0.1,
            patience: 2,
        },
    }
}

/// The defaults of the Python class of the filter tree.
fn filter_tree_params() -> label_tree::Params {
    label_tree::Params {
        policy: Policy::Filter,
        loss: Loss::Hinge,
        optimizer: Optimizer::Pn,
        scaling: Scaling::Auto,
        n_bits: None,
        learning_rate: 1.0,
        decay: 0.3,
        label_order: LabelOrder::Given,
        schedule: lomtree_params().schedule,
    }
}

/// The defaults of the Python class.
fn recall_tree_params() -> recall_tree::Params {
    recall_tree::Params {
        beam_size: 1,
        n_passes: 1,
        ..recall_tree::Params::default()
    }
}

/// Times `learn` on copies of `model`, which knows the rows, and `predict` with it.
fn time<M: Clone>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    set: &Set,
    mut model: M,
    learn: impl Fn(&mut M, &Batch<'_>),
    predict: impl Fn(&M, &Rows<'_>) -> Vec<i32>,
) {
    let (rows, batch) = (set.rows(), set.batch());
    group
        .throughput(Throughput::Elements(set.n_rows as u64))
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    learn(&mut model, &batch);
    group.bench_function(format!("learn/{}", set.name), |b| {
        b.iter_batched_ref(
            || model.clone(),
            |model| learn(model, &batch),
            BatchSize::PerIteration,
        );
    });
    let right = |answers: &[i32]| {
        let pairs = answers.iter().zip(&set.labels);
        pairs
            .filter(|(&answer, &label)| answer == label as i32)
            .count()
    };
    // Speed without learning would mean nothing. (A tree that cannot choose its
    // order gets less than half of the dense rows right, of 26 classes.)
    assert!(
        5 * right(&predict(&model, &rows)) > set.n_rows,
        "nothing learned"
    );
    group.bench_function(format!("predict/{}", set.name), |b| {
        b.iter(|| black_box(predict(&model, &rows)));
    });
}

fn lomtree(c: &mut Criterion, sets: &[Set]) {
    let mut group = c.benchmark_group("lomtree");
    for set in sets {
        let control = Control::new(0);
        time(
            &mut group,
            set,
            Forest::new(lomtree_params(), set.n_classes).expect("sound options"),
            |forest, batch| forest.partial_fit(batch, 1, &control).expect("sound data"),
            |forest, rows| {
                forest
                    .predict_topk(rows, 1, 1, &control)
                    .expect("sound data")
                    .0
            },
        );
    }
    group.finish();
}

fn filter_tree(c: &mut Criterion, sets: &[Set]) {
    let mut group = c.benchmark_group("filter_tree");
    for set in sets {
        let control = Control::new(0);
        time(
            &mut group,
            set,
            LabelTree::new(filter_tree_params(), set.n_classes).expect("sound options"),
            |tree, batch| tree.partial_fit(batch, &control).expect("sound data"),
            |tree, rows| tree.predict(rows, 1, &control).expect("sound data"),
        );
    }
    group.finish();
}

fn recall_tree(c: &mut Criterion, sets: &[Set]) {
    let mut group = c.benchmark_group("recall_tree");
    for set in sets {
        let control = Control::new(0);
        time(
            &mut group,
            set,
            RecallTree::create(recall_tree_params(), set.n_classes, false).expect("sound options"),
            |tree, batch| {
                tree.partial_fit(batch, 1, None, &control)
                    .expect("sound data");
            },
            |tree, rows| tree.predict(rows, 1, &control).expect("sound data"),
        );
    }
    group.finish();
}

fn oaa(c: &mut Criterion, sets: &[Set]) {
    let mut group = c.benchmark_group("oaa");
    for set in sets {
        let control = Control::new(0);
        time(
            &mut group,
            set,
            Oaa::new(oaa::Params::default(), set.n_classes, false).expect("sound options"),
            |oaa, batch| oaa.partial_fit(batch, 1, &control).expect("sound data"),
            |oaa, rows| {
                oaa.predict_topk(rows, 1, 1, &control)
                    .expect("sound data")
                    .0
            },
        );
    }
    group.finish();
}

fn learners(c: &mut Criterion) {
    let sets = [Set::sparse(), Set::dense()];
    lomtree(c, &sets);
    filter_tree(c, &sets);
    recall_tree(c, &sets);
    oaa(c, &sets);
}

criterion_group!(benches, learners);
criterion_main!(benches);
