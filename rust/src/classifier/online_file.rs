//! Online models as bundles: whole, or for prediction only, and back.

use super::{Learner, Member, Mistakes, OnlineLearner, OnlineModel};
use crate::control::Control;
use crate::data::{Preparation, Scaling};
use crate::error::Result;
use crate::file::Bundle;

/// Kind of a member inside the model.
const MEMBER: &str = "member";

impl<L: OnlineLearner> OnlineModel<L> {
    /// The whole state.
    pub(super) fn stored(&self) -> Bundle {
        let mut bundle = self.head(self.for_prediction);
        for (number, member) in self.members.iter().enumerate() {
            bundle.nest(&format!("{MEMBER}{number}"), member.to_bundle());
        }
        bundle
    }

    /// What predictions need. With `half` weights have half the bits, but only where rows are
    /// scaled: where they are as they came, a small weight may belong to large values.
    pub(super) fn stored_for_prediction(&self, half: bool, control: &Control) -> Result<Bundle> {
        let mut bundle = self.head(true);
        for (number, member) in self.members.iter().enumerate() {
            let slim = Member {
                preparation: member.preparation.clone(),
                progress: member.progress,
                learner: member.learner.for_prediction(control)?,
            };
            let mut inner = slim.to_bundle();
            let is_halved = half && member.preparation.scaling() != Scaling::None;
            let is_narrow = |name: &str| L::NARROW.iter().any(|start| name.starts_with(start));
            inner.narrow(|name| is_halved && is_narrow(name));
            bundle.nest(&format!("{MEMBER}{number}"), inner);
        }
        Ok(bundle)
    }

    /// The inverse of both.
    pub(super) fn restored(mut bundle: Bundle) -> Result<Self> {
        let params: L::Params = bundle.take_meta("params")?;
        let (n_classes, label_sets) = (
            bundle.take_meta("n_classes")?,
            bundle.take_meta("label_sets")?,
        );
        let mut model =
            Self::create(params, n_classes, label_sets).map_err(|error| bundle.damaged(error))?;
        model.mean_weight = bundle.take_meta("mean_weight")?;
        if !model.mean_weight.is_sound() {
            return Err(bundle.damaged("\"mean_weight\" is none"));
        }
        model.for_prediction = bundle.take_meta("for_prediction")?;
        let n_members: usize = bundle.take_meta("n_members")?;
        // There are fewer after a fit that was stopped half way.
        if n_members > L::n_members(&model.params) {
            return Err(bundle.damaged("there are more members than the parameters say"));
        }
        for number in 0..n_members {
            let mut inner = bundle.unnest(&format!("{MEMBER}{number}"))?;
            let preparation = Preparation::take(&mut inner)?;
            let progress: Mistakes = inner.take_meta("progress")?;
            if !progress.is_sound() {
                return Err(bundle.damaged("\"progress\" is no count of mistakes"));
            }
            let learner = L::take(
                &model.params,
                n_classes,
                &preparation,
                model.for_prediction,
                &mut inner,
            )?;
            model.members.push(Member {
                preparation,
                progress,
                learner,
            });
        }
        Ok(model)
    }

    /// Everything that is stored but the members.
    fn head(&self, for_prediction: bool) -> Bundle {
        let mut bundle = Bundle::new(L::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("label_sets", &self.label_sets);
        bundle.put_meta("n_members", &self.members.len());
        bundle.put_meta("mean_weight", &self.mean_weight);
        bundle.put_meta("for_prediction", &for_prediction);
        bundle
    }
}

impl<L: OnlineLearner> Member<L> {
    pub(super) fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(MEMBER);
        self.preparation.put(&mut bundle);
        bundle.put_meta("progress", &self.progress);
        self.learner.put(&mut bundle);
        bundle
    }
}
