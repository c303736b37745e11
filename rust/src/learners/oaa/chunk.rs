//! A chunk of examples, made ready once and then learned tile by tile.

use crate::data::RowBuffer;

/// What one step depends on beside the example and the class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// Learning rate.
    pub eta: f32,
    /// Learning rate times importance.
    pub rate: f32,
    /// Product of the step direction with the example.
    pub ppu: f32,
    /// Importance.
    pub importance: f32,
    /// With what a step enters the sums of the average.
    pub total: f32,
    /// Scores are cut to this span, if any ("nag").
    pub span: Option<(f32, f32)>,
    /// By how much all weights have been pulled towards zero (l1).
    pub gravity: f32,
    /// By what factor all weights have shrunk (l2).
    pub shrink: f32,
}

/// An example of a [`Chunk`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<'a> {
    /// Feature slots, the constant's last.
    pub slots: &'a [u32],
    /// The features' values.
    pub values: &'a [f32],
    /// The features' steps for a step of 1.
    pub steps: &'a [f32],
    /// Its classes, increasing.
    pub labels: &'a [u32],
    /// The classes to learn as not being its own; none: all others.
    pub negatives: Option<&'a [u32]>,
    /// What a negative counts as much as.
    pub negative_share: f32,
    /// The rest.
    pub to: Move,
}

/// Examples one behind the other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    ends: Vec<usize>,
    slots: Vec<u32>,
    values: Vec<f32>,
    steps: Vec<f32>,
    label_ends: Vec<usize>,
    labels: Vec<u32>,
    negative_ends: Vec<usize>,
    negatives: Vec<u32>,
    moves: Vec<Move>,
    /// Number of classes.
    pub n_classes: usize,
    /// The weight of a sampled negative; none: all negatives are learned.
    pub negative_share: Option<f32>,
}

impl Chunk {
    /// Forgets all examples.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.slots.clear();
        self.values.clear();
        self.steps.clear();
        self.label_ends.clear();
        self.labels.clear();
        self.negative_ends.clear();
        self.negatives.clear();
        self.moves.clear();
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Number of values of all examples.
    pub fn n_values(&self) -> usize {
        self.values.len()
    }

    /// Adds an example whose columns have been turned into slots.
    pub fn push(
        &mut self,
        example: &RowBuffer,
        steps: &[f32],
        labels: &[u32],
        negatives: &[u32],
        to: Move,
    ) {
        self.slots.extend_from_slice(&example.columns);
        self.values.extend_from_slice(&example.values);
        self.steps.extend_from_slice(steps);
        self.ends.push(self.slots.len());
        self.labels.extend_from_slice(labels);
        self.label_ends.push(self.labels.len());
        self.negatives.extend_from_slice(negatives);
        self.negative_ends.push(self.negatives.len());
        self.moves.push(to);
    }

    /// Example `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Example<'_> {
        let entries = span(&self.ends, i);
        Example {
            slots: &self.slots[entries.clone()],
            values: &self.values[entries.clone()],
            steps: &self.steps[entries],
            labels: self.labels(i),
            negatives: self
                .negative_share
                .map(|_| &self.negatives[span(&self.negative_ends, i)]),
            negative_share: self.negative_share.unwrap_or(1.0),
            to: self.moves[i],
        }
    }

    /// The classes of example `i`, increasing.
    #[inline]
    pub fn labels(&self, i: usize) -> &[u32] {
        &self.labels[span(&self.label_ends, i)]
    }

    /// Importance of example `i`.
    pub fn importance(&self, i: usize) -> f32 {
        self.moves[i].importance
    }
}

#[inline]
fn span(ends: &[usize], i: usize) -> std::ops::Range<usize> {
    let from = if i == 0 { 0 } else { ends[i - 1] };
    from..ends[i]
}
