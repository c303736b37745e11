//! How the routers learn, example by example.

use super::{Layout, Params, Policy, Up};
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::linear::{PathExample, Rate, Regressors, Span};
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

impl LabelTree {
    /// A tree over the labels of `layout` that has seen nothing; examples have `width` columns.
    pub(super) fn of_layout(params: &Params, layout: Layout, width: usize) -> Self {
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
    pub(super) fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
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
