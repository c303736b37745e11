//! The interface of a learner that takes examples one after the other, and one such learner as a
//! member of a model; [`OnlineModel`](super::OnlineModel) does the rest.

use std::fmt::Debug;

use rayon::prelude::*;

use super::predict::{block_rows, row_values, TopK};
use super::schedule::{Mistakes, Schedule, PATIENCE};
use super::PredictOptions;
use crate::control::Control;
use crate::data::{Batch, Preparation, Rows};
use crate::error::Result;
use crate::file::{Bundle, Report};
use crate::linear::PathExample;
use crate::params::Params;
use crate::threads::{with_threads, Lent};
use crate::tree::FrozenRouters;

/// All that a new member must know.
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
    /// Beginnings of the names of those arrays that half the bits are enough for in prediction.
    const NARROW_ARRAYS: &'static [&'static str];
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

    /// Learns a whole `fit` in a way of its own; false, and nothing learned, where it learns in the
    /// passes of `schedule`.
    fn fit_in_bulk(
        _member: &mut Member<Self>,
        _schedule: &Schedule,
        _batch: &Batch<'_>,
        _n_threads: usize,
        _control: &Control,
    ) -> Result<bool> {
        Ok(false)
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
        block_rows(row_values, FrozenRouters::BLOCK_ROWS)
    }

    /// Products of a prediction of the `k` best labels of a row of `row_values` values.
    fn effort(&self, row_values: usize, k: usize, options: &PredictOptions) -> usize;

    /// Rows whose prediction takes about as long as [`freeze`](Self::freeze); 0 where predictions
    /// need it.
    fn freeze_rows(&self) -> usize;

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

/// The examples that a learner is handed at a time, and what is kept beside it meanwhile.
#[derive(Debug)]
pub struct Learning<'a> {
    /// The examples.
    pub batch: &'a Batch<'a>,
    /// The rows to learn, in their order.
    pub order: &'a [u32],
    /// The share of a pass that each of them is: 1/N in `fit`; 0 in a stream, where no pass ends
    /// and means and deviations follow the examples.
    pub clock: f64,
    /// How they are read.
    pub preparation: &'a mut Preparation,
    /// Counts those answered wrongly before they were learned.
    pub progress: &'a mut Mistakes,
    /// Threads; what is learned does not depend on them.
    pub n_threads: usize,
    /// Progress and interruption.
    pub control: &'a Control,
}

impl Learning<'_> {
    /// Whether the examples are a stream.
    pub fn is_stream(&self) -> bool {
        self.clock == 0.0
    }

    /// Reads one example after the other. `learn` gets each with its label and importance, and
    /// returns whether it was answered rightly before.
    #[inline]
    pub fn each(
        &mut self,
        mut learn: impl FnMut(&mut PathExample, u32, f32) -> bool,
    ) -> Result<()> {
        let mut example = PathExample::default();
        let (batch, is_stream) = (self.batch, self.is_stream());
        for chunk in self.order.chunks(Control::CHUNK) {
            for &row in chunk {
                let row = row as usize;
                if is_stream {
                    example.observe_and_read(self.preparation, &batch.rows, row);
                } else {
                    example.read(self.preparation, &batch.rows, row);
                }
                let importance = batch.weight(row);
                let was_right = learn(&mut example, batch.labels()[row], importance);
                self.progress.count(!was_right, importance);
            }
            self.report(chunk.len())?;
        }
        Ok(())
    }

    /// Reports `n` more examples learned and the progressive loss; an error where the work is to
    /// stop.
    pub fn report(&self, n: usize) -> Result<()> {
        if let Some(loss) = self.progress.loss() {
            self.control.set_loss(loss);
        }
        self.control.tick(n)
    }
}

/// A learner with what it reads examples by and what it got wrong on the way. Every example
/// changes these counts: no two members share a cache line, nor a pair of lines, which processors
/// fetch together.
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
    /// One that has learned nothing.
    pub(super) fn new(params: &L::Params, start: &Start<'_>) -> Result<Self> {
        Ok(Self {
            preparation: start.preparation.clone(),
            progress: Mistakes::default(),
            learner: L::new(params, start)?,
        })
    }

    /// Learns in the passes of `schedule`. Stopped from outside it stays as far as it has come;
    /// stopped early it goes back to its best pass.
    pub(super) fn run_passes(
        &mut self,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        let mut passes = schedule.passes(batch)?;
        let clock = passes.clock;
        let (mut best, mut since): (Option<(f64, Self)>, _) = (None, 0);
        while let Some(order) = passes.next_order() {
            self.learn(batch, order, clock, n_threads, control)?;
            if !schedule.early_stopping {
                continue;
            }
            let error = self.error(batch, &passes.held_out, control)?;
            if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
                best = Some((error, self.clone()));
                since = 0;
            } else {
                since += 1;
                if since == PATIENCE {
                    break;
                }
            }
        }
        if let Some((_, member)) = best {
            *self = member;
        }
        Ok(())
    }

    /// Learns the rows of `order`; `clock` is the share of a pass that each is, 0 in a stream.
    pub(super) fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        let before = self.progress.examples;
        self.progress.repeats = clock > 0.0 && before > 0;
        let learned = self.learner.learn(&mut Learning {
            batch,
            order,
            clock,
            preparation: &mut self.preparation,
            progress: &mut self.progress,
            n_threads,
            control,
        });
        // In debug builds, each time that the count of examples doubles, so that the cost stays in
        // proportion.
        if cfg!(debug_assertions)
            && before.checked_ilog2() < (before + order.len() as u64).checked_ilog2()
        {
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

    /// Weighted share of the rows `held_out` that it answers wrongly.
    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        let frozen = [self.learner.freeze(control)?];
        let members = std::slice::from_ref(self);
        let options = PredictOptions::NONE;
        let mut predictor = L::predictor(members, Some(&frozen), &options, Lent::default());
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

    /// Values of a prepared row, on average.
    pub(super) fn row_values(&self, rows: &Rows<'_>) -> usize {
        row_values(Some(&self.preparation), rows)
    }

    pub(super) fn block_rows(&self, rows: &Rows<'_>) -> usize {
        L::block_rows(self.row_values(rows))
    }
}

/// Runs `work` over the members; each is finished or stopped when this returns. A single
/// one has all threads to itself.
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

/// Leaves out members that were stopped before they had seen half as much as the one that has
/// seen most: they would only vote for the few labels they know.
pub(super) fn leave_out_stragglers<L>(members: &mut Vec<Member<L>>, finished: &[bool]) {
    let seen = |member: &Member<L>| member.progress.examples;
    let most = members.iter().map(seen).max().unwrap_or(0);
    let mut finished = finished.iter();
    members.retain(|member| *finished.next().unwrap_or(&true) || 2 * seen(member) >= most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Scaling, Values};

    /// Each is learned by a thread of its own.
    #[test]
    fn members_share_no_cache_line() {
        assert_eq!(align_of::<Member<u8>>(), 128);
        assert_eq!(size_of::<Member<u8>>() % 128, 0);
    }

    #[test]
    fn members_that_had_hardly_begun_are_left_out() {
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
        leave_out_stragglers(&mut members, &[false, false, false, true]);
        let seen: Vec<u64> = members
            .iter()
            .map(|member| member.progress.examples)
            .collect();
        assert_eq!(seen, [100, 70, 20]);
    }
}
