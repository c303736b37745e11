//! Text files as numpy arrays, and arrays as text files.

// pyo3 converts a path into a value of its own; there is nothing to borrow from.
#![allow(clippy::needless_pass_by_value)]

use std::path::PathBuf;

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::arrays::{LabelSetsArg, RowsArg};
use super::run::watched;
use crate::text::{self, Batch, Layout, Stream, SvmlightOptions};

type Array<'py, T> = Bound<'py, PyArray1<T>>;

/// `indptr`, `indices` and `data` of X, `indptr` and labels of y, the number
/// of columns, the number of labels, whether y is label sets.
type Arrays<'py, L> = (
    Array<'py, i64>,
    Array<'py, i32>,
    Array<'py, f32>,
    Array<'py, i64>,
    Array<'py, L>,
    usize,
    usize,
    bool,
);

fn arrays<L: Element>(py: Python<'_>, batch: Batch<L>) -> Arrays<'_, L> {
    let table = batch.table;
    (
        table.starts.into_pyarray(py),
        table.columns.into_pyarray(py),
        table.values.into_pyarray(py),
        table.label_starts.into_pyarray(py),
        table.labels.into_pyarray(py),
        batch.n_features,
        batch.n_labels,
        batch.multilabel,
    )
}

/// zero_based, n_features and multilabel; `None` for what is to be found out.
type Options = (Option<bool>, Option<usize>, Option<bool>);

fn svmlight_options((zero_based, n_features, multilabel): Options) -> SvmlightOptions {
    SvmlightOptions {
        zero_based,
        n_features,
        multilabel,
    }
}

/// A whole svmlight file.
#[pyfunction]
pub(super) fn load_svmlight(
    py: Python<'_>,
    path: PathBuf,
    options: Options,
) -> PyResult<Arrays<'_, f64>> {
    let options = svmlight_options(options);
    let batch = watched(py, None, |c| text::load_svmlight(&path, options, c))?;
    Ok(arrays(py, batch))
}

/// Reads a svmlight file only to find out its `(zero_based, n_features, multilabel)`.
#[pyfunction]
pub(super) fn scan_svmlight(
    py: Python<'_>,
    path: PathBuf,
    options: Options,
) -> PyResult<(bool, usize, bool)> {
    let options = svmlight_options(options);
    let layout = watched(py, None, |c| text::scan_svmlight(&path, options, c))?;
    Ok((layout.zero_based, layout.n_features, layout.multilabel))
}

/// A whole XMC file; `multilabel=None`: to be found out.
#[pyfunction]
pub(super) fn load_xmc(
    py: Python<'_>,
    path: PathBuf,
    multilabel: Option<bool>,
) -> PyResult<Arrays<'_, i32>> {
    let batch = watched(py, None, |c| text::load_xmc(&path, multilabel, c))?;
    Ok(arrays(py, batch))
}

/// Whether some row of an XMC file has other than one label.
#[pyfunction]
pub(super) fn xmc_is_multilabel(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    watched(py, None, |c| text::xmc_is_multilabel(&path, c))
}

/// Writes X and the CSR indicator y, of `n_labels` columns, as XMC text.
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

/// Batches of a svmlight file, parsed ahead in the background.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct SvmlightStream(Stream<f64>);

#[pymethods]
impl SvmlightStream {
    #[new]
    fn new(path: PathBuf, batch_size: usize, layout: (bool, usize, bool)) -> PyResult<Self> {
        let (zero_based, n_features, multilabel) = layout;
        let layout = Layout {
            zero_based,
            n_features,
            multilabel,
        };
        Ok(Self(Stream::svmlight(&path, batch_size, layout)?))
    }

    /// The next batch, `None` after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Arrays<'py, f64>>> {
        let batch = watched(py, None, |c| self.0.next(c))?;
        Ok(batch.map(|batch| arrays(py, batch)))
    }
}

/// Batches of an XMC file, parsed ahead in the background.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct XmcStream(Stream<i32>);

#[pymethods]
impl XmcStream {
    #[new]
    fn new(path: PathBuf, batch_size: usize, multilabel: bool) -> PyResult<Self> {
        Ok(Self(Stream::xmc(&path, batch_size, multilabel)?))
    }

    /// The next batch, `None` after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Arrays<'py, i32>>> {
        let batch = watched(py, None, |c| self.0.next(c))?;
        Ok(batch.map(|batch| arrays(py, batch)))
    }
}
