//! L2-regularized support vector machines with the squared hinge loss, by dual coordinate descent.
//!
//! This is Algorithm 3 of Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent
//! Method for Large-scale Linear SVM", ICML 2008, with shrinking, as in liblinear. It minimizes
//!
//! ```text
//! |w|^2 / 2 + sum_i C_i max(0, 1 - y_i w.x_i)^2
//! ```
//!
//! through its dual, which is the minimum over a >= 0 of a'(Q + D) a / 2 - sum_i a_i, with
//! Q_ij = y_i y_j x_i.x_j and D_ii = 1 / (2 C_i). A round is one pass over the values of the rows
//! that are not at a bound.
//!
//! Equal rows of one sign become one example with the sum of their C: the problem is the same, and
//! its size is the number of distinct rows. In a step, the dual variable of many equal rows grows by
//! no more than that of one row, so problems with equal rows get more rounds.

use std::iter;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::rows::{DistinctRows, ProblemRows, ScorerRows};

/// Stopping rule of a solution.
#[derive(Debug, Clone, Copy)]
pub struct Accuracy {
    pub max_rounds: u32,
    /// Largest allowed difference between the largest and the smallest projected gradient.
    pub tolerance: f64,
}

/// A solver of one problem after the other.
#[derive(Debug)]
pub struct Solver<'a> {
    rows: &'a ScorerRows<'a>,
    distinct: &'a DistinctRows,
    /// The place in `examples` of each distinct row of one sign, while a problem is read.
    places: Vec<u32>,
    /// Accuracy of the next solution.
    pub accuracy: Accuracy,
    /// The rows of the examples.
    pub own_rows: ProblemRows<'a>,
    /// w by number of the column.
    weights: Vec<f64>,
    /// w of the dense columns.
    dense: Vec<f32>,
    bias: f64,
    examples: Vec<SvmExample>,
}

/// The problem of one label.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    pub positives: &'a [u32],
    /// The negatives, in several lists.
    pub negatives: &'a [&'a [u32]],
    /// Positives that an earlier round did not have.
    pub late_positives: &'a [u32],
    /// Weight of a positive's loss; that of a negative is 1.
    pub positive_weight: f64,
    /// C, the weight of the losses against |w|^2 / 2.
    pub cost: f64,
}

/// Equal rows of the current problem, which are one example.
#[derive(Debug, Clone, Copy)]
pub struct SvmExample {
    /// The first of the rows.
    pub row: u32,
    n_rows: u32,
    /// The place of the row among the solver's own.
    place: u32,
    /// y: 1 or -1.
    pub sign: f64,
    /// The dual variable a.
    pub alpha: f64,
    /// C_i.
    cost: f64,
    /// D_ii.
    diagonal: f64,
    /// 1 / (Q_ii + D_ii).
    inverse: f64,
}

/// A label's scorer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scorer {
    pub bias: f32,
    /// Columns, increasing, and their weights.
    pub weights: Vec<(u32, f32)>,
    /// Weights of the dense columns.
    pub dense: Vec<f32>,
}

impl Problem<'_> {
    /// Returns the positives, the negatives, and the late positives.
    fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        let negatives = self.negatives.iter().copied().flatten();
        let early = self.positives.iter().chain(negatives);
        early.chain(self.late_positives).copied()
    }
}

impl<'a> Solver<'a> {
    pub fn new(rows: &'a ScorerRows<'a>, distinct: &'a DistinctRows, accuracy: Accuracy) -> Self {
        Self {
            rows,
            distinct,
            places: Vec::new(),
            accuracy,
            own_rows: ProblemRows::new(rows),
            weights: Vec::new(),
            dense: vec![0.0; rows.dense.width()],
            bias: 0.0,
            examples: Vec::new(),
        }
    }

    /// Solves a problem, starting from the `duals` of its first examples; the others start at 0. Rows
    /// of a later round come last, so the dual variables of a round fit the next one.
    pub fn solve(&mut self, problem: &Problem<'_>, duals: &[f32], seed: u64) {
        self.start(problem, duals);
        self.run(self.examples.len(), seed);
    }

    /// Solves a problem without the rows that `is_out` names, starting from the `duals` of its first
    /// examples. Equal rows must be all in or all out.
    pub fn solve_rest(
        &mut self,
        problem: &Problem<'_>,
        duals: &[f32],
        is_out: impl Fn(u32) -> bool,
        seed: u64,
    ) {
        self.start(problem, duals);
        let (n, _) = self.leave_out(is_out);
        self.run(n, seed);
    }

    /// Reads a problem and the `duals` of its first examples; the others start at 0.
    fn start(&mut self, problem: &Problem<'_>, duals: &[f32]) {
        self.clear();
        self.own_rows.start(problem.rows().count());
        let positive_cost = problem.cost * problem.positive_weight;
        self.read(problem.positives.iter().copied(), 1.0, positive_cost);
        let negatives = problem.negatives.iter().copied().flatten();
        self.read(negatives.copied(), -1.0, problem.cost);
        self.read(problem.late_positives.iter().copied(), 1.0, positive_cost);
        self.weights.resize(self.own_rows.n_columns(), 0.0);
        let duals = duals.iter().copied().chain(iter::repeat(0.0));
        for (i, alpha) in (0..self.examples.len()).zip(duals) {
            let example = &mut self.examples[i];
            example.alpha = f64::from(alpha);
            example.diagonal = 0.5 / example.cost;
            example.inverse = (self.rows.square(example.row) + example.diagonal).recip();
            if example.alpha > 0.0 {
                let example = *example;
                self.add::<true>(&example, example.alpha * example.sign);
            }
        }
    }

    /// Adds the examples of rows of one sign, with `cost` for the loss of a row of weight 1.
    fn read(&mut self, rows: impl Iterator<Item = u32>, sign: f64, cost: f64) {
        /// Number of rows that a row is prefetched ahead.
        const N_AHEAD: usize = 8;
        let start = self.examples.len();
        let rows: Vec<u32> = rows.collect();
        for (at, &row) in rows.iter().enumerate() {
            if let Some(&next) = rows.get(at + N_AHEAD) {
                self.rows.prefetch(next);
            }
            let cost = cost * f64::from(self.rows.examples.weight(row));
            let first = self.distinct.first(row);
            let known = first.and_then(|first| self.places.get(first as usize));
            if let Some(example) = known.and_then(|&place| self.examples.get_mut(place as usize)) {
                example.cost += cost;
                example.n_rows += 1;
                continue;
            }
            if let Some(first) = first {
                self.places.resize(self.rows.examples.len(), u32::MAX);
                self.places[first as usize] = self.examples.len() as u32;
            }
            self.own_rows.push(row);
            let example = SvmExample {
                row,
                n_rows: 1,
                place: self.examples.len() as u32,
                sign,
                alpha: 0.0,
                cost,
                diagonal: 0.0,
                inverse: 0.0,
            };
            self.examples.push(example);
        }
        for example in &self.examples[start..] {
            if let Some(first) = self.distinct.first(example.row) {
                self.places[first as usize] = u32::MAX;
            }
        }
    }

    /// Returns the dual variables, for the next round to start from.
    pub fn duals(&self) -> Vec<f32> {
        let examples = self.examples.iter();
        examples.map(|example| example.alpha as f32).collect()
    }

    /// Returns the negatives that the solution depends on, and the dual variables for a problem with
    /// only these.
    pub fn active(&self, problem: &Problem<'_>) -> (Vec<u32>, Vec<f32>) {
        let first = |row| self.distinct.first(row).unwrap_or(row);
        let is_negative = |example: &&SvmExample| example.sign < 0.0;
        let is_active = |example: &&SvmExample| !is_negative(example) || example.alpha > 0.0;
        let active = self.examples.iter().filter(is_active);
        let duals = active.clone().map(|example| example.alpha as f32).collect();
        let rows = active.filter(is_negative).map(|example| first(example.row));
        let mut rows: Vec<u32> = rows.collect();
        rows.sort_unstable();
        let negatives = problem.negatives.iter().copied().flatten().copied();
        let is_kept = |&row: &u32| rows.binary_search(&first(row)).is_ok();
        (negatives.filter(is_kept).collect(), duals)
    }

    /// Continues the current solution without the rows that `is_out` names. Returns these rows and
    /// their margins. Equal rows must be all in or all out.
    pub fn solve_without(
        &mut self,
        problem: &Problem<'_>,
        is_out: impl Fn(u32) -> bool,
        seed: u64,
    ) -> Vec<(u32, f32)> {
        let (n, has_changed) = self.leave_out(&is_out);
        if n == self.examples.len() {
            return Vec::new();
        }
        // The solution does not depend on rows whose dual variable is 0.
        if has_changed {
            self.run(n, seed);
        }
        let rows = problem.rows().filter(|&row| is_out(row));
        rows.map(|row| (row, self.margin_of(row) as f32)).collect()
    }

    /// Removes the part of the rows that `is_out` names from the solution. Returns the number of
    /// examples that remain, which now come first, and whether the solution has changed.
    fn leave_out(&mut self, is_out: impl Fn(u32) -> bool) -> (usize, bool) {
        let out = self.examples.iter().filter(|example| is_out(example.row));
        let out: Vec<SvmExample> = out.copied().collect();
        self.examples.retain(|example| !is_out(example.row));
        let n = self.examples.len();
        let mut has_changed = false;
        for example in &out {
            if example.alpha > 0.0 {
                self.add::<true>(example, -example.alpha * example.sign);
                has_changed = true;
            }
        }
        self.examples.extend(out);
        (n, has_changed)
    }

    /// Runs the descent over the first `n` examples, starting from their current dual variables.
    fn run(&mut self, n: usize, seed: u64) {
        // Sparse rows get a loop of their own, which does not look for dense columns in each step.
        if self.dense.is_empty() {
            self.descend::<false>(n, seed);
        } else {
            self.descend::<true>(n, seed);
        }
    }

    fn descend<const MAY_BE_DENSE: bool>(&mut self, n: usize, seed: u64) {
        /// Number of steps that a row is prefetched ahead.
        const N_AHEAD: usize = 4;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut active: Vec<u32> = (0..n as u32).collect();
        let mut n_active = n;
        let mut highest_before = f64::INFINITY;
        let n_rows: u64 = self.examples[..n].iter().map(|e| u64::from(e.n_rows)).sum();
        let max_rounds = u64::from(self.accuracy.max_rounds) * (n_rows / n.max(1) as u64);
        for _ in 0..max_rounds {
            let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
            active[..n_active].shuffle(&mut random);
            let mut at = 0;
            while at < n_active {
                if MAY_BE_DENSE && at + N_AHEAD < n_active {
                    let next = active[at + N_AHEAD];
                    self.rows.dense.prefetch(self.examples[next as usize].row);
                }
                let i = active[at] as usize;
                let example = self.examples[i];
                let SvmExample {
                    sign,
                    alpha,
                    diagonal,
                    inverse,
                    ..
                } = example;
                let margin = self.margin::<MAY_BE_DENSE>(&example);
                let gradient = sign * margin - 1.0 + diagonal * alpha;
                // At the bound, only a gradient that leads away from it counts. Shrinking drops
                // variables that are far from leaving the bound.
                if alpha == 0.0 && gradient > highest_before {
                    n_active -= 1;
                    active.swap(at, n_active);
                    continue;
                }
                let projected = if alpha == 0.0 {
                    gradient.min(0.0)
                } else {
                    gradient
                };
                highest = highest.max(projected);
                lowest = lowest.min(projected);
                if projected.abs() > 1e-12 {
                    let after = (alpha - gradient * inverse).max(0.0);
                    self.examples[i].alpha = after;
                    self.add::<MAY_BE_DENSE>(&example, (after - alpha) * sign);
                }
                at += 1;
            }
            if highest - lowest <= self.accuracy.tolerance {
                if n_active == n {
                    break;
                }
                // The active examples are solved: check those that shrinking dropped.
                n_active = n;
                highest_before = f64::INFINITY;
                continue;
            }
            highest_before = if highest > 0.0 {
                highest
            } else {
                f64::INFINITY
            };
        }
    }

    fn margin<const MAY_BE_DENSE: bool>(&self, example: &SvmExample) -> f64 {
        let (numbers, values) = self.own_rows.get(example.row, example.place);
        let pairs = numbers.iter().zip(values);
        let product: f64 = pairs
            .map(|(&number, &x)| self.weights[number as usize] * f64::from(x))
            .sum();
        if MAY_BE_DENSE && !self.dense.is_empty() {
            return self.bias + product + self.rows.dense.dot(example.row, &self.dense);
        }
        self.bias + product
    }

    /// Returns the margin of a row of the problem.
    fn margin_of(&self, row: u32) -> f64 {
        let (columns, values) = self.rows.features::<true>(row);
        let weight = |&column| {
            let number = self.own_rows.number(column);
            number.map_or(0.0, |number| self.weights[number as usize])
        };
        let terms = columns.iter().map(weight).zip(values);
        let product: f64 = terms.map(|(weight, &x)| weight * f64::from(x)).sum();
        if self.dense.is_empty() {
            self.bias + product
        } else {
            self.bias + product + self.rows.dense.dot(row, &self.dense)
        }
    }

    fn add<const MAY_BE_DENSE: bool>(&mut self, example: &SvmExample, factor: f64) {
        self.bias += factor;
        let (numbers, values) = self.own_rows.get(example.row, example.place);
        for (&number, &x) in numbers.iter().zip(values) {
            self.weights[number as usize] += factor * f64::from(x);
        }
        if MAY_BE_DENSE && !self.dense.is_empty() {
            self.rows.dense.add(example.row, factor, &mut self.dense);
        }
    }

    /// Returns the solution without weights below `threshold`, except for dense columns.
    pub fn scorer(&self, threshold: f64) -> Scorer {
        let weights = self.weights.iter().enumerate();
        let kept = weights.filter(|(_, w)| **w != 0.0 && w.abs() >= threshold);
        let kept = kept.map(|(number, &w)| (self.own_rows.column(number), w as f32));
        let mut kept: Vec<(u32, f32)> = kept.collect();
        kept.sort_unstable_by_key(|&(column, _)| column);
        kept.shrink_to_fit();
        Scorer {
            bias: self.bias as f32,
            weights: kept,
            dense: self.dense.clone(),
        }
    }

    /// Removes the current problem.
    fn clear(&mut self) {
        self.weights.clear();
        self.dense.fill(0.0);
        self.bias = 0.0;
        self.examples.clear();
    }
}
