//! Recall Tree as named arrays, with everything needed to go on learning.

use super::arena::{Arena, Node};
use super::label_counts::LabelCounts;
use super::label_index::{LabelIndex, LocalId};
use super::learner::OnlineRecallTree;
use super::model::RecallTree;
use super::params::{uniform_bits, Params};
use super::routing_tree::RoutingTree;
use super::scorers::{AdaptiveScorers, Column, ColumnWeights, PlainScorers, Scorers, WeightLayout};
use crate::classifier::checks::is_possible;
use crate::data::Preparation;
use crate::error::Result;
use crate::file::{Array, Bundle, LegacyPersist};
use crate::linear::{put_weights, take_weights, Regressors};
use crate::tree::NodeId;

impl LegacyPersist for RecallTree {
    const KIND: &'static str = "recall-tree";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("n_features", &self.n_features);
        bundle.put_meta("has_learned", &self.learner.is_some());
        if let Some(learner) = &self.learner {
            bundle.nest("learner", learner.to_bundle());
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let params = params.check().map_err(|error| bundle.damaged(error))?;
        let n_classes: usize = bundle.take_meta("n_classes")?;
        let n_features: usize = bundle.take_meta("n_features")?;
        if !is_possible(n_classes) {
            return Err(bundle.damaged(format_args!("{n_classes} classes")));
        }
        let learner = if bundle.take_meta("has_learned")? {
            let inner = bundle.unnest("learner")?;
            inner.expect_kind(LEARNER)?;
            let learner = OnlineRecallTree::from_bundle(inner, &params, n_classes)?;
            if learner.preparation.n_features() != n_features {
                return Err(bundle.damaged(format_args!("{n_features} features")));
            }
            Some(learner)
        } else {
            None
        };
        Ok(Self::from_parts(params, n_classes, n_features, learner))
    }
}

/// Kind of the learner inside.
const LEARNER: &str = "recall-tree.learner";

impl OnlineRecallTree {
    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(LEARNER);
        bundle.put_meta("preparation", &self.preparation);
        bundle.put_meta("streaming", &self.streaming);
        bundle.put_meta("bits", &self.label_bits);
        bundle.put_meta("progress", &self.progress);
        bundle.put_meta("missed", &self.missed);
        bundle.put("label_of", self.label_index.labels());
        bundle.nest("tree", self.tree.to_bundle());
        bundle.nest("scorers", self.scorers.to_bundle());
        bundle
    }

    fn from_bundle(mut bundle: Bundle, params: &Params, n_classes: usize) -> Result<Self> {
        let preparation: Preparation = bundle.take_meta("preparation")?;
        if !preparation.is_sound() {
            return Err(bundle.damaged("the preparation of examples is inconsistent"));
        }
        // Nothing as large as K is made unless the file is.
        let of_each_class = ["scorers/trained", "scorers/regressors/is_row"];
        let mut arrays = of_each_class
            .iter()
            .filter_map(|&name| bundle.arrays().get(name));
        if arrays.next().map(Array::len) != Some(n_classes) {
            return Err(bundle.damaged(format_args!("not as many scorers as classes, {n_classes}")));
        }
        let bits: f64 = bundle.take_meta("bits")?;
        if !(0.0..=uniform_bits(n_classes)).contains(&bits) {
            return Err(bundle.damaged("the entropy of the labels is out of range"));
        }
        let mut learner = Self::new(params, preparation, n_classes, bits, 0);
        learner.streaming = bundle.take_meta("streaming")?;
        learner.progress = bundle.take_meta("progress")?;
        learner.missed = bundle.take_meta("missed")?;
        let label_of: Vec<u32> = bundle.take("label_of")?;
        learner.label_index = LabelIndex::from_labels(&label_of, n_classes)
            .ok_or_else(|| bundle.damaged("the labels' numbers"))?;
        // What the tree and the scorers call labels are numbers of these.
        let n_labels = label_of.len();
        learner.tree.fill(bundle.unnest("tree")?, n_labels)?;
        learner.scorers.fill(bundle.unnest("scorers")?)?;
        Ok(learner)
    }
}

impl RoutingTree {
    fn to_bundle(&self) -> Bundle {
        let nodes = &self.arena.nodes;
        let mut bundle = Bundle::new("recall-tree.tree");
        bundle.nest("routers", self.routers.to_bundle());
        let ids = |of: fn(&Node) -> u32| nodes.iter().map(of).collect::<Vec<u32>>();
        let sums = |of: fn(&Node) -> f64| nodes.iter().map(of).collect::<Vec<f64>>();
        bundle.put(
            "first_child",
            (0..nodes.len())
                .map(|i| nodes[i].first_child())
                .collect::<Vec<u32>>(),
        );
        bundle.put("first_router", ids(|n| n.first_router));
        bundle.put("n_labels", ids(|n| n.counts.n_labels() as u32));
        bundle.put("n_candidates", ids(|n| n.counts.candidates().len() as u32));
        bundle.put("entropy", sums(|n| n.entropy));
        bundle.put("trained", sums(|n| f64::from(n.trained)));
        bundle.put("stay", sums(|n| n.parent_recalled));
        bundle.put("total", sums(|n| n.counts.total()));
        bundle.put("mass", sums(|n| n.counts.mass()));
        let (mut labels, mut counts) = (Vec::new(), Vec::new());
        let mut candidates = Vec::new();
        for node in nodes {
            let mut seen: Vec<(LocalId, f64)> = node.counts.iter().collect();
            seen.sort_unstable_by_key(|&(label, _)| label);
            labels.extend(seen.iter().map(|&(label, _)| label.0));
            counts.extend(seen.iter().map(|&(_, count)| count));
            candidates.extend(node.counts.candidates().iter().map(|label| label.0));
        }
        bundle.put("label", labels);
        bundle.put("label_count", counts);
        bundle.put("candidate", candidates);
        bundle
    }

    /// Takes in what was saved; the options are there already.
    fn fill(&mut self, mut bundle: Bundle, n_classes: usize) -> Result<()> {
        let routers = Regressors::unpack(bundle.unnest("routers")?)?;
        if !routers.same_kind(&self.routers) {
            return Err(bundle.damaged("the routers do not fit the parameters"));
        }
        self.routers = routers;
        let first_child: Vec<u32> = bundle.take("first_child")?;
        let n = first_child.len();
        let first_router: Vec<u32> = bundle.take_exactly("first_router", n)?;
        let n_labels: Vec<u32> = bundle.take_exactly("n_labels", n)?;
        let n_candidates: Vec<u32> = bundle.take_exactly("n_candidates", n)?;
        let entropy: Vec<f64> = bundle.take_exactly("entropy", n)?;
        let trained: Vec<f64> = bundle.take_exactly("trained", n)?;
        let stay: Vec<f64> = bundle.take_exactly("stay", n)?;
        let total: Vec<f64> = bundle.take_exactly("total", n)?;
        let mass: Vec<f64> = bundle.take_exactly("mass", n)?;
        let label: Vec<u32> = bundle.take("label")?;
        let label_count: Vec<f64> = bundle.take_exactly("label_count", label.len())?;
        let candidate: Vec<u32> = bundle.take("candidate")?;
        let is_sum = |x: &f64| x.is_finite() && *x >= 0.0;
        if ![&trained, &stay, &total, &mass, &label_count]
            .into_iter()
            .flatten()
            .all(is_sum)
            || !entropy.iter().all(|h| h.is_finite())
        {
            return Err(bundle.damaged("a sum is negative or not finite"));
        }
        let out_of_range = |labels: &[u32]| labels.iter().any(|&l| l as usize >= n_classes);
        if out_of_range(&label) || out_of_range(&candidate) {
            return Err(bundle.damaged("a label is out of range"));
        }
        let (mut labels, mut counts) = (&label[..], &label_count[..]);
        let mut candidates = &candidate[..];
        let mut histograms = Vec::with_capacity(n);
        for i in 0..n {
            let short = || bundle.damaged("there are fewer label entries than promised");
            let (mine, rest) = labels
                .split_at_checked(n_labels[i] as usize)
                .ok_or_else(short)?;
            let (mine_counts, rest_counts) = counts.split_at(mine.len());
            let (top, rest_top) = candidates
                .split_at_checked(n_candidates[i] as usize)
                .ok_or_else(short)?;
            (labels, counts, candidates) = (rest, rest_counts, rest_top);
            let mine = mine.iter().map(|&label| LocalId(label));
            let seen: Vec<(LocalId, f64)> = mine.zip(mine_counts.iter().copied()).collect();
            let top = top.iter().map(|&label| LocalId(label)).collect();
            let histogram = LabelCounts::from_parts(&seen, top, total[i], mass[i])
                .filter(|counts| counts.candidates().len() <= self.arena.max_candidates())
                .ok_or_else(|| bundle.damaged(format_args!("the labels of node {i}")))?;
            histograms.push((histogram, entropy[i], trained[i], stay[i]));
        }
        let children = first_child.into_iter().zip(first_router);
        let n_routers = self.routers.len();
        self.arena
            .rebuild(children, histograms, n_routers)
            .ok_or_else(|| bundle.damaged("the nodes are no tree"))
    }
}

impl Scorers {
    fn to_bundle(&self) -> Bundle {
        match self {
            Self::Plain(scorers) => scorers.to_bundle(),
            Self::Adaptive(scorers) => {
                let mut bundle = Bundle::new("recall-tree.scorers.adaptive");
                bundle.nest("regressors", scorers.regressors.to_bundle());
                bundle
            }
        }
    }

    fn fill(&mut self, mut bundle: Bundle) -> Result<()> {
        match self {
            Self::Plain(scorers) => scorers.fill(bundle),
            Self::Adaptive(AdaptiveScorers { regressors, .. }) => {
                let saved = Regressors::unpack(bundle.unnest("regressors")?)?;
                if !saved.same_kind(regressors) || saved.len() != regressors.len() {
                    return Err(bundle.damaged("the scorers do not fit the parameters"));
                }
                *regressors = saved;
                Ok(())
            }
        }
    }
}

impl PlainScorers {
    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new("recall-tree.scorers.plain");
        bundle.put("trained", &self.trained[..]);
        bundle.put_meta("passes", &self.passes);
        let layout = match &self.weights {
            WeightLayout::ByClass(weights) => {
                put_weights(&mut bundle, weights.iter());
                "class"
            }
            WeightLayout::ByColumn(columns) => {
                put_columns(&mut bundle, columns);
                "column"
            }
        };
        bundle.put_meta("layout", &layout);
        let mut of_path = Bundle::new("recall-tree.scorers.path");
        if self.path_weights.is_used() {
            put_columns(&mut of_path, &self.path_weights.columns);
        }
        bundle.nest("path", of_path);
        bundle
    }

    fn fill(&mut self, mut bundle: Bundle) -> Result<()> {
        let n_classes = self.trained.len();
        self.trained = bundle.take_exactly("trained", n_classes)?;
        if !self.trained.iter().all(|n| n.is_finite() && *n >= 0.0) {
            return Err(bundle.damaged("a number of trainings is negative or not finite"));
        }
        self.passes = bundle.take_meta("passes")?;
        if !(self.passes.is_finite() && self.passes >= 0.0) {
            return Err(bundle.damaged("the number of passes is negative"));
        }
        let layout: String = bundle.take_meta("layout")?;
        let (weights, n) = match &layout[..] {
            "class" => {
                let weights = take_weights(&mut bundle, self.width)?;
                let n = weights.len();
                (WeightLayout::ByClass(weights), n == n_classes)
            }
            "column" => {
                let columns = take_columns(&mut bundle, n_classes)?;
                let n = columns.columns().len();
                (WeightLayout::ByColumn(columns), n == self.width)
            }
            other => return Err(bundle.damaged(format_args!("unknown layout {other:?}"))),
        };
        if !n {
            return Err(bundle.damaged("the scorers do not fit the parameters"));
        }
        self.weights = weights;
        let mut inner = bundle.unnest("path")?;
        if self.path_weights.is_used() {
            self.path_weights.columns = take_columns(&mut inner, n_classes)?;
        }
        Ok(())
    }
}

/// Heads end to end, then tables as labels, in order, and values, end to end.
fn put_columns(bundle: &mut Bundle, columns: &ColumnWeights) {
    let (mut head_lengths, mut tail_lengths) = (Vec::<u32>::new(), Vec::<u32>::new());
    let (mut heads, mut labels) = (Vec::<f32>::new(), Vec::<u32>::new());
    let mut tails = Vec::<f32>::new();
    for column in columns.columns() {
        head_lengths.push(column.head().len() as u32);
        heads.extend(column.head());
        tail_lengths.push(column.tail().len() as u32);
        let mut tail: Vec<(LocalId, f32)> = column.tail().iter().collect();
        tail.sort_unstable_by_key(|&(label, _)| label);
        labels.extend(tail.iter().map(|&(label, _)| label.0));
        tails.extend(tail.iter().map(|&(_, w)| w));
    }
    bundle.put("head_lengths", head_lengths);
    bundle.put("heads", heads);
    bundle.put("tail_lengths", tail_lengths);
    bundle.put("tail_labels", labels);
    bundle.put("tails", tails);
}

fn take_columns(bundle: &mut Bundle, n_labels: usize) -> Result<ColumnWeights> {
    let head_lengths: Vec<u32> = bundle.take("head_lengths")?;
    let heads: Vec<f32> = bundle.take("heads")?;
    let tail_lengths: Vec<u32> = bundle.take_exactly("tail_lengths", head_lengths.len())?;
    let labels: Vec<u32> = bundle.take("tail_labels")?;
    let tails: Vec<f32> = bundle.take_exactly("tails", labels.len())?;
    if labels.iter().any(|&label| label as usize >= n_labels) {
        return Err(bundle.damaged("a weight's label is out of range"));
    }
    let short = || bundle.damaged("there are fewer weights than promised");
    let (mut heads, mut labels, mut tails) = (&heads[..], &labels[..], &tails[..]);
    let mut columns = Vec::with_capacity(head_lengths.len());
    for (&head_length, &tail_length) in head_lengths.iter().zip(&tail_lengths) {
        let split = |from| <[f32]>::split_at_checked(from, head_length as usize);
        let (head, more_heads) = split(heads).ok_or_else(short)?;
        let tail_length = tail_length as usize;
        let (mine, more_labels) = labels.split_at_checked(tail_length).ok_or_else(short)?;
        let (values, more_tails) = tails.split_at(tail_length);
        (heads, labels, tails) = (more_heads, more_labels, more_tails);
        let mine = mine.iter().map(|&label| LocalId(label));
        let tail = mine.zip(values.iter().copied()).collect();
        let column = Column::from_parts(head.to_vec(), tail);
        columns.push(column.ok_or_else(|| bundle.damaged("a column is out of shape"))?);
    }
    Ok(ColumnWeights::from_parts(columns))
}

impl Arena {
    /// The nodes of a saved tree, or none where they are no tree.
    fn rebuild(
        &mut self,
        children: impl Iterator<Item = (u32, u32)>,
        histograms: Vec<(LabelCounts, f64, f64, f64)>,
        n_routers: usize,
    ) -> Option<()> {
        let n = histograms.len();
        let each = self.arity() as usize;
        let parents = (0..).zip(children).filter(|&(_, (first, _))| first != 0);
        let mut parents: Vec<(u32, (u32, u32))> = parents.collect();
        // Children were made in the order in which their parents were passed.
        parents.sort_unstable_by_key(|&(_, (first, _))| first);
        for (id, (first_child, first_router)) in parents {
            let next = self.nodes.len();
            if first_child as usize != next
                || id as usize >= next
                || next + each > n
                || first_router as usize + each - 1 > n_routers
            {
                return None;
            }
            self.grow(NodeId(id), first_router);
        }
        if self.nodes.len() != n {
            return None;
        }
        let bounds: Vec<f32> = histograms.iter().map(|h| self.bound_of(&h.0)).collect();
        let nodes = self.nodes.iter_mut().zip(bounds);
        for ((node, bound), (counts, entropy, trained, stay)) in nodes.zip(histograms) {
            node.bound = bound;
            node.counts = counts;
            node.entropy = entropy;
            node.trained = trained as f32;
            node.parent_recalled = stay;
        }
        Some(())
    }
}
