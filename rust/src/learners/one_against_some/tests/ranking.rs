//! Stored weights, their index, and the best labels of a row.

use super::super::weights::LabelWeights;
use super::*;
use crate::model::TopK;

/// Generates scorers of some of `n_labels` labels, with weights for about one column in `every`.
fn scorers(n_labels: u32, width: u32, every: u32, seed: u32) -> Vec<Option<Scorer>> {
    let scorer = |label: u32| {
        let noise =
            |c: u32| (label * 7919 + c * 104_729 + seed * 31).wrapping_mul(2_654_435_761) >> 8;
        let columns = (0..width).filter(|&c| noise(c) % every == 0);
        let weight = |c| (noise(c) / every % 1000) as f32 / 150.0 - 3.3;
        (noise(width) % 5 > 0).then(|| Scorer {
            bias: (noise(width + 1) % 1000) as f32 / 500.0 - 1.0,
            weights: columns
                .map(|c| (c, weight(c)))
                .filter(|&(_, w)| w != 0.0)
                .collect(),
            ..Scorer::default()
        })
    };
    (0..n_labels).map(scorer).collect()
}

fn weights(scorers: &[Option<Scorer>], examples: &Examples) -> LabelWeights {
    LabelWeights::new(scorers.iter().cloned(), &SPARSE, examples).unwrap()
}

/// Returns the labels that the index finds, with their margins or the part of the largest weights.
fn found(margins: &RowMargins, weights: &LabelWeights) -> BTreeMap<u32, f32> {
    let mut found = BTreeMap::new();
    margins.for_each_found(weights, |label, part| {
        assert!(found.insert(label, part).is_none());
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Margins by the index and label by label are the products with the stored weights.
    #[test]
    fn margins_are_products(data in data(30), n_labels in 1u32..40, every in 1u32..30, seed in 0u32..1000) {
        let examples = data.examples();
        let scorers = scorers(n_labels, WIDTH as u32, every, seed);
        let weights = weights(&scorers, &examples);
        let mut cut = weights.clone();
        cut.index_threshold = Some(0.5);
        prop_assert!(weights.is_index_complete());
        let n_weights = scorers.iter().flatten().map(|scorer| scorer.weights.len()).sum::<usize>();
        prop_assert_eq!(weights.lists.n_entries(), n_weights);
        let (mut by_index, mut by_label) = (RowMargins::default(), RowMargins::default());
        for row in 0..examples.len() as u32 {
            by_index.read(&weights, examples.row(row));
            by_label.read(&cut, examples.row(row));
            let touched = found(&by_index, &weights);
            for (margins, weights) in [(&by_index, &weights), (&by_label, &cut)] {
                let best_first = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
                let mut all: Vec<(u32, f32)> = found(margins, weights).into_iter().collect();
                let mut best = margins.best_found(weights, 2);
                all.sort_by(best_first);
                best.sort_by(best_first);
                prop_assert_eq!(&best, &all[..all.len().min(2)]);
            }
            let x = full(&examples, row);
            for (label, scorer) in (0u32..).zip(&scorers) {
                let Some(scorer) = scorer else {
                    prop_assert_eq!(by_index.margin(&weights, label), f32::NEG_INFINITY);
                    prop_assert_eq!(by_label.margin(&cut, label), f32::NEG_INFINITY);
                    prop_assert!(!touched.contains_key(&label));
                    continue;
                };
                let wanted = product(&full_weights(scorer, examples.width), &x);
                for margin in [by_index.margin(&weights, label), by_label.margin(&cut, label)] {
                    prop_assert!(is_near(margin.into(), wanted, 1e-3), "{margin} {wanted}");
                }
                if let Some(&margin) = touched.get(&label) {
                    prop_assert_eq!(margin, by_index.margin(&weights, label));
                    let (columns, _) = examples.row(row);
                    prop_assert!(scorer.weights.iter().any(|(column, _)| columns.contains(column)));
                } else {
                    prop_assert_eq!(by_index.margin(&weights, label), scorer.bias);
                }
            }
        }
    }

    /// No score is above its bound, which is near all but small scores.
    #[test]
    fn scores_are_bounded(score_before in 0.0f32..0.3, weight in 0.0f32..99.0, floor in 0.001f32..0.2, margin in -3.0f32..2.0) {
        let join = Join { floor, weight };
        for margin in [margin, f32::NEG_INFINITY] {
            let (score, bound) = (join.score(score_before, margin), join.upper_bound(score_before, margin));
            prop_assert!(bound >= score, "{bound} {score}");
            prop_assert!(bound <= score * 1.05 || score < 0.1 * (score_before + floor));
        }
    }

    /// A label without a score by a tree reaches the bar from the least margin on.
    #[test]
    fn the_least_margin_reaches_the_bar(weight in 0.0f32..20.0, floor in 0.001f32..0.2, margin in -3.0f32..2.0, share in 0.01f32..2.0) {
        let join = Join { floor, weight };
        let score = join.score(0.0, margin);
        prop_assert!(join.least_margin(score) <= margin);
        let least = join.least_margin(floor * share);
        if share > 1.01 {
            prop_assert_eq!(least, f32::INFINITY);
        } else if least > f32::NEG_INFINITY && least < f32::INFINITY {
            prop_assert!(join.score(0.0, least - 0.1) < floor * share || weight < 0.01);
        }
        prop_assert_eq!(join.least_margin(f32::NEG_INFINITY), f32::NEG_INFINITY);
    }

    /// The best labels are those of sorting all scores, or all candidates if the index is not
    /// complete.
    #[test]
    fn the_best_are_the_best_of_all(data in data(6), few in 1u32..300, is_many in any::<bool>(), every in 1u32..9, seed in 0u32..1000, k in 1usize..20) {
        let n_labels = if is_many { 4400 + few } else { few };
        let examples = data.examples();
        let model = OneAgainstSome {
            weights: weights(&scorers(n_labels, WIDTH as u32, every, seed), &examples),
            join: Join { floor: 0.01, weight: (seed % 7) as f32 },
            ..OneAgainstSome::default()
        };
        let (join, weights) = (model.join, &model.weights);
        let (mut ranker, mut margins) = (Ranker::default(), RowMargins::default());
        let mut by_trees = LabelScores::new(n_labels as usize);
        let list: Vec<(u32, f32)> = (0..n_labels).filter(|i| (i * 37 + seed) % 11 < 3).map(|i| (i, ((i * 101 + seed) % 71 + 1) as f32)).collect();
        by_trees.add(&packed(std::slice::from_ref(&list), n_labels as usize), 0, 0.001);
        for row in 0..examples.len() as u32 {
            ranker.read(&model, &examples.rows, row as usize, &by_trees);
            margins.read(weights, examples.row(row));
            let mut scored = Vec::new();
            ranker.for_each_label(&model, &by_trees, 0.0, |label, score| scored.push((label, score)));
            if weights.is_index_complete() {
                let distinct: BTreeSet<u32> = scored.iter().map(|&(label, _)| label).collect();
                prop_assert_eq!(distinct.len(), scored.len());
                prop_assert!(list.iter().all(|(label, _)| scored.iter().any(|(other, _)| other == label)));
            } else {
                let found = found(&margins, weights);
                let by_trees: BTreeMap<u32, f32> = list.iter().map(|&(label, score)| (label, 0.001 * score)).collect();
                let named: BTreeSet<u32> = found.keys().chain(by_trees.keys()).copied().collect();
                let mut wanted: Vec<(u32, f32)> = named.iter().map(|label| {
                    let part = found.get(label).unwrap_or(&0.0) + weights.biases[*label as usize];
                    (*label, join.upper_bound(by_trees.get(label).copied().unwrap_or(0.0), part))
                }).collect();
                wanted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let wanted: BTreeSet<u32> = wanted.iter().take(64).map(|&(label, _)| label).collect();
                prop_assert_eq!(wanted, scored.iter().map(|&(label, _)| label).collect::<BTreeSet<u32>>());
            }
            for (label, score) in &mut scored {
                let wanted = join.score(*score, margins.margin(weights, *label));
                *score = ranker.score(&model, *label, *score);
                prop_assert!(is_near((*score).into(), wanted.into(), 1e-3), "{score} {wanted}");
            }
            scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut top = TopK::new(k);
            ranker.best(&model, &by_trees, &mut top);
            let (mut labels, mut scores) = (vec![0; k], vec![0.0; k]);
            top.write(&mut labels, &mut scores);
            for i in 0..k {
                let wanted = scored.get(i).map_or((-1, f32::NEG_INFINITY), |&(label, score)| (label as i32, score));
                prop_assert_eq!((labels[i], scores[i]), wanted);
            }
        }
    }
}

/// The cost of a row decides whether the index is complete, not the number of rows. If it is not, a
/// row meets about the same number of its weights for any number of labels.
#[test]
fn the_index_bounds_the_cost_of_a_row() {
    let (few, many) = (fixed(20, true).examples(), fixed(90, true).examples());
    for (n_labels, is_complete) in [(3000, true), (9000, true), (12_000, false), (30_000, false)] {
        let scorers = scorers(n_labels, WIDTH as u32, 1, 0);
        for examples in [&few, &many] {
            let weights = weights(&scorers, examples);
            assert_eq!(weights.is_index_complete(), is_complete);
            let mut margins = RowMargins::default();
            margins.read(&weights, examples.row(0));
            if is_complete {
                continue;
            }
            let lists = (0..WIDTH).map(|column| weights.index().list(column));
            let n_met: usize = lists.clone().map(<[_]>::len).sum();
            assert!((1500..=2048).contains(&n_met), "{n_met}");
            let least = lists
                .flatten()
                .map(|&(_, weight)| weight)
                .fold(9.0, f32::min);
            let all = scorers.iter().flatten().flat_map(|scorer| &scorer.weights);
            let n_above = all.filter(|(_, weight)| *weight > least * 1.001).count();
            assert!(n_above <= n_met, "{n_above} {n_met}");
            let x = full(examples, 0);
            for (label, part) in found(&margins, &weights) {
                let mut wanted = 0.0;
                weights.lists.for_each(label as usize, |column, [w]| {
                    if w >= least {
                        wanted += f64::from(w) * x[column as usize];
                    }
                });
                assert!(is_near(part.into(), wanted, 1e-4), "{part} {wanted}");
            }
        }
    }
}
