//! The model: its training, predictions, reports and files.

use std::sync::{Arc, OnceLock};

use super::centroids::Centroids;
use super::params::Params;
use super::predict::{PredictionMemory, Predictor, MAX_BLOCK_ROWS};
use super::top_splits::TopSplits;
use super::train::TrainingSet;
use super::tree::Tree;
use crate::control::Control;
use crate::data::{Batch, Preparation, Ragged, Rows};
use crate::error::{Error, Result};
use crate::file::{Bundle, Nest, Report};
use crate::learners::one_against_some::{OneAgainstSome, N_ROUNDS};
use crate::metrics::Shares;
use crate::model::{
    block_rows, checks, row_values, Blocks, Classifier, FitOptions, LabelSelection, Learner,
    PreparedScorers, Query, ReachedLeaf, Task, TopK, TopKArrays,
};
use crate::params::{to_json, Params as _};
use crate::threads::{sensible, Pool};

/// An LdSM model: trees, and the centroids and scorers that re-rank their labels.
#[derive(Debug, Clone)]
pub struct Ldsm {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// The preparation of rows, from the first fit.
    pub(super) preparation: Option<Preparation>,
    /// The trees, which models that are joined share.
    pub(super) trees: Vec<Arc<Tree>>,
    /// Centroids for re-ranking, if beta is below 1.
    pub(super) centroids: Option<Centroids>,
    /// A scorer for each label, unless scorers are disabled.
    pub(super) scorers: Option<OneAgainstSome>,
    /// Buffers for predictions of few rows; each fit starts with none.
    pub(super) memories: Pool<PredictionMemory>,
    /// Weights for predictions of single rows; each fit starts with none.
    pub(super) top_splits: OnceLock<TopSplits>,
}

/// Buffers are kept after predictions of rows with up to this many values, so that they stay small.
const MAX_KEPT_VALUES: usize = 1 << 16;

impl Classifier for Ldsm {
    fn boxed_clone(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }

    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn params_json(&self) -> Result<String> {
        to_json(&self.params)
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn n_features(&self) -> usize {
        self.preparation.as_ref().map_or(0, Preparation::n_features)
    }

    /// Grows trees until there are `n_estimators`: all of them, or with a warm start those that are
    /// missing. After an error or an interruption the model is unchanged.
    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()> {
        checks::check_classes(batch.targets.n_classes(), self.n_classes)?;
        checks::no_missing_values(&batch.rows, "LdSM")?;
        let n_threads = sensible(options.n_threads);
        let before = usize::from(options.warm_start) * self.trees.len();
        let known = self.preparation.as_ref().filter(|_| before > 0);
        let training = TrainingSet::read(&self.params, batch, known, n_threads, control)?;
        let missing = (self.params.n_estimators as usize).saturating_sub(before);
        let nodes = missing as u64 * u64::from(self.params.max_nodes);
        let rounds = u64::from(training.has_scorers()) * N_ROUNDS as u64;
        let labels = rounds * self.n_classes as u64;
        control.set_total(control.progress().done + nodes + labels);
        let numbers: Vec<usize> = (before..before + missing).collect();
        let trees = training.grow_trees(&numbers, false, n_threads, control)?;
        if before == 0 {
            self.scorers = training.train_scorers(&trees, n_threads, control)?;
            self.centroids = training.centroids();
        }
        self.trees.truncate(before);
        self.trees.extend(trees);
        self.preparation = Some(training.preparation);
        self.memories = Pool::default();
        self.top_splits = OnceLock::new();
        Ok(())
    }

    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays> {
        query.options.refuse("LdSM")?;
        let scorers = self.scorers.as_ref();
        let (blocks, control) = (self.blocks(query, scorers)?, query.control);
        blocks.top_k(k, |predictor, which, labels, scores| {
            predictor.read_block(query.rows, which, control)?;
            let mut top = TopK::new(k.min(self.n_classes));
            let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (i, (labels, scores)) in rows.enumerate() {
                predictor.score_row(i);
                predictor.best(&mut top);
                top.write(labels, scores);
                predictor.calibrate(scores);
            }
            Ok(())
        })
    }

    fn select_labels(
        &self,
        query: &Query<'_>,
        selection: LabelSelection,
    ) -> Result<Ragged<(u32, f32)>> {
        let scorers = self.scorers.as_ref();
        let (blocks, control) = (self.blocks(query, scorers)?, query.control);
        let rows = blocks.fill(1, Vec::new(), |predictor, which, rows: &mut [Vec<_>]| {
            let mut selected = Vec::new();
            predictor.read_block(query.rows, which, control)?;
            for (i, row) in rows.iter_mut().enumerate() {
                predictor.score_row(i);
                predictor.select(selection, &mut selected);
                row.clone_from(&selected);
            }
            Ok(())
        })?;
        let mut sets = Ragged::default();
        rows.into_iter().for_each(|row| sets.push(row));
        Ok(sets)
    }

    fn scorers(&self) -> Option<PreparedScorers<'_>> {
        Some(PreparedScorers {
            scorers: &self.scorers.as_ref()?.weights,
            preparation: self.preparation.as_ref()?,
        })
    }

    fn leaves(&self, query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        let nodes: Vec<Vec<u32>> = self
            .trees
            .iter()
            .map(|tree| tree.nodes_of_leaves())
            .collect();
        let (blocks, control) = (self.blocks(query, None)?, query.control);
        blocks.fill(1, Vec::new(), |predictor, which, leaves: &mut [Vec<_>]| {
            predictor.read_block(query.rows, which, control)?;
            for (i, leaves) in leaves.iter_mut().enumerate() {
                leaves.extend(predictor.leaves(i).map(|(tree, leaf)| ReachedLeaf {
                    tree,
                    node: nodes[tree as usize][leaf as usize],
                }));
            }
            Ok(())
        })
    }

    /// Sets the parameters of further trees and of predictions. Parameters that the model's trees
    /// depend on cannot be changed.
    fn set_params(&mut self, json: &str) -> Result<()> {
        let params = Params::from_json(json)?;
        if !params.fits(&self.params) {
            return Err(Error::data(
                "arity, scaling, n_bits, scorers, n_negatives, tail_weight, cost, weight_threshold \
                 and whether beta is 1 must stay as they are when trees are added",
            ));
        }
        self.params = params;
        Ok(())
    }

    fn effort(&self, rows: &Rows<'_>, _task: Task<'_>) -> usize {
        /// Approximate number of nodes that a row visits in a tree.
        const NODES_PER_TREE: usize = 32;
        let arity = self.params.arity as usize;
        let preparation = self.preparation.as_ref();
        let trees = preparation
            .map_or(0, |preparation| row_values(preparation, rows))
            .saturating_mul(rows.n_rows())
            .saturating_mul(self.trees.len().saturating_mul(NODES_PER_TREE * arity));
        let scorers = self.scorers.as_ref();
        let n_weights = scorers.map_or(0, |scorers| scorers.weights.mean_per_feature());
        trees.saturating_add(rows.n_values().saturating_mul(n_weights))
    }

    /// Reports `n_trees` and `has_scorers`; with scorers `n_scorer_weights`, `scorer_idf_power`,
    /// `scorer_cost`, and the numbers of join, calibration and [`Shares`](crate::metrics::Shares);
    /// and `collapsed`, which is 1 for each tree that has collapsed. Such a tree has less than a
    /// hundredth of the nodes that it may have, although the labels in its leaves are nearly as
    /// mixed as those of the root. A `lambda1` that is too large causes this.
    fn summary(&self) -> Report {
        let mut report = Report::new();
        report.scalar("n_trees", self.trees.len() as u64);
        report.scalar("has_scorers", u8::from(self.scorers.is_some()));
        if let Some(scorers) = &self.scorers {
            report.scalar("n_scorer_weights", scorers.weights.lists.n_entries() as u64);
            report.scalar("scorer_weight", f64::from(scorers.join.weight));
            report.scalar("scorer_floor", f64::from(scorers.join.floor));
            report.scalar("scorer_idf_power", scorers.idf_power);
            report.scalar("scorer_cost", scorers.cost);
            let calibration = scorers.calibration;
            report.scalar("calibration_offset", f64::from(calibration.offset));
            report.scalar("calibration_slope", f64::from(calibration.slope));
            let names = [
                "shares_slope",
                "shares_rest",
                "shares_top_slope",
                "shares_intercept",
                "shares_bend_above",
                "shares_bend_below",
                "shares_later_slope",
                "shares_later_rest",
                "shares_later_labels",
            ];
            if calibration.shares != Shares::default() {
                for (name, number) in names.into_iter().zip(calibration.shares.parameters()) {
                    report.scalar(name, number);
                }
            }
        }
        let is_small = |tree: &Arc<Tree>| tree.len() * 100 < self.params.max_nodes as usize;
        let collapsed = |tree: &Arc<Tree>| u8::from(is_small(tree) && tree.is_mixed);
        report.column("collapsed", self.trees.iter().map(collapsed));
        report
    }

    fn reports(&self) -> Vec<Report> {
        self.trees.iter().map(|tree| tree.report()).collect()
    }

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("n_trees", &self.trees.len());
        bundle.put_meta("has_centroids", &self.centroids.is_some());
        bundle.put_meta("has_scorers", &self.scorers.is_some());
        if let Some(preparation) = &self.preparation {
            let mut inner = Bundle::new("preparation");
            preparation.put(&mut inner);
            bundle.nest("preparation", inner);
        }
        for (t, tree) in self.trees.iter().enumerate() {
            bundle.nest(&format!("tree{t}"), tree.to_bundle());
        }
        if let Some(centroids) = &self.centroids {
            Nest::put(centroids, "centroids", &mut bundle);
        }
        if let Some(scorers) = &self.scorers {
            bundle.nest("scorers", scorers.to_bundle());
        }
        bundle
    }
}

impl Learner for Ldsm {
    const KIND: &'static str = "ldsm";

    type Params = Params;

    fn create(params: Params, n_classes: usize, _label_sets: bool) -> Result<Self> {
        checks::n_classes(n_classes)?;
        Ok(Self {
            params: params.check()?,
            n_classes,
            preparation: None,
            trees: Vec::new(),
            centroids: None,
            scorers: None,
            memories: Pool::default(),
            top_splits: OnceLock::new(),
        })
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let (params, n_classes) = (bundle.take_meta("params")?, bundle.take_meta("n_classes")?);
        let created = Self::create(params, n_classes, true);
        let mut ldsm = created.map_err(|error| bundle.damaged(error))?;
        let n_trees: usize = bundle.take_meta("n_trees")?;
        if n_trees == 0 {
            return Ok(ldsm);
        }
        let preparation = Preparation::take(&mut bundle.unnest("preparation")?)?;
        let width = preparation.width();
        for t in 0..n_trees {
            let mut inner = bundle.unnest(&format!("tree{t}"))?;
            let tree = Tree::take(&mut inner, ldsm.params.arity, width, n_classes)?;
            ldsm.trees.push(Arc::new(tree));
        }
        if bundle.take_meta("has_centroids")? {
            let mut inner = bundle.unnest("centroids")?;
            ldsm.centroids = Some(Centroids::take(&mut inner, n_classes, width)?);
        }
        if bundle.take_meta("has_scorers")? {
            let mut inner = bundle.unnest("scorers")?;
            ldsm.scorers = Some(OneAgainstSome::take(&mut inner, n_classes, width)?);
        }
        ldsm.preparation = Some(preparation);
        Ok(ldsm)
    }
}

impl Ldsm {
    /// Grows the trees of these numbers, to be joined with others that are grown elsewhere. The first
    /// tree brings the centroids of the rows. See [`TrainingSet::grow_trees`].
    pub fn with_trees(
        training: &TrainingSet,
        numbers: &[usize],
        learn_all: bool,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        let n_classes = training.examples.n_labels;
        let mut model = Self::create(training.params.clone(), n_classes, true)?;
        model.trees = training.grow_trees(numbers, learn_all, n_threads, control)?;
        model.preparation = Some(training.preparation.clone());
        if numbers.contains(&0) {
            model.centroids = training.centroids();
        }
        Ok(model)
    }

    /// Checks the rows of `query` and shares them out in blocks, to be predicted with these scorers.
    /// Predictions of few rows use kept buffers, because allocating them would take longer than
    /// predicting.
    pub(super) fn blocks<'a>(
        &'a self,
        query: &'a Query<'a>,
        scorers: Option<&'a OneAgainstSome>,
    ) -> Result<Blocks<'a, impl Fn() -> Predictor<'a> + Sync + Send>> {
        let (rows, preparation) = (query.rows, self.preparation.as_ref());
        let preparation = preparation.ok_or_else(checks::nothing_learned)?;
        checks::no_missing_values(rows, "LdSM")?;
        preparation.check_columns(rows)?;
        let row_values = row_values(preparation, rows);
        let is_kept = rows.n_rows().saturating_mul(row_values) <= MAX_KEPT_VALUES;
        let new = move || PredictionMemory::new(self.n_classes);
        Ok(Blocks {
            query,
            step: block_rows(row_values, MAX_BLOCK_ROWS),
            new_predictor: move || Predictor {
                preparation,
                trees: &self.trees,
                top_splits: &self.top_splits,
                centroids: self.centroids.as_ref(),
                scorers,
                beta: self.params.beta as f32,
                memory: self.memories.lend_if(is_kept, new),
            },
        })
    }
}
