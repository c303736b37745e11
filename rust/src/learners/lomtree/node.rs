//! The nodes of a tree: statistics of their labels, and the structure with the paper's subroutines
//! `SetNode`, Swap and `UpdateC`. A change of the structure costs O(depth).

use crate::file::{is_count, is_sum};
use crate::linear::Table;
use crate::record;
use crate::tree::{NodeId, PackedF64, Topology};

/// Statistics of one label at a node. A leaf counts arrivals and an internal node trainings in the
/// same field, because these tables are the largest part of the memory that each example reads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct LabelStat {
    /// Arrivals while the internal node was a leaf; 0 at a leaf.
    pub before: f32,
    /// Arrivals (l) at a leaf, trainings (n) at an internal node.
    pub count: PackedF64,
    /// Sum of scores (m).
    pub score: PackedF64,
}

impl LabelStat {
    /// Returns the mean score (e).
    pub fn mean(&self) -> f32 {
        mean(self.score.0, self.count.0)
    }

    /// Returns the number of arrivals (l), at leaves and internal nodes.
    pub fn arrivals(&self) -> f64 {
        f64::from(self.before) + self.count.0
    }
}

record!(LabelStat {
    before: is_sum,
    count: is_count,
    score
});

/// Returns the mean in single precision, as the authors' program: a comparison of two means can
/// depend on the last bit.
fn mean(sum: f64, n: f64) -> f32 {
    if n > 0.0 {
        sum as f32 / n as f32
    } else {
        0.0
    }
}

/// A leaf, or an internal node with a regressor.
///
/// The first cache line has the fields that each passing example reads or writes. The second serves
/// leaves and changes of the structure.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// Child for scores below 0; none at a leaf.
    pub left: NodeId,
    /// Child for other scores.
    pub right: NodeId,
    /// Parent; none at the root.
    pub parent: NodeId,
    /// Number of the regressor of an internal node.
    pub regressor: u32,
    /// Statistics by label.
    pub labels: Table<LabelStat>,
    /// Sum of [`LabelStat::count`] over all labels.
    pub count: f64,
    /// Sum of all scores.
    pub score: f64,
    /// Size of the smallest leaf below, or of the leaf itself (C).
    pub size: f64,
    /// Arrivals of `majority`.
    pub majority_arrivals: f64,
    /// Label with most arrivals at a leaf, the first that got there. A new child has its parent's.
    pub majority: u32,
    /// Number of times that Swap moved the node.
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

/// Returns the sum of counts, which does not depend on their order.
pub fn sum(counts: impl Iterator<Item = f64> + Clone) -> f64 {
    /// Largest exact sum of whole numbers.
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
    /// Returns a leaf before any example, as the paper's `SetNode`.
    pub fn new() -> Self {
        Self {
            regressor: u32::MAX,
            ..Self::default()
        }
    }

    pub fn is_leaf(&self) -> bool {
        self.left == NodeId::NONE
    }

    /// Returns the mean score over all trainings (E).
    pub fn mean(&self) -> f32 {
        mean(self.score, self.count)
    }

    /// Iterates over labels and their arrivals, in any order.
    pub fn label_arrivals(&self) -> impl Iterator<Item = (u32, f64)> + Clone + '_ {
        let labels = self.labels.iter();
        labels.map(|(label, stat)| (label, stat.arrivals()))
    }

    /// Returns the arrivals of all labels since the node got its place.
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

    /// Adds a training and its score to the statistics of a label, given by its place in the table,
    /// and to those of the node.
    pub fn add_score(&mut self, place: usize, score: f64, importance: f64) {
        let stat = self.labels.at_mut(place);
        stat.score.0 += importance * score;
        stat.count.0 += importance;
        self.score += importance * score;
        self.count += importance;
    }

    /// Returns the child that a score leads to; zero goes right.
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
/// Invariants after each operation: an internal node is the parent of its two children. There is one
/// leaf more than internal nodes. C of an internal node is the smaller of its children's; so C of
/// the root is the size of the smallest leaf, and a descent finds this leaf.
#[derive(Debug, Clone)]
pub struct Arena {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    pub n_internal: u32,
    pub n_swaps: u64,
}

impl Arena {
    /// Returns a single leaf before any example.
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::new()],
            root: NodeId(0),
            n_internal: 0,
            n_swaps: 0,
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.at()]
    }

    /// Returns the smaller C of a node's children.
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

    /// The paper's Swap (Section 3.1, Figure 2): removes the smallest leaf s and its parent from the
    /// tree and makes them the children of leaf `j`, which also gets the parent's regressor. The
    /// sibling of s takes the parent's place.
    ///
    /// The paper leaves some cases open. If the parent is the root, the sibling becomes the root. If
    /// `j` is the sibling or lies below it, it moves up with the sibling's subtree.
    ///
    /// Lemma 3 for examples of any weight: s and its parent have C = `C_r`. With a swap resistance of
    /// at least 4, leaf j has a size above 4 (`C_r` + 1), and each of the two gets at least
    /// floor(C_j / 2) > 2 `C_r` + 1. Leaves shrink only by such splits. So `C_r` + 1 has more than
    /// doubled when the same node is moved again, and at the m-th time j is larger than 2^(m + 1).
    /// No leaf is larger than the total weight W, so m < log2(W) - 1.
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

    /// Makes two empty leaves the children of leaf `j`. They share its size, and predict its majority
    /// label until they have seen an example.
    fn adopt(&mut self, j: NodeId, children: [NodeId; 2], regressor: u32) {
        let node = self.node_mut(j);
        [node.left, node.right] = children;
        node.regressor = regressor;
        // An internal node counts trainings.
        for stat in node.labels.values_mut() {
            stat.before = stat.count.0 as f32;
            stat.count.0 = 0.0;
        }
        node.count = 0.0;
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

    /// Descends from the root to the child with the smaller C, and to the right for equal ones.
    fn smallest_leaf(&self) -> NodeId {
        let mut at = self.root;
        while !self.node(at).is_leaf() {
            let Node { left, right, .. } = *self.node(at);
            let is_left = self.node(left).size < self.node(right).size;
            at = if is_left { left } else { right };
        }
        at
    }

    /// The paper's `UpdateC`: propagates a changed C upwards until a parent has the same value.
    pub fn update_c(&mut self, mut at: NodeId) {
        while at != self.root {
            let size = self.node(at).size;
            at = self.node(at).parent;
            // Sizes are copied upwards and never computed, so equal ones have equal bits.
            if self.node(at).size.to_bits() == size.to_bits() {
                break;
            }
            self.node_mut(at).size = self.smaller_size(self.node(at));
        }
    }

    /// Checks the invariants, and that no two internal nodes share one of the `n_regressors`. With a
    /// damaged file a descent must neither leave the bounds nor run in circles.
    pub fn check(&self, n_regressors: usize) -> Result<(), String> {
        let n = self.nodes.len();
        if self.root.at() >= n || self.node(self.root).parent.is_some() {
            return Err("the root has a parent or is out of range".into());
        }
        if n != 2 * self.n_internal as usize + 1 {
            return Err(format!(
                "{n} nodes do not fit {} internal ones",
                self.n_internal
            ));
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
                // A child has one parent, so no node is reached twice.
                if child.at() >= n || self.node(child).parent != id || node.left == node.right {
                    return Err(format!("node {} is not the parent of its children", id.0));
                }
                next.push(child);
            }
            if node.size.to_bits() != self.smaller_size(node).to_bits() {
                return Err(format!(
                    "node {} has a wrong size of its smallest leaf",
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

    /// Returns the nodes in breadth-first order.
    pub fn topology(&self) -> Topology<NodeId> {
        Topology::new(self.root, |&id| {
            let node = self.node(id);
            [node.left, node.right].map(|child| (!node.is_leaf()).then_some(child))
        })
    }
}
