//! Trained scorers as an inverted index: for each feature the labels that have a weight for it.

use super::super::examples::Examples;
use super::super::join::Join;
use super::super::params::{Params, ScorerLoss};
use super::super::tree::is_increasing;
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
}

persist!(OneAgainstSome {
    Nest index;
    Columns biases;
    Meta floor;
    Meta weight;
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
            floor: 0.0,
            weight: 0.0,
        }
    }

    pub fn set_join(&mut self, (floor, weight): (f32, f32)) {
        (self.floor, self.weight) = (floor, weight);
    }

    /// How margins are joined; a `scorer_weight` that is given replaces the fitted one.
    pub fn join(&self, params: &Params) -> Join {
        Join {
            loss: ScorerLoss::SquaredHinge,
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
        let mut scorers = Self::default();
        scorers.fill(bundle)?;
        let labels = |i| scorers.index.get(i).iter().map(|&(label, _)| label);
        let is_join = |x: f32| x.is_finite() && x >= 0.0;
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
            && is_join(scorers.weight);
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
    /// By label; NaN where no scorer has a weight for a feature of the row.
    margins: Vec<f32>,
    /// The other labels.
    touched: Vec<u32>,
    /// A zero for every column.
    spread: Vec<f64>,
}

impl<'a> IndexMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome) -> Self {
        Self {
            scorers,
            margins: vec![f32::NAN; scorers.biases.len()],
            touched: Vec::new(),
            spread: vec![0.0; scorers.index.len()],
        }
    }

    /// Computes the margins of a row, whose constant comes last.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        for label in self.touched.drain(..) {
            self.margins[label as usize] = f32::NAN;
        }
        let inverse_length = inverse_length(row, &mut self.spread);
        let n = row.0.len() - 1;
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            let x = x * inverse_length;
            for &(label, weight) in self.scorers.index.get(column as usize) {
                let margin = &mut self.margins[label as usize];
                if margin.is_nan() {
                    self.touched.push(label);
                    *margin = self.scorers.biases[label as usize];
                }
                *margin += x * weight;
            }
        }
    }

    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        let margin = self.margins[label as usize];
        if margin.is_nan() {
            self.scorers.biases[label as usize]
        } else {
            margin
        }
    }

    /// The labels that have a weight for a feature of the row, and their margins; in an order
    /// that the row alone decides.
    pub fn touched(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let labels = self.touched.iter();
        labels.map(|&label| (label, self.margins[label as usize]))
    }
}
