//! What the scorers learn of an example's way through the tree.
//!
//! Section 3.2 of the paper: with an indicator per node of the path, a linear
//! scorer can be as good as the tree itself.

use super::{Columns, Work};
use crate::learners::recall_tree::PathFeatures;
use crate::linear::{PathExample, Table, Weights};
use crate::tree::NodeId;

/// How far a node's indicator goes for each unit that the example goes.
const SHARE: f32 = 0.1;

/// The weights of what the path adds.
#[derive(Debug, Clone)]
pub enum OfPath {
    /// Nothing.
    None,
    /// Of the indicator of each node, by label.
    All(Columns),
    /// Of the indicator of the final node, by label.
    NodeOnly(Columns),
    /// Of the example, at each final node its own.
    Crossed(Crossed),
}

/// A scorer for every node and label that met.
#[derive(Debug, Clone, Default)]
pub struct Crossed {
    /// Per node, the number of each label's scorer, counted from 1.
    pub(in crate::learners::recall_tree) numbers: Vec<Table<u32>>,
    pub(in crate::learners::recall_tree) weights: Vec<Weights<f32>>,
}

impl OfPath {
    /// Nothing learned yet.
    pub fn new(features: PathFeatures) -> Self {
        match features {
            PathFeatures::None => Self::None,
            PathFeatures::All => Self::All(Columns::new(0)),
            PathFeatures::NodeOnly => Self::NodeOnly(Columns::new(0)),
            PathFeatures::Crossed => Self::Crossed(Crossed::default()),
        }
    }

    /// By how much all of this moves for each unit that the example's own part does.
    pub fn share(&self, path: &[NodeId]) -> f32 {
        match self {
            Self::None => 0.0,
            Self::All(_) => SHARE * (path.len() - 1) as f32,
            Self::NodeOnly(_) => SHARE,
            Self::Crossed(_) => 1.0,
        }
    }

    /// Adds its part to the scores of `candidates`.
    pub fn score(
        &self,
        example: &PathExample,
        candidates: &[u32],
        path: &[NodeId],
        work: &mut Work,
    ) {
        match self {
            Self::None => {}
            Self::All(columns) | Self::NodeOnly(columns) => {
                self.note(path, 1.0, work);
                work.places.set(candidates);
                columns.score(&work.nodes, &work.ones, &work.places, &mut work.scores);
            }
            Self::Crossed(crossed) => {
                let Some(numbers) = path.last().and_then(|node| crossed.numbers.get(node.at()))
                else {
                    return;
                };
                for (score, &label) in work.scores.iter_mut().zip(candidates) {
                    if let Some(&number) = numbers.get(label) {
                        *score += example.dot(&crossed.weights[number as usize - 1]);
                    }
                }
            }
        }
    }

    /// Goes as far as `work.steps` say.
    pub fn add(
        &mut self,
        example: &PathExample,
        candidates: &[u32],
        path: &[NodeId],
        width: usize,
        work: &mut Work,
    ) {
        self.note(path, SHARE * example.ppu(), work);
        match self {
            Self::None => {}
            Self::All(columns) | Self::NodeOnly(columns) => {
                let highest = work.nodes.iter().max();
                columns.reach(highest.map_or(0, |&node| node as usize + 1));
                columns.add(&work.nodes, &work.ones, candidates, &work.steps);
            }
            Self::Crossed(Crossed { numbers, weights }) => {
                let node = path.last().map_or(0, |node| node.at());
                if numbers.len() <= node {
                    numbers.resize(node + 1, Table::new());
                }
                for (&label, &step) in candidates.iter().zip(&work.steps) {
                    if step != 0.0 {
                        let number = numbers[node].entry(label);
                        if *number == 0 {
                            weights.push(Weights::default());
                            *number = weights.len() as u32;
                        }
                        let weights = &mut weights[*number as usize - 1];
                        example.add(step, weights, width);
                    }
                }
            }
        }
    }

    /// Writes the nodes with an indicator to `work.nodes`, `value` for each.
    fn note(&self, path: &[NodeId], value: f32, work: &mut Work) {
        work.nodes.clear();
        match self {
            // The root tells nothing.
            Self::All(_) => work.nodes.extend(path[1..].iter().rev().map(|node| node.0)),
            Self::NodeOnly(_) => work.nodes.extend(path.last().map(|node| node.0)),
            Self::None | Self::Crossed(_) => {}
        }
        work.ones.clear();
        work.ones.resize(work.nodes.len(), value);
    }
}
