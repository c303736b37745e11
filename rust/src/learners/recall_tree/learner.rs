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
//! nodes that the routers chose before they learned from it, `back_off` fills up
//! candidates from the nodes above, `arity` allows more than two children, and the
//! scorers have further losses.
//!
//! Cost per example, of z non-zeros: O(D (z + log F)) for routers and candidates,
//! O(F z) for the scorers.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::arena::Arena;
use super::beam::BeamOptions;
use super::bound::entropy_cost;
use super::label_index::{LabelIndex, LocalId};
use super::params::RouterImportance;
use super::routing_tree::{is_right, ChildRange, Path, RoutingTree};
use super::scorers::{Score, ScorerInput, ScorerWorkspace, Scorers};
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
    /// Examples that the scorers learn from at once.
    pub(super) batch_size: usize,
    /// The beam of predictions that set no other.
    pub(super) beam: BeamOptions,
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
    /// The path by the routers after.
    after: Path,
    /// The candidates before any node counted the example; best first.
    pub(super) candidates: Vec<LocalId>,
    /// The candidates that learn from it.
    updated_candidates: Vec<LocalId>,
    /// How the two compare.
    change: CandidateChange,
    /// The nodes that count the example.
    counted: Vec<NodeId>,
}

/// How the candidates that learn compare with those that were predicted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CandidateChange {
    /// They are the same, in the same order.
    #[default]
    None,
    /// The last is new: the example's own label.
    LabelAdded,
    /// They are those of another node.
    OtherNode,
}

impl RoutingTree {
    /// Figure 2a without its last line. `routers.prepare` must have been called.
    pub(super) fn learn(&mut self, example: &Example, result: &mut RouteResult) {
        self.route_and_update(example, result);
        let mut seen = std::mem::take(&mut self.seen);
        self.candidates_at_end(&result.before.nodes, &mut seen, &mut result.candidates);
        let path = if self.honest {
            &result.before
        } else {
            &result.after
        };
        // The child that the stop rule kept the example from counts it, too: this is
        // how children earn the statistics that open them.
        result.counted.clear();
        result.counted.extend_from_slice(&path.nodes);
        result.counted.extend(path.blocked_child);
        let weight = f64::from(example.weight);
        self.arena
            .update_candidates(&result.counted, example.y, weight);
        result.change = if path.end() == result.before.end() {
            result.updated_candidates.clone_from(&result.candidates);
            self.add_new_candidate(path.end(), example.y, &mut result.updated_candidates)
        } else {
            self.candidates_at_end(&path.nodes, &mut seen, &mut result.updated_candidates);
            CandidateChange::OtherNode
        };
        self.seen = seen;
    }

    /// The loop of Figure 2a: every router on the path learns, then decides. Notes
    /// that path and the one before the routers learned.
    fn route_and_update(&mut self, example: &Example, result: &mut RouteResult) {
        let mut random = self.randomized.then(|| {
            Pcg64Mcg::seed_from_u64(self.seed ^ example.clock.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        let RouteResult { before, after, .. } = result;
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
            let first_router = self.routers.len() as u32;
            for _ in 1..self.arena.arity() {
                self.routers.push();
            }
            self.arena.grow(n, first_router);
        }
        self.set_entropy_costs(n, *y, f64::from(*weight));
        let node = self.arena.node_mut(n);
        let rate = self.rate.step(1.0, f64::from(node.trained), x);
        node.trained += weight;
        let mut children = ChildRange::all(node.first_router, self.arena.arity());
        let mut before = None;
        while let Some((left, right)) = children.halves() {
            let (cost_left, cost_right) = (self.least_cost(left), self.least_cost(right));
            // Ties go right.
            let target = if cost_left < cost_right { -1.0 } else { 1.0 };
            let importance = match self.importance {
                RouterImportance::None => *weight,
                RouterImportance::Entropy => (cost_left - cost_right).abs() as f32,
            };
            let (arena, decided) = (&self.arena, children);
            let next_router = |score| arena.next_router(n, decided.half(is_right(score)));
            let scores = self.routers.learn(
                children.router,
                x,
                target,
                importance * rate,
                importance,
                next_router,
            );
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
        for side in 0..self.arena.arity() {
            self.arena.node(node.child(side)).counts.prefetch(y);
        }
        for (side, cost) in (0..).zip(&mut self.entropy_costs) {
            let child = self.arena.node(node.child(side));
            let counts = &child.counts;
            *cost = entropy_cost(child.entropy, counts.total(), counts.get(y), weight);
        }
    }

    fn least_cost(&self, children: ChildRange) -> f64 {
        let costs = &self.entropy_costs[children.from as usize..children.to as usize];
        costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Adds the label to the candidates where it has just become one of the node's.
    fn add_new_candidate(
        &self,
        end: NodeId,
        y: LocalId,
        candidates: &mut Vec<LocalId>,
    ) -> CandidateChange {
        if candidates.contains(&y) || !self.arena.node(end).counts.candidates().contains(&y) {
            return CandidateChange::None;
        }
        if candidates.len() == self.arena.max_candidates() {
            candidates.pop();
        }
        candidates.push(y);
        CandidateChange::LabelAdded
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
    /// first of equals.
    pub fn predict(
        &self,
        scorers: &impl Score,
        workspace: &mut ScorerWorkspace,
    ) -> Option<LocalId> {
        scorers.score(&self.query(), workspace);
        let mut best: Option<(LocalId, f32)> = None;
        for (&label, &score) in self.route.candidates.iter().zip(&workspace.scores) {
            if best.is_none_or(|(_, highest)| score > highest) {
                best = Some((label, score));
            }
        }
        best.map(|(label, _)| label)
    }

    /// Whether the label is not among the candidates predicted from.
    pub fn is_missed(&self) -> bool {
        !self.route.candidates.contains(&self.example.y)
    }

    /// What the scorers predict from before they learn.
    fn query(&self) -> ScorerInput<'_> {
        self.scorer_input(&self.route.candidates, &self.route.before)
    }

    /// What they learn; none if the label is no candidate.
    pub fn update(&self) -> Option<ScorerInput<'_>> {
        let route = &self.route;
        let path = match route.change {
            CandidateChange::OtherNode => &route.after,
            CandidateChange::None | CandidateChange::LabelAdded => &route.before,
        };
        let candidates = &route.updated_candidates;
        candidates
            .contains(&self.example.y)
            .then(|| self.scorer_input(candidates, path))
    }

    fn scorer_input<'a>(&'a self, candidates: &'a [LocalId], path: &'a Path) -> ScorerInput<'a> {
        ScorerInput {
            example: &self.example.x,
            candidates,
            path: &path.nodes,
            clock: self.example.clock,
        }
    }

    /// What the scorers learn, with the scores of its candidates in `workspace`,
    /// which has those of [`Self::predict`].
    pub fn scored_update(
        &self,
        scorers: &impl Score,
        workspace: &mut ScorerWorkspace,
    ) -> Option<ScorerInput<'_>> {
        let update = self.update()?;
        if self.route.change != CandidateChange::None {
            scorers.score(&update, workspace);
        }
        Some(update)
    }

    /// The last line of Figure 2a, after [`Self::predict`]: the scorer of the label
    /// learns +1, those of the other candidates -1.
    pub fn update_predictors(&self, scorers: &mut Scorers, workspace: &mut ScorerWorkspace) {
        if let Some(update) = self.scored_update(scorers, workspace) {
            let Example { y, weight, .. } = self.example;
            scorers.learn(&update, y, weight, workspace);
        }
    }
}
