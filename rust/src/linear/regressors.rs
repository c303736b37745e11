//! Many regressors of which an example needs a few: those of the nodes on its path.
//!
//! Each regressor's weights lie together, so that a node costs a stretch of
//! memory and not a cache miss per feature. Cost per example and regressor:
//! O(non-zeros), or O(columns) in vector registers where most are filled.
//!
//! A frozen tree defines the predictions, down to the order in which products are added up;
//! [`Regressors::frozen_score`] follows it on the weights as they lie in a tree that learns on.

use super::nag::{Magnitude, Target};
use super::pn::{bounded_score, Scores};
use super::{
    nag, padded, AlignedRow, Block, Loss, NagSlot, NagTotals, PathExample, Power, Preconditioner,
    Span, Table, Weights,
};
use crate::error::Result;
use crate::file::{
    check_column, is_count, is_sum, put_lengths, take_lengths, Bundle, Columns, Persist, Record,
    LARGEST,
};
use crate::{choices, persist, record};

/// The weights of a regressor of "nag", without the sums beside them.
fn plain(weights: &Weights<NagSlot>) -> Weights<f32> {
    match weights {
        Weights::Table(table) => {
            Weights::Table(table.iter().map(|(key, slot)| (key, slot.w)).collect())
        }
        Weights::Row(row) => {
            let mut plain = AlignedRow::new(row.len());
            for (plain, slot) in plain.iter_mut().zip(row.iter()) {
                *plain = slot.w;
            }
            Weights::Row(plain)
        }
    }
}

/// A router's step has fallen to 1/sqrt(2) after so many trainings, and so many
/// more per effective dimension of the example: rare features are still to be
/// learned when frequent ones have long settled. Found on held-out parts of the
/// training data; a factor of 2 either way changes little.
const AGE_UNIT: f32 = 4.0;
/// See [`AGE_UNIT`].
const AGE_UNIT_PER_DIMENSION: f32 = 0.03;

/// Step sizes of routers: after n trainings rate / sqrt(1 + decay n / (4 + 0.03 d)) for
/// an example of effective dimension d.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    rate: f32,
    decay: f32,
}

impl Rate {
    /// From the options of the same names.
    pub fn new(learning_rate: f64, decay: f64) -> Self {
        Self {
            rate: learning_rate.min(LARGEST.into()) as f32,
            decay: decay.min(LARGEST.into()) as f32,
        }
    }

    /// The step, times `importance`, of a router that was trained on `n` examples.
    #[inline]
    pub fn step(self, importance: f32, n: f64, example: &PathExample) -> f32 {
        let age = n as f32 / (AGE_UNIT + AGE_UNIT_PER_DIMENSION * example.dimension());
        (importance * self.rate).min(f32::MAX) / (1.0 + self.decay * age).sqrt()
    }
}

choices! {
    /// In which direction a regressor steps.
    pub enum Optimizer {
        /// Preconditioned, normalised: [`Preconditioner`]. No state per weight.
        Pn = "pn",
        /// Normalised adaptive gradient: Vowpal Wabbit's default.
        Nag = "nag",
    }
}

/// Regressors by number, all of one optimiser.
#[derive(Debug, Clone)]
pub struct Regressors {
    /// Columns of an example, padded.
    width: usize,
    loss: Loss,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pn(Preconditioner, Vec<Weights<f32>>),
    Nag(Span, Vec<(NagTotals, Weights<NagSlot>)>),
    /// Of any optimiser, without its state: for prediction only.
    Plain(Span, Vec<Weights<f32>>),
}

impl Regressors {
    /// None yet; for examples of `width` columns.
    pub fn new(optimizer: Optimizer, loss: Loss, width: usize) -> Self {
        let kind = match optimizer {
            Optimizer::Pn => Kind::Pn(Preconditioner::new(Power::Half, padded(width)), Vec::new()),
            Optimizer::Nag => Kind::Nag(Span::default(), Vec::new()),
        };
        Self {
            width: padded(width),
            loss,
            kind,
        }
    }

    /// Padded number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of regressors.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows.len(),
            Kind::Nag(_, rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a regressor of zero weights and returns its number.
    pub fn push(&mut self) -> u32 {
        let number = self.len() as u32;
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows.push(Weights::default()),
            Kind::Nag(_, rows) => rows.push(Default::default()),
        }
        number
    }

    /// To be called once per example that will be learned from, before any
    /// [`Self::learn`]: decides on its form and computes its step direction.
    pub fn prepare(&mut self, example: &mut PathExample, importance: f32) {
        example.settle(self.width);
        example.dimension = example.row.columns.len() as f32;
        if let Kind::Pn(preconditioner, _) = &mut self.kind {
            example.dimension =
                preconditioner.direction(&example.row, importance, &mut example.direction);
            example.settle_direction();
        }
    }

    /// Score of regressor `number`, not clamped.
    #[inline]
    pub fn score(&self, number: u32, example: &PathExample) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) => bounded_score(example.dot(&rows[number])),
            Kind::Nag(_, rows) => nag::product(&rows[number].1, &example.row),
            // Only scorers that learned with "nag" are asked without freezing.
            Kind::Plain(_, rows) => nag::product(&rows[number], &example.row),
        }
    }

    /// Regressor `number` learns target `y` with a step of `a` (learning rate
    /// times importance); `importance` is what adaptive sums count.
    ///
    /// `ahead` gets the score after learning as soon as it is known and may return the
    /// number of the next regressor, whose weights are then prefetched while
    /// these are written.
    #[inline]
    pub fn learn(
        &mut self,
        number: u32,
        example: &PathExample,
        y: f32,
        a: f32,
        importance: f32,
        ahead: impl FnOnce(f32) -> Option<u32>,
    ) -> Scores {
        let number = number as usize;
        match &mut self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => {
                let before = bounded_score(example.dot(&rows[number]));
                // The direction is normalised: a step moves the score by its own length.
                let step = example.limit.shorten(self.loss.step(y, before, a, 1.0));
                let after = before + step;
                if let Some(next) = ahead(after) {
                    rows[next as usize].prefetch(&example.row.columns);
                }
                if step != 0.0 {
                    example.add(step, &mut rows[number], self.width);
                }
                Scores {
                    before,
                    after,
                    raw: after,
                }
            }
            Kind::Nag(span, rows) => {
                let target = Target { y, a, importance };
                let (regressor, row) = (&mut rows[number], &example.row);
                nag::learn(regressor, span, self.loss, row, target, self.width)
            }
        }
    }

    /// The weights of regressor `number` alone, as prediction needs them.
    pub fn plain(&self, number: u32) -> Weights<f32> {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => rows[number].clone(),
            Kind::Nag(_, rows) => plain(&rows[number].1),
        }
    }

    /// The score of regressor `number` for row `i` of `block`, to the bit that of its
    /// [`plain`](Self::plain) weights in a frozen tree.
    #[inline]
    pub fn frozen_score(&self, number: u32, block: &Block, i: usize) -> f32 {
        let number = number as usize;
        match &self.kind {
            Kind::Pn(_, rows) | Kind::Plain(_, rows) => block.dot(i, &rows[number]),
            Kind::Nag(_, rows) => block.dot(i, &plain(&rows[number].1)),
        }
    }

    /// The same for prediction only: without what an optimiser keeps.
    #[must_use]
    pub fn for_prediction(&self) -> Self {
        let weights = (0..self.len() as u32).map(|number| self.plain(number));
        Self {
            width: self.width,
            loss: self.loss,
            kind: Kind::Plain(self.span(), weights.collect()),
        }
    }

    /// Widens the span that predictions are clamped to ("nag") to contain `other`.
    pub fn widen(&mut self, other: Span) {
        if let Kind::Nag(span, _) = &mut self.kind {
            span.widen(other.low);
            span.widen(other.high);
        }
    }

    /// What predictions are clamped to before their sign is taken.
    pub fn span(&self) -> Span {
        match &self.kind {
            Kind::Nag(span, _) | Kind::Plain(span, _) => *span,
            Kind::Pn(..) => Span::UNBOUNDED,
        }
    }
}

/// Whether regressors are stored without what an optimiser keeps.
const FOR_PREDICTION: &str = "for_prediction";

record!(NagSlot {
    w,
    g: is_sum,
    s: is_size
});
record!(NagTotals {
    t: is_count,
    n: is_count
});

/// Whether it is the size of a feature, 0 before it was seen.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_size(size: &f32) -> bool {
    *size == 0.0 || Magnitude::RANGE.contains(size)
}

/// The keys of each table in order, end to end, and the values likewise.
impl<S: Record + Copy + Default> Record for Table<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
        put_lengths(records.clone().map(Table::len), name, bundle);
        let mut entries: Vec<(u32, &S)> = Vec::new();
        for table in records {
            let from = entries.len();
            entries.extend(table.iter());
            entries[from..].sort_unstable_by_key(|&(key, _)| key);
        }
        let keys = entries.iter().map(|&(key, _)| key).collect::<Vec<u32>>();
        bundle.put(&format!("{name}.key"), keys);
        S::put(entries.iter().map(|&(_, value)| value), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let n_entries = lengths.iter().sum();
        let name_of_keys = format!("{name}.key");
        let keys = u32::take(Some(n_entries), &name_of_keys, bundle)?;
        check_column(&keys, |&key| Self::is_key(key), &name_of_keys, bundle)?;
        let values = S::take(Some(n_entries), name, bundle)?;
        let mut entries = keys.into_iter().zip(values);
        Ok(lengths
            .into_iter()
            .map(|n| Self::from_iter(entries.by_ref().take(n).collect::<Vec<_>>()))
            .collect())
    }
}

/// Rows and tables as they are, apart from one another.
impl<S: Record + Copy + Default> Record for Weights<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
        let is_row = records
            .clone()
            .map(|weights| matches!(weights, Self::Row(_)));
        let is_row: Vec<bool> = is_row.collect();
        bool::put(is_row.iter(), &format!("{name}.is_row"), bundle);
        let rows = records.clone().filter_map(|weights| match weights {
            Self::Row(row) => Some(row),
            Self::Table(_) => None,
        });
        AlignedRow::put(rows, &format!("{name}.row"), bundle);
        let tables = records.filter_map(|weights| match weights {
            Self::Row(_) => None,
            Self::Table(table) => Some(table),
        });
        Table::put(tables, &format!("{name}.table"), bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let is_row = bool::take(n, &format!("{name}.is_row"), bundle)?;
        let n_rows = is_row.iter().filter(|&&is_row| is_row).count();
        let n_tables = is_row.len() - n_rows;
        let mut rows = AlignedRow::take(Some(n_rows), &format!("{name}.row"), bundle)?.into_iter();
        let tables = Table::take(Some(n_tables), &format!("{name}.table"), bundle)?;
        let mut tables = tables.into_iter();
        Ok(is_row
            .into_iter()
            .map_while(|is_row| {
                let row = is_row.then(|| rows.next().map(Self::Row));
                row.unwrap_or_else(|| tables.next().map(Self::Table))
            })
            .collect())
    }
}

impl<S: Copy + Default> Weights<S> {
    /// Whether there is nothing beyond `width` columns, and a row has them all.
    pub(crate) fn fits(&self, width: usize) -> bool {
        match self {
            Self::Row(row) => row.len() == width,
            Self::Table(table) => table.iter().all(|(column, _)| (column as usize) < width),
        }
    }
}

persist!(Preconditioner {
    Meta total;
    Columns squares;
} check check_sums);

impl Persist for Regressors {
    fn put(&self, bundle: &mut Bundle) {
        let name = "weights";
        bundle.put_meta(FOR_PREDICTION, &matches!(self.kind, Kind::Plain(..)));
        match &self.kind {
            Kind::Pn(preconditioner, weights) => {
                preconditioner.put(bundle);
                Columns::put(weights, name, bundle);
            }
            Kind::Plain(span, weights) => {
                bundle.put("span", vec![span.low, span.high]);
                Columns::put(weights, name, bundle);
            }
            Kind::Nag(span, all) => {
                bundle.put("span", vec![span.low, span.high]);
                NagTotals::put(all.iter().map(|(totals, _)| totals), "totals", bundle);
                Weights::put(all.iter().map(|(_, weights)| weights), name, bundle);
            }
        }
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        let width = self.width;
        if bundle.take_meta::<bool>(FOR_PREDICTION)? != matches!(self.kind, Kind::Plain(..)) {
            return Err(bundle.damaged("regressors differ from the model in \"for_prediction\""));
        }
        let fits = match &mut self.kind {
            Kind::Pn(preconditioner, all) => {
                preconditioner.fill(bundle)?;
                preconditioner.width() == width && fill_weights(all, width, bundle)?
            }
            Kind::Plain(span, all) => {
                *span = take_span(bundle)?;
                fill_weights(all, width, bundle)? && (span.is_sound() || *span == Span::UNBOUNDED)
            }
            Kind::Nag(span, all) => {
                *span = take_span(bundle)?;
                let mut found = Vec::new();
                let fits = fill_weights(&mut found, width, bundle)?;
                let totals = NagTotals::take(Some(found.len()), "totals", bundle)?;
                *all = totals.into_iter().zip(found).collect();
                fits && span.is_sound()
            }
        };
        if fits {
            return Ok(());
        }
        Err(bundle.damaged(format_args!("the regressors do not fit {width} columns")))
    }
}

fn take_span(bundle: &mut Bundle) -> Result<Span> {
    match bundle.take_any("span")?[..] {
        [low, high] => Ok(Span { low, high }),
        _ => Err(bundle.damaged("\"span\" has not two ends")),
    }
}

/// Returns whether all of the weights are within `width` columns.
fn fill_weights<S: Record + Copy + Default>(
    into: &mut Vec<Weights<S>>,
    width: usize,
    bundle: &mut Bundle,
) -> Result<bool> {
    Columns::fill(into, "weights", bundle)?;
    Ok(into.iter().all(|weights| weights.fits(width)))
}
