//! The structure of the tree: nodes, splits, and the smallest leaf.
//!
//! Invariants, after every operation: an internal node has two children that
//! name it as their parent; there is one leaf more than internal nodes; C of
//! an internal node is the smaller of its children's, so that C of the root
//! is the size of the smallest leaf and a walk finds it.

use crate::linear::Table;
use crate::simd::prefetch;
use crate::tree::NodeId;

/// What a node knows of one label. A leaf counts arrivals, an internal node
/// trainings, in the same place: the table of all labels at all nodes is the
/// largest part of the tree that every example has to touch.
///
/// Packed to multiples of 4 bytes, so that key and value take 24 and not 32.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, packed(4))]
pub struct LabelStat {
    /// Arrivals from the time as a leaf; 0 at a leaf.
    pub before: f32,
    /// l of a leaf: arrivals; n of an internal node: trainings.
    pub count: f64,
    /// m: sum of scores.
    pub score: f64,
}

impl LabelStat {
    /// e: mean score.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// l: arrivals, at leaves and internal nodes.
    pub fn arrivals(&self) -> f64 {
        f64::from(self.before) + self.count
    }
}

/// Single precision, as in the authors' program: whether one mean exceeds
/// another can hang on the last bit.
#[inline]
pub(super) fn mean(sum: f64, n: f64) -> f32 {
    if n > 0.0 {
        sum as f32 / n as f32
    } else {
        0.0
    }
}

/// A node: a leaf, or internal with a regressor.
///
/// What every example on its way down reads or writes fills the first cache
/// line; the second is for leaves and for the upkeep of the structure.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Node {
    /// Where scores below 0 go; none at a leaf.
    pub left: NodeId,
    /// Where other scores go.
    pub right: NodeId,
    /// The node above; none at the root.
    pub parent: NodeId,
    /// Number of the regressor of an internal node.
    pub regressor: u32,
    /// Per label.
    pub labels: Table<LabelStat>,
    /// l of a leaf, n of an internal node, over all labels.
    pub count: f64,
    /// Sum of all scores.
    pub score: f64,
    /// C: size of the smallest leaf below; of a leaf, its own.
    pub size: f64,
    /// Arrivals of `top`.
    pub top_arrivals: f64,
    /// The label with most arrivals; of equals, the first to get there. A new
    /// child has its parent's. Follows the arrivals of a leaf only.
    pub top: u32,
    /// How often the node was wiped to serve elsewhere.
    pub recycled: u32,
}

impl Node {
    fn new(top: u32) -> Self {
        Self {
            parent: NodeId::NONE,
            left: NodeId::NONE,
            right: NodeId::NONE,
            regressor: u32::MAX,
            recycled: 0,
            top,
            top_arrivals: 0.0,
            count: 0.0,
            score: 0.0,
            size: 0.0,
            labels: Table::new(),
        }
    }

    /// Whether it has no children.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.left == NodeId::NONE
    }

    /// E: mean score over all trainings.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// Arrivals of all labels since the node came to its place.
    pub fn arrivals(&self) -> f64 {
        let mut arrivals: Vec<f64> = self.labels.iter().map(|(_, s)| s.arrivals()).collect();
        // One order of summation, whatever order the table has.
        arrivals.sort_unstable_by(f64::total_cmp);
        arrivals.iter().sum()
    }

    /// Counts an arrival of `label` at a leaf.
    pub fn count(&mut self, label: u32, importance: f64) {
        let stat = self.labels.entry(label);
        stat.count += importance;
        self.count += importance;
        if stat.count > self.top_arrivals {
            self.top = label;
            self.top_arrivals = stat.count;
        }
    }

    /// From now on trainings are counted.
    fn stop_being_a_leaf(&mut self) {
        for stat in self.labels.values_mut() {
            stat.before = stat.count as f32;
            stat.count = 0.0;
        }
        self.count = 0.0;
    }

    /// Takes back the arrival that made the node split: it will be counted as a training.
    pub fn uncount(&mut self, label: u32, importance: f64) {
        self.labels.entry(label).before -= importance as f32;
    }

    /// Takes `score` into the means of a label, by its place in the table, and of all.
    #[inline]
    pub fn fold(&mut self, place: usize, score: f64, importance: f64) {
        let stat = self.labels.at_mut(place);
        stat.score += importance * score;
        stat.count += importance;
        self.score += importance * score;
        self.count += importance;
    }

    /// The child that a score leads to: zero goes right.
    #[inline]
    pub fn child(&self, score: f32) -> NodeId {
        if score < 0.0 {
            self.left
        } else {
            self.right
        }
    }
}

/// All nodes of a tree.
#[derive(Debug, Clone)]
pub struct Arena {
    /// By number.
    pub nodes: Vec<Node>,
    /// The root.
    pub root: NodeId,
    /// Internal nodes.
    pub n_internal: u32,
    /// Swaps so far.
    pub n_swaps: u64,
}

/// What a swap took away, for its new owner.
pub struct Recycled {
    left: NodeId,
    right: NodeId,
    regressor: u32,
}

impl Arena {
    /// A single leaf that has seen nothing.
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::new(0)],
            root: NodeId(0),
            n_internal: 0,
            n_swaps: 0,
        }
    }

    /// A node by number.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// A node by number, to be changed.
    #[inline]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.at()]
    }

    /// Asks for a node ahead of its use.
    #[inline]
    pub fn prefetch(&self, id: NodeId) {
        prefetch(self.node(id));
    }

    /// C of the root: the size of the smallest leaf.
    pub fn smallest(&self) -> f64 {
        self.node(self.root).size
    }

    /// Gives leaf `j` two new children and the regressor `regressor`.
    pub fn split(&mut self, j: NodeId, regressor: u32) {
        let left = NodeId(self.nodes.len() as u32);
        let right = NodeId(left.0 + 1);
        self.nodes.push(Node::new(0));
        self.nodes.push(Node::new(0));
        self.n_internal += 1;
        self.adopt(
            j,
            &Recycled {
                left,
                right,
                regressor,
            },
        );
    }

    /// The paper's Swap: leaf `j` gets the smallest leaf and that leaf's
    /// parent as its children, and the parent's regressor, whose number is
    /// returned.
    pub fn swap(&mut self, j: NodeId) -> u32 {
        let recycled = self.release_smallest();
        self.adopt(j, &recycled);
        recycled.regressor
    }

    /// Takes the smallest leaf and its parent out of the tree; the leaf's
    /// sibling moves up into the parent's place.
    ///
    /// The paper leaves three cases open. The parent is the root: the sibling
    /// becomes the root. The leaf that asks is the sibling, or lies below it:
    /// nothing special, it moves up with its subtree.
    fn release_smallest(&mut self) -> Recycled {
        let s = self.smallest_leaf();
        let parent = self.node(s).parent;
        let above = self.node(parent).parent;
        let sibling = if self.node(parent).left == s {
            self.node(parent).right
        } else {
            self.node(parent).left
        };
        let regressor = self.node(parent).regressor;
        self.node_mut(sibling).parent = above;
        if above.is_some() {
            if self.node(above).left == parent {
                self.node_mut(above).left = sibling;
            } else {
                self.node_mut(above).right = sibling;
            }
            self.update_sizes(sibling);
        } else {
            self.root = sibling;
        }
        for id in [s, parent] {
            let recycled = self.node(id).recycled + 1;
            *self.node_mut(id) = Node::new(0);
            self.node_mut(id).recycled = recycled;
        }
        self.n_swaps += 1;
        Recycled {
            left: s,
            right: parent,
            regressor,
        }
    }

    fn adopt(&mut self, j: NodeId, children: &Recycled) {
        let Recycled {
            left,
            right,
            regressor,
        } = *children;
        let node = self.node_mut(j);
        node.left = left;
        node.right = right;
        node.regressor = regressor;
        node.stop_being_a_leaf();
        let (size, top) = (node.size, node.top);
        let half = (size / 2.0).floor();
        for (child, size) in [(left, half), (right, size - half)] {
            let child = self.node_mut(child);
            child.parent = j;
            child.top = top;
            child.size = size;
        }
        self.update_sizes(left);
    }

    /// From the root to the child with the smaller C, ties to the right.
    fn smallest_leaf(&self) -> NodeId {
        let mut at = self.root;
        while !self.node(at).is_leaf() {
            let Node { left, right, .. } = *self.node(at);
            at = if self.node(left).size < self.node(right).size {
                left
            } else {
                right
            };
        }
        at
    }

    /// The paper's UpdateC: carries a changed C upward until a parent already
    /// has its child's value.
    pub fn update_sizes(&mut self, from: NodeId) {
        let mut at = from;
        while at != self.root {
            let size = self.node(at).size;
            at = self.node(at).parent;
            // Equal to the bit or not at all: sizes are copied upward, never computed.
            if self.node(at).size.to_bits() == size.to_bits() {
                break;
            }
            let Node { left, right, .. } = *self.node(at);
            let smaller = self.node(left).size.min(self.node(right).size);
            self.node_mut(at).size = smaller;
        }
    }

    /// Whether the invariants hold; if not, which does not. Also what keeps a
    /// made-up model file from sending a walk out of bounds or round in circles.
    pub fn check(&self, n_regressors: usize) -> Result<(), String> {
        let n = self.nodes.len();
        if self.root.at() >= n || self.node(self.root).parent.is_some() {
            return Err("the root is not a root".into());
        }
        if n != 2 * self.n_internal as usize + 1 {
            return Err(format!("{n} nodes with {} internal ones", self.n_internal));
        }
        let mut taken = vec![false; n_regressors];
        let mut reached = 0;
        let mut next = vec![self.root];
        while let Some(id) = next.pop() {
            reached += 1;
            let node = self.node(id);
            if node.is_leaf() {
                continue;
            }
            for child in [node.left, node.right] {
                // Each child names its only parent, so no node is met twice.
                if child.at() >= n || self.node(child).parent != id || node.left == node.right {
                    return Err(format!("node {} has a child that is not its own", id.0));
                }
                next.push(child);
            }
            let smaller = self.node(node.left).size.min(self.node(node.right).size);
            if node.size.to_bits() != smaller.to_bits() {
                return Err(format!(
                    "node {} does not know the size of its smallest leaf",
                    id.0
                ));
            }
            match taken.get_mut(node.regressor as usize) {
                Some(taken) if !*taken => *taken = true,
                _ => return Err(format!("node {} has no regressor of its own", id.0)),
            }
        }
        if reached != n {
            return Err(format!("{reached} of {n} nodes can be reached"));
        }
        Ok(())
    }

    /// Nodes in breadth-first order with their depths.
    pub fn breadth_first(&self) -> Vec<(NodeId, u32)> {
        let mut order = vec![(self.root, 0)];
        let mut next = 0;
        while next < order.len() {
            let (id, depth) = order[next];
            next += 1;
            let node = self.node(id);
            if !node.is_leaf() {
                order.push((node.left, depth + 1));
                order.push((node.right, depth + 1));
            }
        }
        order
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}
