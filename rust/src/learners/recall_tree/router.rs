//! The tree of routers: nodes with their statistics, allocated as examples reach them, the path
//! that an example takes, and the candidates at its end. Nothing here looks at the scorers.

use super::labels::{entropy_after, recall_bound, LabelCounts, LabelSet, LocalId};
use super::params::Params;
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::linear::{PathExample, Rate, Regressors, Span};
use crate::simd::prefetch;
use crate::tree::{Junction, LearningTree, NodeId};
use crate::{persist, record};

/// A node, in two cache lines; the first is what deciding between children
/// reads of each. Unseen children of an internal node exist, but hold nothing.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// The first of its two children, which lie side by side; 0, the root, before
    /// the node was passed for the first time.
    first_child: u32,
    /// Lower bound on the recall of its candidates.
    pub bound: f32,
    /// Entropy of its labels, in nats.
    pub entropy: f64,
    /// The histogram of its labels, and its candidates.
    pub counts: LabelCounts,
    /// Weight of its examples whose label was a candidate of its parent at the time.
    pub parent_recalled: f64,
    /// Weight of the examples that its router learned from.
    pub trained: f64,
}

impl Node {
    /// Whether examples have passed it.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.first_child != 0
    }

    /// Left and right.
    #[inline]
    pub fn children(&self) -> [NodeId; 2] {
        [NodeId(self.first_child), NodeId(self.first_child + 1)]
    }

    /// The number of its router: allocated with the children, so that their place tells it.
    #[inline]
    pub fn router(&self) -> u32 {
        (self.first_child - 1) / 2
    }

    fn set_bound(&mut self, params: &Params) {
        self.bound = recall_bound(self.counts.mass, self.counts.total, params.bern_hyper);
    }
}

record!(Node {
    first_child,
    entropy: is_entropy,
    counts,
    parent_recalled: is_count,
    trained: is_count,
} .. { bound: 0.0 });

/// Whether an entropy is one of any number of labels, but for rounding.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_entropy(entropy: &f64) -> bool {
    entropy.abs() <= 1e3
}

/// Nodes and routers.
#[derive(Debug, Clone)]
pub struct RoutingTree {
    pub(super) params: Params,
    /// The root is the first.
    pub(super) nodes: Vec<Node>,
    /// The node above each; none at the root.
    parents: Vec<NodeId>,
    /// One for each node that has children; see [`Node::router`].
    pub(super) routers: Regressors,
    pub(super) rate: Rate,
    /// F: most candidates of a node.
    pub(super) max_candidates: usize,
    /// D: levels below the root at most.
    pub(super) max_depth: u32,
    /// Which labels are candidates already.
    pub(super) seen: LabelSet,
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
    /// The child of the final node that the stop rule kept the example from.
    pub blocked_child: Option<NodeId>,
}

impl Path {
    pub fn end(&self) -> NodeId {
        self.nodes.last().copied().unwrap_or(RoutingTree::ROOT)
    }

    /// Makes this the path of the root alone.
    pub fn restart(&mut self) {
        self.nodes.clear();
        self.nodes.push(RoutingTree::ROOT);
        self.blocked_child = None;
    }

    /// The nodes that count an example of this path. The child that the stop rule kept
    /// it from does, too: this is how children earn the statistics that open them.
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
    /// Every path begins here.
    pub const ROOT: NodeId = NodeId(0);

    /// A root that has seen no example, for labels of `label_bits` of entropy.
    pub fn new(params: &Params, n_classes: usize, label_bits: f64, width: usize) -> Self {
        let (rate, decay) = params.router_rate();
        Self {
            nodes: vec![Node::default()],
            parents: vec![NodeId::NONE],
            routers: Regressors::new(params.optimizer(), params.router_loss(), width),
            rate: Rate::new(rate, decay),
            max_candidates: params.candidates(n_classes, label_bits),
            max_depth: params.depth(label_bits),
            seen: LabelSet::default(),
            params: params.clone(),
        }
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    #[inline]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.at()]
    }

    /// Gives `id` a router, and children that have seen nothing.
    pub fn grow(&mut self, id: NodeId) {
        self.routers.push();
        let first = self.nodes.len();
        // Both or neither.
        self.parents.reserve(2);
        self.nodes.resize(first + 2, Node::default());
        self.parents.resize(first + 2, id);
        self.node_mut(id).first_child = first as u32;
    }

    /// For `n_classes` labels, of `label_bits` of entropy, from now on: every node may have more
    /// candidates, which are then its most frequent labels.
    pub fn add_classes(&mut self, n_classes: usize, label_bits: f64) {
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

    /// Adds `weight` of `label` to the histograms of `nodes`, each the parent of the
    /// next, and updates their candidates, entropies and recall bounds.
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

    /// To be called where a stream's label number `n_labels` turns up. Counts of fewer labels
    /// say little of where examples are to go now, but outweigh those to come: they are halved
    /// whenever the number of labels, more than F, has grown by a fourth.
    pub fn age(&mut self, n_labels: usize) {
        // floor(3 log2 n)
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

    /// The stop rule: whether the descent from `parent` towards `child` ends at
    /// `parent`, because the child's recall bound is no better. A tie stops.
    #[inline]
    pub fn stops(&self, parent: NodeId, child: NodeId) -> bool {
        if self.params.bern_hyper == 0.0 {
            return false;
        }
        let child = self.node(child);
        let recall_of_parent = if self.params.paper_tree {
            self.node(parent).bound
        } else {
            // On the examples that came to the child, not on all of the parent's.
            (child.parent_recalled / child.counts.total) as f32
        };
        // NaN: the child has seen nothing.
        recall_of_parent.is_nan() || recall_of_parent >= child.bound
    }

    /// Whether a path from `parent` towards `child` ends at `parent`. An unseen
    /// child has no candidates, whatever the bound's multiplier.
    pub fn is_final(&self, parent: NodeId, child: NodeId) -> bool {
        self.stops(parent, child) || self.node(child).counts.candidates().is_empty()
    }

    /// The loop of Figure 1: extends `path`, which ends at `parent` and goes on to
    /// `child`, by the routers as they are.
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

    /// The candidates at the end of a path: the most frequent labels there and, while
    /// fewer than F, those of the nodes above, unless the tree is the paper's. `seen` is scratch
    /// space.
    pub fn candidates_at_end(
        &self,
        path: &[NodeId],
        seen: &mut LabelSet,
        candidates: &mut Vec<LocalId>,
    ) {
        candidates.clear();
        let Some((&end, above)) = path.split_last() else {
            return;
        };
        candidates.extend_from_slice(self.node(end).counts.candidates());
        if self.params.paper_tree || candidates.len() == self.max_candidates {
            return;
        }
        seen.reset(candidates);
        let missing = self.max_candidates - candidates.len();
        let above = above.iter().rev();
        let further = above.flat_map(|&node| self.node(node).counts.candidates());
        let new = further.filter(|&&label| seen.insert(label)).take(missing);
        new.for_each(|&label| candidates.push(label));
    }

    /// Restores what is not stored. An error where the nodes do not form a tree.
    fn restore(&mut self) -> Result<()> {
        let n = self.nodes.len();
        // Children were allocated in the order in which their parents were first passed.
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
                return Err(Error::data(format!("the labels of node {at}")));
            }
            node.set_bound(&self.params);
        }
        Ok(())
    }
}

/// Marks the number of a node where a path ends because the stop rule bars the child.
const STOPPED: u32 = 1 << 31;

/// Prediction's view of the tree. A terminal is a node by its number: the path to a child whose
/// bound is no better ends at the parent.
impl LearningTree for RoutingTree {
    fn root(&self) -> u32 {
        Self::ROOT.0
    }

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

    /// By the scores as they are, which tell another side only while no -1 was ever learned.
    fn span(&self) -> Span {
        Span::UNBOUNDED
    }
}

/// 0 goes right, as everywhere in the crate, and so does NaN.
#[inline]
pub fn is_right(score: f32) -> bool {
    score >= 0.0 || score.is_nan()
}

/// The router that an example meets next at node `id`, so that its weights can be
/// prefetched; the statistics it will be updated by are prefetched here.
#[inline]
pub fn next_router(nodes: &[Node], id: NodeId) -> Option<u32> {
    let node = &nodes[id.at()];
    node.has_children().then(|| {
        // A line each is enough to decide between them.
        let children = node.children().map(|child| &nodes[child.at()]);
        children.into_iter().for_each(prefetch);
        node.router()
    })
}
