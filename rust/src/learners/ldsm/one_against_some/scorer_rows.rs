//! Rows as the scorers see them.

use super::super::examples::Examples;
use super::lengths::inverse_length;
use crate::data::Ragged;

/// Rows of length 1 and the constant 1.
#[derive(Debug)]
pub struct ScorerRows<'a> {
    pub examples: &'a Examples,
    /// The values of each row, the constant left out.
    values: Ragged<f32>,
}

impl<'a> ScorerRows<'a> {
    pub fn new(examples: &'a Examples) -> Self {
        let n_values = examples.rows.n_values() - examples.len();
        let mut values = Ragged::with_capacity(examples.len(), n_values);
        let mut spread = vec![0.0; examples.width];
        for row in 0..examples.len() as u32 {
            let row = examples.row(row);
            let scale = inverse_length(row, &mut spread);
            let features = &row.1[..row.1.len() - 1];
            values.push(features.iter().map(|x| x * scale));
        }
        Self { examples, values }
    }

    /// Number of columns, the constant left out.
    pub fn n_features(&self) -> usize {
        self.examples.width - 1
    }

    /// Columns and values, the constant left out.
    #[inline]
    pub fn features(&self, row: u32) -> (&[u32], &[f32]) {
        let values = self.values.get(row as usize);
        let (columns, _) = self.examples.row(row);
        (&columns[..values.len()], values)
    }

    /// A row's product with itself.
    pub fn square(&self, row: u32) -> f64 {
        let values = self.values.get(row as usize);
        let has_features = values.iter().any(|&x| x != 0.0);
        1.0 + f64::from(u8::from(has_features))
    }
}
