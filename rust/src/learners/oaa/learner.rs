//! The learner: chunks of examples, tiles of classes.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::chunk::Chunk;
use super::preparer::{read_labels, ExamplePreparer, Rescaling};
use super::sampling::NegativeSampler;
use super::scoring::BestClass;
use super::tile::Tile;
use super::{adaptive, shared_direction, softmax, Params};
use crate::alloc::can_alloc;
use crate::classifier::checks;
use crate::classifier::Mistakes;
use crate::classifier::Online;
use crate::control::Control;
use crate::data::Rows;
use crate::data::{Batch, Targets};
use crate::error::{Error, Result};
use crate::threads::with_threads;

/// A one-against-all classifier that learns online.
///
/// Right where K times the number of non-zeros of an example is affordable;
/// its accuracy is what trees of logarithmic cost are measured against.
///
/// A class of which no example has been learned has no score and is never
/// predicted (except with the optimizer "nag", which follows Vowpal Wabbit).
///
/// ```
/// use xmtree::data::{Batch, Labels, Rows, Targets, Values};
/// use xmtree::learners::oaa::{Oaa, Params};
/// use xmtree::Control;
///
/// let x = [1.0, 0.0, 0.0, 1.0, 0.9, 0.1, 0.1, 0.9];
/// let rows = Rows::dense(Values::F64(&x), 4, 2)?;
/// let labels = Labels::new(&[0, 1, 0, 1], 2)?;
/// let mut oaa = Oaa::new(Params::default(), 2, false)?;
/// let control = Control::new(0);
/// oaa.fit(&Batch::new(rows, Targets::One(labels), None)?, 1, &control)?;
/// let (labels, _scores) = oaa.predict_topk(&rows, 1, 1, &control)?;
/// assert_eq!(labels, [0, 1, 0, 1]);
/// # Ok::<(), xmtree::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Oaa {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    pub(super) multilabel: bool,
    pub(super) state: Option<State>,
    pub(super) mistakes: Mistakes,
    /// Threads of the call at work; the model does not depend on it.
    n_threads: usize,
}

/// What there is once examples have been seen.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub preparer: ExamplePreparer,
    pub tiles: Vec<Tile>,
    /// The weights to predict with, tile by tile, where they are not those of the
    /// tiles: computed by the first prediction, dropped when learning goes on.
    pub prediction_weights: OnceLock<Vec<Vec<f32>>>,
}

impl Oaa {
    /// A learner of `n_classes` classes that has seen nothing.
    pub fn new(params: Params, n_classes: usize, multilabel: bool) -> Result<Self> {
        params.check()?;
        checks::check_n_classes(n_classes)?;
        Ok(Self {
            params,
            n_classes,
            multilabel,
            state: None,
            mistakes: Mistakes::default(),
            n_threads: 1,
        })
    }

    /// Starts anew and learns `batch` in the passes asked for. Stopped from
    /// outside it keeps what it has learned; on any other error it stays as
    /// it was.
    pub fn fit(&mut self, batch: &Batch<'_>, n_threads: usize, control: &Control) -> Result<()> {
        self.check(batch)?;
        let mut fresh = Self::new(self.params.clone(), self.n_classes, self.multilabel)?;
        fresh.n_threads = n_threads;
        let mut state = fresh.first_state(&batch.rows)?;
        // A row of weight 0 is as good as not there.
        let preparation = &mut state.preparer.preparation;
        preparation.observe_all(&batch.rows, &batch.present(), control)?;
        fresh.state = Some(state);
        control.set_total(u64::from(self.params.n_passes) * batch.rows.n_rows() as u64);
        let outcome = self.params.schedule().fit(&mut fresh, batch, control);
        if matches!(outcome, Ok(()) | Err(Error::Stopped)) {
            *self = fresh;
        }
        outcome
    }

    /// Learns `batch` once, in its order.
    pub fn partial_fit(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.learn_stream(batch, n_threads, control, None)
    }

    /// As [`partial_fit`](Self::partial_fit), and returns the class predicted
    /// for each row before it was learned: -1 where none had been seen, or
    /// the row has a weight of 0. These predictions use the weights as they
    /// are, not their average.
    pub fn learn_predict(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<i32>> {
        let mut predicted = vec![-1; batch.rows.n_rows()];
        self.learn_stream(batch, n_threads, control, Some(&mut predicted))?;
        Ok(predicted)
    }

    fn learn_stream(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
        predicted: Option<&mut [i32]>,
    ) -> Result<()> {
        self.check(batch)?;
        if self.state.is_none() {
            self.state = Some(self.first_state(&batch.rows)?);
        }
        self.n_threads = n_threads;
        let order = batch.present();
        control.set_total(order.len() as u64);
        self.run(batch, &order, 0.0, control, predicted)
    }

    fn first_state(&self, rows: &Rows<'_>) -> Result<State> {
        /// What a class takes before anything was learned of it, at least.
        const CLASS: usize = 16;
        if !can_alloc(self.n_classes.checked_mul(CLASS)) {
            let what = format!("no memory for {} classes", self.n_classes);
            return Err(Error::data(what));
        }
        Ok(State {
            preparer: ExamplePreparer::new(&self.params, self.n_classes, rows)?,
            tiles: Tile::for_classes(self.n_classes, &self.params),
            prediction_weights: OnceLock::new(),
        })
    }

    /// Refuses a batch that does not fit the model.
    fn check(&self, batch: &Batch<'_>) -> Result<()> {
        match (batch.targets, self.multilabel) {
            (Targets::One(_), false) | (Targets::Sets(_), true) => {}
            (Targets::One(_), true) => {
                return Err(Error::data(
                    "the model learns sets of labels, y holds single labels",
                ))
            }
            (Targets::Sets(_), false) => {
                return Err(Error::data(
                    "the model learns single labels, y holds sets of labels",
                ))
            }
        }
        checks::check_classes(batch.targets.n_classes(), self.n_classes)?;
        self.check_width(&batch.rows)
    }

    /// Refuses rows of another number of features, unless they are hashed.
    pub(super) fn check_width(&self, rows: &Rows<'_>) -> Result<()> {
        match self.n_features() {
            Some(n) if n != rows.n_cols() && self.params.n_bits.is_none() => {
                Err(Error::data(format!(
                    "X has {} features, the model was started with {n}",
                    rows.n_cols()
                )))
            }
            _ => Ok(()),
        }
    }

    fn run(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
        mut predicted: Option<&mut [i32]>,
    ) -> Result<()> {
        let Some(mut state) = self.state.take() else {
            return Err(Error::data("the model has not been started"));
        };
        state.prediction_weights = OnceLock::new();
        let (params, n_classes) = (&self.params, self.n_classes);
        let mistakes = &mut self.mistakes;
        // The softmax needs the scores of all tiles before any may step.
        let n_threads = if params.loss.single().is_none() {
            1
        } else {
            self.n_threads
        };
        let outcome = with_threads(n_threads, |parallel| {
            let sampler = state.preparer.sampler.as_ref();
            let mut chunk = Chunk::new(n_classes, sampler.map(NegativeSampler::weight));
            let mut bests: Vec<Vec<BestClass>> = vec![Vec::new(); state.tiles.len()];
            let mut order = order;
            while !order.is_empty() {
                let rescaling = state.preparer.rescale();
                state.preparer.fill(params, batch, order, clock, &mut chunk);
                state.learn_chunk(params, &chunk, rescaling, parallel, &mut bests);
                let (learned, rest) = order.split_at(chunk.len());
                for (i, &row) in learned.iter().enumerate() {
                    let class = best_of_tiles(&bests, i);
                    if let Some(predicted) = &mut predicted {
                        predicted[row as usize] = class.map_or(-1, |c| c as i32);
                    }
                    mistakes.count(!is_right(class, chunk.labels(i)), chunk.importance(i));
                }
                order = rest;
                control.set_loss(mistakes.loss().unwrap_or(f64::NAN));
                control.tick(learned.len())?;
            }
            Ok(())
        });
        self.state = Some(state);
        outcome?
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Whether sets of labels are learned.
    pub fn is_multilabel(&self) -> bool {
        self.multilabel
    }

    /// Number of features, once known.
    pub fn n_features(&self) -> Option<usize> {
        let state = self.state.as_ref()?;
        Some(state.preparer.preparation.n_features())
    }

    /// Weighted share of all examples learned, each pass counted, whose
    /// prediction just before was wrong; with sets of labels a prediction is
    /// right if it is one of them (1 - P@1).
    pub fn progressive_loss(&self) -> Option<f64> {
        self.mistakes.loss()
    }

    /// Number of examples learned, each pass counted.
    pub fn n_examples_seen(&self) -> u64 {
        self.mistakes.examples
    }
}

impl State {
    /// Learns a chunk; `bests` gets, tile by tile, the best class of each example as
    /// it stood before the example was learned.
    fn learn_chunk(
        &mut self,
        params: &Params,
        chunk: &Chunk,
        rescaling: Rescaling,
        parallel: bool,
        bests: &mut [Vec<BestClass>],
    ) {
        let n_slots = self.preparer.slots.len();
        let loss = params.loss.single();
        let work = |(tile, bests): (&mut Tile, &mut Vec<BestClass>)| {
            if let Some(factor) = rescaling.weights {
                tile.rescale_weights(factor);
            }
            if let Some(factor) = rescaling.average_sums {
                tile.rescale_average_sums(factor);
            }
            tile.grow(n_slots);
            bests.clear();
            match loss {
                Some(loss) if params.is_adaptive() => adaptive::learn(tile, chunk, loss, bests),
                Some(loss) => shared_direction::learn(tile, chunk, loss, bests),
                None => {}
            }
        };
        if parallel {
            self.tiles.par_iter_mut().zip(&mut *bests).for_each(work);
        } else {
            self.tiles.iter_mut().zip(&mut *bests).for_each(work);
        }
        if loss.is_none() {
            softmax::learn(&mut self.tiles, chunk, &mut bests[0]);
        }
    }
}

/// The best class of example `i` over all tiles, the lowest of equals.
fn best_of_tiles(bests: &[Vec<BestClass>], i: usize) -> Option<u32> {
    let mut top: Option<BestClass> = None;
    for best in bests.iter().filter_map(|best| best.get(i)) {
        if best.score > top.map_or(f32::NEG_INFINITY, |top| top.score) {
            top = Some(*best);
        }
    }
    top.map(|top| top.class)
}

fn is_right(class: Option<u32>, labels: &[u32]) -> bool {
    class.is_some_and(|class| labels.binary_search(&class).is_ok())
}

impl Online for Oaa {
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
    ) -> Result<()> {
        self.run(batch, order, clock, control, None)
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        let (labels, _) = self.predict_rows(&batch.rows, held_out, 1, self.n_threads, control)?;
        let mut mistakes = Mistakes::default();
        let mut set = Vec::new();
        for (&i, &label) in held_out.iter().zip(&labels) {
            let i = i as usize;
            read_labels(batch.targets, i, &mut set);
            let class = u32::try_from(label).ok();
            mistakes.count(!is_right(class, &set), batch.weight(i));
        }
        Ok(mistakes.loss().unwrap_or(1.0))
    }
}
