//! A forest as named arrays, with everything needed to go on learning.

use super::arena::{Arena, LabelStat, Node};
use super::{Forest, Params, Tree};
use crate::classifier::checks::is_possible;
use crate::data::Preparation;
use crate::error::Result;
use crate::file::{Bundle, LegacyPersist};
use crate::linear::{Regressors, Table};
use crate::tree::NodeId;

impl LegacyPersist for Forest {
    const KIND: &'static str = "lomtree";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("n_features", &self.n_features);
        bundle.put_meta("n_trees", &self.trees.len());
        for (number, tree) in self.trees.iter().enumerate() {
            bundle.nest(&format!("tree{number}"), tree.to_bundle());
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let params = params.check().map_err(|error| bundle.damaged(error))?;
        let n_classes: usize = bundle.take_meta("n_classes")?;
        let n_features: usize = bundle.take_meta("n_features")?;
        let n_trees: usize = bundle.take_meta("n_trees")?;
        // There are fewer after a fit that was stopped half way.
        if n_trees > params.n_estimators as usize {
            return Err(bundle.damaged("there are more trees than the parameters say"));
        }
        if !is_possible(n_classes) {
            return Err(bundle.damaged(format_args!("{n_classes} classes")));
        }
        let mut trees = Vec::new();
        for number in 0..n_trees {
            let inner = bundle.unnest(&format!("tree{number}"))?;
            inner.expect_kind(TREE)?;
            trees.push(Tree::from_bundle(inner, &params, n_classes)?);
        }
        Ok(Self::from_parts(params, n_classes, n_features, trees))
    }
}

/// Kind of a tree inside a forest.
const TREE: &str = "lomtree.tree";

impl Tree {
    fn to_bundle(&self) -> Bundle {
        let arena = &self.arena;
        let mut bundle = Bundle::new(TREE);
        bundle.put_meta("preparation", &self.preparation);
        bundle.put_meta("streaming", &self.streaming);
        bundle.put_meta("progress", &self.progress);
        bundle.put_meta("root", &arena.root.0);
        bundle.put_meta("n_swaps", &arena.n_swaps);
        bundle.nest("regressors", self.regressors.to_bundle());
        let nodes = &arena.nodes;
        let ids = |of: fn(&Node) -> u32| nodes.iter().map(of).collect::<Vec<u32>>();
        let sums = |of: fn(&Node) -> f64| nodes.iter().map(of).collect::<Vec<f64>>();
        bundle.put("parent", ids(|n| n.parent.0));
        bundle.put("left", ids(|n| n.left.0));
        bundle.put("right", ids(|n| n.right.0));
        bundle.put("regressor", ids(|n| n.regressor));
        bundle.put("recycled", ids(|n| n.recycled));
        bundle.put("top", ids(|n| n.top));
        bundle.put("n_labels", ids(|n| n.labels.len() as u32));
        bundle.put("top_arrivals", sums(|n| n.top_arrivals));
        bundle.put("count", sums(|n| n.count));
        bundle.put("score", sums(|n| n.score));
        bundle.put("size", sums(|n| n.size));
        let mut stats: Vec<(u32, LabelStat)> = Vec::new();
        for node in nodes {
            let from = stats.len();
            stats.extend(node.labels.iter().map(|(label, &stat)| (label, stat)));
            stats[from..].sort_unstable_by_key(|&(label, _)| label);
        }
        let stat =
            |of: fn(&LabelStat) -> f64| stats.iter().map(|(_, s)| of(s)).collect::<Vec<f64>>();
        bundle.put(
            "label",
            stats.iter().map(|&(label, _)| label).collect::<Vec<u32>>(),
        );
        bundle.put(
            "label_before",
            stats.iter().map(|(_, s)| s.before).collect::<Vec<f32>>(),
        );
        bundle.put("label_count", stat(|s| s.count));
        bundle.put("label_score", stat(|s| s.score));
        bundle
    }

    fn from_bundle(mut bundle: Bundle, params: &Params, n_classes: usize) -> Result<Self> {
        let preparation: Preparation = bundle.take_meta("preparation")?;
        if !preparation.is_sound() {
            return Err(bundle.damaged("the preparation of examples is inconsistent"));
        }
        let mut tree = Tree::new(params, preparation, n_classes);
        tree.streaming = bundle.take_meta("streaming")?;
        tree.progress = bundle.take_meta("progress")?;
        let regressors = Regressors::unpack(bundle.unnest("regressors")?)?;
        if !regressors.same_kind(&tree.regressors) {
            return Err(bundle.damaged("the regressors do not fit the parameters"));
        }
        tree.regressors = regressors;
        tree.arena = take_arena(&mut bundle, n_classes, tree.regressors.len())?;
        Ok(tree)
    }
}

fn take_arena(bundle: &mut Bundle, n_classes: usize, n_regressors: usize) -> Result<Arena> {
    let parent: Vec<u32> = bundle.take("parent")?;
    let n = parent.len();
    let left: Vec<u32> = bundle.take_exactly("left", n)?;
    let right: Vec<u32> = bundle.take_exactly("right", n)?;
    let regressor: Vec<u32> = bundle.take_exactly("regressor", n)?;
    let recycled: Vec<u32> = bundle.take_exactly("recycled", n)?;
    let top: Vec<u32> = bundle.take_exactly("top", n)?;
    let n_labels: Vec<u32> = bundle.take_exactly("n_labels", n)?;
    let top_arrivals: Vec<f64> = bundle.take_exactly("top_arrivals", n)?;
    let count: Vec<f64> = bundle.take_exactly("count", n)?;
    let score: Vec<f64> = bundle.take_exactly("score", n)?;
    let size: Vec<f64> = bundle.take_exactly("size", n)?;
    let label: Vec<u32> = bundle.take("label")?;
    let label_before: Vec<f32> = bundle.take_exactly("label_before", label.len())?;
    let label_count: Vec<f64> = bundle.take_exactly("label_count", label.len())?;
    let label_score: Vec<f64> = bundle.take_exactly("label_score", label.len())?;
    // Sizes that are no sizes could make a leaf take itself for its own child.
    let is_size = |size: &f64| size.is_finite() && *size >= 0.0;
    let sizes = [&top_arrivals, &count, &size, &label_count];
    if !sizes.into_iter().flatten().all(is_size)
        || !label_before.iter().all(|&n| is_size(&f64::from(n)))
    {
        return Err(bundle.damaged("a number of examples is negative or not finite"));
    }
    if n_labels.iter().map(|&n| n as usize).sum::<usize>() != label.len() {
        return Err(bundle.damaged("there are not as many label entries as promised"));
    }
    if label
        .iter()
        .chain(&top)
        .any(|&label| label as usize >= n_classes)
    {
        return Err(bundle.damaged("a label is out of range"));
    }
    let mut arena = Arena::new();
    arena.nodes.clear();
    let mut from = 0;
    for i in 0..n {
        let to = from + n_labels[i] as usize;
        let stats: Vec<(u32, LabelStat)> = (from..to)
            .map(|at| {
                let stat = LabelStat {
                    before: label_before[at],
                    count: label_count[at],
                    score: label_score[at],
                };
                (label[at], stat)
            })
            .collect();
        from = to;
        arena.nodes.push(Node {
            parent: NodeId(parent[i]),
            left: NodeId(left[i]),
            right: NodeId(right[i]),
            regressor: regressor[i],
            recycled: recycled[i],
            top: top[i],
            top_arrivals: top_arrivals[i],
            count: count[i],
            score: score[i],
            size: size[i],
            labels: stats.into_iter().collect::<Table<LabelStat>>(),
        });
    }
    arena.root = NodeId(bundle.take_meta("root")?);
    arena.n_swaps = bundle.take_meta("n_swaps")?;
    arena.n_internal = arena.nodes.iter().filter(|node| !node.is_leaf()).count() as u32;
    arena
        .check(n_regressors)
        .map_err(|what| bundle.damaged(what))?;
    Ok(arena)
}
