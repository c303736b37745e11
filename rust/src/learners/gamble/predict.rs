//! Scores of blocks of rows, and the slope that turns scores into probabilities.
//!
//! Boosting goes on raising the scores of rows that it classifies correctly, so scores of training
//! rows are overconfident. With `subsample` below 1, each row is left out of some trees at random.
//! The votes of these trees, times (all trees) / (these trees), approximate the scores of a new
//! row. The rows that a round left out follow from the seed, so boosting does not store them.
//!
//! No tree can separate equal rows with different labels. Their weights settle at a
//! balance in which a left-out row has no part, so its trees vote against it and its scores are
//! underconfident. But then the committee also misclassifies its training rows, and the scores of
//! these are reliable. So the slopes of both are averaged, weighted by the degree of overfitting:
//! an idea of the .632+ estimator (B. Efron, R. Tibshirani, JASA 1997).

use std::ops::Range;

use super::boost::LabeledRows;
use super::frozen::{FrozenTrees, LeafHit, Router};
use super::linear::{scored, wrong, LinearScores, Scored};
use super::sampling::RowSampler;
use super::Params;
use crate::control::Control;
use crate::data::{RowBuffer, Rows};
use crate::error::Result;
use crate::metrics::softmax_slope;
use crate::model::first_best;

/// Workspace of one thread for scoring blocks of rows.
#[derive(Default)]
pub struct Predictor {
    pub router: Router,
    /// Scores of all classes for each row.
    pub scores: Vec<f64>,
    /// Vote that all classes of a row have in common.
    common: Vec<f64>,
    row: RowBuffer,
}

impl Predictor {
    /// Computes the scores of the rows `which` by the trees `wanted`, and by the linear part with the
    /// first tree. `visit` gets each leaf that a row reaches, and the row's scores so far without the
    /// votes that all classes have in common.
    pub fn score(
        &mut self,
        (trees, linear): (&FrozenTrees, &LinearScores),
        wanted: Range<usize>,
        n_classes: usize,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        mut visit: impl FnMut(LeafHit, &[f64]),
    ) {
        let Self {
            router,
            scores,
            common,
            row,
        } = self;
        common.clear();
        common.resize(which.len(), 0.0);
        scores.clear();
        scores.resize(which.len() * n_classes, 0.0);
        if wanted.start == 0 && !linear.is_empty() {
            for (number, scores) in which.clone().zip(scores.chunks_exact_mut(n_classes)) {
                rows.read(number, row);
                linear.add(row, scores);
            }
        }
        router.route(trees, wanted, rows, which, |hit| {
            let scores = &mut scores[hit.row * n_classes..(hit.row + 1) * n_classes];
            trees.add_votes(hit.leaf, scores, &mut common[hit.row]);
            visit(hit, scores);
        });
        for (scores, common) in scores.chunks_exact_mut(n_classes).zip(common) {
            scores.iter_mut().for_each(|score| *score += *common);
        }
    }
}

/// Returns the first class of the highest score.
pub fn best_class(scores: impl Iterator<Item = f32>) -> usize {
    first_best(scores.enumerate()).map_or(0, |(class, _)| class)
}

/// Largest number of rows from which the slope is computed.
const MAX_SLOPE_ROWS: usize = 4096;

/// Largest number of values, or scores, of these rows.
const MAX_SLOPE_VALUES: usize = 1 << 24;

/// Returns the slope of the scores F / (K - 1) for which their softmax is calibrated, or `None` if
/// every tree was grown from all rows; and the linear part of the scores.
pub fn calibrate(
    params: &Params,
    trees: &FrozenTrees,
    learned: &LabeledRows<'_>,
    n_classes: usize,
    control: &Control,
) -> Result<(Option<f64>, LinearScores)> {
    let (n, n_trees) = (learned.which.len(), trees.roots.len());
    let (rows, labels) = (&learned.batch.rows, learned.labels());
    let width = rows.n_cols();
    let sampler = RowSampler::new(&labels, n_classes, params.subsample, params.trim);
    if sampler.takes_all() || n_trees == 0 || n_classes < 2 || width == 0 {
        return Ok((None, LinearScores::default()));
    }
    let n_read = n
        .min(MAX_SLOPE_ROWS)
        .min(MAX_SLOPE_VALUES / n_classes.max(width));
    let places: Vec<usize> = (0..n_read).map(|i| i * n / n_read).collect();
    // Scores of each row by the trees that it was left out of, and the number of these trees.
    let mut left_out_scores = vec![0.0; n_read * n_classes];
    let mut n_left_out = vec![0u32; n_read];
    let (mut is_sampled, mut round) = (Vec::new(), None);
    let add_left_out = |LeafHit { row, tree, leaf }, _: &[f64]| {
        if round != Some(tree) {
            let random = sampler.random_rows(params.seed, tree as u64);
            is_sampled.clear();
            is_sampled.extend(random.take(n));
            round = Some(tree);
        }
        if !is_sampled[places[row]] {
            let scores = &mut left_out_scores[row * n_classes..(row + 1) * n_classes];
            trees.add_votes(leaf, scores, &mut 0.0);
            n_left_out[row] += 1;
        }
    };
    let mut predictor = Predictor::default();
    let which = places.iter().map(|&place| learned.which[place] as usize);
    let alone = LinearScores::default();
    predictor.score(
        (trees, &alone),
        0..n_trees,
        n_classes,
        rows,
        which,
        add_left_out,
    );
    let (mut own, mut left_out) = (Vec::new(), Vec::new());
    let mut places_left_out = Vec::new();
    let is_left_out = |&(row, _): &(usize, &usize)| n_left_out[row] > 0;
    for (row, &place) in places.iter().enumerate().filter(is_left_out) {
        let outcome = |scores: &[f64], share: f64| {
            let scale = 1.0 / (share * (n_classes as f64 - 1.0));
            let scores = scores[row * n_classes..(row + 1) * n_classes].iter();
            let scores = scores.map(|score| (score * scale) as f32).collect();
            scored(scores, labels[place], learned.importance(place))
        };
        own.push(outcome(&predictor.scores, 1.0));
        let share = f64::from(n_left_out[row]) / n_trees as f64;
        left_out.push(outcome(&left_out_scores, share));
        places_left_out.push(place);
    }
    let Some((slope, overfitting)) = slope(&own, &left_out) else {
        return Ok((None, LinearScores::default()));
    };
    let (sums, mut linear) = (&mut left_out, None);
    if overfitting >= LEAST_OVERFITTING {
        linear = LinearScores::beside(params, learned, &places_left_out, sums, slope, control)?;
    }
    Ok(match linear {
        None => (Some(slope), LinearScores::default()),
        Some(linear) => (softmax_slope(sums).map(|sum| sum * slope), linear),
    })
}

/// Linear scores are compared on rows left out of trees, whose errors are only reliable from this
/// degree of overfitting on.
const LEAST_OVERFITTING: f64 = 0.5;

/// Returns the slope for rows with the scores of all trees, and of those that have not learned them;
/// and the degree of overfitting.
fn slope(own: &[Scored], left_out: &[Scored]) -> Option<(f64, f64)> {
    // 1 if all training rows are classified correctly, 0 if they are misclassified a third as often
    // as rows left out. A third, because the error of rows left out is far too large where the
    // scores of training rows are reliable.
    let overfitting = (1.0 - 3.0 * wrong(own) / wrong(left_out).max(1e-9)).clamp(0.0, 1.0);
    let own_slope = softmax_slope(own)?;
    let left_out_slope = softmax_slope(left_out)?;
    let log = overfitting * left_out_slope.ln() + (1.0 - overfitting) * own_slope.ln();
    Some((log.exp(), overfitting))
}
