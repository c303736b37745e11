//! The Recall Tree as a member of an [`OnlineModel`](crate::model::OnlineModel): creation, files and
//! the report of its nodes.

use super::labels::{LabelCounts, LocalId};
use super::learner::OnlineRecallTree;
use super::params::{uniform_bits, Params};
use super::predict::{BlockPredictor, FrozenTree, PredictMemory};
use super::router::RoutingTree;
use super::scorers::{ScorerWeights, Scorers};
use crate::control::Control;
use crate::data::{LocalIds, Preparation};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Persist, Report};
use crate::model::{
    row_values, First, Learning, LinearScorers, Member, Mistakes, OnlineLearner, PredictOptions,
    Start,
};
use crate::params::Params as _;
use crate::persist;
use crate::threads::Lent;
use crate::tree::{NodeId, Topology};

persist!(OnlineRecallTree {
    Meta missed;
    Nest label_index;
    Nest tree;
    Nest scorers;
} check check_stored);

impl OnlineRecallTree {
    /// Creates a tree without examples, for `n_classes` labels with an entropy of `label_bits`.
    /// Examples will have `width` columns, of which about `n_filled` are not 0.
    pub(super) fn empty(
        params: &Params,
        n_classes: usize,
        label_bits: f64,
        width: usize,
        n_filled: usize,
    ) -> Self {
        Self {
            label_bits,
            label_index: LocalIds::new(n_classes),
            tree: RoutingTree::new(params, n_classes, label_bits, width),
            scorers: Scorers::new(params, n_classes, width, n_filled),
            missed: Mistakes::default(),
        }
    }

    /// Drops what optimizers keep beside the weights.
    fn drop_state(&mut self) {
        self.tree.routers = self.tree.routers.for_prediction();
        self.scorers.drop_state();
    }

    /// Checks that the labels of a restored tree have classes.
    fn check_stored(&self) -> Result<()> {
        if !self.missed.is_sound() {
            return Err(Error::data("\"missed\" is not a count of mistakes"));
        }
        let n_labels = self.label_index.len();
        let counts = self.tree.nodes.iter().map(|node| &node.counts);
        let labels = counts.flat_map(|counts| counts.iter().map(|(label, _)| label));
        match labels.max() {
            Some(label) if label.at() >= n_labels => {
                Err(Error::data("a node's label has no class"))
            }
            _ => Ok(()),
        }
    }
}

/// The scorers without the indicators of nodes, which depend on the path of a row.
impl LinearScorers for OnlineRecallTree {
    fn for_each_weight(&self, class: u32, visit: &mut dyn FnMut(u32, f32)) {
        match self.label_index.get(class) {
            Some(label) => self.scorers.for_each_weight(LocalId(label), visit),
            None => visit(self.scorers.n_columns as u32 - 1, f32::NEG_INFINITY),
        }
    }

    /// Visits column by column where the weights of a column lie together.
    fn for_all_weights(&self, n_classes: usize, visit: &mut dyn FnMut(u32, u32, f32)) {
        let mut classes = 0..n_classes as u32;
        let ScorerWeights::ByColumn(weights) = &self.scorers.weights else {
            return self.for_weights_of(&mut classes, visit);
        };
        for (column, weights) in (0..).zip(&weights.columns) {
            for (label, weight) in weights.iter() {
                if let Some(&class) = self.label_index.keys().get(label.at()) {
                    visit(class, column, weight);
                }
            }
        }
        let is_unseen = |&class: &u32| self.label_index.get(class).is_none();
        self.for_weights_of(&mut classes.filter(is_unseen), visit);
    }
}

impl OnlineLearner for OnlineRecallTree {
    const KIND: &'static str = "recall_tree";
    const NARROW_ARRAYS: &'static [&'static str] = &["tree/routers/", "scorers/"];
    type Params = Params;
    type Frozen = FrozenTree;
    type Predictor<'a> = BlockPredictor<'a>;
    type Memory = PredictMemory;

    fn name(_params: &Params) -> &'static str {
        "the Recall Tree"
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        let label_bits = match start.first {
            First::All => params.label_bits(start.batch, n_classes, false),
            First::Part => params.label_bits(start.batch, n_classes, true),
            // The frequencies of the labels of a stream are unknown.
            First::Stream => uniform_bits(n_classes),
        };
        let n_filled = row_values(start.preparation, &start.batch.rows);
        let width = start.preparation.width();
        Ok(Self::empty(params, n_classes, label_bits, width, n_filled))
    }

    /// F and D become those for the larger number of classes. The entropy of the labels rises by as
    /// much as that of uniform labels.
    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        let (before, after) = (
            uniform_bits(self.label_index.n_keys()),
            uniform_bits(n_classes),
        );
        if self.label_bits < before {
            self.label_bits = (self.label_bits + after - before).min(after);
        } else {
            self.label_bits = after;
        }
        self.label_index.widen(n_classes);
        self.tree.add_classes(n_classes, self.label_bits);
        self.scorers.grow(n_classes);
        Ok(())
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        self.learn_batch(learning)
    }

    fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        self.frozen(control)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenTree]>,
        options: &PredictOptions,
        memory: Lent<'a, PredictMemory>,
    ) -> BlockPredictor<'a> {
        BlockPredictor::new(
            &members[0],
            frozen.map(|frozen| &frozen[0]),
            options,
            memory,
        )
    }

    fn check_options(params: &Params, options: &PredictOptions) -> Result<()> {
        if options.first_tree.or(options.last_tree).is_some() {
            return Err(Error::data("the Recall Tree predicts with its one tree"));
        }
        params.with_beam(options).check().map(drop)
    }

    fn effort(&self, row_values: usize, _k: usize, options: &PredictOptions) -> usize {
        /// Routers of a path, approximately.
        const ROUTERS_PER_PATH: usize = 32;
        let beam_size = options.beam_size.unwrap_or(self.tree.params.beam_size);
        let per_path = (ROUTERS_PER_PATH + self.tree.max_candidates).saturating_mul(row_values);
        per_path.saturating_mul(beam_size as usize)
    }

    /// The number of rows whose prediction takes as long as copying the weights of a node's
    /// candidates was measured. Once the bound on copied weights is reached, a node takes a 64th.
    fn freeze_rows(&self) -> usize {
        const MAX_COPIED_NODES: usize = 2048;
        let rows_per_node = match self.scorers.weights {
            ScorerWeights::ByColumn(_) => 64,
            _ => 4,
        };
        let n_nodes = self.tree.nodes.len();
        rows_per_node * (n_nodes.min(MAX_COPIED_NODES) + n_nodes / 64)
    }

    /// Reports F, D, and the share of examples whose label was a candidate before it was learned.
    fn summary(&self, summary: &mut Report) {
        let recall = self.missed.loss().map_or(f64::NAN, |missed| 1.0 - missed);
        summary.scalar("progressive_recall", recall);
        summary.scalar("max_candidates", self.tree.max_candidates as u32);
        summary.scalar("max_depth", self.tree.max_depth);
    }

    fn scorers(&self) -> Option<&dyn LinearScorers> {
        Some(self)
    }

    fn nodes_of_terminals(&self, _frozen: &FrozenTree) -> Option<Vec<u32>> {
        Some(self.tree.report_numbers())
    }

    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        Some(self.tree.node_report(self.label_index.keys()))
    }

    /// Drops the counts of labels that are not candidates, and the state of optimizers.
    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.drop_state();
        for node in &mut slim.tree.nodes {
            node.counts.keep_candidates();
        }
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        bundle.put_meta("label_bits", &self.label_bits);
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        // Nothing of size K is allocated unless the file is as large.
        let name = match params.loss.single() {
            Some(_) => "scorers/regressors/weights.is_row",
            None => "scorers/trained",
        };
        let n_scorers = bundle.arrays().get(name).map_or(0, Array::len);
        let what = format_args!("{n_scorers} scorers for {n_classes} classes");
        bundle.require(n_scorers == n_classes, what)?;
        let label_bits: f64 = bundle.take_meta("label_bits")?;
        let is_sound = (0.0..=uniform_bits(n_classes)).contains(&label_bits);
        bundle.require(is_sound, "the entropy of the labels is out of range")?;
        // With filled rows, scorers allocate nothing as large as the width.
        let width = preparation.width();
        let mut tree = Self::empty(params, n_classes, label_bits, width, width);
        if for_prediction {
            tree.drop_state();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}

impl RoutingTree {
    /// Reports the nodes with examples, breadth first, in the columns that the Python class
    /// documents as `tree_`.
    pub(super) fn node_report(&self, labels: &[u32]) -> Report {
        let tree = self.seen_nodes();
        let nodes = || tree.nodes.iter().map(|&id| self.node(id));
        let counts = || nodes().map(|node| &node.counts);
        let mut report = tree.report();
        report.column("n_examples", counts().map(|counts| counts.total));
        report.column("n_labels", counts().map(|counts| counts.n_labels() as u32));
        // A node without candidates has only been passed. It shows the first label, if any.
        let top = counts().map(|counts| counts.candidates().first().copied());
        let label = top.map(|id| labels.get(id.unwrap_or_default().at()).map_or(0, |&l| l));
        report.column("label", label);
        report.column("label_entropy", nodes().map(|node| node.entropy.max(0.0)));
        // The recall of a node without examples is 0.
        let recall = counts().map(|counts| counts.mass / counts.total.max(f64::MIN_POSITIVE));
        report.column("recall", recall);
        report.column("recall_bound", nodes().map(|node| node.bound));
        let held = tree.parent.iter().zip(&tree.nodes).map(|(&parent, &id)| {
            let parent = usize::try_from(parent).ok();
            parent.is_some_and(|parent| self.is_final(tree.nodes[parent], id))
        });
        report.flags("held", held);
        report.column("n_trained", nodes().map(|node| node.trained));
        let mut end = 0;
        let ends = counts().map(|counts| {
            end += counts.candidates().len() as i64;
            end
        });
        report.column("candidate_starts", std::iter::once(0).chain(ends));
        let candidates = counts().flat_map(LabelCounts::candidates);
        report.column("candidates", candidates.map(|&id| labels[id.at()]));
        let candidate_counts = counts().flat_map(|counts| &counts.top_counts);
        report.column("candidate_counts", candidate_counts.copied());
        report
    }

    /// Returns the number of each node in [`node_report`](Self::node_report). A node that is not
    /// reported has the number of the last node above it that is.
    pub(super) fn report_numbers(&self) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.nodes.len()];
        for (number, id) in (0..).zip(self.seen_nodes().nodes) {
            numbers[id.at()] = number;
        }
        for at in 1..numbers.len() {
            if numbers[at] == u32::MAX {
                numbers[at] = numbers[self.parents[at].at()];
            }
        }
        numbers
    }

    /// Returns the nodes that examples have reached or passed, breadth first.
    fn seen_nodes(&self) -> Topology<NodeId> {
        Topology::new(Self::ROOT, |&id| {
            let node = self.node(id);
            if !node.has_children() {
                return [None; 2];
            }
            node.children().map(|child| {
                let seen = self.node(child);
                (seen.counts.n_labels() > 0 || seen.has_children()).then_some(child)
            })
        })
    }
}
