//! What trees share: node numbers, the routing of rows in prediction, the search for
//! the best labels, the nodes as reports show them.

mod best_first;
mod frozen;
mod top_levels;
mod topology;

pub use best_first::BestFirst;
pub use frozen::{FrozenRouters, Groups, NodeView, Walk};
pub use top_levels::TopLevels;
pub use topology::Topology;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::file::{Bundle, Record};

/// Number of a node in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

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

impl Record for NodeId {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        u32::put(records.map(|id| &id.0), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        Ok(u32::take(n, name, bundle)?.into_iter().map(Self).collect())
    }
}
