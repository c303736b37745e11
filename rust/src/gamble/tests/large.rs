//! What only shows where nodes are large: work shared out among threads, and every way of
//! finding a split.

use rand::RngExt;

use super::super::draw::generator;
use super::splits::ways_agree;
use super::*;

/// Noisy rows of several columns: of few values and of many, with gaps, mostly zero.
fn table(n_classes: u32) -> Table {
    let mut random = generator(1, 0, 0);
    let mut table = Table {
        values: Vec::new(),
        width: 5,
        labels: Vec::new(),
        weights: Vec::new(),
        n_classes: n_classes as usize,
    };
    for _ in 0..30_000 {
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

#[test]
fn threads_change_nothing_in_large_nodes() {
    for splits in [Splits::Binned, Splits::Exact] {
        let table = table(12);
        let params = Params {
            splits,
            subsample: 0.6,
            max_features: 0.8,
            ..params()
        };
        let one = table.learn(params.clone(), 1);
        for n_threads in [2, 5] {
            assert_eq!(one.trees(), table.learn(params.clone(), n_threads).trees());
        }
    }
}

#[test]
fn all_ways_find_the_same_cuts_of_large_nodes() {
    for n_classes in [3, 12, 200] {
        ways_agree(&table(n_classes), 5);
    }
}
