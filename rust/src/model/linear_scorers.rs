//! Linear scorers: their weights, and the contributions of columns to scores.

use crate::control::Control;
use crate::data::{Preparation, RowBuffer, Rows, Scaling};
use crate::error::Result;
use crate::file::Report;
use crate::memory;
use crate::threads::{map_with_worker, with_threads};

/// Contributions of columns to a score. The column behind those of X has the score without features.
pub type Contributions = Vec<(u32, f64)>;

/// Memory of a contribution: with its column, and in the result's arrays.
pub(crate) const CONTRIBUTION_BYTES: usize = size_of::<(u32, f64)>() + 12;
/// Memory of a weight: with its class and column, and in the result's arrays.
const WEIGHT_BYTES: usize = size_of::<(u32, u32, f64)>() + 16;

/// A linear scorer for each class, on prepared rows.
pub trait LinearScorers: Sync {
    /// Calls `visit` with the columns and weights of a class. The last column is the constant, whose
    /// weight is minus infinity for a class without examples.
    fn for_each_weight(&self, class: u32, visit: &mut dyn FnMut(u32, f32));

    /// Calls `visit` with the classes, columns and weights of all `n_classes`.
    fn for_all_weights(&self, n_classes: usize, visit: &mut dyn FnMut(u32, u32, f32)) {
        self.for_weights_of(&mut (0..n_classes as u32), visit);
    }

    /// Calls `visit` with the `classes` and their columns and weights.
    fn for_weights_of(
        &self,
        classes: &mut dyn Iterator<Item = u32>,
        visit: &mut dyn FnMut(u32, u32, f32),
    ) {
        for class in classes {
            self.for_each_weight(class, &mut |column, weight| visit(class, column, weight));
        }
    }

    /// Returns the factor of the values of a row, except for the constant.
    fn scale(&self, _row: &RowBuffer) -> f32 {
        1.0
    }
}

/// Scorers and the preparation of their rows.
#[derive(Clone, Copy)]
pub struct PreparedScorers<'a> {
    /// The scorers.
    pub scorers: &'a dyn LinearScorers,
    /// The preparation.
    pub preparation: &'a Preparation,
}

/// Scratch space of a thread.
struct Workspace {
    given: RowBuffer,
    row: RowBuffer,
    /// The weights of one class by column; 0 between classes.
    weights: Vec<f32>,
}

impl PreparedScorers<'_> {
    /// Returns the products of weights and values for the score of a class, one for each row.
    pub fn contributions(
        &self,
        rows: &Rows<'_>,
        classes: &[u32],
        n_threads: usize,
        control: &Control,
    ) -> Result<Vec<Contributions>> {
        /// Most rows of a block. Those of one class share its weights.
        const BLOCK_ROWS: usize = 1024;
        self.preparation.check_columns(rows)?;
        let n_values = if self.preparation.scaling() == Scaling::Standard {
            rows.n_rows().saturating_mul(rows.n_cols())
        } else {
            rows.n_values()
        };
        let needed = (n_values + rows.n_rows()).saturating_mul(CONTRIBUTION_BYTES);
        let what = format!("contributions to {} scores", rows.n_rows());
        memory::check(needed, &what, "explain fewer rows at a time")?;
        let step = classes
            .len()
            .div_ceil(n_threads.max(1))
            .clamp(1, BLOCK_ROWS);
        let n_blocks = classes.len().div_ceil(step);
        let workspace = || Workspace {
            given: RowBuffer::default(),
            row: RowBuffer::default(),
            weights: vec![0.0; self.preparation.width()],
        };
        let explain = |workspace: &mut Workspace, block: usize| {
            let end = classes.len().min((block + 1) * step);
            self.explain(rows, (block * step, &classes[..end]), workspace, control)
        };
        let blocks = with_threads(n_threads.min(n_blocks), |is_parallel| {
            map_with_worker(is_parallel, (n_blocks, 1), workspace, explain)
        })??;
        Ok(blocks.into_iter().flatten().collect())
    }

    /// Returns the contributions for the rows from `first` on that have `classes`.
    fn explain(
        &self,
        rows: &Rows<'_>,
        (first, classes): (usize, &[u32]),
        workspace: &mut Workspace,
        control: &Control,
    ) -> Result<Vec<Contributions>> {
        let Workspace {
            given,
            row,
            weights,
        } = workspace;
        let constant = weights.len() - 1;
        let mut found = vec![Vec::new(); classes.len() - first];
        let mut order: Vec<usize> = (first..classes.len()).collect();
        order.sort_by_key(|&i| classes[i]);
        for same in order.chunk_by(|&a, &b| classes[a] == classes[b]) {
            let class = classes[same[0]];
            let mut keep = |column, weight| weights[column as usize] = weight;
            self.scorers.for_each_weight(class, &mut keep);
            for &i in same {
                control.check()?;
                rows.read(i, given);
                self.preparation.read(rows, i, row);
                let scale = f64::from(self.scorers.scale(row));
                let named = if self.preparation.hashes() {
                    &*given
                } else {
                    &*row
                };
                let values = row.columns.iter().zip(&row.values);
                let products = values.map(|(&column, &x)| {
                    f64::from(weights[column as usize]) * f64::from(x) * scale
                });
                let products = named.columns.iter().copied().zip(products);
                let found = &mut found[i - first];
                found.reserve_exact(row.columns.len());
                found.extend(products.take(row.columns.len() - 1));
                found.push((rows.n_cols() as u32, weights[constant].into()));
            }
            let mut clear = |column, _| weights[column as usize] = 0.0;
            self.scorers.for_each_weight(class, &mut clear);
        }
        Ok(found)
    }

    /// Returns the weights as `classes`, `columns` and `values`, and by class `intercepts`. Weights
    /// of standardized columns apply to the columns of X.
    pub fn coefficients(&self, n_classes: usize) -> Result<Report> {
        let constant = self.preparation.n_features() as u32;
        let mut n_weights = 0_usize;
        self.scorers
            .for_all_weights(n_classes, &mut |_, column, weight| {
                n_weights += usize::from(column != constant && weight != 0.0);
            });
        let needed = n_weights.saturating_mul(WEIGHT_BYTES);
        let what = format!("{n_weights} weights of scorers");
        memory::check(needed, &what, "use a machine with more memory")?;
        let mut intercepts = vec![0.0; n_classes];
        let mut entries = Vec::with_capacity(n_weights);
        self.scorers
            .for_all_weights(n_classes, &mut |class, column, weight| {
                let intercept = &mut intercepts[class as usize];
                if column == constant {
                    *intercept += f64::from(weight);
                } else if weight != 0.0 {
                    let (mean, rate) = self.preparation.center_and_rate(column);
                    let weight = f64::from(weight) * rate;
                    *intercept -= weight * mean;
                    entries.push((class, column, weight));
                }
            });
        let mut report = Report::new();
        report.column("classes", entries.iter().map(|entry| entry.0));
        report.column("columns", entries.iter().map(|entry| entry.1));
        report.column("values", entries.iter().map(|entry| entry.2));
        report.column("intercepts", intercepts);
        Ok(report)
    }
}
