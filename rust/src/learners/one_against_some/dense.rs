//! Weights for the columns that most rows fill, such as those of embeddings, as one matrix.
//!
//! Weights and rows are rounded to 8 bits with a scale for each label and row, and products are
//! summed as integers. So they are the same on every machine and for every number of rows. Labels
//! are grouped into panels of [`LANES`], which are multiplied with a block of rows while they are in
//! the cache. A panel has the weights of its labels for the first four columns side by side, then
//! those for the next four, and so on.

use std::ops::RangeInclusive;

use crate::data::Examples;
use crate::error::Result;
use crate::file::{is_sum, Bundle, Flat};
use crate::simd::{add_bytes, dot_bytes, multiply_bytes, prefetch_list, LANES};

/// A column is dense if more than one row in this many fills it.
const MAX_ROWS_PER_VALUE: usize = 2;
/// Fewer such columns are treated like others, and so are more: their sums could overflow.
const N_COLUMNS: RangeInclusive<usize> = LANES..=1 << 16;
/// Number of rows that are multiplied with a panel while it is in the cache.
pub const BLOCK: usize = 32;
/// Number of rows whose sums are in registers.
const GROUP: usize = 8;
/// Number of columns of a label that are side by side.
const QUAD: usize = 4;

/// The columns that most rows fill.
#[derive(Debug, Clone, Default)]
pub struct DenseColumns {
    /// The columns, increasing.
    columns: Vec<u32>,
    /// The place of each column among them, or [`Self::OTHER`]; empty if there are none.
    places: Vec<u32>,
}

impl DenseColumns {
    /// Stands for the place of a column that is not dense.
    const OTHER: u32 = u32::MAX;

    /// Finds the dense columns of `examples`, without the constant.
    pub fn find(examples: &Examples) -> Self {
        let n_features = examples.width - 1;
        let counts = examples.column_counts();
        let is_dense =
            |&column: &u32| counts[column as usize] as usize * MAX_ROWS_PER_VALUE > examples.len();
        let columns: Vec<u32> = (0..n_features as u32).filter(is_dense).collect();
        if !N_COLUMNS.contains(&columns.len()) {
            return Self::default();
        }
        Self::new(&columns, n_features)
    }

    /// The dense `columns`, increasing, of rows with `n_features` columns.
    pub fn new(columns: &[u32], n_features: usize) -> Self {
        if columns.is_empty() {
            return Self::default();
        }
        let mut places = vec![Self::OTHER; n_features];
        for (place, &column) in (0..).zip(columns) {
            places[column as usize] = place;
        }
        let columns = columns.to_vec();
        Self { columns, places }
    }

    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the number of groups of four columns.
    fn n_quads(&self) -> usize {
        self.columns.len().div_ceil(QUAD)
    }

    /// Returns the place of a column if it is dense.
    pub fn place(&self, column: u32) -> Option<usize> {
        let place = self.places.get(column as usize).copied();
        place
            .filter(|&place| place != Self::OTHER)
            .map(|place| place as usize)
    }
}

/// The weights of all labels for the dense columns.
#[derive(Debug, Clone, Default)]
pub struct DenseWeights {
    pub columns: DenseColumns,
    /// The weights as multiples of their label's scale, panel by panel.
    values: Flat<i8>,
    /// The scale of each label.
    scales: Flat<f32>,
}

impl DenseWeights {
    const KIND: &'static str = "dense";

    /// Creates weights of 0 for `columns`.
    pub fn new(columns: &DenseColumns, n_labels: usize) -> Self {
        if columns.is_empty() {
            return Self::default();
        }
        let n_lanes = n_labels.next_multiple_of(LANES);
        Self {
            values: vec![0; n_lanes * columns.n_quads() * QUAD].into(),
            scales: vec![0.0; n_labels].into(),
            columns: columns.clone(),
        }
    }

    /// Rounds and stores the weights of a label, which may be filled up with zeros.
    pub fn set(&mut self, label: usize, weights: &[f32]) {
        if self.is_empty() {
            return;
        }
        let (scale, rounded) = round(weights);
        for (place, value) in rounded.enumerate().take(self.columns.len()) {
            let at = self.position(label, place);
            self.values.to_mut()[at] = value;
        }
        self.scales.to_mut()[label] = scale;
    }

    /// Copies the weights of label `i` of `from`, which has the same columns.
    pub fn copy(&mut self, label: usize, from: &Self, i: usize) {
        for place in 0..self.columns.len() {
            let at = self.position(label, place);
            self.values.to_mut()[at] = from.values[from.position(i, place)];
        }
        if !self.is_empty() {
            self.scales.to_mut()[label] = from.scales[i];
        }
    }

    /// Returns the position of a label's weight for the dense column at `place`.
    fn position(&self, label: usize, place: usize) -> usize {
        let panel = self.columns.n_quads() * QUAD * LANES;
        let start = label / LANES * panel + label % LANES * QUAD;
        start + place / QUAD * LANES * QUAD + place % QUAD
    }

    /// Calls `visit` with the dense columns and the weights of a label.
    pub fn for_each(&self, label: usize, visit: &mut dyn FnMut(u32, f32)) {
        for (place, &column) in self.columns.columns.iter().enumerate() {
            let value = f32::from(self.values[self.position(label, place)]);
            visit(column, value * self.scales[label]);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the number of weights.
    pub fn n_weights(&self) -> usize {
        self.columns.len() * self.scales.len()
    }

    pub fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put("columns", self.columns.columns.clone());
        bundle.put("values", self.values.clone());
        bundle.put("scales", self.scales.clone());
        bundle
    }

    /// Reads and checks weights of `n_labels` labels for some of `n_features` columns.
    pub fn take(bundle: &mut Bundle, n_labels: usize, n_features: usize) -> Result<Self> {
        bundle.expect_kind(Self::KIND)?;
        let columns: Vec<u32> = bundle.take("columns")?;
        let is_sound = N_COLUMNS.contains(&columns.len())
            && columns.is_sorted_by(|a, b| a < b)
            && columns.iter().all(|&column| (column as usize) < n_features);
        bundle.require(
            is_sound,
            "its dense columns are out of order or out of range",
        )?;
        let columns = DenseColumns::new(&columns, n_features);
        let n_values = n_labels.div_ceil(LANES) * LANES * columns.n_quads() * QUAD;
        let weights = Self {
            values: bundle.take_flat("values", Some(n_values))?,
            scales: bundle.take_flat("scales", Some(n_labels))?,
            columns,
        };
        let is_sound = weights.scales.iter().all(is_sum);
        bundle.require(is_sound, "its dense weights are out of range")?;
        Ok(weights)
    }
}

/// Rows in the dense columns, for the training of scorers.
#[derive(Debug)]
pub struct RoundedRows {
    /// The values as multiples of their row's scale, filled up to a multiple of [`LANES`].
    values: Vec<i8>,
    scales: Vec<f32>,
    width: usize,
}

impl RoundedRows {
    pub fn new(columns: &DenseColumns) -> Self {
        Self {
            values: Vec::new(),
            scales: Vec::new(),
            width: columns.len().next_multiple_of(LANES),
        }
    }

    /// Returns the number of columns, filled up to a multiple of [`LANES`].
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.scales.clear();
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[f32]) {
        let (scale, rounded) = round(row);
        self.scales.push(scale);
        self.values.extend(rounded);
        self.values.resize(self.scales.len() * self.width, 0);
    }

    fn values(&self, row: u32) -> &[i8] {
        &self.values[row as usize * self.width..][..self.width]
    }

    /// Returns the product of a row with weights.
    pub fn dot(&self, row: u32, weights: &[f32]) -> f64 {
        f64::from(dot_bytes(self.values(row), weights) * self.scales[row as usize])
    }

    /// Adds a row, times `factor`, to weights.
    pub fn add(&self, row: u32, factor: f64, weights: &mut [f32]) {
        let factor = factor as f32 * self.scales[row as usize];
        add_bytes(factor, self.values(row), weights);
    }

    /// Prefetches a row.
    pub fn prefetch(&self, row: u32) {
        prefetch_list(self.values(row));
    }
}

/// Rounds numbers to multiples of a scale, from -127 to 127. Returns the scale and the multiples.
fn round(numbers: &[f32]) -> (f32, impl Iterator<Item = i8> + '_) {
    let largest = numbers.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let scale = largest / f32::from(i8::MAX);
    // Numbers divided by a scale of 0 become 0.
    (
        scale,
        numbers
            .iter()
            .map(move |x| (x / scale).round().max(-f32::from(i8::MAX)) as i8),
    )
}

/// Products of a block of rows with the weights of all labels; kept between uses.
#[derive(Debug, Default)]
pub struct DenseProducts {
    /// The values of the current row in the dense columns.
    row: Vec<f32>,
    /// The rounded rows, group by group. A group has the bytes of its rows for the first four
    /// columns side by side, then those for the next four, and so on.
    bytes: Vec<i8>,
    /// The scale of each row.
    scales: Vec<f32>,
    /// The sums of products of bytes: for each group and panel, row by row.
    sums: Vec<[i32; LANES]>,
    /// Number of rows of a group.
    group: usize,
    n_panels: usize,
}

impl DenseProducts {
    /// Multiplies up to [`BLOCK`] rows with the weights. A row is its columns, its values, and a
    /// factor of the values.
    pub fn read<'r>(
        &mut self,
        weights: &DenseWeights,
        rows: impl ExactSizeIterator<Item = (&'r [u32], &'r [f32], f32)>,
    ) {
        self.group = if rows.len() == 1 { 1 } else { GROUP };
        let n_quads = weights.columns.n_quads();
        let group_bytes = n_quads * self.group * QUAD;
        self.bytes.clear();
        self.bytes
            .resize(rows.len().div_ceil(self.group) * group_bytes, 0);
        self.scales.clear();
        for (i, (columns, values, factor)) in rows.enumerate() {
            self.row.clear();
            self.row.resize(weights.columns.len(), 0.0);
            for (&column, x) in columns.iter().zip(values) {
                if let Some(place) = weights.columns.place(column) {
                    self.row[place] += x * factor;
                }
            }
            let (scale, rounded) = round(&self.row);
            self.scales.push(scale);
            let start = i / self.group * group_bytes + i % self.group * QUAD;
            for (column, value) in rounded.enumerate() {
                let at = start + column / QUAD * self.group * QUAD + column % QUAD;
                self.bytes[at] = value;
            }
        }
        if self.group == 1 {
            self.multiply::<1>(weights);
        } else {
            self.multiply::<GROUP>(weights);
        }
    }

    /// Multiplies groups of R rows with all panels.
    fn multiply<const R: usize>(&mut self, weights: &DenseWeights) {
        let n_quads = weights.columns.n_quads();
        let (rows, _) = self.bytes.as_chunks::<QUAD>().0.as_chunks::<R>();
        let (panels, _) = weights.values.as_chunks::<QUAD>().0.as_chunks::<LANES>();
        let panels = panels.chunks_exact(n_quads);
        self.n_panels = panels.len();
        let group_sums = self.n_panels * R;
        let n_groups = rows.len() / n_quads;
        self.sums.resize(n_groups * group_sums, [0; LANES]);
        let next = panels.clone().skip(1).chain(panels.clone().last());
        for (i, (panel, next)) in panels.zip(next).enumerate() {
            for (group, rows) in rows.chunks_exact(n_quads).enumerate() {
                let sums = &mut self.sums[group * group_sums + i * R..][..R];
                sums.copy_from_slice(&multiply_bytes::<R>(panel, rows, next));
            }
        }
    }

    /// Writes the products of row `i` of the block with the weights of each label.
    pub fn write(&self, weights: &DenseWeights, i: usize, products: &mut [f32]) {
        let (group, row) = (i / self.group, i % self.group);
        let sums = &self.sums[group * self.n_panels * self.group + row..];
        let panels = sums.iter().step_by(self.group);
        let panels = panels.zip(weights.scales.chunks(LANES));
        for (products, (sums, scales)) in products.chunks_mut(LANES).zip(panels) {
            for (product, (&sum, scale)) in products.iter_mut().zip(sums.iter().zip(scales)) {
                *product = sum as f32 * (scale * self.scales[i]);
            }
        }
    }
}
