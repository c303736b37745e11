//! `_core.NgramCounter`: texts of Python as rows of counts.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::run::{attached, brief_or_watched, MAX_INSTANT_EFFORT};
use crate::text::ngrams::{self, Kind};

/// Time for a byte of text, in products of [`brief_or_watched`].
const EFFORT_PER_BYTE: usize = 64;

type Text<'py> = Bound<'py, PyString>;
type Characters = Option<(usize, usize)>;
/// `indptr`, `indices` and `data`.
type Csr<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
);

/// Counts the n-grams of texts. It does not change.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct NgramCounter(ngrams::NgramCounter);

fn kinds(words: usize, characters: Characters) -> Vec<Kind> {
    let words = (words > 0).then_some(Kind::Words(words));
    let characters = characters.map(|(least, most)| Kind::Characters(least, most));
    words.into_iter().chain(characters).collect()
}

fn borrowed<'a>(texts: &'a [Text<'_>]) -> PyResult<Vec<&'a str>> {
    texts.iter().map(|text| text.to_str()).collect()
}

fn effort(texts: &[&str]) -> usize {
    EFFORT_PER_BYTE * texts.iter().map(|text| text.len()).sum::<usize>()
}

#[pymethods]
impl NgramCounter {
    /// Takes the n-grams of each kind in the order of their columns, or the bits of a hash.
    #[new]
    #[pyo3(signature = (words, characters, vocabularies, n_bits=None))]
    fn new(
        words: usize,
        characters: Characters,
        vocabularies: Vec<Vec<Text<'_>>>,
        n_bits: Option<u32>,
    ) -> PyResult<Self> {
        let kinds = kinds(words, characters);
        if let Some(n_bits) = n_bits {
            return Ok(Self(ngrams::NgramCounter::hashed(&kinds, n_bits)?));
        }
        let vocabularies = vocabularies.iter().map(|ngrams| borrowed(ngrams));
        let vocabularies: Vec<Vec<&str>> = vocabularies.collect::<PyResult<_>>()?;
        let bytes = vocabularies
            .iter()
            .map(|ngrams| ngrams.iter().map(|ngram| ngram.as_bytes()));
        Ok(Self(ngrams::NgramCounter::known(&kinds, bytes)?))
    }

    /// Learns the n-grams that occur in at least `min_df` of the texts.
    #[staticmethod]
    fn learn(
        py: Python<'_>,
        words: usize,
        characters: Characters,
        texts: Vec<Text<'_>>,
        min_df: usize,
    ) -> PyResult<Self> {
        let texts = borrowed(&texts)?;
        let kinds = kinds(words, characters);
        let learned = brief_or_watched(py, effort(&texts), None, |control| {
            ngrams::NgramCounter::learned(&kinds, &texts, min_df, control)
        });
        Ok(Self(learned?))
    }

    /// Returns the counts of n-grams as the arrays of a CSR matrix. Texts that are not ASCII must
    /// be words in lower case, separated by spaces.
    #[pyo3(signature = (texts, n_threads=1))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Text<'py>>,
        n_threads: usize,
    ) -> PyResult<Csr<'py>> {
        let texts = borrowed(&texts)?;
        let effort = effort(&texts);
        let counts = if n_threads == 1 && effort <= MAX_INSTANT_EFFORT {
            attached(|control| self.0.count(&texts, 1, control))
        } else {
            brief_or_watched(py, effort, None, |control| {
                self.0.count(&texts, n_threads, control)
            })
        }?;
        Ok((
            counts.starts.into_pyarray(py),
            counts.columns.into_pyarray(py),
            counts.values.into_pyarray(py),
        ))
    }

    /// Returns the n-grams of each kind in the order of their columns; none if they are hashed.
    fn vocabularies<'py>(&self, py: Python<'py>) -> PyResult<Vec<Vec<Text<'py>>>> {
        let words = |ngrams: Vec<&[u8]>| {
            let words = ngrams
                .into_iter()
                .map(|ngram| PyString::from_bytes(py, ngram));
            words.collect()
        };
        self.0.vocabularies().into_iter().map(words).collect()
    }

    #[getter]
    fn n_columns(&self) -> usize {
        self.0.n_columns()
    }
}

/// Turns logarithms of counts into weights of rows of length 1, in place.
#[pyfunction]
#[pyo3(signature = (starts, columns, values, idf=None))]
pub(super) fn weigh_counts(
    starts: PyReadonlyArray1<'_, i64>,
    columns: PyReadonlyArray1<'_, i32>,
    mut values: PyReadwriteArray1<'_, f32>,
    idf: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<()> {
    let idf = idf.as_ref().map(|idf| idf.as_slice()).transpose()?;
    let (starts, columns) = (starts.as_slice()?, columns.as_slice()?);
    Ok(ngrams::weigh(starts, columns, values.as_slice_mut()?, idf)?)
}
