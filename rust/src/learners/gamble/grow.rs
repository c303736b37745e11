//! Growing a tree: best first, until it has its number of leaves or no split gains anything.
//!
//! A node costs the search for its split ([`NodeSearch`]) and O(rows) to divide it. One thread divides
//! a leaf when the tree splits it. Several threads divide all leaves at a time that the tree will
//! probably split later, because two children are not enough work for them. The children depend on
//! nothing but the leaf, so the tree is the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rayon::prelude::*;

use super::columns::Columns;
use super::node::{Node, Rule, Split};
use super::sampling::FeatureSampler;
use super::search::{ColumnSearch, NodeSearch, TrainingSet, MIN_CODES_OF_TREE};
use super::tree::{LeafRows, Leaves, Statistics, Tree, TreeNode};
use super::Params;
use crate::error::Result;
use crate::threads::{Lent, Pool};

/// Positions of a node's rows: those from which the tree is grown, and all others.
#[derive(Debug, Clone)]
struct Spans {
    sampled: Range<usize>,
    others: Range<usize>,
}

/// A leaf that may be split: the bits of its gain and its node. Gains are above 0, so their bits
/// have the same order. The largest gain comes first, among equals the oldest node.
type Candidate = (u64, Reverse<usize>);

/// Largest depth of a tree. Every level costs as much as all rows of its nodes, and on a column
/// that only admits uneven splits, a tree would be as deep as it has leaves.
const MAX_DEPTH: u32 = 512;

/// A node of a growing tree.
#[derive(Debug, Clone)]
pub struct GrownNode {
    spans: Spans,
    /// Steps from the root.
    depth: u32,
    /// Number of the node in a complete binary tree, modulo 2^64. It gives the sample of columns,
    /// which must not depend on the order in which leaves are divided.
    path: u64,
    /// The best split, which may never be made.
    pub split: Option<Split>,
    /// Position of the left child, which the right child follows; 0 before the node is divided.
    children: usize,
    /// Number of the left child in the tree; 0 in a leaf.
    left: usize,
    statistics: Statistics,
    /// Classes of a leaf's rows from which the tree is grown, in rising order, with their weights.
    by_class: Vec<(u32, f64)>,
}

/// Grows one tree after the other in the same workspace.
pub struct Grower {
    max_leaves: usize,
    workspaces: Workspaces,
    /// Rows from which the tree is grown, node by node.
    sampled: Vec<u32>,
    /// All other rows, node by node.
    others: Vec<u32>,
    /// The root, and the children of every node that was divided.
    pub nodes: Vec<GrownNode>,
    /// Positions of the nodes of the tree, in the order in which one thread finds them.
    tree: Vec<usize>,
    open: BinaryHeap<Candidate>,
    /// Gain of the last split of the tree before, as a share of that tree's weight.
    last_gain: f64,
}

impl Grower {
    pub fn new(params: &Params, n_columns: usize, n_classes: usize) -> Self {
        let features = FeatureSampler::new(n_columns, params.max_features);
        let node = Node::new(n_classes, params.min_samples_leaf as usize);
        Self {
            max_leaves: params.max_leaves as usize,
            workspaces: Workspaces {
                new: Workspace {
                    search: NodeSearch::new(node, features),
                    right: Vec::new(),
                },
                nodes: Pool::default(),
                columns: Pool::default(),
            },
            sampled: Vec::new(),
            others: Vec::new(),
            nodes: Vec::new(),
            tree: Vec::new(),
            open: BinaryHeap::new(),
            last_gain: f64::INFINITY,
        }
    }

    /// Grows a tree from the rows `sampled`, in rising order. All other rows of the training set
    /// are routed to its leaves.
    pub fn grow(&mut self, training_set: &TrainingSet<'_>, sampled: &[u32]) -> Result<()> {
        let n_columns = self.workspaces.new.search.n_columns();
        let is_large = sampled.len() * n_columns >= MIN_CODES_OF_TREE;
        let training_set = &TrainingSet {
            threads: training_set.threads && is_large,
            ..*training_set
        };
        sampled.clone_into(&mut self.sampled);
        self.others.clear();
        let mut next = 0;
        for &row in sampled.iter().chain([&(training_set.weights.len() as u32)]) {
            self.others.extend(next..row);
            next = row + 1;
        }
        self.nodes.clear();
        self.tree.clear();
        self.open.clear();
        let root = Leaf {
            spans: Spans {
                sampled: 0..self.sampled.len(),
                others: 0..self.others.len(),
            },
            depth: 0,
            path: 0,
            may_split: true,
        };
        let rows = [&self.sampled[..], &self.others];
        let workspaces = &self.workspaces;
        let columns = &workspaces.columns;
        let root = root.read(training_set, rows, &mut workspaces.lend().search, columns);
        self.nodes.push(root);
        self.add(0);
        let mut last_gain = 0.0;
        for n_splits_left in (1..self.max_leaves).rev() {
            training_set.control.check()?;
            let Some((_, Reverse(number))) = self.open.pop() else {
                break;
            };
            let at = self.tree[number];
            let may_split = n_splits_left > 1;
            if self.nodes[at].children > 0 {
                // Several threads divided the leaf in advance.
            } else if training_set.threads {
                let leaves = self.likely_splits(at, n_splits_left);
                self.divide_all(training_set, &leaves, may_split);
            } else {
                self.divide(training_set, at, may_split);
            }
            let node = &mut self.nodes[at];
            let children = node.children;
            node.left = self.tree.len();
            node.by_class = Vec::new();
            node.statistics.gain = node.gain();
            last_gain = node.gain();
            self.add(children);
            self.add(children + 1);
        }
        self.last_gain = last_gain / self.nodes[0].statistics.weight;
        if training_set.threads {
            self.sort_leaves();
        }
        Ok(())
    }

    /// Returns the positions of all nodes that are not divided and will probably be split in a tree
    /// that gets `n_splits_left` more splits, in the order of their rows. The next split is that of
    /// the leaf at `next`. Splits are made best first, and the last one has about the gain of the
    /// last split of the tree before.
    fn likely_splits(&self, next: usize, n_splits_left: usize) -> Vec<usize> {
        let nodes = &self.nodes;
        let gain = nodes[next].gain();
        let last = self.last_gain * nodes[0].statistics.weight;
        let (mut least, n_likely) = if gain >= last {
            (last, n_splits_left)
        } else {
            // The tree is past that gain. Children may take the place of half of the best leaves.
            (0.0, n_splits_left / 2)
        };
        let open = nodes.iter().enumerate();
        let open = open.filter(|(_, node)| node.left == 0 && node.split.is_some());
        let mut open: Vec<(f64, usize)> = open.map(|(at, node)| (node.gain(), at)).collect();
        if n_likely < open.len() {
            let (_, nth, _) = open.select_nth_unstable_by(n_likely, |a, b| b.0.total_cmp(&a.0));
            least = least.max(nth.0);
        }
        open.retain(|&(own, at)| own >= least.min(gain) && nodes[at].children == 0);
        let mut leaves: Vec<usize> = open.into_iter().map(|(_, at)| at).collect();
        leaves.sort_unstable_by_key(|&at| nodes[at].spans.sampled.start);
        leaves
    }

    /// Divides the `leaves`, which are in the order of their rows, on several threads.
    fn divide_all(&mut self, training_set: &TrainingSet<'_>, leaves: &[usize], may_split: bool) {
        let (nodes, workspaces) = (&self.nodes, &self.workspaces);
        let mut sampled = Untaken::new(&mut self.sampled);
        let mut others = Untaken::new(&mut self.others);
        let leaves_with_rows = leaves.iter().map(|&at| {
            let spans = &nodes[at].spans;
            let rows = [sampled.take(&spans.sampled), others.take(&spans.others)];
            (&nodes[at], rows)
        });
        let leaves_with_rows: Vec<_> = leaves_with_rows.collect();
        // Leaves differ in size, so a thread takes one at a time.
        let leaves_with_rows = leaves_with_rows.into_par_iter().with_max_len(1);
        let divide =
            |(leaf, rows): (&GrownNode, _)| leaf.divide(training_set, rows, may_split, workspaces);
        let children: Vec<_> = leaves_with_rows.map(divide).collect();
        for (&at, children) in leaves.iter().zip(children) {
            self.attach(at, children);
        }
    }

    /// Divides the leaf at `at` on this thread.
    fn divide(&mut self, training_set: &TrainingSet<'_>, at: usize, may_split: bool) {
        let leaf = &self.nodes[at];
        let Spans { sampled, others } = leaf.spans.clone();
        let rows = [&mut self.sampled[sampled], &mut self.others[others]];
        let children = leaf.divide(training_set, rows, may_split, &self.workspaces);
        self.attach(at, children);
    }

    /// Stores the children of the node at `node`.
    fn attach(&mut self, node: usize, children: [GrownNode; 2]) {
        self.nodes[node].children = self.nodes.len();
        self.nodes.extend(children);
    }

    /// Sorts the rows of leaves that were divided in vain. The order of sums over the rows of a leaf
    /// then does not depend on the number of threads.
    fn sort_leaves(&mut self) {
        for &at in &self.tree {
            let node = &self.nodes[at];
            if node.left == 0 && node.children > 0 {
                self.sampled[node.spans.sampled.clone()].sort_unstable();
                self.others[node.spans.others.clone()].sort_unstable();
            }
        }
    }

    /// Adds the node at `at` to the tree.
    fn add(&mut self, at: usize) {
        let (node, number) = (&self.nodes[at], self.tree.len());
        if node.split.is_some() {
            self.open.push((node.gain().to_bits(), Reverse(number)));
        }
        self.tree.push(at);
    }

    /// Returns the nodes of the tree.
    fn tree(&self) -> impl Iterator<Item = &GrownNode> {
        self.tree.iter().map(|&at| &self.nodes[at])
    }

    /// Returns the classes of the rows of each leaf with their weights, in the order of the nodes,
    /// and true if the node above the leaf is split by a set of categories.
    pub fn classes_of_leaves(&self) -> impl Iterator<Item = (&[(u32, f64)], bool)> {
        let mut below_set = vec![false; self.tree.len()];
        for node in self.tree().filter(|node| node.left > 0) {
            let rule = node.split.as_ref().map(|split| &split.rule);
            below_set[node.left..][..2].fill(matches!(rule, Some(Rule::Subset(_))));
        }
        let leaves = self.tree().zip(below_set);
        let leaves = leaves.filter(|(node, _)| node.left == 0);
        leaves.map(|(node, below_set)| (&node.by_class[..], below_set))
    }

    /// Returns the rows of each leaf, in the order of the nodes.
    pub fn leaves(&self) -> impl Iterator<Item = LeafRows<'_>> {
        let leaves = self.tree().filter(|node| node.left == 0);
        leaves.map(|node| LeafRows {
            sampled: &self.sampled[node.spans.sampled.clone()],
            others: &self.others[node.spans.others.clone()],
        })
    }

    /// Returns the tree with the votes `leaves`. Its nodes keep their numbers.
    pub fn freeze(&self, columns: &Columns, leaves: Leaves) -> Tree {
        let mut tree = Tree {
            leaves,
            ..Tree::default()
        };
        let mut n_leaves = 0;
        for node in self.tree() {
            match &node.split {
                Some(split) if node.left > 0 => tree.push_split(columns, split, node.left as u32),
                _ => {
                    tree.nodes.push(TreeNode {
                        feature: n_leaves,
                        ..TreeNode::default()
                    });
                    n_leaves += 1;
                }
            }
            tree.statistics.push(node.statistics);
        }
        tree
    }
}

/// The part of an array that is not taken yet.
struct Untaken<'a> {
    start: usize,
    rows: &'a mut [u32],
}

impl<'a> Untaken<'a> {
    fn new(rows: &'a mut [u32]) -> Self {
        Self { start: 0, rows }
    }

    /// Takes the rows at the positions `span`, which come after all that were taken.
    fn take(&mut self, span: &Range<usize>) -> &'a mut [u32] {
        let _ = self.rows.split_off_mut(..span.start - self.start);
        self.start = span.end;
        self.rows.split_off_mut(..span.len()).unwrap_or_default()
    }
}

/// Workspace for dividing a node and searching one of its children.
#[derive(Debug, Clone)]
struct Workspace {
    search: NodeSearch,
    /// Buffer for dividing rows.
    right: Vec<u32>,
}

/// Workspaces of nodes that are divided at the same time.
struct Workspaces {
    new: Workspace,
    nodes: Pool<Box<Workspace>>,
    columns: Pool<ColumnSearch>,
}

impl Workspaces {
    fn lend(&self) -> Lent<'_, Box<Workspace>> {
        self.nodes.lend(|| Box::new(self.new.clone()))
    }

    /// Returns the results of both functions, which run at the same time if `is_parallel`.
    fn join<A: Send, B: Send>(
        &self,
        is_parallel: bool,
        own: &mut Workspace,
        a: impl FnOnce(&mut Workspace) -> A + Send,
        b: impl FnOnce(&mut Workspace) -> B + Send,
    ) -> (A, B) {
        if is_parallel {
            rayon::join(|| a(own), || b(&mut self.lend()))
        } else {
            (a(own), b(own))
        }
    }
}

impl GrownNode {
    /// Returns the gain of the best split, or 0 if there is none.
    fn gain(&self) -> f64 {
        self.split.as_ref().map_or(0.0, |split| split.gain)
    }

    /// Divides the rows of the node, sampled and others, by its best split, and reads the children.
    /// `may_split` is true if they may be split later.
    fn divide(
        &self,
        training_set: &TrainingSet<'_>,
        [sampled, others]: [&mut [u32]; 2],
        may_split: bool,
        workspaces: &Workspaces,
    ) -> [Self; 2] {
        let (columns, threads) = (training_set.columns, training_set.threads);
        let own = &mut workspaces.lend();
        let part = |rows: &mut [u32], own: &mut Workspace| {
            self.split.as_ref().map_or(0, |split| {
                let goes_left = |code| split.rule.goes_left(code);
                columns.partition(split.column, rows, &mut own.right, goes_left)
            })
        };
        let (n_left, n_left_others) = workspaces.join(
            threads,
            own,
            |own| part(sampled, own),
            |own| part(others, own),
        );
        let (left, right) = sampled.split_at(n_left);
        let (left_others, right_others) = others.split_at(n_left_others);
        let child = |side: usize, rows: [&[u32]; 2], workspace: &mut Workspace| {
            let starts = [
                self.spans.sampled.start + side * n_left,
                self.spans.others.start + side * n_left_others,
            ];
            let leaf = Leaf {
                spans: Spans {
                    sampled: starts[0]..starts[0] + rows[0].len(),
                    others: starts[1]..starts[1] + rows[1].len(),
                },
                depth: self.depth + 1,
                path: self.path.wrapping_mul(2).wrapping_add(1 + side as u64),
                may_split: may_split && self.depth + 1 < MAX_DEPTH,
            };
            let columns = &workspaces.columns;
            leaf.read(training_set, rows, &mut workspace.search, columns)
        };
        let (left, right) = workspaces.join(
            threads,
            own,
            |own| child(0, [left, left_others], own),
            |own| child(1, [right, right_others], own),
        );
        [left, right]
    }
}

/// A leaf that is about to be added.
struct Leaf {
    spans: Spans,
    depth: u32,
    path: u64,
    /// True if the leaf may be split later.
    may_split: bool,
}

impl Leaf {
    /// Reads the rows of the leaf, sampled and others, and finds its best split if it may be split.
    fn read(
        self,
        training_set: &TrainingSet<'_>,
        [sampled, others]: [&[u32]; 2],
        search: &mut NodeSearch,
        columns: &Pool<ColumnSearch>,
    ) -> GrownNode {
        let (labels, weights) = (training_set.labels, training_set.weights);
        let threads = training_set.threads;
        search.node.read(sampled, labels, weights, threads);
        let node = &search.node;
        let statistics = Statistics {
            n_rows: node.len() as u32,
            weight: node.weight * node.unit,
            gain: 0.0,
            entropy: node.entropy(),
        };
        let by_class = node.by_class();
        let can_gain = node.totals.len() > 1 && node.len() >= 2 * node.min_rows;
        let mut split = None;
        if self.may_split && can_gain {
            split = search.best_split(training_set, self.path, others, columns);
        }
        GrownNode {
            spans: self.spans,
            depth: self.depth,
            path: self.path,
            split,
            children: 0,
            left: 0,
            statistics,
            by_class,
        }
    }
}
