//! How the routers learn, example by example.

use super::layout::{children_of, router_above, sends_to, AtNode, Layout};
use super::{Params, Policy};
use crate::alloc::{filled, zeros};
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::linear::{PathExample, Rate, Regressors, Span};
use crate::tree::{Junction, LearningTree};
use crate::{persist, record};

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

/// Terminals are labels.
impl LearningTree for LabelTree {
    type Node = u32;

    fn root(&self) -> u32 {
        0
    }

    fn at(&self, node: u32) -> Junction<u32> {
        match self.layout.at_node[node as usize] {
            AtNode::Label(label) => Junction::Terminal(label),
            AtNode::Router(router) => Junction::Router {
                regressor: router,
                children: children_of(router),
            },
        }
    }

    fn regressors(&self) -> &Regressors {
        &self.regressors
    }
}

impl LabelTree {
    /// A tree over the labels of `layout` that has seen nothing; examples have `width` columns.
    pub(super) fn of_layout(params: &Params, layout: Layout, width: usize) -> Self {
        let n_routers = layout.node_of.len();
        let mut regressors = Regressors::new(params.optimizer, params.loss, width);
        regressors.reserve(n_routers);
        for _ in 0..n_routers {
            regressors.push();
        }
        Self {
            policy: params.policy,
            rate: Rate::new(params.learning_rate, params.decay),
            records: filled(RouterRecord::default(), n_routers),
            examples: zeros(layout.order.len()),
            layout,
            regressors,
        }
    }

    /// Learns one example that `regressors.prepare` has been given, from the
    /// label's leaf up. Returns whether the answer was right before: it was if
    /// every router on the way sent the example towards the label.
    pub(super) fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        let span = self.regressors.span();
        let weight = f64::from(importance);
        self.examples[label as usize] += weight;
        let mut was_right = true;
        let mut node = self.layout.leaf_of[label as usize];
        while let Some((router, target)) = router_above(node) {
            node = self.layout.node_of[router as usize];
            let record = &mut self.records[router as usize];
            let step = self.rate.step(importance, record.trained, example);
            let ahead = |_| router_above(node).map(|(above, _)| above);
            let scores = self
                .regressors
                .learn(router, example, target, step, importance, ahead);
            was_right &= sends_to(target, span.clamp(scores.before));
            record.trained += weight;
            // After the step: what the router will do with the next such example
            // is what the routers above have to get along with.
            if sends_to(target, scores.after) {
                record.won += weight;
            } else if self.policy == Policy::Filter {
                return was_right && self.leads_down(node, example, span);
            }
        }
        was_right
    }

    /// Whether the routers above `node` send the example down to it.
    fn leads_down(&self, mut node: u32, example: &PathExample, span: Span) -> bool {
        while let Some((router, target)) = router_above(node) {
            if !sends_to(target, span.clamp(self.regressors.score(router, example))) {
                return false;
            }
            node = self.layout.node_of[router as usize];
        }
        true
    }

    /// What does not fit together in a tree that was restored.
    fn check_stored(&self) -> Result<()> {
        let n_routers = self.layout.node_of.len();
        if self.examples.len() != n_routers + 1 || !self.examples.iter().all(is_count) {
            return Err(Error::data("the labels' numbers of examples"));
        }
        if self.records.len() != n_routers || self.regressors.len() != n_routers {
            return Err(Error::data("there are not as many routers as labels need"));
        }
        Ok(())
    }
}
