//! The fit of join and calibration.

use super::super::fit::{best_gains, contenders, fit_calibration, fit_join, Candidate, FitRow};
use super::*;
use crate::learners::mix;
use crate::metrics::Shares;

/// A join that keeps the scores of the other model.
const JOIN: Join = Join {
    floor: 0.0,
    weight: 0.0,
};

/// Generates rows of `n` candidates that are right with the probability by `map`.
fn rows(map: Calibration, n: u32) -> Vec<FitRow> {
    let uniform = |i: u32| (mix(u64::from(i) + 1) >> 11) as f64 / (1u64 << 53) as f64;
    let candidate = |i: u32| {
        let score_before = uniform(2 * i + 1).powi(2) as f32;
        Candidate {
            score_before,
            margin: 0.0,
            is_own: uniform(2 * i) < map.probability(score_before).into(),
        }
    };
    let row = |i: u32| FitRow {
        candidates: (0..n).map(|j| candidate(n * i + j)).collect(),
        weight: 1.0,
    };
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
        // The fit uses the ten best candidates.
        for n in [5, 40] {
            let found = fit_calibration(&rows(map, n), JOIN, 40);
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
fn calibration_of_few_rows_is_valid() {
    assert_eq!(fit_calibration(&[], JOIN, 40), Calibration::default());
    // All candidates are right, or none, or those of the lowest scores.
    for n_own in [0, 3, 6] {
        for falls in [false, true] {
            let candidate = |i: u32| Candidate {
                score_before: (i + 1) as f32 / 8.0,
                margin: 0.0,
                is_own: (i < n_own) == falls,
            };
            let row = FitRow {
                candidates: (0..6).map(candidate).collect(),
                weight: 1.0,
            };
            let found = fit_calibration(&[row], JOIN, 40);
            assert!(found.is_sound(), "{found:?}");
            let (low, high) = (found.probability(0.1), found.probability(0.9));
            assert!(0.0 < low && low < high && high < 1.0, "{found:?}");
        }
    }
}

/// Returns rows of two kinds, each with the scores of its labels and how often each is right.
fn rows_of_two_kinds(kinds: [([f32; 3], [u8; 3]); 2]) -> Vec<FitRow> {
    let rows = kinds.into_iter().flat_map(|(scores, n_right)| {
        let right = (0..3).flat_map(move |own| (0..n_right[own]).map(move |_| own));
        right.map(move |own| FitRow {
            candidates: (0..3)
                .map(|label| Candidate {
                    score_before: scores[label],
                    margin: 0.0,
                    is_own: label == own,
                })
                .collect(),
            weight: 1.0,
        })
    });
    rows.collect()
}

#[test]
fn shares_are_mapped_only_if_this_clearly_helps() {
    let shares = |kinds| fit_calibration(&rows_of_two_kinds(kinds), JOIN, 3).shares;
    // Labels are right as often as their scores say.
    let as_scored = [
        ([0.8, 0.15, 0.05], [16, 3, 1]),
        ([0.5, 0.3, 0.2], [10, 6, 4]),
    ];
    assert_eq!(shares(as_scored), Shares::default());
    // The best label is always right, but 0.4 is the score of a right and of a wrong one.
    let best = [([0.5, 0.4, 0.1], [20, 0, 0]), ([0.4, 0.1, 0.1], [20, 0, 0])];
    assert_ne!(shares(best), Shares::default());
    // A right label without a score needs the map.
    let mut rows = rows_of_two_kinds(as_scored);
    rows[0].candidates.remove(0);
    assert_ne!(fit_calibration(&rows, JOIN, 3).shares, Shares::default());
}

/// The join trusts the model that ranks the rows better.
#[test]
fn the_join_fits_the_better_model() {
    let row = |i: u32, by_trees: bool| {
        let candidates = (0..20u32).map(|label| {
            let is_own = label == i % 20;
            let noise = (i.wrapping_mul(2_654_435_761) ^ (label * 40_503)) % 97;
            let noise = noise as f32 / 97.0;
            let signal = f32::from(u8::from(is_own));
            let (score_before, margin) = if by_trees {
                (signal, noise)
            } else {
                (noise, signal)
            };
            let (score_before, margin) = (score_before / 5.0, 2.0 * margin - 1.0);
            Candidate {
                score_before,
                margin,
                is_own,
            }
        });
        FitRow {
            candidates: candidates.collect(),
            weight: 1.0,
        }
    };
    let rows = |by_trees| (0..200).map(|i| row(i, by_trees)).collect::<Vec<_>>();
    let (before, _) = fit_join(&rows(true));
    let (join, gain) = fit_join(&rows(false));
    assert!(
        before.weight < join.weight && join.floor > 0.0,
        "{before:?} {join:?}"
    );
    // P@1 + P@3 + P@5 of 200 rows whose only label is ranked first.
    assert!(is_near(gain, 200.0 * 23.0 / 15.0, 1e-9));
    for by_trees in [false, true] {
        let gains = best_gains(&rows(by_trees));
        assert_eq!(gains.len(), 200);
        assert!(gains.iter().sum::<f64>() > 0.95 * gain, "{gains:?}");
    }
    let join = Join {
        floor: 0.01,
        weight: 0.5,
    };
    assert_eq!(fit_join(&[]), (join, 0.0));
    assert!(best_gains(&[]).is_empty());
}

/// With every join, the best candidates are contenders; equal scores are in the order of the row.
#[test]
fn contenders_are_the_best_by_any_join() {
    let random = |i: u64, n: u64| (mix(i) % n) as f32;
    let candidate = |i: u64| Candidate {
        score_before: random(4 * i, 20) / 20.0,
        margin: match random(4 * i + 1, 30) {
            0.0 => f32::NEG_INFINITY,
            margin => margin / 10.0 - 1.8,
        },
        is_own: random(4 * i + 2, 2) > 0.0,
    };
    let best = |row: &FitRow, join: Join| {
        let mut candidates = row.candidates.clone();
        let score = |each: &Candidate| join.score(each.score_before, each.margin);
        candidates.sort_by(|a, b| score(b).total_cmp(&score(a)));
        candidates.truncate(5);
        candidates
    };
    for start in 0..200 {
        let row = FitRow {
            candidates: (100 * start..100 * start + 100).map(candidate).collect(),
            weight: 2.0,
        };
        let few = contenders(&row);
        assert!(few.weight == 2.0 && few.candidates.len() < 70);
        for (weight, floor) in [(0.0, 0.0), (0.03, 0.1), (0.5, 0.01), (8.0, 0.001)] {
            let join = Join { floor, weight };
            assert_eq!(best(&few, join), best(&row, join));
        }
    }
}
