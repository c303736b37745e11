//! The tree: where an example goes, and what it leaves there.
//!
//! Nothing here looks at the scorers: the routers learn from entropies alone.
//! So a chunk of examples can be routed while the one before is still scored.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bound::growth;
use super::{Arena, Params, RouterImportance};
use crate::linear::{PathExample, Rate, Regressors};
use crate::tree::NodeId;

/// Nodes and routers.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(super) arena: Arena,
    pub(super) routers: Regressors,
    rate: Rate,
    pub(super) max_depth: u32,
    importance: RouterImportance,
    randomized: bool,
    seed: u64,
    /// The nodes at hand.
    nodes: Vec<NodeId>,
    /// What each child would cost, for the node and example at hand.
    prices: Vec<f64>,
    /// Whether histograms are those of the ways before the routers learned.
    honest: bool,
    /// Whether nodes of few labels take candidates of those above.
    backs_off: bool,
    pub(super) marks: Marks,
}

/// A way down.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// The nodes, the root first, the one where it ends last.
    pub path: Vec<NodeId>,
    /// The child that it would have gone on to, had the bound not held it.
    beyond: Option<NodeId>,
}

impl Way {
    /// Where it ends.
    pub fn end(&self) -> NodeId {
        self.path.last().copied().unwrap_or(Arena::ROOT)
    }
}

/// What an example met on its way.
#[derive(Debug, Clone, Default)]
pub struct Visit {
    /// The way that the tree as it was sends the example.
    pub old: Way,
    /// The way it goes once the routers have learned from it.
    pub new: Way,
    /// The candidates that the tree as it was answers from, best first.
    pub answer: Vec<u32>,
    /// The candidates that learn. In the order of `answer`, where they are the
    /// same but for the label.
    pub candidates: Vec<u32>,
    /// How the two compare.
    pub change: Change,
}

/// How the candidates that learn compare with those answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change {
    /// They are the same.
    #[default]
    None,
    /// The last is new: the example's own label.
    Last,
    /// They are those of another node.
    All,
}

impl Tree {
    /// A tree that has seen nothing.
    pub fn new(params: &Params, n_classes: usize, bits: f64, width: usize) -> Self {
        let arity = params.arity;
        Self {
            arena: Arena::new(
                arity,
                params.candidates(n_classes, bits),
                params.bern_hyper,
                params.honest,
            ),
            routers: Regressors::new(params.optimizer, params.router_loss(), width),
            rate: Rate::new(params.router_rate(), params.decay()),
            max_depth: params.depth(bits),
            importance: params.router_importance,
            randomized: params.randomized_routing,
            seed: params.schedule.seed,
            nodes: Vec::new(),
            prices: vec![0.0; arity as usize],
            honest: params.honest,
            backs_off: params.back_off,
            marks: Marks::new(n_classes),
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
        self.train_way(example, label, importance, clock, visit);
        let mut marks = std::mem::take(&mut self.marks);
        self.gather(&visit.old.path, &mut marks, &mut visit.answer);
        let kept = if self.honest { &visit.old } else { &visit.new };
        // Beyond the end, too: this is how children earn their statistics.
        let nodes = &mut self.nodes;
        nodes.clear();
        nodes.extend(kept.path.iter().chain(&kept.beyond));
        self.arena.insert(nodes, label, f64::from(importance));
        visit.change = if kept.end() == visit.old.end() {
            copy(&visit.answer, &mut visit.candidates);
            self.enter(kept.end(), label, &mut visit.candidates)
        } else {
            self.gather(&kept.path, &mut marks, &mut visit.candidates);
            Change::All
        };
        self.marks = marks;
    }

    /// Trains the routers on the way and notes that way, and the one before.
    fn train_way(
        &mut self,
        example: &PathExample,
        label: u32,
        importance: f32,
        clock: u64,
        visit: &mut Visit,
    ) {
        let mut random = self.randomized.then(|| {
            Pcg64Mcg::seed_from_u64(self.seed ^ clock.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        let Visit { old, new, .. } = visit;
        new.path.clear();
        new.path.push(Arena::ROOT);
        new.beyond = None;
        let mut diverged = false;
        let mut at = Arena::ROOT;
        for _ in 0..self.max_depth {
            let (before, after) = self.train(at, example, label, importance, random.as_mut());
            let node = self.arena.node(at);
            let (before, after) = (node.child(before), node.child(after));
            if before != after && !diverged {
                copy_way(new, old);
                self.follow(at, before, example, old);
                diverged = true;
            }
            if self.arena.stops(at, after) {
                new.beyond = Some(after);
                break;
            }
            new.path.push(after);
            at = after;
        }
        if !diverged {
            copy_way(new, old);
        }
        // What an example is the first to reach answers nothing yet.
        while old.path.len() > 1 && self.arena.node(old.end()).counts.candidates().is_empty() {
            old.beyond = old.path.pop();
        }
    }

    /// Trains the routers of `at` that decide between the children. Returns the
    /// child that the example would have gone to before, and the one it goes to.
    ///
    /// With more than two children the routers are a balanced tree of their own:
    /// each learns on which half the child lies that is best of all it decides on.
    fn train(
        &mut self,
        at: NodeId,
        example: &PathExample,
        label: u32,
        importance: f32,
        mut random: Option<&mut Pcg64Mcg>,
    ) -> (u32, u32) {
        if !self.arena.node(at).has_children() {
            let first = self.routers.len() as u32;
            for _ in 1..self.arena.arity() {
                self.routers.push();
            }
            self.arena.grow(at, first);
        }
        self.price(at, label, f64::from(importance));
        let node = self.arena.node_mut(at);
        let rate = self.rate.step(1.0, f64::from(node.trained), example);
        node.trained += importance;
        let mut choice = Choice::of(node.first_router, self.arena.arity());
        let mut before = None;
        while let Some((left, right)) = choice.halves() {
            let (l, r) = (self.least(&left), self.least(&right));
            // Ties go right.
            let y = if l < r { -1.0 } else { 1.0 };
            let h = match self.importance {
                RouterImportance::None => importance,
                RouterImportance::Entropy => (l - r).abs() as f32,
            };
            let (arena, decided) = (&self.arena, choice);
            let ahead = |after: f32| arena.comes_next(at, decided.side(is_right(after)));
            let scores = self
                .routers
                .learn(choice.router, example, y, h * rate, h, ahead);
            let goes_right = match random.as_deref_mut() {
                // P(right) = 1/2 + score, cut to [0, 1].
                Some(random) => random.random_range(-0.5..0.5) < scores.after,
                None => is_right(scores.after),
            };
            let was_right = is_right(scores.before);
            if before.is_none() && was_right != goes_right {
                before = Some(self.choose(choice.side(was_right), example));
            }
            choice = choice.side(goes_right);
        }
        let after = choice.from;
        (before.unwrap_or(after), after)
    }

    /// By how much the label would raise the entropy of each child.
    fn price(&mut self, at: NodeId, label: u32, weight: f64) {
        let node = self.arena.node(at);
        for side in 0..self.arena.arity() {
            self.arena.node(node.child(side)).counts.prefetch(label);
        }
        for (side, price) in (0..).zip(&mut self.prices) {
            let child = self.arena.node(node.child(side));
            let counts = &child.counts;
            *price = growth(child.entropy, counts.total(), counts.get(label), weight);
        }
    }

    fn least(&self, choice: &Choice) -> f64 {
        let prices = &self.prices[choice.from as usize..choice.to as usize];
        prices.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Goes on from `parent`, which the way has reached, to `child` and to the
    /// end, by the routers as they are.
    fn follow(&self, mut parent: NodeId, mut child: NodeId, example: &PathExample, way: &mut Way) {
        way.beyond = None;
        loop {
            if self.is_end(parent, child) {
                way.beyond = Some(child);
                return;
            }
            parent = child;
            way.path.push(parent);
            if !self.is_internal(parent) {
                return;
            }
            child = self
                .arena
                .node(parent)
                .child(self.choose(self.choice(parent), example));
        }
    }

    /// The child among those of `choice` that the routers send an example to.
    fn choose(&self, mut choice: Choice, example: &PathExample) -> u32 {
        while choice.to - choice.from > 1 {
            let score = self.routers.score(choice.router, example);
            choice = choice.side(is_right(score));
        }
        choice.from
    }

    /// The candidates where a way ends: the most frequent labels there and, while
    /// there is room, those of the nodes above.
    pub(super) fn gather(&self, path: &[NodeId], marks: &mut Marks, candidates: &mut Vec<u32>) {
        candidates.clear();
        let Some((&end, above)) = path.split_last() else {
            return;
        };
        candidates.extend_from_slice(self.arena.node(end).counts.candidates());
        if !self.backs_off || candidates.len() == self.arena.max_candidates() {
            return;
        }
        marks.start(candidates);
        for &node in above.iter().rev() {
            for &label in self.arena.node(node).counts.candidates() {
                if candidates.len() == self.arena.max_candidates() {
                    return;
                }
                if marks.is_new(label) {
                    candidates.push(label);
                }
            }
        }
    }

    /// Lets the label in where it has just become a candidate.
    fn enter(&self, end: NodeId, label: u32, candidates: &mut Vec<u32>) -> Change {
        if candidates.contains(&label) || !self.arena.node(end).counts.candidates().contains(&label)
        {
            return Change::None;
        }
        if candidates.len() == self.arena.max_candidates() {
            candidates.pop();
        }
        candidates.push(label);
        Change::Last
    }

    /// Whether a prediction that wants to go from `parent` to `child` stays. An
    /// unseen child has no candidates, whatever the multiplier.
    pub(super) fn is_end(&self, parent: NodeId, child: NodeId) -> bool {
        self.arena.stops(parent, child) || self.arena.node(child).counts.candidates().is_empty()
    }

    /// Whether examples have gone on from a node.
    pub(super) fn is_internal(&self, id: NodeId) -> bool {
        self.arena.node(id).has_children()
    }

    /// The choice between all children of a node that has any.
    pub(super) fn choice(&self, at: NodeId) -> Choice {
        Choice::of(self.arena.node(at).first_router, self.arena.arity())
    }
}

/// What is still to be decided at a node: between the children `from..to`, by
/// `router` and those after it, in preorder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub from: u32,
    pub to: u32,
    pub router: u32,
}

impl Choice {
    fn of(router: u32, arity: u32) -> Self {
        Self {
            from: 0,
            to: arity,
            router,
        }
    }

    /// Both halves, or none where there is but one child.
    pub fn halves(&self) -> Option<(Self, Self)> {
        (self.to - self.from > 1).then(|| (self.side(false), self.side(true)))
    }

    /// The half that `router` decided on.
    fn side(&self, right: bool) -> Self {
        let middle = self.from.midpoint(self.to);
        if right {
            Self {
                from: middle,
                to: self.to,
                router: self.router + middle - self.from,
            }
        } else {
            Self {
                from: self.from,
                to: middle,
                router: self.router + 1,
            }
        }
    }
}

impl Arena {
    /// The router that an example meets after `half` was chosen at `at`; what it
    /// will have to look at there is on its way.
    #[inline]
    fn comes_next(&self, at: NodeId, half: Choice) -> Option<u32> {
        if half.to - half.from > 1 {
            return Some(half.router);
        }
        let id = self.node(at).child(half.from);
        let child = self.node(id);
        child.has_children().then(|| {
            self.prefetch_children(id);
            child.first_router
        })
    }
}

/// As everywhere, 0 goes right, and so does what is no number.
#[inline]
fn is_right(score: f32) -> bool {
    score >= 0.0 || score.is_nan()
}

fn copy(from: &[u32], to: &mut Vec<u32>) {
    to.clear();
    to.extend_from_slice(from);
}

fn copy_way(from: &Way, to: &mut Way) {
    to.path.clear();
    to.path.extend_from_slice(&from.path);
    to.beyond = from.beyond;
}

/// Labels met so far, of a set that begins anew all the time.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    met: Vec<u32>,
    round: u32,
}

impl Marks {
    pub fn new(n_labels: usize) -> Self {
        Self {
            met: vec![0; n_labels],
            round: 0,
        }
    }

    /// Forgets all but `labels`.
    fn start(&mut self, labels: &[u32]) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.met.fill(0);
            self.round = 1;
        }
        for &label in labels {
            self.met[label as usize] = self.round;
        }
    }

    fn is_new(&mut self, label: u32) -> bool {
        std::mem::replace(&mut self.met[label as usize], self.round) != self.round
    }
}
