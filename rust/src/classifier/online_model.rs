//! The model around every learner that takes examples one after the other: it owns the passes
//! of `fit`, the preparation of examples, the members of an ensemble, the checks of what comes
//! in, the frozen form that predictions use, and the progressive loss.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::freezing::Frozen;
use super::members::{each_member, leave_out_stragglers, new_members, seed_of};
use super::{
    checks, Accepts, Blocks, Classifier, FitOptions, Learner, Member, Mistakes, OnlineLearner,
    OnlineParams, PredictOptions, Predictor, Query, ReachedLeaf, Schedule, Start, Task, TopK,
    TopKArrays,
};
use crate::control::Control;
use crate::data::{Batch, MeanWeight, Preparation, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Report};
use crate::params::Params;
use crate::pool::{Lent, Pool};

/// Values of rows that are predicted in memory that is kept: small, and soon in use again.
const KEPT_VALUES: usize = 1 << 12;

/// A classifier made of one online learner, or of several whose answers are averaged.
///
/// ```
/// use xmtree::classifier::{Classifier, FitOptions, Learner, OnlineModel, Query};
/// use xmtree::data::{Batch, Labels, Rows, Targets, Values};
/// use xmtree::learners::oaa::{self, Oaa};
/// use xmtree::Control;
///
/// let x = [1.0, 0.0, 0.0, 1.0, 0.9, 0.1, 0.1, 0.9];
/// let rows = Rows::dense(Values::F64(&x), 4, 2)?;
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
    pub(super) params: L::Params,
    pub(super) n_classes: usize,
    pub(super) label_sets: bool,
    /// None before anything was learned.
    pub(super) members: Vec<Member<L>>,
    /// Of the examples learned, each counted once.
    pub(super) mean_weight: MeanWeight,
    /// Whether it was stored without what learning on needs.
    pub(super) for_prediction: bool,
    /// What predictions use, where many are asked for after learning.
    frozen: Frozen<L::Frozen>,
    /// What predictions of few rows work in.
    memories: Pool<L::Memory>,
}

impl<L: OnlineLearner> OnlineModel<L> {
    /// The parameters.
    pub fn params(&self) -> &L::Params {
        &self.params
    }

    /// The learners, none before anything was learned.
    pub fn members(&self) -> &[Member<L>] {
        &self.members
    }

    /// Share of the examples that a member answered wrongly before it learned them, over all.
    pub fn progressive_loss(&self) -> Option<f64> {
        let mut all = Mistakes::default();
        self.members
            .iter()
            .for_each(|member| all.add(&member.progress));
        all.loss()
    }

    /// A model of one member that has learned elsewhere.
    pub(crate) fn of_member(
        params: L::Params,
        (n_classes, label_sets): (usize, bool),
        member: Member<L>,
        mean_weight: MeanWeight,
    ) -> Result<Self> {
        Ok(Self {
            members: vec![member],
            mean_weight,
            ..Self::create(params, n_classes, label_sets)?
        })
    }

    /// Runs `work` on what `fit` begins with: how examples are read, the batch with importances in
    /// units of their mean, and this mean.
    pub(crate) fn begin<T>(
        &self,
        batch: &Batch<'_>,
        control: &Control,
        work: impl FnOnce(&Preparation, &Batch<'_>, MeanWeight) -> Result<T>,
    ) -> Result<T> {
        self.check_batch(batch, self.n_classes)?;
        let present = batch.present();
        let mean_weight = MeanWeight::of(batch, &present);
        let is_scaled = self.params.scale_weights();
        let weights = is_scaled
            .then(|| mean_weight.relative_weights(batch))
            .flatten();
        let batch = &batch.with_weights(weights.as_deref());
        let mut preparation = self.params.preparation(batch)?;
        preparation.observe_all(&batch.rows, &present, control)?;
        work(&preparation, batch, mean_weight)
    }

    fn start<'a>(
        &self,
        preparation: &'a Preparation,
        batch: &'a Batch<'a>,
        is_all: bool,
    ) -> Start<'a> {
        Start {
            n_classes: self.n_classes,
            label_sets: self.label_sets,
            preparation,
            batch,
            is_all,
        }
    }

    /// Everything that could be wrong with a batch over `n_classes` but its columns.
    fn check_batch(&self, batch: &Batch<'_>, n_classes: usize) -> Result<()> {
        let name = L::name(&self.params);
        checks::targets(batch, name, n_classes, self.label_sets)?;
        checks::no_missing_values(&batch.rows, name)
    }

    /// Everything that could be wrong with a batch over `n_classes` of a stream.
    fn check_stream(&self, batch: &Batch<'_>, n_classes: usize) -> Result<()> {
        if self.for_prediction {
            return Err(Error::data(
                "this model was saved for prediction only (compact=True) and cannot learn on; \
                 train anew with fit, or load a file that was saved without compact=True",
            ));
        }
        L::check_stream(&self.params)?;
        self.check_batch(batch, n_classes)?;
        let first = self.members.first();
        first.map_or(Ok(()), |first| first.preparation.check_columns(&batch.rows))
    }

    /// Everything that could be wrong with rows, the first member to read them with at hand.
    fn check_rows(&self, rows: &Rows<'_>) -> Result<&Member<L>> {
        let first = self.members.first().ok_or_else(checks::nothing_learned)?;
        checks::no_missing_values(rows, L::name(&self.params))?;
        first.preparation.check_columns(rows)?;
        Ok(first)
    }

    /// The members frozen, if predictions of so many products should use that.
    fn frozen(&self, effort: usize, control: &Control) -> Result<Option<&[L::Frozen]>> {
        self.frozen.get(effort, self.freeze_effort(), || {
            let members = self.members.iter();
            members
                .map(|member| member.learner.freeze(control))
                .collect()
        })
    }

    fn freeze_effort(&self) -> usize {
        let members = self.members.iter();
        let each = members.map(|member| member.learner.freeze_effort());
        each.fold(0, usize::saturating_add)
    }

    /// Products that the members take for the `k` best labels of `rows`.
    fn walk_effort(&self, rows: &Rows<'_>, k: usize, options: &PredictOptions) -> usize {
        let members = self.members.iter();
        let each = members.map(|member| {
            let values = member.row_values(rows);
            let walk = member.learner.effort(values, k, options);
            walk.saturating_mul(rows.n_rows())
        });
        each.fold(0, usize::saturating_add)
    }

    /// What predicts the `k` best labels of the rows of `query`, which are checked.
    fn blocks<'a>(
        &'a self,
        query: &'a Query<'a>,
        k: usize,
    ) -> Result<Blocks<'a, impl Fn() -> L::Predictor<'a> + Sync + Send>> {
        let step = self.check_rows(query.rows)?.block_rows(query.rows);
        L::check_options(&self.params, &query.options)?;
        let effort = self.walk_effort(query.rows, k, &query.options);
        let frozen = self.frozen(effort, query.control)?;
        let is_small = query.rows.n_values() <= KEPT_VALUES;
        let new_predictor = move || {
            let memory = if is_small {
                self.memories.lend(L::Memory::default)
            } else {
                Lent::default()
            };
            L::predictor(&self.members, frozen, &query.options, memory)
        };
        Ok(Blocks {
            query,
            step,
            new_predictor,
        })
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
        self.members
            .first()
            .map_or(0, |member| member.progress.examples)
    }

    fn accepts(&self) -> Accepts {
        Accepts {
            label_sets: self.label_sets,
            missing_values: false,
        }
    }

    /// Stopped half way, members that have hardly begun are left out for good.
    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()> {
        let (mut members, results, mean_weight) =
            self.begin(batch, control, |preparation, batch, mean_weight| {
                let mut members = new_members(&self.params, &self.start(preparation, batch, true))?;
                let schedule = self.params.schedule();
                let passes = u64::from(schedule.n_passes) * members.len() as u64;
                control.set_total(passes * batch.rows.n_rows() as u64);
                let n_threads = options.n_threads;
                let fit = |number, member: &mut _, n_threads| {
                    let schedule = Schedule {
                        seed: seed_of(schedule.seed, number),
                        ..schedule.clone()
                    };
                    L::fit(member, &schedule, batch, n_threads, control)
                };
                let results = each_member(&mut members, n_threads, fit)?;
                Ok((members, results, mean_weight))
            })?;
        let finished: Vec<bool> = results.iter().map(Result::is_ok).collect();
        let done: Result<()> = results.into_iter().collect();
        if !matches!(done, Ok(()) | Err(Error::Stopped)) {
            return done;
        }
        if done.is_err() {
            leave_out_stragglers(&mut members, &finished);
        }
        if members.iter().any(|member| member.progress.examples > 0) {
            self.members = members;
            self.mean_weight = mean_weight;
            self.for_prediction = false;
            self.frozen = Frozen::due_at_once();
        }
        done
    }

    /// The first member takes the rows as they come, further ones each in an order of its own:
    /// else all would be one.
    fn partial_fit(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        predicted: Option<&mut [i32]>,
        control: &Control,
    ) -> Result<()> {
        if predicted.is_some() && !L::ANSWERS {
            return Err(self.cannot("write down its answers"));
        }
        self.check_stream(batch, self.n_classes)?;
        if self.members.is_empty() {
            let preparation = self.params.preparation(batch)?;
            self.members = new_members(&self.params, &self.start(&preparation, batch, false))?;
        }
        self.frozen = Frozen::default();
        let is_scaled = self.params.scale_weights();
        let weights = is_scaled.then(|| self.mean_weight.follow(batch)).flatten();
        let batch = &batch.with_weights(weights.as_deref());
        let order = L::present(&self.params, batch);
        control.set_total(self.members.len() as u64 * order.len() as u64);
        if let [member] = &mut self.members[..] {
            return member.learn(batch, &order, 0.0, n_threads, predicted, control);
        }
        let seed = self.params.schedule().seed;
        let results = each_member(&mut self.members, n_threads, |number, member, n_threads| {
            let mut order = order.clone();
            if number > 0 {
                let seed = seed_of(seed ^ member.progress.examples, number);
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            member.learn(batch, &order, 0.0, n_threads, None, control)
        })?;
        results.into_iter().collect()
    }

    /// All members or none: those of an ensemble cannot fail to take classes.
    fn add_classes(&mut self, batch: &Batch<'_>) -> Result<()> {
        let n_classes = batch.targets.n_classes();
        self.check_stream(batch, n_classes.max(self.n_classes))?;
        checks::n_classes(n_classes)?;
        for member in &mut self.members {
            member.learner.add_classes(n_classes)?;
        }
        self.frozen = Frozen::default();
        self.n_classes = n_classes;
        Ok(())
    }

    fn predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        let work = |predictor: &mut L::Predictor<'_>, which, labels: &mut [i32]| {
            predictor.read(query.rows, which, query.control)?;
            predictor.best(labels, query.control)
        };
        self.blocks(query, 1)?.fill(1, TopK::NO_LABEL, work)
    }

    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays> {
        self.blocks(query, k)?
            .top_k(k, |predictor, which, labels, scores| {
                predictor.read(query.rows, which, query.control)?;
                predictor.top_k(k, labels, scores, query.control)
            })
    }

    fn predict_scores(&self, query: &Query<'_>) -> Result<Array> {
        let work = |predictor: &mut L::Predictor<'_>, which, scores: &mut [f32]| {
            predictor.read(query.rows, which, query.control)?;
            if predictor.all_scores(scores, query.control)? {
                return Ok(());
            }
            Err(self.cannot("score all classes"))
        };
        let scores = self.blocks(query, 1)?.fill(self.n_classes, 0.0, work)?;
        Ok(scores.into())
    }

    fn leaves(&self, query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        // What is to be numbered are the terminals of frozen trees.
        let frozen = self.frozen(usize::MAX, query.control)?.unwrap_or(&[]);
        let blocks = self.blocks(query, 1)?;
        let trees = self.members.iter().zip(frozen);
        let nodes = trees.map(|(member, frozen)| {
            let nodes = member.learner.nodes_of_terminals(frozen);
            nodes.ok_or_else(|| self.cannot("tell the leaves of rows"))
        });
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        blocks.lists(|predictor, which, leaves: &mut [Vec<_>]| {
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
        /// Nodes on a path, about.
        const DEPTH: usize = 32;
        let (k, options, is_prediction) = match task {
            Task::Fit => return usize::MAX,
            Task::PartialFit => (1, &PredictOptions::NONE, false),
            Task::Predict { k, options } => (k, options, true),
        };
        if self.members.is_empty() {
            let (n_values, members) = (rows.n_values(), L::n_members(&self.params));
            return (n_values + rows.n_rows()).saturating_mul(DEPTH * members);
        }
        let walk = self.walk_effort(rows, k, options);
        let freeze = self.freeze_effort();
        if is_prediction && !self.frozen.is_made() && self.frozen.is_due(walk, freeze) {
            return walk.saturating_add(freeze);
        }
        walk
    }

    fn summary(&self) -> Report {
        let mut summary = Report::new();
        let loss = self.progressive_loss().unwrap_or(f64::NAN);
        summary.scalar("progressive_loss", loss);
        if let [member] = &self.members[..] {
            member.learner.summary(&mut summary);
        }
        summary
    }

    /// None of a model for prediction only, which does not keep statistics.
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
        self.stored()
    }

    fn to_compact_bundle(&self, control: &Control) -> Result<Bundle> {
        self.stored_for_prediction(true, control)
    }

    fn to_prediction_bundle(&self, control: &Control) -> Result<Bundle> {
        self.stored_for_prediction(false, control)
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
            frozen: Frozen::due_at_once(),
            memories: Pool::default(),
        })
    }

    fn from_bundle(bundle: Bundle) -> Result<Self> {
        Self::restored(bundle)
    }
}
