//! numpy and scipy memory as the core's borrowed views.

use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::data::{Indices, LabelSets, Labels, Rows, Targets, Values};

/// Holds one of two element types; borrows are kept for as long as it lives.
pub(super) enum Either<'py, A: Element, B: Element> {
    A(PyReadonlyArray1<'py, A>),
    B(PyReadonlyArray1<'py, B>),
}

/// `indptr` or `indices` of a scipy matrix.
type IndexArray<'py> = Either<'py, i32, i64>;
/// `data` of a scipy matrix.
type ValueArray<'py> = Either<'py, f32, f64>;

impl<'py, A: Element, B: Element> Either<'py, A, B> {
    fn take(owner: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        let array = owner.getattr(name)?;
        if let Ok(a) = array.extract() {
            return Ok(Self::A(a));
        }
        array.extract().map(Self::B).map_err(|_| {
            PyTypeError::new_err(format!("{name}: unsupported dtype {}", dtype_of(&array)))
        })
    }
}

impl IndexArray<'_> {
    fn view(&self) -> PyResult<Indices<'_>> {
        Ok(match self {
            Self::A(a) => Indices::I32(a.as_slice()?),
            Self::B(b) => Indices::I64(b.as_slice()?),
        })
    }
}

impl ValueArray<'_> {
    fn view(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::A(a) => Values::F32(a.as_slice()?),
            Self::B(b) => Values::F64(b.as_slice()?),
        })
    }
}

fn dtype_of(array: &Bound<'_, PyAny>) -> String {
    array
        .getattr("dtype")
        .map_or_else(|_| array.get_type().to_string(), |dtype| dtype.to_string())
}

/// A scipy CSR matrix or array of float32 or float64.
pub(super) struct SparseArg<'py> {
    starts: IndexArray<'py>,
    columns: IndexArray<'py>,
    values: ValueArray<'py>,
    /// Number of columns.
    pub n_cols: usize,
}

impl<'py> SparseArg<'py> {
    /// Borrows the arrays of `x`.
    pub fn take(x: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (_, n_cols): (usize, usize) = x.getattr("shape")?.extract()?;
        Ok(Self {
            starts: Either::take(x, "indptr")?,
            columns: Either::take(x, "indices")?,
            values: Either::take(x, "data")?,
            n_cols,
        })
    }

    /// Row starts, columns and values, not yet checked.
    pub fn views(&self) -> PyResult<(Indices<'_>, Indices<'_>, Values<'_>)> {
        Ok((
            self.starts.view()?,
            self.columns.view()?,
            self.values.view()?,
        ))
    }
}

/// X as it came: a C-contiguous float32/float64 array of two dimensions, or a
/// scipy CSR matrix or array of such values. The Python side brings
/// everything else into one of these forms.
pub(super) enum RowsArg<'py> {
    Csr(SparseArg<'py>),
    DenseF32(PyReadonlyArray2<'py, f32>),
    DenseF64(PyReadonlyArray2<'py, f64>),
}

impl<'py> RowsArg<'py> {
    /// Borrows the arrays of `x`.
    pub fn take(x: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(dense) = x.extract() {
            return Ok(Self::DenseF32(dense));
        }
        if let Ok(dense) = x.extract() {
            return Ok(Self::DenseF64(dense));
        }
        if !x.hasattr("indptr")? {
            return Err(PyTypeError::new_err(format!(
                "X must be a CSR matrix or a float array of two dimensions, got {} of {}",
                x.get_type(),
                dtype_of(x)
            )));
        }
        SparseArg::take(x).map(Self::Csr)
    }

    /// The checked view; NaN is refused unless values may be missing. Do this once, before
    /// anything changes.
    pub fn rows(&self, may_miss_values: bool) -> PyResult<Rows<'_>> {
        let csr = if may_miss_values {
            Rows::csr_with_missing
        } else {
            Rows::csr
        };
        let dense = if may_miss_values {
            Rows::dense_with_missing
        } else {
            Rows::dense
        };
        // A slice of a Fortran array can be had, too: of the values in another order.
        let in_rows = match self {
            Self::Csr(..) => true,
            Self::DenseF32(x) => x.is_c_contiguous(),
            Self::DenseF64(x) => x.is_c_contiguous(),
        };
        if !in_rows {
            return Err(PyTypeError::new_err("X must be C-contiguous"));
        }
        let rows = match self {
            Self::Csr(x) => {
                let (starts, columns, values) = x.views()?;
                csr(starts, columns, values, x.n_cols)
            }
            Self::DenseF32(x) => dense(Values::F32(x.as_slice()?), x.shape()[0], x.shape()[1]),
            Self::DenseF64(x) => dense(Values::F64(x.as_slice()?), x.shape()[0], x.shape()[1]),
        };
        Ok(rows?)
    }
}

/// Label sets as the `indptr` and `indices` of a CSR indicator matrix.
pub(super) struct LabelSetsArg<'py>(IndexArray<'py>, IndexArray<'py>);

impl<'py> LabelSetsArg<'py> {
    /// Borrows the arrays of `y`.
    pub fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self(
            Either::take(y, "indptr")?,
            Either::take(y, "indices")?,
        ))
    }

    /// The checked view.
    pub fn label_sets(&self, n_classes: usize) -> PyResult<LabelSets<'_>> {
        Ok(LabelSets::new(self.0.view()?, self.1.view()?, n_classes)?)
    }
}

/// One label per row, as class numbers.
pub(super) type LabelsArg<'py> = PyReadonlyArray1<'py, u32>;

/// Single labels or label sets.
pub(super) enum TargetsArg<'py> {
    One(LabelsArg<'py>),
    Sets(LabelSetsArg<'py>),
}

impl<'py> TargetsArg<'py> {
    /// Borrows the arrays of `y`: a CSR indicator where it holds sets.
    pub fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        if y.hasattr("indptr")? {
            return LabelSetsArg::take(y).map(Self::Sets);
        }
        let labels = y.extract();
        labels
            .map(Self::One)
            .map_err(|_| PyTypeError::new_err("y must be a uint32 array of one dimension"))
    }

    /// The checked view.
    pub fn targets(&self, n_classes: usize) -> PyResult<Targets<'_>> {
        Ok(match self {
            Self::One(labels) => Targets::One(Labels::new(labels.as_slice()?, n_classes)?),
            Self::Sets(sets) => Targets::Sets(sets.label_sets(n_classes)?),
        })
    }
}

/// One importance per row.
pub(super) type WeightsArg<'py> = PyReadonlyArray1<'py, f32>;
