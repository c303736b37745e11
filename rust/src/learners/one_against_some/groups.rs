//! Training in groups of labels, for rows that lie in several places.
//!
//! Each place sends a group the rows that have one of its labels or are a negative of one, as a
//! [`Piece`]. So no place holds all rows, and groups are trained side by side. A row's random
//! negatives come from the groups that it visits anyway and from a few that are drawn: each label meets
//! as many of them as if they were drawn from all labels. Negatives are mined within a group.

use std::array::from_fn;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::choose::{Choice, Settings};
use super::dense::DenseColumns;
use super::fit::FitSample;
use super::negatives::{Candidates, Negatives};
use super::pieces::{are_below, Piece};
use super::train::{positive_weights, ScorerParams, Trainer};
use crate::control::Control;
use crate::data::{Examples, Ragged};
use crate::error::{require, Result};
use crate::learners::mix;
use crate::persist;

/// Number of groups that are drawn for a row. More let more wrong labels be mined, but need more rows.
const N_DRAWN: usize = 4;

/// Groups of labels, the rows of all places, and the columns of a sample of these.
#[derive(Debug, Default)]
pub struct GroupFacts {
    /// The group of each label, below `n_groups`.
    pub groups: Vec<u32>,
    pub n_groups: usize,
    /// Number of rows with each label, and of rows with labels.
    pub counts: Vec<u32>,
    pub n_rows: usize,
    pub mean_weight: f64,
    /// Number of sampled rows, and of those with each column; the constant comes last.
    pub n_sampled: usize,
    pub column_counts: Vec<u32>,
    /// The columns that most rows fill, increasing.
    pub dense: Vec<u32>,
    pub params: ScorerParams,
}

persist!(GroupFacts {
    Columns groups;
    Meta n_groups;
    Columns counts;
    Meta n_rows;
    Meta mean_weight;
    Meta n_sampled;
    Columns column_counts;
    Columns dense;
    Meta params;
} check is_sound);

impl GroupFacts {
    /// Returns an error if facts do not match.
    fn is_sound(&self) -> Result<()> {
        let mut groups = self.groups.iter();
        let is_sound = self.groups.len() == self.counts.len()
            && self.n_groups <= self.groups.len()
            && groups.all(|&group| (group as usize) < self.n_groups)
            && self.counts.iter().any(|&n| n > 0)
            && self.mean_weight > 0.0
            && self.params.cost.is_none_or(|cost| cost > 0.0)
            && !self.column_counts.is_empty()
            && are_below(self.column_counts.len() - 1, self.dense.iter().copied());
        require(is_sound, "labels, groups and counts do not match")
    }
}

/// Groups of labels, ready for use.
#[derive(Debug)]
pub struct Groups {
    pub facts: GroupFacts,
    /// The group of each label, and its number there.
    pub(super) places: Vec<(u32, u32)>,
    /// The labels of each group, increasing.
    pub(super) labels: Ragged<u32>,
    /// For each label in the order of `labels`, how many labels all rows have up to it.
    ends: Vec<u64>,
    pub(super) dense_columns: DenseColumns,
}

impl Groups {
    /// Completes facts that were restored.
    pub fn new(facts: GroupFacts) -> Self {
        let mut all = Ragged::default();
        all.push(0..facts.groups.len() as u32);
        let place = |_, &label: &u32| (facts.groups[label as usize], label);
        let labels = all.regroup(facts.n_groups, place);
        let mut places = vec![(0, 0); facts.groups.len()];
        for group in 0..facts.n_groups {
            for (number, &label) in (0..).zip(labels.get(group)) {
                places[label as usize] = (group as u32, number);
            }
        }
        let mut end = 0;
        let add = |&label: &u32| {
            end += u64::from(facts.counts[label as usize]);
            end
        };
        Self {
            ends: labels.entries().iter().map(add).collect(),
            places,
            labels,
            dense_columns: DenseColumns::new(&facts.dense, facts.column_counts.len() - 1),
            facts,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.facts.column_counts.len()
    }

    /// Returns the settings to choose from, as for a training on the sample: with fewer rows of the
    /// fit, more labels are compared on.
    fn choice(&self) -> Choice {
        let n_values = (self.facts.column_counts.iter()).map(|&n| n as usize).sum();
        let columns = (self.dense_columns.len(), self.width());
        let rows = (self.facts.n_sampled, n_values);
        Choice::new(self.facts.params.cost, self.places.len(), rows, columns)
    }

    /// Returns the settings that suit most, by the gains of rows in each group with each of all
    /// settings.
    pub fn choose(&self, gains: &[Vec<Vec<f64>>]) -> Result<Settings> {
        let choice = self.choice();
        let all = choice.all();
        let are_complete = gains.iter().all(|gains| gains.len() == all.len());
        require(are_complete, "gains and settings do not match")?;
        choice.best(|settings| {
            let at = all.iter().position(|&each| each == settings);
            let found = gains.iter().filter_map(|gains| gains.get(at?));
            Ok(found.flatten().copied().collect())
        })
    }

    /// Returns whether rows have these columns and labels.
    pub fn fits(&self, examples: &Examples) -> bool {
        (examples.width, examples.n_labels) == (self.width(), self.places.len())
    }

    /// Returns the place of a label that is drawn by its frequency from a range of `labels`.
    fn draw(&self, range: Range<usize>, random: &mut Pcg64Mcg) -> (u32, u32) {
        let before = |place: usize| place.checked_sub(1).map_or(0, |last| self.ends[last]);
        let drawn = random.random_range(before(range.start)..before(range.end));
        let label = self.labels.entries()[self.ends.partition_point(|&end| end <= drawn)];
        self.places[label as usize]
    }

    /// Returns the pieces of all groups, from `examples` that fit, with these candidates: the first
    /// rows, which have scored ones, are rows of the fit. Each place has another `number`, with which
    /// it draws random negatives.
    pub fn divide(&self, examples: &Examples, candidates: &Candidates, number: u64) -> Vec<Piece> {
        let piece = |n_labels| Piece::new(self.width(), n_labels);
        let mut pieces: Vec<Piece> = self.labels.lengths().map(piece).collect();
        let place = |&label: &u32| self.places[label as usize];
        let seed = mix(self.facts.params.seed ^ number);
        let mut found = Vec::new();
        for row in 0..examples.len() as u32 {
            let i = row as usize;
            let own = examples.labels(row).iter().map(place);
            let hard = candidates.hard.get(i).iter().map(place);
            found.clear();
            found.extend(own.map(|place| (place, false)));
            found.extend(hard.map(|place| (place, true)));
            self.draw_negatives(mix(seed ^ !u64::from(row)), &mut found);
            // A row's own label comes before the same label as a negative.
            found.sort_unstable();
            found.dedup_by_key(|&mut (place, _)| place);
            for entries in found.chunk_by(|a, b| a.0 .0 == b.0 .0) {
                let group = entries[0].0 .0;
                let piece = &mut pieces[group as usize];
                let labels = |is_wanted: bool| -> Vec<u32> {
                    let wanted = entries.iter().filter(|entry| entry.1 == is_wanted);
                    wanted.map(|&((_, number), _)| number).collect()
                };
                piece.push(examples, row, &labels(false), &labels(true));
                if i < candidates.scored.len() {
                    let scored = candidates.scored.get(i).iter();
                    let placed = scored.map(|(label, score)| (place(label), *score));
                    let own = placed.filter(|&((of, _), _)| of == group);
                    (piece.scored).push(own.map(|((_, number), score)| (number, score)));
                    piece.fit.push(row);
                }
            }
        }
        pieces
    }

    /// Adds the random negatives of a row to the places of labels, marked as negatives.
    fn draw_negatives(&self, seed: u64, found: &mut Vec<((u32, u32), bool)>) {
        let visited: Vec<u32> = found.iter().map(|&((group, _), _)| group).collect();
        let (all, mut random) = (0..self.ends.len(), Pcg64Mcg::seed_from_u64(seed));
        let drawn: [u32; N_DRAWN] = from_fn(|_| self.draw(all.clone(), &mut random).0);
        for i in 0..self.facts.params.n_negatives {
            let place = self.draw(all.clone(), &mut random);
            if visited.contains(&place.0) {
                found.push((place, true));
            }
            let other = drawn[i % N_DRAWN];
            if !visited.contains(&other) {
                let of_group = self.labels.range(other as usize);
                found.push((self.draw(of_group, &mut random), true));
            }
        }
    }

    /// Returns a trainer of a group's scorers.
    pub(super) fn trainer<'a>(
        &'a self,
        group: usize,
        piece: &'a Piece,
        control: &'a Control,
    ) -> Result<Trainer<'a>> {
        let (examples, facts) = (&piece.examples, &self.facts);
        let counts = facts.counts.iter().map(|&n| n as usize);
        let weights = positive_weights(counts, facts.n_rows, facts.params.tail_weight)?;
        let labels = self.labels.get(group).iter();
        let fit_sample = FitSample::first(piece.fit.len());
        let (params, dense_columns) = (facts.params, &self.dense_columns);
        Ok(Trainer {
            choice: self.choice(),
            column_counts: Some((&facts.column_counts, facts.n_sampled)),
            positive_weights: labels.map(|&label| weights[label as usize]).collect(),
            has_one_label: self.ends.last() == Some(&(facts.n_rows as u64)),
            scored: piece.scored.clone(),
            negatives: Negatives::from_lists(&piece.negatives, examples.len(), examples.n_labels),
            duals: piece.duals.clone(),
            ..Trainer::new(params, examples, dense_columns, fit_sample, control)
        })
    }

    /// Mines negatives of the rows of a group. Returns them with the rows, and what each row of the
    /// fit gains with each of all settings.
    pub fn mine(
        &self,
        group: usize,
        pieces: impl Iterator<Item = Result<Piece>>,
        control: &Control,
    ) -> Result<(Piece, Vec<Vec<f64>>)> {
        let mut piece = self.joined(group, pieces)?;
        let mut trainer = self.trainer(group, &piece, control)?;
        trainer.mine_all()?;
        let settings = trainer.choice.all().into_iter();
        let gains = settings.map(trainer.gains()).collect::<Result<_>>()?;
        (piece.negatives, piece.duals) = (trainer.negatives.into_lists(), trainer.duals);
        Ok((piece, gains))
    }

    /// Joins pieces of one group. Only the first may have rows of the fit.
    pub(super) fn joined(
        &self,
        group: usize,
        pieces: impl Iterator<Item = Result<Piece>>,
    ) -> Result<Piece> {
        require(group < self.labels.len(), "there is no such group")?;
        let mut all = Piece::new(self.width(), self.labels.get(group).len());
        for piece in pieces {
            let piece = piece?;
            let sizes = |piece: &Piece| (piece.examples.width, piece.examples.n_labels);
            let is_first = all.examples.len() == 0;
            let is_mined = |piece: &Piece| piece.negatives.len() != piece.examples.len();
            let may_follow = piece.fit.is_empty() && !is_mined(&piece) && !is_mined(&all);
            let fits = sizes(&piece) == sizes(&all) && (is_first || may_follow);
            require(fits, "the pieces of a group do not match")?;
            if is_first {
                all = piece;
                continue;
            }
            for row in 0..piece.examples.len() as u32 {
                let (labels, negatives) = (piece.examples.labels(row), &piece.negatives);
                all.push(&piece.examples, row, labels, negatives.get(row as usize));
            }
        }
        Ok(all)
    }
}
