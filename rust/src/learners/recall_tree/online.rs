//! What the Recall Tree adds to the [`OnlineModel`](crate::classifier::OnlineModel)
//! around it: making, freezing, storing and reporting a tree.

use super::frozen::FrozenTree;
use super::label_index::LabelIndex;
use super::learner::OnlineRecallTree;
use super::params::{uniform_bits, Params};
use super::predict::BlockPredictor;
use super::routing_tree::RoutingTree;
use super::scorers::Scorers;
use crate::classifier::{
    row_values, Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start,
};
use crate::control::Control;
use crate::data::Preparation;
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Persist, Report};
use crate::params::Params as _;
use crate::persist;
use crate::pool::Lent;

/// The cost of routing along a path, in products per value.
const ROUTING: usize = 32;

persist!(OnlineRecallTree {
    Meta missed;
    Nest label_index;
    Nest tree;
    Nest scorers;
} check check_stored);

impl OnlineRecallTree {
    /// A tree that has seen no example, for `n_classes` whose labels have an entropy
    /// of `label_bits`; examples have `width` columns, about `n_filled` of them not 0.
    pub(super) fn empty(
        params: &Params,
        n_classes: usize,
        label_bits: f64,
        width: usize,
        n_filled: usize,
    ) -> Self {
        Self {
            label_bits,
            label_index: LabelIndex::new(n_classes),
            tree: RoutingTree::new(params, n_classes, label_bits, width),
            scorers: Scorers::new(params, n_classes, width, n_filled),
            missed: Mistakes::default(),
        }
    }

    /// Drops what optimizers keep beside the weights.
    fn drop_state(&mut self) {
        self.tree.routers = self.tree.routers.for_prediction();
        if let Scorers::Adaptive(scorers) = &mut self.scorers {
            scorers.regressors = scorers.regressors.for_prediction();
        }
    }

    /// Whether the labels of a tree that was restored have classes.
    fn check_stored(&self) -> Result<()> {
        if !self.missed.is_sound() {
            return Err(Error::data("\"missed\" is no count of mistakes"));
        }
        let n_labels = self.label_index.labels().len();
        let counts = self.tree.arena.nodes.iter().map(|node| &node.counts);
        let labels = counts.flat_map(|counts| counts.iter().map(|(label, _)| label));
        match labels.max() {
            Some(label) if label.at() >= n_labels => {
                Err(Error::data("a node's label has no class"))
            }
            _ => Ok(()),
        }
    }
}

impl OnlineLearner for OnlineRecallTree {
    const KIND: &'static str = "recall_tree";
    const NARROW: &'static [&'static str] = &["tree/routers/", "scorers/"];
    type Params = Params;
    type Frozen = FrozenTree;
    type Predictor<'a> = BlockPredictor<'a>;
    type Memory = ();

    fn name(_params: &Params) -> &'static str {
        "the Recall Tree"
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        let label_bits = if start.is_all {
            params.label_bits(start.batch, n_classes)
        } else {
            // How often the labels of a stream will occur is unknown.
            uniform_bits(n_classes)
        };
        let n_filled = row_values(Some(start.preparation), &start.batch.rows);
        let width = start.preparation.width();
        Ok(Self::empty(params, n_classes, label_bits, width, n_filled))
    }

    /// F and D become those of the larger number of classes. The labels' entropy rises by as much
    /// as that of uniform ones does.
    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        let (before, after) = (
            uniform_bits(self.label_index.n_classes()),
            uniform_bits(n_classes),
        );
        if self.label_bits < before {
            self.label_bits = (self.label_bits + after - before).min(after);
        } else {
            self.label_bits = after;
        }
        self.label_index.grow(n_classes);
        self.tree.grow(n_classes, self.label_bits);
        self.scorers.grow(n_classes);
        Ok(())
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        self.learn_batch(learning)
    }

    fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        let mut frozen = self.tree.freeze(control)?;
        frozen.blocks = self.scorers.candidate_blocks(&frozen.candidates, control)?;
        frozen.tables = self.scorers.candidate_tables(&frozen.candidates, control)?;
        Ok(frozen)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenTree]>,
        options: &PredictOptions,
        _memory: Lent<'a, ()>,
    ) -> BlockPredictor<'a> {
        BlockPredictor::new(&members[0], frozen.map(|frozen| &frozen[0]), options)
    }

    fn check_options(params: &Params, options: &PredictOptions) -> Result<()> {
        if options.first_tree.or(options.last_tree).is_some() {
            return Err(Error::data("the Recall Tree predicts with its one tree"));
        }
        params.with_beam(options).check().map(drop)
    }

    fn effort(&self, row_values: usize, _k: usize, options: &PredictOptions) -> usize {
        let params = &self.tree.arena.params;
        let paths = options.beam_size.unwrap_or(params.beam_size) as usize;
        let per_path = (ROUTING + self.tree.arena.max_candidates).saturating_mul(row_values);
        paths.saturating_mul(per_path)
    }

    fn freeze_rows(&self) -> usize {
        /// Products of freezing a node, and of predicting a row, about.
        const NODE: usize = 256;
        const ROW: usize = 1 << 14;
        if !self.tree.can_be_walked() {
            return 0;
        }
        let n_nodes = self.tree.arena.nodes.len();
        let copied = self
            .scorers
            .candidate_weights(n_nodes / 2, self.tree.arena.max_candidates);
        n_nodes.saturating_mul(NODE).saturating_add(copied) / ROW + 1
    }

    /// F and D as they came out, and the share of the examples whose label was among the
    /// candidates before it was learned.
    fn summary(&self, summary: &mut Report) {
        let recall = self.missed.loss().map_or(f64::NAN, |missed| 1.0 - missed);
        summary.scalar("progressive_recall", recall);
        summary.scalar("max_candidates", self.tree.arena.max_candidates as u32);
        summary.scalar("max_depth", self.tree.max_depth);
    }

    fn nodes_of_terminals(&self, frozen: &FrozenTree) -> Option<Vec<u32>> {
        Some(self.tree.report_numbers(&frozen.final_nodes))
    }

    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        Some(self.tree.node_report(&self.label_index))
    }

    /// Without the counts of labels that are no candidates.
    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.drop_state();
        for node in &mut slim.tree.arena.nodes {
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
        // Nothing as large as K is allocated unless the file is.
        let of_each_class = if params.is_adaptive() {
            "scorers/regressors/weights.is_row"
        } else {
            "scorers/trained"
        };
        if bundle.arrays().get(of_each_class).map(Array::len) != Some(n_classes) {
            return Err(bundle.damaged(format_args!("not as many scorers as classes, {n_classes}")));
        }
        let label_bits: f64 = bundle.take_meta("label_bits")?;
        if !(0.0..=uniform_bits(n_classes)).contains(&label_bits) {
            return Err(bundle.damaged("the entropy of the labels is out of range"));
        }
        // As for filled rows, whose scorers allocate nothing as large as the width.
        let width = preparation.width();
        let mut tree = Self::empty(params, n_classes, label_bits, width, width);
        if for_prediction {
            tree.drop_state();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}
