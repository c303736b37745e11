//! Training in steps: further passes over all rows, and passes over data that lie in parts, such as
//! the partitions of a cluster or of a file. A model visits one part after the other, so no place
//! holds all rows.
//!
//! The first steps observe each part, the others learn. Classes of one-against-all and members of an
//! ensemble do not depend on each other, so models of some of them can visit the parts at the same
//! time. [`join`](crate::model::Learner::join) makes one model of them.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::interface::{checks, Learner};
use super::online::{each_member, First, OnlineLearner, OnlineParams as _};
use super::online_model::{passes_of, OnlineModel};
use super::predict::FrozenMembers;
use super::schedule::{PartStep, Schedule};
use crate::control::Control;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::file::Bundle;

impl<L: OnlineLearner> OnlineModel<L> {
    /// Makes further passes, without early stopping.
    pub(super) fn fit_further(
        &mut self,
        schedule: Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        if self.members.is_empty() {
            return Err(checks::nothing_learned());
        }
        self.check_stream(batch, self.n_classes)?;
        let weights = self.scaled_weights(self.mean_weight, batch);
        let batch = &batch.with_weights(weights.as_deref());
        let schedule = Schedule {
            // Another order than in the first passes.
            seed: !schedule.seed,
            early_stopping: false,
            ..schedule
        };
        self.frozen = FrozenMembers::due_at_once();
        let passes = passes_of(schedule, self.members.len(), batch, control);
        let results = each_member(&mut self.members, n_threads, passes)?;
        results.into_iter().collect()
    }

    /// Observes or learns a part of the data. An interrupted step has learned some of its rows.
    pub(super) fn take_step(
        &mut self,
        batch: &Batch<'_>,
        step: PartStep,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.check_stream(batch, self.n_classes)?;
        let mut present = batch.present();
        let PartStep::Learn {
            n_rows,
            seed,
            repeats,
        } = step
        else {
            if self.members.is_empty() {
                let preparation = self.params.preparation(batch)?;
                self.members = self.new_members(&preparation, batch, First::Part)?;
            }
            self.mean_weight.add_rows(batch, &present);
            let mut members = self.members.iter_mut();
            return members
                .try_for_each(|m| m.preparation.observe_all(&batch.rows, &present, control));
        };
        if self.members.is_empty() {
            return Err(checks::nothing_learned());
        }
        let weights = self.scaled_weights(self.mean_weight, batch);
        let batch = &batch.with_weights(weights.as_deref());
        present.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        self.frozen = FrozenMembers::due_at_once();
        control.set_total(self.members.len() as u64 * present.len() as u64);
        let clock = (n_rows as f64).recip();
        let results = each_member(&mut self.members, n_threads, |_, member, n_threads| {
            member.learn(batch, &present, clock, repeats, n_threads, control)
        })?;
        results.into_iter().collect()
    }

    /// Joins models that were trained side by side; see [`OnlineLearner::join`].
    pub(super) fn joined(
        params: L::Params,
        n_classes: usize,
        label_sets: bool,
        parts: Vec<Bundle>,
    ) -> Result<Self> {
        let mut model = Self::create(params, n_classes, label_sets)?;
        let (mut members, mut known) = (Vec::new(), Vec::new());
        for part in parts {
            let part = Self::from_bundle(part)?;
            model.mean_weight = part.mean_weight;
            known.extend(part.members.iter().map(|_| part.n_classes));
            members.extend(part.members);
        }
        model.members = L::join(&model.params, n_classes, &known, members)?;
        if model.members.len() == L::n_members(&model.params) {
            return Ok(model);
        }
        Err(Error::data(format!(
            "{} members were joined to a model of {}",
            model.members.len(),
            L::n_members(&model.params)
        )))
    }
}
