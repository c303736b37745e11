//! Rounds of negatives, and solutions that continue those of the previous round.

use super::super::negatives::{first_negatives, hard_negatives, Negatives};
use super::super::train::positive_weights;
use super::super::weights::LabelWeights;
use super::*;

fn scorers(seeds: &[u32]) -> Vec<Option<Scorer>> {
    let weight = |c: u32, seed: u32| ((c * 31 + seed * 7) % 97) as f32 / 20.0 - 2.0;
    let scorer = |&seed: &u32| {
        (seed % 5 > 0).then(|| Scorer {
            bias: seed as f32 / 500.0 - 1.0,
            weights: (0..WIDTH as u32)
                .filter(|c| (c * 7 + seed) % 3 == 0)
                .map(|c| (c, weight(c, seed)))
                .collect(),
            ..Scorer::default()
        })
    };
    seeds.iter().map(scorer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_warm_start_leads_to_the_same_solution(data in data(40), share in 0usize..4) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let (positives, negatives) = split_rows(&examples);
        let (first, second) = negatives.split_at(negatives.len() * share / 3);
        let alone = DistinctRows::default();
        let mut solver = Solver::new(&rows, &alone, EXACT);
        solver.solve(&problem(&positives, &[first]), &[], 7);
        let duals = solver.duals();
        prop_assert_eq!(duals.len(), positives.len() + first.len());
        solver.solve(&problem(&positives, &[first, second]), &duals, 7);
        let warm = full_weights(&solver.scorer(0.0), examples.width);
        solver.solve(&problem(&positives, &[&negatives]), &[], 8);
        let cold = full_weights(&solver.scorer(0.0), examples.width);
        for (warm, cold) in warm.iter().zip(&cold) {
            prop_assert!(is_near(*warm, *cold, 1e-4), "{warm} {cold}");
        }
    }

    /// The start from the active negatives is the solution for all negatives.
    #[test]
    fn the_active_negatives_determine_the_solution(data in data(40), has_equal_rows in any::<bool>()) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let (positives, mut negatives) = split_rows(&examples);
        let distinct = if has_equal_rows {
            negatives.extend_from_within(..);
            DistinctRows::new(&examples, |_| false)
        } else {
            DistinctRows::default()
        };
        let mut solver = Solver::new(&rows, &distinct, EXACT);
        let (first, second) = negatives.split_at(negatives.len() / 2);
        let lists = [first, second];
        let all = problem(&positives, &lists);
        solver.solve(&all, &[], 7);
        let (active, duals) = solver.active(&all);
        let wanted = full_weights(&solver.scorer(0.0), examples.width);
        for &row in &negatives {
            let loss = 1.0 + product(&wanted, &full(&examples, row));
            prop_assert!(loss < 1e-3 || active.contains(&row), "{row} {loss}");
            prop_assert!(loss > -1e-3 || !active.contains(&row), "{row} {loss}");
        }
        solver.accuracy.max_rounds = 0;
        solver.solve(&problem(&positives, &[&active]), &duals, 7);
        let found = full_weights(&solver.scorer(0.0), examples.width);
        for (found, wanted) in found.iter().zip(&wanted) {
            prop_assert!(is_near(*found, *wanted, 1e-4), "{found} {wanted}");
        }
    }

    /// They stay in their rounds, because dual variables are in this order.
    #[test]
    fn retained_negatives_keep_their_order(lists in prop::collection::vec(prop::collection::btree_set(0u32..9, 0..5), 4)) {
        let mut kept = Ragged::default();
        lists.iter().for_each(|list| kept.push(list.iter().copied()));
        let mut negatives = Negatives::default();
        for round in [[0, 3], [1, 2]] {
            let mut labels = Ragged::default();
            (0..9).for_each(|row| labels.push(round.map(|label| (row + label) % 4).into_iter().filter(|_| row % 5 > 0)));
            negatives.push(labels, lists.len());
        }
        let before: Vec<Vec<u32>> = (0..4).map(|label| negatives.rows(label).concat()).collect();
        negatives.retain(&kept, 9);
        for (label, list) in lists.iter().enumerate() {
            let wanted: Vec<u32> = before[label].iter().copied().filter(|row| list.contains(row)).collect();
            prop_assert_eq!(negatives.rows(label).concat(), &wanted[..]);
            for row in 0..9 {
                prop_assert_eq!(negatives.contains(row, label as u32), wanted.contains(&row));
            }
        }
    }

    /// A positive of twice the weight counts twice; with twice the cost so does every row.
    #[test]
    fn weights_count_as_repetitions(data in data(40), is_cost in any::<bool>()) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, 0.0);
        let (positives, negatives) = split_rows(&examples);
        let twice = [&positives[..], &positives[..]].concat();
        let negatives = [&negatives[..], &negatives[..]];
        let n_lists = 1 + usize::from(is_cost);
        let alone = DistinctRows::default();
        let mut solver = Solver::new(&rows, &alone, EXACT);
        solver.solve(&problem(&twice, &negatives[..n_lists]), &[], 3);
        let wanted = full_weights(&solver.scorer(0.0), examples.width);
        let once = problem(&positives, &negatives[..1]);
        let heavy = if is_cost {
            Problem { cost: 2.0, ..once }
        } else {
            Problem { positive_weight: 2.0, ..once }
        };
        solver.solve(&heavy, &[], 3);
        let found = full_weights(&solver.scorer(0.0), examples.width);
        for (found, wanted) in found.iter().zip(&wanted) {
            prop_assert!(is_near(*found, *wanted, 1e-4), "{found} {wanted}");
        }
    }

    #[test]
    fn mined_labels_have_the_largest_margins(data in data(30), seeds in prop::collection::vec(0u32..1000, N_CLASSES), n in 0usize..6, known in prop::collection::btree_set(0u32..9, 0..4)) {
        let examples = data.examples();
        let scorers = scorers(&seeds);
        let weights = LabelWeights::new(scorers.iter().cloned(), &SPARSE, &examples).unwrap();
        let mut margins = RowMargins::default();
        for row in 0..examples.len() as u32 {
            margins.read_block(&weights, std::iter::once(examples.row(row)));
            let found = margins.mine(&weights, &examples, row, n, |label| known.contains(&label));
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            let x = full(&examples, row);
            let (columns, _) = examples.row(row);
            let mut wanted = Vec::new();
            for (label, scorer) in (0u32..).zip(&scorers) {
                let Some(scorer) = scorer else { continue };
                // The index holds no weights of 0.
                let mut weights = scorer.weights.iter().filter(|(_, weight)| *weight != 0.0);
                let is_met = weights.any(|(column, _)| columns.contains(column));
                let is_other = !examples.labels(row).contains(&label) && !known.contains(&label);
                let margin = product(&full_weights(scorer, examples.width), &x);
                // Rounding could decide such a case.
                prop_assume!((margin + 1.0).abs() > 1e-3);
                if is_met && is_other && margin > -1.0 {
                    wanted.push((label, margin));
                }
            }
            wanted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            prop_assume!(n == 0 || wanted.len() <= n || wanted[n - 1].1 - wanted[n].1 > 1e-3);
            wanted.truncate(n);
            let mut wanted: Vec<u32> = wanted.iter().map(|&(label, _)| label).collect();
            wanted.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn negatives_are_the_best_of_other_labels(data in data(30), scored in prop::collection::btree_map(0u32..9, 1u8..9, 0..9), n in 0usize..5) {
        let examples = data.examples();
        let mut scores = LabelScores::new(N_CLASSES);
        let list: Vec<(u32, f32)> = scored.iter().map(|(&label, &score)| (label, score.into())).collect();
        scores.add(&packed(std::slice::from_ref(&list), N_CLASSES), 0, 1.0);
        let mut hard = Ragged::default();
        for row in 0..examples.len() as u32 {
            let own = examples.labels(row);
            let found = hard_negatives(own, &scores, n);
            let mut wanted: Vec<(u32, f32)> = list.iter().copied().filter(|(label, _)| !own.contains(label)).collect();
            wanted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let wanted: BTreeSet<u32> = wanted.iter().take(n).map(|&(label, _)| label).collect();
            prop_assert_eq!(found.iter().copied().collect::<BTreeSet<u32>>(), wanted);
            hard.push(found);
        }
        let all = first_negatives(&examples, &hard, n, 3);
        for row in 0..examples.len() {
            let (own, found) = (examples.labels(row as u32), all.get(row));
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            prop_assert!(found.iter().all(|label| !own.contains(label)));
            prop_assert!(hard.get(row).iter().all(|label| found.contains(label)));
            let drawn: Vec<&u32> = found.iter().filter(|label| !hard.get(row).contains(label)).collect();
            prop_assert!(drawn.len() <= n);
            prop_assert!(drawn.iter().all(|label| examples.labels.entries().contains(label)));
        }
    }
}

#[test]
fn positives_weigh_1_on_average() {
    let mut positives = Ragged::with_capacity(0, 0);
    for n in [1u32, 50, 0, 7] {
        positives.push(0..n);
    }
    assert_eq!(
        positive_weights(positives.lengths(), 60, 0.0).unwrap(),
        [1.0; 4]
    );
    let weights = positive_weights(positives.lengths(), 60, 1.0).unwrap();
    let mean = (weights[0] + 50.0 * weights[1] + 7.0 * weights[3]) / 58.0;
    assert!(is_near(mean, 1.0, 1e-12));
    let inverse = |n: f64| 1.0 + (60f64.ln() - 1.0) * 2.5f64.powf(0.55) * (n + 1.5).powf(-0.55);
    let ratio = inverse(1.0) / inverse(50.0);
    assert!(is_near(weights[0] / weights[1], ratio, 1e-12));
    let squares = positive_weights(positives.lengths(), 60, 2.0).unwrap();
    assert!(is_near(squares[0] / squares[1], ratio * ratio, 1e-12));
}
