//! Prediction: the rows of a block go through the trees one tree after the other; and the slope that
//! turns scores into probabilities.
//!
//! Boosting goes on raising the scores of rows that it gets right, so their own scores say too much.
//! With `subsample` below 1 chance leaves each row out of some trees; the votes of these, times (all
//! trees) / (these trees), are about what the committee would give a new row. Which rows a round left out
//! is a function of the seed and is found again here: boosting itself keeps nothing.
//!
//! Where equal rows have different labels no tree can tell them apart. The committee settles where their
//! weights balance, which a row left out does not take part in: its trees vote against it and say too
//! little. But then the committee gets its own rows wrong, too, and their own scores are sound. So the
//! slopes by either are averaged, by how far rows were learned by heart: an idea of the .632+ estimator
//! (B. Efron, R. Tibshirani, JASA 1997).

use std::ops::Range;

use super::boost::LabelledRows;
use super::frozen::{DenseBlock, FrozenTrees, LANES};
use super::sampling::RowSampler;
use super::Params;
use crate::data::Rows;
use crate::metrics::{softmax_slope, Outcome};
use crate::model::TopK;

/// Of a block of fewer rows each goes through several trees side by side.
const MIN_ROWS_SIDE_BY_SIDE: usize = 4;

/// The leaf of a tree that a row is routed to.
#[derive(Debug, Clone, Copy)]
pub struct TreeLeaf {
    /// Place among the rows scored.
    pub row: usize,
    pub tree: usize,
    /// The node, among those of all trees.
    pub leaf: u32,
}

/// Scores blocks of rows. Workspace for one thread.
#[derive(Default)]
pub struct Predictor {
    n_classes: usize,
    block: DenseBlock,
    /// Scores of all classes for each of them.
    pub scores: Vec<f64>,
    /// What all classes of a row have in common.
    common: Vec<f64>,
    /// The leaf of a tree that each of them is routed to.
    leaves: Vec<u32>,
    top: Option<TopK>,
}

impl Predictor {
    pub fn new(n_classes: usize) -> Self {
        Self {
            n_classes,
            ..Self::default()
        }
    }

    /// The `k` best classes of each row scored, and their scores.
    pub fn write_topk(&mut self, k: usize, labels: &mut [i32], scores: &mut [f32]) {
        let n_classes = self.n_classes;
        let top = self.top.get_or_insert_with(|| TopK::new(k.min(n_classes)));
        let parts = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        for (row, (labels, scores)) in self.scores.chunks_exact(n_classes).zip(parts) {
            top.clear();
            for (class, &score) in row.iter().enumerate() {
                if score as f32 > top.bar() || class < k {
                    top.push(class as u32, score as f32);
                }
            }
            top.write(labels, scores);
        }
    }

    /// Computes the scores of the rows `which` by the trees `wanted`. `visit` sees each leaf that
    /// a row is routed to, and its scores so far, up to what all classes have in common.
    pub fn score(
        &mut self,
        trees: &FrozenTrees,
        wanted: Range<usize>,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        mut visit: impl FnMut(TreeLeaf, &[f64]),
    ) {
        let k = self.n_classes;
        let together = if which.len() < MIN_ROWS_SIDE_BY_SIDE {
            1
        } else {
            LANES
        };
        self.block.fill(rows, which.clone(), together);
        self.scores.clear();
        self.scores.resize(which.len() * k, 0.0);
        self.common.clear();
        self.common.resize(which.len(), 0.0);
        let mut add = |row: usize, tree: usize, leaf: u32| {
            let scores = &mut self.scores[row * k..(row + 1) * k];
            trees.add(leaf, scores, &mut self.common[row]);
            visit(TreeLeaf { row, tree, leaf }, scores);
        };
        if together == 1 {
            for (row, values) in self.block.groups().enumerate() {
                for first in wanted.clone().step_by(LANES) {
                    let some = first..wanted.end.min(first + LANES);
                    let has_missing = self.block.has_missing;
                    let leaves = trees
                        .nodes
                        .leaves_of_trees(some.clone(), values, has_missing);
                    some.zip(leaves)
                        .for_each(|(tree, leaf)| add(row, tree, leaf));
                }
            }
        } else {
            // Tree by tree, so that a tree is in the cache while all rows go through it.
            for tree in wanted.clone() {
                trees
                    .nodes
                    .leaves_of_rows(tree, &self.block, &mut self.leaves);
                let leaves = self.leaves.iter().enumerate();
                leaves.for_each(|(row, &leaf)| add(row, tree, leaf));
            }
        }
        for (scores, common) in self.scores.chunks_exact_mut(k).zip(&self.common) {
            scores.iter_mut().for_each(|score| *score += common);
        }
        self.block.clear(rows, which);
    }
}

/// Rows that are read, at most, and values or scores that are held for them.
const MAX_ROWS_READ: usize = 4096;
const MAX_VALUES_READ: usize = 1 << 24;

/// The scores of rows by the votes of some trees, and the weight of wrong rows.
#[derive(Default)]
struct Votes {
    rows: Vec<Outcome<Vec<f32>>>,
    wrong: f64,
}

impl Votes {
    /// Adds a row with its `scores`, of which `label` is the true one's place.
    fn add(&mut self, scores: Vec<f32>, label: usize, weight: f64) {
        let own = scores[label];
        let is_right = scores[..label].iter().all(|&score| score < own)
            && scores[label..].iter().all(|&score| score <= own);
        if !is_right {
            self.wrong += weight;
        }
        self.rows.push(Outcome {
            row: scores,
            is_right,
            weight,
        });
    }
}

/// The slope of the scores F / (K - 1) at which the softmax is as sure as it is right; None where
/// every tree was grown from all rows.
pub fn slope(
    params: &Params,
    trees: &FrozenTrees,
    learned: &LabelledRows<'_>,
    n_classes: usize,
) -> Option<f64> {
    let (n, n_trees) = (learned.which.len(), trees.nodes.roots.len());
    let (rows, labels) = (&learned.batch.rows, learned.labels());
    let width = rows.n_cols();
    let sampler = RowSampler::new(&labels, n_classes, params.subsample, params.trim);
    if sampler.takes_all() || n_trees == 0 || n_classes < 2 || width == 0 {
        return None;
    }
    let n_read = n
        .min(MAX_ROWS_READ)
        .min(MAX_VALUES_READ / n_classes.max(width));
    let places: Vec<usize> = (0..n_read).map(|i| i * n / n_read).collect();
    // The scores by the trees that a row was left out of, and how many these are.
    let mut by_others = vec![0.0; n_read * n_classes];
    let mut n_others = vec![0u32; n_read];
    let (mut is_sampled, mut round) = (Vec::new(), None);
    let mut predictor = Predictor::new(n_classes);
    let which = places.iter().map(|&place| learned.which[place] as usize);
    let add_left_out = |TreeLeaf { row, tree, leaf }, _: &[f64]| {
        if round != Some(tree) {
            sampler.mark(n, params.seed, tree as u64, &mut is_sampled);
            round = Some(tree);
        }
        if !is_sampled[places[row]] {
            let scores = &mut by_others[row * n_classes..(row + 1) * n_classes];
            trees.add(leaf, scores, &mut 0.0);
            n_others[row] += 1;
        }
    };
    predictor.score(trees, 0..n_trees, rows, which, add_left_out);
    let (mut own, mut left_out) = (Votes::default(), Votes::default());
    for (row, &place) in places.iter().enumerate() {
        if n_others[row] == 0 {
            continue;
        }
        let of_row = row * n_classes..(row + 1) * n_classes;
        let (label, weight) = (labels[place] as usize, learned.importance(place));
        let add = |votes: &mut Votes, scores: &[f64], share: f64| {
            let scale = 1.0 / (share * (n_classes as f64 - 1.0));
            let scores = scores.iter().map(|score| (score * scale) as f32);
            votes.add(scores.collect(), label, weight);
        };
        add(&mut own, &predictor.scores[of_row.clone()], 1.0);
        let share = f64::from(n_others[row]) / n_trees as f64;
        add(&mut left_out, &by_others[of_row], share);
    }
    let own_slope = softmax_slope(own.rows)?;
    let left_out_slope = softmax_slope(left_out.rows)?;
    // 1 where all own rows are right, 0 where they are wrong a third as often as rows left out: the
    // error of these is far too large itself where it is the own scores that are sound.
    let by_heart = (1.0 - 3.0 * own.wrong / left_out.wrong.max(1e-9)).clamp(0.0, 1.0);
    let log = by_heart * left_out_slope.ln() + (1.0 - by_heart) * own_slope.ln();
    Some(log.exp())
}
