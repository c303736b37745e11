//! Tests of more sparse columns than rows, where the cost of a node follows its entries.

use rand::RngExt;

use super::super::frozen::check_memory;
use super::super::node::BestSplit;
use super::super::run_scan::RunScan;
use super::super::sampling::{generator, SampledFeatures};
use super::super::sparse_splitter::SparseSplitter;
use super::splits::{best_split, goes_left, score};
use super::*;

/// A sample of all columns, in the form for very many columns.
const ALL: SampledFeatures<'_> = SampledFeatures::Hashed {
    key: 0,
    max_hash: u64::MAX,
};

/// Returns rows of random classes. Each has entries in `own` columns that no other row has, and in
/// a column that it shares with the row before. The entries have the `values` in turn.
fn table(n_rows: usize, own: usize, values: &[f32], weights: impl Fn(usize) -> f32) -> Table {
    let mut random = generator(2, 0, 0);
    let width = n_rows * (own + 1);
    let mut table = Table {
        values: vec![0.0; n_rows * width],
        width,
        labels: (0..n_rows).map(|_| random.random_range(0..5)).collect(),
        weights: (0..n_rows).map(weights).collect(),
        n_classes: 5,
    };
    for row in 0..n_rows {
        let columns = row * (own + 1)..(row + 1) * (own + 1);
        let neighbor = (row + 1) % n_rows * (own + 1);
        for column in columns.chain([neighbor]) {
            table.values[row * width + column] = values[column % values.len()];
        }
    }
    table
}

#[test]
fn rows_that_do_not_fit_into_memory_are_refused() {
    assert!(check_memory(7, 3).is_ok());
    for (n_columns, n_classes) in [(usize::MAX / 64, 3), (7, usize::MAX / 64)] {
        let error = check_memory(n_columns, n_classes).unwrap_err();
        assert!(matches!(error, crate::Error::Memory(_)), "{error}");
    }
}

#[test]
fn columns_with_one_entry_are_only_scanned_if_they_can_be_the_best() {
    let unequal = |row: usize| 1.0 + (row * 37 % 200) as f32 / 100.0;
    for table in [
        table(200, 20, &[1.0], |_| 1.0),
        table(200, 20, &[1.0, 2.0, f32::NAN], unequal),
    ] {
        let (columns, node) = (table.columns(&paper()), table.node(1));
        assert_eq!(columns.sparse.len(), 200 * 21);
        let (mut splitter, mut scan) = (SparseSplitter::default(), RunScan::default());
        scan.enter(&node);
        for _ in 0..2 {
            scan.n_scans = 0;
            let mut best = BestSplit::new(&node);
            splitter.find(&node, &columns, ALL, &mut scan, &mut best);
            assert!(best
                .split(&node, |at| &columns.columns[at as usize].coding)
                .is_some());
            // Scans the 200 columns that two rows share, and hardly any of the 4000 others.
            let n_scans = scan.n_scans;
            assert!((200..250).contains(&n_scans), "{n_scans} scans");
        }
    }
}

#[test]
fn the_best_of_columns_with_one_entry_is_found() {
    for (own, values) in [
        (8, &[1.0][..]),
        (8, &[1.0, -1.0, 2.0, f32::NAN, -3.0]),
        (1, &[2.0, -1.0]),
    ] {
        for min_rows in [1, 2] {
            let table = table(150, own, values, |row| [1.0, 1.0, 2.5][row % 3]);
            let (columns, node) = (table.columns(&paper()), table.node(min_rows));
            let has_entry = |column: usize| -> Vec<bool> {
                let values = table.values.iter().skip(column).step_by(table.width);
                values.map(|&value| value != 0.0).collect()
            };
            let scores: Vec<f64> = (0..table.width)
                .map(|column| {
                    let rows = has_entry(column);
                    let n = rows.iter().filter(|row| **row).count();
                    let may_be = n >= min_rows;
                    if may_be {
                        score(&table, &rows)
                    } else {
                        0.0
                    }
                })
                .collect();
            let highest = scores.iter().copied().fold(0.0, f64::max);
            let first = scores.iter().position(|&score| score > highest - 1e-9);
            let split = best_split(&table, &columns, min_rows).unwrap();
            assert_eq!(Some(split.column as usize), first);
            assert!((split.gain + node.score() - highest).abs() < 1e-9);
            let left = goes_left(&table, &columns, &split);
            assert!((score(&table, &left) - highest).abs() < 1e-9);
        }
    }
}
