//! The scorers of a group of labels: their training after mining, and their join to those of all
//! labels.

use super::choose::Settings;
use super::dense::{DenseColumns, DenseWeights};
use super::fit::{FitMargins, FitSample};
use super::groups::Groups;
use super::layout::{Layout, WeightCounts};
use super::pieces::Piece;
use super::rank::OneAgainstSome;
use super::train::HeldOut;
use super::weights::LabelWeights;
use crate::control::Control;
use crate::data::{Examples, PackedLists};
use crate::error::{require, Result};
use crate::file::{Bundle, Columns, Persist, Record};

/// The scorers of some labels.
#[derive(Debug, Default)]
pub struct GroupScorers {
    /// Name of the model, which all its parts have.
    pub model: String,
    /// The labels, increasing.
    pub labels: Vec<u32>,
    /// Scorers of these labels. Join and calibration are those of all labels together.
    pub scorers: OneAgainstSome,
    /// By label, rows of the fit and their margins by a scorer that is trained without them.
    pub held_out: Vec<HeldOut>,
}

impl Persist for GroupScorers {
    fn put(&self, bundle: &mut Bundle) {
        bundle.put_meta("model", &self.model);
        bundle.put_meta("width", &(self.scorers.weights.n_features + 1));
        Columns::put(&self.labels, "labels", bundle);
        Columns::put(&self.held_out, "held_out", bundle);
        bundle.nest("scorers", self.scorers.to_bundle());
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        let width: usize = bundle.take_meta("width")?;
        self.model = bundle.take_meta("model")?;
        self.labels = bundle.take("labels")?;
        self.held_out = Record::take(None, "held_out", bundle)?;
        let is_sound = width > 0
            && self.labels.is_sorted_by(|a, b| a < b)
            && [0, self.labels.len()].contains(&self.held_out.len());
        bundle.require(is_sound, "its labels and scorers do not match")?;
        let mut scorers = bundle.unnest("scorers")?;
        self.scorers = OneAgainstSome::take(&mut scorers, self.labels.len(), width)?;
        Ok(())
    }
}

impl GroupScorers {
    /// Creates the scorers of `labels`, increasing, with these weights and no join yet.
    pub fn new(labels: &[u32], weights: LabelWeights) -> Self {
        let labels = labels.to_vec();
        let scorers = OneAgainstSome {
            weights,
            ..OneAgainstSome::default()
        };
        Self {
            labels,
            scorers,
            ..Self::default()
        }
    }
}

impl LabelWeights {
    /// Joins weights for the same columns. `places` has for each label its part and its number there.
    pub fn join(parts: &[&Self], places: &[(u32, u32)], (threshold, bits): Layout) -> Result<Self> {
        let first = parts[0];
        let columns = |part: &Self| (part.n_features, part.dense.columns.columns().to_vec());
        let are_alike = parts.iter().all(|part| columns(part) == columns(first));
        require(are_alike, "the scorers of groups have other columns")?;
        let mut dense = DenseWeights::new(&first.dense.columns, places.len());
        let (mut lists, mut biases) = (Vec::new(), Vec::new());
        for (label, &(part, i)) in places.iter().enumerate() {
            let (part, i) = (parts[part as usize], i as usize);
            lists.push(part.lists.list(i));
            biases.push(part.biases[i]);
            dense.copy(label, &part.dense, i);
        }
        let mut joined = Self::default();
        (joined.index_threshold, joined.n_features) = (threshold, first.n_features);
        joined.lists = PackedLists::with_bits(&lists, 1, first.n_features, bits)?;
        (joined.biases, joined.dense) = (biases.into(), dense);
        Ok(joined)
    }
}

impl OneAgainstSome {
    /// Returns these scorers, which have no weights yet, with those of `parts`, which have each label
    /// once.
    pub fn with_parts(&self, parts: &[GroupScorers]) -> Result<Self> {
        let mut places = vec![(u32::MAX, 0); self.weights.biases.len()];
        for (part, GroupScorers { labels, .. }) in (0..).zip(parts) {
            for (number, &label) in (0..).zip(labels) {
                if let Some(place) = places.get_mut(label as usize) {
                    *place = (part, number);
                }
            }
        }
        let n_labels: usize = parts.iter().map(|part| part.labels.len()).sum();
        let is_placed = |&(part, _): &(u32, u32)| part < u32::MAX;
        let are_complete = n_labels == places.len() && places.iter().all(is_placed);
        require(are_complete, "the scorers of a group are missing")?;
        let weights: Vec<&LabelWeights> = parts.iter().map(|part| &part.scorers.weights).collect();
        let is_same = weights[0].n_features == self.weights.n_features;
        require(is_same, "the scorers of groups have other columns")?;
        Ok(Self {
            weights: LabelWeights::join(&weights, &places, weights[0].layout())?,
            ..self.clone()
        })
    }
}

impl Groups {
    /// Trains the scorers of a group with these settings, on its rows after mining. Returns them and
    /// counts of their weights.
    pub fn train(
        &self,
        group: usize,
        mined: Piece,
        settings: Settings,
        fit: &Piece,
        control: &Control,
    ) -> Result<(GroupScorers, WeightCounts)> {
        let piece = self.joined(group, [Ok(mined)].into_iter())?;
        let trainer = self.trainer(group, &piece, control)?;
        let fit = self.checked_fit(fit)?;
        let solved = trainer.solve_last(settings)?.into_iter();
        let (scorers, mut held_out): (Vec<_>, Vec<HeldOut>) = solved.unzip();
        for (row, _) in held_out.iter_mut().flatten() {
            *row = piece.fit[*row as usize];
        }
        let scorers = scorers.into_iter().map(Some);
        let weights = LabelWeights::new(scorers, &self.dense_columns, &piece.examples)?;
        let (labels, rows_with) = (self.labels.get(group), fit.column_counts());
        let counts = WeightCounts::new(&weights.lists, labels.len(), &rows_with);
        let mut part = GroupScorers::new(labels, weights);
        part.held_out = held_out;
        Ok((part, counts))
    }

    /// Returns the rows of the fit, which must have the columns and labels of these groups.
    fn checked_fit<'f>(&self, fit: &'f Piece) -> Result<&'f Examples> {
        let is_complete = fit.fit.len() == fit.examples.len();
        let is_sound = self.fits(&fit.examples) && is_complete;
        require(is_sound, "the rows of the fit do not match the groups").map(|()| &fit.examples)
    }

    /// Returns the layout of all scorers from the counts of each group.
    pub fn layout(&self, fit: &Piece, counts: &[WeightCounts]) -> Result<Layout> {
        let examples = self.checked_fit(fit)?;
        let mut all = WeightCounts::default();
        counts.iter().for_each(|counts| all.add(counts));
        let (threshold, bits) = all.layout(&examples.column_counts(), examples.len());
        let has_dense = !self.dense_columns.is_empty();
        Ok((threshold.filter(|_| !has_dense), bits))
    }

    /// Returns the scorers of a group in this layout, and their margins for the rows of the fit.
    pub fn margins(
        &self,
        group: usize,
        part: GroupScorers,
        layout: Layout,
        fit: &Piece,
    ) -> Result<(GroupScorers, FitMargins)> {
        require(group < self.labels.len(), "there is no such group")?;
        let (examples, labels) = (self.checked_fit(fit)?, self.labels.get(group));
        let weights = part.scorers.weights;
        let rows = part.held_out.iter().flatten().map(|&(row, _)| row as usize);
        let is_sound = labels == part.labels
            && part.held_out.len() == labels.len()
            && rows.max().is_none_or(|last| last < examples.len())
            && weights.n_features + 1 == self.width()
            && weights.dense.columns.columns() == self.dense_columns.columns();
        require(is_sound, "the scorers do not match the rows of the fit")?;
        let numbers: Vec<(u32, u32)> = (0..labels.len() as u32).map(|i| (0, i)).collect();
        let weights = LabelWeights::join(&[&weights], &numbers, layout)?;
        let scored = fit.scored.filter_map(|&(label, score)| {
            let (of, number) = self.places[label as usize];
            (of as usize == group).then_some((number, score))
        });
        let held_out = part.held_out.iter().map(Vec::as_slice);
        let sample = FitSample::first(examples.len());
        let mut margins = sample.margins(&weights, examples, &scored, held_out);
        for lists in [&mut margins.found, &mut margins.margins] {
            *lists = lists.filter_map(|&(number, x)| Some((labels[number as usize], x)));
        }
        Ok((GroupScorers::new(labels, weights), margins))
    }

    /// Returns join and calibration, as scorers of all labels that have no weights yet, from the
    /// margins of all groups for the rows of the fit.
    pub fn join(
        &self,
        fit: &Piece,
        parts: &[FitMargins],
        (power, cost): Settings,
    ) -> Result<GroupScorers> {
        let examples = self.checked_fit(fit)?;
        let is_complete =
            |part: &FitMargins| [part.found.len(), part.margins.len()] == [examples.len(); 2];
        let are_complete = parts.len() == self.labels.len() && parts.iter().all(is_complete);
        require(are_complete, "the scorers of a group are missing")?;
        let rows = FitSample::first(examples.len()).candidates(examples, &fit.scored, parts);
        let labels: Vec<u32> = (0..self.places.len() as u32).collect();
        let none = labels.iter().map(|_| None);
        let weights = LabelWeights::new(none, &DenseColumns::default(), examples)?;
        let mut join = GroupScorers::new(&labels, LabelWeights::default());
        join.scorers = OneAgainstSome::fit(weights, &rows, power, cost);
        Ok(join)
    }
}
