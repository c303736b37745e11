//! Algorithm 1 of the paper: one tree learns, example by example.
//!
//! The comments in [`LomTree::learn_one`] name the lines of its main program:
//!
//! ```text
//!  1  Create root r = 0: SetNode(r); t = 1
//!  2  For each example (x, y) do
//!  3    Set j = r
//!  4    Do
//!  5      If (l_j(y) = none)
//!  6        m_j(y) = 0; l_j(y) = 0; n_j(y) = 0; e_j(y) = 0
//!  7      l_j(y)++
//!  8      If (j is a leaf)
//!  9        If (l_j has at least 2 non-zero entries)
//! 10          If (t < T OR C_j - max_i l_j(i) > R_S (C_r + 1))
//! 11            If (t < T)
//! 12              SetNode(LEFT(j)); SetNode(RIGHT(j)); t++
//! 13            Else Swap(j)
//! 14            C_LEFT(j) = floor(C_j / 2); C_RIGHT(j) = C_j - C_LEFT(j); UpdateC(LEFT(j))
//! 15      If (j is not a leaf)
//! 16        If (E_j > e_j(y)) c = -1 Else c = 1
//! 17        Train h_j with example (x, c)
//! 18        n_j(y)++; m_j(y) += h_j(x); e_j(y) = m_j(y) / n_j(y); E_j = sum m_j / sum n_j
//! 19        Set j to the child of j corresponding to h_j
//! 20      Else
//! 21        C_j++
//! 22        break
//! ```
//!
//! As in the authors' program, `UpdateC` follows line 21, too. An example of importance w counts
//! as w examples.

use super::arena::Arena;
use super::params::Params;
use crate::data::Preparation;
use crate::linear::{PathExample, Rate, Regressors, Scores, Span};
use crate::persist;
use crate::simd::prefetch;
use crate::tree::{Junction, LearningTree, NodeId};

/// One tree and all it needs to go on learning.
#[derive(Debug, Clone)]
pub struct LomTree {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// T: internal nodes it may have.
    pub(super) budget: u32,
    pub(super) rate: Rate,
    /// Depth from which on splits become harder.
    pub(super) soft_levels: f64,
    /// Mean depth of the leaves that examples ended at when two threads last learned, for sharing
    /// out the work: the model does not depend on it, and no file has it.
    pub(super) mean_depth: f64,
    pub(super) arena: Arena,
    pub(super) regressors: Regressors,
}

persist!(LomTree {
    Meta root = arena.root;
    Meta n_internal = arena.n_internal;
    Meta n_swaps = arena.n_swaps;
    Columns nodes = arena.nodes;
    Nest regressors;
} check check_stored);

/// Terminals are leaves by their numbers in the arena.
impl LearningTree for LomTree {
    type Node = NodeId;

    fn root(&self) -> NodeId {
        self.arena.root
    }

    fn at(&self, id: NodeId) -> Junction<NodeId> {
        let node = self.arena.node(id);
        if node.is_leaf() {
            return Junction::Terminal(id.0);
        }
        Junction::Router {
            regressor: node.regressor,
            children: [node.left, node.right],
        }
    }

    fn prefetch(&self, id: NodeId) {
        prefetch(self.arena.node(id));
    }

    fn regressors(&self) -> &Regressors {
        &self.regressors
    }
}

/// How far an example that is learned has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Descent {
    /// The node it is at.
    pub at: NodeId,
    /// The depth of that.
    pub depth: u32,
    /// What scores were clamped to before it was learned.
    pub span: Span,
    /// A node, or the leaf below it, that it would have come to before it was learned, once that
    /// is on another path.
    pub previous: Option<NodeId>,
}

impl LomTree {
    /// A tree that has seen nothing (line 1).
    pub(super) fn empty(params: &Params, n_classes: usize, preparation: &Preparation) -> Self {
        let mut tree = Self {
            n_classes: 0,
            budget: 0,
            rate: Rate::new(params.learning_rate, params.decay),
            soft_levels: 0.0,
            mean_depth: 0.0,
            arena: Arena::new(),
            regressors: Regressors::new(params.optimizer, params.loss, preparation.width()),
            params: params.clone(),
        };
        tree.set_n_classes(n_classes);
        tree
    }

    /// For so many classes from now on.
    pub(super) fn set_n_classes(&mut self, n_classes: usize) {
        self.n_classes = n_classes;
        self.budget = self.params.budget(n_classes);
        self.soft_levels = self.params.soft_levels(n_classes);
    }

    /// Learns one example that `regressors.prepare` has been given. Returns whether the
    /// prediction was right before.
    pub(super) fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        let (is_right, _) = self.learn_from(self.at_root(), example, label, importance);
        is_right
    }

    /// Where every example begins.
    pub(super) fn at_root(&self) -> Descent {
        Descent {
            at: self.arena.root, // line 3
            depth: 0,
            span: self.regressors.span(),
            previous: None,
        }
    }

    /// Learns one example that has come as far as `descent`. Returns whether the prediction was
    /// right before, and the depth of the leaf it ends at.
    pub(super) fn learn_from(
        &mut self,
        mut descent: Descent,
        example: &PathExample,
        label: u32,
        importance: f32,
    ) -> (bool, u32) {
        let weight = self.weight(importance);
        let mut predicted = None;
        loop {
            // The prediction that counts is that of the tree before this example: as soon as a
            // training changes the path, the previous path is followed to its end.
            if let (None, Some(previous)) = (predicted, descent.previous) {
                let leaf = self.leaf_from(previous, example, descent.span);
                predicted = Some(self.arena.node(leaf).majority);
            }
            let Descent { at: j, depth, .. } = descent;
            let node = self.arena.node_mut(j);
            if node.is_leaf() {
                predicted = predicted.or(Some(node.majority));
                node.count(label, weight); // lines 5 to 7
                if !self.may_split(j, depth) {
                    self.arena.node_mut(j).size += weight; // line 21
                    self.arena.update_c(j);
                    return (predicted == Some(label), depth);
                }
                self.split(j);
                // The arrival that made the node split is counted as a training instead.
                self.arena.node_mut(j).labels.entry(label).before -= weight as f32;
            }
            self.step_down(&mut descent, example, label, importance);
        }
    }

    /// Trains the internal node that `descent` is at and takes it to the child.
    #[inline]
    pub(super) fn step_down(
        &mut self,
        descent: &mut Descent,
        example: &PathExample,
        label: u32,
        importance: f32,
    ) {
        let weight = self.weight(importance);
        let scores = self.train(descent.at, example, label, importance, weight);
        let node = self.arena.node(descent.at);
        let next = node.child(scores.after); // line 19
        if descent.previous.is_none() {
            let previous = node.child(descent.span.clamp(scores.before));
            descent.previous = (previous != next).then_some(previous);
        }
        descent.at = next;
        descent.depth += 1;
    }

    /// What an example of this importance counts as in the tree's statistics.
    fn weight(&self, importance: f32) -> f64 {
        if self.params.weighted_counts {
            f64::from(importance)
        } else {
            1.0
        }
    }

    /// Lines 9 and 10: whether leaf `j` is impure enough to split, the more so the deeper it
    /// lies, and either the budget or Eq. 2 allows it.
    pub(super) fn may_split(&self, j: NodeId, depth: u32) -> bool {
        let node = self.arena.node(j);
        let excess = (f64::from(depth) - self.soft_levels).max(0.0);
        let impurity = node.count - node.majority_arrivals;
        if impurity < self.params.split_threshold * (0.5 * excess).exp2() {
            return false;
        }
        let smallest = self.arena.node(self.arena.root).size; // C_r
        self.arena.n_internal < self.budget
            || node.size - node.majority_arrivals > self.params.swap_resistance * (smallest + 1.0)
    }

    /// Lines 11 to 14: gives leaf `j` children. As the swap resistance is at least 1, Eq. 2
    /// holds for no leaf that is the smallest itself, so that there is one to swap.
    pub(super) fn split(&mut self, j: NodeId) {
        if self.arena.n_internal < self.budget {
            let regressor = self.regressors.push();
            self.arena.split(j, regressor);
        } else {
            self.arena.swap(j);
        }
    }

    /// Lines 16 to 18: trains the regressor of the internal node `j` to send the label to the
    /// side it leans to more than the average label does.
    #[inline]
    fn train(
        &mut self,
        j: NodeId,
        example: &PathExample,
        label: u32,
        importance: f32,
        weight: f64,
    ) -> Scores {
        let node = self.arena.node_mut(j);
        let place = node.labels.place_of(label); // lines 5 to 7
        let lean = node.labels.at_mut(place).mean();
        let target = if node.mean() > lean { -1.0 } else { 1.0 }; // line 16
        let step = self.rate.step(importance, node.count, example);
        let (regressor, left, right) = (node.regressor, node.left, node.right);
        let arena = &self.arena;
        prefetch(arena.node(left));
        prefetch(arena.node(right));
        let ahead = |after: f32| {
            let child = arena.node(if after < 0.0 { left } else { right });
            child.labels.prefetch(label);
            (!child.is_leaf()).then_some(child.regressor)
        };
        let scores = self
            .regressors
            .learn(regressor, example, target, step, importance, ahead); // line 17
        let score = self.params.clamped(scores.raw);
        self.arena.node_mut(j).add_score(place, score, weight); // line 18
        scores
    }

    /// The leaf that the scores, clamped to `span`, lead to from `j` on.
    pub(super) fn leaf_from(&self, mut j: NodeId, example: &PathExample, span: Span) -> NodeId {
        loop {
            let node = self.arena.node(j);
            if node.is_leaf() {
                return j;
            }
            j = node.child(span.clamp(self.regressors.score(node.regressor, example)));
        }
    }

    /// What does not fit together in a tree that was restored.
    fn check_stored(&self) -> std::result::Result<(), String> {
        let labels = self.arena.nodes.iter().flat_map(|node| {
            let known = node.labels.iter().map(|(label, _)| label);
            known.chain([node.majority])
        });
        if labels.max() >= Some(self.n_classes as u32) {
            return Err("a label is out of range".into());
        }
        self.arena.check(self.regressors.len())
    }
}
