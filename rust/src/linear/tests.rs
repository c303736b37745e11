//! Tests of storage and steps of regressors, and of forged files.

use super::*;
use crate::data::{Indices, Preparation, RowBuffer, Rows, Scaling, Values};
use crate::file::{Bundle, Persist};

/// Prepares one row of `width` columns.
fn example(
    columns: &[i32],
    values: &[f32],
    width: usize,
    n_bits: Option<u32>,
) -> (PathExample, Block) {
    let starts = [0, columns.len() as i32];
    let (starts, columns) = (Indices::I32(&starts), Indices::I32(columns));
    let rows = Rows::csr(starts, columns, Values::F32(values), width, false).unwrap();
    let mut preparation = Preparation::new(Scaling::None, n_bits, &rows, &[]).unwrap();
    let (mut example, mut block) = (PathExample::default(), Block::default());
    example.read(&mut preparation, &rows, 0, false);
    block.fill(&preparation, &rows, 0..1, padded(preparation.width()));
    (example, block)
}

#[test]
fn products_do_not_depend_on_storage() {
    // Two hashed columns, so that features collide; a dense and a sparse row.
    for (width, n_bits) in [(40, Some(1)), (40, None), (4000, None)] {
        let (mut example, block) = example(&[0, 7, 9], &[0.5, 2.0, -1.0], width, n_bits);
        let mut regressors = Regressors::new(Optimizer::Pn, Loss::Squared, block.width());
        regressors.push();
        regressors.prepare(&mut example, 1.0);
        let RowBuffer { columns, values } = example.row().clone();
        let weight = |column: u32| column as f32 + 1.0;
        let entries = columns.iter().zip(&values);
        let expected: f32 = entries.map(|(&column, &x)| weight(column) * x).sum();
        let full: Vec<f32> = (0..regressors.width() as u32).map(weight).collect();
        let mut table = Table::default();
        for &column in &columns {
            *table.entry(column) = weight(column);
        }
        assert_eq!(block.dot_row(0, &full), expected);
        assert_eq!(block.dot_slots(0, table.slots()), expected);
        assert_eq!(example.dot(&Weights::Row(full[..].into())), expected);
        assert_eq!(example.dot(&Weights::Table(table)), expected);
        regressors.learn(0, &example, 1.0, 1e-3, 1.0, |_| None);
        let step = Loss::Squared.step(1.0, 0.0, 1e-3, 1.0);
        let mut stepped = vec![0.0; regressors.width()];
        for (&column, &d) in columns.iter().zip(&example.direction) {
            stepped[column as usize] += step * d;
        }
        let difference =
            regressors.score(0, &example) - example.dot(&Weights::Row(stepped[..].into()));
        assert!(difference.abs() < 1e-7);
    }
}

#[test]
fn a_table_becomes_a_row_that_is_not_larger() {
    let mut weights = Weights::<f32>::default();
    let columns: Vec<u32> = (0..10).collect();
    weights.prepare_for(columns.len(), 64);
    weights.change(&columns, |entry, w| *w = entry as f32);
    assert!(matches!(&weights, Weights::Table(table) if table.len() == 10));
    weights.prepare_for(6, 64);
    let Weights::Row(row) = &weights else {
        panic!("{weights:?}")
    };
    let expected: Vec<f32> = (0..64)
        .map(|w| if w < 10 { w as f32 } else { 0.0 })
        .collect();
    assert_eq!(row[..], expected);
}

/// Returns the scores of one regressor that learns examples `(x, y, importance)` of two columns.
fn learned(optimizer: Optimizer, loss: Loss, examples: &[([f32; 2], f32, f32)]) -> Vec<Scores> {
    let mut regressors = Regressors::new(optimizer, loss, 1);
    regressors.push();
    let learn = |&(x, y, importance): &([f32; 2], f32, f32)| {
        let mut example = PathExample::default();
        for (column, x) in (0..).zip(x).filter(|&(_, x)| x != 0.0) {
            example.row.columns.push(column);
            example.row.values.push(x);
        }
        regressors.prepare(&mut example, importance);
        regressors.learn(0, &example, y, 0.1 * importance, importance, |_| None)
    };
    examples.iter().map(learn).collect()
}

#[test]
fn adaptive_steps_follow_the_formulas() {
    // The hinge loss has slope 1 here, so the step is 0.1. Sizes are s = 2, then 4; t = 1, 2 and
    // N = 1, 2, so M = 1.
    let scores = learned(
        Optimizer::Nag,
        Loss::Hinge,
        &[([2.0, 0.0], 1.0, 1.0), ([4.0, 0.0], 1.0, 1.0)],
    );
    let w = 0.1 * 2.0 / (2.0 * 2.0f32);
    assert!((scores[0].raw - 2.0 * w).abs() < 1e-6, "{scores:?}");
    assert!((scores[1].before - 4.0 * w).abs() < 1e-6, "{scores:?}");
    let (rescaled, root) = (w * 2.0 / 4.0, (4.0 + 16.0f32).sqrt());
    assert!((scores[1].raw - 4.0 * (rescaled + 0.1 * 4.0 / (4.0 * root))).abs() < 1e-6);
    // The score is clamped to the labels so far, the raw one is not.
    let scores = learned(
        Optimizer::Nag,
        Loss::Hinge,
        &[
            ([1.0, 0.0], 1.0, 100.0),
            ([0.0, 1.0], 1.0, 100.0),
            ([1.0, 1.0], 1.0, 1.0),
        ],
    );
    let Scores { before, after, raw } = scores[2];
    assert!((before - 2.0).abs() < 1e-6 && raw == before && after == 1.0);
}

#[test]
fn regressors_of_another_width_are_refused() {
    for optimizer in [Optimizer::Pn, Optimizer::Nag] {
        let of_width = |width| {
            let mut regressors = Regressors::new(optimizer, Loss::Hinge, width);
            regressors.push();
            regressors
        };
        let stored = |learned: bool| {
            let mut regressors = of_width(160);
            let mut example = PathExample::default();
            example.row = RowBuffer {
                columns: vec![3, 159],
                values: vec![1.0, 1.0],
            };
            regressors.prepare(&mut example, 1.0);
            if learned {
                regressors.learn(0, &example, 1.0, 1.0, 1.0, |_| None);
            }
            let mut bundle = Bundle::new("regressors");
            regressors.put(&mut bundle);
            bundle
        };
        assert!(of_width(160).fill(&mut stored(true)).is_ok());
        assert!(
            of_width(16).fill(&mut stored(true)).is_err(),
            "{optimizer:?}"
        );
        let is_pn = optimizer == Optimizer::Pn;
        assert_eq!(of_width(16).fill(&mut stored(false)).is_err(), is_pn);
    }
    let mut bundle = Bundle::new("regressors");
    let mut nag = Regressors::new(Optimizer::Nag, Loss::Hinge, 16);
    nag.put(&mut bundle);
    bundle.take::<f32>("span").unwrap();
    bundle.put("span", vec![1.0f32, -1.0]);
    assert!(nag.fill(&mut bundle).is_err());
}
