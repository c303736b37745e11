//! How far each hot loop is above what this machine could do at best:
//!
//!     cargo bench --bench floors
//!
//! For every loop it counts the products that must be computed and the memory that must be read
//! (from the learned model: the nodes that rows pass, the columns that each of them has weights
//! for), measures what the machine takes for each of these at best, and prints the time beside
//! this floor. Reading the row itself is part of it. Everything runs on one thread, in one process.
//!
//! | floor of | is |
//! |---|---|
//! | one-against-all | the longer of: a product for each value and class; all weights of a row's columns, read in a row |
//! | trees, rows together | the longer of: a scattered product for each value and node; every cache line that a block of rows needs, once |
//! | trees, row by row, and learning | node after node, as a router's score says which comes next: a line that the one before names, and the other lines of a row's columns |
//! | boosted trees | the longer of: a scattered read for each node that a row passes; the leaves' votes |

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use ceilings::{Ceilings, LINE};
use set::Set;
use xmtree::classifier::{Classifier, FitOptions, Query};
use xmtree::data::{Batch, Indices, Rows, Values};
use xmtree::learners::find;
use xmtree::Control;

mod ceilings;
mod set;

/// Rows that trees are sent together.
const BLOCK: usize = 2048;
/// Rows predicted one by one.
const N_SINGLE: usize = 2000;
/// Runs, of which the median counts.
const RUNS: usize = 7;
const BYTES: usize = size_of::<f32>();

fn main() {
    let mut ceilings = Ceilings::default();
    print_ceilings(&mut ceilings);
    println!();
    println!("loop                          ns a row    floor    times the floor");
    let sparse = Set::sparse(1000, 20_000, 10_000);
    let dense = Set::dense(20_000);
    for (data, set) in [("sparse", &sparse), ("dense", &dense)] {
        one_against_all(&mut ceilings, data, set);
        for learner in ["lomtree", "filter-tree"] {
            tree(&mut ceilings, learner, data, set);
        }
    }
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

fn report(name: &str, time: f64, floor: f64) {
    println!("{name:<28} {time:>9.0} {floor:>8.0} {:>12.1}", time / floor);
}

/// A model of `learner`, with these parameters, that has learned `set`.
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

/// Nanoseconds a row, the median of several runs.
fn time(n_rows: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / n_rows as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// Times of a model: of rows together, row by row and, where it is online, of learning.
struct Times {
    together: f64,
    one_by_one: f64,
    learning: f64,
}

impl Times {
    fn of(model: &mut Box<dyn Classifier>, set: &Set) -> Self {
        let control = Control::new(0);
        let rows = set.rows();
        let predict = |model: &dyn Classifier, rows: &Rows<'_>| {
            black_box(model.predict(&Query::new(rows, 1, &control))).expect("sound rows");
        };
        predict(&**model, &rows);
        let together = time(set.n_rows, || predict(&**model, &rows));
        let singles: Vec<Single> = (0..N_SINGLE).map(|row| Single::of(set, row)).collect();
        let one_by_one = time(N_SINGLE, || {
            singles
                .iter()
                .for_each(|row| predict(&**model, &row.rows()));
        });
        let batch: Batch<'_> = set.batch();
        let learning = time(set.n_rows, || {
            model
                .partial_fit(&batch, 1, None, &control)
                .expect("sound data");
        });
        Self {
            together,
            one_by_one,
            learning,
        }
    }
}

/// A row by itself.
struct Single<'a> {
    starts: [i64; 2],
    columns: &'a [i32],
    values: &'a [f32],
    n_cols: usize,
}

impl<'a> Single<'a> {
    fn of(set: &'a Set, row: usize) -> Self {
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
            Rows::dense(values, 1, self.n_cols)
        } else {
            let columns = Indices::I32(self.columns);
            Rows::csr(Indices::I64(&self.starts), columns, values, self.n_cols)
        };
        rows.expect("a sound row")
    }
}

/// Columns, none where the set is dense, and values of a row.
fn entries(set: &Set, row: usize) -> (&[i32], &[f32]) {
    if set.starts.is_empty() {
        return (&[], &set.values[row * set.n_cols..][..set.n_cols]);
    }
    let range = set.starts[row] as usize..set.starts[row + 1] as usize;
    (&set.columns[range.clone()], &set.values[range])
}

/// The columns of a row.
fn columns_of(set: &Set, row: usize) -> Vec<u32> {
    match entries(set, row) {
        ([], _) => (0..set.n_cols as u32).collect(),
        (columns, _) => columns.iter().map(|&column| column as u32).collect(),
    }
}

/// Nanoseconds of the values and columns of a row that comes from outside.
fn reading(ceilings: &mut Ceilings, set: &Set) -> f64 {
    let bytes = size_of_val(&set.values[..]) + size_of_val(&set.columns[..]);
    bytes as f64 / set.n_rows as f64 * ceilings.byte(bytes)
}

fn one_against_all(ceilings: &mut Ceilings, data: &str, set: &Set) {
    let mut model = learned("oaa", "{}", set);
    let times = Times::of(&mut model, set);
    let values = set.values.len() / set.n_rows;
    let products = (values * set.n_classes) as f64;
    let size = set.n_cols * set.n_classes * BYTES;
    let bytes = products * BYTES as f64;
    let floor = (products * ceilings.product()).max(bytes * ceilings.byte(size));
    let floor = floor + reading(ceilings, set);
    report(&format!("oaa, together, {data}"), times.together, floor);
    report(&format!("oaa, one by one, {data}"), times.one_by_one, floor);
    report(&format!("oaa, learning, {data}"), times.learning, floor);
}

fn tree(ceilings: &mut Ceilings, learner: &str, data: &str, set: &Set) {
    let mut model = learned(learner, "{}", set);
    let passed = Passed::of(&*model, set);
    let times = Times::of(&mut model, set);
    let products = passed.products as f64 / set.n_rows as f64;
    let lines = passed.block_lines as f64 / set.n_rows as f64;
    let size = passed.sizes.last().copied().unwrap_or_default();
    let reading = reading(ceilings, set);
    let together = (products * ceilings.scattered_product()).max(lines * ceilings.line(size));
    let together = reading + together;
    let chain = passed.levels.iter().zip(&passed.sizes);
    let chain: f64 = chain
        .map(|(level, &size)| {
            let others = (level.lines - level.rows) as f64;
            level.rows as f64 * ceilings.next_line(size) + others * ceilings.line(size)
        })
        .sum();
    let alone = (chain / set.n_rows as f64).max(products * ceilings.scattered_product());
    let alone = reading + alone;
    report(
        &format!("{learner}, together, {data}"),
        times.together,
        together,
    );
    report(
        &format!("{learner}, one by one, {data}"),
        times.one_by_one,
        alone,
    );
    report(
        &format!("{learner}, learning, {data}"),
        times.learning,
        alone,
    );
}

/// What the rows of a set meet on their way through a tree.
#[derive(Default)]
struct Passed {
    /// Values times routers, over all rows.
    products: usize,
    /// Cache lines that the blocks of rows need, each counted once a block.
    block_lines: usize,
    /// By depth.
    levels: Vec<Level>,
    /// Bytes of weights down to each depth.
    sizes: Vec<usize>,
}

#[derive(Default, Clone, Copy)]
struct Level {
    /// Rows that pass a router there.
    rows: usize,
    /// Cache lines that they need, one row after the other.
    lines: usize,
}

impl Passed {
    fn of(model: &dyn Classifier, set: &Set) -> Self {
        let tree = model.reports().swap_remove(0);
        let parent: Vec<i32> = tree.get("parent").expect("parents");
        let depth: Vec<u32> = tree.get("depth").expect("depths");
        let rows = set.rows();
        let leaves = model
            .leaves(&Query::new(&rows, 1, &Control::new(0)))
            .expect("a tree");
        // The routers that each row passes.
        let paths: Vec<Vec<usize>> = leaves
            .iter()
            .map(|leaf| {
                let above = |&node: &usize| usize::try_from(parent[node]).ok();
                std::iter::successors(above(&(leaf[0].node as usize)), above).collect()
            })
            .collect();
        let columns: Vec<Vec<u32>> = (0..set.n_rows).map(|row| columns_of(set, row)).collect();
        let mut known: Vec<HashSet<u32>> = vec![HashSet::new(); parent.len()];
        for (path, columns) in paths.iter().zip(&columns) {
            for &node in path {
                known[node].extend(columns);
            }
        }
        // Packed as densely as can be.
        let lines_of: Vec<usize> = known
            .iter()
            .map(|known| known.len().div_ceil(LINE))
            .collect();
        let deepest = depth.iter().max().map_or(0, |&depth| depth as usize);
        let mut passed = Self {
            levels: vec![Level::default(); deepest + 1],
            sizes: vec![0; deepest + 1],
            ..Self::default()
        };
        for (node, lines) in lines_of.iter().enumerate() {
            passed.sizes[depth[node] as usize..]
                .iter_mut()
                .for_each(|size| *size += lines * LINE * BYTES);
        }
        for block in (0..set.n_rows).collect::<Vec<_>>().chunks(BLOCK) {
            let mut needed: Vec<HashSet<u32>> = vec![HashSet::new(); parent.len()];
            for &row in block {
                let n = lines_needed(&columns[row]);
                for &node in &paths[row] {
                    needed[node].extend(columns[row].iter().map(|column| column / LINE as u32));
                    passed.products += columns[row].len();
                    let level = &mut passed.levels[depth[node] as usize];
                    level.rows += 1;
                    level.lines += n.min(lines_of[node]);
                }
            }
            let lines = needed.iter().zip(&lines_of);
            passed.block_lines += lines
                .map(|(needed, &of)| needed.len().min(of))
                .sum::<usize>();
        }
        passed
    }
}

/// Cache lines that weights of these columns lie in.
fn lines_needed(columns: &[u32]) -> usize {
    let lines: HashSet<u32> = columns.iter().map(|column| column / LINE as u32).collect();
    lines.len()
}

fn boosted_trees(ceilings: &mut Ceilings, set: &Set) {
    /// A node says which column, which threshold and which child: 12 bytes at least.
    const NODE: usize = 12;
    let model = learned("gamble", r#"{"n_estimators": 50, "max_leaves": 63}"#, set);
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
    // Rows go through one tree after the other, so that a tree is in the first cache.
    let floor = visits
        * ceilings
            .line(size / trees.len())
            .max(ceilings.scattered_product());
    let together = time(set.n_rows, || {
        black_box(model.predict(&query).expect("sound rows"));
    });
    let floor = reading(ceilings, set) + floor;
    report("gamble, together, dense", together, floor);
}
