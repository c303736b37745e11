//! Training of some classes at a time: by models of blocks of classes, which visit parts of the data
//! side by side, or for `fit` with `prune`, where tiles are pruned before the next ones are learned.
//!
//! Classes do not depend on each other. So blocks that learned the same examples in the same order
//! are together the model of all classes, to the bit; only the preparation of examples is repeated.
//! The progressive loss depends on all classes. For `fit`, tiles keep their best class for each
//! example before it was learned (12 bytes per example and pass); joined models have none.

use super::preparer::ExamplePreparer;
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::training::{Answer, Oaa};
use super::Params;
use crate::control::Control;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::model::{Learning, Member, Mistakes, Schedule};
use crate::threads::sensible;

/// Joins the members of models of consecutive classes, of which each has its number `known`, and
/// prunes the weights if `params` say so. All but the last block must be full tiles.
pub(super) fn join(
    params: &Params,
    n_classes: usize,
    known: &[usize],
    members: Vec<Member<Oaa>>,
) -> Result<Member<Oaa>> {
    let unfit = || Error::data("the joined models are not consecutive blocks of the classes");
    let n_blocks = members.len();
    let (mut pruned, mut first) = (Vec::new(), 0);
    let mut joined: Option<Member<Oaa>> = None;
    for (mut block, n) in members.into_iter().zip(known) {
        let learner = &mut block.learner;
        learner.params = params.clone();
        if learner.pruned.is_none() {
            learner.prune(&Control::new(0))?;
        }
        pruned.extend(learner.pruned.take().map(|part| part.shifted(first as u32)));
        for tile in &mut learner.tiles {
            tile.first += first;
        }
        first += n;
        match &mut joined {
            None => joined = Some(block),
            Some(all) if all.learner.preparer.slots != learner.preparer.slots => {
                return Err(unfit())
            }
            Some(all) => all.learner.tiles.append(&mut learner.tiles),
        }
    }
    let mut joined = joined.ok_or_else(unfit)?;
    let all = &mut joined.learner;
    let wanted = Tile::for_classes(n_classes, params);
    let is_tile =
        |(tile, wanted): (&Tile, &Tile)| tile.first == wanted.first && tile.groups == wanted.groups;
    let are_tiles = all.tiles.len() == wanted.len() && all.tiles.iter().zip(&wanted).all(is_tile);
    if first != n_classes || !(are_tiles && pruned.is_empty() || pruned.len() == n_blocks) {
        return Err(unfit());
    }
    if !pruned.is_empty() {
        all.pruned = Some(PrunedWeights::concat(&pruned));
    }
    all.n_classes = n_classes;
    let sampler = ExamplePreparer::new(params, n_classes, 1).sampler;
    all.preparer.sampler = sampler;
    if n_blocks > 1 {
        joined.progress = Mistakes {
            examples: joined.progress.examples,
            ..Mistakes::default()
        };
    }
    Ok(joined)
}

/// Trains and prunes `tiles` of an untrained `member` without tiles in the passes of `schedule`. No
/// rows are held out for early stopping, which would compare all classes. Returns a member with the
/// weights of these tiles alone and without progress, and the answer by these tiles for each example
/// that was learned, in order.
fn train(
    member: &Member<Oaa>,
    tiles: &[Tile],
    schedule: &Schedule,
    batch: &Batch<'_>,
    n_threads: usize,
    control: &Control,
) -> Result<(Member<Oaa>, Vec<Answer>)> {
    let mut member = member.clone();
    member.learner.tiles = tiles.to_vec();
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
    Ok((member, answers))
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
    let (mut trained, mut pruned, mut answers) = (member.clone(), Vec::new(), Vec::new());
    for tiles in tiles.chunks(n_at_once) {
        let (part, own) = train(member, tiles, schedule, batch, n_threads, control)?;
        trained = part;
        pruned.extend(trained.learner.pruned.take());
        if answers.is_empty() {
            answers = own;
        } else {
            for (answer, own) in answers.iter_mut().zip(own) {
                *answer = answer.or(own);
            }
        }
    }
    trained.learner.pruned = Some(PrunedWeights::concat(&pruned));
    let first_pass = answers.len() / schedule.n_passes as usize;
    for (position, answer) in answers.iter().enumerate() {
        trained.progress.repeats = position >= first_pass;
        answer.count(&mut trained.progress);
    }
    *member = trained;
    Ok(())
}
