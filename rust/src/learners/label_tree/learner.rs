//! The learner: how the routers learn, example by example, and what it adds to the
//! [`OnlineModel`](crate::classifier::OnlineModel) around it.

use super::predict::BlockPredictor;
use super::{Layout, Params, Policy, Up};
use crate::alloc::can_alloc;
use crate::classifier::{
    block_rows, Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start,
};
use crate::control::Control;
use crate::data::Preparation;
use crate::error::{Error, Result};
use crate::file::{is_count, Bundle, Persist, Report};
use crate::linear::{PathExample, Rate, Regressors, Span};
use crate::tree::FrozenRouters;
use crate::{persist, record};

/// Bytes that a class takes before anything is learned, and once more frozen, about.
const CLASS: usize = 256;

/// A filter tree or a random tree.
#[derive(Debug, Clone)]
pub struct LabelTree {
    policy: Policy,
    rate: Rate,
    pub(super) layout: Layout,
    /// By router.
    pub(super) records: Vec<RouterRecord>,
    /// Importance of the examples learned, by label.
    pub(super) examples: Vec<f64>,
    /// As many as routers, with their numbers.
    pub(super) regressors: Regressors,
}

/// What a router has been through, in importance of examples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RouterRecord {
    /// Examples learned from.
    pub trained: f64,
    /// Those of them that it then sent towards their label.
    pub won: f64,
}

record!(RouterRecord {
    trained: is_count,
    won: is_count
});

persist!(LabelTree {
    Columns examples;
    Columns records;
    Nest regressors;
} check check_stored);

impl LabelTree {
    /// A tree over the labels of `layout` that has seen nothing; examples have `width` columns.
    fn of_layout(params: &Params, layout: Layout, width: usize) -> Self {
        let n_routers = layout.n_routers();
        let mut regressors = Regressors::new(params.optimizer, params.loss, width);
        regressors.reserve(n_routers);
        for _ in 0..n_routers {
            regressors.push();
        }
        Self {
            policy: params.policy,
            rate: Rate::new(params.learning_rate, params.decay),
            records: vec![RouterRecord::default(); n_routers],
            examples: vec![0.0; layout.order().len()],
            layout,
            regressors,
        }
    }

    /// Learns one example that `regressors.prepare` has been given, from the
    /// label's leaf up. Returns whether the answer was right before: it was if
    /// every router on the way sent the example towards the label.
    fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        let span = self.regressors.span();
        let weight = f64::from(importance);
        self.examples[label as usize] += weight;
        let mut was_right = true;
        let mut up = self.layout.from_label(label);
        while let Some((router, side)) = up.step() {
            up = self.layout.from_router(router);
            let record = &mut self.records[router as usize];
            let step = self.rate.step(importance, record.trained, example);
            let ahead = |_| up.step().map(|(above, _)| above);
            let scores =
                self.regressors
                    .learn(router, example, side.target(), step, importance, ahead);
            was_right &= side.is_chosen_by(span.clamp(scores.before));
            record.trained += weight;
            // After the step: what the router will do with the next such example
            // is what the routers above have to get along with.
            if side.is_chosen_by(scores.after) {
                record.won += weight;
            } else if self.policy == Policy::Filter {
                return was_right && self.leads_down(up, example, span);
            }
        }
        was_right
    }

    /// Whether the routers from the step `up` on send the example down to where
    /// the step comes from.
    fn leads_down(&self, mut up: Up, example: &PathExample, span: Span) -> bool {
        while let Some((router, side)) = up.step() {
            if !side.is_chosen_by(span.clamp(self.regressors.score(router, example))) {
                return false;
            }
            up = self.layout.from_router(router);
        }
        true
    }

    /// What does not fit together in a tree that was restored.
    fn check_stored(&self) -> Result<()> {
        let n_routers = self.layout.n_routers();
        if self.examples.len() != n_routers + 1 || !self.examples.iter().all(is_count) {
            return Err(Error::data("the labels' numbers of examples"));
        }
        if self.records.len() != n_routers || self.regressors.len() != n_routers {
            return Err(Error::data("there are not as many routers as labels need"));
        }
        Ok(())
    }
}

impl OnlineLearner for LabelTree {
    const KIND: &'static str = "label_tree";
    type Params = Params;
    type Frozen = FrozenRouters;
    type Predictor<'a> = BlockPredictor<'a>;

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

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        learning.one_by_one(|example, label, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, label, importance)
        })
    }

    /// The terminals of the routers are labels.
    fn freeze(&self, control: &Control) -> Result<FrozenRouters> {
        let mut frozen = FrozenRouters::new(&self.regressors);
        let mut router = 0;
        for (at, node) in self.layout.nodes().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            if node.places.len() == 1 {
                frozen.push_terminal(self.layout.order()[node.places.start]);
            } else {
                frozen.push_router(self.regressors.plain(router));
                router += 1;
            }
        }
        Ok(frozen)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: &'a [FrozenRouters],
        _options: &PredictOptions,
    ) -> BlockPredictor<'a> {
        BlockPredictor::new(&members[0], &frozen[0])
    }

    fn block_rows(row_values: usize) -> usize {
        block_rows(row_values, FrozenRouters::BLOCK)
    }

    fn effort(&self, row_values: usize, k: usize, _options: &PredictOptions) -> usize {
        let depth = self.examples.len().ilog2() as usize + 1;
        row_values.saturating_mul(depth).saturating_mul(k)
    }

    fn freeze_effort(&self) -> usize {
        self.examples
            .len()
            .saturating_mul(FrozenRouters::FREEZE_NODE)
    }

    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        Some(self.node_report())
    }

    fn put(&self, bundle: &mut Bundle) {
        bundle.put("order", self.layout.order());
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let order: Vec<u32> = bundle.take_exactly("order", n_classes)?;
        let mut stands = vec![false; n_classes];
        for &label in &order {
            match stands.get_mut(label as usize) {
                Some(stands) if !*stands => *stands = true,
                _ => return Err(bundle.damaged("a label is out of range or stands twice")),
            }
        }
        let mut tree = Self::of_layout(params, Layout::new(order), preparation.width());
        tree.fill(bundle)?;
        Ok(tree)
    }
}
