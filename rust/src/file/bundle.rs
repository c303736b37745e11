//! A model taken apart into named arrays and metadata, floats of single precision in 16 bits each
//! where they are narrowed.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::array::{Array, Element};
use super::Flat;
use crate::error::{Error, Result};

/// Stands in messages for a bundle that no file was named for.
pub(super) const UNNAMED: &str = "serialised model";

/// What stands behind the name of an array of 16 bits in that of its scale.
const SCALE: &str = ".scale";

/// A learned model as named arrays and JSON metadata: what goes into a file.
///
/// Fill one with `put` and `put_meta`, empty it again with `take` and
/// `take_meta`. Names are the crate's own, never a user's, and hold no `/`.
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
    /// Which learner wrote it.
    pub(super) kind: String,
    pub(super) meta: Map<String, Value>,
    pub(super) arrays: BTreeMap<String, Array>,
    /// The file it came from, for messages.
    pub(super) origin: String,
}

/// `kind` and `meta` of a bundle in its JSON form.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) kind: String,
    pub(super) meta: Map<String, Value>,
}

impl Bundle {
    /// An empty bundle of the learner `kind`.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            meta: Map::new(),
            arrays: BTreeMap::new(),
            origin: UNNAMED.into(),
        }
    }

    /// Which learner wrote it.
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

    /// Metadata and arrays, to be damaged.
    #[cfg(test)]
    pub(crate) fn parts_mut(&mut self) -> (&mut Map<String, Value>, &mut BTreeMap<String, Array>) {
        (&mut self.meta, &mut self.arrays)
    }

    /// The error for contents that make no sense, naming the file. Learners use
    /// it for what only they can check: a child that does not exist, lengths
    /// that do not match.
    pub fn damaged(&self, what: impl Display) -> Error {
        Error::ModelFile(format!("{}: damaged model: {what}", self.origin))
    }

    /// An error unless the bundle is of `kind`.
    pub fn expect_kind(&self, kind: &str) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(Error::ModelFile(format!(
            "{}: holds a model of kind {:?}, expected {kind:?}",
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
    /// Floats that are not finite, or above 1e38 in size (1e100 in double precision), are an error:
    /// learning keeps every number of a model below that, and goes on from any such number without
    /// exceeding it (`linear/pn.rs`). What may be infinite or unknown is read by
    /// [`take_any`](Self::take_any).
    pub fn take<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        let array = self.take_array(name, None, |_| true)?;
        Ok(array.into_vec())
    }

    /// As [`take`](Self::take), whatever the floats are.
    pub fn take_any<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        let array = self.take_array(name, None, |_| false)?;
        Ok(array.into_vec())
    }

    /// As [`take`](Self::take), of `len` elements if that is given, and leaves the array in the
    /// file if it lies there: then it is not checked, as that would read all of it.
    pub fn take_flat<T: Element>(&mut self, name: &str, len: Option<usize>) -> Result<Flat<T>> {
        self.take_array(name, len, |array| !array.is_mapped())
    }

    /// An array, of `len` elements if that is given, whose floats are checked if `has_bounds`.
    pub(super) fn take_array<T: Element>(
        &mut self,
        name: &str,
        len: Option<usize>,
        has_bounds: impl Fn(&Array) -> bool,
    ) -> Result<Flat<T>> {
        let array = match self.arrays.remove(name) {
            None => return Err(self.damaged(format_args!("array {name:?} is missing"))),
            Some(Array::I16(numbers)) if T::NAME == f32::NAME => self.widened(name, &numbers)?,
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
                other.type_name(),
                T::NAME
            ))
        })?;
        match len {
            Some(expected) if expected != elements.len() => Err(self.damaged(format_args!(
                "array {name:?} has {} elements, expected {expected}",
                elements.len()
            ))),
            _ => Ok(elements),
        }
    }

    /// Stores those arrays of single precision in 16 bits that `is_chosen` says by name (nested
    /// bundles have their names before those of their arrays), but for arrays with numbers that are
    /// not finite. They come back as single precision; no number changes by more than 2^-16 of the
    /// largest of its 64 neighbours.
    pub fn narrow(&mut self, is_chosen: impl Fn(&str) -> bool) {
        let mut scales = Vec::new();
        for (name, array) in self.arrays.iter_mut().filter(|(name, _)| is_chosen(name)) {
            if let Array::F32(floats) = array {
                if let Some((numbers, sizes)) = quantize(floats) {
                    *array = numbers.into();
                    scales.push((format!("{name}{SCALE}"), sizes.into()));
                }
            }
        }
        self.arrays.extend(scales);
    }

    /// Floats that [`narrow`](Self::narrow) has stored as `numbers`.
    fn widened(&mut self, name: &str, numbers: &[i16]) -> Result<Array> {
        let sizes: Flat<f32> = self.take_flat(&format!("{name}{SCALE}"), None)?;
        let floats = restore(numbers, &sizes);
        floats.map(Array::from).ok_or_else(|| {
            self.damaged(format_args!(
                "array {name:?} has another length than its scale"
            ))
        })
    }

    /// The first array of floats with one of which `is_wrong` holds: for checks of what was
    /// learned. Statistics of nodes are none of it, of which some are unknown: NaN.
    pub(crate) fn array_with(&self, is_wrong: impl Fn(f64) -> bool) -> Option<String> {
        let holds_one = |array: &Array| match array {
            Array::F32(floats) => floats.iter().any(|&float| is_wrong(float.into())),
            Array::F64(floats) => floats.iter().any(|&float| is_wrong(float)),
            _ => false,
        };
        let mut arrays = self.arrays.iter();
        let found = arrays.find(|(name, array)| !name.contains("statistics/") && holds_one(array));
        found.map(|(name, _)| name.clone())
    }

    /// Stores a value as JSON. JSON has no infinities and no NaN (they would
    /// become null) and no integers above 64 bits: put such values into an array.
    ///
    /// # Panics
    ///
    /// When the type cannot be JSON at all, like a map whose keys are not
    /// strings; any test that saves the model finds it.
    pub fn put_meta(&mut self, key: &str, value: &impl Serialize) {
        debug_assert!(is_name(key), "{key:?} cannot name metadata");
        let value = serde_json::to_value(value).expect("metadata of a type that JSON can express");
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

    /// Puts a whole bundle inside this one, like a tree into its forest.
    pub fn nest(&mut self, prefix: &str, inner: Self) {
        debug_assert!(is_name(prefix), "{prefix:?} cannot name a bundle");
        let prefix = format!("{prefix}/");
        for (name, array) in inner.arrays {
            self.arrays.insert(prefix.clone() + &name, array);
        }
        let head = Map::from_iter([
            ("kind".into(), Value::String(inner.kind)),
            ("meta".into(), Value::Object(inner.meta)),
        ]);
        let before = self.meta.insert(prefix, Value::Object(head));
        debug_assert!(before.is_none(), "bundle stored twice");
    }

    /// Moves a nested bundle out.
    pub fn unnest(&mut self, prefix: &str) -> Result<Self> {
        let prefix = format!("{prefix}/");
        let Head { kind, meta } = self.take_meta(&prefix)?;
        // '0' is the character after '/': the names from one to the other are
        // exactly those that begin with the prefix.
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

/// Floats that share the size of a step.
const FLOATS_PER_STEP: usize = 64;
/// The largest number of steps.
const MAX_STEPS: f32 = i16::MAX as f32;

/// Numbers of steps, and their size block by block; none where a float is infinite or none. No
/// float changes by more than 2^-16 of the largest of its block.
pub(super) fn quantize(floats: &[f32]) -> Option<(Vec<i16>, Vec<f32>)> {
    let mut numbers = Vec::with_capacity(floats.len());
    let mut sizes = Vec::with_capacity(floats.len().div_ceil(FLOATS_PER_STEP));
    for block in floats.chunks(FLOATS_PER_STEP) {
        let largest = block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        if !block.iter().all(|x| x.is_finite()) {
            return None;
        }
        let size = largest / MAX_STEPS;
        // Of the smallest floats there are no steps; they become 0.
        let per_step = if size.is_normal() { size.recip() } else { 0.0 };
        numbers.extend(block.iter().map(|x| (x * per_step).round() as i16));
        sizes.push(size);
    }
    Some((numbers, sizes))
}

/// The floats again; none where these are not as many sizes as blocks.
pub(super) fn restore(numbers: &[i16], sizes: &[f32]) -> Option<Vec<f32>> {
    let blocks = numbers.chunks(FLOATS_PER_STEP).zip(sizes);
    let floats = blocks.flat_map(|(block, size)| block.iter().map(move |&n| f32::from(n) * size));
    (sizes.len() == numbers.len().div_ceil(FLOATS_PER_STEP)).then(|| floats.collect())
}
