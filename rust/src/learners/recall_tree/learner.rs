//! The algorithm of the paper (Figures 1 and 2): routing, then scoring.
//!
//! Routing does not look at the scorers. So with several threads the next group
//! of examples is routed while the scorers learn from this one, with the outcome
//! of example after example, to the bit. With mini-batches (`batch_size`) the
//! scorers of a group, too, work at the same time: then each example is judged
//! by the scorers as they stood before the group, whatever the number of threads.

use rayon::prelude::*;

use super::numbering::Numbering;
use super::routing::Change;
use super::scorers::{AtNode, Plain, Work};
use super::{Params, Scorers, Tree, Visit, NAME};
use crate::classifier::Mistakes;
use crate::classifier::Online;
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, RowBuffer};
use crate::error::Result;
use crate::linear::PathExample;
use crate::threads::with_threads;

/// A tree, its scorers, and all they need to go on learning.
#[derive(Debug, Clone)]
pub struct Learner {
    pub(super) params: Params,
    pub(super) preparation: Preparation,
    /// Whether means and deviations follow the stream.
    pub(super) streaming: bool,
    /// Labels by number: tree and scorers know but numbers.
    pub(super) numbering: Numbering,
    /// Entropy of the labels that F and D were chosen by.
    pub(super) bits: f64,
    pub(super) tree: Tree,
    pub(super) scorers: Scorers,
    /// Wrong answers.
    pub(super) progress: Mistakes,
    /// Labels that were not among the candidates.
    pub(super) missed: Mistakes,
    /// Threads of the call at work; the model does not depend on it.
    pub(super) n_threads: usize,
}

/// An example that was sent down the tree and is still to be scored.
#[derive(Debug, Clone, Default)]
struct Routed {
    example: PathExample,
    visit: Visit,
    label: u32,
    importance: f32,
    /// Number of the example.
    clock: u64,
}

impl Learner {
    /// A tree that has seen nothing, for `n_classes` that `bits` tell apart; rows
    /// have about `filled` values.
    pub fn new(
        params: &Params,
        preparation: Preparation,
        n_classes: usize,
        bits: f64,
        filled: usize,
    ) -> Self {
        let width = preparation.width();
        Self {
            tree: Tree::new(params, n_classes, bits, width),
            bits,
            numbering: Numbering::new(n_classes),
            scorers: Scorers::new(params, n_classes, width, filled),
            preparation,
            streaming: false,
            progress: Mistakes::default(),
            missed: Mistakes::default(),
            n_threads: 1,
            params: params.clone(),
        }
    }
}

impl Routed {
    /// What the tree as it was before the example asks the scorers.
    fn asked(&self) -> AtNode<'_> {
        AtNode {
            example: &self.example,
            candidates: &self.visit.answer,
            path: &self.visit.old.path,
            clock: self.clock,
        }
    }

    /// What they are to learn; nothing, if the label is no candidate.
    fn lesson(&self) -> Option<AtNode<'_>> {
        let visit = &self.visit;
        let way = match visit.change {
            Change::All => &visit.new,
            Change::None | Change::Last => &visit.old,
        };
        visit.candidates.contains(&self.label).then_some(AtNode {
            example: &self.example,
            candidates: &visit.candidates,
            path: &way.path,
            clock: self.clock,
        })
    }
}

/// What routes examples.
struct Router<'a> {
    tree: &'a mut Tree,
    preparation: &'a mut Preparation,
    numbering: &'a mut Numbering,
    streaming: bool,
    /// Number of the next example.
    clock: u64,
    scratch: RowBuffer,
}

impl Router<'_> {
    /// Sends the rows `which` down, one after the other; every node on their ways
    /// learns from them.
    fn route(&mut self, batch: &Batch<'_>, labels: &[u32], which: &[u32], group: &mut Vec<Routed>) {
        group.resize_with(which.len(), Routed::default);
        for (&i, routed) in which.iter().zip(group) {
            let i = i as usize;
            if self.streaming {
                self.preparation.observe(&batch.rows, i, &mut self.scratch);
            }
            let Routed {
                example,
                visit,
                label,
                importance,
                clock,
            } = routed;
            example.read(self.preparation, &batch.rows, i);
            *label = self.numbering.take(labels[i]);
            *importance = batch.weight(i);
            *clock = self.clock;
            self.clock += 1;
            self.tree.routers.prepare(example, *importance);
            self.tree.learn(example, *label, *importance, *clock, visit);
        }
    }
}

/// What scores them.
struct Judge<'a> {
    scorers: &'a mut Scorers,
    progress: &'a mut Mistakes,
    missed: &'a mut Mistakes,
    /// Share of a pass that an example is.
    share: f64,
    /// One for each example of a mini-batch.
    desks: Vec<Desk>,
}

/// Where one example is worked on.
#[derive(Debug, Default)]
struct Desk {
    work: Work,
    is_wrong: bool,
}

impl Judge<'_> {
    /// Answers for each example of a group before the candidates learn from it.
    fn judge(&mut self, group: &[Routed], batch_size: usize, parallel: bool) {
        for batch in group.chunks(batch_size) {
            let n = self.desks.len().max(batch.len());
            self.desks.resize_with(n, Desk::default);
            match &mut *self.scorers {
                Scorers::Plain(scorers) if batch_size > 1 => {
                    learn_together(scorers, batch, &mut self.desks, parallel);
                }
                scorers => learn_alone(scorers, batch, &mut self.desks),
            }
            for (routed, desk) in batch.iter().zip(&self.desks) {
                let is_missed = !routed.visit.answer.contains(&routed.label);
                self.progress.count(desk.is_wrong, routed.importance);
                self.missed.count(is_missed, routed.importance);
                self.scorers.pass(self.share);
            }
        }
    }
}

/// An example by itself.
fn learn_alone(scorers: &mut Scorers, batch: &[Routed], desks: &mut [Desk]) {
    for (routed, desk) in batch.iter().zip(desks) {
        if let Some(lesson) = desk.answer(routed, |at, work| scorers.score(at, work)) {
            scorers.learn(&lesson, routed.label, routed.importance, &mut desk.work);
        }
    }
}

/// A mini-batch: all are scored, and decide on their steps, before the first step
/// is taken; then the steps are taken in order.
fn learn_together(scorers: &mut Plain, batch: &[Routed], desks: &mut [Desk], parallel: bool) {
    let decide = |(routed, desk): (&Routed, &mut Desk)| {
        if let Some(lesson) = desk.answer(routed, |at, work| scorers.score(at, work)) {
            scorers.decide(&lesson, routed.label, routed.importance, &mut desk.work);
        }
    };
    if parallel {
        let desks = desks.par_iter_mut().take(batch.len());
        batch.par_iter().zip(desks).for_each(decide);
    } else {
        batch.iter().zip(&mut *desks).for_each(decide);
    }
    for (routed, desk) in batch.iter().zip(desks) {
        if let Some(lesson) = routed.lesson() {
            scorers.apply(&lesson, routed.label, routed.importance, &mut desk.work);
        }
    }
}

impl Desk {
    /// Answers as all stood before the example. Returns what the scorers are to
    /// learn, if anything, with the scores for it in `work`.
    fn answer<'a>(
        &mut self,
        routed: &'a Routed,
        score: impl Fn(&AtNode<'_>, &mut Work),
    ) -> Option<AtNode<'a>> {
        score(&routed.asked(), &mut self.work);
        let best = best(&self.work.scores).map(|place| routed.visit.answer[place]);
        self.is_wrong = best != Some(routed.label);
        let lesson = routed.lesson()?;
        if routed.visit.change != Change::None {
            score(&lesson, &mut self.work);
        }
        Some(lesson)
    }
}

/// The first of the highest scores.
fn best(scores: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (place, &score) in scores.iter().enumerate() {
        if best.is_none_or(|(_, highest)| score > highest) {
            best = Some((place, score));
        }
    }
    best.map(|(place, _)| place)
}

impl Learner {
    /// Routes and judges in turns.
    fn learn_in_turns(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        share: f64,
        parallel: bool,
        control: &Control,
    ) -> Result<()> {
        let labels = batch.one_label_each(NAME)?.as_slice();
        let batch_size = self.params.batch_size as usize;
        // One example at a time stays in the nearest cache; several threads need
        // more at a time.
        let n_group = match (batch_size, parallel) {
            (1, false) => 1,
            (1, true) => Control::CHUNK,
            _ => batch_size,
        };
        let mut groups = order.chunks(n_group);
        let (mut current, mut next) = (Vec::new(), Vec::new());
        let mut router = Router {
            clock: self.progress.examples,
            tree: &mut self.tree,
            preparation: &mut self.preparation,
            numbering: &mut self.numbering,
            streaming: self.streaming,
            scratch: RowBuffer::default(),
        };
        let mut judge = Judge {
            scorers: &mut self.scorers,
            progress: &mut self.progress,
            missed: &mut self.missed,
            share,
            desks: Vec::new(),
        };
        if let Some(which) = groups.next() {
            router.route(batch, labels, which, &mut current);
        }
        let mut unreported = 0;
        while !current.is_empty() {
            let which = groups.next().unwrap_or_default();
            if parallel {
                rayon::join(
                    || judge.judge(&current, batch_size, true),
                    || router.route(batch, labels, which, &mut next),
                );
            } else {
                judge.judge(&current, batch_size, false);
                if let Scorers::Adaptive(scorers) = &mut *judge.scorers {
                    // The authors' program clamps all its regressors alike.
                    scorers.meet(router.tree.routers.span());
                    router.tree.routers.widen(scorers.span());
                }
                router.route(batch, labels, which, &mut next);
            }
            unreported += current.len();
            std::mem::swap(&mut current, &mut next);
            if unreported >= Control::CHUNK || current.is_empty() {
                if let Some(loss) = judge.progress.loss() {
                    control.set_loss(loss);
                    control.set_recall(1.0 - judge.missed.loss().unwrap_or(f64::NAN));
                }
                control.tick(std::mem::take(&mut unreported))?;
            }
        }
        Ok(())
    }
}

impl Online for Learner {
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
    ) -> Result<()> {
        // Adaptive scorers and their routers share what they clamp to.
        let n_threads = match self.scorers {
            Scorers::Plain(_) => self.n_threads,
            Scorers::Adaptive(_) => 1,
        };
        with_threads(n_threads, |parallel| {
            self.learn_in_turns(batch, order, clock, parallel, control)
        })?
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        self.error_on(batch, held_out, control)
    }
}
