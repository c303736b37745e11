//! The tree: where an example goes, and what it leaves there.
//!
//! Nothing here looks at the scorers: the routers learn from entropies alone.
//! So a chunk of examples can be routed while the one before is still scored.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bound::growth;
use super::{Arena, Params, RouterImportance};
use crate::tree::{NodeId, PathExample, Regressors};

/// A router's step has fallen to 1/sqrt(2) after so many trainings, and so many
/// more per effective dimension of the example; as for `LOMtree`.
const ALWAYS: f32 = 4.0;
/// See [`ALWAYS`].
const PER_DIMENSION: f32 = 0.03;

/// Nodes and routers.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(super) arena: Arena,
    pub(super) routers: Regressors,
    rate: f32,
    decay: f32,
    max_depth: u32,
    importance: RouterImportance,
    randomized: bool,
    seed: u64,
    /// Growth of each side, for the example at hand.
    growths: Vec<f64>,
    /// What randomised routing draws from.
    chances: Vec<f32>,
}

/// What an example met on its way.
#[derive(Debug, Clone, Default)]
pub struct Visit {
    /// The candidates that the tree as it was would have answered from, the
    /// most frequent first.
    pub answer: Vec<u32>,
    /// The candidates of the final node, this example counted; where the
    /// example went the old way, in the order of `answer`.
    pub candidates: Vec<u32>,
    /// Whether it went another way than the tree as it was would have sent it.
    pub diverged: bool,
    /// Where `candidates` differs from `answer` though it went the old way: the
    /// label came in at this place.
    pub entered: Option<usize>,
    /// The nodes it went through, the root first, the final node last.
    pub path: Vec<NodeId>,
    /// The nodes that the tree as it was would have sent it through.
    pub old_path: Vec<NodeId>,
}

impl Tree {
    /// A tree that has seen nothing.
    pub fn new(params: &Params, n_classes: usize, width: usize) -> Self {
        let arity = params.arity;
        Self {
            arena: Arena::new(arity, params.candidates(n_classes), params.bern_hyper),
            routers: Regressors::new(params.optimizer, params.router_loss(), width),
            rate: params.router_rate() as f32,
            decay: params.decay() as f32,
            max_depth: params.depth(n_classes),
            importance: params.router_importance,
            randomized: params.randomized_routing,
            seed: params.schedule.seed,
            growths: vec![0.0; arity as usize],
            chances: vec![0.0; arity as usize],
        }
    }

    /// Sends one example down, which `routers.prepare` has been given; all on
    /// its way learn from it. `clock` numbers the examples.
    pub fn learn(
        &mut self,
        example: &PathExample,
        label: u32,
        importance: f32,
        clock: u64,
        visit: &mut Visit,
    ) {
        let weight = f64::from(importance);
        let mut random = self
            .randomized
            .then(|| Pcg64Mcg::seed_from_u64(self.seed ^ clock.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        visit.path.clear();
        visit.path.push(Arena::ROOT);
        visit.old_path.clear();
        visit.diverged = false;
        visit.entered = None;
        let mut at = Arena::ROOT;
        while self.arena.node(at).depth < self.max_depth {
            let (before, after) = self.train(at, example, label, importance, random.as_mut());
            let node = self.arena.node(at);
            let (old, new) = (node.child(before), node.child(after));
            if !visit.diverged && old != new {
                visit.old_path.extend_from_slice(&visit.path);
                let end = self.follow(at, old, example, &mut visit.old_path);
                copy(self.arena.node(end).counts.candidates(), &mut visit.answer);
                visit.diverged = true;
            }
            let stops = self.arena.stops(at, new);
            if stops && !visit.diverged {
                self.arrive(at, label, weight, visit);
            } else {
                self.arena.insert(at, label, weight);
            }
            if stops {
                // This is how children earn their statistics.
                self.arena.insert(new, label, weight);
                return self.end(at, visit);
            }
            visit.path.push(new);
            at = new;
        }
        if visit.diverged {
            self.arena.insert(at, label, weight);
        } else {
            self.arrive(at, label, weight, visit);
        }
        self.end(at, visit);
    }

    /// Trains the routers of `at`. Returns the child that the example would have
    /// gone to before, and the one it goes to now.
    fn train(
        &mut self,
        at: NodeId,
        example: &PathExample,
        label: u32,
        importance: f32,
        random: Option<&mut Pcg64Mcg>,
    ) -> (u32, u32) {
        if !self.arena.node(at).has_children() {
            let first = self.routers.len() as u32;
            for _ in 0..self.n_routers() {
                self.routers.push();
            }
            self.arena.grow(at, first);
        }
        let (target, gap) = self.target(at, label, f64::from(importance));
        let node = self.arena.node_mut(at);
        let age = node.trained as f32 / (ALWAYS + PER_DIMENSION * example.dimension());
        node.trained += f64::from(importance);
        let h = match self.importance {
            RouterImportance::None => importance,
            RouterImportance::Entropy => gap as f32,
        };
        let a = h * self.rate / (1.0 + self.decay * age).sqrt();
        let first = node.first_router;
        if self.arena.arity() == 2 {
            let y = if target == 0 { -1.0 } else { 1.0 };
            let scores = self.routers.learn(first, example, y, a, h, |_| None);
            let before = scores.before;
            let right = match random {
                // P(right) = 1/2 + score, cut to [0, 1].
                Some(random) => random.random_range(-0.5..0.5) < scores.after,
                None => side(scores.after),
            };
            return (u32::from(side(before)), u32::from(right));
        }
        let (mut before, mut after) = (Most::new(), Most::new());
        for child in 0..self.arena.arity() {
            let y = if target == child { 1.0 } else { -1.0 };
            let scores = self.routers.learn(first + child, example, y, a, h, |_| None);
            before.see(child, scores.before);
            after.see(child, scores.after);
            self.chances[child as usize] = (0.5 + scores.after).clamp(0.0, 1.0);
        }
        let after = match random {
            Some(random) => self.draw(random),
            None => after.which,
        };
        (before.which, after)
    }

    /// A side by the chances of the routers just trained: as with two sides, those
    /// far beyond the border have none.
    fn draw(&self, random: &mut Pcg64Mcg) -> u32 {
        let all: f32 = self.chances.iter().sum();
        let mut left = random.random_range(0.0..1.0) * all;
        for (side, &chance) in (0..).zip(&self.chances) {
            left -= chance;
            if left < 0.0 {
                return side;
            }
        }
        self.arena.arity() - 1
    }

    /// The side at which the label raises the entropy least (ties to the last),
    /// and by how much the next best would raise it more.
    fn target(&mut self, at: NodeId, label: u32, weight: f64) -> (u32, f64) {
        let node = self.arena.node(at);
        for side in 0..self.arena.arity() {
            let child = self.arena.node(node.child(side));
            let counts = &child.counts;
            self.growths[side as usize] =
                growth(child.entropy, counts.total(), counts.get(label), weight);
        }
        let (mut best, mut least, mut second) = (0, f64::INFINITY, f64::INFINITY);
        for (side, &growth) in self.growths.iter().enumerate() {
            if growth <= least {
                (best, second, least) = (side as u32, least, growth);
            } else {
                second = second.min(growth);
            }
        }
        (best, second - least)
    }

    /// Where an example ends that leaves `parent` for `child`, by the routers as
    /// they are; adds the nodes on the way to `path`.
    fn follow(
        &self,
        mut parent: NodeId,
        mut child: NodeId,
        example: &PathExample,
        path: &mut Vec<NodeId>,
    ) -> NodeId {
        loop {
            // An unseen child has no candidates, whatever the multiplier.
            if self.arena.stops(parent, child) || self.arena.node(child).counts.n_labels() == 0 {
                return parent;
            }
            parent = child;
            path.push(parent);
            if self.arena.node(parent).depth >= self.max_depth
                || !self.arena.node(parent).has_children()
            {
                return parent;
            }
            child = self.arena.node(parent).child(self.choose(parent, example));
        }
    }

    /// The side that the routers of a node with children send an example to.
    fn choose(&self, at: NodeId, example: &PathExample) -> u32 {
        let first = self.arena.node(at).first_router;
        let score = |number| self.routers.score(number, example);
        if self.arena.arity() == 2 {
            return u32::from(side(score(first)));
        }
        let mut most = Most::new();
        for child in 0..self.arena.arity() {
            most.see(child, score(first + child));
        }
        most.which
    }

    /// Notes the candidates at the final node before and after the example.
    fn arrive(&mut self, at: NodeId, label: u32, weight: f64, visit: &mut Visit) {
        copy(self.arena.node(at).counts.candidates(), &mut visit.answer);
        self.arena.insert(at, label, weight);
        copy(&visit.answer, &mut visit.candidates);
        if !visit.answer.contains(&label) {
            let counts = &self.arena.node(at).counts;
            if counts.candidates().len() > visit.answer.len() {
                visit.candidates.push(label);
            } else if counts.candidates().contains(&label) {
                visit.candidates.pop();
                visit.candidates.push(label);
            } else {
                return;
            }
            visit.entered = Some(visit.candidates.len() - 1);
        }
    }

    fn end(&self, at: NodeId, visit: &mut Visit) {
        if visit.diverged {
            copy(self.arena.node(at).counts.candidates(), &mut visit.candidates);
        }
    }

    /// Routers of a node.
    pub(super) fn n_routers(&self) -> u32 {
        match self.arena.arity() {
            2 => 1,
            arity => arity,
        }
    }
}

/// As everywhere, 0 goes right.
#[inline]
fn side(score: f32) -> bool {
    // What is no number goes right, too.
    !(score < 0.0)
}

fn copy(from: &[u32], to: &mut Vec<u32>) {
    to.clear();
    to.extend_from_slice(from);
}

/// The first of the highest scores.
struct Most {
    which: u32,
    score: f32,
}

impl Most {
    fn new() -> Self {
        Self {
            which: 0,
            score: f32::NEG_INFINITY,
        }
    }

    fn see(&mut self, which: u32, score: f32) {
        if score > self.score {
            *self = Self { which, score };
        }
    }
}
