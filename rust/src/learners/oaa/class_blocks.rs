//! Training by blocks of classes that share nothing but the examples: for many machines, and for
//! `fit` with `prune`, which makes room for the next tiles when some are pruned.
//!
//! Classes do not depend on one another: a block of them goes through all passes alone, by the same
//! examples in the same order, and all blocks together make the model that
//! [`fit`](crate::model::Classifier::fit) makes, to the bit. What is done for each block is
//! preparing the examples. The progressive loss is that of all classes, so a block keeps the score
//! of its best class for each example just before it was learned (9 bytes per example and pass, 12 in
//! memory).
//!
//! What couples the classes is refused: the softmax, and early stopping, which compares all of them
//! after each pass.

use super::chunk::Chunk;
use super::kernels::{best_of_tiles, BestClass};
use super::pruned::PrunedWeights;
use super::tile::{classes, Tile};
use super::training::{check_memory, Oaa};
use super::{OaaLoss, Params};
use crate::control::Control;
use crate::data::{Batch, MeanWeight, Preparation};
use crate::error::{Error, Result};
use crate::file::{is_score, Bundle, Columns};
use crate::model::{
    Learner, Learning, Member, Mistakes, OnlineLearner, OnlineModel, OnlineParams, Schedule, Start,
};
use crate::params::Params as _;
use crate::record;
use crate::threads::sensible;

/// One of so many blocks of classes, from 0.
pub type Block = (usize, usize);

/// What was learned of a block of classes.
#[derive(Debug, Clone)]
pub struct ClassBlock {
    label_sets: bool,
    mean_weight: MeanWeight,
    block: Block,
    preparation: Preparation,
    /// Has the weights of these classes alone.
    learner: Oaa,
    /// Of each example that was learned, in their order.
    answers: Vec<Answer>,
}

const KIND: &str = "oaa_classes";

impl ClassBlock {
    /// Learns the classes of `block` by the examples of `batch`.
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
        let all = Tile::for_classes(n_classes, params);
        let tiles = of_block(&all, block)?.to_vec();
        let of_block = Start {
            n_classes: tiles.iter().map(Tile::width).sum(),
            label_sets,
            preparation: &start.preparation,
            batch,
            is_all: true,
        };
        check_memory(params, &of_block)?;
        let member = Member {
            learner: Oaa::without_tiles(params, n_classes, start.preparation.width()),
            preparation: start.preparation,
            progress: Mistakes::default(),
        };
        let schedule = params.schedule();
        control.set_total(u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
        let (mut member, answers) =
            learn_tiles(&member, tiles, &schedule, batch, n_threads, control)?;
        if let Some(threshold) = params.prune {
            let parts = member.learner.prune(threshold as f32, control)?;
            member.learner.pruned = Some(PrunedWeights::concat(&parts));
            member.learner.preparer = member.learner.preparer.for_prediction();
        }
        Ok(Self {
            label_sets,
            mean_weight: start.mean_weight,
            block,
            preparation: member.preparation,
            learner: member.learner,
            answers,
        })
    }

    /// How many blocks there can be of `n_classes`.
    pub fn most(params: &Params, n_classes: usize) -> usize {
        Tile::for_classes(n_classes, params).len()
    }

    /// The model of all classes, from their blocks in their order.
    pub fn join(blocks: &[&Self]) -> Result<OnlineModel<Oaa>> {
        let missing = || Error::data("the blocks are not those of all classes, in their order");
        let (first, last) = (
            blocks.first().ok_or_else(missing)?,
            blocks[blocks.len() - 1],
        );
        let fits = |(number, block): (usize, &&Self)| {
            block.block == (number, blocks.len())
                && block.learner.n_classes == first.learner.n_classes
                && block.learner.pruned.is_some() == first.learner.pruned.is_some()
                && block.answers.len() == first.answers.len()
                && block.learner.preparer.slots == first.learner.preparer.slots
        };
        if !blocks.iter().enumerate().all(fits) {
            return Err(missing());
        }
        let mut answers = first.answers.clone();
        for block in &blocks[1..] {
            let both = answers.iter_mut().zip(&block.answers);
            both.for_each(|(answer, other)| *answer = answer.or(*other));
        }
        let params = last.learner.params.clone();
        let mut progress = Mistakes::default();
        Answer::count(&answers, params.schedule().n_passes, &mut progress);
        let learners = || blocks.iter().map(|block| &block.learner);
        let pruned: Vec<PrunedWeights> = learners().filter_map(|l| l.pruned.clone()).collect();
        let of_labels = (last.learner.n_classes, last.label_sets);
        let member = Member {
            preparation: last.preparation.clone(),
            progress,
            learner: Oaa {
                tiles: learners().flat_map(|l| l.tiles.clone()).collect(),
                pruned: (!pruned.is_empty()).then(|| PrunedWeights::concat(&pruned)),
                ..last.learner.clone()
            },
        };
        OnlineModel::from_member(params, of_labels, member, first.mean_weight)
    }

    /// Bytes that it holds, about: those of its numbers.
    pub fn n_bytes(&self) -> usize {
        let Oaa {
            tiles,
            pruned,
            preparer,
            ..
        } = &self.learner;
        let planes = tiles.iter().flat_map(Tile::planes);
        let of_tiles: usize = planes.map(|plane| size_of_val(&**plane)).sum();
        let of_pruned = pruned.as_ref().map_or(0, PrunedWeights::n_weights) * 8;
        of_tiles + of_pruned + Answer::BYTES * self.answers.len() + 4 * preparer.slots.len()
    }

    /// To be sent.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(KIND);
        bundle.put_meta("params", &self.learner.params);
        bundle.put_meta("n_classes", &self.learner.n_classes);
        bundle.put_meta("label_sets", &self.label_sets);
        bundle.put_meta("mean_weight", &self.mean_weight);
        bundle.put_meta("block", &self.block);
        let mut inner = Bundle::new("learner");
        self.preparation.put(&mut inner);
        self.learner.put(&mut inner);
        bundle.nest("learner", inner);
        Columns::put(&self.answers, "answers", &mut bundle);
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(KIND)?;
        let params: Params = bundle.take_meta("params")?;
        let params = params.check()?;
        let (n_classes, block) = (bundle.take_meta("n_classes")?, bundle.take_meta("block")?);
        let tiles = of_block(&Tile::for_classes(n_classes, &params), block)?.to_vec();
        let of_block = (classes(&tiles, n_classes), n_classes);
        let mut inner = bundle.unnest("learner")?;
        let preparation = Preparation::take(&mut inner)?;
        let width = preparation.width();
        let learner = Oaa::take_tiles(&params, of_block, width, tiles, false, &mut inner)?;
        let mut answers = Vec::new();
        Columns::fill(&mut answers, "answers", &mut bundle)?;
        Ok(Self {
            label_sets: bundle.take_meta("label_sets")?,
            mean_weight: bundle.take_meta("mean_weight")?,
            block,
            preparation,
            learner,
            answers,
        })
    }
}

/// The tiles of a block.
fn of_block(all: &[Tile], (number, n_blocks): Block) -> Result<&[Tile]> {
    if number >= n_blocks || n_blocks > all.len() {
        return Err(Error::data(format!(
            "there is no block {number} of {n_blocks}, the classes make {} at most",
            all.len()
        )));
    }
    let at = |number| all.len() * number / n_blocks;
    Ok(&all[at(number)..at(number + 1)])
}

fn refuse_coupled(params: &Params) -> Result<()> {
    const INSTEAD: &str = "(train OAAClassifier on one machine)";
    if params.loss == OaaLoss::Softmax {
        let allowed = format!("one whose classes learn apart {INSTEAD}");
        return Err(Error::parameter("loss", "\"softmax\"", allowed));
    }
    if params.early_stopping {
        let allowed = format!("False, as it compares all classes after each pass {INSTEAD}");
        return Err(Error::parameter("early_stopping", true, allowed));
    }
    Ok(())
}

/// The best class of some tiles for an example, just before it was learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// Its score; minus infinity where no class of the tiles had been seen.
    score: f32,
    is_right: bool,
    /// Of the example.
    importance: f32,
}

record!(Answer {
    score: is_score,
    is_right,
    importance
});

impl Answer {
    /// Size of one that is stored, in bytes.
    pub const BYTES: usize = 2 * size_of::<f32>() + size_of::<bool>();

    /// The better of two: equal scores go to the class that comes first.
    pub fn or(self, other: Self) -> Self {
        if other.score > self.score {
            other
        } else {
            self
        }
    }

    /// Counts the `answers` of all classes in `n_passes` passes.
    pub fn count(answers: &[Self], n_passes: u32, progress: &mut Mistakes) {
        let first_pass = answers.len() / n_passes as usize;
        for (position, answer) in answers.iter().enumerate() {
            progress.repeats = position >= first_pass;
            progress.count(!answer.is_right, answer.importance);
        }
    }
}

/// Learns all passes of `schedule`, with about `most_bytes` of dense weights at a time, and keeps
/// the weights of at least `threshold`.
pub(super) fn fit(
    member: &mut Member<Oaa>,
    schedule: &Schedule,
    batch: &Batch<'_>,
    threshold: f32,
    (n_threads, most_bytes): (usize, usize),
    control: &Control,
) -> Result<()> {
    let tiles = std::mem::take(&mut member.learner.tiles);
    let n_columns = member.preparation.width().min(batch.rows.n_values() + 1);
    let of_column = Tile::n_planes(&member.learner.params) * tiles[0].width() * size_of::<f32>();
    let n_at_once = most_bytes / of_column.saturating_mul(n_columns);
    let n_at_once = n_at_once.max(sensible(n_threads));
    let n_rounds = tiles.len().div_ceil(n_at_once);
    control.set_total(n_rounds as u64 * u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
    let mut answers = Vec::new();
    let mut parts = Vec::new();
    let mut last = None;
    for tiles in tiles.chunks(n_at_once) {
        let (mut part, of_part) =
            learn_tiles(member, tiles.to_vec(), schedule, batch, n_threads, control)?;
        answers = if last.is_none() {
            of_part
        } else {
            let both = answers.into_iter().zip(of_part);
            both.map(|(answer, other): (Answer, _)| answer.or(other))
                .collect()
        };
        parts.extend(part.learner.prune(threshold, control)?);
        last = Some(part.learner.preparer);
    }
    Answer::count(&answers, schedule.n_passes, &mut member.progress);
    let oaa = &mut member.learner;
    if let Some(preparer) = last {
        oaa.preparer = preparer.for_prediction();
    }
    oaa.pruned = Some(PrunedWeights::concat(&parts));
    Ok(())
}

/// Takes `tiles` of `member`, which has learned nothing, through all passes, and returns the best
/// class of these tiles for each example in each pass. Nothing is held out for early stopping, which
/// would compare all classes.
pub(super) fn learn_tiles(
    member: &Member<Oaa>,
    tiles: Vec<Tile>,
    schedule: &Schedule,
    batch: &Batch<'_>,
    n_threads: usize,
    control: &Control,
) -> Result<(Member<Oaa>, Vec<Answer>)> {
    let mut part = Member {
        learner: Oaa {
            tiles,
            ..member.learner.clone()
        },
        ..member.clone()
    };
    let mut answers = Vec::new();
    let mut passes = schedule.passes(batch)?;
    let clock = passes.clock;
    while let Some(order) = passes.next_order() {
        let mut learning = Learning {
            batch,
            order,
            clock,
            preparation: &mut part.preparation,
            progress: &mut Mistakes::default(),
            n_threads,
            control,
        };
        let on_chunk =
            |_: &mut Learning<'_>, _: &[u32], chunk: &Chunk, bests: &[Vec<BestClass>]| {
                for (i, params) in chunk.params.iter().enumerate() {
                    let best = best_of_tiles(bests, i);
                    let labels = chunk.labels.get(i);
                    answers.push(Answer {
                        score: best.map_or(f32::NEG_INFINITY, |best| best.score),
                        is_right: best
                            .is_some_and(|best| labels.binary_search(&best.class).is_ok()),
                        importance: params.importance,
                    });
                }
            };
        part.learner.learn_chunks(&mut learning, on_chunk)?;
    }
    Ok((part, answers))
}
