//! The join that is fitted, and scores that are probabilities.

use super::super::join::{fit, Candidate, FitRow, FittedJoin, Join};
use super::*;
use crate::learners::mix;

/// Joined scores are the trees' scores then.
const JOIN: Join = Join {
    floor: 0.0,
    weight: 0.0,
};

/// Rows of `n` candidates, there as often as `map` says.
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
                score_before: (i + 1) as f32 / 8.0,
                margin: 0.0,
                is_own: (i < n_own) == falls,
            };
            let row = FitRow {
                candidates: (0..6).map(candidate).collect(),
                weight: 1.0,
            };
            let found = Calibration::fit(&[row], JOIN, 40);
            assert!(found.is_sound(), "{found:?}");
            let (low, high) = (found.probability(0.1), found.probability(0.9));
            assert!(0.0 < low && low < high && high < 1.0, "{found:?}");
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
            let (score_before, margin) = if by_trees {
                (told, noise)
            } else {
                (noise, told)
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
    let before = fit(&rows(true)).join;
    let FittedJoin { join, gain } = fit(&rows(false));
    assert!(
        before.weight < join.weight && join.floor > 0.0,
        "{before:?} {join:?}"
    );
    // P@1 + P@3 + P@5 of 200 rows whose only label is the first.
    assert!(is_near(gain, 200.0 * 23.0 / 15.0, 1e-9));
    let join = Join {
        floor: 0.01,
        weight: 0.5,
    };
    assert_eq!(fit(&[]), FittedJoin { join, gain: 0.0 });
}
