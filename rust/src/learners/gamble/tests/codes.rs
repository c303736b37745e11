//! Values as codes, and where they are stored.

use super::super::columns::Storage;
use super::*;

#[test]
fn a_cut_inside_of_a_group_is_at_its_nearer_end() {
    for (group, expected) in [
        // The middle of 1 and 10 is 5.5.
        ((2.0, 3.0), (1, 5.5)),
        ((2.0, 6.0), (1, 8.0)),
        ((5.0, 9.0), (0, 3.0)),
        ((6.0, 9.0), (0, 5.5)),
    ] {
        let coding = Coding {
            spans: vec![(0.0, 1.0), group, (10.0, 11.0)],
            categorical: false,
            missing: false,
        };
        assert_eq!(coding.cut(0, 2), expected, "{group:?}");
    }
}

#[test]
fn a_threshold_is_below_the_value_to_its_right() {
    let low = 1.0 + f32::EPSILON;
    let high = low + f32::EPSILON;
    // Their middle is rounded to the upper one.
    assert_eq!(f64::midpoint(f64::from(low), f64::from(high)) as f32, high);
    let coding = coding(&[low, high], Splits::Exact, false);
    assert_eq!(coding.cut(0, 1), (0, low));
}

#[test]
fn groups_have_about_equally_many_rows() {
    let n_rows = |coding: &Coding, values: &[f32]| {
        let mut n_rows = vec![0; coding.n_codes()];
        values
            .iter()
            .for_each(|&v| n_rows[coding.code(v) as usize] += 1);
        n_rows
    };
    let values: Vec<f32> = (1..=1000u16).map(f32::from).collect();
    let singles = coding(&values, Splits::Binned, false);
    // 1000 / 255 is 3.9: 4 come nearer than 3.
    assert_eq!(singles.spans[0], (1.0, 4.0));
    let sizes = n_rows(&singles, &values);
    assert!(
        sizes.len() == 255 && sizes.iter().all(|n| (3..=5).contains(n)),
        "{sizes:?}"
    );
    // A value of more than its share is alone.
    let heavy: Vec<f32> = values.iter().copied().chain([500.0; 300]).collect();
    let coding = coding(&heavy, Splits::Binned, false);
    assert_eq!(coding.spans[coding.code(500.0) as usize], (500.0, 500.0));
}

#[test]
fn every_storage_gives_the_codes_back() {
    let n = 300;
    // Mostly zero and of two values; of more; seldom not zero; full, of few values and of many.
    let value = |row: usize, column: usize| match column {
        0 => f32::from(u8::from(row.is_multiple_of(5))),
        1 => [1.0, 0.0, 0.0, -2.0, 0.0, 0.0, f32::NAN, 0.0][row % 8],
        2 => [0.0, 3.0, -3.0][usize::from(row == 17) + 2 * usize::from(row == 290)],
        3 => (row % 9) as f32 - 4.0,
        _ => (row * 7 % n) as f32 - 20.0,
    };
    for width in [1, 5] {
        let table = Table {
            values: (0..n * width)
                .map(|at| value(at / width, at % width))
                .collect(),
            width,
            labels: vec![0; n],
            weights: vec![1.0; n],
            n_classes: 1,
        };
        let columns = table.columns(&paper());
        assert_eq!(columns.are_binary, width == 1);
        assert_eq!(columns.rows_with_entry(0).is_some(), width == 1);
        let is_sparse = |at: &usize| matches!(columns.columns[*at].storage, Storage::Sparse { .. });
        assert!((0..width).filter(is_sparse).eq(0..width.min(3)));
        for (at, column) in columns.columns.iter().enumerate() {
            for row in 0..n {
                let expected = column.coding.code(value(row, at));
                assert_eq!(columns.code(at, row), expected, "row {row}, column {at}");
            }
        }
    }
}
