//! From rows to a [`Chunk`]: everything about an example that does not depend
//! on the class is worked out here, once, in the order of the examples.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::average::Average;
use super::chunk::{Chunk, Move};
use super::Params;
use crate::data::{Batch, Targets};
use crate::data::{Preparation, RowBuffer, Rows};
use crate::linear::{Loss, Optimizer, Power, Preconditioner};
use crate::Result;

/// Examples of a chunk, at most.
const MOST_EXAMPLES: usize = 512;

/// Products of a chunk's values with classes, at most, so that a chunk is
/// learned in well under a second whatever the number of classes.
const MOST_WORK: usize = 1 << 28;

/// Below this the common factor of all weights is multiplied into them.
const SMALL: f64 = 1e-6;

/// The state of the learner that all classes share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Feed {
    pub preparation: Preparation,
    pub slots: Slots,
    pub preconditioner: Option<Preconditioner>,
    /// Passes done, with fractions.
    pub passes: f64,
    pub average: Average,
    /// By how much all weights have been pulled towards zero (l1).
    pub gravity: f64,
    /// By what factor all weights have shrunk (l2).
    pub shrink: f64,
    /// Scores are cut to this span, that of the labels learned so far ("nag").
    pub span: Option<(f32, f32)>,
    pub negatives: Option<Negatives>,
}

/// What the weights need before a chunk is learned.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    /// Multiply the sums of the average.
    pub drift: Option<f32>,
    /// Multiply all weights and sums but the constant's.
    pub weights: Option<f32>,
}

impl Feed {
    pub fn new(params: &Params, n_classes: usize, rows: &Rows<'_>) -> Result<Self> {
        let preparation = Preparation::new(params.scaling, params.n_bits, rows)?;
        let width = preparation.width();
        let mut slots = Slots::new(width);
        // The constant's row comes first: it is the one that is set up unequal to zero.
        slots.take(width as u32 - 1);
        Ok(Self {
            preparation,
            slots,
            preconditioner: (params.optimizer == Optimizer::Pn)
                .then(|| Preconditioner::new(Power::Quarter, width)),
            passes: 0.0,
            average: Average::new(),
            gravity: 0.0,
            shrink: 1.0,
            span: (params.optimizer == Optimizer::Nag).then_some((0.0, 0.0)),
            negatives: params
                .n_negatives
                .and_then(|n| Negatives::new(n, n_classes, params.seed)),
        })
    }

    /// To be done before [`fill`](Self::fill).
    pub fn upkeep(&mut self) -> Upkeep {
        let weights = (self.shrink < SMALL).then(|| {
            let factor = self.shrink;
            self.gravity *= factor;
            self.shrink = 1.0;
            factor as f32
        });
        Upkeep {
            drift: self.average.rescale(),
            weights,
        }
    }

    /// Fills `chunk` with the first rows of `order`; says how many they are.
    pub fn fill(
        &mut self,
        params: &Params,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        chunk: &mut Chunk,
    ) -> usize {
        let n_classes = match batch.targets {
            Targets::One(labels) => labels.n_classes(),
            Targets::Sets(sets) => sets.n_classes(),
        };
        let most_values = MOST_WORK / n_classes.max(1);
        let averages = params.averages();
        let rate = params.rate();
        let logistic = params.loss.single() == Some(Loss::Logistic);
        chunk.clear();
        chunk.n_classes = n_classes;
        chunk.negative_share = self
            .negatives
            .as_ref()
            .map(|negatives| n_classes as f32 / negatives.n as f32);
        let mut example = RowBuffer::default();
        let (mut steps, mut labels, mut negatives) = (Vec::new(), Vec::new(), Vec::new());
        for &i in order {
            let full = chunk.len() == MOST_EXAMPLES || chunk.n_values() > most_values;
            if full || self.shrink < SMALL {
                break;
            }
            let i = i as usize;
            if clock == 0.0 {
                self.preparation.observe(&batch.rows, i, &mut example);
            }
            self.preparation.read(&batch.rows, i, &mut example);
            let importance = batch.weight(i);
            let ppu = self.directions(&example, importance, &mut steps);
            if self.shrink < 1.0 {
                // Stored weights are those in use divided by `shrink`.
                let grow = self.shrink.recip() as f32;
                let n = steps.len().saturating_sub(1);
                steps[..n].iter_mut().for_each(|d| *d *= grow);
            }
            for column in &mut example.columns {
                *column = self.slots.take(*column);
            }
            match batch.targets {
                Targets::One(one) => {
                    labels.clear();
                    labels.push(one.as_slice()[i]);
                }
                Targets::Sets(sets) => sets.read(i, &mut labels),
            }
            if let Some(sample) = &mut self.negatives {
                sample.draw(&labels, &mut negatives);
            }
            // Rates that fall with the gradients need no clock.
            let eta = if params.is_adaptive() {
                rate
            } else {
                rate / (1.0 + self.passes).sqrt()
            };
            let to = Move {
                eta: eta as f32,
                rate: eta as f32 * importance,
                ppu,
                importance,
                total: self.average.total() as f32,
                span: self.span,
                gravity: self.gravity as f32,
                shrink: self.shrink as f32,
            };
            chunk.push(&example, &steps, &labels, &negatives, to);
            self.advance(params, eta * f64::from(importance), clock, averages);
            if let Some((low, high)) = &mut self.span {
                let (least, most) = match (logistic, labels.len()) {
                    (true, _) => (-50.0, 50.0),
                    (false, 0) => (-1.0, 0.0),
                    (false, n) if n == n_classes => (0.0, 1.0),
                    (false, _) => (-1.0, 1.0),
                };
                (*low, *high) = (low.min(least), high.max(most));
            }
        }
        chunk.len()
    }

    /// Replaces `steps` by the direction of a step; returns its product with
    /// the example.
    fn directions(&mut self, example: &RowBuffer, importance: f32, steps: &mut Vec<f32>) -> f32 {
        if let Some(preconditioner) = &mut self.preconditioner {
            preconditioner.direction(example, importance, steps);
            return 1.0;
        }
        steps.clear();
        steps.extend_from_slice(&example.values);
        steps.iter().map(|x| x * x).sum()
    }

    fn advance(&mut self, params: &Params, step: f64, clock: f64, averages: bool) {
        self.passes += clock;
        if averages {
            self.average.advance();
        }
        if params.l2 > 0.0 {
            // e^-a where 1 - a could turn the sign.
            self.shrink *= (-params.l2 * step).exp().max(SMALL);
        }
        if params.l1 > 0.0 {
            self.gravity += params.l1 * step / self.shrink;
        }
    }

    /// Turns the columns of a row to be predicted into slots and leaves out
    /// those that were never learned.
    pub fn read(&self, rows: &Rows<'_>, i: usize, example: &mut RowBuffer) {
        self.preparation.read(rows, i, example);
        let mut kept = 0;
        for at in 0..example.columns.len() {
            if let Some(slot) = self.slots.find(example.columns[at]) {
                example.columns[kept] = slot;
                example.values[kept] = example.values[at];
                kept += 1;
            }
        }
        example.columns.truncate(kept);
        example.values.truncate(kept);
    }
}

/// The row of weights of each column, given out as columns turn up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slots {
    /// Slot + 1 per column, 0 for none: pages of zeros cost nothing.
    of: Vec<u32>,
    columns: Vec<u32>,
}

impl Slots {
    pub fn new(width: usize) -> Self {
        Self {
            of: vec![0; width],
            columns: Vec::new(),
        }
    }

    /// Number of slots given out.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The column of each slot.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The slot of `column`, a new one if need be.
    #[inline]
    pub fn take(&mut self, column: u32) -> u32 {
        let slot = &mut self.of[column as usize];
        if *slot == 0 {
            self.columns.push(column);
            *slot = self.columns.len() as u32;
        }
        *slot - 1
    }

    /// The slot of `column`, if it has one.
    #[inline]
    pub fn find(&self, column: u32) -> Option<u32> {
        self.of[column as usize].checked_sub(1)
    }
}

/// Draws wrong classes as Vowpal Wabbit's `--oaa_subsample` does: round and
/// round through all classes in one random order, which is as good as drawing
/// without replacement, and even over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Negatives {
    pub n: u32,
    order: Vec<u32>,
    pub at: usize,
}

impl Negatives {
    /// None where every wrong class is wanted anyway.
    pub fn new(n: u32, n_classes: usize, seed: u64) -> Option<Self> {
        if n as usize >= n_classes {
            return None;
        }
        let mut order: Vec<u32> = (0..n_classes as u32).collect();
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        Some(Self { n, order, at: 0 })
    }

    fn draw(&mut self, labels: &[u32], into: &mut Vec<u32>) {
        into.clear();
        let wanted = (self.n as usize).min(self.order.len() - labels.len());
        while into.len() < wanted {
            let class = self.order[self.at];
            self.at = (self.at + 1) % self.order.len();
            if labels.binary_search(&class).is_err() {
                into.push(class);
            }
        }
    }
}
