//! Labels as the tree and the scorers know them: by the order of their first example.
//!
//! Frequent labels turn up early and so have low ids. Most histograms and columns
//! know them, and what is kept of them lies side by side.

use crate::alloc::{filled, push, resize, zeros};
use crate::error::{Error, Result};
use crate::linear::Table;
use crate::{persist, stored_as};

/// A label's id inside the tree, not its class number: [`LabelIndex`] converts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct LocalId(pub u32);

impl LocalId {
    /// Of a class without an example.
    pub const NONE: Self = Self(u32::MAX);

    /// As an index into arrays of one element per label.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// Local ids of class labels, and class labels of local ids.
#[derive(Debug, Clone)]
pub struct LabelIndex {
    id_of: Vec<LocalId>,
    label_of: Vec<u32>,
}

impl LabelIndex {
    /// For labels below `n_classes`, none of which has an id yet.
    pub fn new(n_classes: usize) -> Self {
        Self {
            id_of: filled(LocalId::NONE, n_classes),
            label_of: Vec::new(),
        }
    }

    /// Adds labels without an id, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        resize(&mut self.id_of, n_classes, LocalId::NONE);
    }

    /// The id of `label`; a new label gets the next one.
    pub fn insert(&mut self, label: u32) -> LocalId {
        let id = &mut self.id_of[label as usize];
        if *id == LocalId::NONE {
            *id = LocalId(self.label_of.len() as u32);
            push(&mut self.label_of, label);
        }
        *id
    }

    #[inline]
    pub fn label(&self, id: LocalId) -> u32 {
        self.label_of[id.at()]
    }

    /// The class labels in the order of their ids.
    pub fn labels(&self) -> &[u32] {
        &self.label_of
    }

    /// Number of classes, with an example or without.
    pub fn n_classes(&self) -> usize {
        self.id_of.len()
    }

    /// Restores the ids of the labels, none of which has one yet.
    fn restore(&mut self) -> Result<()> {
        for (id, &label) in (0..).zip(&self.label_of) {
            match self.id_of.get_mut(label as usize) {
                Some(free) if *free == LocalId::NONE => *free = LocalId(id),
                _ => return Err(Error::data("the labels of the local ids")),
            }
        }
        Ok(())
    }
}

stored_as! {
    LocalId as u32: |id| id.0, LocalId;
}

persist!(LabelIndex {
    Columns labels = label_of;
} check restore);

/// A set of labels that is emptied at every example, at no cost.
#[derive(Debug, Clone, Default)]
pub struct LabelSet {
    /// The round in which each label was last a member.
    round_of: Vec<u32>,
    round: u32,
}

impl LabelSet {
    pub fn new(n_labels: usize) -> Self {
        Self {
            round_of: zeros(n_labels),
            round: 0,
        }
    }

    /// Makes room for `n_labels`.
    pub fn grow(&mut self, n_labels: usize) {
        resize(&mut self.round_of, n_labels, 0);
    }
}

/// A set of labels, over and over again.
pub trait SeenLabels {
    /// Replaces its members by `labels`.
    fn reset(&mut self, labels: &[LocalId]);

    /// Adds a label. Returns whether it is new.
    fn insert(&mut self, label: LocalId) -> bool;
}

impl SeenLabels for LabelSet {
    fn reset(&mut self, labels: &[LocalId]) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.round_of.fill(0);
            self.round = 1;
        }
        for &label in labels {
            self.round_of[label.at()] = self.round;
        }
    }

    fn insert(&mut self, label: LocalId) -> bool {
        std::mem::replace(&mut self.round_of[label.at()], self.round) != self.round
    }
}

/// Where a set over all labels would be too large to make.
impl SeenLabels for Table<()> {
    fn reset(&mut self, labels: &[LocalId]) {
        self.clear();
        for label in labels {
            self.entry(label.0);
        }
    }

    fn insert(&mut self, label: LocalId) -> bool {
        let n = self.len();
        self.entry(label.0);
        self.len() > n
    }
}
