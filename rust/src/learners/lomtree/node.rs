//! The nodes of a tree: what each knows of its labels, and the structure that they form, with the
//! paper's subroutines `SetNode`, Swap and `UpdateC`. A change of the structure costs O(depth).

use crate::file::{is_count, is_sum};
use crate::linear::Table;
use crate::record;
use crate::tree::{NodeId, PackedF64, Topology};

/// The statistics of one label at a node. A leaf counts arrivals, an internal node trainings, in
/// the same field: these tables are the largest part of the tree that every example has to touch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct LabelStat {
    /// Arrivals from the time as a leaf; 0 at a leaf.
    pub before: f32,
    /// l of a leaf: arrivals; n of an internal node: trainings.
    pub count: PackedF64,
    /// m: sum of scores.
    pub score: PackedF64,
}

impl LabelStat {
    /// e: mean score.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score.0, self.count.0)
    }

    /// l: arrivals, at leaves and internal nodes.
    #[inline]
    pub fn arrivals(&self) -> f64 {
        f64::from(self.before) + self.count.0
    }
}

record!(LabelStat {
    before: is_sum,
    count: is_count,
    score
});

/// Single precision, as in the authors' program: whether one mean exceeds another can depend on
/// the last bit.
#[inline]
fn mean(sum: f64, n: f64) -> f32 {
    if n > 0.0 {
        sum as f32 / n as f32
    } else {
        0.0
    }
}

/// A leaf, or an internal node with a regressor.
///
/// The fields that every example on its way down reads or writes fill the first cache line; the
/// second is for leaves and for the upkeep of the structure.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// The child for scores below 0; none at a leaf.
    pub left: NodeId,
    /// The child for other scores.
    pub right: NodeId,
    /// None at the root.
    pub parent: NodeId,
    /// Number of the regressor of an internal node.
    pub regressor: u32,
    /// Statistics by label.
    pub labels: Table<LabelStat>,
    /// l of a leaf, n of an internal node, over all labels.
    pub count: f64,
    /// Sum of all scores.
    pub score: f64,
    /// C: size of the smallest leaf below; of a leaf, its own.
    pub size: f64,
    /// Arrivals of `majority`.
    pub majority_arrivals: f64,
    /// The label with most arrivals at a leaf; of equals, the first to get there. A new child has
    /// its parent's.
    pub majority: u32,
    /// Number of times that Swap took the node to serve elsewhere.
    pub recycled: u32,
}

record!(Node {
    left,
    right,
    parent,
    regressor,
    labels,
    count: is_count,
    score,
    size: is_count,
    majority_arrivals: is_count,
    majority,
    recycled,
});

/// The sum of counts, the same in whatever order a table has them.
pub fn sum(counts: impl Iterator<Item = f64> + Clone) -> f64 {
    /// Up to here sums of whole numbers are exact.
    const MAX_EXACT_SUM: f64 = 9_007_199_254_740_992.0;
    let (mut sum, mut are_whole) = (0.0, true);
    for n in counts.clone() {
        sum += n;
        are_whole &= (n as u64) as f64 == n;
    }
    if are_whole && sum <= MAX_EXACT_SUM {
        return sum;
    }
    let mut counts: Vec<f64> = counts.collect();
    counts.sort_unstable_by(f64::total_cmp);
    counts.iter().sum()
}

impl Node {
    /// The paper's `SetNode`: a leaf that has seen nothing.
    pub fn new() -> Self {
        Self {
            regressor: u32::MAX,
            ..Self::default()
        }
    }

    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.left == NodeId::NONE
    }

    /// E: mean score over all trainings.
    #[inline]
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// Labels and their arrivals, in an arbitrary order.
    #[inline]
    pub fn label_arrivals(&self) -> impl Iterator<Item = (u32, f64)> + Clone + '_ {
        let labels = self.labels.iter();
        labels.map(|(label, stat)| (label, stat.arrivals()))
    }

    /// Arrivals of all labels since the node came to its place.
    pub fn arrivals(&self) -> f64 {
        sum(self.label_arrivals().map(|(_, n)| n))
    }

    /// Counts an arrival of `label` at a leaf.
    pub fn count(&mut self, label: u32, importance: f64) {
        let stat = self.labels.entry(label);
        stat.count.0 += importance;
        self.count += importance;
        if stat.count.0 > self.majority_arrivals {
            self.majority = label;
            self.majority_arrivals = stat.count.0;
        }
    }

    /// Makes a leaf internal: from now on it counts trainings.
    pub fn become_internal(&mut self, [left, right]: [NodeId; 2], regressor: u32) {
        self.left = left;
        self.right = right;
        self.regressor = regressor;
        for stat in self.labels.values_mut() {
            stat.before = stat.count.0 as f32;
            stat.count.0 = 0.0;
        }
        self.count = 0.0;
    }

    /// Adds a training and its score to the means of a label, given by its place in the table,
    /// and to the mean of all.
    #[inline]
    pub fn add_score(&mut self, place: usize, score: f64, importance: f64) {
        let stat = self.labels.at_mut(place);
        stat.score.0 += importance * score;
        stat.count.0 += importance;
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
///
/// Invariants, after every operation: an internal node has two children that name it as their
/// parent; there is one leaf more than internal nodes; C of an internal node is the smaller of
/// its children's, so that C of the root is the size of the smallest leaf and a descent finds it.
#[derive(Debug, Clone)]
pub struct Arena {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    pub n_internal: u32,
    pub n_swaps: u64,
}

impl Arena {
    /// A single leaf that has seen nothing.
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::new()],
            root: NodeId(0),
            n_internal: 0,
            n_swaps: 0,
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

    /// C of an internal node: the smaller of its children's.
    fn smaller_size(&self, node: &Node) -> f64 {
        self.node(node.left).size.min(self.node(node.right).size)
    }

    /// Gives leaf `j` two new children and the regressor `regressor`.
    pub fn split(&mut self, j: NodeId, regressor: u32) {
        let n = self.nodes.len() as u32;
        self.nodes.extend([Node::new(), Node::new()]);
        self.n_internal += 1;
        self.adopt(j, [NodeId(n), NodeId(n + 1)], regressor);
    }

    /// The paper's Swap (Section 3.1, Figure 2): takes the smallest leaf s and its parent out of
    /// the tree and makes them the children of leaf `j`, which also gets the parent's
    /// regressor. The sibling of s moves up into the parent's place.
    ///
    /// The paper leaves three cases open. The parent is the root: the sibling becomes the root.
    /// `j` is the sibling, or lies below it: nothing special, it moves up with its subtree.
    ///
    /// Lemma 3 for examples of any weight: s and its parent have C = `C_r`, and each gets at
    /// least floor(C_j / 2) > 2 `C_r` + 1 from the leaf j, of more than 4 (`C_r` + 1) with a swap
    /// resistance of 4 or more. No leaf shrinks but by such a split, so that `C_r` + 1 has more
    /// than doubled whenever the same node is taken again. At the m-th time j is larger than
    /// 2^(m + 1), and no leaf is larger than the total weight W: m < log2(W) - 1.
    pub fn swap(&mut self, j: NodeId) {
        let s = self.smallest_leaf();
        let parent = self.node(s).parent;
        let above = self.node(parent);
        let (grandparent, regressor) = (above.parent, above.regressor);
        let sibling = if above.left == s {
            above.right
        } else {
            above.left
        };
        self.node_mut(sibling).parent = grandparent;
        if grandparent.is_some() {
            let above = self.node_mut(grandparent);
            if above.left == parent {
                above.left = sibling;
            } else {
                above.right = sibling;
            }
            self.update_c(sibling);
        } else {
            self.root = sibling;
        }
        for id in [s, parent] {
            let recycled = self.node(id).recycled + 1;
            *self.node_mut(id) = Node::new();
            self.node_mut(id).recycled = recycled;
        }
        self.n_swaps += 1;
        self.adopt(j, [s, parent], regressor);
    }

    /// Makes two new leaves the children of leaf `j`. They divide its size and predict its
    /// majority until they have seen an example.
    fn adopt(&mut self, j: NodeId, children: [NodeId; 2], regressor: u32) {
        let node = self.node_mut(j);
        node.become_internal(children, regressor);
        let (size, majority) = (node.size, node.majority);
        let half = (size / 2.0).floor();
        for (child, size) in children.into_iter().zip([half, size - half]) {
            let child = self.node_mut(child);
            child.parent = j;
            child.majority = majority;
            child.size = size;
        }
        self.update_c(children[0]);
    }

    /// From the root to the child with the smaller C, ties to the right.
    fn smallest_leaf(&self) -> NodeId {
        let mut at = self.root;
        while !self.node(at).is_leaf() {
            let Node { left, right, .. } = *self.node(at);
            let is_left = self.node(left).size < self.node(right).size;
            at = if is_left { left } else { right };
        }
        at
    }

    /// The paper's `UpdateC`: carries a changed C upward until a parent already has its child's
    /// value.
    pub fn update_c(&mut self, mut at: NodeId) {
        while at != self.root {
            let size = self.node(at).size;
            at = self.node(at).parent;
            // Equal to the bit or not at all: sizes are copied upward, never computed.
            if self.node(at).size.to_bits() == size.to_bits() {
                break;
            }
            self.node_mut(at).size = self.smaller_size(self.node(at));
        }
    }

    /// Checks the invariants, and that each internal node has one of the `n_regressors` to itself:
    /// a damaged model file must not send a descent out of bounds or round in circles.
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
            if node.size.to_bits() != self.smaller_size(node).to_bits() {
                return Err(format!("node {} does not know its smallest leaf", id.0));
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

    /// The nodes in breadth-first order.
    pub fn topology(&self) -> Topology<NodeId> {
        Topology::new(self.root, |&id| {
            let node = self.node(id);
            [node.left, node.right].map(|child| (!node.is_leaf()).then_some(child))
        })
    }
}
