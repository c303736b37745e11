//! Rows as scorers see them, and which scales of features are taken.

use super::super::train::{LabelSample, MOST_STEP};
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
        rows.unscale(&mut scorer.weights);
        let after = full_weights(&scorer, examples.width);
        for i in 0..examples.len() as u32 {
            let wanted = product(&before, &scaled(&rows, i));
            prop_assert!(is_near(product(&after, &full(&examples, i)), wanted, 1e-4));
        }
    }
}

/// With many labels a part of them is compared.
#[test]
fn labels_are_sampled() {
    const N_LABELS: u32 = 600;
    let sample = LabelSample::new(3, N_LABELS as usize, MOST_STEP);
    let n_sampled = (0..N_LABELS as usize)
        .filter(|&l| sample.contains(l))
        .count();
    assert!((200..400).contains(&n_sampled));
    let few = LabelSample::new(3, 500, MOST_STEP);
    assert!((0..500).all(|label| few.contains(label)));
}
