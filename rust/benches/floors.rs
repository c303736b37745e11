//! Compares each hot loop with the limits of this machine:
//!
//!     cargo bench --bench floors
//!
//! For each loop it counts the products that must be computed and the memory that must be read: the
//! nodes that rows visit, and the columns that these have weights for. It measures the least time
//! that the machine needs for them, the floor, and prints the time of the loop next to it. The floor
//! includes reading the row itself. Everything runs on one thread, in one process.
//!
//! | loop | floor |
//! |---|---|
//! | one-against-all | the longer of: a product for each value and class; a sequential read of all weights of the row's columns |
//! | trees, rows together | the longer of: a scattered product for each value and node, and a product for each value and candidate; each cache line that a block of rows needs, once |
//! | trees, row by row, and learning | node after node, because a router's score decides the next node: a dependent read of a line, and independent reads of the other lines of the row's columns |
//! | LdSM | its trees, as above, and for each weight of the row's columns a scattered product or a sequential read |
//! | boosted trees | a scattered read for each node that a row visits |
//! | growing a boosted tree | a scattered product for each row, node that is split or searched, and column drawn there |

use std::hint::black_box;

use ceilings::{nanoseconds, Ceilings};
use passed::Passed;
use set::Set;
use xmtree::data::{Batch, Indices, LabelSets, Rows, Targets, Values};
use xmtree::learners::find;
use xmtree::model::{Classifier, FitOptions, Query};
use xmtree::Control;

mod ceilings;
mod passed;
mod set;

/// Number of rows that are predicted one by one.
const N_SINGLE: usize = 2000;
/// Runs of a loop. The median time counts.
const RUNS: usize = 7;
const BYTES: usize = size_of::<f32>();

fn main() {
    let mut ceilings = Ceilings::default();
    print_ceilings(&mut ceilings);
    println!();
    println!(
        "{:<32} {:>9} {:>9} {:>8} {:>9} {:>16}",
        "loop", "products", "bytes", "ns a row", "floor, ns", "times the floor"
    );
    let sparse = Set::sparse(1000, 20_000, 10_000);
    let dense = Set::dense(20_000);
    for (data, set) in [("sparse", &sparse), ("dense", &dense)] {
        one_against_all(&mut ceilings, data, set);
        for learner in ["lomtree", "filter-tree", "recall-tree"] {
            tree(&mut ceilings, learner, data, set);
        }
    }
    label_sets(&mut ceilings, "sparse", &sparse);
    boosted_trees(&mut ceilings, &dense);
}

fn print_ceilings(ceilings: &mut Ceilings) {
    println!("ceilings, ns: product {:.3}", ceilings.product());
    println!(
        "              scattered product {:.3}",
        ceilings.scattered_product()
    );
    println!("memory        byte in a row   scattered line   chained line");
    for size in [1 << 15, 1 << 20, 1 << 23, 1 << 26, 1 << 28] {
        println!(
            "{:>7} KiB    {:>8.4}        {:>8.2}         {:>8.2}",
            size >> 10,
            ceilings.byte(size),
            ceilings.line(size),
            ceilings.next_line(size)
        );
    }
}

fn report(name: &str, [products, bytes]: [f64; 2], time: f64, floor: f64) {
    let ratio = time / floor;
    println!("{name:<32} {products:>9.0} {bytes:>9.0} {time:>8.0} {floor:>9.0} {ratio:>16.1}");
}

/// Returns a model of `learner` with these parameters, trained on `set`.
fn learned(learner: &str, params: &str, set: &Set) -> Box<dyn Classifier> {
    let registration = find(learner).expect("a name of the list");
    let mut model = registration
        .create(params, set.n_classes, false)
        .expect("sound parameters");
    let options = FitOptions::threads(1);
    model
        .fit(&set.batch(), options, &Control::new(0))
        .expect("sound data");
    model
}

/// Returns the median time of several runs, in nanoseconds per row.
fn time(n_rows: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = nanoseconds();
            run();
            (nanoseconds() - start) as f64 / n_rows as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// Times of an online model: prediction of all rows together and one by one, and learning.
struct Times {
    together: f64,
    one_by_one: f64,
    learning: f64,
}

impl Times {
    fn measure(model: &mut Box<dyn Classifier>, set: &Set) -> Self {
        let (together, one_by_one) = predicting(&**model, set);
        let (batch, control) = (set.batch(), Control::new(0));
        let learning = time(set.n_rows, || {
            model.partial_fit(&batch, 1, &control).expect("sound data");
        });
        Self {
            together,
            one_by_one,
            learning,
        }
    }
}

/// Returns the times of predicting all rows together and one by one.
fn predicting(model: &dyn Classifier, set: &Set) -> (f64, f64) {
    let control = Control::new(0);
    let predict = |rows: &Rows<'_>| {
        black_box(model.predict(&Query::new(rows, 1, &control))).expect("sound rows");
    };
    let rows = set.rows();
    predict(&rows);
    let together = time(set.n_rows, || predict(&rows));
    let singles: Vec<Single> = (0..N_SINGLE).map(|row| Single::new(set, row)).collect();
    let one_by_one = time(N_SINGLE, || {
        singles.iter().for_each(|row| predict(&row.rows()));
    });
    (together, one_by_one)
}

/// A single row.
struct Single<'a> {
    starts: [i64; 2],
    columns: &'a [i32],
    values: &'a [f32],
    n_cols: usize,
}

impl<'a> Single<'a> {
    fn new(set: &'a Set, row: usize) -> Self {
        let (columns, values) = entries(set, row);
        let starts = [0, values.len() as i64];
        Self {
            starts,
            columns,
            values,
            n_cols: set.n_cols,
        }
    }

    fn rows(&'a self) -> Rows<'a> {
        let values = Values::F32(self.values);
        let rows = if self.columns.is_empty() {
            Rows::dense(values, 1, self.n_cols, false)
        } else {
            let columns = Indices::I32(self.columns);
            Rows::csr(
                Indices::I64(&self.starts),
                columns,
                values,
                self.n_cols,
                false,
            )
        };
        rows.expect("a sound row")
    }
}

/// Returns the columns and values of a row; no columns if the data set is dense.
fn entries(set: &Set, row: usize) -> (&[i32], &[f32]) {
    if set.starts.is_empty() {
        return (&[], &set.values[row * set.n_cols..][..set.n_cols]);
    }
    let range = set.starts[row] as usize..set.starts[row + 1] as usize;
    (&set.columns[range.clone()], &set.values[range])
}

/// Returns the nanoseconds of reading the values and columns of a row.
fn reading(ceilings: &mut Ceilings, set: &Set) -> f64 {
    let bytes = size_of_val(&set.values[..]) + size_of_val(&set.columns[..]);
    bytes as f64 / set.n_rows as f64 * ceilings.byte(bytes)
}

fn one_against_all(ceilings: &mut Ceilings, data: &str, set: &Set) {
    let mut model = learned("oaa", "{}", set);
    let times = Times::measure(&mut model, set);
    let values = set.values.len() / set.n_rows;
    let products = (values * set.n_classes) as f64;
    let size = set.n_cols * set.n_classes * BYTES;
    let bytes = products * BYTES as f64;
    let floor = (products * ceilings.product()).max(bytes * ceilings.byte(size));
    let floor = floor + reading(ceilings, set);
    for (how, time) in [
        ("together", times.together),
        ("one by one", times.one_by_one),
        ("learning", times.learning),
    ] {
        report(
            &format!("oaa, {how}, {data}"),
            [products, bytes],
            time,
            floor,
        );
    }
}

fn tree(ceilings: &mut Ceilings, learner: &str, data: &str, set: &Set) {
    let mut model = learned(learner, "{}", set);
    let passed = Passed::count(&*model, set, 1);
    let times = Times::measure(&mut model, set);
    let [products, together, alone] = passed.counts();
    let reading = reading(ceilings, set);
    let floor = reading + passed.together(ceilings);
    let name = format!("{learner}, together, {data}");
    report(&name, [products, together], times.together, floor);
    let floor = reading + passed.alone(ceilings);
    let name = format!("{learner}, one by one, {data}");
    report(&name, [products, alone], times.one_by_one, floor);
    let name = format!("{learner}, learning, {data}");
    report(&name, [products, alone], times.learning, floor);
}

/// Reports LdSM: its trees, and its scorers for all labels.
fn label_sets(ceilings: &mut Ceilings, data: &str, set: &Set) {
    /// Bytes of a label and its weight.
    const WEIGHT: usize = 8;
    // Options that would otherwise be fitted.
    let params = r#"{"n_estimators": 4, "n_epochs": 3, "cost": 1.0}"#;
    let mut model = find("ldsm")
        .expect("a name of the list")
        .create(params, set.n_classes, true)
        .expect("sound parameters");
    let labels: Vec<i32> = set.labels.iter().map(|&label| label as i32).collect();
    let starts: Vec<i64> = (0..=set.n_rows as i64).collect();
    let labels = LabelSets::new(Indices::I64(&starts), Indices::I32(&labels), set.n_classes);
    let targets = Targets::Sets(labels.expect("sound label sets"));
    let batch = Batch::new(set.rows(), targets, None).expect("as many label sets as rows");
    let control = Control::new(0);
    model
        .fit(&batch, FitOptions::threads(1), &control)
        .expect("sound data");
    let passed = Passed::count(&*model, set, 2);
    let n_weights: Vec<u64> = model.summary().get("n_scorer_weights").expect("scorers");
    let values = set.values.len() as f64 / set.n_rows as f64;
    let weights = n_weights[0] as f64 / set.n_cols as f64 * values;
    let size = n_weights[0] as usize * WEIGHT;
    let scorers =
        (weights * ceilings.scattered_product()).max(weights * WEIGHT as f64 * ceilings.byte(size));
    let others = reading(ceilings, set) + scorers;
    let (together, one_by_one) = predicting(&*model, set);
    let [products, bytes, bytes_alone] = passed.counts();
    let (products, scorer_bytes) = (products + weights, weights * WEIGHT as f64);
    let floor = others + passed.together(ceilings);
    let name = format!("ldsm, together, {data}");
    report(&name, [products, bytes + scorer_bytes], together, floor);
    let floor = others + passed.alone(ceilings);
    let name = format!("ldsm, one by one, {data}");
    report(
        &name,
        [products, bytes_alone + scorer_bytes],
        one_by_one,
        floor,
    );
}

fn boosted_trees(ceilings: &mut Ceilings, set: &Set) {
    /// Least number of bytes of a node: a column, a threshold and a child.
    const NODE: usize = 12;
    /// Bytes that growing a tree reads for a row and column: its code.
    const CODE: usize = 1;
    const SHARE: f64 = 0.3;
    let params = r#"{"n_estimators": 50, "max_leaves": 63, "max_features": 0.3}"#;
    let mut model = learned("gamble", params, set);
    let (rows, control) = (set.rows(), Control::new(0));
    let query = Query::new(&rows, 1, &control);
    let trees = model.reports();
    let depths: Vec<Vec<u32>> = trees
        .iter()
        .map(|t| t.get("depth").expect("depths"))
        .collect();
    let leaves = model.leaves(&query).expect("trees");
    let visits: u64 = leaves
        .iter()
        .flatten()
        .map(|leaf| u64::from(depths[leaf.tree as usize][leaf.node as usize]))
        .sum();
    let size = depths.iter().map(Vec::len).sum::<usize>() * NODE;
    let visits = visits as f64 / set.n_rows as f64;
    // Rows descend one tree after the other, so each tree is in the first-level cache.
    let visit = ceilings
        .line(size / trees.len())
        .max(ceilings.scattered_product());
    let (together, one_by_one) = predicting(&*model, set);
    let counts = [visits, visits * NODE as f64];
    let floor = reading(ceilings, set) + visits * visit;
    report("gamble, together, dense", counts, together, floor);
    report("gamble, one by one, dense", counts, one_by_one, floor);
    // Leaves with several classes are searched too.
    let searched = trees.iter().map(|tree| {
        let n_rows: Vec<u32> = tree.get("n_examples").expect("rows of nodes");
        let entropies: Vec<f64> = tree.get("label_entropy").expect("entropies");
        let nodes = n_rows.iter().zip(entropies);
        let searched = nodes.filter(|&(_, entropy)| entropy > 0.0);
        searched.map(|(&n, _)| n as usize).sum::<usize>()
    });
    let columns = (SHARE * set.n_cols as f64).ceil();
    let products = searched.sum::<usize>() as f64 * columns / set.n_rows as f64;
    let batch = set.batch();
    let fitting = time(set.n_rows, || {
        let fitted = model.fit(&batch, FitOptions::threads(1), &control);
        fitted.expect("sound data");
    });
    let counts = [products, products * CODE as f64];
    let floor = products * ceilings.scattered_product();
    report("gamble, fit, dense", counts, fitting, floor);
}
