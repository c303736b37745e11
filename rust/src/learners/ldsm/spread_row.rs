//! A row over all columns, for sparse lists of weights to be multiplied with.

/// The values of one row after the other by column.
#[derive(Debug, Default)]
pub struct SpreadRow {
    by_column: Vec<f32>,
    columns: Vec<u32>,
}

impl SpreadRow {
    /// Makes a row of columns below `width` the current one. Values of equal columns, which were
    /// hashed to one, are added.
    pub fn replace(&mut self, (columns, values): (&[u32], &[f32]), width: usize) {
        for column in self.columns.drain(..) {
            self.by_column[column as usize] = 0.0;
        }
        self.by_column.resize(width, 0.0);
        self.columns.extend(columns);
        for (&column, x) in columns.iter().zip(values) {
            self.by_column[column as usize] += x;
        }
    }

    /// In the order of the row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Zero where the row has nothing.
    pub fn by_column(&self) -> &[f32] {
        &self.by_column
    }
}
