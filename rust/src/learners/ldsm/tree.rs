//! A grown tree as flat arrays, with the statistics of its nodes.

use super::objective::NodeStats;
use crate::data::{PackedLists, Ragged};
use crate::error::Result;
use crate::file::{Bundle, Flat, Nest, Persist, Report};
use crate::persist;
use crate::simd::dispatched;
use crate::tree::{tree_report, NodeId};

/// A tree with its nodes in the order in which they were created, children side by side. Splits are
/// numbered in the order in which they were made, so the children of split `s` are the M nodes from
/// `1 + s M` on.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// M.
    pub arity: u32,
    /// The kind of each node; see [`Tree::node`].
    links: Flat<u32>,
    /// M weights for each column of each split, without the constant.
    pub routers: PackedLists,
    /// M weights of the constant for each split.
    pub biases: Flat<f32>,
    /// The labels of each leaf and their weights.
    pub histograms: PackedLists,
    /// 1 / the sum of each leaf's histogram, before labels were dropped.
    pub inverse_masses: Flat<f32>,
    /// Labels per training example in each leaf.
    pub labels_each: Flat<f32>,
    /// Set if the labels in the leaves are nearly as mixed as those of the root.
    pub is_mixed: bool,
    /// Statistics of the nodes, if they are kept.
    pub statistics: Option<TreeStatistics>,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// An inner node, with its number among the splits.
    Split(u32),
    /// A leaf, with its number among the leaves.
    Leaf(u32),
}

/// The bit that marks the link of a leaf.
const LEAF: u32 = 1 << 31;

impl Tree {
    pub const ROOT: NodeId = NodeId(0);

    /// Creates a tree of these nodes, without the arrays of splits and leaves.
    pub fn from_nodes(arity: u32, nodes: impl Iterator<Item = Node>) -> Self {
        let link = |node| match node {
            Node::Split(number) => number,
            Node::Leaf(number) => LEAF | number,
        };
        Self {
            arity,
            links: nodes.map(link).collect(),
            ..Self::default()
        }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the number of splits.
    pub fn n_splits(&self) -> usize {
        self.len() / self.arity as usize
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        let link = self.links[id.at()];
        if link & LEAF == 0 {
            Node::Split(link)
        } else {
            Node::Leaf(link & !LEAF)
        }
    }

    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        (0..self.len() as u32).map(|id| self.node(NodeId(id)))
    }

    /// Returns the node of each leaf.
    pub fn nodes_of_leaves(&self) -> Vec<u32> {
        let nodes = (0..).zip(self.nodes());
        let leaves = nodes.filter(|(_, node)| matches!(node, Node::Leaf(_)));
        leaves.map(|(id, _)| id).collect()
    }

    /// Returns the first child of split `number`.
    #[inline]
    pub fn first_child(&self, number: u32) -> NodeId {
        NodeId(1 + number * self.arity)
    }

    /// Returns the first child of a node if it has been split.
    pub fn children(&self, id: NodeId) -> Option<NodeId> {
        match self.node(id) {
            Node::Split(number) => Some(self.first_child(number)),
            Node::Leaf(_) => None,
        }
    }

    /// Reads a tree from a file, for rows of `width` columns.
    pub fn take(bundle: &mut Bundle, arity: u32, width: usize, n_classes: usize) -> Result<Self> {
        /// A label's share of a leaf may exceed 1 by this rounding error.
        const ROUNDING: f32 = 1e-3;
        let mut tree = Self {
            arity,
            ..Self::default()
        };
        tree.fill(bundle)?;
        let (n_splits, n_leaves) = tree
            .count()
            .ok_or_else(|| bundle.damaged("the nodes do not form a tree"))?;
        let m = arity as usize;
        tree.routers = PackedLists::take(bundle, "routers", n_splits, m, width)?;
        tree.histograms = PackedLists::take(bundle, "histograms", n_leaves, 1, n_classes)?;
        let has_lengths = tree.biases.len() == n_splits * m
            && [tree.inverse_masses.len(), tree.labels_each.len()] == [n_leaves; 2];
        let is_size = |x: &f32| *x > 0.0;
        let mass = |leaf: usize| (1.0 + ROUNDING) / tree.inverse_masses[leaf];
        let is_sound = has_lengths
            && tree.inverse_masses.iter().all(is_size)
            && tree.labels_each.iter().all(is_size)
            && tree.histograms.are_at_most(mass);
        let what = "splits or leaves differ in number or are out of range";
        bundle.require(is_sound, what)?;
        if bundle.take_meta("has_statistics")? {
            let mut statistics = TreeStatistics::default();
            Nest::fill(&mut statistics, "statistics", bundle)?;
            let fits = statistics.are_for(tree.len());
            bundle.require(fits, "the statistics differ in number from the nodes")?;
            tree.statistics = Some(statistics);
        }
        Ok(tree)
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new("tree");
        self.put(&mut bundle);
        bundle.nest("routers", self.routers.to_bundle());
        bundle.nest("histograms", self.histograms.to_bundle());
        bundle.put_meta("has_statistics", &self.statistics.is_some());
        if let Some(statistics) = &self.statistics {
            Nest::put(statistics, "statistics", &mut bundle);
        }
        bundle
    }

    /// Returns the numbers of splits and of leaves, or None if the links do not form a tree.
    fn count(&self) -> Option<(usize, usize)> {
        let (mut is_split, mut n_leaves) = (vec![false; self.len()], 0);
        for (id, node) in self.nodes().enumerate() {
            match node {
                // Children come after their only parent.
                Node::Split(number) => {
                    let first = u64::from(number) * u64::from(self.arity) + 1;
                    let is_new = !std::mem::replace(is_split.get_mut(number as usize)?, true);
                    if !is_new || first <= id as u64 {
                        return None;
                    }
                }
                Node::Leaf(number) if number == n_leaves => n_leaves += 1,
                Node::Leaf(_) => return None,
            }
        }
        let n_splits = self.len() - n_leaves as usize;
        let is_whole = n_splits * self.arity as usize + 1 == self.len();
        (is_whole && is_split[..n_splits].iter().all(|&is| is))
            .then_some((n_splits, n_leaves as usize))
    }

    /// Returns the parent of each node, [`NodeId::NONE`] for the root.
    pub fn parents(&self) -> Vec<NodeId> {
        let mut parents = vec![NodeId::NONE; self.len()];
        for id in (0..self.len() as u32).map(NodeId) {
            if let Some(first) = self.children(id) {
                parents[first.at()..][..self.arity as usize].fill(id);
            }
        }
        parents
    }
}

// `take` and `to_bundle` handle the other fields.
persist!(Tree {
    Flat links;
    Flat biases;
    Flat inverse_masses;
    Flat labels_each;
    Meta is_mixed;
});

impl Tree {
    /// Returns the nodes in the order in which they were created, each parent before its children:
    ///
    /// | column | contents |
    /// |---|---|
    /// | `parent`, `children` | numbers of nodes; -1 if there is none |
    /// | `depth` | steps from the root |
    /// | `n_weights` | number of non-zero weights |
    ///
    /// Statistics add the columns of [`TreeStatistics::report`].
    pub(super) fn report(&self) -> Report {
        let parents: Vec<i32> = self.parents().iter().map(|id| id.signed()).collect();
        let children: Vec<i32> = (0..self.len() as u32)
            .flat_map(|id| {
                let first = self.children(NodeId(id));
                (0..self.arity).map(move |j| first.map_or(-1, |first| (first.0 + j) as i32))
            })
            .collect();
        let mut report = tree_report(&parents, &children, self.arity as usize);
        report.column("n_weights", self.nodes().map(|node| self.n_weights(node)));
        if let Some(statistics) = &self.statistics {
            statistics.report(&mut report);
        }
        report
    }

    fn n_weights(&self, node: Node) -> u32 {
        let Node::Split(number) = node else {
            return 0;
        };
        let m = self.arity as usize;
        let biases = self.biases[number as usize * m..][..m].iter();
        let n_biases = biases.filter(|&&w| w != 0.0).count() as u32;
        n_biases + self.routers.n_values(number as usize)
    }
}

/// Statistics of a tree's training that no prediction needs, with one entry per node, leaves
/// included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeStatistics {
    /// Weight of the examples that reached the node.
    pub weights: Vec<f64>,
    /// Labels of these examples, increasing, and the weight of each.
    pub labels: Ragged<(u32, f32)>,
    /// The objective after training.
    pub objectives: Vec<NodeStats>,
    /// Running J by epoch.
    pub curves: Ragged<f32>,
}

impl TreeStatistics {
    /// Returns whether these are the statistics of `n` nodes.
    fn are_for(&self, n: usize) -> bool {
        let lists = [self.labels.len(), self.curves.len()];
        [self.weights.len(), self.objectives.len()] == [n; 2] && lists == [n; 2]
    }

    /// Adds the statistics of each node:
    ///
    /// | column | contents |
    /// |---|---|
    /// | `n_examples` | weight of the examples that reached the node |
    /// | `label_entropy` | entropy of their labels, in nats |
    /// | `label_starts`, `labels`, `label_counts` | their label histograms as CSR arrays |
    /// | [`NodeStats::COLUMNS`] | the objective after training; NaN for leaves |
    /// | `j_by_epoch` | running J after each epoch; NaN if there was none |
    fn report(&self, report: &mut Report) {
        let n = self.weights.len();
        report.column("n_examples", self.weights.iter().copied());
        let entropies = (0..n).map(|i| entropy(self.labels.get(i)));
        report.column("label_entropy", entropies);
        let starts = self.labels.starts().iter();
        report.column("label_starts", starts.map(|&start| start as i64));
        let labels = self.labels.entries().iter();
        report.column("labels", labels.clone().map(|&(label, _)| label));
        report.column("label_counts", labels.map(|&(_, count)| count));
        for (name, statistic) in NodeStats::COLUMNS {
            report.column(name, self.objectives.iter().map(statistic));
        }
        let n_epochs = self.curves.lengths().max().unwrap_or(0);
        let mut curves = vec![f32::NAN; n * n_epochs];
        for i in 0..n {
            let curve = self.curves.get(i);
            curves[i * n_epochs..][..curve.len()].copy_from_slice(curve);
        }
        report.matrix("j_by_epoch", curves, n_epochs);
    }
}

persist!(TreeStatistics {
    Columns weights;
    Nest labels;
    Columns objectives;
    Nest curves;
});

/// Returns the entropy of a histogram, in nats.
pub fn entropy(labels: &[(u32, f32)]) -> f64 {
    let counts = labels.iter().map(|&(_, count)| f64::from(count));
    let mass: f64 = counts.clone().sum();
    counts
        .map(|count| -(count / mass) * (count / mass).ln())
        .sum()
}

/// Returns the margins of a row, whose constant comes last: its products with the M regressors of a
/// node. `weights` looks up their weights for a column, `bias` has their weights for the constant.
#[inline]
pub fn margins<const M: usize>(
    (columns, values): (&[u32], &[f32]),
    bias: [f32; M],
    weights: impl Fn(u32) -> [f32; M],
) -> [f32; M] {
    let mut margins = [0.0f32; M];
    let n = columns.len() - 1;
    for (&column, &x) in columns[..n].iter().zip(&values[..n]) {
        let weights = weights(column);
        for j in 0..M {
            margins[j] += weights[j] * x;
        }
    }
    std::array::from_fn(|j| margins[j] + bias[j])
}

/// Number of sums of a full row's margin, which are added up in the end.
pub const N_SUMS: usize = 8;

/// Returns whether the columns of a row, the constant last, are all columns in order.
pub fn is_full(columns: &[u32]) -> bool {
    let last = columns.last().map(|&last| last as usize + 1);
    // Sparse rows end with a higher column.
    last == Some(columns.len()) && are_places(columns)
}

dispatched! {
    /// Returns whether each column is the number of its place.
    fn are_places(columns: &[u32]) -> bool {
        let places = (0..).zip(columns);
        places.fold(true, |so_far, (place, &column): (u32, _)| so_far & (column == place))
    }
}

dispatched! {
    /// Returns the margins of a row that has all columns. They may differ in the last bits from
    /// those of [`margins`], whose sums have to wait for each other.
    pub fn full_margins[M](values: &[f32], bias: [f32; M], weights: &[[f32; M]]) -> [f32; M] {
        let mut sums = [[0.0f32; M]; N_SUMS];
        let n = values.len() - 1;
        let (values, last_values) = values[..n].as_chunks::<N_SUMS>();
        let (weights, last_weights) = weights[..n].as_chunks::<N_SUMS>();
        for (values, weights) in values.iter().zip(weights) {
            for i in 0..N_SUMS {
                for j in 0..M {
                    sums[i][j] += weights[i][j] * values[i];
                }
            }
        }
        let last = last_values.iter().zip(last_weights);
        for ((x, weights), sums) in last.zip(&mut sums) {
            for j in 0..M {
                sums[j] += weights[j] * x;
            }
        }
        add_up(&sums, bias)
    }
}

/// Returns the margins of a full row from its sums.
pub fn add_up<const M: usize>(sums: &[[f32; M]; N_SUMS], bias: [f32; M]) -> [f32; M] {
    let [a, b, c, d, e, f, g, h] = sums;
    let sum = |j: usize| ((a[j] + e[j]) + (c[j] + g[j])) + ((b[j] + f[j]) + (d[j] + h[j]));
    std::array::from_fn(|j| sum(j) + bias[j])
}

/// Returns the children that an example goes to, as bits: those with a margin of at least 1/2, or
/// the one of the largest margin.
#[inline]
pub fn directions(margins: &[f32]) -> u32 {
    let (mut chosen, mut best) = (0, 0);
    for (j, &margin) in margins.iter().enumerate() {
        chosen |= u32::from(margin >= 0.5) << j;
        if margin > margins[best] {
            best = j;
        }
    }
    if chosen == 0 {
        1 << best
    } else {
        chosen
    }
}
