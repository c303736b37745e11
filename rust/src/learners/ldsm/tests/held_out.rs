//! Rows that trees leave out, and the candidates that these trees find for them.

use super::super::train::{candidates, leaves_out, HELD_OUT_SHARE, MIN_ROWS};
use super::prediction::by_trees;
use super::*;
use crate::learners::one_against_some::FitSample;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_are_left_out_by_their_share_of_the_trees(n_trees in 1usize..30, n_rows in 1usize..160, seed in any::<u64>()) {
        for row in 0..n_rows as u32 {
            let times = (0..n_trees).filter(|&tree| leaves_out(seed, n_rows, tree, row)).count();
            let pinned = (0..n_trees).filter(|tree| tree % n_rows == row as usize).count();
            // Rows that join and calibration are fitted on are left out by all trees.
            let share = if n_rows >= MIN_ROWS && row % 5 == 0 { 1.0 } else { HELD_OUT_SHARE };
            let wanted = share * n_trees as f64;
            prop_assert!(times <= (wanted + 1e-9).ceil() as usize);
            prop_assert!(times + pinned >= (wanted - 1e-9).floor() as usize);
        }
        for tree in 0..n_trees {
            prop_assert!((0..n_rows as u32).any(|row| !leaves_out(seed, n_rows, tree, row)));
        }
    }

    /// Candidates and their scores are those of a model of the trees that left the row out.
    #[test]
    fn candidates_come_from_trees_that_left_the_row_out(data in data(50)) {
        let params = Params { n_negatives: Some(N_CLASSES as u32), ..with_scorers() };
        let present = data.select(data.present());
        let ldsm = present.fit(&params);
        let (examples, n_rows) = (present.examples(), present.len());
        let (fit, is_out) = (FitSample::new(n_rows), |tree, row| leaves_out(params.seed, n_rows, tree, row));
        let found = candidates(&examples, &ldsm.trees, &params.scorer_params(false), fit, is_out, false, &control()).unwrap();
        prop_assert_eq!(found.scored.len(), n_rows.div_ceil(5));
        for row in 0..n_rows {
            let trees = ldsm.trees.iter().enumerate();
            let out = trees.filter(|(tree, _)| leaves_out(params.seed, n_rows, *tree, row as u32));
            let others = Ldsm { trees: out.map(|(_, tree)| tree.clone()).collect(), ..ldsm.clone() };
            let (wanted, _) = by_trees(&others, &present, row);
            let hard: BTreeSet<u32> = found.hard.get(row).iter().copied().collect();
            let own = present.labels_of(row);
            prop_assert!(wanted.keys().filter(|label| !own.contains(label)).eq(&hard));
            if row % 5 == 0 {
                let scored = found.scored.get(row / 5);
                prop_assert!(scored.iter().map(|(label, _)| label).eq(wanted.keys()));
                for (&(_, score), &wanted) in scored.iter().zip(wanted.values()) {
                    prop_assert!(is_near(score.into(), wanted, 1e-5));
                }
            }
        }
    }
}
