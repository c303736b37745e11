//! Training of some classes at a time: on several machines, or for `fit` with `prune`, where tiles
//! are pruned before the next ones are learned.
//!
//! Classes do not depend on each other. So each block of classes passes over the same examples in
//! the same order, and all blocks together are the model of [`fit`](crate::model::Classifier::fit),
//! to the bit. Only the preparation of examples is repeated. The progressive loss depends on all
//! classes, so a block keeps its best class for each example before it was learned (9 bytes per
//! example and pass, 12 in memory).
//!
//! Parameters that couple the classes are refused: the softmax, and early stopping, which compares
//! all classes after each pass.

use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::training::{check_memory, Answer, Oaa};
use super::{OaaLoss, Params};
use crate::control::Control;
use crate::data::{Batch, MeanWeight, Preparation};
use crate::error::{Error, Result};
use crate::file::{Bundle, Columns};
use crate::model::{
    Learner, Learning, Member, Mistakes, OnlineLearner, OnlineModel, OnlineParams, Schedule,
};
use crate::params::Params as _;
use crate::threads::sensible;

/// Number of a block, from 0, and number of blocks.
pub type Block = (usize, usize);

/// Trained classes of one block.
#[derive(Debug, Clone)]
pub struct ClassBlock {
    label_sets: bool,
    mean_weight: MeanWeight,
    block: Block,
    trained: TrainedTiles,
}

const KIND: &str = "oaa_classes";

impl ClassBlock {
    /// Trains the classes of `block` on the examples of `batch`.
    pub fn train(
        params: &Params,
        label_sets: bool,
        batch: &Batch<'_>,
        block: Block,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        refuse_coupled(params)?;
        let n_classes = batch.targets.n_classes();
        let model = OnlineModel::<Oaa>::create(params.clone(), n_classes, label_sets)?;
        let start = model.start_fit(batch, control)?;
        let batch = &batch.with_weights(start.weights.as_deref());
        let tiles = tiles_of(block, n_classes, params)?;
        let n_lanes = tiles.iter().map(Tile::width).sum();
        check_memory(params, n_lanes, &start.preparation, batch, true)?;
        let member = Member {
            learner: Oaa::without_tiles(params, n_classes, start.preparation.width()),
            preparation: start.preparation,
            progress: Mistakes::default(),
        };
        let schedule = params.schedule();
        control.set_total(u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
        Ok(Self {
            label_sets,
            mean_weight: start.mean_weight,
            block,
            trained: TrainedTiles::new(&member, tiles, &schedule, batch, n_threads, control)?,
        })
    }

    /// Returns the largest number of blocks of `n_classes`.
    pub fn most(params: &Params, n_classes: usize) -> usize {
        Tile::for_classes(n_classes, params).len()
    }

    /// Returns the model of all classes, from their blocks in order.
    pub fn join(blocks: &[&Self]) -> Result<OnlineModel<Oaa>> {
        let missing = || Error::data("the blocks do not cover all classes in order");
        let first = blocks.first().ok_or_else(missing)?;
        let oaa = &first.trained.member.learner;
        let fits = |(number, block): (usize, &&Self)| {
            let learner = &block.trained.member.learner;
            block.block == (number, blocks.len())
                && learner.n_classes == oaa.n_classes
                && learner.pruned.is_some() == oaa.pruned.is_some()
                && block.trained.answers.len() == first.trained.answers.len()
                && learner.preparer.slots == oaa.preparer.slots
        };
        if !blocks.iter().enumerate().all(fits) {
            return Err(missing());
        }
        let parts = blocks.iter().map(|block| Ok(block.trained.clone()));
        let n_passes = oaa.params.schedule().n_passes;
        let member = TrainedTiles::join(parts, n_passes)?.ok_or_else(missing)?;
        Ok(OnlineModel {
            members: vec![member],
            mean_weight: first.mean_weight,
            ..OnlineModel::create(oaa.params.clone(), oaa.n_classes, first.label_sets)?
        })
    }

    /// Returns the approximate number of bytes in memory.
    pub fn n_bytes(&self) -> usize {
        let oaa = &self.trained.member.learner;
        let planes = oaa.tiles.iter().flat_map(Tile::planes);
        let dense: usize = planes.map(|plane| size_of_val(&**plane)).sum();
        let sparse = oaa.pruned.as_ref().map_or(0, PrunedWeights::n_weights) * 8;
        // Stored as two floats and a byte each.
        let answers = 9 * self.trained.answers.len();
        dense + sparse + answers + 4 * oaa.preparer.slots.len()
    }

    /// Returns the block as a bundle, to be sent.
    pub fn to_bundle(&self) -> Bundle {
        let TrainedTiles { member, answers } = &self.trained;
        let mut bundle = Bundle::new(KIND);
        bundle.put_meta("params", &member.learner.params);
        bundle.put_meta("n_classes", &member.learner.n_classes);
        bundle.put_meta("label_sets", &self.label_sets);
        bundle.put_meta("mean_weight", &self.mean_weight);
        bundle.put_meta("block", &self.block);
        let mut inner = Bundle::new("learner");
        member.preparation.put(&mut inner);
        member.learner.put(&mut inner);
        bundle.nest("learner", inner);
        Columns::put(answers, "answers", &mut bundle);
        bundle
    }

    /// Reads what [`to_bundle`](Self::to_bundle) returned.
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(KIND)?;
        let params: Params = bundle.take_meta("params")?;
        let params = params.check()?;
        let (n_classes, block) = (bundle.take_meta("n_classes")?, bundle.take_meta("block")?);
        let tiles = tiles_of(block, n_classes, &params)?;
        let mut inner = bundle.unnest("learner")?;
        let preparation = Preparation::take(&mut inner)?;
        let width = preparation.width();
        let member = Member {
            learner: Oaa::take_tiles(&params, n_classes, width, tiles, false, &mut inner)?,
            preparation,
            progress: Mistakes::default(),
        };
        let mut answers = Vec::new();
        Columns::fill(&mut answers, "answers", &mut bundle)?;
        Ok(Self {
            label_sets: bundle.take_meta("label_sets")?,
            mean_weight: bundle.take_meta("mean_weight")?,
            block,
            trained: TrainedTiles { member, answers },
        })
    }
}

/// Returns the untrained tiles of a block of `n_classes`.
fn tiles_of((number, n_blocks): Block, n_classes: usize, params: &Params) -> Result<Vec<Tile>> {
    let mut tiles = Tile::for_classes(n_classes, params);
    if number >= n_blocks || n_blocks > tiles.len() {
        return Err(Error::data(format!(
            "there is no block {number} of {n_blocks}: the classes form at most {} blocks",
            tiles.len()
        )));
    }
    let start = |number| tiles.len() * number / n_blocks;
    let range = start(number)..start(number + 1);
    Ok(tiles.drain(range).collect())
}

fn refuse_coupled(params: &Params) -> Result<()> {
    const INSTEAD: &str = "(train OAAClassifier on one machine)";
    if params.loss == OaaLoss::Softmax {
        let allowed = format!("a loss of each class separately {INSTEAD}");
        return Err(Error::parameter("loss", "\"softmax\"", allowed));
    }
    if params.early_stopping {
        let allowed = format!("False, because it compares all classes after each pass {INSTEAD}");
        return Err(Error::parameter("early_stopping", true, allowed));
    }
    Ok(())
}

/// Some tiles of a model after all passes.
#[derive(Debug, Clone)]
struct TrainedTiles {
    /// A member with the weights of these tiles alone, pruned or not, and without progress.
    member: Member<Oaa>,
    /// The answer by these tiles for each example that was learned, in order.
    answers: Vec<Answer>,
}

impl TrainedTiles {
    /// Trains `tiles` of an untrained `member` without tiles in the passes of `schedule`. No rows
    /// are held out for early stopping, which would compare all classes.
    fn new(
        member: &Member<Oaa>,
        tiles: Vec<Tile>,
        schedule: &Schedule,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        let mut member = member.clone();
        member.learner.tiles = tiles;
        let mut answers = Vec::new();
        let mut passes = schedule.passes(batch)?;
        let clock = passes.clock;
        while let Some(order) = passes.next_order() {
            let mut learning = Learning {
                batch,
                order,
                clock,
                preparation: &mut member.preparation,
                progress: &mut Mistakes::default(),
                n_threads,
                control,
            };
            let on_answer = |_: &mut Mistakes, answer| answers.push(answer);
            member.learner.learn_chunks(&mut learning, on_answer)?;
        }
        member.learner.prune(control)?;
        Ok(Self { member, answers })
    }

    /// Joins parts with consecutive classes to one member, if there are any.
    fn join(
        parts: impl Iterator<Item = Result<Self>>,
        n_passes: u32,
    ) -> Result<Option<Member<Oaa>>> {
        let (mut joined, mut pruned): (Option<Self>, _) = (None, Vec::new());
        for part in parts {
            let mut part = part?;
            pruned.extend(part.member.learner.pruned.take());
            let Some(joined) = &mut joined else {
                joined = Some(part);
                continue;
            };
            joined
                .member
                .learner
                .tiles
                .append(&mut part.member.learner.tiles);
            for (answer, other) in joined.answers.iter_mut().zip(part.answers) {
                *answer = answer.or(other);
            }
        }
        let Some(Self {
            mut member,
            answers,
        }) = joined
        else {
            return Ok(None);
        };
        if !pruned.is_empty() {
            member.learner.pruned = Some(PrunedWeights::concat(&pruned));
        }
        let first_pass = answers.len() / n_passes as usize;
        for (position, answer) in answers.iter().enumerate() {
            member.progress.repeats = position >= first_pass;
            answer.count(&mut member.progress);
        }
        Ok(Some(member))
    }
}

/// Trains and prunes an untrained member, with about `most_bytes` of dense weights at a time.
pub(super) fn fit(
    member: &mut Member<Oaa>,
    schedule: &Schedule,
    batch: &Batch<'_>,
    n_threads: usize,
    most_bytes: usize,
    control: &Control,
) -> Result<()> {
    let tiles = std::mem::take(&mut member.learner.tiles);
    let n_columns = member.preparation.width().min(batch.rows.n_values() + 1);
    let column_bytes = Tile::n_planes(&member.learner.params) * tiles[0].width() * size_of::<f32>();
    let n_at_once = most_bytes / column_bytes.saturating_mul(n_columns);
    let n_at_once = n_at_once.max(sensible(n_threads));
    let n_rounds = tiles.len().div_ceil(n_at_once);
    control.set_total(n_rounds as u64 * u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
    let parts = tiles.chunks(n_at_once).map(|tiles| {
        TrainedTiles::new(member, tiles.to_vec(), schedule, batch, n_threads, control)
    });
    if let Some(trained) = TrainedTiles::join(parts, schedule.n_passes)? {
        *member = trained;
    }
    Ok(())
}
