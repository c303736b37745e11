//! Tests that need large nodes, for which every strategy for finding a split is used.

use rand::RngExt;

use super::super::boost::boost;
use super::super::grow::Grower;
use super::super::sampling::generator;
use super::super::search::TrainingSet;
use super::super::tree::LeafRows;
use super::splits::strategies_agree;
use super::*;
use crate::threads::with_threads;

/// Returns noisy rows with columns of few and of many values, with missing values, and mostly zero.
fn table(n_classes: u32) -> Table {
    table_of(30_000, 5, n_classes)
}

/// Returns such rows with further columns of noise.
fn table_of(n_rows: usize, width: usize, n_classes: u32) -> Table {
    let mut random = generator(1, 0, 0);
    let mut table = Table {
        values: Vec::new(),
        width,
        labels: Vec::new(),
        weights: Vec::new(),
        n_classes: n_classes as usize,
    };
    for _ in 0..n_rows {
        let label = random.random_range(0..n_classes);
        let mut noise = |size: f32| size * (random.random::<f32>() - 0.5);
        let near = label as f32 + noise(6.0);
        let gap = if noise(1.0) > 0.4 { f32::NAN } else { near };
        let sparse = if noise(1.0) > 0.2 { label as f32 } else { 0.0 };
        let values = [
            near.round(),
            gap.round(),
            sparse,
            noise(200.0).round(),
            noise(1.0).round(),
        ];
        table.values.extend(values);
        let more = (5..width).map(|_| noise(250.0).round());
        table.values.extend(more);
        table.labels.push(label);
        table.weights.push(1.0 + noise(1.0));
    }
    table
}

fn params() -> Params {
    Params {
        n_estimators: 3,
        max_leaves: 40,
        clip: true,
        splits: Splits::Binned,
        ..paper()
    }
}

/// Returns the columns as dense ones that are stored as if they had too many codes for a byte.
fn large(columns: &Columns, n_rows: usize) -> Columns {
    let mut large = columns.clone();
    large.dense = (0..columns.columns.len() as u32).collect();
    large.sparse.clear();
    for (at, column) in large.columns.iter_mut().enumerate() {
        let codes = 0..n_rows as u32;
        let codes = codes.map(|row| columns.code(at as u32, row)).collect();
        column.storage = Storage::Large(codes);
    }
    large
}

#[test]
fn columns_of_every_storage_grow_the_same_trees() {
    for n_classes in [3, 12, 200] {
        let table = table(n_classes);
        let columns = table.columns(&params());
        let grown = |columns: &Columns| -> Vec<_> {
            let which = table.all_rows();
            let batch = table.batch();
            let examples = table.examples(columns, &batch, &which, which.len());
            let (trees, _) = boost(&params(), Vec::new(), &examples, &Control::new(0)).unwrap();
            trees
                .into_iter()
                .map(|tree| (tree.nodes, tree.leaves))
                .collect()
        };
        assert!(!columns.sparse.is_empty());
        assert_eq!(grown(&columns), grown(&large(&columns, table.labels.len())));
    }
}

#[test]
fn all_strategies_find_the_same_cuts_of_large_nodes() {
    for n_classes in [3, 12, 200] {
        strategies_agree(&table(n_classes), 5);
    }
}

/// Leaves that are divided in advance and then not split get their rows back in order.
#[test]
fn leaves_have_their_rows_in_order() {
    let (params, table) = (params(), table(3));
    let (columns, weights) = (table.columns(&params), table.weights());
    let grown = |n_threads: usize| {
        let grown = with_threads(n_threads, |threads| {
            let mut grower = Grower::new(&params, columns.columns.len(), table.n_classes);
            let (mut trees, mut n_unused) = (Vec::new(), 0);
            for round in 0..4 {
                let training_set = TrainingSet {
                    columns: &columns,
                    labels: &table.labels,
                    weights: &weights,
                    seed: (0, 0),
                    threads,
                    takes_all: false,
                    control: &Control::new(0),
                };
                let all = 0..table.labels.len() as u32;
                let sampled: Vec<u32> = all.filter(|row| row % 4 != round).collect();
                grower.grow(&training_set, &sampled).unwrap();
                let rows = |leaf: LeafRows<'_>| [leaf.sampled.to_vec(), leaf.others.to_vec()];
                let leaves: Vec<_> = grower.leaves().map(rows).collect();
                n_unused += grower.nodes.len() - (2 * leaves.len() - 1);
                trees.push(leaves);
            }
            (trees, n_unused)
        });
        grown.unwrap()
    };
    let (trees, n_unused) = grown(1);
    assert_eq!(n_unused, 0);
    for leaves in &trees {
        assert_eq!(leaves.len(), 40);
        assert!(leaves.iter().flatten().all(|rows| rows.is_sorted()));
        let n_rows: usize = leaves.iter().flatten().map(Vec::len).sum();
        assert_eq!(n_rows, table.labels.len());
    }
    for n_threads in [2, 3] {
        let (same, n_unused) = grown(n_threads);
        assert_eq!(same, trees);
        assert!(n_unused > 0);
    }
}

/// The codes of these rows are stored by row too, and their sums are those of two chunks.
#[test]
fn trees_of_many_rows_depend_neither_on_threads_nor_on_the_storage_of_codes() {
    let table = table_of(48_000, 14, 12);
    let params = Params {
        max_features: 0.6,
        ..params()
    };
    let columns = table.columns(&params);
    let (which, batch) = (table.all_rows(), table.batch());
    let grown = |columns: &Columns, n_threads: usize| {
        let trees = with_threads(n_threads, |threads| {
            let examples = Examples {
                threads,
                ..table.examples(columns, &batch, &which, which.len())
            };
            boost(&params, Vec::new(), &examples, &Control::new(0))
        });
        trees.unwrap().unwrap().0
    };
    let trees = grown(&columns, 1);
    assert!(trees.iter().all(|tree| tree.leaves.count() == 40));
    let (mut codes, nodes) = (Vec::new(), [0..6000, 0..6001]);
    let gathered = nodes.map(|rows| columns.gather(&which[rows], &[3, 9], &mut codes));
    assert_eq!(gathered, [true, false]);
    for n_threads in [2, 5] {
        assert_eq!(grown(&columns, n_threads), trees);
    }
    let by_column = large(&columns, which.len());
    for (a, b) in trees.iter().zip(grown(&by_column, 2)) {
        assert_eq!((&a.nodes, &a.leaves), (&b.nodes, &b.leaves));
    }
}
