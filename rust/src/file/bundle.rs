//! Models as named arrays and metadata, with optional storage of floats in 16 bits.

use std::collections::BTreeMap;
use std::fmt::Display;

use safetensors::tensor::Dtype;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::array::{Array, Element};
use super::Flat;
use crate::error::{Error, Result};

/// Name in messages of a bundle without a file.
pub(super) const UNNAMED: &str = "serialized model";

/// Suffix of the name of the scales of a 16-bit array.
const SCALE: &str = ".scale";

/// A trained model as named arrays and JSON metadata, which is the content of a model file.
///
/// Fill it with `put` and `put_meta`, empty it with `take` and `take_meta`. Names are constants of
/// the crate and contain no `/`.
///
/// ```
/// use xmtree::file::Bundle;
///
/// let mut bundle = Bundle::new("example");
/// bundle.put("weights", vec![0.5_f32, -1.0]);
/// bundle.put_meta("n_features", &2_u32);
///
/// let mut again = Bundle::from_bytes(&bundle.to_bytes()?)?;
/// assert_eq!(again.take::<f32>("weights")?, [0.5, -1.0]);
/// assert_eq!(again.take_meta::<u32>("n_features")?, 2);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The learner that wrote it.
    pub(super) kind: String,
    pub(super) meta: Map<String, Value>,
    pub(super) arrays: BTreeMap<String, Array>,
    /// Name of its file, for messages.
    pub(super) origin: String,
}

/// JSON form of `kind` and `meta` of a bundle.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) kind: String,
    pub(super) meta: Map<String, Value>,
}

impl Bundle {
    /// Creates an empty bundle of the learner `kind`.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            meta: Map::new(),
            arrays: BTreeMap::new(),
            origin: UNNAMED.into(),
        }
    }

    /// The learner that wrote it.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The metadata, for inspection.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.meta
    }

    /// The arrays by name, for inspection.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// Returns metadata and arrays for tests that damage them.
    #[cfg(test)]
    pub(crate) fn parts_mut(&mut self) -> (&mut Map<String, Value>, &mut BTreeMap<String, Array>) {
        (&mut self.meta, &mut self.arrays)
    }

    /// Creates the error for inconsistent contents, which names the file.
    pub fn damaged(&self, what: impl Display) -> Error {
        Error::ModelFile(format!("{}: damaged model: {what}", self.origin))
    }

    /// Returns the error [`damaged`](Self::damaged) unless the contents are sound.
    pub fn require(&self, is_sound: bool, what: impl Display) -> Result<()> {
        is_sound.then_some(()).ok_or_else(|| self.damaged(what))
    }

    /// Returns an error unless the bundle is of `kind`.
    pub fn expect_kind(&self, kind: &str) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(Error::ModelFile(format!(
            "{}: expected a model of kind {kind:?}, got {:?}",
            self.origin, self.kind
        )))
    }

    /// Stores an array.
    pub fn put(&mut self, name: &str, array: impl Into<Array>) {
        debug_assert!(is_name(name), "{name:?} cannot name an array");
        let before = self.arrays.insert(name.into(), array.into());
        debug_assert!(before.is_none(), "array {name:?} stored twice");
    }

    /// Moves an array out.
    ///
    /// Floats that are not finite, or above 1e38 in size (1e100 in double precision), are an error.
    /// Learning keeps all numbers of a model within these bounds, and never exceeds them when it
    /// starts within them (`linear/pn.rs`).
    pub fn take<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        Ok(self.take_array(name, None, |_| true)?.into_vec())
    }

    /// Moves an array out without a check of floats, which may be infinite or NaN.
    pub fn take_any<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        Ok(self.take_array(name, None, |_| false)?.into_vec())
    }

    /// Moves an array out, of `len` elements if given. A mapped array stays in the file and is not
    /// checked, as that would read all of it.
    pub fn take_flat<T: Element>(&mut self, name: &str, len: Option<usize>) -> Result<Flat<T>> {
        self.take_array(name, len, |array| !array.is_mapped())
    }

    /// Moves an array out, of `len` elements if given. Floats are checked if `has_bounds`.
    pub(super) fn take_array<T: Element>(
        &mut self,
        name: &str,
        len: Option<usize>,
        has_bounds: impl Fn(&Array) -> bool,
    ) -> Result<Flat<T>> {
        let array = match self.arrays.remove(name) {
            None => return Err(self.damaged(format_args!("array {name:?} is missing"))),
            Some(Array::I16(numbers)) if T::DTYPE == Dtype::F32 => self.widened(name, &numbers)?,
            Some(array) => array,
        };
        if has_bounds(&array) {
            if let Some(at) = array.first_out_of_bounds() {
                return Err(self.damaged(format_args!("value {at} of {name:?} is out of range")));
            }
        }
        let elements = T::from_array(array).map_err(|other| {
            self.damaged(format_args!(
                "array {name:?} holds {}, expected {}",
                other.dtype(),
                T::DTYPE
            ))
        })?;
        let (n, expected) = (elements.len(), len.unwrap_or(elements.len()));
        let what = format_args!("array {name:?} has {n} elements, expected {expected}");
        self.require(n == expected, what)?;
        Ok(elements)
    }

    /// Converts the single precision arrays that `is_chosen` selects by name to 16 bits, except
    /// arrays with infinite values or NaN. Names of nested arrays begin with those of their
    /// bundles. `take` restores single precision. No value changes by more than 2^-16 of the
    /// largest in its block of 64.
    pub fn narrow(&mut self, is_chosen: impl Fn(&str) -> bool) {
        let mut scales = Vec::new();
        for (name, array) in self.arrays.iter_mut().filter(|(name, _)| is_chosen(name)) {
            if let Array::F32(floats) = array {
                if let Some((numbers, scale)) = quantize(floats) {
                    *array = numbers.into();
                    scales.push((format!("{name}{SCALE}"), scale.into()));
                }
            }
        }
        self.arrays.extend(scales);
    }

    /// Restores the floats that [`narrow`](Self::narrow) has stored as `numbers`.
    fn widened(&mut self, name: &str, numbers: &[i16]) -> Result<Array> {
        let scales: Flat<f32> = self.take_flat(&format!("{name}{SCALE}"), None)?;
        let floats = restore(numbers, &scales);
        floats
            .map(Array::from)
            .ok_or_else(|| self.damaged(format_args!("array {name:?} does not match its scale")))
    }

    /// Stores a value as JSON. Infinity and NaN, which JSON does not have, belong into an array.
    ///
    /// # Panics
    ///
    /// If JSON cannot represent the type, for example a map with keys that are not strings. Any
    /// test that saves the model finds this.
    pub fn put_meta(&mut self, key: &str, value: &impl Serialize) {
        debug_assert!(is_name(key), "{key:?} cannot name metadata");
        let value = serde_json::to_value(value).expect("metadata must be valid JSON");
        let before = self.meta.insert(key.into(), value);
        debug_assert!(before.is_none(), "metadata {key:?} stored twice");
    }

    /// Moves a value out.
    pub fn take_meta<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        let Some(value) = self.meta.remove(key) else {
            return Err(self.damaged(format_args!("metadata {key:?} is missing")));
        };
        serde_json::from_value(value)
            .map_err(|error| self.damaged(format_args!("metadata {key:?}: {error}")))
    }

    /// Nests a bundle inside this one, such as a tree in its forest.
    pub fn nest(&mut self, prefix: &str, inner: Self) {
        debug_assert!(is_name(prefix), "{prefix:?} cannot name a bundle");
        let prefix = format!("{prefix}/");
        for (name, array) in inner.arrays {
            self.arrays.insert(prefix.clone() + &name, array);
        }
        let head = serde_json::json!({"kind": inner.kind, "meta": inner.meta});
        let before = self.meta.insert(prefix, head);
        debug_assert!(before.is_none(), "bundle stored twice");
    }

    /// Moves a nested bundle out.
    pub fn unnest(&mut self, prefix: &str) -> Result<Self> {
        let prefix = format!("{prefix}/");
        let Head { kind, meta } = self.take_meta(&prefix)?;
        // '0' follows '/', so exactly the names that begin with the prefix are between the two.
        let after = format!("{}0", prefix.trim_end_matches('/'));
        let mut inside = self.arrays.split_off(&prefix);
        let mut rest = inside.split_off(&after);
        self.arrays.append(&mut rest);
        let arrays = inside
            .into_iter()
            .map(|(name, array)| (name[prefix.len()..].to_owned(), array))
            .collect();
        Ok(Self {
            kind,
            meta,
            arrays,
            origin: self.origin.clone(),
        })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "__metadata__"
}

/// Number of floats that share a scale.
const FLOATS_PER_SCALE: usize = 64;

/// Returns integers and the scale of each block; None if a float is infinite or NaN. No float
/// changes by more than 2^-16 of the largest of its block.
fn quantize(floats: &[f32]) -> Option<(Vec<i16>, Vec<f32>)> {
    if !floats.iter().all(|x| x.is_finite()) {
        return None;
    }
    let (mut numbers, mut scales) = (Vec::with_capacity(floats.len()), Vec::new());
    for block in floats.chunks(FLOATS_PER_SCALE) {
        let largest = block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = largest / f32::from(i16::MAX);
        // The reciprocal of a subnormal scale may overflow, so such floats become 0.
        let per_scale = if scale.is_normal() {
            scale.recip()
        } else {
            0.0
        };
        numbers.extend(block.iter().map(|x| (x * per_scale).round() as i16));
        scales.push(scale);
    }
    Some((numbers, scales))
}

/// Restores the floats; None if the number of scales is wrong.
fn restore(numbers: &[i16], scales: &[f32]) -> Option<Vec<f32>> {
    let blocks = numbers.chunks(FLOATS_PER_SCALE).zip(scales);
    let floats = blocks.flat_map(|(block, scale)| block.iter().map(move |&n| f32::from(n) * scale));
    (scales.len() == numbers.len().div_ceil(FLOATS_PER_SCALE)).then(|| floats.collect())
}
