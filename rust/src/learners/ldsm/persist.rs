//! LdSM as named arrays.

use super::centroids::Centroids;
use super::model::Ldsm;
use super::node_stats::NodeStats;
use super::objective::ObjectiveTerms;
use super::params::Params;
use super::tree::{inverse_mass, Tree};
use crate::classifier::checks::is_possible;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, LegacyPersist};
use crate::learners::oaa::Oaa;
use crate::tree::NodeId;

impl LegacyPersist for Ldsm {
    const KIND: &'static str = "ldsm";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("preparation", &self.preparation);
        bundle.put_meta("n_trees", &self.trees.len());
        for (t, tree) in self.trees.iter().enumerate() {
            bundle.nest(&format!("tree{t}"), tree.to_bundle());
        }
        bundle.put_meta("has_centroids", &self.centroids.is_some());
        if let Some(centroids) = &self.centroids {
            let mut inner = Bundle::new("ldsm.centroids");
            put_pairs(&mut inner, "column", "mean", &centroids.means);
            bundle.nest("centroids", inner);
        }
        bundle.put_meta("has_scorers", &self.scorers.is_some());
        if let Some(scorers) = &self.scorers {
            bundle.nest("scorers", scorers.to_bundle());
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let n_classes: usize = bundle.take_meta("n_classes")?;
        if !is_possible(n_classes) {
            return Err(bundle.damaged(format_args!("{n_classes} classes")));
        }
        let mut ldsm = Self::new(params, n_classes).map_err(|error| bundle.damaged(error))?;
        ldsm.preparation = bundle.take_meta("preparation")?;
        let n_trees: usize = bundle.take_meta("n_trees")?;
        let preparation = match &ldsm.preparation {
            Some(preparation) if preparation.is_sound() => preparation,
            None if n_trees == 0 => return Ok(ldsm),
            _ => return Err(bundle.damaged("the preparation of examples is inconsistent")),
        };
        let width = preparation.width();
        for t in 0..n_trees {
            let inner = bundle.unnest(&format!("tree{t}"))?;
            inner.expect_kind(TREE)?;
            let tree = Tree::from_bundle(inner, ldsm.params.arity, width, n_classes)?;
            ldsm.trees.push(tree);
        }
        if bundle.take_meta("has_centroids")? {
            let mut inner = bundle.unnest("centroids")?;
            let means = take_pairs(&mut inner, "column", "mean", n_classes, width)?;
            ldsm.centroids = Some(Centroids::from_means(means));
        }
        if bundle.take_meta("has_scorers")? {
            let scorers = Oaa::from_bundle(bundle.unnest("scorers")?)?;
            if scorers.n_classes() != n_classes
                || scorers.n_features() != Some(preparation.n_features())
            {
                return Err(bundle.damaged("the scorers are of another shape"));
            }
            ldsm.scorers = Some(scorers);
        }
        Ok(ldsm)
    }
}

/// Kind of a tree inside.
const TREE: &str = "ldsm.tree";

impl Tree {
    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(TREE);
        let ids = |ids: &[NodeId]| ids.iter().map(|id| id.0).collect::<Vec<u32>>();
        bundle.put("first_child", ids(&self.first_child));
        bundle.put("weight", &self.weight[..]);
        bundle.put("n_examples", &self.n_examples[..]);
        put_pairs(&mut bundle, "label", "label_count", &self.labels);
        bundle.put("n_columns", self.columns.lengths());
        bundle.put("columns", self.columns.entries());
        bundle.put("weights", &self.weights[..]);
        let stats = |of: fn(&NodeStats) -> f64| self.stats.iter().map(of).collect::<Vec<f64>>();
        for (name, of) in NodeStats::NAMED {
            bundle.put(name, stats(of));
        }
        bundle.put("n_epochs", self.curves.lengths());
        bundle.put("curves", self.curves.entries());
        bundle
    }

    fn from_bundle(mut bundle: Bundle, arity: u32, width: usize, n_classes: usize) -> Result<Self> {
        let first_child: Vec<u32> = bundle.take("first_child")?;
        let n = first_child.len();
        let labels = take_pairs(&mut bundle, "label", "label_count", n, n_classes)?;
        if !labels.entries().iter().all(|&(_, count)| count > 0.0) {
            return Err(bundle.damaged("a label's count is not positive"));
        }
        let lengths: Vec<u32> = bundle.take_exactly("n_columns", n)?;
        let columns = Ragged::from_lengths(&lengths, bundle.take("columns")?)
            .filter(|columns| (0..n).all(|i| is_increasing(columns.get(i), width)))
            .ok_or_else(|| bundle.damaged("the columns of a node"))?;
        let n_weights = columns.entries().len() * arity as usize;
        let weights: Vec<f32> = bundle.take_exactly("weights", n_weights)?;
        if !weights.iter().all(|w| w.is_finite()) {
            return Err(bundle.damaged("a weight is not finite"));
        }
        let mut stats = vec![NodeStats::NONE; n];
        let mut terms: Vec<Vec<f64>> = Vec::new();
        for (name, _) in NodeStats::NAMED {
            terms.push(bundle.take_exactly(name, n)?);
        }
        for (i, stats) in stats.iter_mut().enumerate() {
            *stats = NodeStats {
                terms: ObjectiveTerms {
                    j: terms[0][i],
                    balance: terms[1][i],
                    integrity: terms[2][i],
                    penalty: terms[3][i],
                },
                balancedness: terms[4][i],
                purity: terms[5][i],
            };
        }
        let lengths: Vec<u32> = bundle.take_exactly("n_epochs", n)?;
        let curves = Ragged::from_lengths(&lengths, bundle.take("curves")?)
            .ok_or_else(|| bundle.damaged("the epochs of a node"))?;
        let weight: Vec<f64> = bundle.take_exactly("weight", n)?;
        if !weight.iter().all(|w| w.is_finite() && *w > 0.0) {
            return Err(bundle.damaged("a node's weight is not positive"));
        }
        let parents = parents_of(&first_child, arity)
            .ok_or_else(|| bundle.damaged("the nodes are no tree"))?;
        Ok(Self {
            arity,
            parents,
            first_child: first_child.into_iter().map(NodeId).collect(),
            weight,
            n_examples: bundle.take_exactly("n_examples", n)?,
            inverse_mass: (0..n).map(|i| inverse_mass(labels.get(i))).collect(),
            labels,
            columns,
            weights,
            stats,
            curves,
        })
    }
}

/// The node above each, if these are the first children of a tree whose nodes
/// came into being one family after the other.
fn parents_of(first_child: &[u32], arity: u32) -> Option<Vec<NodeId>> {
    let n = first_child.len();
    let mut parents = vec![NodeId::NONE; n];
    for (id, &first) in first_child
        .iter()
        .enumerate()
        .filter(|(_, &first)| first != 0)
    {
        let children = parents
            .get_mut(first as usize..)?
            .get_mut(..arity as usize)?;
        if first as usize <= id || children.iter().any(|parent| parent.is_some()) {
            return None;
        }
        children.fill(NodeId(id as u32));
    }
    let is_whole = n > 0 && parents[1..].iter().all(|parent| parent.is_some());
    is_whole.then_some(parents)
}

fn is_increasing(numbers: &[u32], end: usize) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
        && numbers.last().is_none_or(|&last| (last as usize) < end)
}

/// Lists of numbers with a value each, as their lengths, numbers and values.
fn put_pairs(bundle: &mut Bundle, name: &str, value: &str, lists: &Ragged<(u32, f32)>) {
    let (numbers, values): (Vec<u32>, Vec<f32>) = lists.entries().iter().copied().unzip();
    bundle.put(&format!("n_{name}s"), lists.lengths());
    bundle.put(name, numbers);
    bundle.put(value, values);
}

fn take_pairs(
    bundle: &mut Bundle,
    name: &str,
    value: &str,
    n: usize,
    end: usize,
) -> Result<Ragged<(u32, f32)>> {
    let lengths: Vec<u32> = bundle.take_exactly(&format!("n_{name}s"), n)?;
    let numbers: Vec<u32> = bundle.take(name)?;
    let values: Vec<f32> = bundle.take_exactly(value, numbers.len())?;
    let is_finite = values.iter().all(|value| value.is_finite());
    let numbers = Ragged::from_lengths(&lengths, numbers)
        .filter(|lists| is_finite && (0..n).all(|i| is_increasing(lists.get(i), end)))
        .ok_or_else(|| bundle.damaged(format_args!("the {name}s are out of order or range")))?;
    let pairs = numbers.entries().iter().copied().zip(values).collect();
    Ragged::from_lengths(&lengths, pairs)
        .ok_or_else(|| bundle.damaged(format_args!("there are fewer {name}s than promised")))
}
