//! `fit` with `prune`: some tiles go through all passes, are pruned, and make room for the next.
//!
//! Classes do not depend on one another, so the weights are those of all tiles at once, to the
//! bit. What costs twice is preparing the examples. The best class of each example just before it
//! was learned is kept meanwhile (16 bytes per example and pass), so that the progressive loss
//! is that of all classes, too.

use super::chunk::Chunk;
use super::learner::Oaa;
use super::pruned::PrunedWeights;
use super::scoring::BestClass;
use super::tile::Tile;
use super::training::best_of_tiles;
use crate::control::Control;
use crate::data::Batch;
use crate::error::Result;
use crate::model::{Learning, Member, Mistakes, Schedule};
use crate::threads::sensible;

/// Bytes of weights that are dense at a time, about, if there are more tiles than threads.
pub(super) const MOST_BYTES: usize = 1 << 29;

/// An example that was learned.
#[derive(Debug, Clone, Copy)]
struct Learned {
    row: u32,
    importance: f32,
    /// The best class before, of the tiles so far.
    best: Option<BestClass>,
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
    let mut learned = Vec::new();
    let mut parts = Vec::new();
    let mut last = None;
    for (round, tiles) in tiles.chunks(n_at_once).enumerate() {
        let mut position = 0;
        let on_chunk = |rows: &[u32], chunk: &Chunk, bests: &[Vec<BestClass>]| {
            if round == 0 {
                learned.extend(new_entries(rows, chunk));
            }
            let entries = &mut learned[position..position + rows.len()];
            for (i, entry) in entries.iter_mut().enumerate() {
                // Equal scores go to the class that comes first.
                let best = best_of_tiles(bests, i);
                if best.map(|b| b.score) > entry.best.map(|b| b.score) {
                    entry.best = best;
                }
            }
            position += rows.len();
        };
        let tiles = tiles.to_vec();
        let run = (schedule, n_threads, control);
        let mut part = learn_tiles(member, tiles, batch, run, on_chunk)?;
        parts.extend(part.learner.prune(threshold, control)?);
        last = Some(part.learner.preparer);
    }
    let mut labels = Vec::new();
    let first_pass = learned.len() / schedule.n_passes as usize;
    for (position, entry) in learned.into_iter().enumerate() {
        member.progress.repeats = position >= first_pass;
        batch.targets.read(entry.row as usize, &mut labels);
        let class = entry.best.map(|best| best.class);
        let is_right = class.is_some_and(|class| labels.binary_search(&class).is_ok());
        member.progress.count(!is_right, entry.importance);
    }
    let oaa = &mut member.learner;
    if let Some(preparer) = last {
        oaa.preparer = preparer.for_prediction();
    }
    oaa.pruned = Some(PrunedWeights::concat(&parts));
    Ok(())
}

/// Takes `tiles` of `member`, which has learned nothing, through all passes. Calls `on_chunk` with
/// the rows of each chunk and the best classes of these tiles for them, just before they are
/// learned. Nothing is held out for early stopping, which would compare all classes.
pub(super) fn learn_tiles(
    member: &Member<Oaa>,
    tiles: Vec<Tile>,
    batch: &Batch<'_>,
    (schedule, n_threads, control): (&Schedule, usize, &Control),
    mut on_chunk: impl FnMut(&[u32], &Chunk, &[Vec<BestClass>]) + Send,
) -> Result<Member<Oaa>> {
    let mut part = Member {
        learner: Oaa {
            tiles,
            ..member.learner.clone()
        },
        ..member.clone()
    };
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
        part.learner
            .learn_chunks(&mut learning, |_, rows, chunk, bests| {
                on_chunk(rows, chunk, bests);
            })?;
    }
    Ok(part)
}

fn new_entries<'a>(rows: &'a [u32], chunk: &'a Chunk) -> impl Iterator<Item = Learned> + 'a {
    rows.iter()
        .zip(&chunk.params)
        .map(|(&row, params)| Learned {
            row,
            importance: params.importance,
            best: None,
        })
}
