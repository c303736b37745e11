//! A chunk of examples, prepared once and then learned by one tile of classes
//! after the other.

use crate::data::{Ragged, RaggedRows, RowBuffer};
use crate::linear::{Span, StepLimit};

/// What a step depends on beside features and classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepParams {
    /// Learning rate.
    pub eta: f32,
    /// Importance.
    pub importance: f32,
    /// Change of a score by a step of 1 in the chunk's direction.
    pub ppu: f32,
    /// How far a step in the chunk's direction may go.
    pub limit: StepLimit,
    /// With which factor a step is added to the average sums.
    pub average_factor: f32,
    /// What scores are clamped to, if anything ("nag").
    pub span: Option<Span>,
    /// By how much all weights are to be moved towards zero (l1).
    pub l1_shift: f32,
    /// By what factor all weights are to be shrunk (l2).
    pub shrink: f32,
}

impl StepParams {
    /// Learning rate times importance.
    #[inline]
    pub fn rate(&self) -> f32 {
        self.eta * self.importance
    }
}

/// An example of a [`Chunk`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<'a> {
    /// Feature slots, the constant's last.
    pub slots: &'a [u32],
    /// The features' values.
    pub values: &'a [f32],
    /// By how much the features' weights change for a step of 1 ("pn", "sgd").
    pub direction: &'a [f32],
    /// Its classes, increasing.
    pub labels: &'a [u32],
    /// The classes to learn as not being its own, and their importance relative to the
    /// example's; none: all others.
    pub negatives: Option<(&'a [u32], f32)>,
    /// The rest.
    pub params: StepParams,
}

/// Examples one behind the other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Slots and values.
    pub rows: RaggedRows,
    direction: Ragged<f32>,
    pub labels: Ragged<u32>,
    negatives: Ragged<u32>,
    pub params: Vec<StepParams>,
    /// Number of classes of the model.
    pub n_classes: usize,
    /// Relative importance of a sampled negative; none: all negatives are learned.
    negative_weight: Option<f32>,
}

impl Chunk {
    /// No example yet.
    pub fn new(n_classes: usize, negative_weight: Option<f32>) -> Self {
        Self {
            n_classes,
            negative_weight,
            ..Self::default()
        }
    }

    /// Removes all examples.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.direction.clear();
        self.labels.clear();
        self.negatives.clear();
        self.params.clear();
    }

    /// Adds an example whose columns have been turned into slots.
    pub fn push(
        &mut self,
        row: &RowBuffer,
        direction: &[f32],
        labels: &[u32],
        negatives: &[u32],
        params: StepParams,
    ) {
        self.rows.push(row.columns.iter().copied(), &row.values);
        self.direction.push(direction.iter().copied());
        self.labels.push(labels.iter().copied());
        self.negatives.push(negatives.iter().copied());
        self.params.push(params);
    }

    /// Example `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Example<'_> {
        let (slots, values) = self.rows.row(i);
        Example {
            slots,
            values,
            direction: self.direction.get(i),
            labels: self.labels.get(i),
            negatives: self
                .negative_weight
                .map(|weight| (self.negatives.get(i), weight)),
            params: self.params[i],
        }
    }
}
