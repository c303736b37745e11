//! Weights by column: for sparse rows of many columns.
//!
//! A column of text says something of few labels, so its weights are a short
//! table that a row's candidates are looked up in; the other way round each
//! candidate would be a large table of its own, and each lookup a cache miss.
//! A column that most labels have learned from becomes a full row of labels.

use crate::tree::{Table, Weights};

/// Weights per column and label.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Labels there may be.
    n_labels: usize,
    columns: Vec<Weights<f32>>,
}

/// Candidates by their place, so that a short column can be read from end to end
/// instead of being searched for every candidate.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Place + 1 of each label that is a candidate now, else 0.
    of: Vec<u32>,
    labels: Vec<u32>,
}

impl Places {
    /// Replaces the candidates; costs as much as there are old and new ones.
    pub fn set(&mut self, candidates: &[u32], n_labels: usize) {
        self.of.resize(n_labels, 0);
        for &label in &self.labels {
            self.of[label as usize] = 0;
        }
        self.labels.clear();
        self.labels.extend_from_slice(candidates);
        for (place, &label) in (1..).zip(candidates) {
            self.of[label as usize] = place;
        }
    }
}

impl Columns {
    /// Nothing learned yet.
    pub fn new(n_columns: usize, n_labels: usize) -> Self {
        Self {
            n_labels,
            columns: vec![Weights::default(); n_columns],
        }
    }

    /// From saved weights.
    pub fn from_parts(columns: Vec<Weights<f32>>, n_labels: usize) -> Self {
        Self { n_labels, columns }
    }

    /// The weights of each column, by label.
    pub fn columns(&self) -> &[Weights<f32>] {
        &self.columns
    }

    /// Labels there may be.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Makes room for columns up to `n`.
    pub fn reach(&mut self, n: usize) {
        if self.columns.len() < n {
            self.columns.resize(n, Weights::default());
        }
    }

    /// Adds to `scores` the products of a row with the weights of `places`.
    pub fn score(&self, columns: &[u32], values: &[f32], places: &Places, scores: &mut [f32]) {
        for (&column, &x) in columns.iter().zip(values) {
            match self.columns.get(column as usize) {
                Some(Weights::Table(table)) => score_table(table, x, places, scores),
                Some(Weights::Row(row)) => {
                    for (score, &label) in scores.iter_mut().zip(&places.labels) {
                        *score += x * row[label as usize];
                    }
                }
                None => {}
            }
        }
    }

    /// Adds `steps` times the direction to the weights of `labels`; where a step
    /// is 0, nothing.
    pub fn add(&mut self, columns: &[u32], direction: &[f32], labels: &[u32], steps: &[f32]) {
        let moved = steps.iter().filter(|&&step| step != 0.0).count();
        if moved == 0 {
            return;
        }
        for (&column, &d) in columns.iter().zip(direction) {
            let weights = &mut self.columns[column as usize];
            weights.make_room(moved, self.n_labels);
            match weights {
                Weights::Table(table) => {
                    for (&label, &step) in labels.iter().zip(steps) {
                        if step != 0.0 {
                            *table.entry(label) += step * d;
                        }
                    }
                }
                Weights::Row(row) => {
                    for (&label, &step) in labels.iter().zip(steps) {
                        row[label as usize] += step * d;
                    }
                }
            }
        }
    }

    /// Asks for the weights of `columns` ahead of their use.
    pub fn prefetch(&self, columns: &[u32], label: u32) {
        for &column in columns {
            if let Some(Weights::Table(table)) = self.columns.get(column as usize) {
                table.prefetch(label);
            }
        }
    }
}

#[inline]
fn score_table(table: &Table<f32>, x: f32, places: &Places, scores: &mut [f32]) {
    if table.is_empty() {
        return;
    }
    if table.capacity() <= 2 * scores.len() {
        for (label, w) in table.iter() {
            let place = places.of[label as usize];
            if place != 0 {
                scores[place as usize - 1] += x * w;
            }
        }
    } else {
        for (score, &label) in scores.iter_mut().zip(&places.labels) {
            if let Some(w) = table.get(label) {
                *score += x * w;
            }
        }
    }
}
