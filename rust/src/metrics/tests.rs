//! Cases computed by hand, and a comparison of the measures with a slow and obvious version.

use std::collections::HashMap;

use proptest::prelude::*;

use super::ranking::Ranked;
use super::*;
use crate::control::Control;
use crate::data::{Indices, LabelSets, Values};
use crate::error::Result;

const K: usize = 8;

/// Label sets in CSR form.
struct Sets {
    starts: Vec<i32>,
    labels: Vec<i64>,
}

impl Sets {
    fn new(rows: &[Vec<u32>]) -> Self {
        let mut sets = Self {
            starts: vec![0],
            labels: vec![],
        };
        for row in rows {
            sets.labels.extend(row.iter().map(|&l| i64::from(l)));
            sets.starts.push(sets.labels.len() as i32);
        }
        sets
    }

    fn view(&self) -> LabelSets<'_> {
        LabelSets::new(Indices::I32(&self.starts), Indices::I64(&self.labels), K).unwrap()
    }
}

fn measures(
    truth: &[Vec<u32>],
    ranking: &Ranking<'_>,
    cuts: &[usize],
    propensities: Option<&[f64]>,
    skip_empty: bool,
) -> Result<Named> {
    let weights = propensities.map(|p| Weights::new(p, None)).transpose()?;
    let mut scores = Scores::new(cuts, weights, skip_empty)?;
    scores.add(&Sets::new(truth).view(), ranking, &Control::new(0))?;
    named(&scores)
}

type Named = HashMap<&'static str, Vec<f64>>;

fn named(scores: &Scores) -> Result<Named> {
    Ok(scores.measures()?.into_iter().collect())
}

fn labels(labels: &[i32], width: usize) -> Ranking<'_> {
    Ranking::labels(Indices::I32(labels), labels.len() / width, width, Some(K)).unwrap()
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
}

#[test]
fn plain_measures_by_hand() {
    let truth = [vec![0, 1], vec![2], vec![]];
    let best = [0, 2, 1, 3, 2, -1, 0, 1, 2];
    let (two, three) = (1.0 / 3f64.log2(), 0.5);
    let found = measures(&truth, &labels(&best, 3), &[1, 3], None, false).unwrap();
    assert!(close(&found["precision"], &[1.0 / 3.0, 1.0 / 3.0]));
    assert!(close(&found["recall"], &[0.5 / 3.0, 2.0 / 3.0]));
    let ndcg = ((1.0 + three) / (1.0 + two) + two) / 3.0;
    assert!(close(&found["ndcg"], &[1.0 / 3.0, ndcg]));
    assert_eq!(found.len(), 3);
    // Two of the three rows remain, so every mean is 1.5 times as large.
    let found = measures(&truth, &labels(&best, 3), &[3], None, true).unwrap();
    assert!(close(&found["precision"], &[0.5]));
    assert!(close(&found["ndcg"], &[ndcg * 1.5]));
    assert!(close(&found["recall"], &[1.0]));
}

#[test]
fn propensity_scored_measures_by_hand() {
    let truth = [vec![0, 1], vec![2]];
    let best = [1, 2, 2, -1];
    let propensities = [0.25, 0.5, 1.0];
    let two = 1.0 / 3f64.log2();
    let found = measures(
        &truth,
        &labels(&best, 2),
        &[1, 2],
        Some(&propensities),
        false,
    )
    .unwrap();
    // Row 0 gains 2 of 4 + 2, row 1 gains 1 of 1.
    assert!(close(&found["psp"], &[3.0 / 5.0, 3.0 / 7.0]));
    let most = (4.0 + 2.0 * two) / (1.0 + two) + 1.0;
    let won = 2.0 / (1.0 + two) + 1.0;
    assert!(close(&found["psndcg"], &[3.0 / 5.0, won / most]));
}

#[test]
fn scores_are_ranked_and_ties_go_to_the_smaller_label() {
    let values = [0.5, 2.0, f64::NEG_INFINITY, 2.0, f64::INFINITY];
    let dense = Ranking::dense(Values::F64(&values), 1, 5).unwrap();
    let sparse = Ranking::sparse(
        Indices::I32(&[0, 4]),
        Indices::I64(&[0, 1, 3, 4]),
        Values::F32(&[0.5, 2.0, 2.0, f32::INFINITY]),
        5,
    )
    .unwrap();
    let mut ranked = Ranked::default();
    for ranking in [dense, sparse] {
        for (k, expected) in [(0, &[][..]), (2, &[4, 1]), (9, &[4, 1, 3, 0])] {
            ranking.read(0, k, &mut ranked).unwrap();
            assert_eq!(ranked.labels, expected);
        }
    }
}

#[test]
fn propensities_by_hand() {
    // C = (ln 100 - 1) 2.5^0.55
    let c = (100f64.ln() - 1.0) * 2.5f64.powf(0.55);
    let expected = [
        1.0 / (1.0 + c / 1.5f64.powf(0.55)),
        1.0 / (1.0 + c / 11.5f64.powf(0.55)),
    ];
    assert!(close(
        &propensities(&[0, 10], 100, 0.55, 1.5).unwrap(),
        &expected
    ));
    // C would be negative.
    assert_eq!(propensities(&[0, 2], 2, 0.55, 1.5).unwrap(), [1.0, 1.0]);
    // Powers of b + 1 and of N_l + b would be infinite, but their quotient is 1.
    let huge = propensities(&[0, 2], 100, 1e308, 1e308).unwrap();
    assert_eq!(huge, [1.0 / 100f64.ln(); 2]);
    let message = propensities(&[0], 100, 1e308, 1.0).unwrap_err().to_string();
    assert!(message.contains("no propensity is 0"), "{message}");
}

#[test]
fn further_labels_have_the_propensity_of_unseen_ones() {
    let sets = Sets::new(&[vec![0, 5]]);
    let add = |unseen| {
        let weights = Weights::new(&[0.5], unseen).unwrap();
        let mut scores = Scores::new(&[2], Some(weights), false).unwrap();
        scores.add(&sets.view(), &labels(&[0, 1], 2), &Control::new(0))?;
        named(&scores)
    };
    assert!(close(&add(Some(0.25)).unwrap()["psp"], &[2.0 / 6.0]));
    let message = add(None).unwrap_err().to_string();
    assert_eq!(
        message,
        "row 0 of y_true: label 5 has no propensity, there are 1"
    );
}

#[test]
fn refused_batches_change_nothing() {
    let sets = Sets::new(&[vec![0], vec![1]]);
    let mut scores = Scores::new(&[1, 2], None, false).unwrap();
    let control = Control::new(0);
    scores
        .add(&sets.view(), &labels(&[0, 1, 2, 3], 2), &control)
        .unwrap();
    let before = scores.measures().unwrap();
    let nan = [1.0, 0.0, 0.0, f32::NAN];
    let many: Vec<i64> = (0..80).map(|l| if l == 79 { 41 } else { l }).collect();
    let cases = [
        (labels(&[0, 1], 2), "y_true has 2 rows, y_pred 1"),
        (labels(&[0, 1], 1), "y_pred has 1 columns, k is 2"),
        (labels(&[0, 1, 3, 3], 2), "row 1 of y_pred: label 3"),
        (
            Ranking::dense(Values::F32(&nan), 2, 2).unwrap(),
            "row 1, column 1 of y_pred: the score is NaN",
        ),
    ];
    for (ranking, expected) in cases {
        let message = scores
            .add(&sets.view(), &ranking, &control)
            .unwrap_err()
            .to_string();
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
    }
    assert_eq!(scores.measures().unwrap(), before);

    let long = Ranking::labels(Indices::I64(&many), 2, 40, None).unwrap();
    let mut ranked = Ranked::default();
    long.read(0, 40, &mut ranked).unwrap();
    let message = long.read(1, 40, &mut ranked).unwrap_err().to_string();
    assert!(message.contains("row 1 of y_pred: label 41"));
    long.read(1, 39, &mut ranked).unwrap();

    let message = Ranking::labels(Indices::I32(&[0, 1, 2, 8]), 2, 2, Some(K))
        .unwrap_err()
        .to_string();
    assert!(message.contains("row 1, column 1 of y_pred: label 8 is outside 0..8"));
    for cuts in [&[][..], &[0], &[2, 1], &[1, 1]] {
        let message = Scores::new(cuts, None, false).unwrap_err().to_string();
        assert!(
            message.contains("k must be increasing integers"),
            "{message}"
        );
    }
    for (a, b) in [
        (f64::NAN, 1.5),
        (-1.0, 1.5),
        (0.5, 0.0),
        (0.5, f64::INFINITY),
    ] {
        assert!(propensities(&[1], 9, a, b).is_err());
    }
    assert!(propensities(&[1], 0, 0.5, 1.5).is_err());
    assert!(propensities(&[10], 9, 0.5, 1.5).is_err());
    for p in [0.0, -0.5, 1.5, f64::NAN, 1e-320] {
        assert!(Weights::new(&[0.5, p], None).is_err());
        assert!(Weights::new(&[0.5], Some(p)).is_err());
    }
}

#[test]
fn no_rows_to_average_is_an_error() {
    let none = measures(&[], &labels(&[], 2), &[1], None, false);
    assert!(none.unwrap_err().to_string().contains("no rows"));
    let best = [0, 1];
    let skipped = measures(&[vec![]], &labels(&best, 2), &[1], None, true);
    assert!(skipped
        .unwrap_err()
        .to_string()
        .contains("no row with a label"));
    let zero = measures(&[vec![]], &labels(&best, 2), &[1], Some(&[0.5]), false).unwrap();
    assert_eq!(zero["precision"], [0.0]);
    assert_eq!(zero["psp"], [0.0]);
}

/// Returns all measures at one cut, computed directly from their definitions.
fn slow(
    truth: &[Vec<u32>],
    best: &[Vec<i64>],
    k: usize,
    propensities: &[f64],
    skip_empty: bool,
) -> [f64; 5] {
    let discount = |r: usize| 1.0 / ((r + 2) as f64).log2();
    let (mut n, mut sums) = (0.0, [0.0; 7]);
    for (set, best) in truth.iter().zip(best) {
        if set.is_empty() && skip_empty {
            continue;
        }
        n += 1.0;
        if set.is_empty() {
            continue;
        }
        let mut ideal = set.clone();
        ideal.sort_by(|&a, &b| propensities[a as usize].total_cmp(&propensities[b as usize]));
        let full: f64 = (0..k.min(set.len())).map(discount).sum();
        for r in 0..k {
            if let Some(&l) = best
                .get(r)
                .filter(|&&l| l >= 0 && set.contains(&(l as u32)))
            {
                let w = 1.0 / propensities[l as usize];
                sums[0] += 1.0 / k as f64;
                sums[1] += discount(r) / full;
                sums[2] += 1.0 / set.len() as f64;
                sums[3] += w;
                sums[5] += w * discount(r) / full;
            }
            if let Some(&l) = ideal.get(r) {
                let w = 1.0 / propensities[l as usize];
                sums[4] += w;
                sums[6] += w * discount(r) / full;
            }
        }
    }
    let share = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    [
        sums[0] / n,
        sums[1] / n,
        sums[2] / n,
        share(sums[3], sums[4]),
        share(sums[5], sums[6]),
    ]
}

fn sets() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::btree_set(0..K as u32, 0..5).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #[test]
    fn agrees_with_the_slow_version(
        rows in prop::collection::vec((sets(), prop::collection::vec(-3i8..4, K)), 1..12),
        propensities in prop::collection::vec(0.01f64..1.0, K),
        skip in any::<bool>(),
        cut_at in 0usize..12,
    ) {
        let truth: Vec<_> = rows.iter().map(|row| row.0.clone()).collect();
        // The lowest score means "not predicted".
        let ranked: Vec<Vec<i64>> = rows.iter().map(|(_, scores)| {
            let mut labels: Vec<i64> = (0..K as i64).filter(|&l| scores[l as usize] > -3).collect();
            labels.sort_by_key(|&l| (-scores[l as usize], l));
            labels
        }).collect();
        let scores = |row: &[i8]| -> Vec<f32> {
            row.iter().map(|&s| if s == -3 { f32::NEG_INFINITY } else { f32::from(s) }).collect()
        };
        let dense: Vec<f32> = rows.iter().flat_map(|row| scores(&row.1)).collect();
        let mut starts = vec![0];
        let (mut columns, mut values) = (vec![], vec![]);
        for (_, row) in &rows {
            for (l, &s) in row.iter().enumerate().filter(|(_, &s)| s > -3) {
                columns.push(l as i32);
                values.push(f64::from(s));
            }
            starts.push(columns.len() as i64);
        }
        let mut best = vec![-1i64; rows.len() * K];
        for (row, labels) in best.chunks_mut(K).zip(&ranked) {
            row[..labels.len()].copy_from_slice(labels);
        }
        let forms = [
            Ranking::labels(Indices::I64(&best), rows.len(), K, Some(K)).unwrap(),
            Ranking::dense(Values::F32(&dense), rows.len(), K).unwrap(),
            Ranking::sparse(
                Indices::I64(&starts), Indices::I32(&columns), Values::F64(&values), K,
            ).unwrap(),
        ];
        let cuts = [1, 3, K];
        if skip && truth.iter().all(Vec::is_empty) {
            prop_assert!(measures(&truth, &forms[0], &cuts, None, skip).is_err());
            return Ok(());
        }
        for form in &forms {
            let found = measures(&truth, form, &cuts, Some(&propensities), skip).unwrap();
            for (at, &k) in cuts.iter().enumerate() {
                let expected = slow(&truth, &ranked, k, &propensities, skip);
                let got = [
                    found["precision"][at],
                    found["ndcg"][at],
                    found["recall"][at],
                    found["psp"][at],
                    found["psndcg"][at],
                ];
                prop_assert!(close(&got, &expected), "{got:?} {expected:?}");
            }
        }
        // Batches add up.
        let cut = cut_at.min(rows.len());
        let weights = Weights::new(&propensities, None).unwrap();
        let mut scores = Scores::new(&cuts, Some(weights), skip).unwrap();
        for (truth, best) in [
            (&truth[..cut], &best[..cut * K]),
            (&truth[cut..], &best[cut * K..]),
        ] {
            let ranking = Ranking::labels(Indices::I64(best), truth.len(), K, None).unwrap();
            scores.add(&Sets::new(truth).view(), &ranking, &Control::new(0)).unwrap();
        }
        let whole = measures(&truth, &forms[0], &cuts, Some(&propensities), skip).unwrap();
        prop_assert!(close(&named(&scores).unwrap()["psndcg"], &whole["psndcg"]));
        prop_assert!(close(&named(&scores).unwrap()["recall"], &whole["recall"]));
    }
}
