//! Parts of LdSM models as bytes and files, and predictions by models whose scorers are in files.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::arrays::RowsArg;
use super::classifier::{Classifier, TopK};
use super::run::{watched, Share};
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist};
use crate::learners::ldsm::Ldsm;
use crate::learners::one_against_some::GroupScorers;
use crate::model::Query;

/// Kind of all parts; they differ by their fields.
const KIND: &str = "ldsm_part";

/// Stores a part, which is in memory at most twice.
pub(super) fn stored(part: impl Persist) -> Result<Vec<u8>> {
    kept(part, None)
}

/// Stores a part as bytes, or in a file, without bytes then.
pub(super) fn kept(part: impl Persist, file: Option<PathBuf>) -> Result<Vec<u8>> {
    let mut bundle = Bundle::new(KIND);
    part.put(&mut bundle);
    drop(part);
    match file {
        Some(file) => bundle.write(&file).map(|()| Vec::new()),
        None => bundle.to_bytes(),
    }
}

pub(super) fn restored<P: Persist + Default>(bytes: &[u8]) -> Result<P> {
    part_of(&mut Bundle::from_bytes(bytes)?)
}

pub(super) fn all_restored<P: Persist + Default>(parts: &[PyBackedBytes]) -> Result<Vec<P>> {
    parts.iter().map(|part| restored(part)).collect()
}

fn part_of<P: Persist + Default>(bundle: &mut Bundle) -> Result<P> {
    let mut part = P::default();
    bundle.expect_kind(KIND)?;
    part.fill(bundle).map(|()| part)
}

/// Returns the model if it is one of LdSM.
pub(super) fn ldsm_of(share: &Share) -> Result<&Ldsm> {
    let ldsm = (&*share.model as &dyn Any).downcast_ref::<Ldsm>();
    ldsm.ok_or_else(|| Error::data("there are no trees"))
}

/// Reads a part of a model of this name.
fn read_part(path: &Path, model: &str) -> Result<GroupScorers> {
    let mut bundle = Bundle::read(path)?;
    let part: GroupScorers = part_of(&mut bundle)?;
    let is_own = part.model == model;
    bundle
        .require(is_own, "it is a part of another model")
        .map(|()| part)
}

/// Returns the k best classes of each row and their scores, by a model whose scorers are in files.
/// Only one of them is in memory at a time.
#[pyfunction]
pub(super) fn ldsm_topk<'py>(
    trees: &Bound<'py, Classifier>,
    model: &str,
    files: Vec<PathBuf>,
    X: &Bound<'py, PyAny>,
    k: usize,
    n_threads: usize,
) -> PyResult<TopK<'py>> {
    let (py, x) = (X.py(), RowsArg::take(X)?);
    let (rows, trees) = (x.rows(false)?, trees.get().share(py)?);
    let (labels, scores) = watched(py, None, |control| {
        let parts = files.iter().map(|path| read_part(path, model));
        let query = Query::new(&rows, n_threads, control);
        ldsm_of(&trees)?.predict_topk_by_group(&query, k, parts)
    })?;
    let shape = [rows.n_rows(), k];
    let labels = labels.into_pyarray(py).reshape(shape)?;
    Ok((labels, scores.into_pyarray(py).reshape(shape)?))
}

/// Returns the model with the scorers of these files.
#[pyfunction]
pub(super) fn ldsm_whole(
    py: Python<'_>,
    trees: Py<Classifier>,
    model: &str,
    files: Vec<PathBuf>,
) -> PyResult<Classifier> {
    let trees = trees.get().share(py)?;
    let whole = watched(py, None, |_| {
        let parts = files.iter().map(|path| read_part(path, model));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        ldsm_of(&trees)?.clone().whole(&parts)
    })?;
    Ok(Classifier::from_model(Arc::new(whole)))
}
