//! Preparation of rows for linear learners: hashing, scaling and the constant feature.
//!
//! By experiment (docs/experiments/shared.md), columns that are mostly non-zero must be centered
//! and scaled to unit deviation, while rows of mostly zeros must be divided by their length.
//! `Auto` decides by the share of non-zeros. Dense rows of length 1, such as embeddings, are not
//! standardized: their lengths already say what matters.

use super::{RowBuffer, Rows};
use crate::choices;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::{is_count, Bundle, Record};
use crate::memory::can_alloc;
use crate::simd::{dispatched, sum_of_squares};

choices! {
    /// Scaling of examples.
    pub enum Scaling {
        /// `Standard` if more than half of the values are non-zero and rows differ in length, else
        /// `Row`.
        Auto = "auto",
        /// No scaling.
        None = "none",
        /// Divides each row by its Euclidean length.
        Row = "row",
        /// Centers each column and divides it by its standard deviation.
        Standard = "standard",
        /// Replaces each value by ln(1 + x), negative values by -ln(1 - x): suits counts.
        Log = "log",
    }
}

/// Maximum size of prepared values. Squares of larger values could overflow.
pub const LARGEST_VALUE: f32 = 1e18;

/// Share of non-zeros above which `Auto` standardizes columns.
const MIN_DENSE_SHARE: f64 = 0.5;

/// Returns whether the first of the rows `present` have length 1, except for rounding.
fn have_unit_length(rows: &Rows<'_>, present: &[u32]) -> bool {
    const N_ROWS: usize = 1000;
    const TOLERANCE: f32 = 1e-3;
    let mut row = RowBuffer::default();
    present.iter().take(N_ROWS).all(|&i| {
        rows.read(i as usize, &mut row);
        (sum_of_squares(&row.values) - 1.0).abs() <= TOLERANCE
    })
}

/// Converts rows to examples: hashes columns, scales values and appends the constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    n_features: usize,
    n_bits: Option<u32>,
    scaling: Scaling,
    moments: Option<Moments>,
}

impl Preparation {
    /// Chooses the scaling by the rows `present` of the first `rows`.
    ///
    /// `n_bits` hashes columns to 2^`n_bits`. It excludes standardizing, which would make every
    /// hashed row dense.
    pub fn new(
        scaling: Scaling,
        n_bits: Option<u32>,
        rows: &Rows<'_>,
        present: &[u32],
    ) -> Result<Self> {
        if n_bits.is_some() && scaling == Scaling::Standard {
            let allowed = "\"auto\", \"row\", \"log\" or \"none\" if n_bits is given";
            return Err(Error::parameter("scaling", "\"standard\"", allowed));
        }
        let scaling = match scaling {
            Scaling::Auto if n_bits.is_some() => Scaling::Row,
            Scaling::Auto => {
                let n_values = present.len() as f64 * rows.n_cols() as f64;
                let is_dense = rows.non_zeros(present) as f64 > MIN_DENSE_SHARE * n_values;
                if is_dense && !have_unit_length(rows, present) {
                    Scaling::Standard
                } else {
                    Scaling::Row
                }
            }
            asked => asked,
        };
        let standard = scaling == Scaling::Standard;
        let n_cols = rows.n_cols();
        if !can_alloc(bytes_needed(n_cols, n_bits, standard)) {
            return Err(match n_bits {
                Some(bits) => Error::parameter(
                    "n_bits",
                    bits,
                    "smaller, so that its columns fit into memory",
                ),
                None => Error::data(format!(
                    "X has {n_cols} features, which do not fit into memory; hash them (n_bits)"
                )),
            });
        }
        Ok(Self {
            n_features: n_cols,
            n_bits,
            scaling,
            moments: standard.then(|| Moments::new(n_cols)),
        })
    }

    /// Stores the preparation, with moments as arrays because there may be many columns.
    pub(crate) fn put(&self, bundle: &mut Bundle) {
        bundle.put_meta("n_features", &self.n_features);
        bundle.put_meta("n_bits", &self.n_bits);
        bundle.put_meta("scaling", &self.scaling);
        if let Some(moments) = &self.moments {
            bundle.put_meta("n", &moments.n);
            bundle.put("mean", moments.mean.clone());
            bundle.put("square", moments.square.clone());
        }
    }

    /// Restores and checks a preparation.
    pub(crate) fn take(bundle: &mut Bundle) -> Result<Self> {
        let mut preparation = Self {
            n_features: bundle.take_meta("n_features")?,
            n_bits: bundle.take_meta("n_bits")?,
            scaling: bundle.take_meta("scaling")?,
            moments: None,
        };
        let (n, n_bits) = (preparation.n_features, preparation.n_bits);
        let is_standard = preparation.scaling == Scaling::Standard;
        let is_sound = preparation.scaling != Scaling::Auto
            && n < u32::MAX as usize
            && n_bits.is_none_or(|bits| (1..=31).contains(&bits) && !is_standard)
            && can_alloc(bytes_needed(n, n_bits, is_standard));
        bundle.require(is_sound, "the preparation of examples is inconsistent")?;
        if is_standard {
            let mut moments = Moments {
                n: bundle.take_meta("n")?,
                mean: f64::take(Some(n), "mean", bundle)?,
                square: f64::take(Some(n), "square", bundle)?,
                rate: vec![0.0; n],
            };
            // Values have single precision, which bounds their means.
            let is_mean = |mean: &f64| mean.abs() <= 2.0 * f64::from(f32::MAX);
            let is_sound = is_count(&moments.n)
                && moments.mean.iter().all(is_mean)
                && moments.square.iter().all(|&square| square >= 0.0);
            bundle.require(is_sound, "means or deviations of columns are out of range")?;
            moments.refresh();
            preparation.moments = Some(moments);
        }
        Ok(preparation)
    }

    /// Number of columns of the rows.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of columns of an example, including the constant.
    pub fn width(&self) -> usize {
        self.n_bits.map_or(self.n_features, |bits| 1 << bits) + 1
    }

    /// Returns an error if `rows` have another number of columns, unless columns are hashed.
    pub fn check_columns(&self, rows: &Rows<'_>) -> Result<()> {
        match self.n_bits {
            Some(_) => Ok(()),
            None => rows.check_n_cols(self.n_features),
        }
    }

    /// Returns the chosen scaling, which is never `Auto`.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Computes means and deviations of the rows `which`, if columns are standardized.
    pub fn observe_all(&mut self, rows: &Rows<'_>, which: &[u32], control: &Control) -> Result<()> {
        if let Some(moments) = &mut self.moments {
            let mut row = RowBuffer::default();
            for chunk in which.chunks(Control::CHUNK) {
                control.check()?;
                for &i in chunk {
                    rows.read(i as usize, &mut row);
                    moments.add(&mut row);
                }
            }
            moments.refresh();
        }
        Ok(())
    }

    /// Replaces `example` by row `i`, which is learned, prepared. Means and deviations of a stream
    /// first include this row.
    pub fn read_to_learn(
        &mut self,
        rows: &Rows<'_>,
        i: usize,
        is_stream: bool,
        example: &mut RowBuffer,
    ) {
        rows.read(i, example);
        if let Some(moments) = self.moments.as_mut().filter(|_| is_stream) {
            moments.add(example);
            moments.refresh();
        }
        self.prepare(example);
    }

    /// Replaces `example` by row `i`, prepared.
    pub fn read(&self, rows: &Rows<'_>, i: usize, example: &mut RowBuffer) {
        rows.read(i, example);
        self.prepare(example);
    }

    /// Returns whether columns are hashed.
    pub fn hashes(&self) -> bool {
        self.n_bits.is_some()
    }

    /// Returns the mean that is subtracted from a column, and the factor of the difference; 0 and 1
    /// unless columns are standardized.
    pub fn center_and_rate(&self, column: u32) -> (f64, f64) {
        let (moments, at) = (self.moments.as_ref(), column as usize);
        moments.map_or((0.0, 1.0), |moments| (moments.mean[at], moments.rate[at]))
    }

    fn prepare(&self, example: &mut RowBuffer) {
        if let Some(bits) = self.n_bits {
            for column in &mut example.columns {
                *column = hash(*column, bits);
            }
        }
        match (&self.moments, self.scaling) {
            (Some(moments), _) => {
                fill_gaps(example, self.n_features);
                standardize(&mut example.values, &moments.mean, &moments.rate);
            }
            (None, Scaling::Row) => to_length_one(&mut example.values),
            (None, Scaling::Log) => {
                let logs = example.values.iter_mut();
                logs.for_each(|x| *x = x.abs().ln_1p().copysign(*x));
            }
            (None, _) => {
                let values = example.values.iter_mut();
                values.for_each(|x| *x = x.clamp(-LARGEST_VALUE, LARGEST_VALUE));
            }
        }
        example.columns.push(self.width() as u32 - 1);
        example.values.push(1.0);
    }
}

/// Returns a lower bound of the bytes that a learner needs for its columns.
fn bytes_needed(n_features: usize, n_bits: Option<u32>, standard: bool) -> Option<usize> {
    let columns = n_bits.map_or(n_features, |bits| 1 << bits);
    let each = if standard {
        3 * size_of::<f64>()
    } else {
        2 * size_of::<f32>()
    };
    columns.checked_mul(each)
}

/// Divides a row by its length; a row without values stays empty.
fn to_length_one(values: &mut [f32]) {
    let is_usable = |square: f32| square > f32::MIN_POSITIVE && square.is_finite();
    let mut square = sum_of_squares(values);
    if !is_usable(square) {
        // The squares underflow or overflow, so the largest value is scaled to 1 first.
        let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        if largest > 0.0 {
            values.iter_mut().for_each(|v| *v /= largest);
            square = sum_of_squares(values);
        }
    }
    if is_usable(square) {
        let scale = square.sqrt().recip();
        values.iter_mut().for_each(|v| *v *= scale);
    }
}

/// Hashes a column by multiplication: the upper bits of a product with 2^32 / golden ratio. Values
/// that share a column stay separate, because products with weights add them.
fn hash(column: u32, bits: u32) -> u32 {
    column.wrapping_mul(0x9E37_79B1) >> (32 - bits)
}

/// Running mean and squared deviation of each column (Welford), including zeros.
#[derive(Debug, Clone, PartialEq)]
struct Moments {
    n: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    /// 1/deviation, or 0 for a constant column.
    rate: Vec<f64>,
}

impl Moments {
    fn new(n_features: usize) -> Self {
        Self {
            n: 0.0,
            mean: vec![0.0; n_features],
            square: vec![0.0; n_features],
            rate: vec![0.0; n_features],
        }
    }

    /// Adds a row, which gets a value in every column.
    fn add(&mut self, row: &mut RowBuffer) {
        fill_gaps(row, self.mean.len());
        self.n += 1.0;
        let share = self.n.recip();
        follow(&row.values, share, &mut self.mean, &mut self.square);
    }

    fn refresh(&mut self) {
        rates(&self.square, self.n, &mut self.rate);
    }
}

dispatched! {
    /// Adds the values `x`, with the weight `share`, to means and squared deviations.
    fn follow(x: &[f32], share: f64, means: &mut [f64], squares: &mut [f64]) {
        for ((mean, square), &x) in means.iter_mut().zip(squares).zip(x) {
            let x = f64::from(x);
            let before = x - *mean;
            *mean += before * share;
            *square += before * (x - *mean);
        }
    }
}

dispatched! {
    /// Computes 1/deviation from the squared deviations of `n` values; 0 if the deviation is 0.
    fn rates(squares: &[f64], n: f64, rates: &mut [f64]) {
        for (rate, &square) in rates.iter_mut().zip(squares) {
            let deviation = (square / n).sqrt();
            let is_varied = deviation > 0.0;
            *rate = if is_varied { deviation.recip() } else { 0.0 };
        }
    }
}

dispatched! {
    fn standardize(values: &mut [f32], means: &[f64], rates: &[f64]) {
        let most = f64::from(LARGEST_VALUE);
        for (value, (mean, rate)) in values.iter_mut().zip(means.iter().zip(rates)) {
            let standard = (f64::from(*value) - mean) * rate;
            *value = standard.clamp(-most, most) as f32;
        }
    }
}

/// Adds zeros to a row, so that it has a value in each of `n` columns.
fn fill_gaps(row: &mut RowBuffer, n: usize) {
    let mut given = row.columns.len();
    if given == n {
        return;
    }
    row.values.resize(n, 0.0);
    // Backwards, so that no value is overwritten before it has moved.
    for column in (0..n).rev() {
        let is_given = given > 0 && row.columns[given - 1] as usize == column;
        given -= usize::from(is_given);
        row.values[column] = if is_given { row.values[given] } else { 0.0 };
    }
    row.columns.clear();
    row.columns.extend(0..n as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Indices, Values};

    #[test]
    fn rows_of_any_magnitude_get_length_one() {
        for size in [1e-44f32, 1e-30, 1.0, 1e30, 1e38] {
            let mut values = [3.0 * size, 0.0, -3.0 * size];
            to_length_one(&mut values);
            let expected = 0.5f32.sqrt();
            assert!(
                (values[0] - expected).abs() < 1e-6 && values[1] == 0.0,
                "{size}"
            );
            assert_eq!(values[0].to_bits(), (-values[2]).to_bits());
        }
        to_length_one(&mut []);
    }

    #[test]
    fn moments_of_a_stream_include_the_row_that_is_read() {
        let starts = [0, 3, 4, 4, 7, 9];
        let columns = [0, 1, 2, 1, 0, 1, 2, 0, 2];
        let values = [1.0f32, -2.0, 4.0, 3.0, 0.5, 2.0, 8.0, -1.0, 6.0];
        let (starts, columns) = (Indices::I64(&starts), Indices::I32(&columns));
        let rows = Rows::csr(starts, columns, Values::F32(&values), 3, false).unwrap();
        let all: Vec<u32> = (0..5).collect();
        for scaling in [Scaling::Standard, Scaling::Row] {
            let unused = Preparation::new(scaling, None, &rows, &[]).unwrap();
            let mut stream = unused.clone();
            let (mut found, mut expected) = (RowBuffer::default(), RowBuffer::default());
            for i in 0..rows.n_rows() {
                stream.read_to_learn(&rows, i, true, &mut found);
                let mut so_far = unused.clone();
                let control = Control::new(0);
                so_far.observe_all(&rows, &all[..=i], &control).unwrap();
                so_far.read(&rows, i, &mut expected);
                assert_eq!(found.columns, expected.columns);
                assert_eq!(found.values, expected.values);
            }
            if let Some(moments) = &stream.moments {
                // The values are 1, 0, 0, 0.5 and -1.
                assert!((moments.mean[0] - 0.1).abs() < 1e-12);
                assert!((moments.square[0] - 2.2).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn gaps_become_zeros() {
        for columns in [&[][..], &[0], &[4], &[1, 2], &[0, 3, 4], &[0, 1, 2, 3, 4]] {
            let mut row = RowBuffer {
                columns: columns.to_vec(),
                values: columns.iter().map(|&column| column as f32 + 1.0).collect(),
            };
            fill_gaps(&mut row, 5);
            assert_eq!(row.columns, [0, 1, 2, 3, 4]);
            for (column, &value) in (0..).zip(&row.values) {
                let is_given = columns.contains(&column);
                let expected = if is_given { column as f32 + 1.0 } else { 0.0 };
                assert_eq!(value.to_bits(), expected.to_bits());
            }
        }
    }
}
