//! Online models and their members, taken apart into arrays and put together again.

use super::interface::{checks, Learner};
use super::online::{Member, OnlineLearner};
use super::online_model::OnlineModel;
use super::predict::FrozenMembers;
use super::schedule::Mistakes;
use crate::control::Control;
use crate::data::{MeanWeight, Preparation};
use crate::error::Result;
use crate::file::Bundle;
use crate::params::Params;
use crate::threads::Pool;

/// Kind of a member's bundle, and the beginning of its name in that of the model.
const MEMBER: &str = "member";

impl<L: OnlineLearner> Member<L> {
    /// The same for prediction only; see [`OnlineLearner::for_prediction`].
    pub(super) fn for_prediction(&self, control: &Control) -> Result<Self> {
        Ok(Self {
            preparation: self.preparation.clone(),
            progress: self.progress,
            learner: self.learner.for_prediction(control)?,
        })
    }

    pub(super) fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(MEMBER);
        self.preparation.put(&mut bundle);
        bundle.put_meta("progress", &self.progress);
        self.learner.put(&mut bundle);
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub(super) fn from_bundle(
        params: &L::Params,
        n_classes: usize,
        for_prediction: bool,
        mut bundle: Bundle,
    ) -> Result<Self> {
        let preparation = Preparation::take(&mut bundle)?;
        let progress: Mistakes = bundle.take_meta("progress")?;
        if !progress.is_sound() {
            return Err(bundle.damaged("\"progress\" is no count of mistakes"));
        }
        let learner = L::take(params, n_classes, &preparation, for_prediction, &mut bundle)?;
        Ok(Self {
            preparation,
            progress,
            learner,
        })
    }
}

impl<L: OnlineLearner> OnlineModel<L> {
    /// What predictions need, with half the bits for arrays that `is_narrow` names.
    pub(super) fn for_prediction(
        &self,
        control: &Control,
        is_narrow: impl Fn(&Member<L>, &str) -> bool,
    ) -> Result<Bundle> {
        let members = self.members.iter().map(|member| {
            let mut bundle = member.for_prediction(control)?.to_bundle();
            bundle.narrow(|name| is_narrow(member, name));
            Ok(bundle)
        });
        Ok(self.stored(true, members.collect::<Result<Vec<_>>>()?))
    }

    /// The bundle of a model whose members are in bundles.
    pub(super) fn stored(
        &self,
        for_prediction: bool,
        members: impl IntoIterator<Item = Bundle>,
    ) -> Bundle {
        let mut bundle = Bundle::new(L::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("label_sets", &self.label_sets);
        bundle.put_meta("n_members", &self.members.len());
        bundle.put_meta("mean_weight", &self.mean_weight);
        bundle.put_meta("for_prediction", &for_prediction);
        for (number, member) in members.into_iter().enumerate() {
            bundle.nest(&format!("{MEMBER}{number}"), member);
        }
        bundle
    }
}

impl<L: OnlineLearner> Learner for OnlineModel<L> {
    const KIND: &'static str = L::KIND;

    type Params = L::Params;

    fn create(params: L::Params, n_classes: usize, label_sets: bool) -> Result<Self> {
        checks::n_classes(n_classes)?;
        let params = params.check()?;
        if label_sets && !L::LABEL_SETS {
            return Err(checks::one_label_per_row(L::name(&params)));
        }
        Ok(Self {
            params,
            n_classes,
            label_sets,
            members: Vec::new(),
            mean_weight: MeanWeight::default(),
            for_prediction: false,
            frozen: FrozenMembers::due_at_once(),
            memories: Pool::default(),
        })
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
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
            let inner = bundle.unnest(&format!("{MEMBER}{number}"))?;
            let member =
                Member::from_bundle(&model.params, n_classes, model.for_prediction, inner)?;
            model.members.push(member);
        }
        Ok(model)
    }
}
