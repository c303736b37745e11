//! What there is to know of a model or one of its trees, as named columns: the same for Rust,
//! for `tree_` in Python, for `inspect` and for files.

use super::{Array, Element, Flat};

/// Named columns, in the order in which they are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report(Vec<Column>);

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its values, row by row where it is a matrix.
    pub values: Array,
    /// How the values are to be read.
    pub shape: Shape,
}

/// How the values of a column are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// There is one, of the whole.
    Scalar,
    /// One per node (or feature, or tree).
    Vector,
    /// As many per node.
    Matrix(usize),
    /// One per node, of which 0 is false and 1 is true.
    Flags,
}

impl Report {
    /// Without columns.
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

    /// Adds a column of yes or no per node.
    pub fn flags(&mut self, name: &'static str, values: impl IntoIterator<Item = bool>) {
        let values: Vec<u8> = values.into_iter().map(u8::from).collect();
        self.push(name, values.into(), Shape::Flags);
    }

    /// Adds a column of `width` values per node.
    pub fn matrix(&mut self, name: &'static str, values: impl Into<Array>, width: usize) {
        self.push(name, values.into(), Shape::Matrix(width));
    }

    /// Adds a value of the whole.
    pub fn scalar<E: Element>(&mut self, name: &'static str, value: E)
    where
        Array: From<Vec<E>>,
    {
        self.push(name, vec![value].into(), Shape::Scalar);
    }

    /// The columns, in order, to be taken.
    pub fn into_columns(self) -> Vec<Column> {
        self.0
    }

    /// The values of a column; none if there is no such column of this type.
    pub fn get<E: Element>(&self, name: &str) -> Option<Vec<E>> {
        let column = self.0.iter().find(|column| column.name == name)?;
        E::from_array(column.values.clone())
            .ok()
            .map(Flat::into_vec)
    }
}
