//! The tree of routers: nodes with their statistics, created as examples reach them, the path of an
//! example, and the candidates at its end. Nothing here depends on the scorers.

use super::labels::{entropy_after, recall_bound, LabelCounts, LocalId};
use super::params::Params;
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::linear::{PathExample, Rate, Regressors, Span};
use crate::simd::prefetch;
use crate::tree::{Junction, LearningTree, NodeId};
use crate::{persist, record};

/// A node, in two cache lines. The first has what a decision between children reads. The children
/// of an internal node exist before any example has reached them.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// The first of its two children, which lie side by side, or 0 if no example has passed the
    /// node.
    first_child: u32,
    /// A lower bound on the recall of its candidates.
    pub bound: f32,
    /// The entropy of its labels, in nats.
    pub entropy: f64,
    /// The histogram of its labels, and its candidates.
    pub counts: LabelCounts,
    /// The weight of its examples whose label was a candidate of its parent when they came.
    pub parent_recalled: f64,
    /// The weight of the examples that its router learned from.
    pub trained: f64,
}

impl Node {
    /// Returns whether examples have passed the node.
    pub fn has_children(&self) -> bool {
        self.first_child != 0
    }

    /// Returns the left and the right child.
    pub fn children(&self) -> [NodeId; 2] {
        [NodeId(self.first_child), NodeId(self.first_child + 1)]
    }

    /// Returns the number of its router. A router is created together with the children, so their
    /// place determines its number.
    pub fn router(&self) -> u32 {
        (self.first_child - 1) / 2
    }

    fn set_bound(&mut self, params: &Params) {
        let (mass, n) = (self.counts.mass, self.counts.total);
        self.bound = recall_bound(mass, n, params.bern_hyper, params.recall_bound);
    }
}

record!(Node {
    first_child,
    entropy: is_entropy,
    counts,
    parent_recalled: is_count,
    trained: is_count,
} .. { bound: 0.0 });

/// Returns whether a number may be the rounded entropy of some labels.
fn is_entropy(entropy: &f64) -> bool {
    entropy.abs() <= 1e3
}

/// The nodes and their routers.
#[derive(Debug, Clone)]
pub struct RoutingTree {
    pub(super) params: Params,
    /// The nodes, the root first.
    pub(super) nodes: Vec<Node>,
    /// The parent of each node, none for the root. Parents come before their children.
    pub(super) parents: Vec<NodeId>,
    /// A router for each node that has children; see [`Node::router`].
    pub(super) routers: Regressors,
    pub(super) rate: Rate,
    /// F, the largest number of candidates of a node.
    pub(super) max_candidates: usize,
    /// D, the largest number of levels below the root.
    pub(super) max_depth: u32,
    n_classes: usize,
    /// Scratch space of [`Self::candidates_at_end`].
    pub(super) is_known: Vec<bool>,
}

persist!(RoutingTree {
    Nest routers;
    Columns nodes;
} check restore);

/// A path from the root.
#[derive(Debug, Clone, Default)]
pub struct Path {
    /// The nodes, the root first, the final node last.
    pub nodes: Vec<NodeId>,
    /// The child of the final node that the stop rule did not let the example enter.
    pub blocked_child: Option<NodeId>,
}

impl Path {
    /// Returns the final node.
    pub fn end(&self) -> NodeId {
        self.nodes.last().copied().unwrap_or(RoutingTree::ROOT)
    }

    /// Makes this the path of the root alone.
    pub fn restart(&mut self) {
        self.nodes.clear();
        self.nodes.push(RoutingTree::ROOT);
        self.blocked_child = None;
    }

    /// Returns the nodes that count an example of this path. The blocked child is one of them, so
    /// that it gets the statistics that may open it later.
    pub fn counting_nodes(&self) -> impl Iterator<Item = NodeId> + Clone + '_ {
        self.nodes.iter().copied().chain(self.blocked_child)
    }

    /// Replaces this path by `other`, without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.nodes.clone_from(&other.nodes);
        self.blocked_child = other.blocked_child;
    }
}

impl RoutingTree {
    /// The root, where every path begins.
    pub const ROOT: NodeId = NodeId(0);

    /// Creates a root without examples, for labels with an entropy of `label_bits`.
    pub fn new(params: &Params, n_classes: usize, label_bits: f64, width: usize) -> Self {
        let (rate, decay) = params.router_rate();
        Self {
            nodes: vec![Node::default()],
            parents: vec![NodeId::NONE],
            routers: Regressors::new(params.optimizer(), params.router_loss(), width),
            rate: Rate::new(rate, decay),
            max_candidates: params.candidates(n_classes, label_bits),
            max_depth: params.depth(label_bits),
            n_classes,
            is_known: Vec::new(),
            params: params.clone(),
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// Gives the node `id` a router, and children without examples.
    pub fn grow(&mut self, id: NodeId) {
        self.routers.push();
        let first = self.nodes.len();
        self.nodes.resize(first + 2, Node::default());
        self.parents.resize(first + 2, id);
        self.nodes[id.at()].first_child = first as u32;
    }

    /// Sets F and D for `n_classes` labels with an entropy of `label_bits`. If F grows, nodes get
    /// more candidates, their most frequent other labels.
    pub fn add_classes(&mut self, n_classes: usize, label_bits: f64) {
        self.n_classes = n_classes;
        self.max_depth = self.params.depth(label_bits);
        let max_candidates = self.params.candidates(n_classes, label_bits);
        if max_candidates <= self.max_candidates {
            return;
        }
        self.max_candidates = max_candidates;
        for node in &mut self.nodes {
            node.counts.fill_up(max_candidates);
            node.set_bound(&self.params);
        }
    }

    /// Adds `weight` to the count of `label` at `nodes`, each the parent of the next. Updates their
    /// candidates, entropies and recall bounds.
    pub fn update_candidates(
        &mut self,
        nodes: impl Iterator<Item = NodeId> + Clone,
        label: LocalId,
        weight: f64,
    ) {
        for id in nodes.clone() {
            self.node(id).counts.prefetch_order();
        }
        let mut known_above = false;
        for id in nodes {
            let node = &mut self.nodes[id.at()];
            let counts = &mut node.counts;
            node.entropy = entropy_after(node.entropy, counts.total, counts.get(label), weight);
            if known_above {
                node.parent_recalled += weight;
            }
            known_above = counts.add(label, weight, self.max_candidates);
            node.set_bound(&self.params);
        }
    }

    /// Lets old counts fade. Must be called when the label number `n_labels` of a stream arrives.
    ///
    /// Counts from the time of fewer labels say little about where examples should go now, but
    /// outweigh later counts. So they are halved whenever the number of labels, if it exceeds F, has
    /// grown by a fourth.
    pub fn age(&mut self, n_labels: usize) {
        // The number of halvings so far is floor(3 log2 n).
        let halvings = |n: usize| (n as u128).pow(3).ilog2();
        let is_old = n_labels > self.max_candidates && halvings(n_labels) > halvings(n_labels - 1);
        if !is_old || self.params.paper_tree {
            return;
        }
        for node in &mut self.nodes {
            node.counts.halve();
            node.parent_recalled /= 2.0;
            node.set_bound(&self.params);
        }
    }

    /// Returns whether the stop rule ends a path from `parent` towards `child` at `parent`, because
    /// the recall bound of the child is no better. A tie stops.
    pub fn stops(&self, parent: NodeId, child: NodeId) -> bool {
        if self.params.bern_hyper == 0.0 {
            return false;
        }
        let child = self.node(child);
        let recall_of_parent = if self.params.paper_tree {
            self.node(parent).bound
        } else {
            // The recall of the parent on the examples of the child only.
            (child.parent_recalled / child.counts.total) as f32
        };
        // NaN means that the child has no examples.
        recall_of_parent.is_nan() || recall_of_parent >= child.bound
    }

    /// Returns whether a path from `parent` towards `child` ends at `parent`: by the stop rule, or
    /// because the child has no candidates.
    pub fn is_final(&self, parent: NodeId, child: NodeId) -> bool {
        self.stops(parent, child) || self.node(child).counts.candidates().is_empty()
    }

    /// Extends `path`, which ends at `parent` and goes on to `child`, by the loop of Figure 1.
    pub fn route(
        &self,
        mut parent: NodeId,
        mut child: NodeId,
        example: &PathExample,
        path: &mut Path,
    ) {
        path.blocked_child = None;
        loop {
            if self.is_final(parent, child) {
                path.blocked_child = Some(child);
                return;
            }
            parent = child;
            path.nodes.push(parent);
            let node = self.node(parent);
            if !node.has_children() {
                return;
            }
            let score = self.routers.score(node.router(), example);
            child = node.children()[usize::from(is_right(score))];
        }
    }

    /// Replaces `path` by the nodes from the root to `id`.
    pub fn path_to(&self, mut id: NodeId, path: &mut Vec<NodeId>) {
        path.clear();
        while id.is_some() {
            path.push(id);
            id = self.parents[id.at()];
        }
        path.reverse();
    }

    /// Appends the candidates at the end of a path to `candidates`: the most frequent labels of the
    /// node `end` and, while there are fewer than F, those of the nodes above. In the paper's tree,
    /// a node has its own candidates only. `is_known` is scratch space, all false between calls.
    pub fn candidates_at_end(
        &self,
        end: NodeId,
        is_known: &mut Vec<bool>,
        candidates: &mut Vec<LocalId>,
    ) {
        let from = candidates.len();
        let most = from + self.max_candidates;
        candidates.extend_from_slice(self.node(end).counts.candidates());
        if self.params.paper_tree || candidates.len() == most {
            return;
        }
        is_known.resize(self.n_classes, false);
        for label in &candidates[from..] {
            is_known[label.at()] = true;
        }
        let mut above = self.parents[end.at()];
        while above.is_some() && candidates.len() < most {
            for &label in self.node(above).counts.candidates() {
                if candidates.len() < most && !is_known[label.at()] {
                    is_known[label.at()] = true;
                    candidates.push(label);
                }
            }
            above = self.parents[above.at()];
        }
        for label in &candidates[from..] {
            is_known[label.at()] = false;
        }
    }

    /// Restores what is not stored. Returns an error if the nodes do not form a tree.
    fn restore(&mut self) -> Result<()> {
        let n = self.nodes.len();
        // Children are created in the order in which examples first passed their parents.
        let mut internal: Vec<usize> = (0..n).filter(|&at| self.nodes[at].has_children()).collect();
        internal.sort_unstable_by_key(|&at| self.nodes[at].first_child);
        self.parents = vec![NodeId::NONE];
        let is_tree = internal.iter().all(|&at| {
            let next = self.parents.len();
            self.parents.resize(next + 2, NodeId(at as u32));
            self.nodes[at].first_child as usize == next && at < next
        });
        if !is_tree || (self.parents.len(), self.routers.len()) != (n, internal.len()) {
            return Err(Error::data("the nodes do not form a tree"));
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let is_sound =
                node.counts.candidates().len() <= self.max_candidates && node.counts.restore();
            if !is_sound {
                return Err(Error::data(format!(
                    "the label counts of node {at} are not sound"
                )));
            }
            node.set_bound(&self.params);
        }
        Ok(())
    }
}

/// Flag in the number of a node for paths that end there although the node has children.
const STOPPED: u32 = 1 << 31;

/// The tree as predictions see it. A terminal has the number of the node where the path ends: the
/// parent, if the stop rule blocks the child.
impl LearningTree for RoutingTree {
    fn at(&self, number: u32) -> Junction<u32> {
        let id = NodeId(number & !STOPPED);
        let node = self.node(id);
        if number >= STOPPED || !node.has_children() {
            return Junction::Terminal(id.0);
        }
        let below = |child: NodeId| {
            if self.is_final(id, child) {
                STOPPED | id.0
            } else {
                child.0
            }
        };
        let children = node.children().map(below);
        if children == [STOPPED | id.0; 2] {
            return Junction::Terminal(id.0);
        }
        Junction::Router {
            router: node.router(),
            children,
        }
    }

    fn regressors(&self) -> &Regressors {
        &self.routers
    }

    /// Scores are not clamped. Clamping would change the side of a score only before any router has
    /// learned -1.
    fn span(&self) -> Span {
        Span::UNBOUNDED
    }
}

/// Returns whether a router of this score sends right. 0 goes right, as everywhere in the crate, and
/// so does NaN.
pub fn is_right(score: f32) -> bool {
    score >= 0.0 || score.is_nan()
}

/// Returns the router of node `id`, so that its weights can be prefetched, and prefetches the
/// statistics of its children.
pub fn next_router(nodes: &[Node], id: NodeId) -> Option<u32> {
    let node = &nodes[id.at()];
    node.has_children().then(|| {
        // The first cache line of each child is enough to decide between them.
        let children = node.children().map(|child| &nodes[child.at()]);
        children.into_iter().for_each(prefetch);
        node.router()
    })
}
