//! Converts arrays of numpy and scipy to borrowed views of the core, and its arrays to numpy.
//!
//! Names of attributes that every prediction reads are interned. Python without the lock looks up
//! other names under a lock that all threads share.

use numpy::ndarray::{Dimension, Ix1, Ix2};
use numpy::{
    Element, IntoPyArray, PyReadonlyArray, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::data::{Batch, Indices, LabelSets, Labels, Rows, Targets, Values};
use crate::file::{Array, Report, Shape};

/// An array of one of two element types, borrowed as long as this lives.
pub(super) enum Either<'py, A: Element, B: Element, D: Dimension> {
    A(PyReadonlyArray<'py, A, D>),
    B(PyReadonlyArray<'py, B, D>),
}

/// Labels, or the `indptr` or `indices` of a scipy matrix.
pub(super) type IndexArray<'py, D = Ix1> = Either<'py, i32, i64, D>;
/// Values of a dense matrix, or the `data` of a scipy matrix.
pub(super) type ValueArray<'py, D = Ix1> = Either<'py, f32, f64, D>;

impl<'py, A: Element, B: Element, D: Dimension> Either<'py, A, B, D> {
    /// Borrows `array`, or a copy if it is misaligned. Returns `None` for another type or dimension.
    pub fn borrow(array: &Bound<'py, PyAny>) -> Option<Self> {
        let array = &aligned(array).ok()?;
        let a = array.extract().map(Self::A);
        a.or_else(|_| array.extract().map(Self::B)).ok()
    }

    fn take(owner: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Self> {
        let array = owner.getattr(name)?;
        Self::borrow(&array).ok_or_else(|| {
            PyTypeError::new_err(format!("{name}: unsupported dtype {}", dtype_of(&array)))
        })
    }
}

impl<A: Element, B: Element> Either<'_, A, B, Ix2> {
    /// Returns the number of rows and columns. The array must be C-contiguous.
    pub fn shape(&self, name: &str) -> PyResult<(usize, usize)> {
        let (is_in_rows, shape) = match self {
            Self::A(a) => (a.is_c_contiguous(), a.shape()),
            Self::B(b) => (b.is_c_contiguous(), b.shape()),
        };
        // A Fortran array can be borrowed as a slice too, but its values have another order.
        if !is_in_rows {
            let message = format!("{name} must be C-contiguous");
            return Err(PyTypeError::new_err(message));
        }
        Ok((shape[0], shape[1]))
    }
}

impl<D: Dimension> IndexArray<'_, D> {
    pub fn view(&self) -> PyResult<Indices<'_>> {
        Ok(match self {
            Self::A(a) => Indices::I32(a.as_slice()?),
            Self::B(b) => Indices::I64(b.as_slice()?),
        })
    }
}

impl<D: Dimension> ValueArray<'_, D> {
    pub fn view(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::A(a) => Values::F32(a.as_slice()?),
            Self::B(b) => Values::F64(b.as_slice()?),
        })
    }
}

/// Returns `array`, or a copy if it is misaligned. Messages between processes hold such arrays.
fn aligned<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match array.cast::<PyUntypedArray>() {
        Ok(numbers) if !numbers.is_aligned() => array.call_method0("copy"),
        _ => Ok(array.clone()),
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
    pub n_cols: usize,
}

impl<'py> SparseArg<'py> {
    pub fn take(x: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = x.py();
        let (_, n_cols): (usize, usize) = x.getattr(intern!(py, "shape"))?.extract()?;
        Ok(Self {
            starts: Either::take(x, intern!(py, "indptr"))?,
            columns: Either::take(x, intern!(py, "indices"))?,
            values: Either::take(x, intern!(py, "data"))?,
            n_cols,
        })
    }

    /// Returns row starts, columns and values, not yet checked.
    pub fn views(&self) -> PyResult<(Indices<'_>, Indices<'_>, Values<'_>)> {
        let (starts, columns) = (self.starts.view()?, self.columns.view()?);
        Ok((starts, columns, self.values.view()?))
    }
}

/// X as Python passes it: a C-contiguous float32 or float64 array of two dimensions, or a scipy CSR
/// matrix or array of such values. The Python code converts all other input.
pub(super) enum RowsArg<'py> {
    Csr(SparseArg<'py>),
    Dense(ValueArray<'py, Ix2>),
}

impl<'py> RowsArg<'py> {
    pub fn take(x: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::find(x)?.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "X must be a CSR matrix or a float array of two dimensions, got {} of {}",
                x.get_type(),
                dtype_of(x)
            ))
        })
    }

    /// Returns `None` if `x` has neither form.
    pub fn find(x: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        Ok(match Either::borrow(x) {
            Some(dense) => Some(Self::Dense(dense)),
            None if x.hasattr(intern!(x.py(), "indptr"))? => Some(Self::Csr(SparseArg::take(x)?)),
            None => None,
        })
    }

    /// Checks the rows and returns a view. NaN is an error unless values may be missing. Call this
    /// once, before any state changes.
    pub fn rows(&self, may_miss_values: bool) -> PyResult<Rows<'_>> {
        let rows = match self {
            Self::Csr(x) => {
                let (starts, columns, values) = x.views()?;
                Rows::csr(starts, columns, values, x.n_cols, may_miss_values)
            }
            Self::Dense(x) => {
                let (n_rows, n_cols) = x.shape("X")?;
                Rows::dense(x.view()?, n_rows, n_cols, may_miss_values)
            }
        };
        Ok(rows?)
    }
}

/// Label sets as the `indptr` and `indices` of a CSR indicator matrix.
pub(super) struct LabelSetsArg<'py>(IndexArray<'py>, IndexArray<'py>);

impl<'py> LabelSetsArg<'py> {
    pub fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        let starts = Either::take(y, intern!(y.py(), "indptr"))?;
        Ok(Self(starts, Either::take(y, intern!(y.py(), "indices"))?))
    }

    /// Checks the label sets and returns a view.
    pub fn label_sets(&self, n_classes: usize) -> PyResult<LabelSets<'_>> {
        Ok(LabelSets::new(self.0.view()?, self.1.view()?, n_classes)?)
    }
}

/// Single labels, as numbers of classes, or label sets.
pub(super) enum TargetsArg<'py> {
    One(PyReadonlyArray1<'py, u32>),
    Sets(LabelSetsArg<'py>),
}

impl<'py> TargetsArg<'py> {
    pub fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        if y.hasattr(intern!(y.py(), "indptr"))? {
            return LabelSetsArg::take(y).map(Self::Sets);
        }
        let refused = |_| PyTypeError::new_err("y must be a uint32 array of one dimension");
        aligned(y)?.extract().map(Self::One).map_err(refused)
    }

    /// Checks the labels and returns a view.
    pub fn targets(&self, n_classes: usize) -> PyResult<Targets<'_>> {
        Ok(match self {
            Self::One(labels) => Targets::One(Labels::new(labels.as_slice()?, n_classes)?),
            Self::Sets(sets) => Targets::Sets(sets.label_sets(n_classes)?),
        })
    }
}

/// The weight of each row.
pub(super) type WeightsArg<'py> = PyReadonlyArray1<'py, f64>;

/// Borrowed X, y and weights.
pub(super) struct BatchArg<'py> {
    x: RowsArg<'py>,
    y: TargetsArg<'py>,
    weights: Option<WeightsArg<'py>>,
}

impl<'py> BatchArg<'py> {
    pub fn take(
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
        weights: Option<WeightsArg<'py>>,
    ) -> PyResult<Self> {
        let (x, y) = (RowsArg::take(x)?, TargetsArg::take(y)?);
        Ok(Self { x, y, weights })
    }

    /// Checks the batch against the number of classes. Call this once, before any state changes.
    pub fn batch(&self, n_classes: usize, may_miss_values: bool) -> PyResult<Batch<'_>> {
        let weights = self.weights.as_ref().map(|weights| weights.as_slice());
        let weights = weights.transpose()?.map(Values::F64);
        let rows = self.x.rows(may_miss_values)?;
        Ok(Batch::new(rows, self.y.targets(n_classes)?, weights)?)
    }
}

/// Converts a one-dimensional array of uint8, int64, uint64 or float64.
pub(super) fn to_array(array: &Bound<'_, PyAny>) -> PyResult<Array> {
    extract_as::<u8>(array)
        .or_else(|_| extract_as::<i64>(array))
        .or_else(|_| extract_as::<u64>(array))
        .or_else(|_| extract_as::<f64>(array))
}

fn extract_as<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Array>
where
    for<'a> Array: From<&'a [T]>,
{
    let array: PyReadonlyArray1<'_, T> = array.extract()?;
    Ok(array.as_slice()?.into())
}

/// Converts an array to numpy. Only a mapped array is copied.
pub(super) fn to_numpy(py: Python<'_>, array: Array) -> Bound<'_, PyAny> {
    macro_rules! convert {
        ($($variant:ident)*) => {
            match array {
                $(Array::$variant(a) => a.into_vec().into_pyarray(py).into_any(),)*
            }
        };
    }
    convert!(U8 I8 U16 I16 U32 I32 U64 I64 F32 F64)
}

/// Returns `array` with this number of rows and columns.
pub(super) fn shaped(array: Bound<'_, PyAny>, shape: (usize, usize)) -> PyResult<Bound<'_, PyAny>> {
    array.call_method1(intern!(array.py(), "reshape"), (shape,))
}

/// Returns the columns of a report by name.
pub(super) fn to_dict(py: Python<'_>, report: Report) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let columns = report.into_columns();
    let vectors = columns
        .iter()
        .filter(|column| column.shape == Shape::Vector);
    // A vector gives the number of rows, because a matrix may have no columns.
    let n = vectors
        .map(|column| column.values.len())
        .next()
        .unwrap_or(0);
    for column in columns {
        let values = to_numpy(py, column.values);
        let values = match column.shape {
            Shape::Scalar => values.get_item(0)?.call_method0("item")?,
            Shape::Vector => values,
            Shape::Flags => values.call_method1("view", ("bool",))?,
            Shape::Matrix(width) => shaped(values, (n, width))?,
        };
        dict.set_item(column.name, values)?;
    }
    Ok(dict)
}
