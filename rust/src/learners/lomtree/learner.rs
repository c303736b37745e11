//! Algorithm 1 of the paper: training of one tree, example by example.
//!
//! Comments in [`LomTree::learn_one`] refer to the lines of its main program:
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
//! As in the authors' program, `UpdateC` also follows line 21. An example of importance w counts as
//! w examples.

use super::node::Arena;
use super::{Params, Rules};
use crate::data::Preparation;
use crate::linear::{PathExample, Rate, Regressors, Scores, Span};
use crate::persist;
use crate::simd::prefetch;
use crate::tree::{Junction, LearningTree, NodeId};

/// One tree with its training state.
#[derive(Debug, Clone)]
pub struct LomTree {
    pub(super) params: Params,
    pub(super) rules: Rules,
    pub(super) n_classes: usize,
    /// T: largest number of internal nodes.
    pub(super) budget: u32,
    rate: Rate,
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

/// Terminals are leaves, with their numbers in the arena.
impl LearningTree for LomTree {
    fn root(&self) -> u32 {
        self.arena.root.0
    }

    fn at(&self, id: u32) -> Junction<u32> {
        let node = self.arena.node(NodeId(id));
        if node.is_leaf() {
            return Junction::Terminal(id);
        }
        Junction::Router {
            router: node.regressor,
            children: [node.left.0, node.right.0],
        }
    }

    fn regressors(&self) -> &Regressors {
        &self.regressors
    }
}

impl LomTree {
    /// Returns a tree before any example (line 1).
    pub(super) fn empty(params: &Params, n_classes: usize, preparation: &Preparation) -> Self {
        Self {
            rules: if params.paper_tree {
                Rules::PAPER
            } else {
                Rules::DEFAULT
            },
            n_classes,
            budget: params.budget(n_classes),
            rate: Rate::new(params.learning_rate, params.decay),
            arena: Arena::new(),
            regressors: Regressors::new(params.optimizer, params.loss, preparation.width()),
            params: params.clone(),
        }
    }

    /// Learns one example, which `regressors.prepare` was called with. Returns true if the prediction
    /// was right before.
    pub(super) fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        // The weight of the example in the tree's statistics.
        let weight = if self.rules.weighted_counts {
            f64::from(importance)
        } else {
            1.0
        };
        let span = self.regressors.span();
        // The prediction is that of the tree before this example. As soon as a training changes the
        // path, the previous path is followed to its end.
        let mut predicted = None;
        let mut j = self.arena.root; // line 3
        let mut depth = 0;
        loop {
            let node = self.arena.node_mut(j);
            if node.is_leaf() {
                predicted = predicted.or(Some(node.majority));
                node.count(label, weight); // lines 5 to 7
                if !self.may_split(j, depth) {
                    self.arena.node_mut(j).size += weight; // line 21
                    self.arena.update_c(j);
                    return predicted == Some(label);
                }
                self.split(j);
                // The arrival that made the node split counts as a training instead.
                self.arena.node_mut(j).labels.entry(label).before -= weight as f32;
            }
            let scores = self.train(j, example, label, importance, weight);
            let node = self.arena.node(j);
            let next = node.child(scores.after); // line 19
            if predicted.is_none() {
                let previous = node.child(span.clamp(scores.before));
                if previous != next {
                    let leaf = self.leaf_from(previous, example, span);
                    predicted = Some(self.arena.node(leaf).majority);
                }
            }
            j = next;
            depth += 1;
        }
    }

    /// Lines 9 and 10: returns true if leaf `j` is impure enough to split at its depth, and the
    /// budget or Eq. 2 allows it.
    pub(super) fn may_split(&self, j: NodeId, depth: u32) -> bool {
        let node = self.arena.node(j);
        let impurity = node.count - node.majority_arrivals;
        let threshold = self.params.split_threshold;
        if impurity < threshold {
            return false;
        }
        let soft_levels = self.rules.soft_depth * (self.n_classes as f64).log2();
        // max ignores NaN, the excess of a single class without a soft depth.
        let excess = (f64::from(depth) - soft_levels).max(0.0);
        if impurity < threshold * (0.5 * excess).exp2() {
            return false;
        }
        let smallest = self.arena.node(self.arena.root).size; // C_r
        self.arena.n_internal < self.budget
            || node.size - node.majority_arrivals > self.params.swap_resistance * (smallest + 1.0)
    }

    /// Lines 11 to 14: gives leaf `j` children. As the swap resistance is at least 1, Eq. 2 does not
    /// hold for the smallest leaf, so `j` is another one.
    pub(super) fn split(&mut self, j: NodeId) {
        if self.arena.n_internal < self.budget {
            let regressor = self.regressors.push();
            self.arena.split(j, regressor);
        } else {
            self.arena.swap(j);
        }
    }

    /// Lines 16 to 18: trains the regressor of the internal node `j` to send the label further to
    /// the side of its mean score, relative to that of all examples.
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
        let label_mean = node.labels.at_mut(place).mean();
        let target = if node.mean() > label_mean { -1.0 } else { 1.0 }; // line 16
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
        let clamp = self.rules.score_clamp;
        let score = f64::from(scores.raw).clamp(-clamp, clamp);
        self.arena.node_mut(j).add_score(place, score, weight); // line 18
        scores
    }

    /// Returns the leaf below `j` that the scores, clamped to `span`, lead to.
    fn leaf_from(&self, mut j: NodeId, example: &PathExample, span: Span) -> NodeId {
        loop {
            let node = self.arena.node(j);
            if node.is_leaf() {
                return j;
            }
            j = node.child(span.clamp(self.regressors.score(node.regressor, example)));
        }
    }

    /// Checks that the parts of a tree from a file fit together.
    fn check_stored(&self) -> Result<(), String> {
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
