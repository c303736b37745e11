//! What LOMtree adds to the [`OnlineModel`](crate::classifier::OnlineModel) around it.

use super::frozen::FrozenTree;
use super::learner::LomTree;
use super::params::Params;
use super::predict::EnsemblePredictor;
use crate::alloc::collect;
use crate::classifier::{Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start};
use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::Result;
use crate::file::{Bundle, Persist, Report};
use crate::pool::Lent;
use crate::tree::{FrozenRouters, RoutingMemory};

/// Nodes on a path, about.
const DEPTH: usize = 32;

impl OnlineLearner for LomTree {
    const KIND: &'static str = "lomtree";
    const NARROW: &'static [&'static str] = &["regressors/"];
    type Params = Params;
    type Frozen = FrozenTree;
    type Predictor<'a> = EnsemblePredictor<'a>;
    type Memory = RoutingMemory;

    fn name(_params: &Params) -> &'static str {
        "LOMtree"
    }

    fn n_members(params: &Params) -> usize {
        params.n_estimators as usize
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        Ok(Self::empty(params, start.n_classes, start.preparation))
    }

    /// Tables of labels have room for any; what depends on their number follows it.
    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        self.set_n_classes(n_classes);
        Ok(())
    }

    /// Where importances do not count in the tree, rows of importance 0 do.
    fn present(params: &Params, batch: &Batch<'_>) -> Vec<u32> {
        if params.weighted_counts {
            batch.present()
        } else {
            collect(0..batch.rows.n_rows() as u32)
        }
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        self.learn_batch(learning)
    }

    fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        FrozenTree::new(self, control)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenTree]>,
        _options: &PredictOptions,
        memory: Lent<'a, RoutingMemory>,
    ) -> EnsemblePredictor<'a> {
        EnsemblePredictor::new(members, frozen, memory)
    }

    fn effort(&self, row_values: usize, _k: usize, _options: &PredictOptions) -> usize {
        row_values.saturating_mul(DEPTH)
    }

    fn freeze_effort(&self) -> usize {
        let n_nodes = self.arena.nodes.len();
        n_nodes.saturating_mul(FrozenRouters::FREEZE_NODE)
    }

    fn nodes_of_terminals(&self, _frozen: &FrozenTree) -> Option<Vec<u32>> {
        let nodes = (0..).zip(self.arena.topology().nodes);
        let leaves = nodes.filter(|&(_, id)| self.arena.node(id).is_leaf());
        Some(leaves.map(|(number, _)| number).collect())
    }

    fn report(&self, progress: &Mistakes) -> Option<Report> {
        let weight = if self.params.weighted_counts {
            progress.weight
        } else {
            progress.examples as f64
        };
        Some(self.node_report(weight))
    }

    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.regressors = self.regressors.for_prediction();
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let mut tree = Self::empty(params, n_classes, preparation);
        if for_prediction {
            tree.regressors = tree.regressors.for_prediction();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}
