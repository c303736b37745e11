//! The solver, compared with the problem that it solves.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The primal problem is convex and smooth, so its gradient is 0 at the solution only.
    #[test]
    fn the_solver_solves_the_problem(data in data(40)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let distinct = DistinctRows::new(&examples, |_| false);
        let mut solver = Solver::new(&rows, &distinct, EXACT);
        let (positives, negatives) = split_rows(&examples);
        // An earlier problem must not change the solution.
        solver.solve(&problem(&negatives, &[&positives[..positives.len() / 2]]), &[], 1);
        solver.solve(&problem(&positives, &[&negatives]), &[], 1);
        let scorer = solver.scorer(0.0);
        let weights = full_weights(&scorer, examples.width);
        let mut wanted = vec![0.0; examples.width];
        for (rows, sign) in [(&positives, 1.0), (&negatives, -1.0)] {
            for &i in rows {
                let x = full(&examples, i);
                let missing = (1.0 - sign * product(&weights, &x)).max(0.0);
                let factor = 2.0 * f64::from(examples.weight(i)) * sign * missing;
                wanted.iter_mut().zip(&x).for_each(|(w, x)| *w += factor * x);
            }
        }
        for (w, wanted) in weights.iter().zip(&wanted) {
            prop_assert!(is_near(*w, *wanted, 1e-4), "{weights:?} {wanted:?}");
        }
        // Reading the scorer does not change the state.
        prop_assert_eq!(&solver.scorer(0.0), &scorer);
        let large = scorer.weights.iter().copied().filter(|(_, w)| w.abs() >= 0.3);
        prop_assert_eq!(solver.scorer(0.3).weights, large.collect::<Vec<_>>());
    }

    #[test]
    fn solutions_without_some_rows_are_exact(data in data(40)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let is_out = |row: u32| row % 3 == 1;
        let distinct = DistinctRows::new(&examples, is_out);
        let mut solver = Solver::new(&rows, &distinct, EXACT);
        let (positives, negatives) = split_rows(&examples);
        let negative_lists = [&negatives[..]];
        let all = problem(&positives, &negative_lists);
        solver.solve(&all, &[], 5);
        let margins = solver.solve_without(&all, is_out, 5);
        // The same without copies of the rows.
        let mut large = Solver::new(&rows, &distinct, EXACT);
        large.own_rows.max_copied = 0;
        large.solve(&all, &[], 5);
        prop_assert_eq!(large.solve_without(&all, is_out, 5), margins.clone());
        prop_assert_eq!(large.scorer(0.0), solver.scorer(0.0));
        let margins: BTreeMap<u32, f32> = margins.into_iter().collect();
        let out = (0..examples.len() as u32).filter(|&i| i % 7 != 3 && is_out(i));
        prop_assert!(margins.keys().copied().eq(out));
        let kept = |rows: &[u32]| rows.iter().copied().filter(|&row| !is_out(row)).collect::<Vec<_>>();
        solver.solve(&problem(&kept(&positives), &[&kept(&negatives)]), &[], 5);
        let weights = full_weights(&solver.scorer(0.0), examples.width);
        for (&row, &margin) in &margins {
            let wanted = product(&weights, &full(&examples, row));
            prop_assert!(is_near(margin.into(), wanted, 1e-4), "{margin} {wanted}");
        }
        // The same without a solution for all rows before, from any dual variables.
        for duals in [vec![], vec![0.5; 4]] {
            solver.solve_rest(&all, &duals, is_out, 5);
            let found = full_weights(&solver.scorer(0.0), examples.width);
            for (found, wanted) in found.iter().zip(&weights) {
                prop_assert!(is_near(*found, *wanted, 1e-4), "{found} {wanted}");
            }
        }
    }

    #[test]
    fn late_positives_continue_the_solution_without_them(data in data(40)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let is_late = |row: &u32| row % 3 == 1;
        let distinct = DistinctRows::new(&examples, |row| is_late(&row));
        let (positives, negatives) = split_rows(&examples);
        let (late, early): (Vec<u32>, Vec<u32>) = positives.iter().partition(|row| is_late(row));
        let mut in_turn = Solver::new(&rows, &distinct, EXACT);
        let lists = [&negatives[..]];
        in_turn.solve(&problem(&early, &lists), &[], 7);
        let duals = in_turn.duals();
        in_turn.solve(&Problem { late_positives: &late, ..problem(&early, &lists) }, &duals, 7);
        let found = full_weights(&in_turn.scorer(0.0), examples.width);
        let mut at_once = Solver::new(&rows, &distinct, EXACT);
        at_once.solve(&problem(&positives, &lists), &[], 7);
        let wanted = full_weights(&at_once.scorer(0.0), examples.width);
        for (found, wanted) in found.iter().zip(&wanted) {
            prop_assert!(is_near(*found, *wanted, 1e-4), "{found} {wanted}");
        }
    }

    #[test]
    fn merging_equal_rows_does_not_change_the_solution(data in data(20)) {
        let examples = data.select((0..3 * data.len()).map(|i| i % data.len())).examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let (positives, negatives) = split_rows(&examples);
        let (first, second) = negatives.split_at(negatives.len() / 2);
        let (distinct, alone) = (DistinctRows::new(&examples, |_| false), DistinctRows::default());
        let mut together = Solver::new(&rows, &distinct, EXACT);
        together.solve(&problem(&positives, &[first]), &[], 7);
        let duals = together.duals();
        prop_assert!(duals.len() <= 2 * data.len());
        together.solve(&problem(&positives, &[first, second]), &duals, 7);
        let found = full_weights(&together.scorer(0.0), examples.width);
        let mut one_by_one = Solver::new(&rows, &alone, EXACT);
        one_by_one.solve(&problem(&positives, &[&negatives]), &[], 7);
        let wanted = full_weights(&one_by_one.scorer(0.0), examples.width);
        for (found, wanted) in found.iter().zip(&wanted) {
            prop_assert!(is_near(*found, *wanted, 1e-4), "{found} {wanted}");
        }
    }
}
