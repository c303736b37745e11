//! Rows as scorers see them, and which scales of features are taken.

use super::super::one_against_some::scorer_rows::ScorerRows;
use super::super::one_against_some::svm::Scorer;
use super::super::one_against_some::training::{best_of, LabelSample, MOST_STEP};
use super::one_against_some::{full, full_weights, product, sparse};
use super::prediction::all;
use super::*;

/// Row `i` as it is in `rows`, the constant last.
fn scaled(rows: &ScorerRows<'_>, i: u32) -> Vec<f64> {
    let mut row = vec![0.0; rows.examples.width];
    let (columns, values) = rows.features(i);
    for (&column, &x) in columns.iter().zip(values) {
        row[column as usize] += f64::from(x);
    }
    row[rows.examples.width - 1] = 1.0;
    row
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn features_are_scaled_by_their_rarity(data in data(40), power in 0.0f64..2.0) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, power);
        let n_rows = examples.len() as u32;
        let idf = |column: usize| {
            let n = (0..n_rows).filter(|&i| examples.row(i).0.contains(&(column as u32))).count();
            ((f64::from(n_rows) + 1.0) / (n as f64 + 0.5)).ln().powf(power)
        };
        let idf: Vec<f64> = (0..examples.width).map(idf).collect();
        let (mut total, mut n_filled, mut factor) = (0.0, 0.0, None);
        for i in 0..n_rows {
            let (row, plain) = (scaled(&rows, i), full(&examples, i));
            let square = product(&row, &row);
            prop_assert!(is_near(rows.square(i), square, 1e-4));
            total += square - 1.0;
            n_filled += f64::from(u8::from(square > 1.0));
            for column in 0..rows.n_features() {
                // The same factor for all.
                if plain[column].abs() > 1e-3 {
                    let found = row[column] / plain[column] / idf[column];
                    prop_assert!(is_near(found, *factor.get_or_insert(found), 1e-3));
                }
            }
        }
        prop_assert!(n_filled == 0.0 || is_near(total / n_filled, 1.0, 1e-4));
    }

    /// A scorer of scaled rows becomes one of rows of length 1 with the same margins.
    #[test]
    fn weights_take_the_scales_in(data in data(30), power in 0.0f64..2.0, weights in prop::collection::vec(-2.0f32..2.0, WIDTH)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, power);
        let mut scorer = Scorer { bias: 0.3, weights: (0..).zip(weights).collect() };
        let before = full_weights(&scorer, examples.width);
        rows.unscale(&mut scorer);
        let after = full_weights(&scorer, examples.width);
        for i in 0..examples.len() as u32 {
            let wanted = product(&before, &scaled(&rows, i));
            prop_assert!(is_near(product(&after, &full(&examples, i)), wanted, 1e-4));
        }
    }
}

/// What is chosen is what one gets by asking for it.
#[test]
fn the_power_is_chosen() {
    let data = fixed(120, false);
    let chosen = |ldsm: &Ldsm| ldsm.scorers.as_ref().unwrap().idf_power();
    let auto = data.fit(&sparse());
    let power = chosen(&auto);
    assert!([0.0, 1.0].contains(&power));
    for idf_power in [0.0, 0.5, 1.0] {
        let fixed = data.fit(&Params {
            idf_power: Some(idf_power),
            ..sparse()
        });
        assert_eq!(chosen(&fixed), idf_power);
        assert_eq!(all(&fixed, &data) == all(&auto, &data), idf_power == power);
    }
}

/// As with the powers.
#[test]
fn the_cost_is_chosen() {
    let data = fixed(120, false);
    let chosen = |ldsm: &Ldsm| ldsm.scorers.as_ref().unwrap().cost();
    let with_cost = |cost| data.fit(&Params { cost, ..sparse() });
    let auto = with_cost(None);
    let best = chosen(&auto);
    assert!([1.0, 0.25].contains(&best));
    for cost in [1.0, 0.25, 0.01] {
        let fixed = with_cost(Some(cost));
        assert_eq!(chosen(&fixed), cost);
        assert_eq!(all(&fixed, &data) == all(&auto, &data), cost == best);
    }
}

/// A later candidate must be clearly better.
#[test]
fn the_first_candidate_stays_unless_another_is_clearly_better() {
    let best = |gains: [f64; 3]| best_of(0..3, 1.1, |i: usize| Ok((i, gains[i]))).unwrap();
    assert_eq!(best([1.0, 1.09, 2.0]), 0);
    assert_eq!(best([1.0, 1.11, 1.2]), 1);
    assert_eq!(best([1.0, 1.11, 1.3]), 2);
    assert_eq!(best([0.0, 0.0, 0.0]), 0);
}

/// With many labels it is chosen by a part of them, and the others' scorers are added.
#[test]
fn the_power_is_chosen_by_a_sample() {
    const N_LABELS: u32 = 600;
    let sample = LabelSample::new(&sparse(), N_LABELS as usize, MOST_STEP);
    let n_sampled = (0..N_LABELS as usize)
        .filter(|&l| sample.contains(l))
        .count();
    assert!((200..400).contains(&n_sampled));
    let few = LabelSample::new(&sparse(), 500, MOST_STEP);
    assert!((0..500).all(|label| few.contains(label)));

    let mut data = Data::empty(false);
    for i in 0..2 * N_LABELS {
        let label = i * 7 % N_LABELS;
        data.push(&[(label % 5, 1.0), (5 + i % 3, 0.5)], &[label], 1.0);
    }
    let scorers = |idf_power| {
        let params = Params {
            idf_power,
            max_nodes: 30,
            ..sparse()
        };
        let mut ldsm = Ldsm::create(params, N_LABELS as usize, true).unwrap();
        let batch = data.batch_with(N_LABELS as usize);
        ldsm.fit(&batch, with(1, false), &control()).unwrap();
        ldsm.scorers.unwrap()
    };
    let auto = scorers(None);
    let fixed = scorers(Some(auto.idf_power()));
    assert!(auto.biases().iter().all(|bias| bias.is_finite()));
    assert_eq!(format!("{auto:?}"), format!("{fixed:?}"));
}
