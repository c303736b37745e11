//! The estimator: the parameters, and after `fit` the committee.

use rand::seq::SliceRandom;

use super::boost::boost;
use super::columns::Columns;
use super::examples::Examples;
use super::sampling::generator;
use super::{Params, Report, Tree};
use crate::alloc::can_alloc;
use crate::classifier::checks;
use crate::control::Control;
use crate::data::check_parts;
use crate::data::{GappyRows, Labels};
use crate::error::{Error, Result};
use crate::threads::with_threads;

/// Bytes per feature while examples are read, about.
const FEATURE_BYTES: usize = 64;

/// What `fit` learns: examples, of which values may be missing, one label each, and
/// importances.
#[derive(Debug, Clone, Copy)]
pub struct Lesson<'a> {
    rows: GappyRows<'a>,
    labels: Labels<'a>,
    weights: Option<&'a [f32]>,
}

impl<'a> Lesson<'a> {
    /// Checks that the parts are of one length, and that weights are finite and not
    /// negative.
    pub fn new(
        rows: GappyRows<'a>,
        labels: Labels<'a>,
        weights: Option<&'a [f32]>,
    ) -> Result<Self> {
        check_parts(rows.n_rows(), labels.len(), weights)?;
        Ok(Self {
            rows,
            labels,
            weights,
        })
    }

    fn weight(&self, row: u32) -> f32 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }
}

/// A committee of trees, learned by GAMBLE or SAMME.
///
/// ```
/// use xmtree::{data::{GappyRows, Labels, Values}, learners::gamble::{Gamble, Lesson, Params}, Control};
///
/// let params: Params = serde_json::from_str(r#"{
///     "algorithm": "gamble", "n_estimators": 10, "max_leaves": 4, "min_samples_leaf": 1,
///     "learning_rate": 1.0, "max_features": 1.0, "subsample": 1.0, "trim": 0.0,
///     "clip": true, "splits": "exact", "categorical_features": [], "early_stopping": false,
///     "validation_fraction": 0.1, "patience": 5, "seed": 0
/// }"#).unwrap();
/// let x = [1.0, 2.0, 3.0, f64::NAN];
/// let rows = GappyRows::dense(Values::F64(&x), 4, 1)?;
/// let labels = Labels::new(&[0, 1, 2, 0], 3)?;
/// let mut model = Gamble::new(params, 3)?;
/// let control = Control::new(0);
/// model.fit(&Lesson::new(rows, labels, None)?, 1, &control)?;
/// assert_eq!(model.predict_topk(&rows, 1, 1, &control)?.0, [0, 1, 2, 0]);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gamble {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Columns of X; 0 before anything was learned.
    pub(super) n_features: usize,
    pub(super) trees: Vec<Tree>,
}

impl Gamble {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        checks::check_n_classes(n_classes)?;
        Ok(Self {
            params: params.check()?,
            n_classes,
            n_features: 0,
            trees: Vec::new(),
        })
    }

    /// Fits from scratch. On an error the model stays as it was.
    pub fn fit(&mut self, lesson: &Lesson<'_>, n_threads: usize, control: &Control) -> Result<()> {
        checks::check_classes(lesson.labels.n_classes(), self.n_classes)?;
        let n_features = lesson.rows.n_cols();
        if !can_alloc(n_features.checked_mul(FEATURE_BYTES)) {
            return Err(Error::data(format!(
                "{n_features} features: there is no memory to learn from so many"
            )));
        }
        let (which, n_learned) = self.split_rows(lesson)?;
        let labels: Vec<u32> = which
            .iter()
            .map(|&row| lesson.labels.as_slice()[row as usize])
            .collect();
        let importances: Vec<f32> = which.iter().map(|&row| lesson.weight(row)).collect();
        let (params, n_classes) = (&self.params, self.n_classes);
        let trees = with_threads(n_threads, |threads| {
            let columns = Columns::new(&lesson.rows, &which, params, threads, control)?;
            let examples = Examples {
                columns: &columns,
                labels: &labels,
                importances: &importances,
                n_learned,
                n_classes,
            };
            boost(params, &examples, threads, control)
        })??;
        self.trees = trees;
        self.n_features = n_features;
        Ok(())
    }

    /// The rows of a weight above 0, those that are held out last, and how many are learned.
    fn split_rows(&self, lesson: &Lesson<'_>) -> Result<(Vec<u32>, usize)> {
        let all = 0..lesson.rows.n_rows() as u32;
        let mut which: Vec<u32> = all.filter(|&row| lesson.weight(row) > 0.0).collect();
        if which.is_empty() {
            return Err(Error::data("there is no example with a weight above 0"));
        }
        if !self.params.early_stopping {
            let n = which.len();
            return Ok((which, n));
        }
        let share = self.params.validation_fraction;
        let n = (which.len() as f64 * share).ceil() as usize;
        if n >= which.len() {
            return Err(Error::data(format!(
                "early stopping holds out {n} of n_samples={}, which leaves none to learn from",
                which.len()
            )));
        }
        which.shuffle(&mut generator(self.params.seed, u64::MAX, 0));
        // The last row of a class is learned: there is no other to learn the class from.
        let label = |row: u32| lesson.labels.as_slice()[row as usize] as usize;
        let mut left = vec![0u32; self.n_classes];
        which.iter().for_each(|&row| left[label(row)] += 1);
        let (mut learned, mut held_out) = (Vec::new(), Vec::new());
        for row in which {
            if held_out.len() < n && left[label(row)] > 1 {
                left[label(row)] -= 1;
                held_out.push(row);
            } else {
                learned.push(row);
            }
        }
        if held_out.is_empty() {
            return Err(Error::data(
                "early stopping has no row to hold out: each is the only one of its class",
            ));
        }
        learned.sort_unstable();
        let n_learned = learned.len();
        learned.extend(held_out);
        Ok((learned, n_learned))
    }

    pub(super) fn check_columns(&self, rows: &GappyRows<'_>) -> Result<()> {
        if self.n_features == 0 {
            return Err(checks::nothing_learned());
        }
        checks::check_n_columns(rows.n_cols(), self.n_features)
    }

    /// The options.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Columns of X; 0 before anything was learned.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The trees, in the order of their rounds.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// Each tree as arrays.
    pub fn reports(&self) -> Vec<Report> {
        self.trees.iter().map(Tree::report).collect()
    }

    /// By feature: gain of the splits by it over all trees, each tree's in shares of its
    /// weight, and the number of these splits.
    pub fn importances(&self) -> (Vec<f64>, Vec<u64>) {
        let mut gains = vec![0.0; self.n_features];
        let mut splits = vec![0; self.n_features];
        for tree in &self.trees {
            let all = tree.statistics[0].weight;
            for (node, statistics) in tree.nodes.iter().zip(&tree.statistics) {
                if node.left != 0 {
                    gains[node.feature as usize] += statistics.gain / all;
                    splits[node.feature as usize] += 1;
                }
            }
        }
        (gains, splits)
    }
}
