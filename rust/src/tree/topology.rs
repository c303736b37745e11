//! The nodes of a tree as reports show them.

use crate::alloc::{push, resize};
use crate::file::Report;

/// Nodes in breadth-first order from the root: every parent stands before its children, and
/// the children of a node stand side by side.
#[derive(Debug, Clone)]
pub struct Topology<I> {
    /// The nodes by whatever their learner calls them.
    pub nodes: Vec<I>,
    /// The place of the node above, -1 at the root.
    pub parent: Vec<i32>,
    /// Places of the children, `arity` per node, -1 where there are none.
    pub children: Vec<i32>,
    /// Steps from the root.
    pub depth: Vec<u32>,
    arity: usize,
}

impl<I> Topology<I> {
    /// Of the nodes below `root`; `children_of` says which children a node has, none or at most
    /// `arity` of them.
    pub fn new<C: IntoIterator<Item = I>>(
        root: I,
        arity: usize,
        mut children_of: impl FnMut(&I) -> C,
    ) -> Self {
        Self::with_gaps(root, arity, |node| children_of(node).into_iter().map(Some))
    }

    /// As [`new`](Self::new), where a child may be missing before another.
    pub fn with_gaps<C: IntoIterator<Item = Option<I>>>(
        root: I,
        arity: usize,
        mut children_of: impl FnMut(&I) -> C,
    ) -> Self {
        let mut topology = Self {
            nodes: vec![root],
            parent: vec![-1],
            children: Vec::new(),
            depth: vec![0],
            arity,
        };
        let mut at = 0;
        while at < topology.nodes.len() {
            resize(&mut topology.children, (at + 1) * arity, -1);
            for (child, node) in children_of(&topology.nodes[at]).into_iter().enumerate() {
                let Some(node) = node else {
                    continue;
                };
                topology.children[at * arity + child] = topology.nodes.len() as i32;
                push(&mut topology.nodes, node);
                push(&mut topology.parent, at as i32);
                let depth = topology.depth[at] + 1;
                push(&mut topology.depth, depth);
            }
            at += 1;
        }
        topology
    }

    /// The places of the children of the node at `place`; none at a leaf.
    pub fn children_of(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let children = &self.children[place * self.arity..(place + 1) * self.arity];
        children
            .iter()
            .filter(|&&child| child >= 0)
            .map(|&child| child as usize)
    }

    /// A report with the columns `parent`, `children` and `depth`.
    pub fn report(&self) -> Report {
        let mut report = Report::new();
        report.column("parent", self.parent.iter().copied());
        report.matrix("children", &self.children[..], self.arity);
        report.column("depth", self.depth.iter().copied());
        report
    }
}
