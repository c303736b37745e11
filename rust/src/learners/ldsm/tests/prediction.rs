//! Labels and scores of rows, compared with their definitions.

use std::collections::BTreeMap;

use super::trees::nodes_of;
use super::*;
use crate::data::Ragged;
use crate::file::{Array, Bundle, Element};

/// Returns the scores of a row by its leaves, and the mean number of labels per example in them.
pub(in crate::learners) fn by_trees(
    ldsm: &Ldsm,
    data: &Data,
    i: usize,
) -> (BTreeMap<u32, f64>, f64) {
    let preparation = ldsm.preparation.as_ref().unwrap();
    let mut row = RowBuffer::default();
    preparation.read(&data.rows(), i, &mut row);
    let (mut scores, mut expected) = (BTreeMap::new(), 0.0);
    for tree in &ldsm.trees {
        let mut leaves = nodes_of(tree, &row, preparation.width());
        leaves.retain(|&id| tree.children(id).is_none());
        let share = 1.0 / (leaves.len() * ldsm.trees.len()) as f64;
        for leaf in leaves {
            let Node::Leaf(leaf) = tree.node(leaf) else {
                unreachable!()
            };
            let mass = f64::from(tree.inverse_masses[leaf as usize]).recip();
            for (label, count) in histogram(tree, leaf) {
                *scores.entry(label).or_insert(0.0) += share * f64::from(count) / mass;
            }
            expected += share * f64::from(tree.labels_each[leaf as usize]);
        }
    }
    (scores, expected)
}

/// Returns row `i` over all columns without the constant.
fn full(preparation: &Preparation, data: &Data, i: usize) -> Vec<f64> {
    let mut row = RowBuffer::default();
    preparation.read(&data.rows(), i, &mut row);
    let mut full = vec![0.0; preparation.width()];
    for (&column, &x) in row.columns.iter().zip(&row.values) {
        full[column as usize] += f64::from(x);
    }
    full.pop();
    full
}

/// Returns the scores of each row by label.
pub(in crate::learners) fn all(ldsm: &Ldsm, data: &Data) -> Vec<BTreeMap<u32, f32>> {
    let found = ldsm
        .select_labels(
            &Query::new(&data.rows(), 1, &control()),
            LabelSelection::Above(f32::NEG_INFINITY, 0),
        )
        .unwrap();
    rows_of(&found)
}

fn rows_of(found: &Ragged<(u32, f32)>) -> Vec<BTreeMap<u32, f32>> {
    let rows = (0..found.len()).map(|i| {
        let labels = found.get(i);
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        labels.iter().copied().collect()
    });
    rows.collect()
}

/// Sorts labels by score, equal scores by label.
fn best(scores: &BTreeMap<u32, f32>) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = scores
        .iter()
        .map(|(&label, &score)| (label, score))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

fn agree(
    found: &BTreeMap<u32, f32>,
    wanted: &BTreeMap<u32, f64>,
    tolerance: f64,
) -> std::result::Result<(), TestCaseError> {
    prop_assert!(found.keys().eq(wanted.keys()), "{found:?} {wanted:?}");
    for (&score, &wanted_score) in found.values().zip(wanted.values()) {
        prop_assert!(
            is_near(score.into(), wanted_score, tolerance),
            "{found:?} {wanted:?}"
        );
    }
    Ok(())
}

fn models() -> impl Strategy<Value = Params> {
    let scalings = prop::sample::select(vec![
        Scaling::None,
        Scaling::Row,
        Scaling::Standard,
        Scaling::Log,
    ]);
    (2u32..5, scalings, any::<bool>(), 0u64..100).prop_map(|(arity, scaling, is_hashed, seed)| {
        Params {
            arity,
            n_bits: (is_hashed && scaling != Scaling::Standard).then_some(3),
            scaling,
            n_estimators: 3,
            max_nodes: 15,
            seed,
            ..params()
        }
    })
}

fn any_scorers() -> impl Strategy<Value = Scorers> {
    prop::sample::select(vec![Scorers::None, Scorers::OneAgainstSome])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn scores_are_means_of_histograms(params in models(), data in data(60), unseen in data(30)) {
        let ldsm = data.fit(&params);
        for (i, found) in all(&ldsm, &unseen).iter().enumerate() {
            let (wanted, _) = by_trees(&ldsm, &unseen, i);
            agree(found, &wanted, 1e-5)?;
            prop_assert!(is_near(found.values().sum::<f32>().into(), 1.0, 1e-5));
        }
    }

    #[test]
    fn centroids_rerank(params in models(), data in data(40), unseen in data(20), beta in 0.0f64..1.0) {
        let params = Params { beta, ..params };
        let ldsm = data.fit(&params);
        let preparation = ldsm.preparation.as_ref().unwrap();
        let mut means = vec![(0.0, vec![0.0; preparation.width() - 1]); N_CLASSES];
        for i in data.present() {
            let (weight, row) = (f64::from(data.weight(i)), full(preparation, &data, i));
            for label in data.labels_of(i) {
                let (n, sums) = &mut means[label as usize];
                *n += weight;
                sums.iter_mut().zip(&row).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        for (i, found) in all(&ldsm, &unseen).iter().enumerate() {
            let row = full(preparation, &unseen, i);
            let (mut wanted, _) = by_trees(&ldsm, &unseen, i);
            for (&label, score) in &mut wanted {
                let (n, sums) = &means[label as usize];
                let distance: f64 = row.iter().zip(sums).map(|(x, sum)| (x - sum / n).powi(2)).sum();
                *score = beta * *score + (1.0 - beta) / (1.0 + (1e-4 * distance / 2.0).exp());
            }
            agree(found, &wanted, 1e-4)?;
        }
    }

    #[test]
    fn selected_labels_are_the_best_of_all(
        params in models(), data in data(60), unseen in data(30), n in 0usize..12, k in 1usize..14, scorers in any_scorers(),
    ) {
        let params = Params { beta: 0.7, scorers, ..params };
        let ldsm = data.fit(&params);
        let rows = unseen.rows();
        let select = |wanted| rows_of(&ldsm.select_labels(&Query::new(&rows, 1, &control()), wanted).unwrap());
        let (all, above) = (all(&ldsm, &unseen), select(LabelSelection::Above(0.4, 0)));
        let some = select(LabelSelection::Best(n));
        let filled = select(LabelSelection::Above(0.4, n));
        let (labels, scores) = ldsm.predict_topk(&Query::new(&rows, 1, &control()), k).unwrap();
        prop_assert_eq!((labels.len(), scores.len()), (k * unseen.len(), k * unseen.len()));
        for (i, all) in all.iter().enumerate() {
            let best = best(all);
            prop_assert!(all.iter().filter(|&(_, &score)| score > 0.4).eq(above[i].iter()));
            // Final scores that differ may have the same probability, so labels of equal
            // probability may come in any order.
            prop_assert!(some[i].iter().all(|(label, score)| all[label] == *score));
            let mut some: Vec<f32> = some[i].values().copied().collect();
            some.sort_unstable_by(|a, b| b.total_cmp(a));
            prop_assert!(best.iter().take(n).map(|&(_, score)| score).eq(some.iter().copied()));
            if above[i].len() >= n {
                prop_assert_eq!(&filled[i], &above[i]);
            } else {
                let mut filled: Vec<f32> = filled[i].values().copied().collect();
                filled.sort_unstable_by(|a, b| b.total_cmp(a));
                prop_assert_eq!(filled, some);
            }
            let top = || (i * k..).zip(0..k);
            for (at, place) in top() {
                let wanted = best.get(place).map_or(f32::NEG_INFINITY, |&(_, score)| score);
                let found = u32::try_from(labels[at]).map_or(f32::NEG_INFINITY, |label| all[&label]);
                prop_assert_eq!((scores[at], found), (wanted, wanted));
            }
            let distinct: BTreeSet<i32> = top().map(|(at, _)| labels[at]).filter(|&label| label >= 0).collect();
            prop_assert_eq!(distinct.len(), k.min(best.len()));
        }
    }

    /// Scores are probabilities with scorers; without, the probability is the share of labels times
    /// the labels per example.
    #[test]
    fn likely_labels_have_a_probability_above_one_half(params in models(), data in data(40), unseen in data(20), scorers in any_scorers()) {
        let ldsm = data.fit(&Params { scorers, beta: 0.8, ..params });
        let found = rows_of(&ldsm.select_labels(&Query::new(&unseen.rows(), 1, &control()), LabelSelection::Likely(0)).unwrap());
        for (i, all) in all(&ldsm, &unseen).iter().enumerate() {
            let (shares, expected) = by_trees(&ldsm, &unseen, i);
            for (label, &score) in all {
                let by_trees = shares.get(label).map_or(0.0, |share| share * expected);
                let probability = if ldsm.scorers.is_some() { score.into() } else { by_trees };
                if (probability - 0.5).abs() > 1e-5 || ldsm.scorers.is_some() {
                    let wanted = (probability > 0.5).then_some(score);
                    prop_assert_eq!(found[i].get(label).copied(), wanted, "{}", probability);
                }
            }
        }
    }

    #[test]
    fn a_file_keeps_the_model(params in models(), data in data(40), beta in 0.5f64..1.5, scorers in any_scorers()) {
        let ldsm = data.fit(&Params { scorers, beta: beta.min(1.0), ..params });
        let bytes = ldsm.to_bytes().unwrap();
        let again = Ldsm::from_bytes(&bytes).unwrap();
        prop_assert!(all_bits(&again) == all_bits(&ldsm));
        prop_assert_eq!(format!("{:?}", again.centroids), format!("{:?}", ldsm.centroids));
        prop_assert!(again.to_bytes().unwrap() == bytes);
        let top = |ldsm: &Ldsm| ldsm.predict_topk(&Query::new(&data.rows(), 1, &control()), 3).unwrap();
        prop_assert_eq!(top(&again), top(&ldsm));
    }

    /// Rows are predicted alone or in a block, by one thread or three.
    #[test]
    fn a_prediction_depends_on_its_row_alone(params in models(), data in data(60), unseen in data(30), scorers in any_scorers()) {
        let ldsm = data.fit(&Params { scorers, beta: 0.9, ..params });
        prop_assert_eq!(ldsm.scorers.is_some(), scorers != Scorers::None);
        let top = |data: &Data, n_threads| {
            let (labels, scores) = ldsm.predict_topk(&Query::new(&data.rows(), n_threads, &control()), 4).unwrap();
            labels.into_iter().zip(scores.iter().map(|score| score.to_bits())).collect::<Vec<_>>()
        };
        let together = top(&unseen, 1);
        prop_assert!(top(&unseen, 3) == together);
        for i in 0..unseen.len() {
            let alone = unseen.select([i]);
            prop_assert_eq!(&top(&alone, 1)[..], &together[4 * i..4 * i + 4]);
            let found = ldsm.select_labels(&Query::new(&alone.rows(), 1, &control()), LabelSelection::Best(4)).unwrap();
            let mut alone: Vec<(i32, u32)> = together[4 * i..4 * i + 4].iter().copied().filter(|&(label, _)| label >= 0).collect();
            alone.sort_unstable();
            prop_assert!(found.get(0).iter().map(|&(label, score)| (label as i32, score.to_bits())).eq(alone));
        }
    }
}

pub(in crate::learners) type Change = fn(&mut Bundle);

/// Replaces a value of an array.
pub(in crate::learners) fn change<E: Element>(bundle: &mut Bundle, name: &str, at: usize, value: E)
where
    Array: From<Vec<E>>,
{
    let mut array: Vec<E> = bundle.take_any(name).unwrap();
    array[at] = value;
    bundle.put(name, array);
}

pub(in crate::learners) fn inside(bundle: &mut Bundle, name: &str, change: Change) {
    let mut inner = bundle.unnest(name).unwrap();
    change(&mut inner);
    bundle.nest(name, inner);
}

/// The files have valid checksums and invalid contents.
#[test]
fn invalid_files_are_refused() {
    let in_tree: [Change; 9] = [
        // The root becomes a leaf, a split that does not exist, and its own descendant.
        |tree| change(tree, "links", 0, 1u32 << 31),
        |tree| change(tree, "links", 0, 1000u32),
        |tree| change(tree, "links", 2, 0u32),
        |tree| change(tree, "biases", 0, f32::INFINITY),
        |tree| change(tree, "labels_each", 0, 0.0f32),
        |tree| drop(tree.take::<f32>("inverse_masses").unwrap()),
        |tree| inside(tree, "routers", |lists| change(lists, "starts", 0, 1u32)),
        |tree| {
            inside(tree, "histograms", |lists| {
                change(lists, "bytes_of_ids", 0, 99u8);
            });
        },
        |tree| {
            inside(tree, "statistics", |known| {
                drop(known.take::<f64>("weights").unwrap());
            });
        },
    ];
    let data = fixed(60, false);
    let ldsm = data.fit(&Params {
        beta: 0.5,
        scorers: Scorers::OneAgainstSome,
        ..params()
    });
    let refuses = |bundle| assert!(Ldsm::from_bundle(bundle).is_err());
    for change in in_tree {
        let mut bundle = ldsm.to_bundle();
        inside(&mut bundle, "tree0", change);
        refuses(bundle);
    }
    let mut bundle = ldsm.to_bundle();
    inside(&mut bundle, "centroids", |centroids| {
        inside(centroids, "means", |lists| {
            change(lists, "list.key", 0, 99u32);
        });
    });
    refuses(bundle);
    let mut bundle = ldsm.to_bundle();
    bundle.take_meta::<usize>("n_classes").unwrap();
    bundle.put_meta("n_classes", &(N_CLASSES + 1));
    refuses(bundle);
    assert!(Ldsm::from_bundle(ldsm.to_bundle()).is_ok());
}

/// There are more rows than fit in a block.
#[test]
fn blocks_are_joined() {
    let data = fixed(150, false);
    let ldsm = data.fit(&Params {
        scorers: Scorers::OneAgainstSome,
        beta: 0.5,
        ..params()
    });
    let many = data.select((0..9000).map(|i| i * 7 % 150));
    let expected = all(&ldsm, &data);
    for n_threads in [1, 2] {
        let found = ldsm
            .select_labels(
                &Query::new(&many.rows(), n_threads, &control()),
                LabelSelection::Above(f32::NEG_INFINITY, 0),
            )
            .unwrap();
        for (i, found) in rows_of(&found).into_iter().enumerate() {
            assert_eq!(found, expected[i * 7 % 150]);
        }
    }
}

/// A label whose share of a leaf is too small for a float is found once, not once per leaf.
#[test]
fn labels_of_tiny_weight_are_found_once() {
    let mut data = Data::empty(true);
    for _ in 0..4 {
        data.push(&[(0, 1.0)], &[1], 1e30);
        data.push(&[(0, 1.0)], &[2], 1e-30);
    }
    let ldsm = data.fit(&Params {
        max_nodes: 1,
        ..params()
    });
    let (labels, scores) = ldsm
        .predict_topk(&Query::new(&data.rows(), 1, &control()), 4)
        .unwrap();
    assert_eq!(labels[..4], [1, 2, -1, -1], "{scores:?}");
}

#[test]
fn labels_of_tiny_counts_have_a_score() {
    use crate::learners::one_against_some::LabelScores;
    let mut data = fixed(120, false);
    data.weights = Some(
        (0..120)
            .map(|i| if i % 7 == 0 { 1e-30 } else { 1e20 })
            .collect(),
    );
    let ldsm = data.fit(&params());
    let mut scores = LabelScores::new(N_CLASSES);
    for tree in &ldsm.trees {
        for leaf in 1..tree.inverse_masses.len() {
            scores.clear();
            for leaf in [leaf, leaf - 1] {
                scores.add(&tree.histograms, leaf, 0.5 * tree.inverse_masses[leaf]);
            }
            let labels = [leaf - 1, leaf]
                .map(|leaf| histogram(tree, leaf as u32))
                .concat();
            let labels: BTreeSet<u32> = labels.into_iter().map(|(label, _)| label).collect();
            let mut found = Vec::new();
            scores.for_each(|label, score| found.push((label, score > 0.0)));
            found.sort_unstable();
            assert!(found
                .into_iter()
                .eq(labels.into_iter().map(|label| (label, true))));
        }
    }
}
