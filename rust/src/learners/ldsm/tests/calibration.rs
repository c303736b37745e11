//! The join that is fitted, and scores that are probabilities.

use super::super::join::Join;
use super::super::one_against_some::join_fit::{fit, Candidate, FitRow};
use super::super::one_against_some::Calibration;
use super::one_against_some::sparse;
use super::prediction::all;
use super::*;
use crate::random::mix;

/// Joined scores are the trees' scores then.
const JOIN: Join = Join {
    floor: 0.0,
    weight: 0.0,
};

/// Rows of `n` candidates, there as often as `map` says.
fn rows(map: Calibration, n: u32) -> Vec<FitRow> {
    let uniform = |i: u32| (mix(u64::from(i) + 1) >> 11) as f64 / (1u64 << 53) as f64;
    let candidate = |i: u32| {
        let tree_score = uniform(2 * i + 1).powi(2) as f32;
        Candidate {
            tree_score,
            margin: 0.0,
            is_own: uniform(2 * i) < map.probability(tree_score).into(),
        }
    };
    let row = |i: u32| ((0..n).map(|j| candidate(n * i + j)).collect(), 1.0);
    (0..20_000 / n).map(row).collect()
}

#[test]
fn a_known_map_is_found() {
    for (offset, slope) in [(0.0, 1.0), (2.0, 0.4), (4.0, 2.0), (-1.0, 0.8)] {
        let map = Calibration {
            offset,
            slope,
            ..Calibration::default()
        };
        // Of forty candidates only the ten best count.
        for n in [5, 40] {
            let found = Calibration::fit(&rows(map, n), JOIN, 40);
            for score in [0.6f32, 0.75, 0.9] {
                let (found, wanted) = (found.probability(score), map.probability(score));
                assert!(
                    (found - wanted).abs() < 0.03,
                    "{map:?} {n} {found} {wanted}"
                );
            }
        }
    }
}

#[test]
fn little_to_fit_on() {
    assert_eq!(Calibration::fit(&[], JOIN, 40), Calibration::default());
    // All there, none there, the other way round: still finite and growing.
    for n_own in [0, 3, 6] {
        for falls in [false, true] {
            let candidate = |i: u32| Candidate {
                tree_score: (i + 1) as f32 / 8.0,
                margin: 0.0,
                is_own: (i < n_own) == falls,
            };
            let row = ((0..6).map(candidate).collect(), 1.0);
            let found = Calibration::fit(&[row], JOIN, 40);
            assert!(found.is_sound(), "{found:?}");
            let (low, high) = (found.probability(0.1), found.probability(0.9));
            assert!(0.0 < low && low < high && high < 1.0, "{found:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What is likely has a probability above a half, and scores are probabilities.
    #[test]
    fn labels_are_chosen_by_probability(data in data(60), unseen in data(20), threshold in 0.0f32..1.0) {
        let ldsm = data.fit(&sparse());
        let rows = unseen.rows();
        let scores = all(&ldsm, &unseen);
        let chosen = |selection| ldsm.select_labels(&Query::new(&rows, 1, &control()), selection).unwrap();
        for (selection, least) in [(LabelSelection::Likely(0), 0.5), (LabelSelection::Above(threshold), threshold)] {
            let found = chosen(selection);
            for (i, scores) in scores.iter().enumerate() {
                let range = found.starts[i] as usize..found.starts[i + 1] as usize;
                let labels = found.labels[range].iter().map(|&label| label as u32);
                let wanted = scores.iter().filter(|&(_, &p)| p > least).map(|(&label, _)| label);
                prop_assert!(labels.eq(wanted));
            }
        }
        // A row without a likely label has its best one.
        let (likely, best) = (chosen(LabelSelection::Likely(0)), chosen(LabelSelection::Best(1)));
        let found = chosen(LabelSelection::Likely(1));
        for i in 0..scores.len() {
            let of_row = |of: &SelectedLabels| {
                of.labels[of.starts[i] as usize..of.starts[i + 1] as usize].to_vec()
            };
            let likely = of_row(&likely);
            let wanted = if likely.is_empty() { of_row(&best) } else { likely };
            prop_assert_eq!(of_row(&found), wanted);
        }
        for &score in scores.iter().flat_map(|scores| scores.values()) {
            prop_assert!(score > 0.0 && score <= 1.0);
        }
    }

    /// The best come in the order of their probabilities.
    #[test]
    fn the_best_have_the_largest_probabilities(data in data(60), unseen in data(20)) {
        let ldsm = data.fit(&sparse());
        let (labels, scores) = ldsm.predict_topk(&Query::new(&unseen.rows(), 1, &control()), 4).unwrap();
        for (i, of_row) in all(&ldsm, &unseen).iter().enumerate() {
            let mut wanted: Vec<f32> = of_row.values().copied().collect();
            wanted.sort_by(|a, b| b.total_cmp(a));
            for (place, &score) in scores[4 * i..4 * i + 4].iter().enumerate() {
                let label = labels[4 * i + place];
                prop_assert_eq!(score, wanted.get(place).copied().unwrap_or(f32::NEG_INFINITY));
                prop_assert!(label < 0 || of_row[&(label as u32)] == score);
            }
        }
    }
}

/// The join believes whom the rows held out say it should.
#[test]
fn the_join_is_fitted() {
    let row = |i: u32, by_trees: bool| {
        let candidates = (0..20u32).map(|label| {
            let is_own = label == i % 20;
            let noise = (i.wrapping_mul(2_654_435_761) ^ (label * 40_503)) % 97;
            let noise = noise as f32 / 97.0;
            let told = f32::from(u8::from(is_own));
            let (tree_score, margin) = if by_trees {
                (told, noise)
            } else {
                (noise, told)
            };
            let (tree_score, margin) = (tree_score / 5.0, 2.0 * margin - 1.0);
            Candidate {
                tree_score,
                margin,
                is_own,
            }
        });
        (candidates.collect(), 1.0)
    };
    let rows = |by_trees| (0..200).map(|i| row(i, by_trees)).collect::<Vec<_>>();
    let ((_, by_trees), _) = fit(&rows(true), None);
    let ((floor, by_scorers), gain) = fit(&rows(false), None);
    assert!(by_trees < by_scorers, "{by_trees} {by_scorers}");
    assert!(floor > 0.0);
    // P@1 + P@3 + P@5 of 200 rows whose only label is the first.
    assert!(is_near(gain, 200.0 * 23.0 / 15.0, 1e-9));
    assert_eq!(fit(&rows(true), Some(3.0)).0 .1, 3.0);
    assert_eq!(fit(&[], None), ((0.01, 0.5), 0.0));
    assert_eq!(fit(&[], Some(3.0)).0 .1, 3.0);
}
