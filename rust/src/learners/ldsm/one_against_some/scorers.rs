//! Trained scorers as an inverted index: for each feature the labels that have a weight for it.

use super::super::examples::Examples;
use super::super::join::Join;
use super::super::params::Params;
use super::super::tree::is_increasing;
use super::calibration::Calibration;
use super::lengths::inverse_length;
use super::svm::Scorer;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::persist;

/// The sparse scorers of all labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OneAgainstSome {
    /// The labels, increasing, that have a weight for a feature, and their weights.
    index: Ragged<(u32, f32)>,
    /// Weight of the constant by label; minus infinity for a label without examples.
    biases: Vec<f32>,
    /// What the join adds to the trees' score.
    floor: f32,
    /// How the join weighs the scorers' loss.
    weight: f32,
    /// How joined scores become probabilities: a [`Calibration`].
    offset: f32,
    slope: f32,
    /// How the scorers' features were scaled.
    idf_power: f64,
}

persist!(OneAgainstSome {
    Nest index;
    Columns biases;
    Meta floor;
    Meta weight;
    Meta offset;
    Meta slope;
    Meta idf_power;
});

impl OneAgainstSome {
    pub const KIND: &'static str = "one_against_some";

    /// From the scorer of each label; those of labels without examples are missing.
    pub fn new(scorers: &[Option<Scorer>], examples: &Examples) -> Self {
        let mut lists = Ragged::with_capacity(scorers.len(), 0);
        for scorer in scorers {
            let weights = scorer.iter().flat_map(|scorer| &scorer.weights);
            lists.push(weights.copied());
        }
        let place = |label, &(column, weight): &(u32, f32)| (column, (label, weight));
        let bias = |scorer: &Option<Scorer>| match scorer {
            Some(scorer) => scorer.bias,
            None => f32::NEG_INFINITY,
        };
        Self {
            index: lists.regroup(examples.width - 1, place),
            biases: scorers.iter().map(bias).collect(),
            ..Self::default()
        }
    }

    pub fn set_join(&mut self, (floor, weight): (f32, f32)) {
        (self.floor, self.weight) = (floor, weight);
    }

    pub fn set_idf_power(&mut self, idf_power: f64) {
        self.idf_power = idf_power;
    }

    /// The power of inverse document frequencies that scaled the features in training; the
    /// weights have the scales in them.
    pub fn idf_power(&self) -> f64 {
        self.idf_power
    }

    pub fn set_calibration(&mut self, calibration: Calibration) {
        (self.offset, self.slope) = (calibration.offset, calibration.slope);
    }

    /// How joined scores become probabilities.
    pub fn calibration(&self) -> Calibration {
        Calibration {
            offset: self.offset,
            slope: self.slope,
        }
    }

    /// How margins are joined; a `scorer_weight` that is given replaces the fitted one.
    pub fn join(&self, params: &Params) -> Join {
        Join {
            floor: self.floor,
            weight: params.scorer_weight.map_or(self.weight, |b| b as f32),
        }
    }

    /// Weights that are not 0, constants left out.
    pub fn n_weights(&self) -> usize {
        self.index.entries().len()
    }

    /// Weights for a feature, on average.
    pub fn weights_each(&self) -> usize {
        self.n_weights() / self.index.len().max(1) + 1
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        self.put(&mut bundle);
        bundle
    }

    /// From a file, for rows of `width` columns, the constant among them.
    pub fn take(bundle: &mut Bundle, n_classes: usize, width: usize) -> Result<Self> {
        bundle.expect_kind(Self::KIND)?;
        let mut scorers = Self::default();
        scorers.fill(bundle)?;
        let labels = |i| scorers.index.get(i).iter().map(|&(label, _)| label);
        let is_number = |x: f64| x.is_finite() && x >= 0.0;
        let is_join = |x: f32| is_number(x.into());
        let is_sound = scorers.biases.len() == n_classes
            && scorers.index.len() + 1 == width
            && (0..width - 1).all(|i| is_increasing(labels(i), n_classes))
            && scorers
                .index
                .entries()
                .iter()
                .all(|(_, weight)| weight.is_finite())
            && scorers.biases.iter().all(|&bias| bias < f32::INFINITY)
            && is_join(scorers.floor)
            && is_join(scorers.weight)
            && is_number(scorers.idf_power)
            && scorers.calibration().is_sound();
        if !is_sound {
            return Err(bundle.damaged("the scorers are of another shape or out of range"));
        }
        Ok(scorers)
    }
}

/// The margins of one row after the other.
#[derive(Debug)]
pub struct IndexMargins<'a> {
    scorers: &'a OneAgainstSome,
    /// The margins by label, without their constants; NaN where no scorer has a weight for a
    /// feature of the row.
    margins: Vec<f32>,
    /// The other labels: the first `n_touched` of these. There is an entry more than labels.
    touched: Vec<u32>,
    n_touched: usize,
    /// A zero for every column.
    spread: Vec<f64>,
}

impl<'a> IndexMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome) -> Self {
        let n_labels = scorers.biases.len();
        Self {
            scorers,
            margins: vec![f32::NAN; n_labels],
            touched: vec![0; n_labels + 1],
            n_touched: 0,
            spread: vec![0.0; scorers.index.len()],
        }
    }

    /// Computes the margins of a row, whose constant comes last.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        for &label in &self.touched[..self.n_touched] {
            self.margins[label as usize] = f32::NAN;
        }
        let inverse_length = inverse_length(row, &mut self.spread);
        let n = row.0.len() - 1;
        let mut n_touched = 0;
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            let x = x * inverse_length;
            for &(label, weight) in self.scorers.index.get(column as usize) {
                let margin = &mut self.margins[label as usize];
                // Whether a label is met for the first time is hard to foretell, so there is
                // no branch: it is always noted, and only kept if it is new.
                self.touched[n_touched] = label;
                n_touched += usize::from(margin.is_nan());
                let before = if margin.is_nan() { 0.0 } else { *margin };
                *margin = before + x * weight;
            }
        }
        self.n_touched = n_touched;
    }

    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        let margin = self.margins[label as usize];
        let product = if margin.is_nan() { 0.0 } else { margin };
        product + self.scorers.biases[label as usize]
    }

    /// The labels that have a weight for a feature of the row, and their margins; in an order
    /// that the row alone decides.
    pub fn touched(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let labels = self.touched[..self.n_touched].iter();
        labels.map(|&label| {
            let (margin, bias) = (&self.margins, &self.scorers.biases);
            (label, margin[label as usize] + bias[label as usize])
        })
    }
}
