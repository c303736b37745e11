//! The algorithm: Figures 1 and 2 of Daumé et al., "Logarithmic Time
//! One-Against-Some" (ICML 2017).
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
//! are the scorers, one per class, shared by all nodes.
//!
//! Unless `paper_tree` is set, the tree differs from the figures. An example counts at the nodes that
//! the routers chose before they learned from it. The stop rule compares parent and child on the
//! examples that reached both. Counts fade as labels arrive in a stream. Nodes with fewer than F
//! labels take candidates from the nodes above.
//!
//! The cost of an example with z non-zeros is O(D (z + log F)) for routers and candidates, and
//! O(F z) for the scorers.
//!
//! Routing does not depend on the scorers. So with several threads, one routes the next group of
//! examples while another trains the scorers on this group. The model is the same to the bit as with
//! one example after the other.

use super::labels::{entropy_cost, LocalId};
use super::params::RouterImportance;
use super::router::{is_right, next_router, Path, RoutingTree};
use super::scorers::{ScorerInput, ScorerWeights, ScorerWorkspace, Scorers};
use crate::control::Control;
use crate::data::LocalIds;
use crate::error::Result;
use crate::linear::PathExample;
use crate::model::{first_best, Learning, Mistakes};
use crate::threads::with_threads;
use crate::tree::NodeId;

/// A tree and its scorers, the member of an [`OnlineModel`](crate::model::OnlineModel).
#[derive(Debug, Clone)]
pub struct OnlineRecallTree {
    /// Local ids of labels, which the tree and the scorers use.
    pub(super) label_index: LocalIds,
    /// The entropy of the labels in bits, which determines F and D by default.
    pub(super) label_bits: f64,
    pub(super) tree: RoutingTree,
    pub(super) scorers: Scorers,
    /// The examples whose label was not a candidate before they were learned.
    pub(super) missed: Mistakes,
}

/// An example (x, y) to learn, with its paths and candidates.
#[derive(Debug, Clone, Default)]
pub(super) struct RoutedExample {
    pub x: PathExample,
    pub y: LocalId,
    pub weight: f32,
    /// The number of the example, the seed of its random numbers.
    pub clock: u64,
    /// The path that the routers chose before they learned from the example.
    before: Path,
    /// The path whose nodes count the example: `before` or, in the paper's tree, the path that the
    /// routers chose after they learned from it.
    counted: Path,
    /// The candidates before any node counted the example, the most frequent first.
    pub candidates: Vec<LocalId>,
    /// The candidates that learn from the example, at the end of the path that counts it.
    pub updated_candidates: Vec<LocalId>,
}

impl RoutingTree {
    /// Learns an example by Figure 2a without its last line, after `routers.prepare`.
    pub(super) fn learn(&mut self, example: &mut RoutedExample) {
        self.route_and_update(example);
        let RoutedExample {
            y,
            weight,
            before,
            counted,
            candidates,
            updated_candidates,
            ..
        } = example;
        if !self.params.paper_tree {
            counted.copy_from(before);
        }
        let mut is_known = std::mem::take(&mut self.is_known);
        candidates.clear();
        self.candidates_at_end(before.end(), &mut is_known, candidates);
        self.update_candidates(counted.counting_nodes(), *y, f64::from(*weight));
        if counted.end() == before.end() {
            updated_candidates.clone_from(candidates);
            self.add_new_candidate(counted.end(), *y, updated_candidates);
        } else {
            updated_candidates.clear();
            self.candidates_at_end(counted.end(), &mut is_known, updated_candidates);
        }
        self.is_known = is_known;
    }

    /// Runs the loop of Figure 2a: every router on the path learns, then decides. Writes the path
    /// before the routers learned to `before`, and the path after it to `counted`.
    fn route_and_update(&mut self, example: &mut RoutedExample) {
        let RoutedExample {
            x, before, counted, ..
        } = example;
        let (y, weight) = (example.y, example.weight);
        counted.restart();
        let mut diverged = false;
        let mut n = Self::ROOT;
        for _ in 0..self.max_depth {
            let [child_before, child] = self.update_router(n, x, y, weight);
            if child_before != child && !diverged {
                before.copy_from(counted);
                self.route(n, child_before, x, before);
                diverged = true;
            }
            if self.stops(n, child) {
                counted.blocked_child = Some(child);
                break;
            }
            counted.nodes.push(child);
            n = child;
        }
        if !diverged {
            before.copy_from(counted);
        }
        // A node without examples has no candidates to predict from.
        while before.nodes.len() > 1 && self.node(before.end()).counts.candidates().is_empty() {
            before.blocked_child = before.nodes.pop();
        }
    }

    /// Trains the router of node `n` by Figure 2b: it learns the side where the label raises the
    /// entropy least, with the difference of the entropies as importance. Returns the children that
    /// the router chooses before and after this.
    fn update_router(
        &mut self,
        n: NodeId,
        x: &PathExample,
        y: LocalId,
        weight: f32,
    ) -> [NodeId; 2] {
        if !self.node(n).has_children() {
            self.grow(n);
        }
        let [cost_left, cost_right] = self.entropy_costs(n, y, f64::from(weight));
        let node = &mut self.nodes[n.at()];
        let rate = self.rate.step(1.0, node.trained, x);
        node.trained += f64::from(weight);
        let (router, children) = (node.router(), node.children());
        // Ties go right.
        let target = if cost_left < cost_right { -1.0 } else { 1.0 };
        let difference = (cost_left - cost_right).abs();
        let importance = match self.params.router_importance {
            RouterImportance::None => weight,
            RouterImportance::Entropy => difference as f32,
            RouterImportance::AverageEntropy => {
                let [left, right] = children.map(|child| self.node(child).counts.total);
                (difference / (left + right + f64::from(weight))) as f32
            }
        };
        let side = |score| children[usize::from(is_right(score))];
        let (routers, nodes) = (&mut self.routers, &self.nodes);
        let ahead = |score| next_router(nodes, side(score));
        let scores = routers.learn(router, x, target, importance * rate, importance, ahead);
        [scores.before, scores.after].map(side)
    }

    /// Returns the costs of routing label `y` to each child of node `n`; see [`entropy_cost`].
    fn entropy_costs(&self, n: NodeId, y: LocalId, weight: f64) -> [f64; 2] {
        let children = self.node(n).children().map(|child| self.node(child));
        for child in children {
            child.counts.prefetch(y);
        }
        children.map(|child| {
            let counts = &child.counts;
            entropy_cost(child.entropy, counts.total, counts.get(y), weight)
        })
    }

    /// Adds label `y` to the candidates if it has just become a candidate of the node `end`.
    fn add_new_candidate(&self, end: NodeId, y: LocalId, candidates: &mut Vec<LocalId>) {
        if !candidates.contains(&y) && self.node(end).counts.candidates().contains(&y) {
            candidates.truncate(self.max_candidates - 1);
            candidates.push(y);
        }
    }
}

impl RoutedExample {
    /// Returns the candidate of the highest score, by the last line of Figure 1. Of equal scores the
    /// first wins. The scores stay in the workspace.
    fn predict(&self, scorers: &Scorers, workspace: &mut ScorerWorkspace) -> Option<LocalId> {
        scorers.score(&self.input(&self.candidates, &self.before), workspace);
        let scored = self.candidates.iter().zip(&workspace.scores);
        first_best(scored).map(|(&label, _)| label)
    }

    /// Trains the scorers by the last line of Figure 2a: that of the label learns +1, those of the
    /// other candidates learn -1. None learns if the label is not a candidate. Must follow
    /// [`Self::predict`] with the same workspace.
    fn update_predictors(&self, scorers: &mut Scorers, workspace: &mut ScorerWorkspace) {
        let candidates = &self.updated_candidates;
        let Some(correct) = candidates.iter().position(|&other| other == self.y) else {
            return;
        };
        let input = self.input(candidates, &self.counted);
        if self.candidates != self.updated_candidates {
            scorers.score(&input, workspace);
        }
        scorers.learn(&input, correct, self.weight, self.clock, workspace);
    }

    /// Returns the input of the scorers.
    fn input<'a>(&'a self, candidates: &'a [LocalId], path: &'a Path) -> ScorerInput<'a> {
        ScorerInput {
            example: &self.x,
            candidates,
            path: &path.nodes,
        }
    }
}

impl OnlineRecallTree {
    /// Learns examples in order by Figure 2a.
    pub(super) fn learn_batch(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        // Regressors of scorers and routers clamp scores to the same span, so that one example must
        // follow the other.
        let n_threads = match self.scorers.weights {
            ScorerWeights::Regressors(_) => 1,
            _ => learning.n_threads,
        };
        with_threads(n_threads, |parallel| self.learn_groups(learning, parallel))?
    }

    /// Routes each group of examples while the scorers learn the group before it.
    fn learn_groups(&mut self, learning: &mut Learning<'_>, parallel: bool) -> Result<()> {
        let (is_stream, share) = (learning.is_stream(), learning.clock);
        let (batch, control) = (learning.batch, learning.control);
        let (preparation, progress) = (&mut *learning.preparation, &mut *learning.progress);
        let (label_index, missed) = (&mut self.label_index, &mut self.missed);
        missed.repeats = progress.repeats;

        // The first stage prepares and routes examples; the nodes on their paths learn.
        let mut clock = progress.examples;
        let mut route = |tree: &mut RoutingTree, which: &[u32], group: &mut Vec<RoutedExample>| {
            group.resize_with(which.len(), RoutedExample::default);
            for (&row, example) in which.iter().zip(group) {
                let row = row as usize;
                example.x.read(preparation, &batch.rows, row, is_stream);
                let n_labels = label_index.len();
                example.y = LocalId(label_index.insert(batch.labels()[row]));
                if is_stream && example.y.at() == n_labels {
                    tree.age(n_labels + 1);
                }
                example.weight = batch.weight(row);
                example.clock = clock;
                clock += 1;
                tree.routers.prepare(&mut example.x, example.weight);
                tree.learn(example);
            }
        };

        // The second stage predicts each routed example, then trains its scorers.
        let (mut workspace, mut unreported) = (ScorerWorkspace::default(), 0);
        let mut train = |scorers: &mut Scorers, group: &[RoutedExample], is_last: bool| {
            for example in group {
                let predicted = example.predict(scorers, &mut workspace);
                example.update_predictors(scorers, &mut workspace);
                scorers.passes += share;
                progress.count(predicted != Some(example.y), example.weight);
                let is_missed = !example.candidates.contains(&example.y);
                missed.count(is_missed, example.weight);
            }
            unreported += group.len();
            if unreported < Control::CHUNK && !is_last {
                return Ok(());
            }
            if let Some(loss) = progress.loss() {
                control.set_loss(loss);
                control.set_recall(1.0 - missed.loss().unwrap_or(f64::NAN));
            }
            control.tick(std::mem::take(&mut unreported))
        };

        // A single example stays in the nearest cache. Several threads need larger groups.
        let group_size = if parallel { Control::CHUNK } else { 1 };
        let mut groups = learning.order.chunks(group_size);
        let (tree, scorers) = (&mut self.tree, &mut self.scorers);
        let (mut current, mut next) = (Vec::new(), Vec::new());
        route(tree, groups.next().unwrap_or_default(), &mut current);
        while !current.is_empty() {
            let which = groups.next().unwrap_or_default();
            if parallel {
                let train = || train(scorers, &current, which.is_empty());
                rayon::join(train, || route(tree, which, &mut next)).0?;
            } else {
                train(scorers, &current, which.is_empty())?;
                scorers.share_span(&mut tree.routers);
                route(tree, which, &mut next);
            }
            std::mem::swap(&mut current, &mut next);
        }
        Ok(())
    }
}
