//! Storing and restoring of online models and their members.

use super::interface::{checks, Learner};
use super::online::{Member, OnlineLearner};
use super::online_model::OnlineModel;
use super::predict::FrozenMembers;
use super::schedule::Mistakes;
use crate::control::Control;
use crate::data::{MeanWeight, Preparation, Scaling};
use crate::error::Result;
use crate::file::Bundle;
use crate::params::Params;
use crate::threads::Pool;

/// Kind of a member's bundle, and prefix of its name in the bundle of the model.
const MEMBER: &str = "member";

impl<L: OnlineLearner> Member<L> {
    /// Returns the bundle of the member, with its learner or a version of it for prediction only.
    pub(super) fn to_bundle(&self, learner: &L) -> Bundle {
        let mut bundle = Bundle::new(MEMBER);
        self.preparation.put(&mut bundle);
        bundle.put_meta("progress", &self.progress);
        learner.put(&mut bundle);
        bundle
    }

    /// Restores a member from [`to_bundle`](Self::to_bundle).
    pub(super) fn from_bundle(
        params: &L::Params,
        n_classes: usize,
        for_prediction: bool,
        mut bundle: Bundle,
    ) -> Result<Self> {
        let preparation = Preparation::take(&mut bundle)?;
        let progress: Mistakes = bundle.take_meta("progress")?;
        let is_sound = progress.is_sound();
        bundle.require(is_sound, "the counts of \"progress\" are out of range")?;
        let learner = L::take(params, n_classes, &preparation, for_prediction, &mut bundle)?;
        Ok(Self {
            preparation,
            progress,
            learner,
        })
    }
}

impl<L: OnlineLearner> OnlineModel<L> {
    /// Returns the state that predictions need; see [`OnlineLearner::NARROW_ARRAYS`] for `compact`.
    /// Arrays are narrowed only if rows are scaled, because otherwise a small weight may belong to
    /// large values.
    pub(super) fn for_prediction(&self, compact: bool, control: &Control) -> Result<Bundle> {
        let is_narrow = |name: &str| L::NARROW_ARRAYS.iter().any(|start| name.starts_with(start));
        let members = self.members.iter().map(|member| {
            let mut bundle = member.to_bundle(&member.learner.for_prediction(control)?);
            if compact && member.preparation.scaling() != Scaling::None {
                bundle.narrow(is_narrow);
            }
            Ok(bundle)
        });
        Ok(self.stored(true, members.collect::<Result<Vec<_>>>()?))
    }

    /// Returns the bundle of the model from the bundles of its members.
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
        if label_sets {
            L::check_label_sets(&params)?;
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

    fn join(
        params: L::Params,
        n_classes: usize,
        label_sets: bool,
        parts: Vec<Bundle>,
    ) -> Result<Self> {
        Self::joined(params, n_classes, label_sets, parts)
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
        let is_sound = model.mean_weight.is_sound();
        bundle.require(is_sound, "\"mean_weight\" is out of range")?;
        model.for_prediction = bundle.take_meta("for_prediction")?;
        let n_members: usize = bundle.take_meta("n_members")?;
        // There are fewer members after an interrupted fit.
        let is_allowed = n_members <= L::n_members(&model.params);
        bundle.require(is_allowed, "it has more members than its parameters allow")?;
        for number in 0..n_members {
            let inner = bundle.unnest(&format!("{MEMBER}{number}"))?;
            let member =
                Member::from_bundle(&model.params, n_classes, model.for_prediction, inner)?;
            model.members.push(member);
        }
        Ok(model)
    }
}
