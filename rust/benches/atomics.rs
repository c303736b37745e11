//! Work of sixteen threads, for tools/count_atomics.py, which counts under valgrind the instructions
//! that lock a cache line: every lock taken and every counter shared begins with one.
//!
//! Without arguments the program lists the loops. With the name of one and a number it prepares
//! that loop, runs it so many times, and prints how many examples it takes each time.

use std::hint::black_box;

use set::Set;
use xmtree::data::{Indices, Rows, Values};
use xmtree::learners::find;
use xmtree::model::{Classifier, FitOptions, Query};
use xmtree::Control;

mod set;

const N_THREADS: usize = 16;

/// Learner, its parameters and their name here. A pass each, few and small trees: valgrind is slow.
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

/// What is done: `fit`, `predict` of all rows, and `predict` of one row a call from all threads.
const WORK: [&str; 3] = ["learn", "predict", "rows"];

/// Several blocks of rows for prediction.
const N_ROWS: usize = 8192;

/// Calls of single rows.
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
    let of_name = LEARNERS.iter().find(|(name, ..)| *name == learner);
    let &(_, kind, json) = of_name.expect("a learner of the list");
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
            // The first prediction may make what the others use.
            predict(&Query::new(&batch.rows, 1, &control));
            single_rows(&*model, &set, n_times);
            N_CALLS
        }
        _ => panic!("work is one of {WORK:?}"),
    }
}

/// Threads that share a model and ask it for one row at a time.
fn single_rows(model: &dyn Classifier, set: &Set, n_times: usize) {
    let of_thread = &|thread: usize| {
        for row in (thread..N_CALLS * n_times).step_by(N_THREADS) {
            let row = row % N_ROWS;
            let (starts, rows);
            if set.starts.is_empty() {
                let values = &set.values[row * set.n_cols..][..set.n_cols];
                rows = Rows::dense(Values::F32(values), 1, set.n_cols, false);
            } else {
                let of = set.starts[row] as usize..set.starts[row + 1] as usize;
                let (columns, values) = (&set.columns[of.clone()], &set.values[of]);
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
        (0..N_THREADS).for_each(|thread| drop(scope.spawn(move || of_thread(thread))));
    });
}
