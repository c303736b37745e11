//! Working memory of the training of nodes, one for each thread.

use super::examples::{Examples, NodeData, NONE};
use crate::alloc::filled;

/// Memory that not every node should allocate anew.
#[derive(Debug)]
pub struct Scratch {
    /// Of the last node that was trained.
    pub data: NodeData,
    /// [`NONE`] for every column or label between uses.
    pub local_ids: Vec<u32>,
}

impl Scratch {
    pub fn new(examples: &Examples) -> Self {
        Self {
            data: NodeData::default(),
            local_ids: filled(NONE, examples.width.max(examples.n_labels)),
        }
    }
}
