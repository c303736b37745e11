//! What trees share: node numbers, the routing of rows in prediction, the search for
//! the best labels, the nodes as reports show them.

mod best_first;
mod frozen;
mod learning;
mod top_levels;
mod topology;
mod walk;

pub use best_first::BestFirst;
pub(crate) use best_first::Branch;
pub use frozen::{FrozenRouters, FrozenWalk, Groups, RoutingMemory};
pub use learning::{Junction, LearningRouters, LearningTree, LearningWalk, Numbered, Routers};
pub use top_levels::TopLevels;
pub use topology::Topology;
pub use walk::{NodeView, Walk};

use serde::{Deserialize, Serialize};

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

    /// As an index into the arena.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }

    /// Whether this is a node at all.
    #[inline]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// For numpy: -1 where there is no node.
    pub fn signed(self) -> i32 {
        if self.is_some() {
            self.0 as i32
        } else {
            -1
        }
    }
}

/// A count of a node's label, aligned to 4 bytes: with the label as its key it takes 12 bytes
/// in a [`Table`](crate::linear::Table) and not 16. An example reads some of these at each node.
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
