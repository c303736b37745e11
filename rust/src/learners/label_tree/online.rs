//! What the trees add to the [`OnlineModel`](crate::classifier::OnlineModel) around them.

use super::layout::{AtNode, Layout};
use super::predict::BlockPredictor;
use super::{LabelTree, Params};
use crate::alloc::can_alloc;
use crate::classifier::{Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start};
use crate::control::Control;
use crate::data::Preparation;
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist, Report};
use crate::pool::Lent;
use crate::tree::{FrozenRouters, RoutingMemory};

/// Bytes that a class takes before anything is learned, and once more frozen, about.
const CLASS: usize = 256;

impl OnlineLearner for LabelTree {
    const KIND: &'static str = "label_tree";
    const NARROW: &'static [&'static str] = &["regressors/"];
    type Params = Params;
    type Frozen = FrozenRouters;
    type Predictor<'a> = BlockPredictor<'a>;
    type Memory = RoutingMemory;

    fn name(params: &Params) -> &'static str {
        params.policy.learner()
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        if !can_alloc(n_classes.checked_mul(CLASS)) {
            return Err(Error::data(format!("no memory for {n_classes} classes")));
        }
        let order = params
            .label_order
            .arrange(start.batch, n_classes, params.seed);
        let width = start.preparation.width();
        Ok(Self::of_layout(params, Layout::new(order), width))
    }

    fn add_classes(&mut self, _n_classes: usize) -> Result<()> {
        Err(Error::data(
            "a tree over a fixed order of labels cannot take new ones; \
             OAAClassifier, LOMTreeClassifier and RecallTreeClassifier can",
        ))
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        learning.one_by_one(|example, label, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, label, importance)
        })
    }

    /// The terminals of the routers are labels.
    fn freeze(&self, control: &Control) -> Result<FrozenRouters> {
        let mut frozen = FrozenRouters::new(&self.regressors);
        for (number, at) in self.layout.at_node.iter().enumerate() {
            if number % Control::CHUNK == 0 {
                control.check()?;
            }
            match *at {
                AtNode::Label(label) => frozen.push_terminal(label),
                AtNode::Router(router) => {
                    frozen.push_router(self.regressors.plain(router));
                }
            }
        }
        Ok(frozen)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenRouters]>,
        _options: &PredictOptions,
        memory: Lent<'a, RoutingMemory>,
    ) -> BlockPredictor<'a> {
        BlockPredictor::new(&members[0], frozen.map(|frozen| &frozen[0]), memory)
    }

    fn effort(&self, row_values: usize, k: usize, _options: &PredictOptions) -> usize {
        let depth = self.examples.len().ilog2() as usize + 1;
        row_values.saturating_mul(depth).saturating_mul(k)
    }

    fn freeze_effort(&self) -> usize {
        let n_nodes = self.examples.len();
        n_nodes.saturating_mul(FrozenRouters::FREEZE_NODE)
    }

    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        Some(self.node_report())
    }

    fn nodes_of_terminals(&self, _frozen: &FrozenRouters) -> Option<Vec<u32>> {
        Some(self.layout.leaf_of.clone())
    }

    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.regressors = self.regressors.for_prediction();
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        bundle.put("order", &self.layout.order[..]);
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let order: Vec<u32> = bundle.take_exactly("order", n_classes)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..n_classes as u32) {
            return Err(bundle.damaged("a label is out of range or stands twice"));
        }
        let mut tree = Self::of_layout(params, Layout::new(order), preparation.width());
        if for_prediction {
            tree.regressors = tree.regressors.for_prediction();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}
