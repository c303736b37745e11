//! The learners, a folder each, and the list of them.

pub mod gamble;
pub mod label_tree;
pub mod ldsm;
pub mod lomtree;
#[cfg(test)]
mod number_tests;
pub mod oaa;
pub mod recall_tree;
#[cfg(test)]
mod unfrozen_tests;

use crate::classifier::{Classifier, OnlineModel, Registration};
use crate::error::{Error, Result};
use crate::file::Bundle;

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
        r#"{"label_order": "random"}"#,
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
