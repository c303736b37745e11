//! The weights of the rows, as logarithms: plain ones would underflow to 0, which no
//! later round could undo.

/// How far below the greatest a log weight counts. Plain weights stay above 0, so that no
/// leaf is without weight, and their squares too.
const DEEPEST: f64 = 100.0;

/// Weights of the rows, up to a common factor.
#[derive(Debug, Clone)]
pub struct Weights {
    logs: Vec<f64>,
    highest: f64,
    /// The weights themselves, of which the greatest is 1. As of the last
    /// [`refresh`](Self::refresh).
    pub plain: Vec<f64>,
}

impl Weights {
    /// Starts from importances above 0.
    pub fn new(importances: impl Iterator<Item = f32>) -> Self {
        let logs: Vec<f64> = importances.map(|weight| f64::from(weight).ln()).collect();
        let mut weights = Self {
            plain: vec![0.0; logs.len()],
            logs,
            highest: 0.0,
        };
        weights.refresh();
        weights
    }

    /// Multiplies the weight of row `row` by e^`by`.
    #[inline]
    pub fn scale(&mut self, row: usize, by: f64) {
        self.logs[row] += by;
    }

    /// Makes the plain weights those of the logarithms.
    pub fn refresh(&mut self) {
        let highest = |a: f64, b: &f64| a.max(*b);
        self.highest = self.logs.iter().fold(f64::NEG_INFINITY, highest);
        for (plain, log) in self.plain.iter_mut().zip(&self.logs) {
            *plain = (log - self.highest).max(-DEEPEST).exp();
        }
    }

    /// By how much the log weight of row `row` is below the greatest.
    #[inline]
    pub fn below(&self, row: usize) -> f64 {
        self.highest - self.logs[row]
    }

    /// The logarithms.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }
}
