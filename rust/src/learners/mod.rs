//! The learners, each in a folder, and their registry for Python, files and the command line.

pub mod gamble;
pub mod label_tree;
pub mod ldsm;
pub mod lomtree;
#[cfg(test)]
mod number_tests;
pub mod oaa;
pub(crate) mod one_against_some;
#[cfg(test)]
mod parts_tests;
pub mod recall_tree;
#[cfg(test)]
mod unfrozen_tests;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::model::{Classifier, Learner, OnlineModel};
use crate::params::{Parameter, Params};

/// Returns the finalizer of SplitMix64: each bit of `z` changes about half of the result's bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// All learners, as Python, files and the command line find them.
pub const LEARNERS: &[Registration] = &[
    Registration::of::<OnlineModel<oaa::Oaa>>("oaa"),
    Registration::of::<OnlineModel<lomtree::LomTree>>("lomtree"),
    Registration::of::<OnlineModel<recall_tree::OnlineRecallTree>>("recall-tree"),
    Registration::of::<OnlineModel<label_tree::LabelTree>>("filter-tree")
        .with(r#"{"policy": "filter"}"#, "{}"),
    Registration::of::<OnlineModel<label_tree::LabelTree>>("random-tree")
        .with(r#"{"policy": "random"}"#, "{}"),
    Registration::of::<ldsm::Ldsm>("ldsm"),
    Registration::of::<gamble::Gamble>("gamble").with(
        r#"{"algorithm": "gamble", "votes": "discrete"}"#,
        r#"{"linear": true}"#,
    ),
    Registration::of::<gamble::Gamble>("samme").with(
        r#"{"algorithm": "samme", "clip": false, "linear": false}"#,
        r#"{"n_estimators": 300, "max_leaves": 15, "learning_rate": 1.0, "max_features": 1.0,
            "subsample": 1.0, "trim": 0.0}"#,
    ),
];

/// Returns the learner with this name.
pub fn find(name: &str) -> Result<&'static Registration> {
    LEARNERS
        .iter()
        .find(|learner| learner.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = LEARNERS.iter().map(|learner| learner.name).collect();
            Error::parameter("learner", name, format!("one of {}", names.join(", ")))
        })
}

/// Loads the model in `bundle`, of any learner.
pub fn load(bundle: Bundle) -> Result<Box<dyn Classifier>> {
    match LEARNERS
        .iter()
        .find(|learner| learner.kind == bundle.kind())
    {
        Some(learner) => (learner.load)(bundle),
        None => Err(bundle.damaged(format_args!("unknown kind {:?}", bundle.kind()))),
    }
}

/// [`Learner::join`] of any learner, with the parameters as JSON.
type Join = fn(&str, usize, bool, Vec<Bundle>) -> Result<Box<dyn Classifier>>;

/// A learner in the registry.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// Name for users.
    pub name: &'static str,
    /// Kind in files, which several names may share.
    pub kind: &'static str,
    /// Fixed parameters, as JSON. They distinguish the names of one kind.
    fixed: &'static str,
    /// Defaults that differ from those of the kind, as JSON.
    defaults: &'static str,
    list: fn() -> Vec<Parameter>,
    create: fn(&str, usize, bool) -> Result<Box<dyn Classifier>>,
    load: fn(Bundle) -> Result<Box<dyn Classifier>>,
    join: Join,
}

impl Registration {
    /// Returns the entry of a learner.
    pub const fn of<L: Learner>(name: &'static str) -> Self {
        Self {
            name,
            kind: L::KIND,
            fixed: "{}",
            defaults: "{}",
            list: <L::Params as Params>::list,
            create: |json, n_classes, label_sets| {
                let params = L::Params::from_json(json)?;
                Ok(Box::new(L::create(params, n_classes, label_sets)?))
            },
            load: |bundle| Ok(Box::new(L::from_bundle(bundle)?)),
            join: |json, n_classes, label_sets, parts| {
                let params = L::Params::from_json(json)?;
                Ok(Box::new(L::join(params, n_classes, label_sets, parts)?))
            },
        }
    }

    /// Sets `fixed` parameters and other `defaults`, both as JSON.
    const fn with(self, fixed: &'static str, defaults: &'static str) -> Self {
        Self {
            fixed,
            defaults,
            ..self
        }
    }

    /// Returns the parameters that are not fixed.
    pub fn parameters(&self) -> Result<Vec<Parameter>> {
        let (fixed, mut defaults) = (object(self.fixed)?, object(self.defaults)?);
        let mut list = (self.list)();
        list.retain(|parameter| !fixed.contains_key(parameter.name));
        for parameter in &mut list {
            if let Some(default) = defaults.remove(parameter.name) {
                parameter.default = default;
            }
        }
        Ok(list)
    }

    /// Returns an untrained model with the parameters in `json`.
    pub fn create(
        &self,
        json: &str,
        n_classes: usize,
        label_sets: bool,
    ) -> Result<Box<dyn Classifier>> {
        (self.create)(&self.complete(json)?, n_classes, label_sets)
    }

    /// Returns the model with the parameters in `json` that consists of `parts`; see
    /// [`Learner::join`].
    pub fn join(
        &self,
        json: &str,
        n_classes: usize,
        label_sets: bool,
        parts: Vec<Bundle>,
    ) -> Result<Box<dyn Classifier>> {
        (self.join)(&self.complete(json)?, n_classes, label_sets, parts)
    }

    fn complete(&self, json: &str) -> Result<String> {
        let mut params = object(self.defaults)?;
        params.extend(object(json)?);
        params.extend(object(self.fixed)?);
        Ok(Value::Object(params).to_string())
    }
}

fn object(json: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(json).map_err(|error| Error::data(format!("parameters: {error}")))
}
