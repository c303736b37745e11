//! Tests of prediction, which follows eight paths side by side, against one path after the other.

use super::super::frozen::FrozenTrees;
use super::super::linear::LinearScores;
use super::super::predict::{best_class, Predictor};
use super::super::tree::Tree;
use super::*;
use crate::model::Task;

/// Returns the number of the leaf that a row reaches.
pub(super) fn leaf_of(tree: &Tree, row: &[f32]) -> usize {
    let mut at = 0;
    loop {
        let node = &tree.nodes[at];
        if node.is_leaf() {
            return node.feature as usize;
        }
        let value = row[node.feature as usize];
        let left = match node.set {
            _ if value.is_nan() => node.missing_left,
            Some(set) => tree.sets[set as usize].values.contains(&value),
            None => value <= node.threshold,
        };
        at = node.left as usize + usize::from(!left);
    }
}

/// Returns rows of three numbers and a category. Some values are missing if `missing`.
pub(super) fn table(n_rows: usize, missing: bool) -> Table {
    let (width, n_classes) = (4, 5);
    let number = |at: usize| (at * 7919 % 101) as f32 / 8.0 - 5.0;
    let value = |at: usize| match at {
        _ if missing && at.is_multiple_of(7) => f32::NAN,
        _ if at % width == 3 => [0.0, 1.0, 0.5, 63.0, 64.0, -1.0][at * 31 % 6],
        _ => number(at),
    };
    Table {
        values: (0..n_rows * width).map(value).collect(),
        width,
        labels: (0..n_rows)
            .map(|row| (row * 13 % n_classes) as u32)
            .collect(),
        weights: vec![1.0; n_rows],
        n_classes,
    }
}

/// Returns the scores of the rows of `table` by `trees`, one path and one vote after the other.
pub(super) fn scores(trees: &[Tree], table: &Table) -> Vec<f64> {
    let row_scores = |row: &[f32]| {
        let (mut scores, mut common) = (vec![0.0; table.n_classes], 0.0);
        for tree in trees {
            let leaf = leaf_of(tree, row);
            let others = f64::from(tree.leaves.others[leaf]);
            for (class, vote) in tree.leaves.listed(leaf) {
                scores[class as usize] += f64::from(vote) - others;
            }
            common += others;
        }
        scores.into_iter().map(move |score| score + common)
    };
    table
        .values
        .chunks(table.width)
        .flat_map(row_scores)
        .collect()
}

#[test]
fn rows_side_by_side_get_the_scores_of_single_rows() {
    for missing in [false, true] {
        for categorical_features in [vec![], vec![3]] {
            let params = Params {
                n_estimators: 11,
                max_leaves: 20,
                categorical_features,
                subsample: 0.7,
                ..paper()
            };
            let learned = table(200, missing);
            let model = learned.learn(params, 1);
            assert_eq!(model.trees.len(), 11);
            // Known and new rows: a few, a group of eight, and a block with an incomplete group.
            for (n_rows, missing) in [1, 2, 3, 4, 7, 8, 9, 27, 519]
                .into_iter()
                .zip([true, false].into_iter().cycle())
            {
                let table = table(n_rows, missing);
                assert_eq!(
                    table.scores(&model),
                    scores(&model.trees, &table),
                    "{n_rows} rows"
                );
                // A group of eight trees and a single tree, two trees, and one tree.
                for trees in [2..11, 4..6, 5..6] {
                    let mut predictor = Predictor::default();
                    let (frozen, rows) = (FrozenTrees::new(&model.trees), table.rows());
                    predictor.score(
                        (&frozen, &LinearScores::default()),
                        trees.clone(),
                        table.n_classes,
                        &rows,
                        0..n_rows,
                        |_, _| {},
                    );
                    assert_eq!(predictor.scores, scores(&model.trees[trees], &table));
                }
            }
        }
    }
}

#[test]
fn features_with_large_numbers_are_read() {
    let learned = table(100, false);
    let trees = learned.learn(paper(), 1).trees;
    // The largest number of 16 bits, and one more.
    for last in [65_535, 65_536] {
        let mut wide = trees.clone();
        let moved = |feature: u32| if feature == 2 { last } else { feature };
        for node in wide.iter_mut().flat_map(|tree| &mut tree.nodes) {
            if !node.is_leaf() {
                node.feature = moved(node.feature);
            }
        }
        assert_ne!(wide, trees);
        let width = last as usize + 1;
        let mut values = vec![0.0; learned.labels.len() * width];
        for (row, values) in learned.values.chunks(4).zip(values.chunks_mut(width)) {
            (0..4).for_each(|feature| values[moved(feature) as usize] = row[feature as usize]);
        }
        let table = Table {
            values,
            width,
            ..learned.clone()
        };
        let expected = scores(&trees, &learned);
        for n_rows in [1, 100] {
            let mut predictor = Predictor::default();
            let (frozen, rows) = (FrozenTrees::new(&wide), table.rows());
            predictor.score(
                (&frozen, &LinearScores::default()),
                0..wide.len(),
                table.n_classes,
                &rows,
                0..n_rows,
                |_, _| {},
            );
            assert_eq!(predictor.scores, expected[..n_rows * table.n_classes]);
        }
    }
}

#[test]
fn each_tree_has_its_leaf_and_the_best_class_so_far() {
    assert_eq!(best_class([1.0, 3.0, 3.0, 2.0].into_iter()), 1);
    let table = table(100, true);
    let model = table.learn(paper(), 1);
    let (rows, control, n_trees) = (table.rows(), Control::new(0), model.trees.len());
    let query = Query::new(&rows, 1, &control);
    let staged = model.staged_predict(&query).unwrap();
    let leaves = model.leaves(&query).unwrap();
    for (at, tree) in model.trees.iter().enumerate() {
        let sums = scores(&model.trees[..=at], &table);
        for (row, sums) in sums.chunks(table.n_classes).enumerate() {
            let best = best_class(sums.iter().map(|&sum| sum as f32));
            assert_eq!(staged[row * n_trees + at], best as i32);
            let reached = leaves[row][at];
            let leaf = leaf_of(tree, &table.values[row * 4..][..4]);
            assert_eq!(reached.tree as usize, at);
            assert_eq!(tree.nodes[reached.node as usize].feature as usize, leaf);
        }
    }
    let predict = Task::Predict {
        k: 1,
        options: &PredictOptions::default(),
    };
    assert!(model.effort(&rows, predict) < 1 << 20);
}
