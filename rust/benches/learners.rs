//! Times learning and prediction of the online learners, without Python, on one thread.
//!
//! Each call learns all rows once, with a copy of a model that has already learned them. So the
//! times are those of a grown model. Copying is not timed.

use std::hint::black_box;
use std::time::Duration;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, SamplingMode, Throughput};
use set::Set;
use xmtree::data::Batch;
use xmtree::learners::label_tree::{self, LabelTree};
use xmtree::learners::lomtree::{self, LomTree};
use xmtree::learners::oaa::{self, Oaa};
use xmtree::learners::recall_tree::{self, OnlineRecallTree};
use xmtree::linear::Loss;
use xmtree::model::{Learner, OnlineModel, Query};
use xmtree::Control;

mod set;

/// Times `partial_fit` of copies of a model that has learned the rows, and `predict`.
fn time<L: Learner + Clone>(
    c: &mut Criterion,
    name: &str,
    sets: &[(&str, Set)],
    params: &L::Params,
) {
    let mut group = c.benchmark_group(name);
    let control = Control::new(0);
    let learn = |model: &mut L, batch: &Batch<'_>| {
        model.partial_fit(batch, 1, &control).expect("sound data");
    };
    for (name, set) in sets {
        let (rows, batch) = (set.rows(), set.batch());
        let mut model = L::create(params.clone(), set.n_classes, false).expect("sound parameters");
        group
            .throughput(Throughput::Elements(set.n_rows as u64))
            .sampling_mode(SamplingMode::Flat)
            .sample_size(10)
            .warm_up_time(Duration::from_secs(1))
            .measurement_time(Duration::from_secs(4));
        learn(&mut model, &batch);
        group.bench_function(format!("learn/{name}"), |b| {
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
        // Times of a model that has not learned would be worthless. A tree of fixed order gets less
        // than half of the dense rows right, which have 26 classes.
        assert!(5 * n_right > set.n_rows, "nothing learned");
        group.bench_function(format!("predict/{name}"), |b| {
            b.iter(|| black_box(predict()));
        });
    }
    group.finish();
}

fn learners(c: &mut Criterion) {
    let sets = [
        ("sparse", Set::sparse(1000, 20_000, 10_000)),
        ("dense", Set::dense(20_000)),
    ];
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
