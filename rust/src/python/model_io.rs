//! Estimator files: a core model beside what only Python knows of it.

use std::path::PathBuf;

use numpy::{Element, IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::run::watched;
use crate::error::Error;
use crate::file::{Array, Bundle};

/// Kind of the outer bundle; the core model is nested in it.
const KIND: &str = "estimator";
/// Where the core model is nested.
const MODEL: &str = "model";
/// The metadata, a JSON text of the Python side.
const META: &str = "estimator";

/// Writes an estimator: `model` is the core model's bytes, `arrays` are one-dimensional
/// (uint8, int64, uint64, float64), `meta` is JSON.
#[pyfunction]
pub(super) fn save_estimator(
    py: Python<'_>,
    path: PathBuf,
    meta: &str,
    arrays: &Bound<'_, PyDict>,
    model: &[u8],
) -> PyResult<()> {
    let mut bundle = Bundle::new(KIND);
    for (name, array) in arrays.iter() {
        let name: String = name.extract()?;
        bundle.put(&name, to_array(&array)?);
    }
    let meta: serde_json::Value =
        serde_json::from_str(meta).map_err(|e| Error::data(format!("meta is no JSON: {e}")))?;
    bundle.put_meta(META, &meta);
    watched(py, None, move |_| {
        bundle.nest(MODEL, Bundle::from_bytes(model)?);
        bundle.write(&path)
    })
}

/// Reads what [`save_estimator`] wrote: metadata, arrays and the core model's bytes.
#[pyfunction]
pub(super) fn load_estimator(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(String, Bound<'_, PyDict>, Bound<'_, PyBytes>)> {
    let (meta, arrays, model) = watched(py, None, move |_| {
        let mut bundle = Bundle::read(&path)?;
        bundle.expect_kind(KIND)?;
        let model = bundle.unnest(MODEL)?.to_bytes()?;
        let meta: serde_json::Value = bundle.take_meta(META)?;
        Ok((meta.to_string(), bundle.arrays().clone(), model))
    })?;
    let named = PyDict::new(py);
    for (name, array) in arrays {
        named.set_item(name, to_numpy(py, array))?;
    }
    Ok((meta, named, PyBytes::new(py, &model)))
}

fn to_array(array: &Bound<'_, PyAny>) -> PyResult<Array> {
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

pub(super) fn to_numpy(py: Python<'_>, array: Array) -> Bound<'_, PyAny> {
    match array {
        Array::U8(a) => a.into_pyarray(py).into_any(),
        Array::U16(a) => a.into_pyarray(py).into_any(),
        Array::I16(a) => a.into_pyarray(py).into_any(),
        Array::U32(a) => a.into_pyarray(py).into_any(),
        Array::I32(a) => a.into_pyarray(py).into_any(),
        Array::U64(a) => a.into_pyarray(py).into_any(),
        Array::I64(a) => a.into_pyarray(py).into_any(),
        Array::F32(a) => a.into_pyarray(py).into_any(),
        Array::F64(a) => a.into_pyarray(py).into_any(),
    }
}
