//! The trees as they are used.

use std::sync::OnceLock;

use super::search::Search;
use super::{Layout, Params, Report, Tree};
use crate::alloc::{can_alloc, try_alloc};
use crate::classifier::checks;
use crate::classifier::Online;
use crate::classifier::TopK;
use crate::classifier::{block_rows, in_blocks, row_values};
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::linear::Block;
use crate::tree::{FrozenRouters, Groups};

/// Bytes that a class takes before anything is learned, and once more frozen, about.
const CLASS: usize = 256;

/// A filter tree or a random tree.
///
/// ```
/// use xmtree::{data::{Labels, Rows, Values}, label_tree::{LabelTree, Params}, passes::{Batch, Targets}, Control};
///
/// let params: Params = serde_json::from_str(r#"{
///     "policy": "filter", "label_order": "given", "loss": "hinge", "optimizer": "pn",
///     "scaling": "auto", "n_bits": null, "learning_rate": 1.0, "decay": 1.0, "n_passes": 5,
///     "seed": 0, "early_stopping": false, "validation_fraction": 0.1, "patience": 2
/// }"#).unwrap();
/// let x = [1.0, 0.0, 0.0, 1.0, 0.9, 0.1, 0.1, 0.9];
/// let rows = Rows::dense(Values::F64(&x), 4, 2)?;
/// let labels = Labels::new(&[0, 1, 0, 1], 2)?;
/// let mut tree = LabelTree::new(params, 2)?;
/// let control = Control::new(0);
/// tree.fit(&Batch::new(rows, Targets::One(labels), None)?, &control)?;
/// assert_eq!(tree.predict(&rows, 1, &control)?, [0, 1, 0, 1]);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelTree {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Columns of X; 0 before anything was learned.
    pub(super) n_features: usize,
    pub(super) tree: Option<Tree>,
    /// Made at the first prediction after learning.
    frozen: OnceLock<FrozenRouters>,
}

impl LabelTree {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        checks::check_n_classes(n_classes)?;
        Ok(Self::from_parts(params.check()?, n_classes, 0, None))
    }

    pub(super) fn from_parts(
        params: Params,
        n_classes: usize,
        n_features: usize,
        tree: Option<Tree>,
    ) -> Self {
        Self {
            params,
            n_classes,
            n_features,
            tree,
            frozen: OnceLock::new(),
        }
    }

    /// Forgets everything and learns `batch` in several passes. On an error it
    /// stays as it was; stopped half way it is as far as it has come.
    pub fn fit(&mut self, batch: &Batch<'_>, control: &Control) -> Result<()> {
        let mut preparation = self.prepare(batch)?;
        preparation.observe_all(&batch.rows, &batch.present(), control)?;
        let mut tree = self.plant(preparation, batch)?;
        let schedule = &self.params.schedule;
        control.set_total(u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
        let done = schedule.fit(&mut tree, batch, control);
        if matches!(done, Ok(()) | Err(Error::Stopped)) {
            self.take_over(tree);
        }
        done
    }

    /// Learns `batch` in one pass, in its order, on top of what is known.
    pub fn partial_fit(&mut self, batch: &Batch<'_>, control: &Control) -> Result<()> {
        self.check_labels(batch)?;
        if self.tree.is_some() {
            self.check_columns(&batch.rows)?;
        }
        let mut tree = match self.tree.take() {
            Some(tree) => tree,
            None => self.plant(self.prepare(batch)?, batch)?,
        };
        tree.stream();
        let order = batch.present();
        control.set_total(order.len() as u64);
        let done = tree.learn(batch, &order, 0.0, control);
        self.take_over(tree);
        done
    }

    fn take_over(&mut self, tree: Tree) {
        self.n_features = tree.preparation.n_features();
        self.tree = Some(tree);
        self.frozen = OnceLock::new();
    }

    fn prepare(&self, batch: &Batch<'_>) -> Result<Preparation> {
        self.check_labels(batch)?;
        if !can_alloc(self.n_classes.checked_mul(CLASS)) {
            let what = format!("no memory for {} classes", self.n_classes);
            return Err(Error::data(what));
        }
        Preparation::new(self.params.scaling, self.params.n_bits, &batch.rows)
    }

    fn plant(&self, preparation: Preparation, batch: &Batch<'_>) -> Result<Tree> {
        let labels = self.check_labels(batch)?;
        let (order, seed) = (self.params.label_order, self.params.schedule.seed);
        let order = order.arrange(batch, labels, self.n_classes, seed);
        Ok(Tree::new(&self.params, preparation, Layout::new(order)))
    }

    fn check_labels<'a>(&self, batch: &Batch<'a>) -> Result<&'a [u32]> {
        checks::labels(batch, self.params.policy.learner(), self.n_classes)
    }

    /// What was learned, if `rows` have its columns.
    fn check_columns(&self, rows: &Rows<'_>) -> Result<&Tree> {
        let tree = self.tree.as_ref().ok_or_else(checks::nothing_learned)?;
        checks::check_columns(rows, self.params.n_bits, self.n_features)?;
        Ok(tree)
    }

    /// The routers as prediction walks them: made by the first prediction after
    /// learning, at a cost of the whole tree's size.
    fn frozen(&self, tree: &Tree, control: &Control) -> Result<&FrozenRouters> {
        if let Some(frozen) = self.frozen.get() {
            return Ok(frozen);
        }
        let frozen = tree.freeze(control)?;
        Ok(self.frozen.get_or_init(|| frozen))
    }

    /// How many products a search of the `k` best labels of `rows` is about, the making of the routers that prediction walks included.
    pub fn effort(&self, rows: &Rows<'_>, k: usize) -> usize {
        /// What a node costs there.
        const NODE: usize = 256;
        let fresh = match self.frozen.get() {
            Some(_) => 0,
            None => self.n_classes.saturating_mul(NODE),
        };
        self.walk_effort(rows)
            .saturating_mul(k)
            .saturating_add(fresh)
    }

    /// How many products it is about to send `rows` through the tree.
    pub fn walk_effort(&self, rows: &Rows<'_>) -> usize {
        let depth = self.n_classes.ilog2() as usize + 1;
        self.row_values(rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(depth)
    }

    /// The label that the routers lead each row to.
    pub fn predict(
        &self,
        rows: &Rows<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<i32>> {
        let mut labels = try_alloc(rows.n_rows(), 1, TopK::NO_LABEL)?;
        let step = self.block_rows(rows);
        let parts = labels.chunks_mut(step);
        self.in_blocks(
            rows,
            n_threads,
            control,
            parts,
            |worker, routers, labels| {
                worker.predict(routers, labels);
                Ok(())
            },
        )?;
        Ok(labels)
    }

    /// The `k` best labels of each row, best first, into arrays of rows x k, with
    /// their log-probabilities; [`TopK::NO_LABEL`] and minus infinity where there
    /// are fewer. The first is that of [`predict`](Self::predict), whatever the
    /// probabilities; its score is then just above the second's.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        self.check_columns(rows)?;
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let step = self.block_rows(rows) * k;
        let parts = labels.chunks_mut(step).zip(scores.chunks_mut(step));
        self.in_blocks(
            rows,
            n_threads,
            control,
            parts,
            |worker, routers, (labels, scores)| {
                let parts = labels.chunks_mut(k).zip(scores.chunks_mut(k));
                for (i, (labels, scores)) in parts.enumerate() {
                    if i % Control::CHUNK == 0 {
                        control.check()?;
                    }
                    let walk = routers.walk(&worker.block, i);
                    let best = worker
                        .search
                        .best(&walk, k.min(self.n_classes), self.n_classes);
                    for (&(cost, label), (l, s)) in best.iter().zip(labels.iter_mut().zip(scores)) {
                        *l = label as i32;
                        // Not -0.
                        *s = 0.0 - cost;
                    }
                }
                Ok(())
            },
        )?;
        Ok((labels, scores))
    }

    /// Rows to be predicted together.
    fn block_rows(&self, rows: &Rows<'_>) -> usize {
        block_rows(self.row_values(rows), FrozenRouters::BLOCK)
    }

    /// Values of a prepared row, on average.
    fn row_values(&self, rows: &Rows<'_>) -> usize {
        row_values(self.tree.as_ref().map(|tree| &tree.preparation), rows)
    }

    /// Hands each part of the output to `fill`, with a worker that has read the
    /// rows it is for.
    fn in_blocks<P: Send>(
        &self,
        rows: &Rows<'_>,
        n_threads: usize,
        control: &Control,
        parts: impl Iterator<Item = P>,
        fill: impl Fn(&mut Worker, &FrozenRouters, P) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let tree = self.check_columns(rows)?;
        let routers = self.frozen(tree, control)?;
        in_blocks(
            rows.n_rows(),
            self.block_rows(rows),
            parts,
            n_threads,
            control,
            Worker::default,
            |worker, which, part| {
                let width = routers.width();
                worker.block.fill(&tree.preparation, rows, which, width);
                fill(worker, routers, part)
            },
        )
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

    /// Examples learned.
    pub fn n_examples_seen(&self) -> u64 {
        self.tree.as_ref().map_or(0, |tree| tree.progress.examples)
    }

    /// Share of examples that it got wrong before it learned them.
    pub fn progressive_loss(&self) -> Option<f64> {
        self.tree.as_ref()?.progress.loss()
    }

    /// What there is to know of the tree; none before anything was learned.
    pub fn report(&self) -> Option<Report> {
        self.tree.as_ref().map(Tree::report)
    }
}

/// What one thread predicts with.
#[derive(Default)]
struct Worker {
    block: Block,
    groups: Groups,
    answers: Vec<u32>,
    search: Search,
}

impl Worker {
    /// Sends the rows of the block down together.
    fn predict(&mut self, routers: &FrozenRouters, labels: &mut [i32]) {
        self.answers.resize(labels.len(), 0);
        routers.route(&self.block, &mut self.groups, &mut self.answers);
        for (label, &answer) in labels.iter_mut().zip(&self.answers) {
            *label = answer as i32;
        }
    }
}
