//! What the online trees share: node numbers, hash tables of a node's own
//! labels or weights, the regressors along a path, and the way down in
//! prediction.

mod block;
mod blocks;
mod crown;
mod path;
mod persist;
mod rate;
mod routing;
mod table;
mod weights;

pub use block::Block;
pub(crate) use blocks::{block_rows, in_blocks, row_values};
pub use crown::Crown;
pub use path::{padded, PathExample, Regressors, Scores};
pub(crate) use persist::{put_weights, take_weights};
pub use rate::Rate;
pub use routing::{FrozenRouters, Groups, Sign, Walk};
pub use table::{lookup, Slot, Table};
pub use weights::Weights;

/// Number of a node in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
