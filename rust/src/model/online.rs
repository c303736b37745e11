//! The interface of online learners, and one such learner as a member of an
//! [`OnlineModel`](super::OnlineModel).

use std::fmt::Debug;

use rayon::prelude::*;

use super::interface::checks;
use super::predict::{block_rows, row_values, TopK};
use super::schedule::{Mistakes, Schedule};
use super::{LinearScorers, PredictOptions};
use crate::control::Control;
use crate::data::{Batch, Preparation, Rows};
use crate::error::{Error, Result};
use crate::file::{Bundle, Report};
use crate::linear::PathExample;
use crate::params::Params;
use crate::threads::{with_threads, Lent};
use crate::tree::FrozenRouters;

/// Arguments for a new member.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Number of classes.
    pub n_classes: usize,
    /// Preparation of the examples.
    pub preparation: &'a Preparation,
    /// The first examples.
    pub batch: &'a Batch<'a>,
    /// Their part in the training.
    pub first: First,
}

/// The part of the first examples in a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// All of them.
    All,
    /// One of several parts.
    Part,
    /// The beginning of a stream.
    Stream,
}

/// The parameters of an online learner; [`params!`](macro@crate::params) implements it.
pub trait OnlineParams: Params {
    /// Returns the passes of `fit`.
    fn schedule(&self) -> Schedule;

    /// Returns whether importance weights are divided by their mean.
    fn scale_weights(&self) -> bool;

    /// Chooses scaling and hashing by the first rows.
    fn preparation(&self, batch: &Batch<'_>) -> Result<Preparation>;
}

/// A learner that takes one example after the other, as a member of an
/// [`OnlineModel`](super::OnlineModel).
pub trait OnlineLearner: Clone + Debug + Send + Sync + Sized + 'static {
    /// Name in files; see [`Classifier::kind`](super::Classifier::kind).
    const KIND: &'static str;
    /// Prefixes of the names of arrays that need only half the bits in prediction.
    const NARROW_ARRAYS: &'static [&'static str];
    /// Parameters.
    type Params: OnlineParams;
    /// Frozen form, which prediction uses.
    type Frozen: Clone + Debug + Send + Sync;
    /// Predictor of one thread.
    type Predictor<'a>: Predictor;
    /// Scratch memory of a predictor that takes longer to allocate than a row to predict.
    type Memory: Clone + Default + Debug + Send;

    /// Name of the learner in messages.
    fn name(params: &Self::Params) -> &'static str;

    /// Returns an error if rows with label sets cannot be learned, or not with these parameters.
    fn check_label_sets(params: &Self::Params) -> Result<()> {
        Err(checks::one_label_per_row(Self::name(params)))
    }

    /// Number of members of an ensemble.
    fn n_members(_params: &Self::Params) -> usize {
        1
    }

    /// Creates an untrained learner.
    fn new(params: &Self::Params, start: &Start<'_>) -> Result<Self>;

    /// Returns the rows of a stream's batch that are learned.
    fn present(_params: &Self::Params, batch: &Batch<'_>) -> Vec<u32> {
        batch.present()
    }

    /// Returns an error if parameters exclude learning from a stream.
    fn check_stream(_params: &Self::Params) -> Result<()> {
        Ok(())
    }

    /// Adds new classes, so that there are `n_classes`. An error leaves the learner unchanged.
    fn add_classes(&mut self, n_classes: usize) -> Result<()>;

    /// Makes the members of one model from those of models that were trained side by side, each with
    /// its number of classes. By default these are the members of an ensemble.
    fn join(
        _params: &Self::Params,
        n_classes: usize,
        known: &[usize],
        members: Vec<Member<Self>>,
    ) -> Result<Vec<Member<Self>>> {
        if known.iter().all(|&n| n == n_classes) {
            return Ok(members);
        }
        Err(Error::data("the joined models differ in their classes"))
    }

    /// Learns in the passes of `schedule` and returns true, if not by one [`learn`](Self::learn) a
    /// pass.
    fn fit_otherwise(
        _member: &mut Member<Self>,
        _schedule: &Schedule,
        _batch: &Batch<'_>,
        _n_threads: usize,
        _control: &Control,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Learns examples in order.
    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()>;

    /// Creates the frozen form in O(model size).
    fn freeze(&self, control: &Control) -> Result<Self::Frozen>;

    /// Creates a predictor that uses the `frozen` form of each member, or the members themselves
    /// with the same results to the bit.
    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [Self::Frozen]>,
        options: &PredictOptions,
        memory: Lent<'a, Self::Memory>,
    ) -> Self::Predictor<'a>;

    /// Returns an error if the learner does not have an option that is set.
    fn check_options(params: &Self::Params, options: &PredictOptions) -> Result<()> {
        options.refuse(Self::name(params))
    }

    /// Returns the number of rows, of `row_values` values each, that are predicted together.
    fn block_rows(row_values: usize) -> usize {
        block_rows(row_values, FrozenRouters::BLOCK_ROWS)
    }

    /// Estimates the products for the `k` best labels of a row of `row_values` values.
    fn effort(&self, row_values: usize, k: usize, options: &PredictOptions) -> usize;

    /// Number of rows whose prediction takes as long as [`freeze`](Self::freeze); 0 if predictions
    /// need the frozen form.
    fn freeze_rows(&self) -> usize;

    /// Adds to the summary of a model with one member.
    fn summary(&self, _summary: &mut Report) {}

    /// Returns the scorers of the classes, if their margins are the scores.
    fn scorers(&self) -> Option<&dyn LinearScorers> {
        None
    }

    /// Describes the nodes of a tree.
    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        None
    }

    /// Returns the node in the [`report`](Self::report) of each terminal of a frozen tree.
    fn nodes_of_terminals(&self, _frozen: &Self::Frozen) -> Option<Vec<u32>> {
        None
    }

    /// Returns a copy without state for learning, whose predictions are the same to the bit.
    fn for_prediction(&self, control: &Control) -> Result<Self>;

    /// Stores the learner.
    fn put(&self, bundle: &mut Bundle);

    /// Restores the learner, or the result of [`for_prediction`](Self::for_prediction).
    fn take(
        params: &Self::Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self>;
}

/// Predictions of one thread, for one block of rows at a time.
pub trait Predictor {
    /// Reads the rows `which`.
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        control: &Control,
    ) -> Result<()>;

    /// Writes the best label of each row of the block.
    fn best(&mut self, labels: &mut [i32], control: &Control) -> Result<()> {
        let mut scores = vec![0.0; labels.len()];
        self.top_k(1, labels, &mut scores, control)
    }

    /// Writes the `k` best labels of each row of the block and their scores. Entries that are not
    /// written stay empty.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()>;

    /// Calls `visit` with row, member and terminal of each path of each row of the block.
    fn terminals(&mut self, _visit: &mut dyn FnMut(usize, usize, u32)) {}

    /// Writes the scores of all classes for each row of the block. Returns false if the learner
    /// cannot score all classes.
    fn all_scores(&mut self, _scores: &mut [f32], _control: &Control) -> Result<bool> {
        Ok(false)
    }
}

/// Examples to learn in one call, and the state that is updated with the learner.
#[derive(Debug)]
pub struct Learning<'a> {
    /// The examples.
    pub batch: &'a Batch<'a>,
    /// Rows to learn, in order.
    pub order: &'a [u32],
    /// Share of a pass per example: 1/N in `fit`; 0 in a stream, where passes do not end, and means
    /// and deviations are updated with each example.
    pub clock: f64,
    /// Preparation of the examples.
    pub preparation: &'a mut Preparation,
    /// Count of the mistakes on examples before they are learned.
    pub progress: &'a mut Mistakes,
    /// Number of threads. The result does not depend on it.
    pub n_threads: usize,
    /// Progress and interruption.
    pub control: &'a Control,
}

impl Learning<'_> {
    /// Returns whether the examples are a stream.
    pub fn is_stream(&self) -> bool {
        self.clock == 0.0
    }

    /// Reads one example after the other. `learn` gets each with its row and importance weight, and
    /// returns whether the prediction before learning was right.
    pub fn each(
        &mut self,
        mut learn: impl FnMut(&mut PathExample, usize, f32) -> bool,
    ) -> Result<()> {
        let mut example = PathExample::default();
        let (batch, is_stream) = (self.batch, self.is_stream());
        for chunk in self.order.chunks(Control::CHUNK) {
            for &row in chunk {
                let row = row as usize;
                example.read(self.preparation, &batch.rows, row, is_stream);
                let importance = batch.weight(row);
                let was_right = learn(&mut example, row, importance);
                self.progress.count(!was_right, importance);
            }
            self.report(chunk.len())?;
        }
        Ok(())
    }

    /// Reports `n` more learned examples and the progressive loss. Returns an error if the caller
    /// asked to stop.
    pub fn report(&self, n: usize) -> Result<()> {
        if let Some(loss) = self.progress.loss() {
            self.control.set_loss(loss);
        }
        self.control.tick(n)
    }
}

/// A learner with its preparation of examples and its count of mistakes. Every example changes the
/// counts, so members share neither a cache line nor a pair of lines, which processors fetch
/// together.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub struct Member<L> {
    /// Preparation of examples.
    pub preparation: Preparation,
    /// Counts of examples, and of mistakes on them before they were learned.
    pub progress: Mistakes,
    /// The learner.
    pub learner: L,
}

impl<L: OnlineLearner> Member<L> {
    /// Creates an untrained member.
    pub(super) fn new(params: &L::Params, start: &Start<'_>) -> Result<Self> {
        Ok(Self {
            preparation: start.preparation.clone(),
            progress: Mistakes::default(),
            learner: L::new(params, start)?,
        })
    }

    /// Learns in the passes of `schedule`. After an interruption, the member keeps what it has
    /// learned; after early stopping, it returns to its best pass.
    pub(super) fn run_passes(
        &mut self,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        if L::fit_otherwise(self, schedule, batch, n_threads, control)? {
            return Ok(());
        }
        let mut passes = schedule.passes(batch)?;
        let clock = passes.clock;
        let (mut best, mut n_worse): (Option<(f64, Self)>, _) = (None, 0);
        while let Some(order) = passes.next_order() {
            let repeats = self.progress.examples > 0;
            self.learn(batch, order, clock, repeats, n_threads, control)?;
            if !schedule.early_stopping {
                continue;
            }
            let error = self.error(batch, &passes.held_out, control)?;
            if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
                best = Some((error, self.clone()));
                n_worse = 0;
            } else {
                n_worse += 1;
                if n_worse == PATIENCE {
                    break;
                }
            }
        }
        if let Some((_, member)) = best {
            *self = member;
        }
        Ok(())
    }

    /// Learns the rows of `order`, of which each is the share `clock` of a pass; see [`Learning`].
    /// `repeats` is true if they have been learned before.
    pub(super) fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        repeats: bool,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.progress.repeats = repeats;
        self.learner.learn(&mut Learning {
            batch,
            order,
            clock,
            preparation: &mut self.preparation,
            progress: &mut self.progress,
            n_threads,
            control,
        })
    }

    /// Returns the weighted error on the rows `held_out`.
    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        let frozen = [self.learner.freeze(control)?];
        let members = std::slice::from_ref(self);
        let options = PredictOptions::default();
        let memory = Lent::alone(L::Memory::default());
        let mut predictor = L::predictor(members, Some(&frozen), &options, memory);
        let mut labels = vec![TopK::NO_LABEL; held_out.len()];
        let step = self.block_rows(&batch.rows);
        for (which, labels) in held_out.chunks(step).zip(labels.chunks_mut(step)) {
            control.check()?;
            let rows = which.iter().map(|&row| row as usize);
            predictor.read(&batch.rows, rows, control)?;
            predictor.best(labels, control)?;
        }
        Ok(batch.error_rate(held_out, &labels))
    }

    /// Returns the number of rows that are predicted together.
    pub(super) fn block_rows(&self, rows: &Rows<'_>) -> usize {
        L::block_rows(row_values(&self.preparation, rows))
    }
}

/// Runs `work` for all members and returns their results. A single member gets all threads.
pub(super) fn each_member<L: OnlineLearner>(
    members: &mut [Member<L>],
    n_threads: usize,
    work: impl Fn(usize, &mut Member<L>, usize) -> Result<()> + Sync,
) -> Result<Vec<Result<()>>> {
    if let [member] = members {
        return Ok(vec![work(0, member, n_threads)]);
    }
    let work = |(number, member)| work(number, member, 1);
    with_threads(n_threads.min(members.len()), |parallel| {
        if parallel {
            members.par_iter_mut().enumerate().map(work).collect()
        } else {
            members.iter_mut().enumerate().map(work).collect()
        }
    })
}

/// Passes without a new lowest error after which early stopping ends a fit.
const PATIENCE: u32 = 2;

/// Removes unfinished members that have learned less than half as many examples as another one.
/// They would vote for the few labels that they know.
pub(super) fn remove_stragglers<L>(members: &mut Vec<Member<L>>, finished: &[bool]) {
    let seen = |member: &Member<L>| member.progress.examples;
    let most = members.iter().map(seen).max().unwrap_or(0);
    let mut finished = finished.iter();
    members.retain(|member| *finished.next().unwrap_or(&true) || 2 * seen(member) >= most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Scaling, Values};

    #[test]
    fn members_share_no_cache_line() {
        assert_eq!(align_of::<Member<u8>>(), 128);
        assert_eq!(size_of::<Member<u8>>() % 128, 0);
    }

    #[test]
    fn members_with_few_examples_are_removed() {
        let rows = Rows::dense(Values::F32(&[0.0]), 1, 1, false).unwrap();
        let member = |examples| Member {
            preparation: Preparation::new(Scaling::None, None, &rows, &[]).unwrap(),
            progress: Mistakes {
                examples,
                ..Mistakes::default()
            },
            learner: (),
        };
        let mut members = [100, 20, 70, 20].map(member).to_vec();
        remove_stragglers(&mut members, &[false, false, false, true]);
        let seen: Vec<u64> = members
            .iter()
            .map(|member| member.progress.examples)
            .collect();
        assert_eq!(seen, [100, 70, 20]);
    }
}
