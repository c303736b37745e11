//! The examples of a fit.

use super::columns::Columns;
use crate::data::Rows;

/// Some rows of X with their labels and importances.
#[derive(Debug, Clone, Copy)]
pub struct LabelledRows<'a> {
    pub rows: Rows<'a>,
    /// Which of `rows`.
    pub which: &'a [u32],
    /// The label of each of these.
    pub labels: &'a [u32],
    /// The importance of each of these.
    pub importances: &'a [f32],
}

/// The examples of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    pub learned: LabelledRows<'a>,
    /// The codes of the rows learned, in their order; rows that follow are not looked at.
    pub columns: &'a Columns,
    /// The rows whose error decides when to stop.
    pub validation: Option<LabelledRows<'a>>,
    pub n_classes: usize,
}
