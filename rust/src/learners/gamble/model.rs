//! The classifier: its parameters and, after `fit`, the committee of trees.

use std::collections::BTreeMap;
use std::ops::Range;

use super::boost::{boost, split_rows, Evaluations, Examples, LabeledRows};
use super::columns::Columns;
use super::frozen::{block_rows, check_memory, FrozenTrees, LeafHit};
use super::linear::LinearScores;
use super::predict::{best_class, calibrate, Predictor};
use super::shap::TreeExplainer;
use super::tree::Tree;
use super::Params;
use crate::control::Control;
use crate::data::{Batch, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Nest, Persist, Report};
use crate::memory::{self, can_alloc};
use crate::model::{
    checks, Blocks, Classifier, Contributions, FitOptions, Learner, PredictOptions, Query,
    ReachedLeaf, Task, TopK, TopKArrays, CONTRIBUTION_BYTES,
};
use crate::params::{to_json, Params as _};
use crate::persist;
use crate::threads::with_threads;

/// Approximate number of bytes per feature while examples are read.
const FEATURE_BYTES: usize = 64;

type PredictorBlocks<'a> = Blocks<'a, fn() -> Predictor>;

/// A committee of trees, trained by GAMBLE or SAMME.
///
/// ```
/// use xmtree::model::{Classifier, FitOptions, Learner, Query};
/// use xmtree::data::{Batch, Labels, Rows, Targets, Values};
/// use xmtree::learners::gamble::{Gamble, Params};
/// use xmtree::Control;
///
/// let x = [1.0, 2.0, 3.0, f64::NAN];
/// let rows = Rows::dense(Values::F64(&x), 4, 1, true)?;
/// let labels = Labels::new(&[0, 1, 2, 0], 3)?;
/// let params = Params { n_estimators: 10, subsample: 1.0, ..Params::default() };
/// let mut model = Gamble::create(params, 3, false)?;
/// let control = Control::new(0);
/// let batch = Batch::new(rows, Targets::One(labels), None)?;
/// model.fit(&batch, FitOptions::threads(1), &control)?;
/// assert_eq!(model.predict(&Query::new(&rows, 1, &control))?, [0, 1, 2, 0]);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gamble {
    params: Params,
    n_classes: usize,
    /// Number of columns of X; 0 before training.
    n_features: usize,
    /// Trees in the order of their rounds.
    pub(super) trees: Vec<Tree>,
    /// Factor of F / (K - 1) for which its softmax is calibrated; 1 if it is unknown.
    pub(super) slope: f64,
    /// Scores that are added to the votes of the trees; none if they vote alone.
    pub(super) linear: LinearScores,
    /// The trees in the form for prediction.
    frozen: FrozenTrees,
    /// Measures of the last training, which files do not store.
    evaluations: Evaluations,
}

persist!(Gamble {
    Meta n_features;
    Meta slope;
    Columns trees;
} check check_trees);

impl Gamble {
    /// Trains from scratch or, with `warm_start`, adds the missing rounds. On an error or an
    /// interruption, the model stays as it was.
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        validation: Option<&Batch<'_>>,
        options: FitOptions,
        control: &Control,
    ) -> Result<()> {
        let (params, n_classes) = (&self.params, self.n_classes);
        let n_features = batch.rows.n_cols();
        for batch in std::iter::once(batch).chain(validation) {
            checks::targets(batch, params.algorithm.learner(), n_classes, false)?;
            batch.rows.check_n_cols(n_features)?;
        }
        if !can_alloc(n_features.checked_mul(FEATURE_BYTES)) {
            return Err(Error::data(format!(
                "{n_features} features do not fit into memory"
            )));
        }
        let mut earlier_trees = Vec::new();
        if options.warm_start && self.n_features > 0 {
            batch.rows.check_n_cols(self.n_features)?;
            earlier_trees.clone_from(&self.trees);
        }
        let weights = batch.relative_weights(&batch.present());
        let batch = &batch.with_weights(weights.as_deref());
        let holds_out = params.early_stopping && validation.is_none();
        let (which, n_learned) = split_rows(params, n_classes, batch, holds_out)?;
        let (learned, held_out) = which.split_at(n_learned);
        let learned = LabeledRows {
            batch,
            which: learned,
        };
        let present = validation.map(Batch::present).unwrap_or_default();
        if validation.is_some() && present.is_empty() {
            return Err(Error::data("no validation row has a weight above 0"));
        }
        let validation = match validation {
            Some(batch) => Some((batch, &present[..])),
            None => holds_out.then_some((batch, held_out)),
        };
        let (trees, evaluations) = with_threads(options.n_threads, |threads| {
            let examples = Examples {
                columns: &Columns::new(&batch.rows, &which, params, threads, control)?,
                learned,
                validation: validation.map(|(batch, which)| LabeledRows { batch, which }),
                n_classes,
                threads,
            };
            boost(params, earlier_trees, &examples, control)
        })??;
        let frozen = FrozenTrees::new(&trees);
        // The measures of validation rows are those of the trees.
        let params = &Params {
            linear: params.linear && validation.is_none(),
            ..params.clone()
        };
        let (slope, linear) = calibrate(params, &frozen, &learned, n_classes, control)?;
        self.slope = slope.unwrap_or(1.0);
        self.linear = linear;
        self.frozen = frozen;
        self.evaluations = evaluations;
        self.trees = trees;
        self.n_features = n_features;
        Ok(())
    }

    fn check_trees(&self) -> std::result::Result<(), String> {
        if !(self.slope > 0.0 && self.slope.is_finite()) {
            return Err(format!("slope {} is not above 0", self.slope));
        }
        let is_sound = |tree: &Tree| tree.is_sound(self.n_classes, self.n_features);
        let broken = self.trees.iter().position(|tree| !is_sound(tree));
        broken.map_or(Ok(()), |at| Err(format!("tree {at} is inconsistent")))
    }

    /// Computes the scores of the rows `which` by `trees` and the linear part; see [`Predictor::score`].
    fn score(
        &self,
        predictor: &mut Predictor,
        trees: Range<usize>,
        rows: &Rows<'_>,
        which: Range<usize>,
        visit: impl FnMut(LeafHit, &[f64]),
    ) {
        let parts = (&self.frozen, &self.linear);
        predictor.score(parts, trees, self.n_classes, rows, which, visit);
    }

    /// Checks a query. Returns the trees that it selects, and its blocks of rows.
    fn blocks<'a>(&self, query: &'a Query<'a>) -> Result<(Range<usize>, PredictorBlocks<'a>)> {
        if self.n_features == 0 {
            return Err(checks::nothing_learned());
        }
        query.rows.check_n_cols(self.n_features)?;
        check_memory(self.n_features, self.n_classes)?;
        let other_options = PredictOptions {
            first_tree: None,
            last_tree: None,
            ..query.options
        };
        other_options.refuse(self.params.algorithm.learner())?;
        let n_trees = self.trees.len();
        let first = query.options.first_tree.unwrap_or(0);
        let last = query.options.last_tree.unwrap_or(n_trees);
        if first > last || last > n_trees {
            let (given, allowed) = (
                format!("{first} to {last}"),
                format!("a range within 0 to {n_trees}"),
            );
            return Err(Error::parameter("trees", given, allowed));
        }
        // Large blocks use a tree while it is in the cache, but each thread should get some rows.
        let thread_rows = query.rows.n_rows().div_ceil(query.n_threads.max(1));
        let step = block_rows(self.n_features + self.n_classes);
        let step = step.min(thread_rows.next_multiple_of(64)).max(1);
        let blocks = Blocks {
            query,
            step,
            new_predictor: Predictor::default as fn() -> Predictor,
        };
        Ok((first..last, blocks))
    }
}

impl Classifier for Gamble {
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
        self.n_features
    }

    fn accepts_missing_values(&self) -> bool {
        true
    }

    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()> {
        self.learn(batch, None, options, control)
    }

    fn fit_validated(
        &mut self,
        batch: &Batch<'_>,
        validation: &Batch<'_>,
        options: FitOptions,
        control: &Control,
    ) -> Result<()> {
        self.learn(batch, Some(validation), options, control)
    }

    /// Changes the number of rounds, for a fit with `warm_start`. Other parameters cannot change.
    fn set_params(&mut self, json: &str) -> Result<()> {
        let params = Params::from_json(json)?.check()?;
        let allowed = Params {
            n_estimators: params.n_estimators,
            ..self.params.clone()
        };
        if params != allowed {
            return Err(Error::data(
                "only n_estimators may change where rounds are added",
            ));
        }
        self.params = params;
        Ok(())
    }

    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays> {
        let (trees, blocks) = self.blocks(query)?;
        let n_classes = self.n_classes;
        blocks.top_k(k, |predictor, which, labels, scores| {
            self.score(predictor, trees.clone(), query.rows, which, |_, _| {});
            let mut top = TopK::new(k.min(n_classes));
            let outputs = labels.chunks_mut(k).zip(scores.chunks_mut(k));
            for (row, (labels, scores)) in predictor.scores.chunks_exact(n_classes).zip(outputs) {
                top.clear();
                top.push_all(row.iter().map(|&score| score as f32));
                top.write(labels, scores);
            }
            Ok(())
        })
    }

    /// Returns the scores F in double precision.
    fn predict_scores(&self, query: &Query<'_>) -> Result<Array> {
        let (trees, blocks) = self.blocks(query)?;
        let n_classes = self.n_classes;
        let scores = blocks.fill(n_classes, 0.0, |predictor, which, scores| {
            self.score(predictor, trees.clone(), query.rows, which, |_, _| {});
            scores.copy_from_slice(&predictor.scores);
            Ok(())
        })?;
        Ok(scores.into())
    }

    fn staged_predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        let (trees, blocks) = self.blocks(query)?;
        let n_trees = trees.len();
        blocks.fill(n_trees, 0, |predictor, which, labels| {
            let visit = |LeafHit { row, tree, .. }, scores: &[f64]| {
                let best = best_class(scores.iter().map(|&score| score as f32));
                labels[row * n_trees + tree - trees.start] = best as i32;
            };
            self.score(predictor, trees.clone(), query.rows, which, visit);
            Ok(())
        })
    }

    fn leaves(&self, query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        let (trees, blocks) = self.blocks(query)?;
        blocks.fill(1, Vec::new(), |predictor, which, leaves: &mut [Vec<_>]| {
            let (wanted, router) = (trees.clone(), &mut predictor.router);
            router.route(&self.frozen, wanted, query.rows, which, |hit| {
                leaves[hit.row].push(ReachedLeaf {
                    tree: (hit.tree - trees.start) as u32,
                    node: hit.leaf - self.frozen.roots[hit.tree],
                });
            });
            Ok(())
        })
    }

    /// Returns exact SHAP values, and the mean score by the training rows of each tree.
    fn contributions(&self, query: &Query<'_>, classes: &[u32]) -> Result<Vec<Contributions>> {
        let (trees, blocks) = self.blocks(query)?;
        let width = self.n_features;
        blocks.fill(1, Vec::new(), |predictor, which, found: &mut [Vec<_>]| {
            predictor.router.read(query.rows, which.clone(), 1);
            let mut sums = vec![0.0; found.len() * (width + 1)];
            let explained = sums
                .chunks_exact_mut(width + 1)
                .zip(&classes[which.clone()]);
            if trees.start == 0 {
                let rows = predictor.router.values.chunks_exact(width).zip(explained);
                rows.for_each(|(row, (sums, &class))| self.linear.explain(row, class, sums));
            }
            for tree in &self.trees[trees.clone()] {
                query.control.check()?;
                let mut explainer = TreeExplainer::new(tree);
                let rows = predictor.router.values.chunks_exact(width);
                let sums = sums.chunks_exact_mut(width + 1);
                for ((values, sums), &class) in rows.zip(sums).zip(&classes[which.clone()]) {
                    explainer.explain(values, class, sums);
                }
            }
            let n_found = sums.iter().filter(|sum| **sum != 0.0).count() + found.len();
            let what = format!("contributions to {} scores", found.len());
            memory::check(
                n_found * CONTRIBUTION_BYTES,
                &what,
                "explain fewer rows at a time",
            )?;
            for (found, sums) in found.iter_mut().zip(sums.chunks_exact(width + 1)) {
                let sums = (0..).zip(sums.iter().copied());
                found.extend(sums.filter(|&(at, sum)| sum != 0.0 || at as usize == width));
            }
            Ok(())
        })
    }

    fn effort(&self, rows: &Rows<'_>, _task: Task<'_>) -> usize {
        /// Cost of a node in products.
        const NODE_PRODUCTS: usize = 16;
        let depth = self.params.max_leaves.ilog2() as usize + 1;
        (self.trees.len() * depth * NODE_PRODUCTS + self.n_classes)
            .saturating_mul(rows.n_rows())
            .saturating_add(rows.n_values())
    }

    /// Columns:
    ///
    /// | column | contents |
    /// |---|---|
    /// | `n_trees` | number of trees |
    /// | `slope` | factor of F / (K - 1) in the softmax that gives probabilities |
    fn summary(&self) -> Report {
        let mut summary = Report::new();
        summary.scalar("n_trees", self.trees.len() as u32);
        summary.scalar("slope", self.slope);
        summary
    }

    /// Columns:
    ///
    /// | column | contents |
    /// |---|---|
    /// | `error` | share of wrong predictions of the validation rows |
    /// | `log_loss` | log loss of these rows; empty unless it is the measure of early stopping |
    fn evaluations(&self) -> Report {
        let mut evaluations = Report::new();
        let Evaluations { errors, log_losses } = &self.evaluations;
        evaluations.column("error", errors.iter().copied());
        evaluations.column("log_loss", log_losses.iter().copied());
        evaluations
    }

    /// Columns:
    ///
    /// | column | contents |
    /// |---|---|
    /// | `features` | features with a split, in rising order |
    /// | `gain` | gain of a feature's splits, each as a share of its tree's weight |
    /// | `splits` | number of a feature's splits |
    /// | `coefficients` | of all classes for each column of X, in the linear part; NaN for categories; empty without it |
    fn importances(&self) -> Report {
        let mut by_feature = BTreeMap::<u32, (f64, u64)>::new();
        for tree in &self.trees {
            let all = tree.statistics[0].weight;
            for (node, statistics) in tree.nodes.iter().zip(&tree.statistics) {
                if !node.is_leaf() {
                    let (gain, n_splits) = by_feature.entry(node.feature).or_default();
                    *gain += statistics.gain / all;
                    *n_splits += 1;
                }
            }
        }
        let mut importances = Report::new();
        importances.column("features", by_feature.keys().copied());
        let found = by_feature.values();
        importances.column("gain", found.clone().map(|&(gain, _)| gain));
        importances.column("splits", found.map(|&(_, n_splits)| n_splits));
        importances.column("coefficients", self.linear.by_column());
        importances
    }

    fn reports(&self) -> Vec<Report> {
        self.trees.iter().map(Tree::report).collect()
    }

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        self.put(&mut bundle);
        // Models without it have no such part, as in earlier versions.
        if !self.linear.is_empty() {
            Nest::put(&self.linear, "linear", &mut bundle);
        }
        bundle
    }

    /// Narrows the votes only, because thresholds must stay exact.
    fn to_prediction_bundle(&self, compact: bool, _control: &Control) -> Result<Bundle> {
        let mut bundle = self.to_bundle();
        bundle.narrow(|name| compact && name.starts_with("trees.leaves"));
        Ok(bundle)
    }
}

impl Learner for Gamble {
    const KIND: &'static str = "gamble";

    type Params = Params;

    fn create(params: Params, n_classes: usize, label_sets: bool) -> Result<Self> {
        checks::n_classes(n_classes)?;
        let params = params.check()?;
        if label_sets {
            return Err(checks::one_label_per_row(params.algorithm.learner()));
        }
        Ok(Self {
            params,
            n_classes,
            n_features: 0,
            trees: Vec::new(),
            slope: 1.0,
            linear: LinearScores::default(),
            frozen: FrozenTrees::default(),
            evaluations: Evaluations::default(),
        })
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let (params, n_classes) = (bundle.take_meta("params")?, bundle.take_meta("n_classes")?);
        let model = Self::create(params, n_classes, false);
        let mut model = model.map_err(|error| bundle.damaged(error))?;
        model.fill(&mut bundle)?;
        if bundle.meta().contains_key("linear/") {
            Nest::fill(&mut model.linear, "linear", &mut bundle)?;
        }
        let is_sound = model.linear.is_sound(model.n_features, n_classes);
        bundle.require(is_sound, "the linear scores do not match")?;
        model.frozen = FrozenTrees::new(&model.trees);
        Ok(model)
    }
}
