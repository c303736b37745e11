//! What the [steps](super::steps) of a training hand on to one another: each part can be sent as
//! bytes.

use std::sync::Arc;

use super::ensemble::Ldsm;
use super::one_against_some::label_problems::{HeldOutMargins, LabelBlock, Solved};
use super::one_against_some::mining::ShortIndex;
use super::one_against_some::negatives::NegativesRound;
use super::one_against_some::svm::Scorer;
use crate::classifier::{Classifier, Learner};
use crate::data::Ragged;
use crate::error::{Error, Result};
use crate::file::{Bundle, Columns, Nest, Persist};

/// Labels and their scores or margins, for each of many rows.
pub type ScoredRows = Vec<Vec<(u32, f32)>>;

/// The outcome of a step.
#[derive(Debug)]
pub enum Part {
    /// Some or all trees: a model that has nothing else.
    Trees(Box<Ldsm>),
    /// Labels that the rows of a block become negative examples of.
    NegativesOfRows(Ragged<u32>),
    /// Those of all rows in a round.
    Negatives(Arc<NegativesRound>),
    /// What trees find for the rows that the join is fitted on.
    Candidates(ScoredRows),
    /// The scorers of a block of labels, without dual variables.
    Scorers(LabelBlock, Solved),
    /// The dual variables of a block of labels.
    Duals(Vec<Vec<f32>>),
    /// The scorers of all labels by feature.
    Index(Box<ShortIndex>),
}

const NEGATIVES_OF_ROWS: &str = "ldsm_negatives_of_rows";
const NEGATIVES: &str = "ldsm_negatives";
const CANDIDATES: &str = "ldsm_candidates";
const SCORERS: &str = "ldsm_scorers";
const DUALS: &str = "ldsm_duals";
const INDEX: &str = "ldsm_index";

impl Part {
    /// What it is, in files and messages.
    fn kind(&self) -> &'static str {
        match self {
            Self::Trees(_) => Ldsm::KIND,
            Self::NegativesOfRows(_) => NEGATIVES_OF_ROWS,
            Self::Negatives(_) => NEGATIVES,
            Self::Candidates(_) => CANDIDATES,
            Self::Scorers(..) => SCORERS,
            Self::Duals(_) => DUALS,
            Self::Index(_) => INDEX,
        }
    }

    /// The error for a part where one of another kind is needed.
    pub fn unexpected(&self) -> Error {
        let kind = self.kind();
        Error::data(format!("{kind} are not what this step works on"))
    }

    /// Bytes that it holds, about: those of its numbers.
    pub fn n_bytes(&self) -> usize {
        const ENTRY: usize = size_of::<(u32, f32)>();
        let of_rows =
            |rows: &[Vec<(u32, f32)>]| -> usize { rows.iter().map(|row| ENTRY * row.len()).sum() };
        match self {
            Self::Trees(_) => self.to_bundle().n_bytes(),
            Self::NegativesOfRows(labels) => size_of_val(&**labels.entries()),
            Self::Negatives(round) => 2 * size_of_val(&**round.labels().entries()),
            Self::Candidates(rows) => of_rows(rows),
            Self::Scorers(_, solved) => {
                let scorers = solved.scorers.iter().flatten();
                let weights =
                    scorers.map(|scorer| size_of_val(scorer) + ENTRY * scorer.weights.len());
                weights.sum::<usize>() + of_rows(&solved.held_out)
            }
            Self::Duals(duals) => duals.iter().map(|list| size_of::<f32>() * list.len()).sum(),
            Self::Index(index) => ENTRY * index.n_weights(),
        }
    }

    /// To be sent.
    pub fn to_bundle(&self) -> Bundle {
        if let Self::Trees(trees) = self {
            return trees.to_bundle();
        }
        let mut bundle = Bundle::new(self.kind());
        match self {
            Self::Trees(_) => {}
            Self::NegativesOfRows(labels) => labels.put(&mut bundle),
            Self::Negatives(round) => {
                round.labels().put(&mut bundle);
                bundle.put_meta("n_labels", &round.n_labels());
            }
            Self::Candidates(rows) => Columns::put(rows, "candidates", &mut bundle),
            Self::Scorers(block, solved) => {
                bundle.put_meta("block", &(block.first, block.step, block.len));
                put_scorers(solved, &mut bundle);
            }
            Self::Duals(duals) => Columns::put(duals, "duals", &mut bundle),
            Self::Index(index) => Nest::put(&**index, "index", &mut bundle),
        }
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let kind = bundle.kind().to_owned();
        Ok(match &kind[..] {
            Ldsm::KIND => Self::Trees(Ldsm::from_bundle(bundle)?.into()),
            NEGATIVES_OF_ROWS => Self::NegativesOfRows(lists(&mut bundle)?),
            NEGATIVES => {
                let (labels, n_labels) = (lists(&mut bundle)?, bundle.take_meta("n_labels")?);
                if labels.entries().iter().any(|&l| l as usize >= n_labels) {
                    return Err(bundle.damaged("there are not so many labels"));
                }
                Self::Negatives(NegativesRound::new(labels, n_labels).into())
            }
            CANDIDATES => {
                let mut rows = ScoredRows::new();
                Columns::fill(&mut rows, "candidates", &mut bundle)?;
                Self::Candidates(rows)
            }
            SCORERS => {
                let (first, step, len) = bundle.take_meta("block")?;
                let solved = take_scorers(&mut bundle)?;
                if solved.scorers.len() != len {
                    return Err(bundle.damaged("the scorers are of another number"));
                }
                Self::Scorers(LabelBlock { first, step, len }, solved)
            }
            DUALS => {
                let mut duals = Vec::new();
                Columns::fill(&mut duals, "duals", &mut bundle)?;
                Self::Duals(duals)
            }
            INDEX => {
                let mut index = ShortIndex::default();
                Nest::fill(&mut index, "index", &mut bundle)?;
                Self::Index(index.into())
            }
            _ => return Err(bundle.damaged(format_args!("unknown kind {kind:?}"))),
        })
    }
}

fn lists(bundle: &mut Bundle) -> Result<Ragged<u32>> {
    let mut lists = Ragged::default();
    lists.fill(bundle)?;
    Ok(lists)
}

fn put_scorers(solved: &Solved, bundle: &mut Bundle) {
    let known: Vec<bool> = solved.scorers.iter().map(Option::is_some).collect();
    let scorers = solved.scorers.iter().flatten();
    let biases: Vec<f32> = scorers.clone().map(|scorer| scorer.bias).collect();
    let weights: ScoredRows = scorers.map(|scorer| scorer.weights.clone()).collect();
    Columns::put(&known, "known", bundle);
    Columns::put(&biases, "biases", bundle);
    Columns::put(&weights, "weights", bundle);
    Columns::put(&solved.held_out, "held_out", bundle);
}

/// Without dual variables.
fn take_scorers(bundle: &mut Bundle) -> Result<Solved> {
    let (mut known, mut biases) = (Vec::<bool>::new(), Vec::new());
    let (mut weights, mut held_out) = (ScoredRows::new(), Vec::<HeldOutMargins>::new());
    Columns::fill(&mut known, "known", bundle)?;
    Columns::fill(&mut biases, "biases", bundle)?;
    Columns::fill(&mut weights, "weights", bundle)?;
    Columns::fill(&mut held_out, "held_out", bundle)?;
    let n_known = known.iter().filter(|&&is| is).count();
    if [biases.len(), weights.len()] != [n_known; 2] || held_out.len() != known.len() {
        return Err(bundle.damaged("the scorers' parts differ in number"));
    }
    let pairs = biases.into_iter().zip(weights);
    let mut solved = pairs.map(|(bias, weights)| Scorer { bias, weights });
    let scorers = known.iter().map(|is_known| is_known.then(|| solved.next()));
    Ok(Solved {
        scorers: scorers.map(Option::flatten).collect(),
        duals: Vec::new(),
        held_out,
    })
}
