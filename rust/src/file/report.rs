//! Descriptions of a model or of the nodes of a tree, as named columns. Rust, `tree_` in Python
//! and `inspect` use the same columns.

use super::{Array, Element, Flat};

/// Named columns, in display order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report(Vec<Column>);

/// A column of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Values; a matrix row by row.
    pub values: Array,
    /// Shape of the values.
    pub shape: Shape,
}

/// Shape of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value for the model.
    Scalar,
    /// One value per node (or feature, or tree).
    Vector,
    /// This many values per node.
    Matrix(usize),
    /// One value per node, 0 for false and 1 for true.
    Flags,
}

impl Report {
    /// Creates a report without columns.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, name: &'static str, values: Array, shape: Shape) {
        self.0.push(Column {
            name,
            values,
            shape,
        });
    }

    /// Adds a column of one value per node.
    pub fn column<E: Element>(&mut self, name: &'static str, values: impl IntoIterator<Item = E>)
    where
        Array: From<Vec<E>>,
    {
        let values: Vec<E> = values.into_iter().collect();
        self.push(name, values.into(), Shape::Vector);
    }

    /// Adds a column of one boolean per node.
    pub fn flags(&mut self, name: &'static str, values: impl IntoIterator<Item = bool>) {
        let values: Vec<u8> = values.into_iter().map(u8::from).collect();
        self.push(name, values.into(), Shape::Flags);
    }

    /// Adds a column of `width` values per node.
    pub fn matrix(&mut self, name: &'static str, values: impl Into<Array>, width: usize) {
        self.push(name, values.into(), Shape::Matrix(width));
    }

    /// Adds a value of the model.
    pub fn scalar<E: Element>(&mut self, name: &'static str, value: E)
    where
        Array: From<Vec<E>>,
    {
        self.push(name, vec![value].into(), Shape::Scalar);
    }

    /// Returns the columns, in order.
    pub fn into_columns(self) -> Vec<Column> {
        self.0
    }

    /// Returns the values of a column; None if there is no such column of this type.
    pub fn get<E: Element>(&self, name: &str) -> Option<Vec<E>> {
        let column = self.0.iter().find(|column| column.name == name)?;
        E::from_array(column.values.clone())
            .ok()
            .map(Flat::into_vec)
    }
}
