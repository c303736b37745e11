//! Pickles of what the core keeps as bundles: models, and parts of them between machines.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::alloc::catch_no_memory;
use crate::error::Result;
use crate::file::Bundle;

/// What `__reduce__` returns: the function that makes the object again, and its arguments.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// The bytes of a bundle, made while other threads of Python run.
pub(super) fn bytes_of(
    py: Python<'_>,
    to_bundle: impl FnOnce() -> Bundle + Send,
) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(|| catch_no_memory(|| to_bundle().to_bytes()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// What `read` makes of the bundle that [`bytes_of`] wrote.
pub(super) fn from_bytes<T: Send>(
    py: Python<'_>,
    bytes: &[u8],
    read: impl FnOnce(Bundle) -> Result<T> + Send,
) -> PyResult<T> {
    Ok(py.detach(|| catch_no_memory(|| read(Bundle::from_bytes(bytes)?)))?)
}

/// `object` as `from_bytes` of its class and `bytes`.
pub(super) fn reduced<'py, T>(
    object: &Bound<'py, T>,
    bytes: Bound<'py, PyBytes>,
) -> PyResult<Reduced<'py>> {
    let class = object.as_any().get_type();
    Ok((class.getattr("from_bytes")?, (bytes,)))
}
