//! Counts the products and the cache lines of weights that rows need on their paths through trees.

use std::collections::{BTreeSet, HashSet};

use crate::ceilings::{Ceilings, LINE};
use crate::set::Set;
use crate::{entries, BYTES};
use xmtree::file::Report;
use xmtree::model::{Classifier, Query};
use xmtree::Control;

/// Number of rows that descend a tree together.
const BLOCK: usize = 2048;

/// Returns the nodes from `at` up to the root.
fn path(parent: &[i32], at: usize) -> impl Iterator<Item = usize> + use<'_> {
    std::iter::successors(Some(at), |&node| usize::try_from(parent[node]).ok())
}

/// Labels that are scored at the final nodes of a Recall Tree.
struct Candidates {
    starts: Vec<i64>,
    labels: Vec<u32>,
}

impl Candidates {
    fn read(tree: &Report, parent: &[i32]) -> Option<Self> {
        let starts: Vec<i64> = tree.get("candidate_starts")?;
        assert_eq!(starts.len(), parent.len() + 1);
        let labels = tree.get("candidates")?;
        Some(Self { starts, labels })
    }

    fn at(&self, node: usize) -> &[u32] {
        &self.labels[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Returns the number of candidates at `node`, which adds those of its ancestors if it has few.
    fn number(&self, parent: &[i32], node: usize) -> usize {
        let most = self.starts.windows(2).map(|ends| ends[1] - ends[0]).max();
        let all: HashSet<u32> = path(parent, node)
            .flat_map(|node| self.at(node))
            .copied()
            .collect();
        all.len().min(most.unwrap_or(0) as usize)
    }
}

/// A node that has weights: a router, or a final node with candidates.
struct Node {
    depth: usize,
    /// Number of weights of a column.
    width: usize,
    /// Number of columns that have weights. They are assumed to be stored without gaps.
    n_columns: usize,
}

impl Node {
    /// Returns the number of cache lines of all weights.
    fn n_lines(&self) -> usize {
        if self.width > 1 {
            self.n_columns * self.width.div_ceil(LINE)
        } else {
            self.n_columns.div_ceil(LINE)
        }
    }

    /// Returns the number of cache lines of the weights of these columns.
    fn lines(&self, columns: &HashSet<u32>) -> usize {
        let n = if self.width > 1 {
            columns.len() * self.width.div_ceil(LINE)
        } else {
            let lines: HashSet<u32> = columns.iter().map(|column| column / LINE as u32).collect();
            lines.len()
        };
        n.min(self.n_lines())
    }
}

/// Counts for the nodes of one depth.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Visits of nodes by rows.
    visits: usize,
    /// Cache lines that the visits need, one row after the other.
    lines: usize,
    /// Bytes of weights at this depth and above.
    size: usize,
}

/// Counts over all rows of a data set.
#[derive(Default)]
pub struct Passed {
    n_rows: usize,
    /// Products with single weights.
    products: usize,
    /// Products with the contiguous weights of a column.
    wide_products: usize,
    /// Cache lines that the blocks of rows need; each is counted once for a block.
    block_lines: usize,
    levels: Vec<Level>,
}

impl Passed {
    /// Counts for all trees of `model`. `arity` is the number of weights of a router for a column.
    pub fn count(model: &dyn Classifier, set: &Set, arity: usize) -> Self {
        let (rows, control) = (set.rows(), Control::new(0));
        let leaves = model.leaves(&Query::new(&rows, 1, &control));
        let leaves = leaves.expect("trees");
        let columns: Vec<HashSet<u32>> = (0..set.n_rows).map(|row| columns_of(set, row)).collect();
        let mut all = Self {
            n_rows: set.n_rows,
            ..Self::default()
        };
        for (number, tree) in (0..).zip(model.reports()) {
            let parent: Vec<i32> = tree.get("parent").expect("parents");
            let depth: Vec<u32> = tree.get("depth").expect("depths");
            let n_weights: Option<Vec<u32>> = tree.get("n_weights");
            let candidates = Candidates::read(&tree, &parent);
            let n = parent.len();
            // Nodes that each row visits. Nodes that several paths of a row share count once.
            let met: Vec<BTreeSet<usize>> = leaves
                .iter()
                .map(|leaves| {
                    let mut met = BTreeSet::new();
                    for leaf in leaves.iter().filter(|leaf| leaf.tree == number) {
                        let leaf = leaf.node as usize;
                        met.extend(path(&parent, leaf).skip(1));
                        met.extend(candidates.is_some().then_some(n + leaf));
                    }
                    met
                })
                .collect();
            // All nodes as routers, then all nodes as ends of paths.
            let routers = (0..n).map(|at| Node {
                depth: depth[at] as usize,
                width: arity,
                n_columns: n_weights
                    .as_ref()
                    .map_or(usize::MAX, |n| (n[at] as usize).div_ceil(arity)),
            });
            let ends = (0..n).filter_map(|at| {
                Some(Node {
                    depth: depth[at] as usize,
                    width: candidates.as_ref()?.number(&parent, at),
                    n_columns: usize::MAX,
                })
            });
            let mut nodes: Vec<Node> = routers.chain(ends).collect();
            all.add_tree(&mut nodes, &met, &columns);
        }
        all
    }

    fn add_tree(&mut self, nodes: &mut [Node], met: &[BTreeSet<usize>], columns: &[HashSet<u32>]) {
        let mut known: Vec<HashSet<u32>> = vec![HashSet::new(); nodes.len()];
        for (met, columns) in met.iter().zip(columns) {
            for &node in met {
                known[node].extend(columns);
            }
        }
        for (node, known) in nodes.iter_mut().zip(known) {
            node.n_columns = node.n_columns.min(known.len());
        }
        let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let n_levels = self.levels.len().max(deepest + 1);
        let total = self.levels.last().map_or(0, |last| last.size);
        let beyond = Level {
            size: total,
            ..Level::default()
        };
        self.levels.resize(n_levels, beyond);
        for node in nodes.iter() {
            let below = &mut self.levels[node.depth..];
            let bytes = node.n_lines() * LINE * BYTES;
            below.iter_mut().for_each(|level| level.size += bytes);
        }
        for (met, columns) in met.chunks(BLOCK).zip(columns.chunks(BLOCK)) {
            let mut needed: Vec<HashSet<u32>> = vec![HashSet::new(); nodes.len()];
            for (met, columns) in met.iter().zip(columns) {
                for &at in met {
                    let node = &nodes[at];
                    needed[at].extend(columns);
                    if node.width > 1 {
                        self.wide_products += columns.len() * node.width;
                    } else {
                        self.products += columns.len();
                    }
                    let level = &mut self.levels[node.depth];
                    level.visits += 1;
                    level.lines += node.lines(columns);
                }
            }
            let lines = nodes.iter().zip(&needed);
            self.block_lines += lines
                .map(|(node, needed)| node.lines(needed))
                .sum::<usize>();
        }
    }

    /// Returns the least time of a row's products, in nanoseconds.
    fn products(&self, ceilings: &mut Ceilings) -> f64 {
        let single = self.products as f64 * ceilings.scattered_product();
        (single + self.wide_products as f64 * ceilings.product()) / self.n_rows as f64
    }

    /// Returns the least time of a row in nanoseconds if blocks of rows descend together.
    pub fn together(&self, ceilings: &mut Ceilings) -> f64 {
        let size = self.levels.last().map_or(0, |last| last.size);
        let lines = self.block_lines as f64 / self.n_rows as f64 * ceilings.line(size);
        self.products(ceilings).max(lines)
    }

    /// Returns the least time of a row in nanoseconds if each row descends alone. The score of a node
    /// decides the next node, so reads cannot overlap.
    pub fn alone(&self, ceilings: &mut Ceilings) -> f64 {
        let lines = self.levels.iter().map(|level| {
            let others = level.lines.saturating_sub(level.visits) as f64;
            level.visits as f64 * ceilings.next_line(level.size)
                + others * ceilings.line(level.size)
        });
        let lines = lines.sum::<f64>() / self.n_rows as f64;
        self.products(ceilings).max(lines)
    }

    /// Returns the products of a row, and the bytes of its weights if rows descend together and alone.
    pub fn counts(&self) -> [f64; 3] {
        let alone: usize = self.levels.iter().map(|level| level.lines).sum();
        let bytes = |lines: usize| (lines * LINE * BYTES) as f64;
        let products = (self.products + self.wide_products) as f64;
        let totals = [products, bytes(self.block_lines), bytes(alone)];
        totals.map(|total| total / self.n_rows as f64)
    }
}

/// Returns the columns of a row.
fn columns_of(set: &Set, row: usize) -> HashSet<u32> {
    match entries(set, row) {
        ([], _) => (0..set.n_cols as u32).collect(),
        (columns, _) => columns.iter().map(|&column| column as u32).collect(),
    }
}
