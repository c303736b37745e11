//! `fit` with `prune`: some tiles go through all passes, are pruned, and make room for the next.
//!
//! Classes do not depend on one another, so the weights are those of all tiles at once, to the
//! bit. What costs twice is preparing the examples. The best class of each example just before it
//! was learned is kept meanwhile (12 bytes per example and pass), so that the progressive loss
//! is that of all classes, too.

use super::chunk::Chunk;
use super::kernels::{best_of_tiles, BestClass};
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::training::Oaa;
use crate::control::Control;
use crate::data::Batch;
use crate::error::Result;
use crate::file::is_score;
use crate::model::{Learning, Member, Mistakes, Schedule};
use crate::record;
use crate::threads::sensible;

/// Bytes of weights that are dense at a time, about, if there are more tiles than threads.
pub(super) const MAX_DENSE_BYTES: usize = 1 << 29;

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
        let run = (schedule, n_threads, control);
        let (mut part, of_part) = learn_tiles(member, tiles.to_vec(), batch, run)?;
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
    batch: &Batch<'_>,
    (schedule, n_threads, control): (&Schedule, usize, &Control),
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
            predicted: None,
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
