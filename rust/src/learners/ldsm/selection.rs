//! Which labels of a row a prediction returns, and their scores as a sparse matrix.

/// Which labels of a row are returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelSelection {
    /// Those of a score above this.
    Above(f32),
    /// So many of the highest scores.
    Best(usize),
    /// Those that the row has with a probability above 1/2.
    Likely,
}

/// Scores of some labels of each row, in CSR form.
#[derive(Debug)]
pub struct SparseScores {
    /// Where each row begins, and where the last one ends.
    pub starts: Vec<i64>,
    /// Labels, increasing in each row.
    pub labels: Vec<i32>,
    /// Their scores.
    pub scores: Vec<f32>,
}

impl Default for SparseScores {
    fn default() -> Self {
        Self {
            starts: vec![0],
            labels: Vec::new(),
            scores: Vec::new(),
        }
    }
}

impl SparseScores {
    /// Appends a row.
    pub fn push(&mut self, row: &[(u32, f32)]) {
        self.labels
            .extend(row.iter().map(|&(label, _)| label as i32));
        self.scores.extend(row.iter().map(|&(_, score)| score));
        self.starts.push(self.labels.len() as i64);
    }

    /// The rows of all blocks.
    pub fn concat(blocks: Vec<Self>) -> Self {
        let mut all = Self::default();
        for block in blocks {
            let before = all.labels.len() as i64;
            all.starts
                .extend(block.starts[1..].iter().map(|start| before + start));
            all.labels.extend(block.labels);
            all.scores.extend(block.scores);
        }
        all
    }
}

/// Keeps the `n` labels of highest score, of equal ones the smaller.
pub fn keep_best(labels: &mut Vec<(u32, f32)>, n: usize) {
    if n < labels.len() {
        labels.select_nth_unstable_by(n, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        labels.truncate(n);
    }
}
