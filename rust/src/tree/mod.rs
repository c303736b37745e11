//! Parts shared by the tree learners: node numbers, routing of rows in prediction, best-first search,
//! and the order of nodes in reports.

mod routers;
mod search;
mod subtrees;
mod upper;

pub use routers::{FrozenRouters, Groups, LearningTree, Routers, RoutingMemory};
pub use search::{BestFirst, Branching, Junction, NO_TERMINAL};
pub use subtrees::Subtrees;

use serde::{Deserialize, Serialize};

use crate::file::Report;
use crate::stored_as;

/// Number of a node in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl Default for NodeId {
    fn default() -> Self {
        Self::NONE
    }
}

impl NodeId {
    /// No node: the parent of a root, the children of a leaf.
    pub const NONE: Self = Self(u32::MAX);

    /// Returns the index in the arena.
    pub fn at(self) -> usize {
        self.0 as usize
    }

    /// Returns false for [`NONE`](Self::NONE).
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Returns the number for numpy, -1 for [`NONE`](Self::NONE).
    pub fn signed(self) -> i32 {
        if self.is_some() {
            self.0 as i32
        } else {
            -1
        }
    }
}

/// The count of a label at a node, aligned to 4 bytes. With its key in a
/// [`Table`](crate::linear::Table) it takes 12 bytes instead of 16, and an example reads some of
/// these at each node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, packed(4))]
pub struct PackedF64(pub f64);

impl From<PackedF64> for f64 {
    fn from(packed: PackedF64) -> Self {
        packed.0
    }
}

stored_as! {
    NodeId as u32: |id| id.0, NodeId;
    PackedF64 as f64: f64::from, PackedF64;
}

/// Moves the rows that go left to the front, keeps the order within each side, and returns the
/// number of rows that go left. `goes_left` is asked in the order of the rows; `right` is a buffer.
///
/// Each row is written to both sides, and one of them advances. Without a branch that could be
/// mispredicted, the loads of the next row start before the side of this one is known.
pub fn partition(
    rows: &mut [u32],
    right: &mut Vec<u32>,
    mut goes_left: impl FnMut(u32) -> bool,
) -> usize {
    right.resize(rows.len().max(right.len()), 0);
    let (mut n_left, mut n_right) = (0, 0);
    for at in 0..rows.len() {
        let row = rows[at];
        let is_left = goes_left(row);
        rows[n_left] = row;
        right[n_right] = row;
        n_left += usize::from(is_left);
        n_right += usize::from(!is_left);
    }
    rows[n_left..].copy_from_slice(&right[..n_right]);
    n_left
}

/// The nodes of a binary tree in breadth-first order: a parent comes before its children, which are
/// next to each other.
#[derive(Debug, Clone)]
pub struct Topology<I> {
    /// The learner's names of the nodes.
    pub nodes: Vec<I>,
    /// Position of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Positions of the children; -1 if there are none.
    pub children: Vec<[i32; 2]>,
}

impl<I> Topology<I> {
    /// Lists `root` and the nodes below it. `children_of` returns the children of a node.
    pub fn new(root: I, mut children_of: impl FnMut(&I) -> [Option<I>; 2]) -> Self {
        let mut topology = Self {
            nodes: vec![root],
            parent: vec![-1],
            children: Vec::new(),
        };
        let mut at = 0;
        while at < topology.nodes.len() {
            let children = children_of(&topology.nodes[at]).map(|child| {
                child.map_or(-1, |child| {
                    topology.nodes.push(child);
                    topology.parent.push(at as i32);
                    topology.nodes.len() as i32 - 1
                })
            });
            topology.children.push(children);
            at += 1;
        }
        topology
    }

    /// Returns the [`tree_report`] of the nodes.
    pub fn report(&self) -> Report {
        tree_report(&self.parent, self.children.as_flattened(), 2)
    }
}

/// Returns a report with the columns `parent`, `children` and `depth` of nodes of which each, the
/// root excepted, comes after its parent. A node has `arity` entries in `children`.
pub fn tree_report(parent: &[i32], children: &[i32], arity: usize) -> Report {
    let mut depth = vec![0u32; parent.len()];
    for at in 1..parent.len() {
        depth[at] = depth[parent[at] as usize] + 1;
    }
    let mut report = Report::new();
    report.column("parent", parent.iter().copied());
    report.matrix("children", children, arity);
    report.column("depth", depth);
    report
}
