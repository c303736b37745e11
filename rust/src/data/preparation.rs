//! From a row as it came to the example a linear learner sees.
//!
//! What a linear learner needs of its input was found by experiment (docs/experiments/shared.md):
//! columns that are mostly non-zero must be centred and brought to unit
//! deviation; rows that are mostly zeros must not be touched column by column
//! but divided by their length. `Auto` looks at the share of non-zeros.

use super::{RowBuffer, Rows};
use crate::choices;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::{is_count, Bundle, Record};
use crate::memory::can_alloc;
use crate::simd::{dispatched, sum_of_squares};

choices! {
    /// How examples are scaled, as the user asks for it.
    pub enum Scaling {
        /// `Standard` where more than half of the values are non-zero, else `Row`.
        Auto = "auto",
        /// Values as they came.
        None = "none",
        /// Each row divided by its Euclidean length.
        Row = "row",
        /// Each column centred and divided by its standard deviation.
        Standard = "standard",
        /// ln(1 + x) of each value, of a negative one -ln(1 - x): counts grow too fast.
        Log = "log",
    }
}

/// Prepared values are taken for this where they are larger: their squares would be infinite, and
/// sums of them not numbers.
pub const LARGEST_VALUE: f32 = 1e18;

/// Share of non-zeros above which `Auto` standardises columns.
const MIN_DENSE_SHARE: f64 = 0.5;

/// Reads rows into examples: hashes columns, scales, appends the constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    n_features: usize,
    n_bits: Option<u32>,
    scaling: Scaling,
    moments: Option<Moments>,
}

impl Preparation {
    /// Decides on the scaling from those of the first `rows` that count: rows of weight 0 are not
    /// `present`.
    ///
    /// `n_bits` hashes columns into 2^`n_bits`; it excludes standardising,
    /// which would make every hashed row dense.
    pub fn new(
        scaling: Scaling,
        n_bits: Option<u32>,
        rows: &Rows<'_>,
        present: &[u32],
    ) -> Result<Self> {
        if n_bits.is_some() && scaling == Scaling::Standard {
            let allowed = "\"auto\", \"row\", \"log\" or \"none\" where n_bits is given";
            return Err(Error::parameter("scaling", "\"standard\"", allowed));
        }
        let scaling = match scaling {
            Scaling::Auto if n_bits.is_some() => Scaling::Row,
            Scaling::Auto => {
                let n_values = present.len() as f64 * rows.n_cols() as f64;
                if rows.non_zeros(present) as f64 > MIN_DENSE_SHARE * n_values {
                    Scaling::Standard
                } else {
                    Scaling::Row
                }
            }
            asked => asked,
        };
        let standard = scaling == Scaling::Standard;
        if !can_alloc(bytes_needed(rows.n_cols(), n_bits, standard)) {
            return Err(match n_bits {
                Some(bits) => {
                    Error::parameter("n_bits", bits, "smaller: there is no memory for it")
                }
                None => Error::data(format!(
                    "X has {} features: there is no memory for as many; hash them (n_bits)",
                    rows.n_cols()
                )),
            });
        }
        Ok(Self {
            n_features: rows.n_cols(),
            n_bits,
            scaling,
            moments: standard.then(|| Moments::new(rows.n_cols())),
        })
    }

    /// Stores it; means and deviations as arrays, as there may be very many columns.
    pub(crate) fn put(&self, bundle: &mut Bundle) {
        bundle.put_meta("n_features", &self.n_features);
        bundle.put_meta("n_bits", &self.n_bits);
        bundle.put_meta("scaling", &self.scaling);
        if let Some(moments) = &self.moments {
            bundle.put_meta("n", &moments.n);
            bundle.put("mean", &moments.mean[..]);
            bundle.put("square", &moments.square[..]);
        }
    }

    /// Restores it, and checks that its parts fit together.
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
        if !is_sound {
            return Err(bundle.damaged("the preparation of examples is inconsistent"));
        }
        if is_standard {
            let mut moments = Moments {
                n: bundle.take_meta("n")?,
                mean: f64::take(Some(n), "mean", bundle)?,
                square: f64::take(Some(n), "square", bundle)?,
                rate: vec![0.0; n],
                dense: Vec::new(),
            };
            // Values are in single precision: so are their means.
            let is_mean = |mean: &f64| mean.abs() <= 2.0 * f64::from(f32::MAX);
            let is_sound = is_count(&moments.n)
                && moments.mean.iter().all(is_mean)
                && moments.square.iter().all(|&square| square >= 0.0);
            if !is_sound {
                return Err(bundle.damaged("means or deviations of columns are out of range"));
            }
            moments.refresh();
            preparation.moments = Some(moments);
        }
        Ok(preparation)
    }

    /// Number of columns of the rows it was made for.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of columns of an example, the constant among them.
    pub fn width(&self) -> usize {
        self.n_bits.map_or(self.n_features, |bits| 1 << bits) + 1
    }

    /// An error where X has not the columns it was made for. Hashed, any will do.
    pub fn check_columns(&self, rows: &Rows<'_>) -> Result<()> {
        match self.n_bits {
            Some(_) => Ok(()),
            None => rows.check_n_cols(self.n_features),
        }
    }

    /// The scaling decided on; never `Auto`.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Learns means and deviations from the rows `which` at once, if they are
    /// used. Stopped half way they are of no use.
    pub fn observe_all(&mut self, rows: &Rows<'_>, which: &[u32], control: &Control) -> Result<()> {
        if let Some(moments) = &mut self.moments {
            let mut row = RowBuffer::default();
            for chunk in which.chunks(Control::CHUNK) {
                control.check()?;
                for &i in chunk {
                    rows.read(i as usize, &mut row);
                    moments.add(&row);
                }
            }
            moments.refresh();
        }
        Ok(())
    }

    /// Takes one row of a stream into the running means and deviations.
    pub fn observe(&mut self, rows: &Rows<'_>, i: usize, scratch: &mut RowBuffer) {
        if let Some(moments) = &mut self.moments {
            rows.read(i, scratch);
            moments.add(scratch);
            moments.refresh();
        }
    }

    /// [`observe`](Self::observe) and [`read`](Self::read) at once.
    pub fn observe_and_read(&mut self, rows: &Rows<'_>, i: usize, example: &mut RowBuffer) {
        rows.read(i, example);
        if let Some(moments) = &mut self.moments {
            moments.add(example);
            moments.refresh();
        }
        self.prepare(example);
    }

    /// Replaces `example` by row `i`, scaled, the constant 1 last.
    pub fn read(&self, rows: &Rows<'_>, i: usize, example: &mut RowBuffer) {
        rows.read(i, example);
        self.prepare(example);
    }

    fn prepare(&self, example: &mut RowBuffer) {
        if let Some(bits) = self.n_bits {
            for column in &mut example.columns {
                *column = hash(*column, bits);
            }
        }
        match (&self.moments, self.scaling) {
            (Some(moments), _) => moments.standardise(example),
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

/// What a learner at least needs for its columns: a few numbers for each.
fn bytes_needed(n_features: usize, n_bits: Option<u32>, standard: bool) -> Option<usize> {
    let columns = n_bits.map_or(n_features, |bits| 1 << bits);
    let each = if standard {
        3 * size_of::<f64>()
    } else {
        2 * size_of::<f32>()
    };
    columns.checked_mul(each)
}

/// Divides a row by its length; one without values stays as it is.
fn to_length_one(values: &mut [f32]) {
    let is_usable = |square: f32| square > f32::MIN_POSITIVE && square.is_finite();
    let mut square = sum_of_squares(values);
    if !is_usable(square) {
        // Squares that vanish or are infinite: the largest value becomes 1 first.
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

/// Multiplicative hashing: the upper bits of a product with 2^32 / golden ratio.
/// Values that share a column are not added up beforehand: a linear learner
/// does that itself.
fn hash(column: u32, bits: u32) -> u32 {
    column.wrapping_mul(0x9E37_79B1) >> (32 - bits)
}

/// Running mean and squared deviation of each column (Welford), zeros included.
#[derive(Debug, Clone, PartialEq)]
struct Moments {
    n: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    /// 1/deviation, or 0 for a column that never changed.
    rate: Vec<f64>,
    /// The row at hand, zeros included.
    dense: Vec<f64>,
}

impl Moments {
    fn new(n_features: usize) -> Self {
        Self {
            n: 0.0,
            mean: vec![0.0; n_features],
            square: vec![0.0; n_features],
            rate: vec![0.0; n_features],
            dense: Vec::new(),
        }
    }

    fn add(&mut self, row: &RowBuffer) {
        self.dense.clear();
        if row.columns.len() == self.mean.len() {
            self.dense.extend(row.values.iter().map(|&x| f64::from(x)));
        } else {
            self.dense.resize(self.mean.len(), 0.0);
            for (&column, &value) in row.columns.iter().zip(&row.values) {
                self.dense[column as usize] = f64::from(value);
            }
        }
        self.n += 1.0;
        follow(
            &self.dense,
            self.n.recip(),
            &mut self.mean,
            &mut self.square,
        );
    }

    fn refresh(&mut self) {
        rates(&self.square, self.n, &mut self.rate);
    }

    fn standardise(&self, example: &mut RowBuffer) {
        fill_gaps(example, self.mean.len());
        standardise(&mut example.values, &self.mean, &self.rate);
    }
}

dispatched! {
    /// Takes the values `x` into means and squared deviations, of which they are this `share`.
    fn follow(x: &[f64], share: f64, means: &mut [f64], squares: &mut [f64]) {
        for ((mean, square), &x) in means.iter_mut().zip(squares).zip(x) {
            let before = x - *mean;
            *mean += before * share;
            *square += before * (x - *mean);
        }
    }
}

dispatched! {
    /// 1/deviation of squared deviations of `n` values, 0 where it is 0.
    fn rates(squares: &[f64], n: f64, rates: &mut [f64]) {
        for (rate, &square) in rates.iter_mut().zip(squares) {
            let deviation = (square / n).sqrt();
            let is_varied = deviation > 0.0;
            *rate = if is_varied { deviation.recip() } else { 0.0 };
        }
    }
}

dispatched! {
    fn standardise(values: &mut [f32], means: &[f64], rates: &[f64]) {
        let most = f64::from(LARGEST_VALUE);
        for (value, (mean, rate)) in values.iter_mut().zip(means.iter().zip(rates)) {
            let standard = (f64::from(*value) - mean) * rate;
            *value = standard.clamp(-most, most) as f32;
        }
    }
}

/// Gives a row a value in each of its `n` columns, 0 where it had none.
fn fill_gaps(row: &mut RowBuffer, n: usize) {
    let mut given = row.columns.len();
    if given == n {
        return;
    }
    row.values.resize(n, 0.0);
    // From the last on, so that no value is overwritten before it has moved.
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
    fn rows_of_any_size_get_length_one() {
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
    fn rows_of_a_stream_are_read_by_what_is_known_with_them() {
        let starts = [0, 3, 4, 4, 7, 9];
        let columns = [0, 1, 2, 1, 0, 1, 2, 0, 2];
        let values = [1.0f32, -2.0, 4.0, 3.0, 0.5, 2.0, 8.0, -1.0, 6.0];
        let (starts, columns) = (Indices::I64(&starts), Indices::I32(&columns));
        let rows = Rows::csr(starts, columns, Values::F32(&values), 3, false).unwrap();
        for scaling in [Scaling::Standard, Scaling::Row] {
            let mut at_once = Preparation::new(scaling, None, &rows, &[]).unwrap();
            let mut in_turn = at_once.clone();
            let (mut found, mut expected) = (RowBuffer::default(), RowBuffer::default());
            for i in 0..rows.n_rows() {
                at_once.observe_and_read(&rows, i, &mut found);
                in_turn.observe(&rows, i, &mut expected);
                in_turn.read(&rows, i, &mut expected);
                assert_eq!(found.columns, expected.columns);
                assert_eq!(found.values, expected.values);
            }
            assert_eq!(at_once, in_turn);
            if let Some(moments) = &at_once.moments {
                // Of 1, 0, 0, 0.5 and -1.
                assert!((moments.mean[0] - 0.1).abs() < 1e-12);
                assert!((moments.square[0] - 2.2).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn gaps_of_a_row_become_zeros() {
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
