//! Generated data sets for the benchmarks, the same on every run.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xmtree::data::{Batch, Indices, Labels, Rows, Targets, Values};

/// A data set in memory. Each class has its own columns or its own center; its rows add noise.
pub struct Set {
    pub n_classes: usize,
    pub n_rows: usize,
    pub n_cols: usize,
    /// Start of each row; empty if dense.
    pub starts: Vec<i64>,
    pub columns: Vec<i32>,
    pub values: Vec<f32>,
    pub labels: Vec<u32>,
}

impl Set {
    /// Sparse rows of many classes and columns. 2/3 of a row's non-zeros are columns of its class.
    pub fn sparse(n_classes: usize, n_rows: usize, n_cols: usize) -> Self {
        const NNZ: usize = 30;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let own: Vec<Vec<i32>> = (0..n_classes)
            .map(|_| {
                (0..NNZ)
                    .map(|_| random.random_range(0..n_cols as i32))
                    .collect()
            })
            .collect();
        let mut set = Self::empty(n_classes, n_rows, n_cols);
        set.starts.push(0);
        for _ in 0..n_rows {
            let label = random.random_range(0..n_classes);
            let mut row: Vec<i32> = Vec::with_capacity(NNZ);
            while row.len() < NNZ {
                let column = if random.random_bool(2.0 / 3.0) {
                    own[label][random.random_range(0..NNZ)]
                } else {
                    random.random_range(0..n_cols as i32)
                };
                if let Err(place) = row.binary_search(&column) {
                    row.insert(place, column);
                }
            }
            set.columns.extend(row);
            set.values
                .extend((0..NNZ).map(|_| random.random_range(0.5..1.5f32)));
            set.starts.push(set.columns.len() as i64);
            set.labels.push(label as u32);
        }
        set
    }

    /// Dense rows of few classes and columns.
    pub fn dense(n_rows: usize) -> Self {
        let (n_classes, n_cols) = (26, 16);
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let centers: Vec<f32> = (0..n_classes * n_cols)
            .map(|_| random.random_range(-1.0..1.0f32))
            .collect();
        let mut set = Self::empty(n_classes, n_rows, n_cols);
        for _ in 0..n_rows {
            let label = random.random_range(0..n_classes);
            let center = &centers[label * n_cols..(label + 1) * n_cols];
            set.values
                .extend(center.iter().map(|c| c + random.random_range(-1.0..1.0f32)));
            set.labels.push(label as u32);
        }
        set
    }

    fn empty(n_classes: usize, n_rows: usize, n_cols: usize) -> Self {
        Self {
            n_classes,
            n_rows,
            n_cols,
            starts: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
            labels: Vec::new(),
        }
    }

    pub fn rows(&self) -> Rows<'_> {
        let values = Values::F32(&self.values);
        if self.starts.is_empty() {
            Rows::dense(values, self.n_rows, self.n_cols, false)
        } else {
            let starts = Indices::I64(&self.starts);
            Rows::csr(
                starts,
                Indices::I32(&self.columns),
                values,
                self.n_cols,
                false,
            )
        }
        .expect("sound rows")
    }

    pub fn batch(&self) -> Batch<'_> {
        let labels = Labels::new(&self.labels, self.n_classes).expect("sound labels");
        Batch::new(self.rows(), Targets::One(labels), None).expect("as many labels as rows")
    }
}
