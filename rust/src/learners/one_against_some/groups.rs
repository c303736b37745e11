//! Training in groups of labels, for rows that lie in several places.
//!
//! Each place sends a group the rows that have one of its labels or are a negative of one, as a
//! [`Piece`]. So no place holds all rows, and groups are trained side by side. A row's random
//! negatives come from the groups that it visits anyway and from a few that are drawn: each label meets
//! as many of them as if they were drawn from all labels. Negatives are mined within a group.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::choose::{Choice, Settings};
use super::dense::DenseColumns;
use super::fit::FitSample;
use super::negatives::{Candidates, Negatives};
use super::pieces::{are_below, GroupScorers, Piece};
use super::rank::OneAgainstSome;
use super::rows::DistinctRows;
use super::svm::Scorer;
use super::train::{positive_weights, HeldOut, ScorerParams, Trainer};
use super::weights::LabelWeights;
use crate::control::Control;
use crate::data::{Examples, Ragged};
use crate::error::{Error, Result};
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
} check is_sound);

impl GroupFacts {
    /// Returns an error if facts do not match.
    fn is_sound(&self) -> Result<()> {
        let is_sound = self.groups.len() == self.counts.len()
            && self.n_groups <= self.groups.len()
            && self
                .groups
                .iter()
                .all(|&group| (group as usize) < self.n_groups)
            && self.counts.iter().any(|&n| n > 0)
            && self.mean_weight > 0.0
            && !self.column_counts.is_empty()
            && are_below(self.column_counts.len() - 1, &self.dense);
        is_sound
            .then_some(())
            .ok_or_else(|| Error::data("labels, groups and counts do not match"))
    }
}

/// Groups of labels, ready for use.
#[derive(Debug)]
pub struct Groups {
    pub facts: GroupFacts,
    /// The group of each label, and its number there.
    places: Vec<(u32, u32)>,
    /// The labels of each group, increasing.
    labels: Ragged<u32>,
    /// For each label in the order of `labels`, how many labels all rows have up to it.
    ends: Vec<u64>,
    dense_columns: DenseColumns,
}

impl Groups {
    pub fn new(facts: GroupFacts) -> Result<Self> {
        facts.is_sound()?;
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
        Ok(Self {
            ends: labels.entries().iter().map(add).collect(),
            places,
            labels,
            dense_columns: DenseColumns::new(&facts.dense, facts.column_counts.len() - 1),
            facts,
        })
    }

    pub fn has_dense_columns(&self) -> bool {
        !self.dense_columns.is_empty()
    }

    fn width(&self) -> usize {
        self.facts.column_counts.len()
    }

    /// Returns the settings to choose from, as for a training on the sample: with fewer rows of the
    /// fit, more labels are compared on.
    fn choice(&self, cost: Option<f64>) -> Choice {
        let n_values = (self.facts.column_counts.iter()).map(|&n| n as usize).sum();
        let (rows, columns) = (
            (self.facts.n_sampled, n_values),
            (self.dense_columns.len(), self.width()),
        );
        Choice::new(cost, self.places.len(), rows, columns)
    }

    /// Returns the settings that suit most, by the gains of rows in each group with each of all
    /// settings; no gains of groups without rows.
    pub fn choose(&self, params: ScorerParams, gains: &[Vec<Vec<f64>>]) -> Result<Settings> {
        let choice = self.choice(params.cost);
        let all = choice.all();
        let mut found = gains.iter().filter(|gains| !gains.is_empty());
        if !found.all(|gains| gains.len() == all.len()) {
            return Err(Error::data("gains and settings do not match"));
        }
        choice.best(|settings| {
            let at = all.iter().position(|&each| each == settings);
            let of_group = |gains: &Vec<Vec<f64>>| at.and_then(|at| gains.get(at)).cloned();
            Ok(gains.iter().filter_map(of_group).flatten().collect())
        })
    }

    /// Returns whether rows have these columns and labels.
    pub fn fits(&self, examples: &Examples) -> bool {
        (examples.width, examples.n_labels) == (self.width(), self.places.len())
    }

    /// Returns the place of a label of all, or of a group, drawn by its frequency.
    fn draw(&self, group: Option<u32>, random: &mut Pcg64Mcg) -> (u32, u32) {
        let range = group.map_or(0..self.ends.len(), |group| {
            self.labels.range(group as usize)
        });
        let before = |place: usize| place.checked_sub(1).map_or(0, |last| self.ends[last]);
        let drawn = random.random_range(before(range.start)..before(range.end));
        let label = self.labels.entries()[self.ends.partition_point(|&end| end <= drawn)];
        self.places[label as usize]
    }

    /// Returns the pieces of all groups, from `examples` that fit, with these candidates.
    pub fn divide(
        &self,
        examples: &Examples,
        fit_sample: FitSample,
        candidates: &Candidates,
        params: &ScorerParams,
    ) -> Vec<Piece> {
        let piece = |n_labels| Piece::new(self.width(), n_labels);
        let mut pieces: Vec<Piece> = self.labels.lengths().map(piece).collect();
        let place = |&label: &u32| self.places[label as usize];
        let rows = 0..examples.len() as u32;
        let (fit, others): (Vec<u32>, Vec<u32>) = rows.partition(|&row| fit_sample.contains(row));
        let (mut found, mut is_visited) = (Vec::new(), vec![false; pieces.len()]);
        for (i, &row) in fit.iter().chain(&others).enumerate() {
            let own = examples.labels(row).iter().map(place);
            let hard = candidates.hard.get(row as usize).iter().map(place);
            found.clear();
            found.extend(own.map(|place| (place, false)));
            found.extend(hard.map(|place| (place, true)));
            is_visited.fill(false);
            (found.iter()).for_each(|&((group, _), _)| is_visited[group as usize] = true);
            self.draw_negatives(row, &is_visited, params, &mut found);
            // A row's own label comes before the same label as a negative.
            found.sort_unstable();
            found.dedup_by_key(|&mut (place, _)| place);
            for entries in found.chunk_by(|a, b| a.0 .0 == b.0 .0) {
                let group = entries[0].0 .0;
                let piece = &mut pieces[group as usize];
                let labels = |is_wanted: bool| {
                    let wanted = entries.iter().filter(move |entry| entry.1 == is_wanted);
                    wanted.map(|&((_, number), _)| number)
                };
                piece.push(examples, row, labels(false), labels(true));
                if i < fit.len() {
                    let scored = candidates.scored.get(i).iter();
                    let placed = scored.map(|(label, score)| (place(label), *score));
                    let own = placed.filter(|&((of, _), _)| of == group);
                    (piece.scored).push(own.map(|((_, number), score)| (number, score)));
                    piece.fit.push(i as u32);
                }
            }
        }
        pieces
    }

    /// Adds the random negatives of a row.
    fn draw_negatives(
        &self,
        row: u32,
        is_visited: &[bool],
        params: &ScorerParams,
        found: &mut Vec<Entry>,
    ) {
        let mut random = Pcg64Mcg::seed_from_u64(mix(params.seed ^ !u64::from(row)));
        let drawn: [u32; N_DRAWN] = std::array::from_fn(|_| self.draw(None, &mut random).0);
        for i in 0..params.n_negatives {
            let place = self.draw(None, &mut random);
            if is_visited[place.0 as usize] {
                found.push((place, true));
            }
            let other = drawn[i % N_DRAWN];
            if !is_visited[other as usize] {
                found.push((self.draw(Some(other), &mut random), true));
            }
        }
    }

    fn trainer<'a>(
        &'a self,
        group: usize,
        piece: &'a Piece,
        params: ScorerParams,
        control: &'a Control,
    ) -> Result<Trainer<'a>> {
        let (examples, fit_sample) = (&piece.examples, FitSample::first(piece.fit.len()));
        let by_label =
            |lists: &Ragged<u32>| lists.regroup(examples.n_labels, |row, &label| (label, row));
        let counts = self.facts.counts.iter().map(|&n| n as usize);
        let weights = positive_weights(counts, self.facts.n_rows, params.tail_weight)?;
        let labels = self.labels.get(group).iter();
        let mut negatives = Negatives::default();
        for round in 0..piece.negatives.len() / examples.len().max(1) {
            let mut lists = Ragged::default();
            for row in 0..examples.len() {
                let list = piece.negatives.get(round * examples.len() + row);
                lists.push(list.iter().copied());
            }
            negatives.push(lists, examples.n_labels);
        }
        Ok(Trainer {
            params,
            choice: self.choice(params.cost),
            examples,
            column_counts: Some((&self.facts.column_counts, self.facts.n_sampled)),
            positives: by_label(&examples.labels),
            positive_weights: labels.map(|&label| weights[label as usize]).collect(),
            has_one_label: self.ends.last() == Some(&(self.facts.n_rows as u64)),
            fit_sample,
            distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
            dense_columns: &self.dense_columns,
            scored: piece.scored.clone(),
            negatives,
            duals: piece.duals.clone(),
            is_parallel: false,
            control,
        })
    }

    /// Mines negatives of the rows of a group. Returns them with the rows, and what each row of the
    /// fit gains with each of all settings.
    pub fn mine(
        &self,
        group: usize,
        pieces: impl Iterator<Item = Result<Piece>>,
        params: ScorerParams,
        control: &Control,
    ) -> Result<(Piece, Vec<Vec<f64>>)> {
        let mut piece = self.joined(group, pieces)?;
        let mut trainer = self.trainer(group, &piece, params, control)?;
        trainer.mine_all()?;
        let settings = trainer.choice.all().into_iter();
        let gains = settings.map(trainer.gains()).collect::<Result<_>>()?;
        let Trainer {
            negatives, duals, ..
        } = trainer;
        (piece.negatives, piece.duals) = (negatives.into_lists(), duals);
        Ok((piece, gains))
    }

    /// Trains the scorers of a group with these settings, on its rows after mining.
    pub fn train(
        &self,
        group: usize,
        mined: Option<Piece>,
        params: ScorerParams,
        settings: Settings,
        control: &Control,
    ) -> Result<GroupScorers> {
        let piece = self.joined(group, mined.into_iter().map(Ok))?;
        let trainer = self.trainer(group, &piece, params, control)?;
        let solved = trainer.solve_last(settings)?;
        let numbered = |(scorer, held_out): (Option<Scorer>, HeldOut)| {
            let rows = held_out.iter();
            let numbers = rows.map(|&(row, margin)| (piece.fit[row as usize], margin));
            (scorer.unwrap_or_else(Scorer::none), numbers.collect())
        };
        Ok(GroupScorers {
            scorers: solved.into_iter().map(numbered).collect(),
        })
    }

    /// Joins pieces of one group. Only the first may have rows of the fit.
    fn joined(&self, group: usize, pieces: impl Iterator<Item = Result<Piece>>) -> Result<Piece> {
        if group >= self.labels.len() {
            return Err(Error::data("there is no such group"));
        }
        let mut all = Piece::new(self.width(), self.labels.get(group).len());
        for piece in pieces {
            let piece = piece?;
            let sizes = |piece: &Piece| (piece.examples.width, piece.examples.n_labels);
            let is_first = all.examples.len() == 0;
            let is_mined = |piece: &Piece| piece.negatives.len() != piece.examples.len();
            let may_follow = piece.fit.is_empty() && !is_mined(&piece) && !is_mined(&all);
            if sizes(&piece) != sizes(&all) || !(is_first || may_follow) {
                return Err(Error::data("the pieces of a group do not match"));
            }
            if is_first {
                all = piece;
                continue;
            }
            for row in 0..piece.examples.len() as u32 {
                let (labels, negatives) = (piece.examples.labels(row), &piece.negatives);
                let negatives = negatives.get(row as usize).iter().copied();
                all.push(&piece.examples, row, labels.iter().copied(), negatives);
            }
        }
        Ok(all)
    }

    /// Joins the scorers of all groups. Join and calibration are fitted to the rows of the fit, with
    /// these candidates.
    pub fn join(
        &self,
        parts: &[GroupScorers],
        fit: &Examples,
        scored: &Ragged<(u32, f32)>,
        (power, cost): Settings,
    ) -> Result<OneAgainstSome> {
        let sizes = parts.iter().map(|part| part.scorers.len());
        if !sizes.eq(self.labels.lengths()) {
            return Err(Error::data("the scorers of a group are missing"));
        }
        let place = |&(group, number): &(u32, u32)| {
            let (scorer, held_out) = &parts[group as usize].scorers[number as usize];
            (scorer, &held_out[..])
        };
        let all: Vec<_> = self.places.iter().map(place).collect();
        let n_dense = self.dense_columns.len();
        let is_sound = |(scorer, held_out): &(&Scorer, &[(u32, f32)])| {
            let columns: Vec<u32> = scorer.weights.iter().map(|&(column, _)| column).collect();
            are_below(self.width() - 1, &columns)
                && (scorer.dense.len() >= n_dense || scorer.bias == f32::NEG_INFINITY)
                && held_out.iter().all(|&(row, _)| (row as usize) < fit.len())
        };
        if !self.fits(fit) || !all.iter().all(is_sound) {
            return Err(Error::data("the scorers do not match the rows of the fit"));
        }
        let scorers = all.iter().map(|&(scorer, _)| Some(scorer.clone()));
        let weights = LabelWeights::new(scorers, &self.dense_columns, fit)?;
        let held_out = all.iter().map(|&(_, held_out)| held_out);
        let rows = FitSample::first(fit.len()).read(&weights, fit, scored, held_out);
        Ok(OneAgainstSome::fit(weights, &rows, power, cost))
    }
}

/// The place of a label, and whether a row is a negative of it.
type Entry = ((u32, u32), bool);
