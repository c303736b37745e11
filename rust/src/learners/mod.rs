//! The learners, a folder each, and the list by which Python, files and the command line find them.

pub mod gamble;
pub mod label_tree;
pub mod ldsm;
pub mod lomtree;
#[cfg(test)]
mod number_tests;
pub mod oaa;
mod one_against_some;
pub mod recall_tree;
#[cfg(test)]
mod unfrozen_tests;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::model::{Classifier, Learner, OnlineModel};
use crate::params::{Parameter, Params};

/// The finaliser of SplitMix64: every bit of `z` changes about half of the result's bits.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Every learner: all that Python, files and the command line know of it.
pub const LEARNERS: &[Registration] = &[
    Registration::of::<OnlineModel<oaa::Oaa>>("oaa"),
    Registration::of::<OnlineModel<lomtree::LomTree>>("lomtree"),
    Registration::of::<OnlineModel<recall_tree::OnlineRecallTree>>("recall-tree"),
    Registration::variant::<OnlineModel<label_tree::LabelTree>>(
        "filter-tree",
        r#"{"policy": "filter"}"#,
        "{}",
    ),
    Registration::variant::<OnlineModel<label_tree::LabelTree>>(
        "random-tree",
        r#"{"policy": "random"}"#,
        "{}",
    ),
    Registration::of::<ldsm::Ldsm>("ldsm"),
    Registration::variant::<gamble::Gamble>("gamble", r#"{"algorithm": "gamble"}"#, "{}"),
    Registration::variant::<gamble::Gamble>(
        "samme",
        r#"{"algorithm": "samme", "clip": false}"#,
        r#"{"n_estimators": 300, "max_leaves": 15, "learning_rate": 1.0, "max_features": 1.0,
            "subsample": 1.0, "trim": 0.0}"#,
    ),
];

/// The learner of this name.
pub fn find(name: &str) -> Result<&'static Registration> {
    LEARNERS
        .iter()
        .find(|learner| learner.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = LEARNERS.iter().map(|learner| learner.name).collect();
            Error::parameter("learner", name, format!("one of {}", names.join(", ")))
        })
}

/// The model in `bundle`, whatever its learner.
pub fn load(bundle: Bundle) -> Result<Box<dyn Classifier>> {
    match LEARNERS
        .iter()
        .find(|learner| learner.kind == bundle.kind())
    {
        Some(learner) => learner.load(bundle),
        None => Err(bundle.damaged(format_args!("unknown kind {:?}", bundle.kind()))),
    }
}

/// A learner as it is found by name.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// The name users know.
    pub name: &'static str,
    /// The kind in files; several names may share one.
    pub kind: &'static str,
    /// Parameters that make the difference between the names of one kind, as JSON. They are
    /// fixed.
    fixed: &'static str,
    /// Defaults of this name that are not those of the kind, as JSON.
    defaults: &'static str,
    list: fn() -> Vec<Parameter>,
    create: fn(&str, usize, bool) -> Result<Box<dyn Classifier>>,
    load: fn(Bundle) -> Result<Box<dyn Classifier>>,
}

impl Registration {
    /// A learner under its own name.
    pub const fn of<L: Learner>(name: &'static str) -> Self {
        Self::variant::<L>(name, "{}", "{}")
    }

    /// A learner with some parameters `fixed` and other `defaults`, both as JSON.
    pub const fn variant<L: Learner>(
        name: &'static str,
        fixed: &'static str,
        defaults: &'static str,
    ) -> Self {
        Self {
            name,
            kind: L::KIND,
            fixed,
            defaults,
            list: <L::Params as Params>::list,
            create: |json, n_classes, label_sets| {
                let params = L::Params::from_json(json)?;
                Ok(Box::new(L::create(params, n_classes, label_sets)?))
            },
            load: |bundle| Ok(Box::new(L::from_bundle(bundle)?)),
        }
    }

    /// The parameters that can be chosen.
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

    /// A model that has learned nothing, of the parameters in `json`.
    pub fn create(
        &self,
        json: &str,
        n_classes: usize,
        label_sets: bool,
    ) -> Result<Box<dyn Classifier>> {
        let mut params = object(self.defaults)?;
        params.extend(object(json)?);
        params.extend(object(self.fixed)?);
        (self.create)(&Value::Object(params).to_string(), n_classes, label_sets)
    }

    /// The model in `bundle`, whose kind has been looked at.
    pub fn load(&self, bundle: Bundle) -> Result<Box<dyn Classifier>> {
        (self.load)(bundle)
    }
}

fn object(json: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(json).map_err(|error| Error::data(format!("parameters: {error}")))
}
