//! The model around every online learner. It owns the passes of `fit`, the preparation of examples,
//! the members of an ensemble, the checks of input, the frozen form, the progressive loss and the
//! model file.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::interface::{
    checks, Classifier, FitOptions, PredictOptions, Query, ReachedLeaf, Task, TopKArrays,
};
use super::linear_scorers::PreparedScorers;
use super::online::{
    each_member, remove_stragglers, First, Member, OnlineLearner, OnlineParams, Predictor, Start,
};
use super::predict::{row_values, Blocks, FrozenMembers, TopK};
use super::schedule::{seed_of, Mistakes, PartStep, Schedule};
use crate::control::Control;
use crate::data::{Batch, MeanWeight, Preparation, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Report};
use crate::threads::Pool;

/// Maximum number of values in a prediction whose scratch memory is kept for the next one.
const MAX_KEPT_VALUES: usize = 1 << 12;

/// A classifier of one online learner, or of several whose predictions are averaged.
///
/// ```
/// use xmtree::model::{Classifier, FitOptions, Learner, OnlineModel, Query};
/// use xmtree::data::{Batch, Labels, Rows, Targets, Values};
/// use xmtree::learners::oaa::{self, Oaa};
/// use xmtree::Control;
///
/// let x = [1.0, 0.0, 0.0, 1.0, 0.9, 0.1, 0.1, 0.9];
/// let rows = Rows::dense(Values::F64(&x), 4, 2, false)?;
/// let labels = Labels::new(&[0, 1, 0, 1], 2)?;
/// let mut model = OnlineModel::<Oaa>::create(oaa::Params::default(), 2, false)?;
/// let control = Control::new(0);
/// let batch = Batch::new(rows, Targets::One(labels), None)?;
/// model.fit(&batch, FitOptions::threads(1), &control)?;
/// assert_eq!(model.predict(&Query::new(&rows, 1, &control))?, [0, 1, 0, 1]);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OnlineModel<L: OnlineLearner> {
    pub(crate) params: L::Params,
    pub(crate) n_classes: usize,
    pub(crate) label_sets: bool,
    /// Empty before training.
    pub(crate) members: Vec<Member<L>>,
    /// Mean weight of the learned examples, each counted once.
    pub(crate) mean_weight: MeanWeight,
    /// True if the model was stored for prediction only.
    pub(crate) for_prediction: bool,
    pub(crate) frozen: FrozenMembers<L::Frozen>,
    /// Scratch memory of predictions of few rows.
    pub(crate) memories: Pool<L::Memory>,
}

/// Preparation and weights of a `fit`, computed from all examples.
pub(crate) struct FitStart {
    /// Preparation of the examples.
    pub preparation: Preparation,
    /// Importance weights divided by their mean, if they are scaled.
    pub weights: Option<Vec<f64>>,
    /// Mean of the importance weights.
    pub mean_weight: MeanWeight,
}

impl<L: OnlineLearner> OnlineModel<L> {
    /// Returns the counts of progressive validation, over all members.
    pub fn progress(&self) -> Mistakes {
        let mut all = Mistakes::default();
        self.members
            .iter()
            .for_each(|member| all.add(&member.progress));
        all
    }

    /// Returns the weighted share of mistakes on examples before they were learned.
    pub fn progressive_loss(&self) -> Option<f64> {
        self.progress().loss()
    }

    /// Checks the examples of a `fit`, and chooses their preparation and weights.
    pub(crate) fn start_fit(&self, batch: &Batch<'_>, control: &Control) -> Result<FitStart> {
        self.check_batch(batch, self.n_classes)?;
        let present = batch.present();
        let mean_weight = MeanWeight::from_rows(batch, &present);
        let weights = self.scaled_weights(mean_weight, batch);
        let weighted = batch.with_weights(weights.as_deref());
        let mut preparation = self.params.preparation(&weighted)?;
        preparation.observe_all(&batch.rows, &present, control)?;
        Ok(FitStart {
            preparation,
            weights,
            mean_weight,
        })
    }

    /// Returns the importance weights divided by their mean, if they are scaled.
    pub(super) fn scaled_weights(&self, mean: MeanWeight, batch: &Batch<'_>) -> Option<Vec<f64>> {
        let is_scaled = self.params.scale_weights();
        is_scaled.then(|| mean.relative_weights(batch)).flatten()
    }

    /// Creates untrained members. See [`Start`] for `first`.
    pub(super) fn new_members(
        &self,
        preparation: &Preparation,
        batch: &Batch<'_>,
        first: First,
    ) -> Result<Vec<Member<L>>> {
        let start = Start {
            n_classes: self.n_classes,
            preparation,
            batch,
            first,
        };
        // Not clones of one member, because new zeroed memory costs nothing.
        (0..L::n_members(&self.params))
            .map(|_| Member::new(&self.params, &start))
            .collect()
    }

    /// Checks everything about a batch over `n_classes` except its columns.
    pub(super) fn check_batch(&self, batch: &Batch<'_>, n_classes: usize) -> Result<()> {
        let name = L::name(&self.params);
        checks::targets(batch, name, n_classes, self.label_sets)?;
        checks::no_missing_values(&batch.rows, name)
    }

    /// Checks a batch of a stream over `n_classes`.
    pub(super) fn check_stream(&self, batch: &Batch<'_>, n_classes: usize) -> Result<()> {
        if self.for_prediction {
            return Err(Error::data(
                "the model was saved for prediction only (compact=True) and cannot learn; \
                 train it again with fit, or load a file saved without compact=True",
            ));
        }
        L::check_stream(&self.params)?;
        self.check_batch(batch, n_classes)?;
        let first = self.members.first();
        first.map_or(Ok(()), |first| first.preparation.check_columns(&batch.rows))
    }

    /// Number of rows whose prediction takes as long as freezing all members. Both times are
    /// proportional to the number of members.
    fn freeze_rows(&self) -> usize {
        let members = self.members.iter();
        let rows = members.map(|member| member.learner.freeze_rows());
        rows.max().unwrap_or(0)
    }

    /// Returns the frozen members, if the prediction of `n_rows` should use them.
    fn frozen(&self, n_rows: usize, control: &Control) -> Result<Option<&[L::Frozen]>> {
        self.frozen.get(n_rows, self.freeze_rows(), || {
            let members = self.members.iter();
            members
                .map(|member| member.learner.freeze(control))
                .collect()
        })
    }

    /// Checks the rows of `query` and divides them into blocks.
    fn blocks<'a>(
        &'a self,
        query: &'a Query<'a>,
    ) -> Result<Blocks<'a, impl Fn() -> L::Predictor<'a> + Sync + Send>> {
        let rows = query.rows;
        let first = self.members.first().ok_or_else(checks::nothing_learned)?;
        checks::no_missing_values(rows, L::name(&self.params))?;
        first.preparation.check_columns(rows)?;
        L::check_options(&self.params, &query.options)?;
        let frozen = self.frozen(rows.n_rows(), query.control)?;
        let is_small = rows.n_values() <= MAX_KEPT_VALUES;
        let new_predictor = move || {
            let memory = self.memories.lend_if(is_small, L::Memory::default);
            L::predictor(&self.members, frozen, &query.options, memory)
        };
        Ok(Blocks {
            query,
            step: first.block_rows(rows),
            new_predictor,
        })
    }
}

/// Returns the work of each of `n_members`: the passes of `schedule`, in an order of its own.
pub(super) fn passes_of<'a, L: OnlineLearner>(
    schedule: Schedule,
    n_members: usize,
    batch: &'a Batch<'_>,
    control: &'a Control,
) -> impl Fn(usize, &mut Member<L>, usize) -> Result<()> + Sync + 'a {
    let passes = u64::from(schedule.n_passes) * n_members as u64;
    control.set_total(passes * batch.rows.n_rows() as u64);
    move |number, member, n_threads| {
        let schedule = Schedule {
            seed: seed_of(schedule.seed, number),
            ..schedule
        };
        member.run_passes(&schedule, batch, n_threads, control)
    }
}

impl<L: OnlineLearner> Classifier for OnlineModel<L> {
    fn boxed_clone(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }

    fn kind(&self) -> &'static str {
        L::KIND
    }

    fn params_json(&self) -> Result<String> {
        crate::params::to_json(&self.params)
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn n_features(&self) -> usize {
        let first = self.members.first();
        first.map_or(0, |member| member.preparation.n_features())
    }

    fn n_examples_seen(&self) -> u64 {
        let first = self.members.first();
        first.map_or(0, |member| member.progress.examples)
    }

    /// An interruption removes members that have learned few examples.
    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()> {
        let mut schedule = self.params.schedule();
        schedule.n_passes = options.n_passes.unwrap_or(schedule.n_passes);
        if options.warm_start {
            return self.fit_further(schedule, batch, options.n_threads, control);
        }
        let start = self.start_fit(batch, control)?;
        let batch = &batch.with_weights(start.weights.as_deref());
        let mut members = self.new_members(&start.preparation, batch, First::All)?;
        let passes = passes_of(schedule, members.len(), batch, control);
        let results = each_member(&mut members, options.n_threads, passes)?;
        let finished: Vec<bool> = results.iter().map(Result::is_ok).collect();
        let done: Result<()> = results.into_iter().collect();
        if !matches!(done, Ok(()) | Err(Error::Stopped)) {
            return done;
        }
        remove_stragglers(&mut members, &finished);
        if members.iter().any(|member| member.progress.examples > 0) {
            self.members = members;
            self.mean_weight = start.mean_weight;
            self.for_prediction = false;
            self.frozen = match options.n_passes {
                None => FrozenMembers::due_at_once(),
                // Further passes will follow.
                Some(_) => FrozenMembers::default(),
            };
        }
        done
    }

    /// The first member learns the rows in their order, each further one in its own random order,
    /// because otherwise all members would be equal.
    fn partial_fit(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.check_stream(batch, self.n_classes)?;
        if self.members.is_empty() {
            let preparation = self.params.preparation(batch)?;
            self.members = self.new_members(&preparation, batch, First::Stream)?;
        }
        self.frozen = FrozenMembers::default();
        let is_scaled = self.params.scale_weights();
        let weights = is_scaled.then(|| self.mean_weight.follow(batch));
        let batch = &batch.with_weights(weights.as_deref());
        let order = L::present(&self.params, batch);
        control.set_total(self.members.len() as u64 * order.len() as u64);
        let schedule = self.params.schedule();
        let results = each_member(&mut self.members, n_threads, |number, member, n_threads| {
            let mut order = order.clone();
            if number > 0 {
                let seed = seed_of(schedule.seed ^ member.progress.examples, number);
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            member.learn(batch, &order, 0.0, false, n_threads, control)
        })?;
        results.into_iter().collect()
    }

    fn learn_part(
        &mut self,
        batch: &Batch<'_>,
        step: PartStep,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.take_step(batch, step, n_threads, control)
    }

    /// Adds classes to all members or none, because members of an ensemble cannot fail to add them.
    fn add_classes(&mut self, batch: &Batch<'_>) -> Result<()> {
        let n_classes = batch.targets.n_classes();
        self.check_stream(batch, n_classes.max(self.n_classes))?;
        checks::n_classes(n_classes)?;
        for member in &mut self.members {
            member.learner.add_classes(n_classes)?;
        }
        self.frozen = FrozenMembers::default();
        self.n_classes = n_classes;
        Ok(())
    }

    fn predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        let work = |predictor: &mut L::Predictor<'_>, which, labels: &mut [i32]| {
            predictor.read(query.rows, which, query.control)?;
            predictor.best(labels, query.control)
        };
        self.blocks(query)?.fill(1, TopK::NO_LABEL, work)
    }

    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays> {
        let work =
            |predictor: &mut L::Predictor<'_>, which, labels: &mut [i32], scores: &mut [f32]| {
                predictor.read(query.rows, which, query.control)?;
                predictor.top_k(k, labels, scores, query.control)
            };
        self.blocks(query)?.top_k(k, work)
    }

    fn predict_scores(&self, query: &Query<'_>) -> Result<Array> {
        let work = |predictor: &mut L::Predictor<'_>, which, scores: &mut [f32]| {
            predictor.read(query.rows, which, query.control)?;
            if predictor.all_scores(scores, query.control)? {
                return Ok(());
            }
            Err(self.cannot("score all classes"))
        };
        Ok(self.blocks(query)?.fill(self.n_classes, 0.0, work)?.into())
    }

    fn scorers(&self) -> Option<PreparedScorers<'_>> {
        let first = self.members.first()?;
        Some(PreparedScorers {
            scorers: first.learner.scorers()?,
            preparation: &first.preparation,
        })
    }

    fn leaves(&self, query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        // Terminals have numbers in frozen trees only.
        let frozen = self.frozen(usize::MAX, query.control)?.unwrap_or(&[]);
        let blocks = self.blocks(query)?;
        let trees = self.members.iter().zip(frozen);
        let nodes = trees.map(|(member, frozen)| {
            let nodes = member.learner.nodes_of_terminals(frozen);
            nodes.ok_or_else(|| self.cannot("report the leaves of rows"))
        });
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        blocks.fill(1, Vec::new(), |predictor, which, leaves: &mut [Vec<_>]| {
            predictor.read(query.rows, which, query.control)?;
            predictor.terminals(&mut |row, tree, terminal| {
                leaves[row].push(ReachedLeaf {
                    tree: tree as u32,
                    node: nodes[tree][terminal as usize],
                });
            });
            Ok(())
        })
    }

    fn effort(&self, rows: &Rows<'_>, task: Task<'_>) -> usize {
        /// Estimated number of nodes on a path.
        const DEPTH: usize = 32;
        let (k, options, is_prediction) = match task {
            Task::PartialFit => (1, &PredictOptions::default(), false),
            Task::Predict { k, options } => (k, options, true),
        };
        let n_rows = rows.n_rows();
        if self.members.is_empty() {
            let n_members = L::n_members(&self.params);
            return (rows.n_values() + n_rows).saturating_mul(DEPTH * n_members);
        }
        let freeze_rows = self.freeze_rows();
        let freezes = is_prediction && self.frozen.are_due(n_rows, freeze_rows);
        let n_worth = n_rows + if freezes { freeze_rows } else { 0 };
        let members = self.members.iter();
        let each = members.map(|member| {
            let row_values = row_values(&member.preparation, rows);
            member.learner.effort(row_values, k, options)
        });
        each.fold(0, usize::saturating_add).saturating_mul(n_worth)
    }

    fn summary(&self) -> Report {
        let mut summary = Report::new();
        let progress = self.progress();
        summary.scalar("progressive_loss", progress.loss().unwrap_or(f64::NAN));
        summary.scalar("progressive_weight", progress.weight);
        if let [member] = &self.members[..] {
            member.learner.summary(&mut summary);
        }
        summary
    }

    /// Empty for a model for prediction only, which has no statistics.
    fn reports(&self) -> Vec<Report> {
        if self.for_prediction {
            return Vec::new();
        }
        let members = self.members.iter();
        members
            .filter_map(|member| member.learner.report(&member.progress))
            .collect()
    }

    fn to_bundle(&self) -> Bundle {
        let members = self.members.iter();
        let members = members.map(|member| member.to_bundle(&member.learner));
        self.stored(self.for_prediction, members)
    }

    fn to_prediction_bundle(&self, compact: bool, control: &Control) -> Result<Bundle> {
        self.for_prediction(compact, control)
    }
}
