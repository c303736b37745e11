//! The scaled rows, and the sample of labels.

use super::super::choose::{is_sampled, lead, sampling_step};
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
fn labels_are_sampled_if_many_rows_have_many() {
    for (n_labels, n_values, n_rows, step) in [
        (100_000, 100_000, 1000, 1),
        (100_000, 100_000, 20_000, 2),
        (100_000, 1_000_000, 10_000, 8),
        (100_000, 100_000_000, 10_000, 8),
        (1100, 100_000_000, 10_000, 4),
        (500, 100_000_000, 10_000, 1),
    ] {
        assert_eq!(sampling_step(n_labels, n_values, n_rows), step);
        let n_sampled = (0..n_labels).filter(|&label| is_sampled(label, step, 3));
        let share = n_sampled.count() as f64 / n_labels as f64;
        assert!(is_near(share, 1.0 / step as f64, 0.1), "{share} {step}");
    }
}

#[test]
fn a_lead_is_more_than_noise_and_bias() {
    let before = [0.5, 1.0, 0.0, 1.5, 0.0, 0.0];
    assert_eq!(lead(&before, &before, 0.0), 0.0);
    // One row alone may be noise.
    assert_eq!(lead(&before, &[0.5, 1.0, 1.0, 1.5, 0.0, 0.0], 0.0), 0.0);
    let four = [1.5, 2.0, 1.0, 2.5, 0.0, 0.0];
    assert!(is_near(lead(&before, &four, 0.0), 4.0 - 2.0, 1e-12));
    assert!(is_near(lead(&before, &four, 0.5), 4.0 - 2.0 - 1.5, 1e-12));
    // Losses count as much as gains.
    assert!(lead(&before, &[1.5, 2.0, 1.0, 0.5, 0.0, 0.0], 0.0) <= 0.0);
    assert!(lead(&four, &before, 0.0) < 0.0);
}
