//! The balanced tree, and the training of its routers.
//!
//! Labels have a fixed order. A node over n > 1 of them has the first ceil(n/2) on its left. So the
//! depth of a leaf is ceil(log2 K) or one less, and neighbors in the order are neighbors in the tree.
//! Nodes are numbered breadth first, and so are routers: the children of router r are the nodes
//! 2r + 1 and 2r + 2.

use std::ops::Range;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{LabelOrder, Params, Policy, Prediction};
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::file::{is_count, Report};
use crate::linear::{Loss, PathExample, Rate, Regressors, Span};
use crate::tree::{Junction, LearningTree, Topology, NO_TERMINAL};
use crate::{persist, record};

/// Number of routers, from the root downwards, whose examples show how reliable a tree is.
const N_UPPER_ROUTERS: usize = 64;
/// Least and largest factor of scores.
const SHARPNESS: [f32; 2] = [0.25, 4.0];

/// The places of labels and routers in the tree.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The labels from left to right.
    pub order: Vec<u32>,
    /// The node of each label.
    pub leaf_of: Vec<u32>,
    /// The node of each router.
    pub node_of: Vec<u32>,
    /// The router or the label of each node.
    pub at_node: Vec<Junction<u32>>,
}

impl Layout {
    /// Creates the tree over labels in this order, a permutation of 0..K.
    pub fn new(order: Vec<u32>) -> Self {
        let mut leaf_of = vec![0; order.len()];
        let mut node_of = Vec::with_capacity(order.len().saturating_sub(1));
        let mut at_node = Vec::with_capacity(2 * order.len());
        for (node, labels) in (0..).zip(balanced(order.len()).nodes) {
            if labels.len() == 1 {
                let label = order[labels.start];
                leaf_of[label as usize] = node;
                at_node.push(Junction::Terminal(label));
            } else {
                let router = node_of.len() as u32;
                let children = [2 * router + 1, 2 * router + 2];
                at_node.push(Junction::Router { router, children });
                node_of.push(node);
            }
        }
        Self {
            order,
            leaf_of,
            node_of,
            at_node,
        }
    }
}

/// Returns the balanced tree over `n` labels, with the positions of the labels of each node.
pub fn balanced(n: usize) -> Topology<Range<usize>> {
    Topology::new(0..n, |&Range { start, end }| {
        let middle = end - (end - start) / 2;
        [start..middle, middle..end].map(|half| (end - start > 1).then_some(half))
    })
}

/// Returns the router above a node, and its target for examples that it should send to the node: -1
/// if the node is its left child, else 1. Returns none for the root.
#[inline]
pub fn router_above(node: u32) -> Option<(u32, f32)> {
    let child = node.checked_sub(1)?;
    Some((child / 2, if child % 2 == 0 { -1.0 } else { 1.0 }))
}

/// Returns whether a router of this score sends to the side of `target`.
#[inline]
pub fn sends_to(target: f32, score: f32) -> bool {
    (score < 0.0) == (target < 0.0)
}

impl LabelOrder {
    /// Returns the `n` labels from left to right. Frequencies are the sums of weights in `batch`.
    pub(super) fn arrange(self, batch: &Batch<'_>, n: usize, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        match self {
            Self::Given => {}
            Self::Random => {
                // Examples are shuffled with `seed`, so the labels need another one.
                let seed = seed ^ 0x9E37_79B9_7F4A_7C15;
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            Self::Frequency => {
                let (mut weights, mut set) = (vec![0.0; n], Vec::new());
                for i in 0..batch.rows.n_rows() {
                    batch.targets.read(i, &mut set);
                    for &label in &set {
                        weights[label as usize] += f64::from(batch.weight(i));
                    }
                }
                let weight = |label: u32| weights[label as usize];
                // The sort is stable: of equally frequent labels, the lower one stays first.
                order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            }
        }
        order
    }
}

/// A filter tree or a random tree.
#[derive(Debug, Clone)]
pub struct LabelTree {
    policy: Policy,
    /// The label that is predicted; the most probable one for label sets.
    pub(super) prediction: Prediction,
    /// True if rows have label sets. Every node then has a regressor.
    pub(super) label_sets: bool,
    loss: Loss,
    rate: Rate,
    pub(super) layout: Layout,
    /// A record for each regressor.
    pub(super) records: Vec<RouterRecord>,
    /// The weight of the examples learned with each label.
    pub(super) examples: Vec<f64>,
    /// The regressors, numbered like the routers, or like the nodes for label sets.
    pub(super) regressors: Regressors,
}

/// The examples of a regressor, as sums of weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RouterRecord {
    /// The examples that it learned from.
    pub trained: f64,
    /// The examples among these that it then sent towards their label, or whose labels it then
    /// found present or absent rightly.
    pub won: f64,
}

record!(RouterRecord {
    trained: is_count,
    won: is_count
});

persist!(LabelTree {
    Columns examples;
    Columns records;
    Nest regressors;
} check check_stored);

/// Terminals are labels. For label sets each node of the layout is a gate. That of a leaf leads to
/// its label, whose node follows those of the layout, and to no terminal.
impl LearningTree for LabelTree {
    fn at(&self, node: u32) -> Junction<u32> {
        let nodes = &self.layout.at_node;
        match nodes.get(node as usize) {
            Some(&junction) if !self.label_sets => junction,
            Some(&Junction::Router { children, .. }) => Junction::Router {
                router: node,
                children,
            },
            Some(&Junction::Terminal(label)) => Junction::Router {
                router: node,
                children: [nodes.len() as u32 + label, NO_TERMINAL],
            },
            None if node == NO_TERMINAL => Junction::Terminal(NO_TERMINAL),
            None => Junction::Terminal(node - nodes.len() as u32),
        }
    }

    fn regressors(&self) -> &Regressors {
        &self.regressors
    }

    /// Logits have no bounds, but the paths of a tree that predicts by path stay as they were.
    fn span(&self) -> Span {
        if self.prediction == Prediction::MostProbable && self.loss == Loss::Logistic {
            Span::UNBOUNDED
        } else {
            self.regressors.span()
        }
    }
}

impl LabelTree {
    /// Creates a tree without examples over the labels of `layout`. Examples will have `width`
    /// columns.
    pub(super) fn from_layout(
        params: &Params,
        layout: Layout,
        width: usize,
        label_sets: bool,
    ) -> Self {
        let (n_regressors, loss, prediction) = if label_sets {
            let n_nodes = layout.at_node.len();
            (n_nodes, Loss::Logistic, Prediction::MostProbable)
        } else {
            (layout.node_of.len(), Loss::Hinge, Prediction::Path)
        };
        let loss = params.loss.unwrap_or(loss);
        let prediction = params.prediction.unwrap_or(prediction);
        let mut regressors = Regressors::new(params.optimizer, loss, width);
        for _ in 0..n_regressors {
            regressors.push();
        }
        Self {
            policy: params.policy,
            prediction,
            label_sets,
            loss,
            rate: Rate::new(params.learning_rate, params.decay),
            records: vec![RouterRecord::default(); n_regressors],
            examples: vec![0.0; layout.order.len()],
            layout,
            regressors,
        }
    }

    /// Returns the factor that turns scores into logits of a router's sides. With the logistic loss
    /// scores are logits. Else the more reliable the routers are, the larger is the factor: half the
    /// log-odds that they send an example to its label's side, as `AdaBoost` weighs a classifier. Half,
    /// because they have just learned these examples. The upper routers speak for all, so that this
    /// takes O(1).
    pub(super) fn sharpness(&self) -> f32 {
        if self.loss == Loss::Logistic {
            return 1.0;
        }
        let upper = self.records.iter().take(N_UPPER_ROUTERS);
        let (won, lost) = upper.fold((0.0, 0.0), |(won, lost), record| {
            (won + record.won, lost + (record.trained - record.won))
        });
        let [least, most] = SHARPNESS;
        if won > 0.0 {
            (0.5 * f64::ln(won / lost) as f32).clamp(least, most)
        } else {
            least
        }
    }

    /// Learns one example, after `regressors.prepare`, from the leaf of its label upwards. Returns
    /// whether the prediction was right before, which it was if every router above the leaf sent
    /// the example towards the label.
    pub(super) fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        let span = self.regressors.span();
        self.examples[label as usize] += f64::from(importance);
        let mut was_right = true;
        let mut next = router_above(self.layout.leaf_of[label as usize]);
        while let Some((router, target)) = next {
            let node = self.layout.node_of[router as usize];
            next = router_above(node);
            let ahead = |_| next.map(|(above, _)| above);
            let (before, has_won) = self.update(router, target, example, importance, ahead);
            was_right &= sends_to(target, span.clamp(before));
            // The score after the step decides, because the routers above will meet what the router
            // does from now on.
            if !has_won && self.policy == Policy::Filter {
                return was_right && self.leads_down(node, example, span);
            }
        }
        was_right
    }

    /// Lets a regressor learn an example; see [`Regressors::learn`] for `ahead`. Returns the score
    /// before, and whether the score after it is on the side of `target`.
    pub(super) fn update(
        &mut self,
        number: u32,
        target: f32,
        example: &PathExample,
        importance: f32,
        ahead: impl FnOnce(f32) -> Option<u32>,
    ) -> (f32, bool) {
        let record = &mut self.records[number as usize];
        let step = self.rate.step(importance, record.trained, example);
        let scores = self
            .regressors
            .learn(number, example, target, step, importance, ahead);
        let has_won = sends_to(target, scores.after);
        record.trained += f64::from(importance);
        if has_won {
            record.won += f64::from(importance);
        }
        (scores.before, has_won)
    }

    /// Returns whether the routers above `node` send the example to it.
    fn leads_down(&self, mut node: u32, example: &PathExample, span: Span) -> bool {
        while let Some((router, target)) = router_above(node) {
            if !sends_to(target, span.clamp(self.regressors.score(router, example))) {
                return false;
            }
            node = self.layout.node_of[router as usize];
        }
        true
    }

    /// Checks that the parts of a restored tree fit together.
    fn check_stored(&self) -> Result<()> {
        let n_routers = self.layout.node_of.len();
        let n_regressors = if self.label_sets {
            self.layout.at_node.len()
        } else {
            n_routers
        };
        if self.examples.len() != n_routers + 1 || !self.examples.iter().all(is_count) {
            return Err(Error::data("the numbers of examples do not fit the labels"));
        }
        if self.records.len() != n_regressors || self.regressors.len() != n_regressors {
            return Err(Error::data(format!(
                "the labels need {n_regressors} regressors"
            )));
        }
        Ok(())
    }

    /// Reports the nodes, breadth first, in O(K). Examples and entropy, in nats, are those of the
    /// labels below a node. Internal nodes have the label -1, and leaves have empty records unless
    /// rows have label sets.
    pub(super) fn node_report(&self) -> Report {
        let tree = balanced(self.examples.len());
        let n_nodes = tree.nodes.len();
        let (mut n_examples, mut entropy) = (vec![0.0; n_nodes], vec![0.0; n_nodes]);
        let mut labels = vec![-1; n_nodes];
        let mut records = vec![RouterRecord::default(); n_nodes];
        for (label, &leaf) in self.layout.leaf_of.iter().enumerate() {
            labels[leaf as usize] = label as i32;
            n_examples[leaf as usize] = self.examples[label];
        }
        for (router, &node) in self.layout.node_of.iter().enumerate().rev() {
            let node = node as usize;
            records[node] = self.records[router];
            let sides = tree.children[node].map(|side| side as usize);
            n_examples[node] = sides.iter().map(|&side| n_examples[side]).sum();
            // The entropy of a node is that of the choice between its sides, plus the mean entropy
            // of the sides.
            for side in sides {
                let share: f64 = n_examples[side] / n_examples[node];
                if share > 0.0 {
                    entropy[node] += share * (entropy[side] - share.ln());
                }
            }
        }
        if self.label_sets {
            records.clone_from(&self.records);
            // An example may have several labels below a node. The node's children learned from it
            // once.
            for (&node, sides) in self.layout.node_of.iter().zip(0..) {
                n_examples[node as usize] = records[2 * sides + 1].trained;
            }
        }
        let mut report = tree.report();
        report.column("n_examples", n_examples);
        report.column(
            "n_labels",
            tree.nodes.iter().map(|labels| labels.len() as u32),
        );
        report.column("label", labels);
        report.column("label_entropy", entropy);
        report.column("n_trained", records.iter().map(|record| record.trained));
        report.column("n_won", records.iter().map(|record| record.won));
        report
    }
}
