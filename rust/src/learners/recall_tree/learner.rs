//! The algorithm: Figures 1 and 2 of Daumé et al., "Logarithmic Time
//! One-Against-Some" (2016).
//!
//! ```text
//! Figure 1, predict(x)                     Figure 2a, learn(x, y)
//!   n = root                                 n = root
//!   while n is internal:                     while n is internal:
//!                                              update_router(x, y, n)
//!     child = the side of f_n(x)               child = the side of f_n(x)
//!     if recall(child) <= recall(n): break     if recall(child) <= recall(n): break
//!     n = child; x gets the indicator of n     n = child; x gets the indicator of n
//!                                            update_candidates(y, nodes on the path)
//!   return the candidate of n whose          if y is a candidate of n:
//!     predictor scores x highest               update_predictors(x, y, n.candidates)
//! ```
//!
//! `recall` is the lower bound of Section 3.1, f_n the router of node n. The predictors
//! are the scorers, one per class, shared by all nodes. Routing never looks at them, so
//! that examples can be routed ahead of scoring.
//!
//! Departures from the figures, each an option: `honest` counts an example at the
//! nodes that the routers chose before they learned from it, and lets counts fade as
//! labels arrive in a stream, `back_off` fills up
//! candidates from the nodes above, `arity` allows more than two children, and the
//! scorers have further losses.
//!
//! Cost per example, of z non-zeros: O(D (z + log F)) for routers and candidates,
//! O(F z) for the scorers.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::arena::{Arena, ChildRange};
use super::bound::entropy_cost;
use super::label_index::{LabelIndex, LocalId};
use super::params::RouterImportance;
use super::routing_tree::{is_right, Path, RoutingTree};
use super::scorers::{ScorerInput, ScorerUpdate, ScorerWorkspace, Scorers};
use crate::classifier::Mistakes;
use crate::linear::PathExample;
use crate::tree::NodeId;

/// A tree and its scorers: one member of an
/// [`OnlineModel`](crate::classifier::OnlineModel).
#[derive(Debug, Clone)]
pub struct OnlineRecallTree {
    /// Tree and scorers know labels by their local ids.
    pub(super) label_index: LabelIndex,
    /// Entropy of the labels, in bits, by which F and D were chosen.
    pub(super) label_bits: f64,
    pub(super) tree: RoutingTree,
    pub(super) scorers: Scorers,
    /// Labels that were not among the candidates before learning.
    pub(super) missed: Mistakes,
}

/// An example (x, y) to learn.
#[derive(Debug, Clone, Default)]
pub(super) struct Example {
    pub x: PathExample,
    pub y: LocalId,
    pub weight: f32,
    /// Its number, by which random numbers are drawn.
    pub clock: u64,
}

/// How the tree routed an example.
#[derive(Debug, Clone, Default)]
pub struct RouteResult {
    /// The path by the routers before they learned from the example.
    before: Path,
    /// The path whose nodes count the example: by the routers after they learned from
    /// it, or that before (`honest`).
    counted: Path,
    /// The candidates before any node counted the example; best first.
    pub(super) candidates: Vec<LocalId>,
    /// The candidates that learn from it, at the end of the path that counts it.
    pub(super) updated_candidates: Vec<LocalId>,
    /// Whether they are others than were predicted from.
    changed: bool,
}

impl RoutingTree {
    /// Figure 2a without its last line. `routers.prepare` must have been called.
    pub(super) fn learn(&mut self, example: &Example, route: &mut RouteResult) {
        let (y, weight) = (example.y, f64::from(example.weight));
        self.route_and_update(example, &mut route.before, &mut route.counted);
        let (before, counted) = (&route.before, &mut route.counted);
        if self.arena.params.honest {
            counted.copy_from(before);
        }
        let (arena, seen) = (&mut self.arena, &mut self.seen);
        arena.candidates_at_end(&before.nodes, seen, &mut route.candidates);
        arena.update_candidates(counted.counting_nodes(), y, weight);
        let updated = &mut route.updated_candidates;
        route.changed = if counted.end() == before.end() {
            updated.clone_from(&route.candidates);
            self.add_new_candidate(counted.end(), y, updated)
        } else {
            arena.candidates_at_end(&counted.nodes, seen, updated);
            true
        };
    }

    /// The loop of Figure 2a: every router on the path learns, then decides. Notes the
    /// path `before` the routers learned and that `after`.
    fn route_and_update(&mut self, example: &Example, before: &mut Path, after: &mut Path) {
        let params = &self.arena.params;
        let mut random = params.randomized_routing.then(|| {
            let number = example.clock.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Pcg64Mcg::seed_from_u64(params.seed ^ number)
        });
        after.restart();
        let mut diverged = false;
        let mut n = Arena::ROOT;
        for _ in 0..self.max_depth {
            let (side_before, side_after) = self.update_router(n, example, random.as_mut());
            let node = self.arena.node(n);
            let (child_before, child) = (node.child(side_before), node.child(side_after));
            if child_before != child && !diverged {
                before.copy_from(after);
                self.route(n, child_before, &example.x, before);
                diverged = true;
            }
            if self.arena.stops(n, child) {
                after.blocked_child = Some(child);
                break;
            }
            after.nodes.push(child);
            n = child;
        }
        if !diverged {
            before.copy_from(after);
        }
        // A node that has counted no example has no candidates to predict from.
        while before.nodes.len() > 1 && self.arena.node(before.end()).counts.candidates().is_empty()
        {
            before.blocked_child = before.nodes.pop();
        }
    }

    /// Figure 2b: the routers of node `n` learn the side on which the label raises
    /// the entropy least, with the difference of the entropies as importance. Returns
    /// the child that the example would have gone to before, and the one it goes to.
    ///
    /// With more than two children, each router learns on which half the child lies
    /// whose cost is least.
    fn update_router(
        &mut self,
        n: NodeId,
        example: &Example,
        mut random: Option<&mut Pcg64Mcg>,
    ) -> (u32, u32) {
        let Example { x, y, weight, .. } = example;
        if !self.is_internal(n) {
            for _ in 1..self.arena.params.arity {
                self.routers.push();
            }
            self.arena.grow(n);
        }
        self.set_entropy_costs(n, *y, f64::from(*weight));
        let node = self.arena.node_mut(n);
        let rate = self.rate.step(1.0, node.trained, x);
        node.trained += f64::from(*weight);
        let mut children = self.arena.children(n);
        let mut before = None;
        while let Some((left, right)) = children.halves() {
            let (cost_left, cost_right) = (self.least_cost(left), self.least_cost(right));
            // Ties go right.
            let target = if cost_left < cost_right { -1.0 } else { 1.0 };
            let importance = match self.arena.params.router_importance {
                RouterImportance::None => *weight,
                RouterImportance::Entropy => (cost_left - cost_right).abs() as f32,
            };
            let (arena, decided) = (&self.arena, children);
            let ahead = |score| arena.next_router(n, decided.half(is_right(score)));
            let step = importance * rate;
            let scores = self
                .routers
                .learn(children.router, x, target, step, importance, ahead);
            let goes_right = match random.as_deref_mut() {
                // P(right) = 1/2 + score, clamped to [0, 1].
                Some(random) => random.random_range(-0.5..0.5) < scores.after,
                None => is_right(scores.after),
            };
            let went_right = is_right(scores.before);
            if before.is_none() && went_right != goes_right {
                before = Some(self.choose_child(children.half(went_right), x));
            }
            children = children.half(goes_right);
        }
        let after = children.from;
        (before.unwrap_or(after), after)
    }

    /// By how much label `y` would raise the entropy of each child of node `n`.
    fn set_entropy_costs(&mut self, n: NodeId, y: LocalId, weight: f64) {
        let node = self.arena.node(n);
        for side in 0..self.arena.params.arity {
            self.arena.node(node.child(side)).counts.prefetch(y);
        }
        for (side, cost) in (0..).zip(&mut self.entropy_costs) {
            let child = self.arena.node(node.child(side));
            let counts = &child.counts;
            *cost = entropy_cost(child.entropy, counts.total, counts.get(y), weight);
        }
    }

    fn least_cost(&self, children: ChildRange) -> f64 {
        let costs = &self.entropy_costs[children.from as usize..children.to as usize];
        costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Adds the label to the candidates where it has just become one of the node's.
    /// Returns whether it did.
    fn add_new_candidate(&self, end: NodeId, y: LocalId, candidates: &mut Vec<LocalId>) -> bool {
        if candidates.contains(&y) || !self.arena.node(end).counts.candidates().contains(&y) {
            return false;
        }
        candidates.truncate(self.arena.max_candidates - 1);
        candidates.push(y);
        true
    }
}

/// An example with its route, to be scored.
#[derive(Debug, Clone, Default)]
pub(super) struct RoutedExample {
    pub example: Example,
    pub route: RouteResult,
}

impl RoutedExample {
    /// The last line of Figure 1: the candidate that its scorer rates highest, the
    /// first of equals, becomes `workspace.predicted`.
    pub fn predict(&self, scorers: &Scorers, workspace: &mut ScorerWorkspace) {
        let route = &self.route;
        scorers.score(&self.input(&route.candidates, &route.before), workspace);
        let scored = route.candidates.iter().zip(&workspace.scores);
        let best = scored.reduce(|best, next| if next.1 > best.1 { next } else { best });
        workspace.predicted = best.map(|(&label, _)| label);
    }

    /// The last line of Figure 2a, after [`Self::predict`] with the same workspace: the
    /// scorer of the label learns +1, those of the other candidates -1. This decides how
    /// far each goes; [`Self::update_predictors`] goes there.
    pub fn decide_update(&self, scorers: &Scorers, workspace: &mut ScorerWorkspace) {
        if let Some(update) = self.update() {
            if self.route.changed {
                scorers.score(&update.input, workspace);
            }
            scorers.decide(&update, workspace);
        }
    }

    /// See [`Self::decide_update`].
    pub fn update_predictors(&self, scorers: &mut Scorers, workspace: &mut ScorerWorkspace) {
        if let Some(update) = self.update() {
            scorers.apply(&update, workspace);
        }
    }

    /// What the scorers learn; none if the label is no candidate.
    fn update(&self) -> Option<ScorerUpdate<'_>> {
        let (example, route) = (&self.example, &self.route);
        let candidates = &route.updated_candidates;
        let correct = candidates.iter().position(|&other| other == example.y)?;
        Some(ScorerUpdate {
            input: self.input(candidates, &route.counted),
            correct,
            weight: example.weight,
            clock: example.clock,
        })
    }

    fn input<'a>(&'a self, candidates: &'a [LocalId], path: &'a Path) -> ScorerInput<'a> {
        ScorerInput {
            example: &self.example.x,
            candidates,
            path: &path.nodes,
        }
    }
}
