//! The target that reads parameters and options of prediction from JSON.

use xmtree::learners::LEARNERS;
use xmtree::model::PredictOptions;

/// Creates a model. The first byte chooses the learner, the others are its parameters.
pub fn parameters(data: &[u8]) {
    let Some((&first, json)) = data.split_first() else {
        return;
    };
    let Ok(json) = std::str::from_utf8(json) else {
        return;
    };
    let _ = PredictOptions::from_json(json);
    let learner = &LEARNERS[usize::from(first) % LEARNERS.len()];
    for label_sets in [false, true] {
        let Ok(mut model) = learner.create(json, 5, label_sets) else {
            continue;
        };
        // The JSON that a model writes must be accepted, its fixed parameters included.
        let written = model.params_json().unwrap();
        let again = learner.create(&written, 5, label_sets).unwrap();
        assert_eq!(again.params_json().unwrap(), written);
        let _ = model.set_params(json);
    }
}
