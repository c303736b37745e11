//! A training in parts, for many machines: each step works on [`Part`]s of others, for some trees or
//! a block of labels or rows. The steps are those of [`fit`](crate::model::Classifier::fit).
//!
//! ```text
//! trees of some numbers -> start -> for each step: work on blocks -> advance
//!           |                                                          |
//!           '----------------------------> model <---------------------'
//! ```

use super::model::Ldsm;
use super::params::{Params, Scorers};
use super::train::TrainingSet;
use super::tree::Tree;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist};
use crate::learners::one_against_some::{Block, Step, Trainer, TrainingState, Work};
use crate::model::{Classifier, Learner};
use crate::threads::with_threads;

/// The outcome of a step.
#[derive(Debug)]
pub enum Part {
    /// Some trees: a model that has nothing else.
    Trees(Box<Ldsm>),
    /// What all steps so far have made.
    State(Box<TrainingState>),
    /// What a step has made of a block.
    Work(Box<Work>),
}

const STATE: &str = "ldsm_state";
const WORK: &str = "ldsm_work";

impl Part {
    /// Its name in files and messages.
    fn kind(&self) -> &'static str {
        match self {
            Self::Trees(_) => Ldsm::KIND,
            Self::State(_) => STATE,
            Self::Work(_) => WORK,
        }
    }

    /// The error for a part where another is needed.
    fn unexpected(&self, wanted: &str) -> Error {
        Error::data(format!("expected a part {wanted}, got {}", self.kind()))
    }

    /// Bytes that it holds, about: those of its numbers.
    pub fn n_bytes(&self) -> usize {
        self.to_bundle().n_bytes()
    }

    /// To be sent.
    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(self.kind());
        match self {
            Self::Trees(trees) => return trees.to_bundle(),
            Self::State(state) => state.put(&mut bundle),
            Self::Work(work) => work.put(&mut bundle),
        }
        bundle
    }

    /// The inverse of [`to_bundle`](Self::to_bundle).
    pub fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let kind = bundle.kind().to_owned();
        Ok(match &kind[..] {
            Ldsm::KIND => Self::Trees(Ldsm::from_bundle(bundle)?.into()),
            STATE => {
                let mut state = TrainingState::default();
                state.fill(&mut bundle)?;
                Self::State(state.into())
            }
            WORK => {
                let mut work = Work::default();
                work.fill(&mut bundle)?;
                Self::Work(work.into())
            }
            _ => return Err(bundle.damaged(format_args!("unknown kind {kind:?}"))),
        })
    }

    fn trees(&self) -> Result<&[Tree]> {
        match self {
            Self::Trees(model) => Ok(&model.trees),
            other => Err(other.unexpected(Ldsm::KIND)),
        }
    }

    fn state(&self) -> Result<&TrainingState> {
        match self {
            Self::State(state) => Ok(state),
            other => Err(other.unexpected(STATE)),
        }
    }

    fn work(&self) -> Result<&Work> {
        match self {
            Self::Work(work) => Ok(work),
            other => Err(other.unexpected(WORK)),
        }
    }
}

/// How a step runs.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Threads; the outcome does not depend on them.
    pub n_threads: usize,
    /// Interruption.
    pub control: &'a Control,
}

/// The names of the steps that scorers are trained in; none where there are no scorers.
pub fn step_names(params: &Params) -> Vec<&'static str> {
    match params.scorers {
        Scorers::None => Vec::new(),
        Scorers::OneAgainstSome => {
            let steps = Step::all(&params.scorer_params());
            steps.into_iter().map(Step::name).collect()
        }
    }
}

impl TrainingSet {
    /// The trees of these numbers.
    pub fn trees(&self, numbers: &[usize], run: Run<'_>) -> Result<Part> {
        let mut model = self.empty_model()?;
        model.trees = self.grow_trees(numbers, run.n_threads, run.control)?;
        Ok(Part::Trees(model.into()))
    }

    /// What the first step of the scorers' training begins with, from all trees in their order.
    pub fn start(&self, trees: &[&Part], run: Run<'_>) -> Result<Part> {
        let trees = self.all_trees(trees)?;
        let state = self.with_trainer(run, |trainer| {
            let candidates = self.candidates(&trees, trainer.is_parallel, run.control)?;
            Ok(trainer.start(candidates))
        })?;
        Ok(Part::State(state.into()))
    }

    /// Does a block of a step's work.
    pub fn work(&self, state: &Part, block: Block, run: Run<'_>) -> Result<Part> {
        let state = state.state()?;
        let work = self.with_trainer(run, |trainer| trainer.work(state, block))?;
        Ok(Part::Work(work.into()))
    }

    /// Takes in what all blocks have made.
    pub fn advance(&self, state: &Part, works: &[&Part], run: Run<'_>) -> Result<Part> {
        let works = works.iter().map(|part| part.work().cloned());
        let (state, works) = (state.state()?.clone(), works.collect::<Result<_>>()?);
        let state = self.with_trainer(run, |trainer| trainer.advance(state, works))?;
        Ok(Part::State(state.into()))
    }

    /// The model of all trees in their order, and of the scorers after the last step, if there are to
    /// be any.
    pub fn model(&self, trees: &[&Part], state: Option<&Part>, run: Run<'_>) -> Result<Ldsm> {
        let mut model = self.empty_model()?;
        model.trees = self.all_trees(trees)?;
        model.centroids = self.centroids();
        if state.is_some() != (self.params.scorers == Scorers::OneAgainstSome) {
            return Err(Error::data(
                "scorers are missing, or disabled (scorers=\"none\")",
            ));
        }
        if let Some(state) = state {
            let state = state.state()?.clone();
            model.scorers = Some(self.with_trainer(run, |trainer| trainer.finish(state))?);
        }
        Ok(model)
    }

    fn with_trainer<T: Send>(
        &self,
        run: Run<'_>,
        work: impl FnOnce(&Trainer<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        with_threads(run.n_threads, |is_parallel| {
            work(&self.trainer(is_parallel, run.control)?)
        })?
    }

    fn empty_model(&self) -> Result<Ldsm> {
        let mut model = Ldsm::create(self.params.clone(), self.examples.n_labels, true)?;
        model.preparation = Some(self.preparation.clone());
        Ok(model)
    }

    /// An error unless these are all trees.
    fn all_trees(&self, parts: &[&Part]) -> Result<Vec<Tree>> {
        let mut trees = Vec::new();
        for part in parts {
            trees.extend_from_slice(part.trees()?);
        }
        let (n_trees, wanted) = (trees.len(), self.params.n_estimators as usize);
        if n_trees == wanted {
            return Ok(trees);
        }
        Err(Error::data(format!(
            "there are {n_trees} trees of {wanted}"
        )))
    }
}
