//! The estimator: the parameters, and after `fit` the committee.

use std::collections::BTreeMap;
use std::ops::Range;

use super::boost::{boost, split_rows, Examples, LabelledRows};
use super::columns::Columns;
use super::frozen::{check_memory, FrozenTrees, BLOCK_VALUES, MAX_BLOCK_ROWS};
use super::predict::{slope, Predictor, TreeLeaf};
use super::tree::Tree;
use super::Params;
use crate::control::Control;
use crate::data::{Batch, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Persist, Report};
use crate::memory::can_alloc;
use crate::model::{
    checks, Accepts, Blocks, Classifier, FitOptions, Learner, PredictOptions, Query, ReachedLeaf,
    Task, TopKArrays,
};
use crate::params::{to_json, Params as _};
use crate::persist;
use crate::threads::with_threads;

/// Bytes per feature while examples are read, about.
const FEATURE_BYTES: usize = 64;

/// A committee of trees, learned by GAMBLE or SAMME.
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
    /// Columns of X; 0 before anything was learned.
    n_features: usize,
    /// In the order of their rounds.
    pub(super) trees: Vec<Tree>,
    /// The factor of F / (K - 1) at which its softmax is as sure as it is right; 1 where that is not
    /// known.
    slope: f64,
    /// The trees again, for prediction.
    frozen: FrozenTrees,
}

persist!(Gamble {
    Meta n_features;
    Meta slope;
    Columns trees;
} check check_trees);

impl Gamble {
    /// Learns from scratch, or with `warm_start` the rounds that are missing. On an error, or
    /// stopped half way, it stays as it was.
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
                "{n_features} features: there is no memory to learn from so many"
            )));
        }
        let mut before = Vec::new();
        if options.warm_start && self.n_features > 0 {
            batch.rows.check_n_cols(self.n_features)?;
            before.clone_from(&self.trees);
        }
        let weights = batch.relative_weights(&batch.present());
        let batch = &batch.with_weights(weights.as_deref());
        let holds_out = params.early_stopping && validation.is_none();
        let (which, n_learned) = split_rows(params, n_classes, batch, holds_out)?;
        let (which_learned, held_out) = which.split_at(n_learned);
        let learned = LabelledRows {
            batch,
            which: which_learned,
        };
        let present = validation.map_or(Vec::new(), Batch::present);
        if validation.is_some() && present.is_empty() {
            return Err(Error::data("no validation row has a weight above 0"));
        }
        let validation = match validation {
            Some(batch) => Some((batch, &present[..])),
            None => holds_out.then_some((batch, held_out)),
        };
        let validation = validation.map(|(batch, which)| LabelledRows { batch, which });
        let trees = with_threads(options.n_threads, |threads| {
            let examples = Examples {
                columns: &Columns::new(&batch.rows, &which, params, threads, control)?,
                learned,
                validation,
                n_classes,
            };
            boost(params, before, &examples, control)
        })??;
        let frozen = FrozenTrees::new(&trees);
        let slope = slope(params, &frozen, &learned, n_classes);
        self.slope = slope.unwrap_or(1.0);
        self.frozen = frozen;
        self.trees = trees;
        self.n_features = n_features;
        // What a warm start begins with may come from a file that somebody made up.
        debug_assert!(
            options.warm_start || self.to_bundle().array_with(f64::is_nan).is_none(),
            "learned what is no number"
        );
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

    /// The trees that `query` asks for and what predicts its rows, which are checked.
    fn blocks<'a>(
        &'a self,
        query: &'a Query<'a>,
    ) -> Result<(
        Range<usize>,
        Blocks<'a, impl Fn() -> Predictor + Sync + Send + 'a>,
    )> {
        if self.n_features == 0 {
            return Err(checks::nothing_learned());
        }
        query.rows.check_n_cols(self.n_features)?;
        check_memory(self.n_features, self.n_classes)?;
        let other = PredictOptions {
            first_tree: None,
            last_tree: None,
            ..query.options
        };
        other.refuse(self.params.algorithm.learner())?;
        let n_trees = self.trees.len();
        let first = query.options.first_tree.unwrap_or(0);
        let last = query.options.last_tree.unwrap_or(n_trees);
        if first > last || last > n_trees {
            let allowed = format!("a range within 0 to {n_trees}");
            return Err(Error::parameter(
                "trees",
                format!("{first} to {last}"),
                allowed,
            ));
        }
        // The more rows go through a tree while it is in the cache the better, but each thread
        // should have some.
        let of_thread = query.rows.n_rows().div_ceil(query.n_threads.max(1));
        let most_rows = (BLOCK_VALUES / (self.n_features + self.n_classes)).min(MAX_BLOCK_ROWS);
        let step = most_rows.min(of_thread.next_multiple_of(64)).max(1);
        let blocks = Blocks {
            query,
            step,
            new_predictor: || Predictor::new(self.n_classes),
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

    fn accepts(&self) -> Accepts {
        Accepts {
            label_sets: false,
            missing_values: true,
        }
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

    /// Another number of rounds, for a fit with `warm_start`; all else stays.
    fn set_params(&mut self, json: &str) -> Result<()> {
        let params = Params::from_json(json)?.check()?;
        let n_estimators = params.n_estimators;
        if params
            != (Params {
                n_estimators,
                ..self.params.clone()
            })
        {
            return Err(Error::data(
                "only n_estimators may change where rounds are added",
            ));
        }
        self.params = params;
        Ok(())
    }

    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays> {
        let (trees, blocks) = self.blocks(query)?;
        blocks.top_k(k, |predictor, which, labels, scores| {
            predictor.score(&self.frozen, trees.clone(), query.rows, which, |_, _| {});
            predictor.write_topk(k, labels, scores);
            Ok(())
        })
    }

    /// The scores F in double precision.
    fn predict_scores(&self, query: &Query<'_>) -> Result<Array> {
        let (trees, blocks) = self.blocks(query)?;
        let scores = blocks.fill(self.n_classes, 0.0, |predictor, which, scores| {
            predictor.score(&self.frozen, trees.clone(), query.rows, which, |_, _| {});
            scores.copy_from_slice(&predictor.scores);
            Ok(())
        })?;
        Ok(scores.into())
    }

    fn staged_predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        let (trees, blocks) = self.blocks(query)?;
        let n_trees = trees.len();
        blocks.fill(n_trees, 0, |predictor, which, labels| {
            let visit = |TreeLeaf { row, tree, .. }, scores: &[f64]| {
                let mut best = 0;
                for (class, &score) in scores.iter().enumerate() {
                    if score as f32 > scores[best] as f32 {
                        best = class;
                    }
                }
                labels[row * n_trees + tree - trees.start] = best as i32;
            };
            predictor.score(&self.frozen, trees.clone(), query.rows, which, visit);
            Ok(())
        })
    }

    fn leaves(&self, query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        let (trees, blocks) = self.blocks(query)?;
        blocks.lists(|predictor, which, leaves: &mut [Vec<_>]| {
            let visit = |TreeLeaf { row, tree, leaf }, _: &[f64]| {
                leaves[row].push(ReachedLeaf {
                    tree: (tree - trees.start) as u32,
                    node: leaf - self.frozen.nodes.roots[tree],
                });
            };
            predictor.score(&self.frozen, trees.clone(), query.rows, which, visit);
            Ok(())
        })
    }

    fn effort(&self, rows: &Rows<'_>, task: Task<'_>) -> usize {
        /// Cost of a node, in products.
        const NODE_PRODUCTS: usize = 16;
        if !matches!(task, Task::Predict { .. }) {
            return usize::MAX;
        }
        let depth = self.params.max_leaves.ilog2() as usize + 1;
        (self.trees.len() * depth * NODE_PRODUCTS + self.n_classes)
            .saturating_mul(rows.n_rows())
            .saturating_add(rows.n_values())
    }

    /// Columns:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `n_trees` | trees there are |
    /// | `slope` | the factor of F / (K - 1) before the softmax that gives probabilities |
    fn summary(&self) -> Report {
        let mut summary = Report::new();
        summary.scalar("n_trees", self.trees.len() as u32);
        summary.scalar("slope", self.slope);
        summary
    }

    /// Columns:
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `features` | those that are split by, rising |
    /// | `gain` | the gain of the splits by each, each tree's in shares of its weight |
    /// | `splits` | the number of these splits |
    fn importances(&self) -> Report {
        let mut of_features = BTreeMap::<u32, (f64, u64)>::new();
        for tree in &self.trees {
            let all = tree.statistics[0].weight;
            for (node, statistics) in tree.nodes.iter().zip(&tree.statistics) {
                if !node.is_leaf() {
                    let (gain, n_splits) = of_features.entry(node.feature).or_default();
                    *gain += statistics.gain / all;
                    *n_splits += 1;
                }
            }
        }
        let mut importances = Report::new();
        importances.column("features", of_features.keys().copied());
        let found = of_features.values();
        importances.column("gain", found.clone().map(|&(gain, _)| gain));
        importances.column("splits", found.map(|&(_, n_splits)| n_splits));
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
        bundle
    }

    /// The votes; thresholds must stay as they are.
    fn to_compact_bundle(&self, _control: &Control) -> Result<Bundle> {
        let mut bundle = self.to_bundle();
        bundle.narrow(|name| name.starts_with("trees.leaves"));
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
            frozen: FrozenTrees::default(),
        })
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let (params, n_classes) = (bundle.take_meta("params")?, bundle.take_meta("n_classes")?);
        let model = Self::create(params, n_classes, false);
        let mut model = model.map_err(|error| bundle.damaged(error))?;
        model.fill(&mut bundle)?;
        model.frozen = FrozenTrees::new(&model.trees);
        Ok(model)
    }
}
