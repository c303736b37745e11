//! Rows that trees leave out, and what the others say of them.

use std::collections::BTreeMap;

use super::super::train::{HeldOut, OutOfSampleScorer};
use super::prediction::by_trees;
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_are_left_out_by_turns(share in 0.01f64..0.99, n_trees in 1usize..30, n_rows in 1usize..80, seed in any::<u64>()) {
        let held_out = HeldOut { share, seed, n_rows };
        for row in 0..n_rows as u32 {
            let times = (0..n_trees).filter(|&tree| held_out.leaves_out(tree, row)).count();
            let pinned = (0..n_trees).filter(|tree| tree % n_rows == row as usize).count();
            let wanted = share * n_trees as f64;
            prop_assert!(times <= (wanted + 1e-9).ceil() as usize);
            prop_assert!(times + pinned >= (wanted - 1e-9).floor() as usize);
        }
        for tree in 0..n_trees {
            let rows: Vec<u32> = held_out.training_rows(tree).collect();
            prop_assert!(!rows.is_empty() && rows.is_sorted());
            prop_assert!(rows.iter().all(|&row| !held_out.leaves_out(tree, row)));
        }
    }

    /// The scores are those of a model of the trees that left the row out.
    #[test]
    fn scores_out_of_sample(data in data(50)) {
        let params = sparse();
        let present = data.select(data.present());
        let ldsm = present.fit(&params);
        let (examples, control) = (present.examples(), control());
        let held_out = HeldOut::new(params.seed, examples.len());
        let mut scorer = OutOfSampleScorer::new(&examples, &ldsm.trees, held_out);
        let mut found = Vec::new();
        let rows = 0..examples.len() as u32;
        scorer.score(rows, &control, |row, scores| {
            let mut by_label = BTreeMap::new();
            scores.for_each(|label, score| { by_label.insert(label, score); });
            found.push((row, by_label));
        }).unwrap();
        for (row, found) in found {
            let trees = ldsm.trees.iter().enumerate();
            let out = trees.filter(|(tree, _)| held_out.leaves_out(*tree, row));
            let others = Ldsm { trees: out.map(|(_, tree)| tree.clone()).collect(), ..ldsm.clone() };
            let (wanted, _) = by_trees(&others, &present, row as usize);
            prop_assert!(found.keys().eq(wanted.keys()), "{found:?} {wanted:?}");
            for (&score, &wanted) in found.values().zip(wanted.values()) {
                prop_assert!(is_near(score.into(), wanted, 1e-5));
            }
        }
    }
}
