//! Working memory of the training of nodes, one for each thread.

use std::sync::{Mutex, PoisonError};

use super::examples::{Examples, NodeData, NONE};

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
            local_ids: vec![NONE; examples.width.max(examples.n_labels)],
        }
    }
}

/// Those that no thread is using.
#[derive(Debug, Default)]
pub struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// What `work` makes with a scratch; a new one where all are in use.
    pub fn with<T>(
        &self,
        new: impl FnOnce() -> Scratch,
        work: impl FnOnce(&mut Scratch) -> T,
    ) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = free().pop();
        let mut scratch = taken.unwrap_or_else(new);
        let made = work(&mut scratch);
        free().push(scratch);
        made
    }
}
