//! The examples of a fit in the form that trees are grown from. The first are learned, the rest
//! are held out for early stopping.

use super::columns::Columns;

/// The examples of a fit.
pub struct Examples<'a> {
    /// Their values.
    pub columns: &'a Columns,
    /// Their classes.
    pub labels: &'a [u32],
    /// Importance of each.
    pub importances: &'a [f32],
    /// Number of those learned.
    pub n_learned: usize,
    /// Number of classes there are.
    pub n_classes: usize,
}
