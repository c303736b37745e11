//! SHAP values against the Shapley values of their game, by all sets of known features.

use super::super::tree::Tree;
use super::traversal::table;
use super::*;

/// Returns the value of a tree for a row of which only some features are known, as bits of `known`.
fn value(tree: &Tree, at: usize, row: &[f32], known: usize, class: u32) -> f64 {
    let node = &tree.nodes[at];
    if node.is_leaf() {
        let mut votes = tree.leaves.listed(node.feature as usize);
        let vote = votes.find(|(listed, _)| *listed == class);
        let others = tree.leaves.others[node.feature as usize];
        return f64::from(vote.map_or(others, |(_, vote)| vote));
    }
    let children = [node.left as usize, node.left as usize + 1];
    let x = row[node.feature as usize];
    if known >> node.feature & 1 == 1 {
        let left = match node.set {
            _ if x.is_nan() => node.missing_left,
            Some(set) => tree.sets[set as usize].values.contains(&x),
            None => x <= node.threshold,
        };
        return value(tree, children[usize::from(!left)], row, known, class);
    }
    let rows = children.map(|child| f64::from(tree.statistics[child].n_rows));
    let values = children.map(|child| value(tree, child, row, known, class));
    (rows[0] * values[0] + rows[1] * values[1]) / (rows[0] + rows[1])
}

/// Returns the Shapley values of all features, and the value without features.
fn shapley(tree: &Tree, row: &[f32], class: u32) -> Vec<f64> {
    let n = row.len();
    let factorial = |k: usize| (1..=k).map(|i| i as f64).product::<f64>();
    let mut found = vec![0.0; n + 1];
    let values: Vec<f64> = (0..1 << n)
        .map(|known| value(tree, 0, row, known, class))
        .collect();
    for (known, before) in values.iter().enumerate() {
        let size = known.count_ones() as usize;
        for feature in (0..n).filter(|feature| known >> feature & 1 == 0) {
            let weight = factorial(size) * factorial(n - size - 1) / factorial(n);
            found[feature] += weight * (values[known | 1 << feature] - before);
        }
    }
    found[n] = values[0];
    found
}

fn contributions(model: &Gamble, table: &Table, classes: &[u32]) -> Vec<Vec<f64>> {
    let (rows, control) = (table.rows(), Control::new(0));
    let found = model.contributions(&Query::new(&rows, 2, &control), classes);
    let dense = |entries: Vec<(u32, f64)>| {
        let mut row = vec![0.0; table.width + 1];
        entries.into_iter().for_each(|(at, x)| row[at as usize] = x);
        row
    };
    found.unwrap().into_iter().map(dense).collect()
}

#[test]
fn contributions_are_shapley_values() {
    for missing in [false, true] {
        let learned = table(200, missing);
        let params = Params {
            max_leaves: 20,
            categorical_features: vec![3],
            subsample: 0.7,
            ..paper()
        };
        let model = learned.learn(params, 1);
        let rows = table(30, true);
        for class in 0..2 {
            let found = contributions(&model, &rows, &[class; 30]);
            for (row, found) in rows.values.chunks(rows.width).zip(found) {
                let mut expected = vec![0.0; rows.width + 1];
                for tree in &model.trees {
                    let values = shapley(tree, row, class);
                    expected.iter_mut().zip(values).for_each(|(a, b)| *a += b);
                }
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-10 * (1.0 + expected.abs()));
                }
            }
        }
    }
}

#[test]
fn contributions_by_many_features_sum_to_the_score() {
    // Each split cuts off the row of the largest weight, so that a path has most of the features.
    let width = 40;
    let value = |at: usize| f32::from(u8::from(at / width <= at % width));
    let learned = Table {
        values: (0..(width + 1) * width).map(value).collect(),
        width,
        labels: (0..=width as u32).collect(),
        weights: (0..=width as i32).map(|row| 0.6f32.powi(row)).collect(),
        n_classes: width + 1,
    };
    let params = Params {
        n_estimators: 1,
        max_leaves: 100,
        ..paper()
    };
    let model = learned.learn(params, 1);
    let depth = model.trees[0].report().get::<u32>("depth").unwrap();
    assert!(
        depth.into_iter().max() > Some(20),
        "more than 8 quadrature points"
    );
    let scores = learned.scores(&model);
    for class in [0, 20, 40] {
        let found = contributions(&model, &learned, &vec![class; width + 1]);
        for (row, found) in found.iter().enumerate() {
            let (sum, score) = (
                found.iter().sum::<f64>(),
                scores[row * (width + 1) + class as usize],
            );
            assert!(
                (sum - score).abs() < 1e-9 * (1.0 + score.abs()),
                "{sum} {score}"
            );
        }
    }
}
