//! Training by blocks of classes that share nothing but the examples, for many machines.
//!
//! Classes do not depend on one another: a block of them goes through all passes alone, by the same
//! examples in the same order, and all blocks together make the model that
//! [`fit`](crate::model::Classifier::fit) makes, to the bit. What is done for each block is
//! preparing the examples. The progressive loss is that of all classes, so a block keeps the score
//! of its best class for each example just before it was learned (9 bytes per example and pass).
//!
//! What couples the classes is refused: the softmax, and early stopping, which compares all of them
//! after each pass.

use super::learner::check_memory;
use super::preparer::ExamplePreparer;
use super::prune::{learn_tiles, Answer};
use super::pruned::PrunedWeights;
use super::tile::Tile;
use super::training::Oaa;
use super::{OaaLoss, Params};
use crate::control::Control;
use crate::data::{Batch, MeanWeight, Preparation};
use crate::error::{Error, Result};
use crate::file::{Bundle, Columns, Nest};
use crate::model::{Learner, Member, Mistakes, OnlineModel, OnlineParams, Start};
use crate::params::Params as _;
use crate::persist;

/// One of so many blocks of classes, from 0.
pub type Block = (usize, usize);

/// What was learned of a block of classes.
#[derive(Debug, Clone)]
pub struct ClassBlock {
    params: Params,
    n_classes: usize,
    label_sets: bool,
    mean_weight: MeanWeight,
    block: Block,
    preparation: Preparation,
    preparer: ExamplePreparer,
    /// None once they are pruned.
    tiles: Vec<Tile>,
    pruned: Option<PrunedWeights>,
    /// Of each example that was learned, in their order.
    answers: Vec<Answer>,
}

persist!(Tile {
    Flat weights;
    Flat average_sums;
    Flat squares;
    Flat scales;
    Scores unseen_mask;
    Columns totals;
});

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
        let mut learner = Oaa::of_width(params, n_classes, start.preparation.width());
        learner.tiles = Vec::new();
        let member = Member {
            preparation: start.preparation.clone(),
            progress: Mistakes::default(),
            learner,
        };
        let schedule = params.schedule();
        control.set_total(u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
        let run = (&schedule, n_threads, control);
        let (mut member, answers) = learn_tiles(&member, tiles, batch, run)?;
        let pruned = params.prune.map(|threshold| {
            let parts = member.learner.prune(threshold as f32, control)?;
            Ok(PrunedWeights::concat(&parts))
        });
        let learner = member.learner;
        Ok(Self {
            params: params.clone(),
            n_classes,
            label_sets,
            mean_weight: start.mean_weight,
            block,
            preparation: member.preparation,
            preparer: learner.preparer,
            tiles: learner.tiles,
            pruned: pruned.transpose()?,
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
                && block.n_classes == first.n_classes
                && block.answers.len() == first.answers.len()
                && block.preparer.slots == first.preparer.slots
        };
        if !blocks.iter().enumerate().all(fits) {
            return Err(missing());
        }
        let mut answers = first.answers.clone();
        for block in &blocks[1..] {
            let both = answers.iter_mut().zip(&block.answers);
            both.for_each(|(answer, other)| *answer = answer.or(*other));
        }
        let mut progress = Mistakes::default();
        Answer::count(&answers, first.params.schedule().n_passes, &mut progress);
        let pruned = first.params.prune.map(|_| {
            let parts: Option<Vec<PrunedWeights>> =
                blocks.iter().map(|block| block.pruned.clone()).collect();
            parts
                .map(|parts| PrunedWeights::concat(&parts))
                .ok_or_else(missing)
        });
        let mut learner = Oaa::of_width(&first.params, first.n_classes, first.preparation.width());
        learner.pruned = pruned.transpose()?;
        learner.preparer = if learner.pruned.is_some() {
            last.preparer.for_prediction()
        } else {
            last.preparer.clone()
        };
        learner.tiles = blocks
            .iter()
            .flat_map(|block| block.tiles.clone())
            .collect();
        let member = Member {
            preparation: last.preparation.clone(),
            progress,
            learner,
        };
        let (params, of_labels) = (first.params.clone(), (first.n_classes, first.label_sets));
        OnlineModel::of_member(params, of_labels, member, first.mean_weight)
    }

    /// Bytes that it holds, about: those of its numbers.
    pub fn n_bytes(&self) -> usize {
        let planes = self.tiles.iter().flat_map(Tile::planes);
        let of_tiles: usize = planes.map(|plane| size_of_val(&**plane)).sum();
        let of_pruned = self.pruned.as_ref().map_or(0, PrunedWeights::n_weights) * 8;
        of_tiles + of_pruned + Answer::BYTES * self.answers.len() + 4 * self.preparer.slots.len()
    }

    /// To be sent.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("label_sets", &self.label_sets);
        bundle.put_meta("mean_weight", &self.mean_weight);
        bundle.put_meta("block", &self.block);
        let mut inner = Bundle::new("preparation");
        self.preparation.put(&mut inner);
        bundle.nest("preparation", inner);
        Nest::put(&self.preparer, "preparer", &mut bundle);
        bundle.put("columns", self.preparer.slots.columns());
        for (number, tile) in self.tiles.iter().enumerate() {
            Nest::put(tile, &format!("tile{number}"), &mut bundle);
        }
        if let Some(pruned) = &self.pruned {
            Nest::put(pruned, "pruned", &mut bundle);
        }
        Columns::put(&self.answers, "answers", &mut bundle);
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(KIND)?;
        let params: Params = bundle.take_meta("params")?;
        let params = params.check()?;
        let (n_classes, block) = (bundle.take_meta("n_classes")?, bundle.take_meta("block")?);
        let preparation = Preparation::take(&mut bundle.unnest("preparation")?)?;
        let mut preparer = ExamplePreparer::new(&params, n_classes, preparation.width());
        Nest::fill(&mut preparer, "preparer", &mut bundle)?;
        let columns: Vec<u32> = bundle.take("columns")?;
        if !preparer.slots.insert_all(&columns) || !preparer.fits(&params, false) {
            return Err(bundle.damaged("the columns or the state do not fit the parameters"));
        }
        let all = Tile::for_classes(n_classes, &params);
        let mut tiles = of_block(&all, block)?.to_vec();
        let mut pruned = None;
        if params.prune.is_some() {
            let first = tiles.first().map_or(0, |tile| tile.first);
            let end = tiles.last().map_or(0, |tile| tile.first + tile.width());
            let mut inner = bundle.unnest("pruned")?;
            let classes = first..end.min(n_classes);
            pruned = Some(PrunedWeights::take(&mut inner, classes, columns.len())?);
            tiles.clear();
        }
        for (number, tile) in tiles.iter_mut().enumerate() {
            tile.grow(columns.len());
            let wanted = lengths(tile);
            Nest::fill(tile, &format!("tile{number}"), &mut bundle)?;
            if lengths(tile) != wanted {
                return Err(bundle.damaged("the weights do not fit the classes and columns"));
            }
        }
        let mut answers = Vec::new();
        Columns::fill(&mut answers, "answers", &mut bundle)?;
        Ok(Self {
            params,
            n_classes,
            label_sets: bundle.take_meta("label_sets")?,
            mean_weight: bundle.take_meta("mean_weight")?,
            block,
            preparation,
            preparer,
            tiles,
            pruned,
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

/// How many numbers a tile has of each kind.
fn lengths(tile: &Tile) -> [usize; 6] {
    let [weights, average_sums, squares, scales] = tile.planes().map(|plane| plane.len());
    let (unseen, totals) = (tile.unseen_mask.len(), tile.totals.len());
    [weights, average_sums, squares, scales, unseen, totals]
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
