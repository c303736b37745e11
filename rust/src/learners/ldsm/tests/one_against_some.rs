//! One-against-some scorers: their parts against definitions, and models with them.

use std::collections::BTreeMap;

use super::super::label_scores::LabelScores;
use super::super::one_against_some::held_out::HeldOut;
use super::super::one_against_some::negatives::negatives;
use super::super::one_against_some::scorer_rows::{DistinctRows, ScorerRows};
use super::super::one_against_some::svm::{Accuracy, Problem, Scorer, Solver};
use super::super::one_against_some::{IndexMargins, MarginMemory, OutOfSample};
use super::packed::packed;
use super::prediction::{all, by_trees, change, inside};
use super::*;

pub(super) const EXACT: Accuracy = Accuracy {
    most_rounds: 10_000,
    tolerance: 1e-9,
};

pub(super) fn sparse() -> Params {
    Params {
        scorers: Scorers::OneAgainstSome,
        scorer_weight: None,
        n_estimators: 5,
        n_hard_negatives: 3,
        n_random_negatives: 2,
        n_mined_negatives: 2,
        ..params()
    }
}

/// 1 / the length of each row but for its constant.
fn inverse_lengths(examples: &Examples) -> Vec<f32> {
    let length = |i| {
        let (columns, values) = examples.row(i);
        let features = &values[..columns.len() - 1];
        let square: f32 = features.iter().map(|x| x * x).sum();
        if square > 0.0 {
            square.sqrt().recip()
        } else {
            0.0
        }
    };
    (0..examples.len() as u32).map(length).collect()
}

/// Row `i` as scorers see it: of length 1, the constant last.
pub(super) fn full(examples: &Examples, i: u32) -> Vec<f64> {
    let (columns, values) = examples.row(i);
    let scale = f64::from(inverse_lengths(examples)[i as usize]);
    let mut row = vec![0.0; examples.width];
    for (&column, &x) in columns.iter().zip(values) {
        row[column as usize] += f64::from(x) * scale;
    }
    row[examples.width - 1] = 1.0;
    row
}

pub(super) fn full_weights(scorer: &Scorer, width: usize) -> Vec<f64> {
    let mut weights = vec![0.0; width];
    for &(column, weight) in &scorer.weights {
        weights[column as usize] = weight.into();
    }
    weights[width - 1] = scorer.bias.into();
    weights
}

pub(super) fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn problem<'a>(positives: &'a [u32], negatives: &'a [&'a [u32]]) -> Problem<'a> {
    Problem {
        positives,
        negatives,
        positive_weight: 1.0,
        cost: 1.0,
    }
}

/// Even rows against odd ones, but every seventh is in neither.
pub(super) fn parted(examples: &Examples) -> (Vec<u32>, Vec<u32>) {
    let rows = (0..examples.len() as u32).filter(|i| i % 7 != 3);
    rows.partition(|i| i % 2 == 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The primal problem is convex and smooth: its gradient is 0 at the solution alone.
    #[test]
    fn the_solver_solves_the_problem(data in data(40)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, 0.0);
        let distinct = DistinctRows::new(&examples, |_| false);
        let mut solver = Solver::new(&rows, &distinct, EXACT);
        let (positives, negatives) = parted(&examples);
        // What was solved before leaves no trace.
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
        // The dual variables are still there to go on from.
        prop_assert_eq!(&solver.scorer(0.0), &scorer);
        let large = scorer.weights.iter().copied().filter(|(_, w)| w.abs() >= 0.3);
        prop_assert_eq!(solver.scorer(0.3).weights, large.collect::<Vec<_>>());
    }

    #[test]
    fn rows_can_be_taken_out_again(data in data(40)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, 0.0);
        let is_out = |row: u32| row % 3 == 1;
        let distinct = DistinctRows::new(&examples, is_out);
        let mut solver = Solver::new(&rows, &distinct, EXACT);
        let (positives, negatives) = parted(&examples);
        let negatives_of_all = [&negatives[..]];
        let all = problem(&positives, &negatives_of_all);
        solver.solve(&all, &[], 5);
        let margins: BTreeMap<u32, f32> = solver.solve_without(&all, is_out, 5).into_iter().collect();
        let out = (0..examples.len() as u32).filter(|&i| i % 7 != 3 && is_out(i));
        prop_assert!(margins.keys().copied().eq(out));
        let kept = |rows: &[u32]| rows.iter().copied().filter(|&row| !is_out(row)).collect::<Vec<_>>();
        solver.solve(&problem(&kept(&positives), &[&kept(&negatives)]), &[], 5);
        let weights = full_weights(&solver.scorer(0.0), examples.width);
        for (&row, &margin) in &margins {
            let wanted = product(&weights, &full(&examples, row));
            prop_assert!(is_near(margin.into(), wanted, 1e-4), "{margin} {wanted}");
        }
    }

    /// Equal rows are one example, and the solution is that of the rows one by one.
    #[test]
    fn equal_rows_are_solved_together(data in data(20)) {
        let examples = data.select((0..3 * data.len()).map(|i| i % data.len())).examples();
        let rows = ScorerRows::new(&examples, 0.0);
        let (positives, negatives) = parted(&examples);
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

    #[test]
    fn rows_are_left_out_by_turns(share in 0.01f64..0.99, n_trees in 1usize..30, n_rows in 1usize..80, seed in any::<u64>()) {
        let params = Params { held_out_share: share, seed, ..sparse() };
        let held_out = HeldOut::new(&params, n_rows);
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
    fn scores_out_of_sample(data in data(50), share in 0.1f64..0.9) {
        let params = Params { held_out_share: share, ..sparse() };
        let present = data.select(data.present());
        let ldsm = present.fit(&params);
        let (examples, control) = (present.examples(), control());
        let held_out = HeldOut::new(&params, examples.len());
        let source = OutOfSample { examples: &examples, trees: &ldsm.trees, held_out, control: &control };
        let rows: Vec<u32> = (0..examples.len() as u32).rev().collect();
        let found = source.map(&rows, false, |row, scores| {
            let mut of_row = BTreeMap::new();
            scores.for_each(|label, score| { of_row.insert(label, score); });
            (row, of_row)
        });
        for (row, found) in found.unwrap() {
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

    #[test]
    fn negatives_are_the_best_of_other_labels(data in data(30), scored in prop::collection::btree_map(0u32..9, 1u8..9, 0..9), n_hard in 0u32..5, n_random in 0u32..5) {
        let examples = data.examples();
        let mut scores = LabelScores::new(N_CLASSES);
        let list: Vec<(u32, f32)> = scored.iter().map(|(&label, &score)| (label, score.into())).collect();
        scores.add(&packed(std::slice::from_ref(&list), N_CLASSES), 0, 1.0);
        let params = Params { n_hard_negatives: n_hard, n_random_negatives: n_random, ..sparse() };
        for row in 0..examples.len() as u32 {
            let own = examples.labels(row);
            let found = negatives(&examples, row, &scores, &params);
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            prop_assert!(found.iter().all(|label| !own.contains(label)));
            let mut others: Vec<(u32, f32)> = list.iter().copied().filter(|(label, _)| !own.contains(label)).collect();
            others.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            others.truncate(n_hard as usize);
            let is_hard = |label: &u32| others.iter().any(|(other, _)| other == label);
            prop_assert!(others.iter().all(|(label, _)| found.contains(label)));
            let drawn: Vec<&u32> = found.iter().filter(|label| !is_hard(label)).collect();
            prop_assert!(drawn.len() <= n_random as usize);
            prop_assert!(drawn.iter().all(|label| examples.labels.entries().contains(label)));
        }
    }

    /// Labels that a tree or a scorer names, each with its score joined.
    #[test]
    fn trees_and_scorers_name_labels(data in data(60), unseen in data(20), is_hashed in any::<bool>()) {
        let params = Params { n_bits: is_hashed.then_some(3), ..sparse() };
        let ldsm = data.fit(&params);
        let scorers = ldsm.scorers.as_ref().unwrap();
        let mut memory = MarginMemory::default();
        let (join, mut margins) = (scorers.join(&params), IndexMargins::new(scorers, &mut memory));
        let (mut row, preparation) = (RowBuffer::default(), ldsm.preparation.as_ref().unwrap());
        for (i, found) in all(&ldsm, &unseen).iter().enumerate() {
            preparation.read(&unseen.rows(), i, &mut row);
            margins.read((&row.columns, &row.values));
            let (trees, _) = by_trees(&ldsm, &unseen, i);
            let named: BTreeSet<u32> = trees.keys().copied().chain(margins.touched().map(|(label, _)| label)).collect();
            prop_assert!(found.keys().eq(named.iter()));
            for (&label, &score) in found {
                let tree_score = trees.get(&label).map_or(0.0, |&score| score as f32);
                let joined = join.score(tree_score, margins.margin(label));
                let wanted = scorers.calibration().probability(joined);
                prop_assert!(is_near(score.into(), wanted.into(), 1e-5));
            }
        }
    }

    #[test]
    fn threads_and_files_change_nothing(data in data(60), seed in 0u64..100) {
        let params = Params { seed, n_estimators: 3, ..sparse() };
        let ldsm = data.fit(&params);
        let mut other = Ldsm::create(params, N_CLASSES, true).unwrap();
        other.fit(&data.batch(), with(3, false), &control()).unwrap();
        let bytes = ldsm.to_bytes().unwrap();
        prop_assert!(bytes == other.to_bytes().unwrap());
        let again = Ldsm::from_bytes(&bytes).unwrap();
        prop_assert!(all(&again, &data) == all(&ldsm, &data));
    }

    /// A row of weight 0 is not there, and the unit of weights does not matter.
    #[test]
    fn weights_are_relative(data in data(50), factor in 1u32..50) {
        let params = sparse();
        let kept = data.select(data.present());
        let mut scaled = data.clone();
        for weight in scaled.weights.iter_mut().flatten() {
            *weight *= (1u32 << factor.min(20)) as f32;
        }
        let bytes = data.fit(&params).to_bytes().unwrap();
        prop_assert!(bytes == kept.fit(&params).to_bytes().unwrap());
        prop_assert!(bytes == scaled.fit(&params).to_bytes().unwrap());
    }
}

/// Labels that are only met in trees added later, and labels without a row.
#[test]
fn labels_that_no_scorer_knows() {
    let data = fixed(120, false);
    let known = data.select((0..data.len()).filter(|&i| !data.labels_of(i).contains(&8)));
    let mut ldsm = known.fit(&sparse());
    let scorers = ldsm.scorers.clone().unwrap();
    let floor = scorers.join(&sparse()).floor;
    ldsm.params.n_estimators = 8;
    ldsm.fit(&data.batch(), with(1, true), &control()).unwrap();
    assert_eq!(ldsm.trees.len(), 8);
    let mut n_found = 0;
    for (i, found) in all(&ldsm, &data).iter().enumerate() {
        if let Some(&score) = found.get(&8) {
            n_found += 1;
            let joined = by_trees(&ldsm, &data, i).0[&8] as f32 + floor;
            let wanted = scorers.calibration().probability(joined);
            assert!(
                is_near(score.into(), wanted.into(), 1e-5),
                "{score} {wanted}"
            );
        }
    }
    assert!(n_found > 0);
}

#[test]
fn next_to_nothing_to_learn() {
    let one = |labels: &[u32], n: usize| {
        let mut data = Data::empty(false);
        (0..n).for_each(|i| data.push(&[(i as u32 % 5, 1.0)], labels, 1.0));
        data
    };
    let mut bare = Data::empty(false);
    bare.push(&[], &[1, 4], 1.0);
    bare.push(&[], &[4], 1.0);
    for data in [one(&[3], 1), one(&[0, 8], 1), one(&[7], 20), bare] {
        for share in [0.1, 0.9] {
            let ldsm = data.fit(&Params {
                held_out_share: share,
                n_hard_negatives: 0,
                ..sparse()
            });
            for (i, found) in all(&ldsm, &data).iter().enumerate() {
                let own = data.labels_of(i);
                assert!(own.iter().all(|label| found[label] > 0.0));
            }
        }
    }
}

#[test]
fn damaged_scorers_are_refused() {
    let ldsm = fixed(80, false).fit(&sparse());
    let changes: [fn(&mut crate::file::Bundle); 12] = [
        |scorers| change(scorers, "biases", 0, f32::NAN),
        |scorers| change(scorers, "biases", 0, f32::INFINITY),
        |scorers| {
            inside(scorers, "weights", |lists| {
                change(lists, "columns", 0, 999u16);
            });
        },
        |scorers| {
            inside(scorers, "weights", |lists| {
                change(lists, "columns", 1, 0u16);
            });
        },
        |scorers| {
            inside(scorers, "weights", |lists| {
                change(lists, "steps", 0, f32::NAN);
            });
        },
        |scorers| {
            inside(scorers, "weights", |lists| change(lists, "starts", 0, 1u64));
        },
        |scorers| {
            inside(scorers, "weights", |lists| {
                change(lists, "starts", 1, 1u64 << 40);
            });
        },
        |scorers| {
            inside(scorers, "weights", |lists| {
                let mut codes = lists.take::<i16>("codes").unwrap();
                codes.pop();
                lists.put("codes", codes);
            });
        },
        |scorers| drop(scorers.take_any::<f32>("biases").unwrap()),
        |scorers| {
            scorers.take_meta::<f32>("floor").unwrap();
            scorers.put_meta("floor", &-1.0);
        },
        |scorers| {
            scorers.take_meta::<f32>("slope").unwrap();
            scorers.put_meta("slope", &0.0);
        },
        |scorers| {
            let _: f32 = scorers.take_meta("offset").unwrap();
        },
    ];
    for damage in changes {
        let mut bundle = ldsm.to_bundle();
        inside(&mut bundle, "scorers", damage);
        assert!(Ldsm::from_bundle(bundle).is_err());
    }
    assert!(Ldsm::from_bundle(ldsm.to_bundle()).is_ok());
}

/// The trees alone do not change where no rows are held out.
#[test]
fn trees_alone_hold_no_rows_out() {
    let data = fixed(80, false);
    let alone = data.fit(&params());
    let other = data.fit(&Params {
        held_out_share: 0.7,
        n_hard_negatives: 1,
        ..params()
    });
    assert!(all_bits(&alone) == all_bits(&other));
    let held = data.fit(&Params {
        n_estimators: 2,
        ..sparse()
    });
    assert!(all_bits(&alone) != all_bits(&held));
    assert!(statistics(&held.trees[0]).n_examples[0] < statistics(&alone.trees[0]).n_examples[0]);
}
