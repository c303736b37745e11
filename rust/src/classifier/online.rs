//! What a learner must offer that takes examples one after the other;
//! [`OnlineModel`](super::OnlineModel) does the rest.

use std::fmt::Debug;

use super::{
    block_rows, each_block, row_values, Learning, Mistakes, PredictOptions, Schedule, TopK,
};
use crate::alloc::filled;
use crate::control::Control;
use crate::data::{Batch, Preparation, Rows};
use crate::error::Result;
use crate::file::{Bundle, Report};
use crate::params::Params;
use crate::pool::Lent;
use crate::tree::FrozenRouters;

/// What a new member must know.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Number of classes.
    pub n_classes: usize,
    /// Whether rows have sets of labels.
    pub label_sets: bool,
    /// How examples will be read.
    pub preparation: &'a Preparation,
    /// The examples to come first.
    pub batch: &'a Batch<'a>,
    /// Whether these are all there will be (`fit`), and not the beginning of a stream.
    pub is_all: bool,
}

/// The parameters of an online learner; [`params!`](macro@crate::params) implements it.
pub trait OnlineParams: Params {
    /// The passes of `fit`.
    fn schedule(&self) -> Schedule;

    /// Whether importances count relative to their mean.
    fn scale_weights(&self) -> bool;

    /// How examples are scaled and hashed, decided from the first rows.
    fn preparation(&self, batch: &Batch<'_>) -> Result<Preparation>;
}

/// A learner that takes examples one after the other: one member of an [`OnlineModel`](super::OnlineModel).
pub trait OnlineLearner: Clone + Debug + Send + Sync + Sized + 'static {
    /// Name in files; see [`Classifier::kind`](super::Classifier::kind).
    const KIND: &'static str;
    /// Whether rows may have sets of labels.
    const LABEL_SETS: bool = false;
    /// Whether it can write down what it answered before it learned.
    const ANSWERS: bool = false;
    /// Beginnings of the names of those arrays that half the bits are enough for in prediction.
    const NARROW: &'static [&'static str];
    /// Its parameters.
    type Params: OnlineParams;
    /// What prediction uses.
    type Frozen: Clone + Debug + Send + Sync;
    /// What one thread predicts with.
    type Predictor<'a>: Predictor;
    /// What a predictor works in, if that takes longer to make than a row to predict.
    type Memory: Clone + Default + Debug + Send;

    /// Name of the learner in messages.
    fn name(params: &Self::Params) -> &'static str;

    /// Number of members of an ensemble.
    fn n_members(_params: &Self::Params) -> usize {
        1
    }

    /// One that has learned nothing.
    fn new(params: &Self::Params, start: &Start<'_>) -> Result<Self>;

    /// The rows of a stream's batch that are learned.
    fn present(_params: &Self::Params, batch: &Batch<'_>) -> Vec<u32> {
        batch.present()
    }

    /// Refuses parameters with which it cannot learn from a stream.
    fn check_stream(_params: &Self::Params) -> Result<()> {
        Ok(())
    }

    /// Adds classes of which it has learned nothing, so that there are `n_classes`; on an error it
    /// stays as it was.
    fn add_classes(&mut self, n_classes: usize) -> Result<()>;

    /// Learns in the passes of `schedule`.
    fn fit(
        member: &mut Member<Self>,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        member.run_passes(schedule, batch, n_threads, control)
    }

    /// Learns examples in their order.
    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()>;

    /// What prediction uses. Costs as much as the model is large.
    fn freeze(&self, control: &Control) -> Result<Self::Frozen>;

    /// For predictions of one thread: by what [`freeze`](Self::freeze) made of each member, or by
    /// the members as they are, to the same bit.
    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [Self::Frozen]>,
        options: &PredictOptions,
        memory: Lent<'a, Self::Memory>,
    ) -> Self::Predictor<'a>;

    /// Refuses options of prediction that it does not have.
    fn check_options(params: &Self::Params, options: &PredictOptions) -> Result<()> {
        options.refuse(Self::name(params))
    }

    /// Rows of `row_values` values to be predicted together.
    fn block_rows(row_values: usize) -> usize {
        block_rows(row_values, FrozenRouters::BLOCK)
    }

    /// Products of a prediction of the `k` best labels of a row of `row_values` values.
    fn effort(&self, row_values: usize, k: usize, options: &PredictOptions) -> usize;

    /// Products that [`freeze`](Self::freeze) is worth; 0 where predictions need it.
    fn freeze_effort(&self) -> usize;

    /// What there is to know of it beside what the model knows.
    fn summary(&self, _summary: &mut Report) {}

    /// What there is to know of its tree, if it is one.
    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        None
    }

    /// The nodes of its [`report`](Self::report) that the terminals of `frozen` are, if it is a tree.
    fn nodes_of_terminals(&self, _frozen: &Self::Frozen) -> Option<Vec<u32>> {
        None
    }

    /// The same for prediction only, without what learning keeps: predicts the same to the bit.
    fn for_prediction(&self, control: &Control) -> Result<Self>;

    /// Stores its state.
    fn put(&self, bundle: &mut Bundle);

    /// Restores it. `for_prediction`: what [`for_prediction`](Self::for_prediction) has left of it.
    fn take(
        params: &Self::Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self>;
}

/// Answers for a block of rows at a time.
pub trait Predictor {
    /// Takes in the rows `which`.
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        control: &Control,
    ) -> Result<()>;

    /// The best label of each row that was read.
    fn best(&mut self, labels: &mut [i32], control: &Control) -> Result<()> {
        let mut scores = vec![0.0; labels.len()];
        self.top_k(1, labels, &mut scores, control)
    }

    /// The `k` best labels of each row that was read, and their scores. What it does not write
    /// to stays empty.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()>;

    /// Calls `visit` with each row that was read, and member and terminal of each of its paths.
    fn terminals(&mut self, _visit: &mut dyn FnMut(usize, usize, u32)) {}

    /// The scores of all classes for each row that was read; false where there are none to be
    /// had.
    fn all_scores(&mut self, _scores: &mut [f32], _control: &Control) -> Result<bool> {
        Ok(false)
    }
}

/// A learner with what it reads examples by and what it got wrong on the way. It counts with every
/// example: no two share a cache line, nor a pair of these, which processors fetch together.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub struct Member<L> {
    /// How it reads examples.
    pub preparation: Preparation,
    /// Examples learned, and how many of them were answered wrongly before.
    pub progress: Mistakes,
    /// The learner.
    pub learner: L,
}

impl<L: OnlineLearner> Member<L> {
    /// Learns the rows of `order`; `clock` is the share of a pass that each is, 0 in a stream.
    pub(super) fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        n_threads: usize,
        predicted: Option<&mut [i32]>,
        control: &Control,
    ) -> Result<()> {
        // In debug builds, each time that the count of examples doubles, so that the cost stays in
        // proportion.
        let before = self.progress.examples;
        let is_checked = cfg!(debug_assertions)
            && before.checked_ilog2() < (before + order.len() as u64).checked_ilog2();
        self.progress.repeats = clock > 0.0 && self.progress.examples > 0;
        let learned = self.learner.learn(&mut Learning {
            batch,
            order,
            clock,
            preparation: &mut self.preparation,
            progress: &mut self.progress,
            n_threads,
            predicted,
            control,
        });
        if is_checked {
            let broken = self.to_bundle().array_with(|x| !x.is_finite());
            assert_eq!(
                broken,
                None,
                "{} learned a number that is not finite",
                L::KIND
            );
        }
        learned
    }

    /// Learns in the passes of `schedule`, all of it in each.
    pub(crate) fn run_passes(
        &mut self,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        schedule.run(
            self,
            batch,
            |member, order, clock| member.learn(batch, order, clock, n_threads, None, control),
            |member, held_out| member.error(batch, held_out, n_threads, control),
        )
    }

    /// Weighted share of the rows `held_out` that it answers wrongly.
    pub(super) fn error(
        &self,
        batch: &Batch<'_>,
        held_out: &[u32],
        n_threads: usize,
        control: &Control,
    ) -> Result<f64> {
        let frozen = [self.learner.freeze(control)?];
        let members = std::slice::from_ref(self);
        let options = PredictOptions::NONE;
        let step = self.block_rows(&batch.rows);
        let mut labels = filled(TopK::NO_LABEL, held_out.len());
        each_block(
            held_out.len(),
            step,
            labels.chunks_mut(step),
            n_threads,
            || L::predictor(members, Some(&frozen), &options, Lent::default()),
            |predictor, which, labels| {
                control.check()?;
                let rows = held_out[which].iter().map(|&row| row as usize);
                predictor.read(&batch.rows, rows, control)?;
                predictor.best(labels, control)
            },
        )?;
        Ok(batch.error_rate(held_out, &labels))
    }

    /// Values of a prepared row, on average.
    pub(super) fn row_values(&self, rows: &Rows<'_>) -> usize {
        row_values(Some(&self.preparation), rows)
    }

    pub(super) fn block_rows(&self, rows: &Rows<'_>) -> usize {
        L::block_rows(self.row_values(rows))
    }
}
