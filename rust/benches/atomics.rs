//! Work of sixteen threads for tools/atomics.py. It counts the instructions that lock a cache
//! line, under valgrind: every lock and every update of a shared counter begins with one.
//!
//! Without arguments the program lists the loops. With the name of a loop and a number, it prepares
//! the loop, runs it that many times, and prints the number of examples of one run.

use std::hint::black_box;

use set::Set;
use xmtree::data::{Indices, Rows, Values};
use xmtree::learners::find;
use xmtree::model::{Classifier, FitOptions, Query};
use xmtree::Control;

mod set;

const N_THREADS: usize = 16;

/// Name of the case, learner and parameters. One pass and few small trees, because valgrind is slow.
const LEARNERS: &[(&str, &str, &str)] = &[
    ("oaa", "oaa", r#"{"n_passes": 1}"#),
    ("lomtree", "lomtree", r#"{"n_passes": 1}"#),
    (
        "lomtrees",
        "lomtree",
        r#"{"n_passes": 1, "n_estimators": 16}"#,
    ),
    ("recall-tree", "recall-tree", r#"{"n_passes": 1}"#),
    ("filter-tree", "filter-tree", r#"{"n_passes": 1}"#),
    (
        "ldsm",
        "ldsm",
        r#"{"n_estimators": 4, "max_nodes": 31, "n_epochs": 3, "cost": 1.0,
            "n_negatives": 8}"#,
    ),
    (
        "gamble",
        "gamble",
        r#"{"n_estimators": 2, "max_leaves": 63}"#,
    ),
];

/// The kinds of work: `fit`, `predict` of all rows, and `predict` of single rows by all threads.
const WORK: [&str; 3] = ["learn", "predict", "rows"];

/// Enough rows for several blocks of prediction.
const N_ROWS: usize = 8192;

/// Calls with single rows.
const N_CALLS: usize = 1024;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|name| name != "--bench");
    let Some(name) = arguments.next() else {
        for (name, ..) in LEARNERS {
            WORK.iter().for_each(|work| println!("{name}/{work}"));
        }
        return;
    };
    let n_times = arguments.next().map_or(1, |n| n.parse().expect("a number"));
    let (learner, work) = name.split_once('/').expect("learner/work");
    println!("{}", run(learner, work, n_times));
}

fn run(learner: &str, work: &str, n_times: usize) -> usize {
    let case = LEARNERS.iter().find(|(name, ..)| *name == learner);
    let &(_, kind, json) = case.expect("a learner of the list");
    let set = match kind {
        "gamble" => Set::dense(N_ROWS),
        _ => Set::sparse(300, N_ROWS, 5_000),
    };
    let batch = set.batch();
    let registration = find(kind).expect("a name of the list");
    let model = registration.create(json, set.n_classes, false);
    let mut model = model.expect("sound parameters");
    let n_fits = if work == "learn" { n_times } else { 1 };
    let control = Control::new(0);
    for _ in 0..n_fits {
        let options = FitOptions::threads(N_THREADS);
        model.fit(&batch, options, &control).expect("sound rows");
    }
    let predict = |query: &Query<'_>| {
        black_box(model.predict(query).expect("sound rows"));
    };
    match work {
        "learn" => N_ROWS,
        "predict" => {
            (0..n_times).for_each(|_| predict(&Query::new(&batch.rows, N_THREADS, &control)));
            N_ROWS
        }
        "rows" => {
            // The first prediction may build caches that the others use.
            predict(&Query::new(&batch.rows, 1, &control));
            single_rows(&*model, &set, n_times);
            N_CALLS
        }
        _ => panic!("work is one of {WORK:?}"),
    }
}

/// Lets all threads predict single rows with one model.
fn single_rows(model: &dyn Classifier, set: &Set, n_times: usize) {
    let predict_rows = &|thread: usize| {
        for row in (thread..N_CALLS * n_times).step_by(N_THREADS) {
            let row = row % N_ROWS;
            let (starts, rows);
            if set.starts.is_empty() {
                let values = &set.values[row * set.n_cols..][..set.n_cols];
                rows = Rows::dense(Values::F32(values), 1, set.n_cols, false);
            } else {
                let span = set.starts[row] as usize..set.starts[row + 1] as usize;
                let (columns, values) = (&set.columns[span.clone()], &set.values[span]);
                starts = [0, columns.len() as i64];
                let (starts, columns) = (Indices::I64(&starts), Indices::I32(columns));
                rows = Rows::csr(starts, columns, Values::F32(values), set.n_cols, false);
            }
            let (rows, control) = (rows.expect("a sound row"), Control::new(0));
            let labels = model.predict(&Query::new(&rows, 1, &control));
            black_box(labels.expect("a sound row"));
        }
    };
    std::thread::scope(|scope| {
        (0..N_THREADS).for_each(|thread| drop(scope.spawn(move || predict_rows(thread))));
    });
}
