//! How fast the learners learn and predict, without Python, on one thread.
//!
//! Everything is online: one call learns all rows once, on top of a copy of a
//! model that has seen them, so that what is timed is a model at work, not its
//! growth from nothing. Copying is not timed.

use std::hint::black_box;
use std::time::Duration;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, SamplingMode, Throughput};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xmtree::classifier::{Learner, OnlineModel, Query};
use xmtree::data::{Batch, Indices, Labels, Rows, Targets, Values};
use xmtree::learners::label_tree::{self, LabelTree};
use xmtree::learners::lomtree::{self, LomTree};
use xmtree::learners::oaa::{self, Oaa};
use xmtree::learners::recall_tree::{self, OnlineRecallTree};
use xmtree::linear::Loss;
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

/// Times `partial_fit` of copies of a model that knows the rows, and `predict` with it.
fn time<L: Learner + Clone>(c: &mut Criterion, name: &str, sets: &[Set], params: &L::Params) {
    let mut group = c.benchmark_group(name);
    let control = Control::new(0);
    let learn = |model: &mut L, batch: &Batch<'_>| {
        model
            .partial_fit(batch, 1, None, &control)
            .expect("sound data");
    };
    for set in sets {
        let (rows, batch) = (set.rows(), set.batch());
        let mut model = L::create(params.clone(), set.n_classes, false).expect("sound parameters");
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
        let predict = || {
            model
                .predict(&Query::new(&rows, 1, &control))
                .expect("sound data")
        };
        let answers = predict();
        let pairs = answers.iter().zip(&set.labels);
        let n_right = pairs
            .filter(|(&answer, &label)| answer == label as i32)
            .count();
        // Speed without learning would mean nothing. (A tree that cannot choose its
        // order gets less than half of the dense rows right, of 26 classes.)
        assert!(5 * n_right > set.n_rows, "nothing learned");
        group.bench_function(format!("predict/{}", set.name), |b| {
            b.iter(|| black_box(predict()));
        });
    }
    group.finish();
}

fn learners(c: &mut Criterion) {
    let sets = [Set::sparse(), Set::dense()];
    let params = lomtree::Params {
        loss: Loss::SquaredHinge,
        ..lomtree::Params::default()
    };
    time::<OnlineModel<LomTree>>(c, "lomtree", &sets, &params);
    let params = label_tree::Params::default();
    time::<OnlineModel<LabelTree>>(c, "filter_tree", &sets, &params);
    let params = recall_tree::Params {
        beam_size: 1,
        ..recall_tree::Params::default()
    };
    time::<OnlineModel<OnlineRecallTree>>(c, "recall_tree", &sets, &params);
    time::<OnlineModel<Oaa>>(c, "oaa", &sets, &oaa::Params::default());
}

criterion_group!(benches, learners);
criterion_main!(benches);
