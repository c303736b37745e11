//! Prediction of a block of rows.
//!
//! The block goes through one tree after the other, node by node, so that the rows at a node share
//! its weights. A single row is multiplied with the first splits of all trees before. Then the
//! histograms of the leaves that a row has reached are added up, tree after tree, and re-ranking
//! and scorers change these sums.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::centroids::{Centroids, RerankedRow};
use super::top_splits::TopSplits;
use super::tree::{add_up, directions, full_margins, is_full, margins, Node, Tree, N_SUMS};
use crate::control::Control;
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::error::Result;
use crate::learners::one_against_some::{LabelScores, OneAgainstSome, Ranker};
use crate::model::{keep_best, LabelSelection, TopK};
use crate::threads::Lent;
use crate::tree::NodeId;

/// Number of rows that traverse the trees together at most: many, so that few of a node's weights
/// are read for one row alone.
pub const MAX_BLOCK_ROWS: usize = 4096;

/// A traversal of trees by rows of one width, with buffers that are kept between uses.
#[derive(Debug, Default)]
pub struct Traversal {
    /// The weights of the current node by column.
    spread: Vec<f32>,
    /// Nodes that are not visited yet, and where the list of their rows starts.
    nodes: Vec<(NodeId, usize)>,
    /// Rows of these nodes, end to end.
    waiting: Vec<u32>,
    /// Rows of the current node, and the children that each of them goes to, as bits.
    rows: Vec<u32>,
    directions: Vec<u32>,
    /// Marks of the rows that have all columns.
    full: Vec<bool>,
}

impl Traversal {
    /// Finds out which of the rows `which` of `rows` have all columns, for the following runs.
    pub fn mark_full(&mut self, rows: &RaggedRows, which: Range<u32>) {
        self.full.resize(rows.len(), false);
        for row in which {
            self.full[row as usize] = is_full(rows.row(row as usize).0);
        }
    }

    /// Sends the rows `which` of `rows`, which are marked, through a tree. Calls `on_leaf` with the
    /// number of each leaf and the rows that reach it. The order of a row's leaves does not depend on
    /// the other rows. If there is one row, `products` may have its products with the first splits.
    pub fn run(
        &mut self,
        tree: &Tree,
        rows: &RaggedRows,
        which: impl Iterator<Item = u32>,
        width: usize,
        products: &[f32],
        on_leaf: impl FnMut(&[u32], u32),
    ) {
        self.nodes.clear();
        self.waiting.clear();
        self.waiting.extend(which);
        if !self.waiting.is_empty() {
            self.nodes.push((Tree::ROOT, 0));
        }
        with_arity!(tree.arity, M => {
            let (products, _) = products.as_chunks();
            self.visit_nodes::<M>(tree, rows, width, products, on_leaf);
        });
    }

    fn visit_nodes<const M: usize>(
        &mut self,
        tree: &Tree,
        rows: &RaggedRows,
        width: usize,
        products: &[[f32; M]],
        mut on_leaf: impl FnMut(&[u32], u32),
    ) {
        while let Some((node, from)) = self.nodes.pop() {
            self.rows.clear();
            self.rows.extend_from_slice(&self.waiting[from..]);
            self.waiting.truncate(from);
            let split = match tree.node(node) {
                Node::Split(number) => number,
                Node::Leaf(number) => {
                    on_leaf(&self.rows, number);
                    continue;
                }
            };
            self.directions.clear();
            if let Some(products) = products.get(split as usize) {
                let bias = tree.biases.as_chunks::<M>().0[split as usize];
                let margins: [f32; M] = std::array::from_fn(|j| products[j] + bias[j]);
                self.directions.push(directions(&margins));
            } else {
                self.route::<M>(tree, split as usize, rows, width);
            }
            let first = tree.first_child(split);
            for j in (0..M as u32).rev() {
                let from = self.waiting.len();
                let rows = self.rows.iter().zip(&self.directions);
                let going = rows.filter(|&(_, directions)| directions >> j & 1 == 1);
                self.waiting.extend(going.map(|(&row, _)| row));
                if self.waiting.len() > from {
                    self.nodes.push((NodeId(first.0 + j), from));
                }
            }
        }
    }

    /// Finds the children of `split` that the rows of the current node go to, and appends them to
    /// the directions.
    fn route<const M: usize>(
        &mut self,
        tree: &Tree,
        split: usize,
        rows: &RaggedRows,
        width: usize,
    ) {
        let bias = tree.biases.as_chunks::<M>().0[split];
        let n_columns = tree.routers.range(split).len();
        let is_full = |row: u32| self.full[row as usize];
        if let &[row] = &self.rows[..] {
            if is_full(row) {
                let values = rows.row(row as usize).1;
                let mut sums = [[0.0f32; M]; N_SUMS];
                tree.routers.for_each::<M>(split, |column, weights| {
                    let (sums, x) = (&mut sums[column as usize % N_SUMS], values[column as usize]);
                    for j in 0..M {
                        sums[j] += weights[j] * x;
                    }
                });
                self.directions.push(directions(&add_up(&sums, bias)));
                return;
            }
        }
        // Few rows look their columns up, many share the spread weights; the margins are the same
        // to the bit.
        let n_values = self.rows.len() * rows.n_values() / rows.len();
        let is_few = n_values * (n_columns.max(1).ilog2() as usize + 1) < 2 * n_columns;
        let which = self.rows.iter().copied();
        if is_few && !which.clone().any(is_full) {
            let weights = tree.routers.lookup::<M>(split);
            let lookup = |column| weights.get(column);
            let rows = which.map(|row| rows.row(row as usize));
            self.directions
                .extend(rows.map(|row| directions(&margins(row, bias, lookup))));
            return;
        }
        self.spread.resize(width * M, 0.0);
        let (spread, _) = self.spread.as_chunks_mut::<M>();
        tree.routers.for_each::<M>(split, |column, weights| {
            spread[column as usize] = weights;
        });
        let lookup = |column: u32| spread[column as usize];
        self.directions.extend(which.map(|i| {
            let row = rows.row(i as usize);
            let margins = if is_full(i) {
                full_margins::<M>(row.1, bias, spread)
            } else {
                margins(row, bias, lookup)
            };
            directions(&margins)
        }));
        tree.routers.for_each::<M>(split, |column, _| {
            spread[column as usize] = [0.0; M];
        });
    }
}

/// Number of leaves whose histograms are prefetched, because they lie far apart.
const N_PREFETCHED_LEAVES: usize = 2;

/// A leaf that a row reaches, and its numbers, which are looked up once for all rows that do.
#[derive(Debug, Clone, Copy)]
struct LeafHit {
    tree: u32,
    leaf: u32,
    inverse_mass: f32,
    labels_each: f32,
}

/// The leaves that each row of a block reaches, tree after tree.
#[derive(Debug, Default)]
pub struct LeafHits {
    by_row: Vec<Vec<LeafHit>>,
    traversal: Traversal,
    /// The only row's products with [`TopSplits`], tree after tree; else empty.
    products: Vec<f32>,
}

impl LeafHits {
    /// Sends the block `which` of `rows` through all `trees`; a row traverses those trees that
    /// `takes` it.
    pub fn find(
        &mut self,
        trees: &[Arc<Tree>],
        rows: &RaggedRows,
        which: Range<u32>,
        width: usize,
        takes: impl Fn(usize, u32) -> bool,
        control: &Control,
    ) -> Result<()> {
        self.by_row.iter_mut().for_each(Vec::clear);
        if self.by_row.len() < which.len() {
            self.by_row.reserve_exact(which.len() - self.by_row.len());
            let new = || Vec::with_capacity(2 * trees.len());
            self.by_row.resize_with(which.len(), new);
        }
        self.traversal.mark_full(rows, which.clone());
        let start = which.start;
        let n_products = self.products.len() / trees.len().max(1);
        for (number, tree) in trees.iter().enumerate() {
            control.check()?;
            let which = which.clone().filter(|&row| takes(number, row));
            let products = &self.products[number * n_products..][..n_products];
            let traversal = &mut self.traversal;
            traversal.run(tree, rows, which, width, products, |rows, leaf| {
                let hit = LeafHit {
                    tree: number as u32,
                    leaf,
                    inverse_mass: tree.inverse_masses[leaf as usize],
                    labels_each: tree.labels_each[leaf as usize],
                };
                for &row in rows {
                    self.by_row[(row - start) as usize].push(hit);
                }
            });
        }
        Ok(())
    }

    /// Averages the histograms of the leaves that row `i` of the block reaches, over the leaves of
    /// each tree and over the trees that it has traversed. Returns the mean number of labels per
    /// training example in these leaves.
    pub fn average(&self, i: usize, trees: &[Arc<Tree>], scores: &mut LabelScores) -> f32 {
        scores.clear();
        let mut labels_each = 0.0;
        let hits = &self.by_row[i];
        let by_tree = || hits.chunk_by(|a, b| a.tree == b.tree);
        let tree_share = (by_tree().count() as f32).recip();
        let histograms = |hit: &LeafHit| &trees[hit.tree as usize].histograms;
        let mut coming = hits.iter().skip(N_PREFETCHED_LEAVES);
        for hits in by_tree() {
            let share = tree_share / hits.len() as f32;
            for hit in hits {
                if let Some(hit) = coming.next() {
                    histograms(hit).prefetch(hit.leaf as usize);
                }
                let scale = share * hit.inverse_mass;
                scores.add(histograms(hit), hit.leaf as usize, scale);
                labels_each += share * hit.labels_each;
            }
        }
        labels_each
    }
}

/// Buffers for predictions by one model. Some are as long as there are labels or columns, and
/// allocating them would take longer than predicting a row.
#[derive(Debug)]
pub struct PredictionMemory {
    buffer: RowBuffer,
    block: RaggedRows,
    hits: LeafHits,
    /// The trees' scores of the current row.
    scores: LabelScores,
    /// Mean number of labels per training example in its leaves.
    labels_each: f32,
    reranked: RerankedRow,
    ranker: Ranker,
}

impl PredictionMemory {
    pub fn new(n_classes: usize) -> Self {
        Self {
            buffer: RowBuffer::default(),
            block: RaggedRows::default(),
            hits: LeafHits::default(),
            scores: LabelScores::new(n_classes),
            labels_each: 0.0,
            reranked: RerankedRow::default(),
            ranker: Ranker::default(),
        }
    }
}

/// The prediction of one block after the other, and in it of one row after the other.
pub struct Predictor<'a> {
    pub preparation: &'a Preparation,
    pub trees: &'a [Arc<Tree>],
    /// Filled when a row is first predicted alone.
    pub top_splits: &'a OnceLock<TopSplits>,
    pub centroids: Option<&'a Centroids>,
    pub scorers: Option<&'a OneAgainstSome>,
    /// Weight of the trees' score in the re-ranking.
    pub beta: f32,
    /// Buffers that are used for this model only.
    pub memory: Lent<'a, PredictionMemory>,
}

impl Predictor<'_> {
    /// Reads the rows `which` and sends them through all trees.
    pub fn read_block(
        &mut self,
        rows: &Rows<'_>,
        which: Range<usize>,
        control: &Control,
    ) -> Result<()> {
        let PredictionMemory {
            buffer,
            block,
            hits,
            ..
        } = &mut *self.memory;
        block.clear();
        for i in which {
            self.preparation.read(rows, i, buffer);
            block.push(buffer.columns.iter().copied(), &buffer.values);
        }
        let (which, width) = (0..block.len() as u32, self.preparation.width());
        hits.products.clear();
        if block.len() == 1 {
            let new = || TopSplits::new(self.trees, width);
            let top_splits = self.top_splits.get_or_init(new);
            top_splits.multiply(block.row(0), &mut hits.products);
        }
        hits.find(self.trees, block, which, width, |_, _| true, control)
    }

    /// Returns the numbers of the trees and of the leaves that row `i` of the block reaches.
    pub fn leaves(&self, i: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let hits = self.memory.hits.by_row[i].iter();
        hits.map(|hit| (hit.tree, hit.leaf))
    }

    /// Returns columns and values of row `i` of the block.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        self.memory.block.row(i)
    }

    /// Makes row `i` of the block the current one and scores its labels. Rows come in their order.
    pub fn score_row(&mut self, i: usize) {
        let memory = &mut *self.memory;
        memory.labels_each = memory.hits.average(i, self.trees, &mut memory.scores);
        let (rows, scores) = (&memory.block, &memory.scores);
        if self.centroids.is_some() {
            memory.reranked.read(rows.row(i), self.preparation.width());
        }
        if let Some(scorers) = self.scorers {
            memory.ranker.read(scorers, rows, i, scores);
        }
    }

    /// Returns the final score of a label of the current row, from the trees' score.
    pub fn score(&self, label: u32, by_trees: f32) -> f32 {
        let memory = &*self.memory;
        let score = match self.centroids {
            Some(centroids) if by_trees > 0.0 => {
                centroids.rerank(&memory.reranked, self.beta, label, by_trees)
            }
            _ => by_trees,
        };
        self.scorers
            .map_or(score, |scorers| memory.ranker.score(scorers, label, score))
    }

    /// Calls `visit` with each candidate of the current row and the trees' score, except for some
    /// whose final score by scorers is below `bar`.
    pub fn for_each_label(&self, bar: f32, visit: impl FnMut(u32, f32)) {
        let memory = &*self.memory;
        let (ranker, scores) = (&memory.ranker, &memory.scores);
        match self.scorers {
            None => scores.for_each(visit),
            Some(scorers) => ranker.for_each_label(scorers, scores, bar, visit),
        }
    }

    /// Finds the best labels of the current row.
    pub fn best(&self, top: &mut TopK) {
        top.clear();
        match (self.centroids, self.scorers) {
            (None, Some(scorers)) => self.memory.ranker.best(scorers, &self.memory.scores, top),
            _ => self.for_each_label(0.0, |label, share| {
                top.push(label, self.score(label, share));
            }),
        }
    }

    /// Finds the selected labels of the current row, increasing, and their scores.
    pub fn select(&self, selection: LabelSelection, found: &mut Vec<(u32, f32)>) {
        found.clear();
        // Likely labels have a probability above 1/2. Without scorers it is the label's share of the
        // examples in the leaves: its share of their labels times the labels per example.
        let is_by_likelihood = matches!(selection, LabelSelection::Likely(_));
        let by_share = is_by_likelihood && self.scorers.is_none();
        let bar = match (selection, self.scorers) {
            (LabelSelection::Above(least, _), Some(scorers)) => {
                scorers.calibration.least_score(least)
            }
            (LabelSelection::Likely(_), Some(scorers)) => scorers.calibration.least_score(0.5),
            _ => 0.0,
        };
        self.for_each_label(bar, |label, share| {
            if !by_share || share * self.memory.labels_each > 0.5 {
                found.push((label, self.score(label, share)));
            }
        });
        if let LabelSelection::Best(n) = selection {
            keep_best(found, n);
        }
        self.calibrate(found.iter_mut().map(|(_, score)| score));
        match selection {
            LabelSelection::Above(threshold, _) => found.retain(|&(_, score)| score > threshold),
            LabelSelection::Likely(_) if !by_share => found.retain(|&(_, score)| score > 0.5),
            _ => {}
        }
        match selection {
            LabelSelection::Above(_, n) | LabelSelection::Likely(n) if found.len() < n => {
                let mut top = TopK::new(n);
                self.best(&mut top);
                found.clear();
                found.extend(top.entries());
                self.calibrate(found.iter_mut().map(|(_, score)| score));
                found.sort_unstable_by_key(|&(label, _)| label);
            }
            _ => found.sort_unstable_by_key(|&(label, _)| label),
        }
    }

    /// Turns final scores into probabilities if there are scorers. Minus infinity, which stands for
    /// no label, stays.
    pub fn calibrate<'s>(&self, scores: impl IntoIterator<Item = &'s mut f32>) {
        if let Some(scorers) = self.scorers {
            let scores = scores.into_iter();
            scores
                .filter(|score| **score > f32::NEG_INFINITY)
                .for_each(|score| *score = scorers.calibration.probability(*score));
        }
    }
}
