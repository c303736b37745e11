//! Labels numbered in the order in which they turn up.
//!
//! Inside, labels go by these numbers: the frequent ones, which most histograms
//! and columns know, then have low numbers, and what is kept of them lies
//! side by side.

/// Number of a label that has not turned up.
const NONE: u32 = u32::MAX;

/// Numbers of labels and labels of numbers.
#[derive(Debug, Clone)]
pub struct Numbering {
    number_of: Vec<u32>,
    label_of: Vec<u32>,
}

impl Numbering {
    /// For labels below `n_classes`, none of which has turned up.
    pub fn new(n_classes: usize) -> Self {
        Self {
            number_of: vec![NONE; n_classes],
            label_of: Vec::new(),
        }
    }

    /// The number of `label`, which gets one now if it has none.
    pub fn take(&mut self, label: u32) -> u32 {
        let number = &mut self.number_of[label as usize];
        if *number == NONE {
            *number = self.label_of.len() as u32;
            self.label_of.push(label);
        }
        *number
    }

    /// The label of a number.
    #[inline]
    pub fn label(&self, number: u32) -> u32 {
        self.label_of[number as usize]
    }

    /// The labels in the order of their numbers.
    pub fn labels(&self) -> &[u32] {
        &self.label_of
    }

    /// From the labels in the order of their numbers; none where they are not
    /// different labels below `n_classes`.
    pub fn from_labels(labels: &[u32], n_classes: usize) -> Option<Self> {
        let mut numbering = Self::new(n_classes);
        for (number, &label) in labels.iter().enumerate() {
            if label as usize >= n_classes || numbering.take(label) as usize != number {
                return None;
            }
        }
        Some(numbering)
    }
}
