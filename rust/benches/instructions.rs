//! The hot loops. `make check SELECT=counts` counts the instructions of each under valgrind.
//!
//! Without arguments the program lists the loops. With the name of a loop, it prepares the loop,
//! prints the instruction set of the kernels that are used, and runs the loop once in
//! [`measured_loop`]. Only this part is counted. Everything runs on one thread.

use std::hint::black_box;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use set::Set;
use xmtree::data::{Batch, Indices, LabelSets, Rows, Targets, Values};
use xmtree::learners::find;
use xmtree::metrics::{propensities, softmax_slope, Outcome, Ranking, Scores, Weights};
use xmtree::model::{Classifier, FitOptions, Query};
use xmtree::text::{load, save_xmc, Source, Svmlight, SvmlightOptions, Xmc};
use xmtree::Control;

mod set;

/// Names of the loops: learner/work/data, text/format or metrics/measure. `learn` is `partial_fit` of
/// a model that has learned the rows, or `fit` if the learner is not online. `rows` calls `predict`
/// for each row.
const LOOPS: &[&str] = &[
    "oaa/learn/sparse",
    "oaa/learn/dense",
    "oaa/predict/sparse",
    "oaa/predict/dense",
    "oaa/rows/sparse",
    "lomtree/learn/sparse",
    "lomtree/learn/dense",
    "lomtree/predict/sparse",
    "lomtree/predict/dense",
    "lomtree/rows/sparse",
    "recall-tree/learn/sparse",
    "recall-tree/learn/dense",
    "recall-tree/predict/sparse",
    "recall-tree/predict/dense",
    "recall-tree/rows/sparse",
    "filter-tree/learn/sparse",
    "filter-tree/learn/dense",
    "filter-tree/predict/sparse",
    "filter-tree/rows/sparse",
    "ldsm-trees/learn/sparse",
    "ldsm-trees/learn/dense",
    "ldsm/learn/sparse",
    "ldsm/predict/sparse",
    "ldsm/rows/sparse",
    "gamble/learn/dense",
    "gamble/learn/sparse",
    "gamble/predict/dense",
    "gamble/rows/dense",
    "text/svmlight",
    "text/xmc",
    "metrics/precision",
    "metrics/propensity-scored",
    "metrics/top-label-loss",
];

/// Number of rows that are predicted one by one.
const N_SINGLE: usize = 100;

/// The loop that is counted.
type Run = Box<dyn FnMut()>;

fn main() {
    // Cargo adds the argument --bench.
    match std::env::args().nth(1).filter(|name| name != "--bench") {
        None => LOOPS.iter().for_each(|name| println!("{name}")),
        Some(name) => {
            let mut run = prepare(&name);
            println!("{}", instruction_set());
            measured_loop(&mut *run);
        }
    }
}

/// Runs the loop. tools/counts.py counts the instructions between the call and the return of the
/// function of this name.
#[inline(never)]
fn measured_loop(run: &mut dyn FnMut()) {
    run();
}

/// Returns the widest instruction set that this machine and the kernels have.
fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    for (set, is_there) in [
        ("avx512", std::is_x86_feature_detected!("avx512f")),
        ("avx2", std::is_x86_feature_detected!("avx2")),
    ] {
        if is_there {
            return set;
        }
    }
    "baseline"
}

fn prepare(name: &str) -> Run {
    match name.split('/').collect::<Vec<_>>()[..] {
        ["text", format] => parse(format),
        ["metrics", "top-label-loss"] => top_label_loss(),
        ["metrics", measure] => ranking_measures(measure == "propensity-scored"),
        [learner, "learn", data] => {
            let set = set(data);
            let (mut model, data) = (model(learner, set), batch(learner, set));
            if model.is_online {
                model.learn(&data);
            }
            Box::new(move || model.learn(&data))
        }
        [learner, "predict", data] => {
            let set = set(data);
            let (mut model, data) = (model(learner, set), batch(learner, set));
            model.learn(&data);
            model.freeze(&data.rows);
            model.predict(&data.rows);
            Box::new(move || model.predict(&data.rows))
        }
        [learner, "rows", data] => {
            let set = set(data);
            let mut model = model(learner, set);
            model.learn(&batch(learner, set));
            model.freeze(&set.rows());
            model.predict(&set.rows());
            let rows: Vec<Rows> = (0..N_SINGLE).map(|row| row_of(set, row)).collect();
            Box::new(move || rows.iter().for_each(|row| model.predict(row)))
        }
        _ => panic!("no loop is called {name:?}"),
    }
}

struct Model {
    classifier: Box<dyn Classifier>,
    is_online: bool,
    /// Labels to predict for each row; `predict` is called for 1, `predict_topk` for more.
    k: usize,
}

impl Model {
    fn learn(&mut self, batch: &Batch<'_>) {
        let control = Control::new(0);
        if self.is_online {
            self.classifier.partial_fit(batch, 1, &control)
        } else {
            self.classifier.fit(batch, FitOptions::threads(1), &control)
        }
        .expect("sound data");
    }

    /// Freezes the model. Its nodes are numbered in the frozen form, whether or not the learner
    /// reports them.
    fn freeze(&self, rows: &Rows<'_>) {
        let control = Control::new(0);
        let _ = self.classifier.leaves(&Query::new(rows, 1, &control));
    }

    fn predict(&self, rows: &Rows<'_>) {
        let control = Control::new(0);
        let query = Query::new(rows, 1, &control);
        if self.k == 1 {
            black_box(self.classifier.predict(&query).expect("sound data"));
        } else {
            let answers = self.classifier.predict_topk(&query, self.k);
            black_box(answers.expect("sound data"));
        }
    }
}

// Few small trees, and options that would otherwise be fitted, because valgrind is slow.
const LDSM: &str = r#"{"n_estimators": 2, "max_nodes": 31, "n_epochs": 3, "cost": 1.0,
    "n_negatives": 8}"#;
const LDSM_TREES: &str = r#"{"n_estimators": 1, "max_nodes": 31, "scorers": "none"}"#;
const GAMBLE: &str = r#"{"n_estimators": 1, "max_leaves": 63}"#;

/// Returns an untrained model. Online learners have their defaults.
fn model(learner: &str, set: &Set) -> Model {
    let (name, params, is_online, k) = match learner {
        "ldsm" => ("ldsm", LDSM, false, 5),
        "ldsm-trees" => ("ldsm", LDSM_TREES, false, 5),
        "gamble" => ("gamble", GAMBLE, false, 1),
        online => (online, "{}", true, 1),
    };
    let registration = find(name).expect("a name of the list");
    let n_classes = if name == "ldsm" {
        n_labels(set)
    } else {
        set.n_classes
    };
    let classifier = registration.create(params, n_classes, name == "ldsm");
    Model {
        classifier: classifier.expect("sound parameters"),
        is_online,
        k,
    }
}

/// Number of classes that share an additional label in label sets.
const GROUP: usize = 8;

/// Returns the number of labels of label sets: the classes and their groups.
fn n_labels(set: &Set) -> usize {
    set.n_classes + set.n_classes.div_ceil(GROUP)
}

/// Returns a data set of 2,000 rows. It is never freed, because the process runs only one loop.
fn set(name: &str) -> &'static Set {
    Box::leak(Box::new(match name {
        "sparse" => Set::sparse(400, 2000, 5000),
        "dense" => Set::dense(2000),
        _ => panic!("no data set is called {name:?}"),
    }))
}

/// Returns the rows with one label each; for LdSM, with the label and that of its group.
fn batch(learner: &str, set: &'static Set) -> Batch<'static> {
    if !learner.starts_with("ldsm") {
        return set.batch();
    }
    let targets = Targets::Sets(label_sets(set));
    Batch::new(set.rows(), targets, None).expect("as many targets as rows")
}

/// Returns label sets: the label of each row and that of its group.
fn label_sets(set: &'static Set) -> LabelSets<'static> {
    let with_group = |&label: &u32| {
        let group = set.n_classes + label as usize / GROUP;
        [label as i32, group as i32]
    };
    let labels: Vec<i32> = set.labels.iter().flat_map(with_group).collect();
    let starts: Vec<i64> = (0..=set.n_rows as i64).map(|row| 2 * row).collect();
    let (starts, labels) = (Indices::I64(starts.leak()), Indices::I32(labels.leak()));
    LabelSets::new(starts, labels, n_labels(set)).expect("sound label sets")
}

fn row_of(set: &'static Set, row: usize) -> Rows<'static> {
    if set.starts.is_empty() {
        let values = &set.values[row * set.n_cols..][..set.n_cols];
        return Rows::dense(Values::F32(values), 1, set.n_cols, false).expect("a sound row");
    }
    let (from, to) = (set.starts[row], set.starts[row + 1]);
    let starts = Indices::I64(vec![0, to - from].leak());
    let range = from as usize..to as usize;
    let columns = Indices::I32(&set.columns[range.clone()]);
    Rows::csr(
        starts,
        columns,
        Values::F32(&set.values[range]),
        set.n_cols,
        false,
    )
    .expect("a sound row")
}

fn open(path: &Path) -> Source {
    Source::open(path).expect("a file")
}

/// Reads a file of the sparse set. Only the parser runs on the calling thread and is counted.
fn parse(format: &str) -> Run {
    let set = set("sparse");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows");
    let control = Control::new(0);
    save_xmc(&path, &set.rows(), &label_sets(set), &control).expect("a new file");
    if format == "xmc" {
        return Box::new(move || {
            let _kept = &folder;
            black_box(load(open(&path), Xmc::new(None), &control).expect("a sound file"));
        });
    }
    let text = std::fs::read_to_string(&path).expect("text");
    let (_header, lines) = text.split_once('\n').expect("lines");
    std::fs::write(&path, lines).expect("a new file");
    Box::new(move || {
        let _kept = &folder;
        let format = Svmlight::new(SvmlightOptions::default()).expect("sound options");
        black_box(load(open(&path), format, &control).expect("a sound file"));
    })
}

/// Computes the measures at 1, 3 and 5 of rankings of five labels that are often right.
fn ranking_measures(by_propensity: bool) -> Run {
    let set = set("sparse");
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut ranking = Vec::with_capacity(set.n_rows * 5);
    for &label in &set.labels {
        let mut row: Vec<i32> = (0..5)
            .map(|i| (label as i32 + i) % set.n_classes as i32)
            .collect();
        row.swap(0, random.random_range(0..5));
        ranking.extend(row);
    }
    let ranking: &'static [i32] = ranking.leak();
    let weights = by_propensity.then(|| {
        let counts: Vec<i64> = (0..n_labels(set) as i64).collect();
        let propensities = propensities(&counts, set.n_rows, 0.55, 1.5);
        Weights::new(&propensities.expect("sound counts"), None).expect("sound propensities")
    });
    let truth = label_sets(set);
    Box::new(move || {
        let ranking = Ranking::labels(Indices::I32(ranking), set.n_rows, 5, Some(n_labels(set)));
        let scores = Scores::new(&[1, 3, 5], weights.clone(), false);
        let (mut scores, ranking) = (scores.expect("sound cuts"), ranking.expect("labels"));
        let added = scores.add(&truth, &ranking, &Control::new(0));
        added.expect("as many rows");
        black_box(scores.measures().expect("rows"));
    })
}

/// Fits the slope of a softmax to rows of ten scores.
fn top_label_loss() -> Run {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let scores: Vec<f32> = (0..20_000)
        .map(|_| random.random_range(-1.0..1.0))
        .collect();
    Box::new(move || {
        let rows = scores.chunks_exact(10).enumerate();
        let outcomes = rows.map(|(i, row)| Outcome {
            row,
            is_right: i % 3 > 0,
            weight: 1.0,
        });
        black_box(softmax_slope(&outcomes.collect::<Vec<_>>()));
    })
}
