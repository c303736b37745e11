//! The structure of the tree: splits, the smallest leaf, and the paper's subroutines Swap and
//! `UpdateC`. Each costs O(depth).
//!
//! Invariants, after every operation: an internal node has two children that name it as their
//! parent; there is one leaf more than internal nodes; C of an internal node is the smaller of
//! its children's, so that C of the root is the size of the smallest leaf and a descent finds it.

use super::node::Node;
use crate::alloc::extend;
use crate::tree::{NodeId, Topology};

/// All nodes of a tree.
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
        extend(&mut self.nodes, [Node::new(), Node::new()]);
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

    /// Whether the invariants hold; if not, which does not. Also what keeps a made-up model file
    /// from sending a descent out of bounds or round in circles.
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

    pub fn topology(&self) -> Topology<NodeId> {
        Topology::new(self.root, 2, |&id| {
            let node = self.node(id);
            let children = (!node.is_leaf()).then_some([node.left, node.right]);
            children.into_iter().flatten()
        })
    }
}
