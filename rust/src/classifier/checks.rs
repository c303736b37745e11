//! What a model was made for: so many classes, so many columns.

use crate::data::{Batch, Rows, Targets};
use crate::error::{Error, Result};

/// Class numbers are `i32` where they go out.
const MOST_CLASSES: usize = i32::MAX as usize;

/// An error where there can be no model of so many classes.
pub(crate) fn n_classes(n_classes: usize) -> Result<()> {
    if (1..=MOST_CLASSES).contains(&n_classes) {
        return Ok(());
    }
    let allowed = format!("from 1 to {MOST_CLASSES}");
    Err(Error::parameter("n_classes", n_classes, allowed))
}

/// An error where y has not the classes of the model.
pub(crate) fn check_classes(of_y: usize, n_classes: usize) -> Result<()> {
    if of_y == n_classes {
        return Ok(());
    }
    Err(Error::data(format!(
        "y has {of_y} classes, the model {n_classes}"
    )))
}

/// An error where nothing was learned yet: there is nothing to predict with.
pub(crate) fn nothing_learned() -> Error {
    Error::data("nothing was learned yet")
}

/// An error where y has not the classes of the model, or sets of labels where it must not.
pub(crate) fn targets(
    batch: &Batch<'_>,
    learner: &str,
    n_classes: usize,
    label_sets: bool,
) -> Result<()> {
    match (batch.targets, label_sets) {
        (Targets::Sets(_), false) => return Err(one_label_per_row(learner)),
        (Targets::One(_), true) => {
            let what = "the model learns sets of labels, y holds single labels";
            return Err(Error::data(what));
        }
        _ => {}
    }
    check_classes(batch.targets.n_classes(), n_classes)
}

/// The error for sets of labels where the learner takes one label per row.
pub(crate) fn one_label_per_row(learner: &str) -> Error {
    Error::data(format!(
        "{learner} learns one label per row, y holds sets of labels"
    ))
}

/// An error where values may be missing.
pub(crate) fn no_missing_values(rows: &Rows<'_>, learner: &str) -> Result<()> {
    if rows.may_miss_values() {
        return Err(Error::data(format!(
            "{learner} takes no missing values in X"
        )));
    }
    Ok(())
}
