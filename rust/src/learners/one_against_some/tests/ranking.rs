//! How scorers are stored and indexed, and how a row's best labels are found with them.

use super::super::join::Join;
use super::super::margins::{MarginMemory, RowMargins};
use super::*;
use crate::model::TopK;

/// Scorers of so many labels, some of them missing, with weights for about one column in
/// `every`.
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
        })
    };
    (0..n_labels).map(scorer).collect()
}

fn model(scorers: &[Option<Scorer>], examples: &Examples) -> OneAgainstSome {
    OneAgainstSome::new(scorers.iter().map(Option::as_ref), examples).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// By the index, with lists and with rows, and label by label: the products with the stored
    /// weights.
    #[test]
    fn margins_are_products(data in data(30), n_labels in 1u32..40, every in 1u32..30, seed in 0u32..1000) {
        let examples = data.examples();
        let scorers = scorers(n_labels, WIDTH as u32, every, seed);
        let model = model(&scorers, &examples);
        let mut cut = model.clone();
        cut.index_threshold = Some(0.5);
        prop_assert!(model.is_index_complete());
        let n_weights = scorers.iter().flatten().map(|scorer| scorer.weights.len()).sum::<usize>();
        prop_assert_eq!(model.weights().n_entries(), n_weights);
        let mut memories = (MarginMemory::default(), MarginMemory::default());
        let mut by_index = RowMargins::new(&model, &mut memories.0);
        let mut by_label = RowMargins::new(&cut, &mut memories.1);
        for row in 0..examples.len() as u32 {
            by_index.read(examples.row(row));
            by_label.read(examples.row(row));
            let touched: BTreeMap<u32, f32> = by_index.found().into_iter().collect();
            let x = full(&examples, row);
            for (label, scorer) in (0u32..).zip(&scorers) {
                let Some(scorer) = scorer else {
                    prop_assert_eq!(by_index.margin(label), f32::NEG_INFINITY);
                    prop_assert_eq!(by_label.margin(label), f32::NEG_INFINITY);
                    prop_assert!(!touched.contains_key(&label));
                    continue;
                };
                let wanted = product(&full_weights(scorer, examples.width), &x);
                for margin in [by_index.margin(label), by_label.margin(label)] {
                    prop_assert!(is_near(margin.into(), wanted, 1e-3), "{margin} {wanted}");
                }
                if let Some(&margin) = touched.get(&label) {
                    prop_assert_eq!(margin, by_index.margin(label));
                    let (columns, _) = examples.row(row);
                    prop_assert!(scorer.weights.iter().any(|(column, _)| columns.contains(column)));
                } else {
                    prop_assert_eq!(by_index.margin(label), scorer.bias);
                }
            }
        }
    }

    /// No score is above its bound, which is near where the score is not small.
    #[test]
    fn scores_are_bounded(score_before in 0.0f32..0.3, weight in 0.0f32..99.0, floor in 0.001f32..0.2, margin in -3.0f32..2.0) {
        let join = Join { floor, weight };
        for margin in [margin, f32::NEG_INFINITY] {
            let (score, bound) = (join.score(score_before, margin), join.upper_bound(score_before, margin));
            prop_assert!(bound >= score, "{bound} {score}");
            prop_assert!(bound <= score * 1.05 || score < 0.1 * (score_before + floor));
        }
    }

    /// From the least margin on, and hardly before, a label that no tree names reaches the bar.
    #[test]
    fn a_bar_has_a_least_margin(weight in 0.0f32..20.0, floor in 0.001f32..0.2, margin in -3.0f32..2.0, share in 0.01f32..2.0) {
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

    /// The best labels of a few hundred or thousand, as if all had been scored and sorted; also
    /// where they are too many to be scored.
    #[test]
    fn the_best_are_the_best_of_all(data in data(6), few in 1u32..300, is_many in any::<bool>(), every in 1u32..9, seed in 0u32..1000, k in 1usize..20) {
        let n_labels = if is_many { 4400 + few } else { few };
        let examples = data.examples();
        let mut model = model(&scorers(n_labels, WIDTH as u32, every, seed), &examples);
        model.join = Join { floor: 0.01, weight: (seed % 7) as f32 };
        let (mut ranker_memory, mut memory) = (RankerMemory::default(), MarginMemory::default());
        let mut ranker = Ranker::new(Some(&model), &mut ranker_memory);
        let mut by_trees = LabelScores::new(n_labels as usize);
        let list: Vec<(u32, f32)> = (0..n_labels).filter(|i| (i * 37 + seed) % 11 < 3).map(|i| (i, ((i * 101 + seed) % 71 + 1) as f32)).collect();
        by_trees.add(&packed(std::slice::from_ref(&list), n_labels as usize), 0, 0.001);
        let mut margins = RowMargins::new(&model, &mut memory);
        for row in 0..examples.len() as u32 {
            ranker.read(examples.row(row), &by_trees);
            margins.read(examples.row(row));
            let mut scored = Vec::new();
            ranker.for_each_label(&by_trees, |label, score| scored.push((label, score)));
            if model.is_index_complete() {
                let distinct: BTreeSet<u32> = scored.iter().map(|&(label, _)| label).collect();
                prop_assert_eq!(distinct.len(), scored.len());
                prop_assert!(list.iter().all(|(label, _)| scored.iter().any(|(other, _)| other == label)));
            } else {
                let join = model.join;
                let found: BTreeMap<u32, f32> = margins.found().into_iter().collect();
                let by_trees: BTreeMap<u32, f32> = list.iter().map(|&(label, score)| (label, 0.001 * score)).collect();
                let named: BTreeSet<u32> = found.keys().chain(by_trees.keys()).copied().collect();
                let mut wanted: Vec<(u32, f32)> = named.iter().map(|label| {
                    let part = found.get(label).unwrap_or(&0.0) + model.biases()[*label as usize];
                    (*label, join.upper_bound(by_trees.get(label).copied().unwrap_or(0.0), part))
                }).collect();
                wanted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let wanted: BTreeSet<u32> = wanted.iter().take(64).map(|&(label, _)| label).collect();
                prop_assert_eq!(wanted, scored.iter().map(|&(label, _)| label).collect::<BTreeSet<u32>>());
            }
            let join = model.join;
            for (label, score) in &mut scored {
                let wanted = join.score(*score, margins.margin(*label));
                *score = ranker.score(*label, *score);
                prop_assert!(is_near((*score).into(), wanted.into(), 1e-3), "{score} {wanted}");
            }
            scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut top = TopK::new(k);
            ranker.best(&by_trees, &mut top);
            let (mut labels, mut scores) = (vec![0; k], vec![0.0; k]);
            top.write(&mut labels, &mut scores);
            for i in 0..k {
                let wanted = scored.get(i).map_or((-1, f32::NEG_INFINITY), |&(label, score)| (label as i32, score));
                prop_assert_eq!((labels[i], scores[i]), wanted);
            }
        }
    }
}

/// Whether the index is complete follows from what a row costs, not from the number
/// of rows. If it is not, it has the largest weights, of which a row meets about so many whatever
/// the number of labels.
#[test]
fn the_index_has_no_more_than_is_looked_up() {
    let (few, many) = (fixed(20, true).examples(), fixed(90, true).examples());
    for (n_labels, is_complete) in [(3000, true), (9000, true), (12_000, false), (30_000, false)] {
        let scorers = scorers(n_labels, WIDTH as u32, 1, 0);
        for examples in [&few, &many] {
            let model = model(&scorers, examples);
            assert_eq!(model.is_index_complete(), is_complete);
            let mut memory = MarginMemory::default();
            let mut margins = RowMargins::new(&model, &mut memory);
            margins.read(examples.row(0));
            if is_complete {
                continue;
            }
            let lists = (0..WIDTH).map(|column| model.index().list(column));
            let n_met: usize = lists.clone().map(<[_]>::len).sum();
            assert!((1500..=2048).contains(&n_met), "{n_met}");
            let least = lists
                .flatten()
                .map(|&(_, weight)| weight)
                .fold(9.0, f32::min);
            let of_all = scorers.iter().flatten().flat_map(|scorer| &scorer.weights);
            let n_above = of_all.filter(|(_, weight)| *weight > least * 1.001).count();
            assert!(n_above <= n_met, "{n_above} {n_met}");
            let x = full(examples, 0);
            for (label, part) in margins.found() {
                let mut wanted = 0.0;
                model.weights().for_each(label as usize, |column, [w]| {
                    if w >= least {
                        wanted += f64::from(w) * x[column as usize];
                    }
                });
                assert!(is_near(part.into(), wanted, 1e-4), "{part} {wanted}");
            }
        }
    }
}
