//! Text files as numpy arrays, and arrays as text files.

// pyo3 converts a path into a value of its own; there is nothing to borrow from.
#![allow(clippy::needless_pass_by_value)]

use std::path::PathBuf;

use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{LabelSetsArg, RowsArg};
use super::run::watched;
use crate::text::{self, LineBlocks, ReadAhead, Source, Svmlight, SvmlightOptions, Xmc};

/// Returns `indptr`, `indices` and `data` of X, `indptr` and labels of y, the number of columns, the
/// number of labels, and whether y is label sets.
fn arrays<L: Element>(py: Python<'_>, batch: text::Batch<L>) -> PyResult<Bound<'_, PyAny>> {
    let table = batch.table;
    let arrays = (
        table.starts.into_pyarray(py),
        table.columns.into_pyarray(py),
        table.values.into_pyarray(py),
        table.label_starts.into_pyarray(py),
        table.labels.into_pyarray(py),
        batch.n_features,
        batch.n_labels,
        batch.multilabel,
    );
    Ok(arrays.into_pyobject(py)?.into_any())
}

/// `zero_based`, `n_features` and `multilabel`; `None` takes the value from the file.
type Options = (Option<bool>, Option<usize>, Option<bool>);

fn svmlight((zero_based, n_features, multilabel): Options) -> PyResult<Svmlight> {
    Ok(Svmlight::new(SvmlightOptions {
        zero_based,
        n_features,
        multilabel,
    })?)
}

/// Reads a whole svmlight file.
#[pyfunction]
pub(super) fn load_svmlight(
    py: Python<'_>,
    path: PathBuf,
    options: Options,
) -> PyResult<Bound<'_, PyAny>> {
    let format = svmlight(options)?;
    let batch = watched(py, None, |c| text::load(Source::open(&path)?, format, c))?;
    arrays(py, batch)
}

/// Reads an svmlight file only to find its `(zero_based, n_features, multilabel)`.
#[pyfunction]
pub(super) fn scan_svmlight(
    py: Python<'_>,
    path: PathBuf,
    options: Options,
) -> PyResult<(bool, usize, bool)> {
    let format = svmlight(options)?;
    let layout = watched(py, None, |c| {
        text::scan_svmlight(Source::open(&path)?, format, c)
    })?;
    Ok((layout.zero_based, layout.n_features, layout.multilabel))
}

/// Reads a whole XMC file. `multilabel=None` takes the value from the file.
#[pyfunction]
pub(super) fn load_xmc(
    py: Python<'_>,
    path: PathBuf,
    multilabel: Option<bool>,
) -> PyResult<Bound<'_, PyAny>> {
    let format = Xmc::new(multilabel);
    let batch = watched(py, None, |c| text::load(Source::open(&path)?, format, c))?;
    arrays(py, batch)
}

/// Writes X and the CSR indicator matrix y, which has `n_labels` columns, as XMC text.
#[pyfunction]
pub(super) fn save_xmc(
    py: Python<'_>,
    path: PathBuf,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    n_labels: usize,
) -> PyResult<()> {
    let (x, y) = (RowsArg::take(x)?, LabelSetsArg::take(y)?);
    let (rows, labels) = (x.rows(false)?, y.label_sets(n_labels)?);
    watched(py, None, |c| text::save_xmc(&path, &rows, &labels, c))
}

type Next<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// An iterator over parts of a file, which are read in the background before they are needed.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct Stream(Box<dyn Fn(Python<'_>) -> Next<'_> + Send + Sync>);

impl Stream {
    fn new<T: Send + 'static>(
        items: ReadAhead<T>,
        to_python: fn(Python<'_>, T) -> PyResult<Bound<'_, PyAny>>,
    ) -> Self {
        Self(Box::new(move |py| {
            let item = watched(py, None, |c| items.next(c))?;
            item.map(|item| to_python(py, item)).transpose()
        }))
    }
}

#[pymethods]
impl Stream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Next<'py> {
        (self.0)(py)
    }
}

/// Streams an svmlight file whose `(zero_based, n_features, multilabel)` are known.
#[pyfunction]
pub(super) fn iter_svmlight(
    path: PathBuf,
    batch_size: usize,
    layout: (bool, usize, bool),
) -> PyResult<Stream> {
    let (zero_based, n_features, multilabel) = layout;
    let format = svmlight((Some(zero_based), Some(n_features), Some(multilabel)))?;
    let stream = text::stream(Source::open(&path)?, format, batch_size)?;
    Ok(Stream::new(stream, arrays))
}

/// Streams an XMC file.
#[pyfunction]
pub(super) fn iter_xmc(path: PathBuf, batch_size: usize, multilabel: bool) -> PyResult<Stream> {
    let format = Xmc::new(Some(multilabel));
    let stream = text::stream(Source::open(&path)?, format, batch_size)?;
    Ok(Stream::new(stream, arrays))
}

/// Streams the text of a file, decompressed, in blocks of whole lines.
#[pyfunction]
pub(super) fn iter_lines(path: PathBuf) -> PyResult<Stream> {
    let blocks = LineBlocks::read(Source::open(&path)?)?;
    Ok(Stream::new(blocks, |py, block| {
        Ok(PyBytes::new(py, &block).into_any())
    }))
}
