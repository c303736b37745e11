//! Weights and rows of dense columns, compared with the same weights in lists.

use super::super::dense::DenseWeights;
use super::super::weights::LabelWeights;
use super::*;
use crate::data::RaggedRows;

const N_DENSE: u32 = 37;
const N_COLUMNS: u32 = 60;

/// Returns a number from -1 to 1.
fn noise(a: u32, b: u32) -> f32 {
    let mixed = (a.wrapping_mul(7919) ^ b.wrapping_mul(104_729)).wrapping_mul(2_654_435_761) >> 8;
    (mixed % 2001) as f32 / 1000.0 - 1.0
}

/// Returns rows that fill the odd columns up to a number, and few of the others.
fn mixed_rows(n_rows: u32, seed: u32) -> Examples {
    let mut rows = RaggedRows::default();
    let mut labels = Ragged::default();
    for row in 0..n_rows {
        let id = row + 1000 * seed;
        let is_kept = |&c: &u32| (c % 2 == 1 && c < 2 * N_DENSE) || noise(id, c + 500) > 0.7;
        let mut columns: Vec<u32> = (0..N_COLUMNS).filter(is_kept).collect();
        let mut values: Vec<f32> = columns.iter().map(|&c| noise(id, c)).collect();
        columns.push(N_COLUMNS);
        values.push(1.0);
        rows.push(columns, &values);
        labels.push([row % 5]);
    }
    Examples {
        rows,
        labels,
        weights: vec![1.0; n_rows as usize],
        width: N_COLUMNS as usize + 1,
        n_labels: 5,
    }
}

/// Generates a scorer with weights for all columns. Those for `dense` are in a list of their own.
fn scorer(label: u32, dense: &DenseColumns) -> Scorer {
    let mut scorer = Scorer {
        bias: noise(label, 99),
        ..Scorer::default()
    };
    for column in 0..N_COLUMNS {
        let weight = 2.0 * noise(label + 77, column);
        match dense.place(column) {
            Some(_) => scorer.dense.push(weight),
            None => scorer.weights.push((column, weight)),
        }
    }
    scorer
}

/// Returns weights of the same scorers, with dense columns and without, and of some labels that
/// have none.
fn both_weights(n_labels: u32, examples: &Examples) -> [LabelWeights; 2] {
    let dense = DenseColumns::find(examples);
    [&dense, &*SPARSE].map(|columns| {
        let own = |label: u32| (label % 4 != 1).then(|| scorer(label, columns));
        let scorers: Vec<Option<Scorer>> = (0..n_labels).map(own).collect();
        LabelWeights::new(scorers.into_iter(), columns, examples).unwrap()
    })
}

#[test]
fn columns_that_most_rows_fill_are_dense() {
    let examples = mixed_rows(50, 1);
    let dense = DenseColumns::find(&examples);
    let found: Vec<u32> = (0..N_COLUMNS)
        .filter(|&c| dense.place(c).is_some())
        .collect();
    assert!(found.iter().all(|c| c % 2 == 1), "{found:?}");
    assert!(dense.len() >= 28);
    // Few dense columns are treated like others.
    let narrow = |n: usize| {
        let mut rows = RaggedRows::default();
        rows.push(0..=n as u32, &vec![1.0; n + 1]);
        let (mut labels, weights) = (Ragged::default(), vec![1.0]);
        labels.push([0]);
        let (width, n_labels) = (n + 1, 1);
        DenseColumns::find(&Examples {
            rows,
            labels,
            weights,
            width,
            n_labels,
        })
        .len()
    };
    assert_eq!([narrow(15), narrow(16)], [0, 16]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Margins differ from those by lists only by rounding to 8 bits, and do not depend on the rows
    /// that are multiplied together.
    #[test]
    fn margins_are_those_of_lists(n_rows in 1u32..80, n_labels in 1u32..70, seed in 0u32..1000) {
        let examples = mixed_rows(n_rows, seed);
        let [dense, lists] = both_weights(n_labels, &examples);
        prop_assert_eq!(dense.dense.is_empty(), DenseColumns::find(&examples).is_empty());
        let (mut together, mut alone, mut wanted) = (RowMargins::default(), RowMargins::default(), RowMargins::default());
        for row in 0..n_rows {
            if (row as usize).is_multiple_of(BLOCK) {
                let block = row..n_rows.min(row + BLOCK as u32);
                together.read_block(&dense, block.map(|row| examples.row(row)));
            }
            together.read_next(&dense, examples.row(row), row as usize);
            alone.read(&dense, examples.row(row));
            wanted.read(&lists, examples.row(row));
            let (mut found, mut above) = (BTreeMap::new(), BTreeMap::new());
            together.for_each_found(&dense, |label, margin| assert!(found.insert(label, margin).is_none()));
            together.for_each_above(&dense, 0.1, |label, margin| {
                above.insert(label, margin);
                0.1
            });
            found.retain(|_, margin| *margin >= 0.1);
            prop_assert_eq!(found, above);
            for label in 0..n_labels {
                let margin = together.margin(&dense, label);
                prop_assert_eq!(margin, alone.margin(&dense, label));
                let wanted = wanted.margin(&lists, label);
                if label % 4 == 1 {
                    prop_assert_eq!(margin, f32::NEG_INFINITY);
                } else {
                    prop_assert!((margin - wanted).abs() < 0.06, "{margin} {wanted}");
                }
            }
        }
    }

    /// The solver with dense columns finds the weights that it finds without them.
    #[test]
    fn the_solver_finds_the_same_weights(n_rows in 20u32..60, seed in 0u32..1000) {
        let examples = mixed_rows(n_rows, seed);
        let (positives, negatives) = split_rows(&examples);
        let alone = DistinctRows::default();
        let dense = DenseColumns::find(&examples);
        let solved = [&dense, &*SPARSE].map(|columns| {
            let rows = ScorerRows::new(&examples, columns, 0.0);
            let mut solver = Solver::new(&rows, &alone, EXACT);
            // An earlier problem must not change the solution.
            solver.solve(&problem(&negatives, &[&positives]), &[], 1);
            solver.solve(&problem(&positives, &[&negatives]), &[], 1);
            let scorer = solver.scorer(0.0);
            let listed: BTreeMap<u32, f32> = scorer.weights.iter().copied().collect();
            let weight = |column| match columns.place(column) {
                Some(place) => scorer.dense[place],
                None => listed.get(&column).copied().unwrap_or(0.0),
            };
            (scorer.bias, (0..N_COLUMNS).map(weight).collect::<Vec<_>>())
        });
        let [(bias, weights), (wanted_bias, wanted)] = solved;
        prop_assert!((bias - wanted_bias).abs() < 0.02, "{bias} {wanted_bias}");
        for (weight, wanted) in weights.iter().zip(&wanted) {
            prop_assert!((weight - wanted).abs() < 0.02, "{weight} {wanted}");
        }
    }

    /// Powers scale the other columns so that rows keep their mean squared length.
    #[test]
    fn powers_leave_dense_columns(n_rows in 20u32..60, seed in 0u32..1000) {
        let examples = mixed_rows(n_rows, seed);
        let dense = DenseColumns::find(&examples);
        let rows = ScorerRows::new(&examples, &dense, 1.0);
        for column in 0..N_COLUMNS {
            prop_assert_eq!(rows.scale(column) == 1.0, dense.place(column).is_some());
        }
        let squares = (0..n_rows).map(|row| rows.square(row) - 1.0);
        prop_assert!(is_near(squares.sum::<f64>() / f64::from(n_rows), 1.0, 1e-4));
    }
}

#[test]
fn dense_weights_are_stored_and_checked() {
    let examples = mixed_rows(40, 3);
    let [weights, _] = both_weights(21, &examples);
    let weights = weights.dense;
    let take = |bundle: &mut crate::file::Bundle| {
        DenseWeights::take(bundle, 21, N_COLUMNS as usize)
            .map(|weights| products(&weights, &examples))
    };
    assert_eq!(
        take(&mut weights.to_bundle()).unwrap(),
        products(&weights, &examples)
    );
    let refuses = |name: &str, change: &dyn Fn(&mut crate::file::Bundle)| {
        let mut bundle = weights.to_bundle();
        change(&mut bundle);
        let error = take(&mut bundle).unwrap_err().to_string();
        assert!(error.contains("damaged model"), "{name}: {error}");
    };
    refuses("columns", &|bundle| {
        let mut columns = bundle.take::<u32>("columns").unwrap();
        columns.swap(0, 1);
        bundle.put("columns", columns);
    });
    refuses("last column", &|bundle| {
        let mut columns = bundle.take::<u32>("columns").unwrap();
        *columns.last_mut().unwrap() = N_COLUMNS;
        bundle.put("columns", columns);
    });
    refuses("no columns", &|bundle| {
        bundle.take::<u32>("columns").unwrap();
        bundle.put("columns", Vec::<u32>::new());
    });
    refuses("values", &|bundle| {
        let mut values = bundle.take::<i8>("values").unwrap();
        values.pop();
        bundle.put("values", values);
    });
    refuses("scales", &|bundle| {
        let mut scales = bundle.take::<f32>("scales").unwrap();
        scales[2] = -1.0;
        bundle.put("scales", scales);
    });
}

/// Returns the products of all rows with all labels.
fn products(weights: &DenseWeights, examples: &Examples) -> Vec<f32> {
    let mut products = DenseProducts::default();
    let mut all = Vec::new();
    for row in 0..examples.len() as u32 {
        let (columns, values) = examples.row(row);
        products.read(weights, std::iter::once((columns, values, 0.5)));
        let mut own = vec![0.0; 21];
        products.write(weights, 0, &mut own);
        all.extend(own);
    }
    all
}
