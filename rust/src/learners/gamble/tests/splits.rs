//! Tests that every strategy finds the best split.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::grow::Grower;
use super::super::histogram::Histogram;
use super::super::node::{BestSplit, Choice, ColumnBest, Rule, Split};
use super::super::run_scan::{RunScan, MAX_LISTED};
use super::super::search::TrainingSet;
use super::*;

/// Returns rows of few distinct values, some of which are missing; two columns are mostly zero.
fn tables(most_values: i8) -> impl Strategy<Value = Table> {
    let cell = prop_oneof![
        6 => (-most_values..=most_values).prop_map(f32::from),
        1 => Just(f32::NAN),
    ];
    let sparse = prop_oneof![
        7 => Just(0.0f32),
        2 => (-2i8..=2).prop_map(f32::from),
        1 => Just(f32::NAN),
    ];
    let row = (
        prop::collection::vec(cell, 2),
        prop::collection::vec(sparse, 2),
        0u32..5,
        1u8..20,
    );
    prop::collection::vec(row, 2..60).prop_map(|rows| {
        let mut table = Table {
            values: Vec::new(),
            width: 4,
            labels: Vec::new(),
            weights: Vec::new(),
            n_classes: 5,
        };
        for (full, sparse, label, weight) in rows {
            table.values.extend(full.iter().chain(&sparse));
            table.labels.push(label);
            table.weights.push(f32::from(weight) / 7.0);
        }
        table
    })
}

/// Computes the sum of sum_k W_k^2 / W over both sides from scratch.
pub(super) fn score(table: &Table, goes_left: &[bool]) -> f64 {
    let mut sides = [vec![0.0; table.n_classes], vec![0.0; table.n_classes]];
    for ((&left, &label), &weight) in goes_left.iter().zip(&table.labels).zip(&table.weights) {
        sides[usize::from(left)][label as usize] += f64::from(weight);
    }
    let side_score = |side: &Vec<f64>| {
        let all: f64 = side.iter().sum();
        let square: f64 = side.iter().map(|w| w * w).sum();
        if all > 0.0 {
            square / all
        } else {
            0.0
        }
    };
    sides.iter().map(side_score).sum()
}

/// Returns the best score of all cuts of all columns that leave `min_rows` rows to both sides.
/// Missing values may go to either side.
fn best_by_trying(table: &Table, min_rows: usize) -> f64 {
    let n = table.labels.len();
    let mut best = score(table, &vec![true; n]);
    for column in 0..table.width {
        let value = |row: usize| table.values[row * table.width + column];
        let thresholds = (0..n).map(value).filter(|v| !v.is_nan());
        for threshold in thresholds {
            for missing_left in [false, true] {
                let left: Vec<bool> = (0..n)
                    .map(|row| value(row) <= threshold || (missing_left && value(row).is_nan()))
                    .collect();
                let n_left = left.iter().filter(|left| **left).count();
                if n_left >= min_rows && n - n_left >= min_rows {
                    best = best.max(score(table, &left));
                }
            }
        }
    }
    best
}

/// Returns the best split of the node of all rows.
pub(super) fn best_split(table: &Table, columns: &Columns, min_rows: usize) -> Option<Split> {
    let params = Params {
        max_leaves: 2,
        min_samples_leaf: min_rows as u32,
        ..paper()
    };
    let training_set = TrainingSet {
        columns,
        labels: &table.labels,
        weights: &table.weights(),
        seed: (0, 0),
        threads: false,
        takes_all: false,
        control: &Control::new(0),
    };
    let mut grower = Grower::new(&params, columns.columns.len(), table.n_classes);
    grower.grow(&training_set, &table.all_rows()).unwrap();
    grower.nodes[0].split.clone()
}

pub(super) fn goes_left(table: &Table, columns: &Columns, split: &Split) -> Vec<bool> {
    (0..table.labels.len())
        .map(|row| split.rule.goes_left(columns.code(split.column, row as u32)))
        .collect()
}

/// Returns the coding of a column of `table`, and the codes of its rows.
fn coded(table: &Table, column: usize, categorical: bool) -> (Coding, Vec<u8>) {
    let values = table.values.iter().skip(column).step_by(table.width);
    let values: Vec<f32> = values.copied().collect();
    let coding = coding(&values, Splits::Exact, categorical);
    assert!(coding.n_codes() <= 256);
    let codes = values.iter().map(|&v| coding.code(v) as u8).collect();
    (coding, codes)
}

/// Compares the best cuts of every column by a histogram and by runs that are sorted in two ways.
pub(super) fn strategies_agree(table: &Table, min_rows: usize) {
    let node = table.node(min_rows);
    for at in 0..table.width {
        let (coding, codes) = coded(table, at, false);
        let best = |offer_cuts: &dyn Fn(&mut ColumnBest)| {
            let mut own = ColumnBest::new(&node);
            offer_cuts(&mut own);
            let mut best = BestSplit::new(&node);
            best.offer(0, own);
            best.split(&node, |_| &coding)
        };
        let scanned = |n_codes: usize| {
            best(&|best| {
                let mut scan = RunScan::default();
                scan.enter(&node);
                let code = |at: usize| u32::from(codes[at]);
                scan.sort(node.len(), n_codes, code, |at| node.items[at]);
                scan.offer_cuts(&node, &coding, None, best);
            })
        };
        let by_counting = scanned(coding.n_codes());
        // Rows are sorted by comparing if codes are very many.
        assert_eq!(scanned(usize::MAX), by_counting);
        let summed = best(&|best| {
            let codes = (&node.rows[..], &codes[..]);
            Histogram::default().offer_cuts(&node, codes, &coding, false, best);
        });
        assert_eq!(by_counting.is_some(), summed.is_some());
        if let (Some(a), Some(b)) = (by_counting, summed) {
            assert_eq!(a.rule, b.rule);
            assert!((a.gain - b.gain).abs() < 1e-9 * node.weight);
        }
    }
}

proptest! {
    #[test]
    fn the_split_found_is_the_best(
        table in tables(6),
        min_rows in 1usize..4,
        splits in prop_oneof![Just(Splits::Exact), Just(Splits::Binned)],
    ) {
        let columns = table.columns(&Params { splits, ..paper() });
        let node = table.node(min_rows);
        let expected = best_by_trying(&table, min_rows);
        match best_split(&table, &columns, min_rows) {
            Some(split) => {
                let left = goes_left(&table, &columns, &split);
                prop_assert!((score(&table, &left) - expected).abs() < 1e-9 * node.weight);
                prop_assert!((split.gain + node.score() - expected).abs() < 1e-9 * node.weight);
                let n_left = left.iter().filter(|left| **left).count();
                prop_assert!(n_left >= min_rows && left.len() - n_left >= min_rows);
            }
            None => prop_assert!(expected - node.score() < 1e-9 * node.weight),
        }
    }

    #[test]
    fn histograms_and_scans_agree(table in tables(3), min_rows in 1usize..3) {
        strategies_agree(&table, min_rows);
    }

    #[test]
    fn histograms_and_scans_find_equally_good_subsets(table in tables(3), min_rows in 1usize..3) {
        let node = table.node(min_rows);
        for at in 0..table.width {
            let (coding, codes) = coded(&table, at, true);
            let (mut scanned, mut summed) = (ColumnBest::new(&node), ColumnBest::new(&node));
            let mut scan = RunScan::default();
            scan.enter(&node);
            let code = |at: usize| u32::from(codes[at]);
            scan.sort(node.len(), coding.n_codes(), code, |at| node.items[at]);
            scan.offer_subsets(&node, None, false, &mut scanned);
            let (rows, n_codes) = (&node.rows[..], coding.n_codes());
            Histogram::default().offer_subsets(&node, (rows, &codes), n_codes, &mut summed);
            prop_assert_eq!(scanned.found.is_some(), summed.found.is_some());
            let Some((best, _)) = scanned.found else {
                continue;
            };
            let Some((found, Choice::Subset(left))) = summed.found else {
                panic!("a column of categories is split by a set");
            };
            prop_assert!((best - found).abs() < 1e-9 * node.weight);
            let left: Vec<bool> = codes.iter().map(|&code| left.contains(&code.into())).collect();
            prop_assert!((score(&table, &left) - found).abs() < 1e-9 * node.weight);
        }
    }

    #[test]
    fn the_best_subset_for_two_classes_is_found(
        rows in prop::collection::vec((0u8..7, 0u32..2, 1u8..9), 2..40),
    ) {
        let table = Table {
            values: rows.iter().map(|row| f32::from(row.0)).collect(),
            width: 1,
            labels: rows.iter().map(|row| row.1).collect(),
            weights: rows.iter().map(|row| f32::from(row.2)).collect(),
            n_classes: 2,
        };
        let params = Params { categorical_features: vec![0], ..paper() };
        let (columns, node) = (table.columns(&params), table.node(1));
        let mut best = node.score();
        for subset in 0u32..1 << 7 {
            let left: Vec<bool> = table.values.iter().map(|&v| subset >> v as u32 & 1 == 1).collect();
            best = best.max(score(&table, &left));
        }
        let found = best_split(&table, &columns, 1);
        let found = found.map_or(node.score(), |split| {
            assert!(matches!(split.rule, Rule::Subset(_)));
            score(&table, &goes_left(&table, &columns, &split))
        });
        prop_assert!((found - best).abs() < 1e-9 * node.weight);
    }

    #[test]
    fn the_best_split_by_binary_columns_is_found(
        rows in prop::collection::vec((prop::array::uniform6(0u8..6), 0u32..7), 20..60),
        min_rows in 1usize..4,
    ) {
        let table = Table {
            values: rows.iter().flat_map(|row| row.0.map(|v| f32::from(u8::from(v == 0)))).collect(),
            width: 6,
            labels: rows.iter().map(|row| row.1).collect(),
            weights: (0..rows.len()).map(|row| 1.0 + (row % 3) as f32).collect(),
            n_classes: 7,
        };
        let columns = table.columns(&paper());
        let node = table.node(min_rows);
        let expected = best_by_trying(&table, min_rows);
        let found = best_split(&table, &columns, min_rows);
        let found = found.map_or(node.score(), |split| score(&table, &goes_left(&table, &columns, &split)));
        prop_assert!((found - expected).abs() < 1e-9 * node.weight);
    }

    /// A subset is at least as good as every prefix of the categories in the orders by the shares
    /// of the four heaviest classes, and as every single category; of four categories as every set.
    #[test]
    fn a_good_subset_for_many_classes_is_found(
        rows in prop::collection::vec((0u8..7, 0u32..6, 1u8..9), 2..40),
        n_categories in 4u8..8,
    ) {
        let rows = rows.into_iter().map(|row| (row.0 % n_categories, row.1, row.2));
        let rows: Vec<(u8, u32, u8)> = rows.collect();
        let table = Table {
            values: rows.iter().map(|row| f32::from(row.0)).collect(),
            width: 1,
            labels: rows.iter().map(|row| row.1).collect(),
            weights: rows.iter().map(|row| f32::from(row.2)).collect(),
            n_classes: 6,
        };
        let weight = |category: usize, class: Option<usize>| -> f64 {
            let rows = rows.iter().filter(|row| row.0 as usize == category);
            let rows = rows.filter(|row| class.is_none_or(|class| row.1 as usize == class));
            rows.map(|row| f64::from(row.2)).sum()
        };
        let mut classes: Vec<usize> = (0..6).collect();
        let total = |class: usize| (0..7).map(|category| weight(category, Some(class))).sum::<f64>();
        classes.sort_by(|&a, &b| total(b).total_cmp(&total(a)));
        // If the fourth and fifth class have equal weights, either may be tried.
        prop_assume!(total(classes[3]) > total(classes[4]) || total(classes[4]) == 0.0);
        let mut subsets: Vec<Vec<usize>> = (0..7).map(|category| vec![category]).collect();
        for &class in &classes[..4] {
            let share = |category: usize| weight(category, Some(class)) / weight(category, None);
            let mut order: Vec<usize> = (0..7).filter(|&c| weight(c, None) > 0.0).collect();
            order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
            // Categories with equal shares may come in either order.
            prop_assume!(order.windows(2).all(|pair| share(pair[0]) > share(pair[1]) || share(pair[0]) == 0.0));
            let n = order.iter().filter(|&&c| share(c) > 0.0).count();
            subsets.extend((1..=n).map(|n| order[..n].to_vec()));
        }
        if n_categories == 4 {
            let set = |bits: u32| (0..4).filter(|at| bits >> at & 1 == 1).collect();
            subsets.extend((0..1 << 4).map(set));
        }
        let params = Params { categorical_features: vec![0], ..paper() };
        let (columns, node) = (table.columns(&params), table.node(1));
        let mut best = node.score();
        for subset in subsets {
            let left: Vec<bool> = rows.iter().map(|row| subset.contains(&(row.0 as usize))).collect();
            best = best.max(score(&table, &left));
        }
        let found = best_split(&table, &columns, 1);
        let found = found.map_or(node.score(), |split| score(&table, &goes_left(&table, &columns, &split)));
        prop_assert!(found > best - 1e-9 * node.weight, "{} {}", found, best);
    }

    #[test]
    fn codes_and_thresholds_divide_values_alike(
        values in prop::collection::vec(-1000i16..1000, 2..600),
        splits in prop_oneof![Just(Splits::Exact), Just(Splits::Binned)],
        at in (0usize..10_000, 0usize..10_000),
    ) {
        let values: Vec<f32> = values.into_iter().map(|v| f32::from(v) / 3.0).collect();
        let coding = coding(&values, splits, false);
        let n = coding.n_codes();
        prop_assert!(splits == Splits::Exact || n <= 255);
        prop_assume!(n >= 2);
        let low = at.0 % (n - 1);
        let high = low + 1 + at.1 % (n - 1 - low);
        let (last, threshold) = coding.cut(low as u32, high as u32);
        prop_assert!((low as u32..high as u32).contains(&last));
        for &value in &values {
            let code = coding.code(value);
            let (from, to) = coding.spans[code as usize];
            prop_assert!(from <= value && value <= to);
            prop_assert_eq!(code <= last, value <= threshold);
        }
    }
}

/// Returns the first split by a column of `n_categories`, as many rows of each, if the tree is grown
/// from the first `n_sampled` rows.
fn split_of_categories(labels: Vec<u32>, n_categories: u16, n_sampled: u32) -> Option<Split> {
    let n_rows = labels.len();
    let table = Table {
        values: (0..n_rows)
            .map(|row| f32::from(row as u16 % n_categories))
            .collect(),
        width: 1,
        labels,
        weights: vec![1.0; n_rows],
        n_classes: 2,
    };
    let params = Params {
        max_leaves: 2,
        categorical_features: vec![0],
        ..paper()
    };
    let columns = table.columns(&params);
    assert_eq!(
        columns.columns[0].coding.n_codes(),
        usize::from(n_categories)
    );
    let training_set = TrainingSet {
        columns: &columns,
        labels: &table.labels,
        weights: &table.weights(),
        seed: (0, 0),
        threads: false,
        takes_all: n_sampled == n_rows as u32,
        control: &Control::new(0),
    };
    let mut grower = Grower::new(&params, 1, 2);
    let sampled: Vec<u32> = (0..n_sampled).collect();
    grower.grow(&training_set, &sampled).unwrap();
    grower.nodes[0].split.clone()
}

/// Returns the gain of [`split_of_categories`] of 400 categories.
fn gain_of_categories(labels: Vec<u32>, n_sampled: u32) -> f64 {
    split_of_categories(labels, 400, n_sampled).map_or(0.0, |split| split.gain)
}

#[test]
fn many_categories_are_ordered_by_other_rows() {
    let by_category: Vec<u32> = (0..1200).map(|row| row % 400 % 2).collect();
    let mut random = Pcg64Mcg::seed_from_u64(0);
    let by_chance: Vec<u32> = (0..1200).map(|_| random.random_range(0..2)).collect();
    // A split into pure halves gains half of the weight.
    for n_sampled in [400, 800] {
        let gain = gain_of_categories(by_category.clone(), n_sampled);
        assert!((gain - f64::from(n_sampled) / 2.0).abs() < 1e-6, "{gain}");
    }
    // An order by the labels of the sampled rows would give pure halves here too.
    let gain = gain_of_categories(by_chance, 400);
    assert!(gain < 10.0, "{gain}");
}

#[test]
fn many_categories_are_ordered_by_half_of_the_rows_of_a_tree_that_takes_all() {
    let labels = |n: u32| -> Vec<u32> { (0..n).map(|row| row % 400 % 2).collect() };
    // Pure halves of the scoring rows, about 2000, gain half of their weight, which is then halved.
    // With ten rows of each category hardly any is without an ordering row.
    let gain = gain_of_categories(labels(4000), 4000);
    assert!((450.0..600.0).contains(&gain), "{gain}");
    let mut random = Pcg64Mcg::seed_from_u64(0);
    let by_chance: Vec<u32> = (0..1200).map(|_| random.random_range(0..2)).collect();
    // An order by the scoring rows, one or two of each category, would gain about 120.
    let gain = gain_of_categories(by_chance, 1200);
    assert!(gain < 10.0, "{gain}");
}

#[test]
fn a_split_lists_a_limited_number_of_categories() {
    for (n_categories, n_expected) in [(2000, 1000), (5000, MAX_LISTED)] {
        let rows = 0..2 * n_categories;
        let labels: Vec<u32> = rows.map(|row| row % n_categories % 2).collect();
        let split = split_of_categories(labels, n_categories as u16, n_categories).unwrap();
        let Rule::Subset(listed) = split.rule else {
            panic!("not a split by categories");
        };
        assert_eq!(listed.len(), n_expected);
        assert!(listed.iter().all(|code| code % 2 == listed[0] % 2));
    }
}

#[test]
fn the_first_column_wins_among_equal_splits() {
    let table = Table {
        values: vec![0.0; 4],
        width: 1,
        labels: vec![0, 1, 2, 3],
        weights: vec![1.0; 4],
        n_classes: 4,
    };
    let node = table.node(1);
    let tolerance = node.tolerance();
    let offers = [
        (4, 2.0),
        (2, 2.0 - 0.5 * tolerance),
        (3, 2.0 + 0.3 * tolerance),
        (0, 2.0 - 3.0 * tolerance),
        (5, 2.0 + 0.1 * tolerance),
    ];
    // Try every order.
    for place in 0..offers.len().pow(5) {
        let order: Vec<usize> = (0..5).map(|at| place / 5usize.pow(at) % 5).collect();
        if (0..5).any(|offer| !order.contains(&offer)) {
            continue;
        }
        let mut best = BestSplit::new(&node);
        for at in order {
            let (column, score) = offers[at];
            let mut own = ColumnBest::new(&node);
            own.offer(score, || Choice::Subset(Box::default()));
            best.offer(column, own);
        }
        let split = best.split(&node, |_| unreachable!("no cut was offered"));
        assert_eq!(split.map(|split| split.column), Some(2));
    }
}

#[test]
fn a_threshold_inside_a_bin_moves_to_its_nearer_end() {
    for (bin, expected) in [
        // The middle of 1 and 10 is 5.5.
        ((2.0, 3.0), (1, 5.5)),
        ((2.0, 6.0), (1, 8.0)),
        ((5.0, 9.0), (0, 3.0)),
        ((6.0, 9.0), (0, 5.5)),
    ] {
        let coding = Coding {
            spans: vec![(0.0, 1.0), bin, (10.0, 11.0)],
            categorical: false,
            missing: false,
        };
        assert_eq!(coding.cut(0, 2), expected, "{bin:?}");
    }
}

#[test]
fn a_threshold_is_below_the_value_to_its_right() {
    let low = 1.0 + f32::EPSILON;
    let high = low + f32::EPSILON;
    // Their middle is rounded up to the higher value.
    assert_eq!(f64::midpoint(f64::from(low), f64::from(high)) as f32, high);
    let coding = coding(&[low, high], Splits::Exact, false);
    assert_eq!(coding.cut(0, 1), (0, low));
}

#[test]
fn bins_have_about_equally_many_rows() {
    let n_rows = |coding: &Coding, values: &[f32]| {
        let mut n_rows = vec![0; coding.n_codes()];
        values
            .iter()
            .for_each(|&v| n_rows[coding.code(v) as usize] += 1);
        n_rows
    };
    let values: Vec<f32> = (1..=1000u16).map(f32::from).collect();
    let singles = coding(&values, Splits::Binned, false);
    // 1000 / 255 is 3.9, to which 4 is nearer than 3.
    assert_eq!(singles.spans[0], (1.0, 4.0));
    let sizes = n_rows(&singles, &values);
    assert!(
        sizes.len() == 255 && sizes.iter().all(|n| (3..=5).contains(n)),
        "{sizes:?}"
    );
    // A value with more rows than the share has a bin of its own.
    let heavy: Vec<f32> = values.iter().copied().chain([500.0; 300]).collect();
    let coding = coding(&heavy, Splits::Binned, false);
    assert_eq!(coding.spans[coding.code(500.0) as usize], (500.0, 500.0));
}

#[test]
fn every_storage_returns_the_codes_and_divides_rows_by_them() {
    let n = 300;
    // Columns with two values and with more values, mostly zero; a column with two non-zeros; dense
    // columns with few and with many values.
    let value = |row: usize, column: usize| match column {
        0 => f32::from(u8::from(row.is_multiple_of(5))),
        1 => [1.0, 0.0, 0.0, -2.0, 0.0, 0.0, f32::NAN, 0.0][row % 8],
        2 => [0.0, 3.0, -3.0][usize::from(row == 17) + 2 * usize::from(row == 290)],
        3 => (row % 9) as f32 - 4.0,
        _ => (row * 7 % n) as f32 - 20.0,
    };
    for width in [1, 5] {
        let table = Table {
            values: (0..n * width)
                .map(|at| value(at / width, at % width))
                .collect(),
            width,
            labels: vec![0; n],
            weights: vec![1.0; n],
            n_classes: 1,
        };
        let columns = table.columns(&paper());
        let is_sparse = |at: &usize| matches!(columns.columns[*at].storage, Storage::Sparse { .. });
        assert!((0..width).filter(is_sparse).eq(0..width.min(3)));
        for (at, column) in columns.columns.iter().enumerate() {
            for row in 0..n {
                let expected = column.coding.code(value(row, at));
                let code = columns.code(at as u32, row as u32);
                assert_eq!(code, expected, "row {row}, column {at}");
            }
            for left in 0..column.coding.n_codes() as u32 {
                let mut rows: Vec<u32> = (0..n as u32).filter(|row| row % 3 > 0).collect();
                let is_left = |row: &u32| columns.code(at as u32, *row) == left;
                let (expected, right): (Vec<u32>, Vec<u32>) =
                    rows.iter().partition(|row| is_left(row));
                let n_left =
                    columns.partition(at as u32, &mut rows, &mut Vec::new(), |code| code == left);
                assert_eq!(n_left, expected.len(), "column {at}, code {left}");
                assert_eq!(rows, [expected, right].concat());
            }
        }
    }
}
