//! The scaled rows, and the sample of labels.

use super::super::train::{is_sampled, sampling_step, MAX_STEP};
use super::*;

/// Returns row `i` of `rows`, with the constant last.
fn scaled(rows: &ScorerRows<'_>, i: u32) -> Vec<f64> {
    let mut row = vec![0.0; rows.examples.width];
    let (columns, values) = rows.features::<true>(i);
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
        let rows = ScorerRows::new(&examples, &SPARSE, power);
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
                // All rows have the same factor.
                if plain[column].abs() > 1e-3 {
                    let found = row[column] / plain[column] / idf[column];
                    prop_assert!(is_near(found, *factor.get_or_insert(found), 1e-3));
                }
            }
        }
        prop_assert!(n_filled == 0.0 || is_near(total / n_filled, 1.0, 1e-4));
    }

    #[test]
    fn unscaled_weights_give_the_same_margins(data in data(30), power in 0.0f64..2.0, weights in prop::collection::vec(-2.0f32..2.0, WIDTH)) {
        let examples = data.examples();
        let rows = ScorerRows::new(&examples, &SPARSE, power);
        let mut scorer = Scorer { bias: 0.3, weights: (0..).zip(weights).collect(), dense: Vec::new() };
        let before = full_weights(&scorer, examples.width);
        scorer.weights.iter_mut().for_each(|(column, w)| *w *= rows.scale(*column));
        let after = full_weights(&scorer, examples.width);
        for i in 0..examples.len() as u32 {
            let wanted = product(&before, &scaled(&rows, i));
            prop_assert!(is_near(product(&after, &full(&examples, i)), wanted, 1e-4));
        }
    }
}

#[test]
fn many_labels_are_sampled() {
    const N_LABELS: usize = 600;
    let step = sampling_step(N_LABELS, MAX_STEP);
    let n_sampled = (0..N_LABELS)
        .filter(|&label| is_sampled(label, step, 3))
        .count();
    assert!((200..400).contains(&n_sampled));
    assert_eq!(sampling_step(500, MAX_STEP), 1);
    assert!((0..500).all(|label| is_sampled(label, 1, 3)));
    assert_eq!(sampling_step(100_000, MAX_STEP), MAX_STEP);
}
