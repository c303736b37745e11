//! Frozen routers of sparse rows: subtrees of up to 16 routers with their weights side by side.
//!
//! A row is scored at all routers of a subtree together and descends about four levels by these
//! scores. Each value is looked up once for the subtree, and its weights at these routers are in one
//! or two cache lines. The memory is about that of [`FrozenRouters`](super::FrozenRouters).

use std::borrow::Cow;

use super::{Groups, Junction, LearningTree, Topology};
use crate::control::Control;
use crate::error::Result;
use crate::linear::{AlignedRow, Block, Slot, Span, Table, Weights};
use crate::simd::LANES;

/// The routers of a binary tree for prediction. They route rows like
/// [`FrozenRouters`](super::FrozenRouters).
#[derive(Debug, Clone, Default)]
pub struct Subtrees {
    width: usize,
    span: Span,
    /// The subtrees, breadth first.
    subtrees: Vec<Subtree>,
    /// The children of each router, subtree by subtree.
    children: Vec<[Child; 2]>,
    /// Dense rows of weights. Each column has the weights of all routers of a subtree.
    rows: AlignedRow<f32>,
    /// Weights of the columns in `slots`, likewise.
    listed: Vec<f32>,
    /// For each column that a subtree has weights for, their position from the subtree's start.
    slots: Vec<Slot<u32>>,
}

/// Routers whose weights are all dense rows, or all tables.
#[derive(Debug, Clone, Copy)]
struct Subtree {
    n_routers: usize,
    /// Position of the first router in `children`.
    first: usize,
    weights: Place,
}

/// Position of a subtree's weights.
#[derive(Debug, Clone, Copy)]
enum Place {
    Rows(usize),
    Tables {
        from: usize,
        slots: usize,
        capacity: usize,
    },
}

/// A child of a router: a router of the same subtree, or what is below the subtree.
#[derive(Debug, Clone, Copy)]
enum Child {
    Router(u32),
    Below(Below),
}

/// The end of a row's path through a subtree.
#[derive(Debug, Clone, Copy)]
enum Below {
    Subtree(u32),
    Terminal(u32),
}

/// Kind of a node. A subtree has routers of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Terminal,
    Row,
    Table,
}

impl Subtrees {
    /// Copies the routers of `tree` if its examples are sparse; see [`is_sparse`]. `number` maps a
    /// terminal of the tree to its number here, and is asked breadth first.
    pub fn new<T: LearningTree>(
        tree: &T,
        control: &Control,
        mut number: impl FnMut(u32) -> u32,
    ) -> Result<Option<Self>> {
        let regressors = tree.regressors();
        let topology = Topology::new(tree.root(), |&node| match tree.at(node) {
            Junction::Terminal(_) => [None, None],
            Junction::Router { children, .. } => children.map(Some),
        });
        let nodes = topology.nodes.iter().map(|&node| tree.at(node));
        let nodes: Vec<Junction<u32>> = nodes.collect();
        let router_of = |&at: &usize| match nodes[at] {
            Junction::Router { router, .. } => Some(regressors.plain(router)),
            Junction::Terminal(_) => None,
        };
        let sample = (0..nodes.len()).filter(|at| matches!(nodes[*at], Junction::Router { .. }));
        let sample: Vec<usize> = sample.step_by(nodes.len().div_ceil(MAX_SAMPLE)).collect();
        let n_sparse = sample
            .iter()
            .filter_map(router_of)
            .filter(|weights| is_sparse(weights))
            .count();
        if n_sparse * MAX_ROUTERS_PER_SPARSE < sample.len().max(1) {
            return Ok(None);
        }
        let kinds = nodes.iter().map(|node| match node {
            Junction::Terminal(_) => Kind::Terminal,
            Junction::Router { router, .. } if regressors.is_row(*router) => Kind::Row,
            Junction::Router { .. } => Kind::Table,
        });
        let kinds: Vec<Kind> = kinds.collect();
        let terminals = nodes.iter().map(|node| match node {
            Junction::Terminal(terminal) => number(*terminal),
            Junction::Router { .. } => 0,
        });
        let terminals: Vec<u32> = terminals.collect();
        let width = regressors.width();
        let n_rows = kinds.iter().filter(|&&kind| kind == Kind::Row).count();
        let mut frozen = Self {
            width,
            span: tree.span(),
            rows: AlignedRow::with_capacity(n_rows * width + LANES),
            ..Self::default()
        };
        let mut seen = vec![0; width];
        let mut roots = vec![0];
        let mut at = 0;
        while at < roots.len() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            let kind = kinds[roots[at]];
            let mut members = vec![roots[at]];
            let mut next = 0;
            while next < members.len() {
                let children = topology.children[members[next]].map(|child| child as usize);
                let ends = children.map(|child| match kinds[child] {
                    Kind::Terminal => Child::Below(Below::Terminal(terminals[child])),
                    same if same == kind && members.len() < LANES => {
                        members.push(child);
                        Child::Router(members.len() as u32 - 1)
                    }
                    _ => {
                        roots.push(child);
                        Child::Below(Below::Subtree(roots.len() as u32 - 1))
                    }
                });
                frozen.children.push(ends);
                next += 1;
            }
            let routers: Vec<_> = members.iter().filter_map(router_of).collect();
            frozen.push(&routers, &mut seen);
            at += 1;
        }
        // Kernels read whole vector registers.
        frozen.rows.grow(LANES);
        frozen.listed.resize(frozen.listed.len() + LANES, 0.0);
        Ok(Some(frozen))
    }

    /// Appends a subtree whose children have been appended. `seen` has the last subtree with each
    /// column.
    fn push(&mut self, routers: &[Cow<'_, Weights<f32>>], seen: &mut [u32]) {
        let n = routers.len();
        let weights = if let Weights::Row(_) = *routers[0] {
            let from = self.rows.len();
            let rows = self.rows.grow(self.width * n);
            for (lane, router) in routers.iter().enumerate() {
                router.for_each(|column, weight| rows[column * n + lane] = weight);
            }
            Place::Rows(from)
        } else {
            let (mut columns, subtree) = (Vec::new(), self.subtrees.len() as u32 + 1);
            for router in routers {
                router.for_each(|column, _| {
                    if seen[column] != subtree {
                        seen[column] = subtree;
                        columns.push(column as u32);
                    }
                });
            }
            let (from, slots) = (self.listed.len(), self.slots.len());
            self.listed.resize(from + columns.len() * n, 0.0);
            let listed = &mut self.listed[from..];
            let places = columns.into_iter().zip((0..).step_by(n));
            let table: Table<u32> = places.collect();
            for (lane, router) in routers.iter().enumerate() {
                router.for_each(|column, weight| {
                    if let Some(&at) = table.get(column as u32) {
                        listed[at as usize + lane] = weight;
                    }
                });
            }
            self.slots.extend_from_slice(table.slots());
            let capacity = table.slots().len();
            Place::Tables {
                from,
                slots,
                capacity,
            }
        };
        self.subtrees.push(Subtree {
            n_routers: n,
            first: self.children.len() - n,
            weights,
        });
    }

    /// Routes all rows of `block`, and writes the number of each row's terminal.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        let Groups {
            arrivals,
            next_arrivals,
            products,
            ..
        } = scratch;
        arrivals.clear();
        arrivals.extend(0..block.len() as u64);
        while !arrivals.is_empty() {
            next_arrivals.clear();
            for &arrival in &*arrivals {
                let (subtree, row) = ((arrival >> 32) as usize, arrival as u32 as usize);
                match self.descend(subtree, block, row, products) {
                    Below::Subtree(next) => {
                        next_arrivals.push(u64::from(next) << 32 | row as u64);
                    }
                    Below::Terminal(number) => terminals[row] = number,
                }
            }
            // Rows at one subtree share its weights.
            next_arrivals.sort_unstable();
            std::mem::swap(arrivals, next_arrivals);
        }
    }

    /// Returns the terminal or subtree below a subtree that row `i` of `block` reaches.
    fn descend(&self, subtree: usize, block: &Block, i: usize, column: &mut Vec<f32>) -> Below {
        let Subtree {
            n_routers: n,
            first,
            weights,
        } = self.subtrees[subtree];
        let scores = match weights {
            Place::Rows(from) if block.is_full(i) => {
                let weights = &self.rows[from..from + self.width * n];
                return self.choose(first, |router| {
                    // To the bit the scores of `dot_row`, which need the weights of one router.
                    column.clear();
                    column.extend(weights[router..].iter().step_by(n));
                    block.dot_row(i, column)
                });
            }
            Place::Rows(from) => block.dot_strided(i, &self.rows[from..], n),
            Place::Tables {
                from,
                slots,
                capacity,
            } => {
                let slots = &self.slots[slots..slots + capacity];
                block.dot_strided_slots(i, slots, &self.listed[from..], n)
            }
        };
        self.choose(first, |router| scores[router])
    }

    /// Descends from the router at `first` by the scores of the routers of its subtree.
    fn choose(&self, first: usize, mut score: impl FnMut(usize) -> f32) -> Below {
        let mut router = 0;
        loop {
            let goes_left = self.span.clamp(score(router)) < 0.0;
            match self.children[first + router][usize::from(!goes_left)] {
                Child::Router(next) => router = next as usize,
                Child::Below(below) => return below,
            }
        }
    }
}

/// Subtrees are used if at least one router in this many has weights in few columns.
const MAX_ROUTERS_PER_SPARSE: usize = 8;

/// Number of routers whose weights decide this, about.
const MAX_SAMPLE: usize = 1000;

/// Returns whether a router has weights in so few columns that it has learned no row that a
/// [`Block`] stores densely. Dense rows need the weights of one router at a time.
fn is_sparse(weights: &Weights<f32>) -> bool {
    match weights {
        Weights::Table(_) => true,
        Weights::Row(row) => {
            let n_used = row.iter().filter(|&&weight| weight != 0.0).count();
            n_used * Block::MAX_COLUMNS_PER_VALUE < row.len()
        }
    }
}
