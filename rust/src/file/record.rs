//! Storing and restoring of the parts of a model by lists of their fields.
//!
//! A type with many instances lists its fields with [`record!`](crate::record), which implements
//! writing, reading and the check of values, with an array per field. Ragged values (vectors, hash
//! tables) become an array of lengths and arrays of all entries. A type with one instance lists
//! its fields with [`persist!`](crate::persist).

use super::array::LARGEST_DOUBLE;
use super::{Bundle, Element, Flat, LARGEST};
use crate::error::Result;

/// A type whose instances are stored column by column.
pub trait Record: Sized + 'static {
    /// Stores `records` as arrays whose names begin with `name`.
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle);

    /// Moves all records out, which must be `n` if given.
    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>>;

    /// Moves records out without a check of floats, for fields whose rule allows infinity or NaN.
    fn take_any(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        Self::take(n, name, bundle)
    }

    /// Moves records out; elements of a mapped file stay there.
    fn take_flat(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Flat<Self>> {
        Ok(Self::take(n, name, bundle)?.into())
    }
}

impl<E: Element> Record for E
where
    super::Array: From<Vec<E>>,
{
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        bundle.put(name, records.copied().collect::<Vec<E>>());
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        Ok(bundle.take_array(name, n, |_| true)?.into_vec())
    }

    fn take_any(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        Ok(bundle.take_array(name, n, |_| false)?.into_vec())
    }

    fn take_flat(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Flat<Self>> {
        bundle.take_flat(name, n)
    }
}

/// Implements [`Record`] for types that are converted to an element type.
#[macro_export]
macro_rules! stored_as {
    ($($type:ty as $element:ty: $put:expr, $take:expr;)*) => {$(
        impl $crate::file::Record for $type {
            fn put<'a>(
                records: impl Iterator<Item = &'a Self> + Clone,
                name: &str,
                bundle: &mut $crate::file::Bundle,
            ) {
                bundle.put(name, records.copied().map($put).collect::<Vec<$element>>());
            }

            fn take(
                n: Option<usize>,
                name: &str,
                bundle: &mut $crate::file::Bundle,
            ) -> $crate::Result<Vec<Self>> {
                let elements = <$element as $crate::file::Record>::take(n, name, bundle)?;
                Ok(elements.into_iter().map($take).collect())
            }
        }
    )*};
}

stored_as! {
    bool as u8: u8::from, |flag| flag != 0;
    // An optional index.
    Option<u32> as u32: |at| at.unwrap_or(u32::MAX), |at| (at != u32::MAX).then_some(at);
}

impl<R: Record> Record for Vec<R> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        put_lengths(records.clone().map(Vec::len), name, bundle);
        R::put(records.flatten(), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let all = R::take(Some(lengths.iter().sum()), name, bundle)?;
        Ok(split_by(lengths, all))
    }

    fn take_any(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let all = R::take_any(Some(lengths.iter().sum()), name, bundle)?;
        Ok(split_by(lengths, all))
    }
}

/// Splits `all` into lists of these lengths.
fn split_by<R>(lengths: Vec<usize>, all: Vec<R>) -> Vec<Vec<R>> {
    let mut all = all.into_iter();
    let list = |n| all.by_ref().take(n).collect();
    lengths.into_iter().map(list).collect()
}

/// A key and its value.
impl<K: Record, V: Record> Record for (K, V) {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle) {
        let keys = records.clone().map(|(key, _)| key);
        K::put(keys, &format!("{name}.key"), bundle);
        V::put(
            records.map(|(_, value)| value),
            &format!("{name}.value"),
            bundle,
        );
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let keys = K::take(n, &format!("{name}.key"), bundle)?;
        let values = V::take(Some(keys.len()), &format!("{name}.value"), bundle)?;
        Ok(keys.into_iter().zip(values).collect())
    }
}

/// Stores the lengths of the ragged values `name`.
pub fn put_lengths(lengths: impl Iterator<Item = usize>, name: &str, bundle: &mut Bundle) {
    let lengths: Vec<u32> = lengths.map(|n| n as u32).collect();
    bundle.put(&format!("{name}.length"), lengths);
}

/// Moves out the lengths of the ragged values `name`. The caller must compare their sum with the
/// number of entries before it allocates memory.
pub fn take_lengths(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<usize>> {
    let lengths = u32::take(n, &format!("{name}.length"), bundle)?;
    Ok(lengths.into_iter().map(|n| n as usize).collect())
}

/// Maximum of counts. A sum of importance weights, which are at most 1e18, stops growing at 2^54
/// times that.
const LARGEST_COUNT: f64 = 1e36;

/// Returns whether a count or a sum of importance weights is valid.
pub fn is_count<N: Copy + Into<f64>>(count: &N) -> bool {
    let count: f64 = (*count).into();
    count.is_sign_positive() && count <= LARGEST_COUNT
}

/// Returns whether a single precision sum of squares or counts is valid; learning limits them.
pub fn is_sum(sum: &f32) -> bool {
    (0.0..=LARGEST).contains(sum)
}

/// Limits a sum of importance weights to the range of counts.
pub fn bounded_count(sum: f64) -> f64 {
    sum.min(LARGEST_COUNT)
}

/// Returns whether a statistic is valid; NaN is an unknown one.
pub fn is_statistic(statistic: &f64) -> bool {
    statistic.is_nan() || statistic.abs() <= LARGEST_DOUBLE
}

/// Returns whether a score is valid; minus infinity means that there is none.
pub fn is_score(score: &f32) -> bool {
    *score == f32::NEG_INFINITY || score.abs() <= LARGEST
}

/// Returns an error if a value of the column `name` breaks its rule.
pub fn check_column<T>(
    column: &[T],
    rule: impl Fn(&T) -> bool,
    name: &str,
    bundle: &Bundle,
) -> Result<()> {
    match column.iter().position(|value| !rule(value)) {
        None => Ok(()),
        Some(at) => Err(bundle.damaged(format_args!("value {at} of {name:?} is out of range"))),
    }
}

/// Implements [`Record`] for a struct with the listed fields. `field: rule` refuses values for
/// which `rule(&value)` is false, instead of values out of the bounds of
/// [`Bundle::take`](crate::file::Bundle::take). Fields after `..` are not stored and get the
/// given value.
///
/// ```text
/// record!(Node { parent, count: is_count, labels } .. { cache: Vec::new() });
/// ```
#[macro_export]
macro_rules! record {
    (@take $n:ident $column:ident $bundle:ident) => {
        $crate::file::Record::take($n, &$column, $bundle)?
    };
    (@take $n:ident $column:ident $bundle:ident $rule:path) => {
        $crate::file::Record::take_any($n, &$column, $bundle)?
    };
    ($type:ty { $($field:ident $(: $rule:path)?),* $(,)? }
        $(.. { $($rest:ident: $value:expr),* $(,)? })?) => {
        impl $crate::file::Record for $type {
            fn put<'a>(
                records: impl Iterator<Item = &'a Self> + Clone,
                name: &str,
                bundle: &mut $crate::file::Bundle,
            ) {
                $($crate::file::Record::put(
                    records.clone().map(|record| &record.$field),
                    &format!("{name}.{}", stringify!($field)),
                    bundle,
                );)*
            }

            fn take(
                n: Option<usize>,
                name: &str,
                bundle: &mut $crate::file::Bundle,
            ) -> $crate::Result<Vec<Self>> {
                $(
                    let column = format!("{name}.{}", stringify!($field));
                    let $field = $crate::record!(@take n column bundle $($rule)?);
                    let n = Some($field.len());
                    $($crate::file::check_column(&$field, $rule, &column, bundle)?;)?
                )*
                $(let mut $field = $field.into_iter();)*
                Ok((0..n.unwrap_or_default())
                    .map_while(|_| {
                        Some(Self { $($field: $field.next()?,)* $($($rest: $value,)*)? })
                    })
                    .collect())
            }
        }
    };
}

/// A part of a model with named fields; see [`persist!`](crate::persist).
pub trait Persist {
    /// Stores the fields.
    fn put(&self, bundle: &mut Bundle);

    /// Replaces the fields of a part that was created with the same parameters. This must check
    /// everything that the model relies on, such as lengths and indices, because the checksum does
    /// not protect against forged files.
    fn fill(&mut self, bundle: &mut Bundle) -> Result<()>;
}

/// Storage of a field of [`persist!`](crate::persist) of records as an array for each of their
/// fields.
pub struct Columns;
/// Storage of a field of scores as an array, which may have minus infinities.
pub struct Scores;
/// Storage of a field that is itself a [`Persist`] in a nested bundle.
pub struct Nest;

impl Columns {
    /// Stores `records`.
    pub fn put<R: Record>(records: &[R], name: &str, bundle: &mut Bundle) {
        R::put(records.iter(), name, bundle);
    }

    /// Replaces `records` by the stored ones.
    pub fn fill<R: Record>(records: &mut Vec<R>, name: &str, bundle: &mut Bundle) -> Result<()> {
        *records = R::take(None, name, bundle)?;
        Ok(())
    }
}

impl Scores {
    /// Stores `scores`.
    pub fn put(scores: &[f32], name: &str, bundle: &mut Bundle) {
        bundle.put(name, scores);
    }

    /// Replaces `scores` by the stored ones.
    pub fn fill<S>(scores: &mut S, name: &str, bundle: &mut Bundle) -> Result<()>
    where
        S: FromIterator<f32>,
    {
        let stored = bundle.take_any(name)?;
        check_column(&stored, is_score, name, bundle)?;
        *scores = stored.into_iter().collect();
        Ok(())
    }
}

impl Nest {
    /// Stores `part`.
    pub fn put(part: &impl Persist, name: &str, bundle: &mut Bundle) {
        let mut inner = Bundle::new(name);
        part.put(&mut inner);
        bundle.nest(name, inner);
    }

    /// Replaces the fields of `part` by the stored ones.
    pub fn fill(part: &mut impl Persist, name: &str, bundle: &mut Bundle) -> Result<()> {
        let mut inner = bundle.unnest(name)?;
        inner.expect_kind(name)?;
        part.fill(&mut inner)
    }
}

/// Implements [`Persist`] with the listed fields, which are read in this order. A field is `Meta`
/// (stored as JSON), `Columns`, `Scores`, `Flat` (the type [`Flat`](super::Flat), which may stay in
/// the file) or `Nest`. `name = path` stores the field `path` under another name. `check` is a
/// method `fn(&self) -> Result<()>` that returns an error if fields do not match.
///
/// ```text
/// persist!(Tree {
///     Meta n_swaps = arena.n_swaps;
///     Columns nodes = arena.nodes;
///     Nest regressors;
/// } check is_sound);
/// ```
#[macro_export]
macro_rules! persist {
    (@put Meta $value:expr, $name:expr, $bundle:ident) => { $bundle.put_meta($name, &$value) };
    (@put Flat $value:expr, $name:expr, $bundle:ident) => { $bundle.put($name, $value.clone()) };
    (@put $kind:ident $value:expr, $name:expr, $bundle:ident) => {
        $crate::file::$kind::put(&$value, $name, $bundle)
    };
    (@fill Meta $value:expr, $name:expr, $bundle:ident) => { $value = $bundle.take_meta($name)? };
    (@fill Flat $value:expr, $name:expr, $bundle:ident) => {
        $value = $bundle.take_flat($name, None)?
    };
    (@fill $kind:ident $value:expr, $name:expr, $bundle:ident) => {
        $crate::file::$kind::fill(&mut $value, $name, $bundle)?
    };
    (@path $self:ident $name:ident) => { $self.$name };
    (@path $self:ident $name:ident $($path:ident).+) => { $self.$($path).+ };
    ($type:ty {
        $($kind:ident $name:ident $(= $first:ident $(. $rest:ident)*)?;)*
    } $(check $check:ident)?) => {
        impl $crate::file::Persist for $type {
            fn put(&self, bundle: &mut $crate::file::Bundle) {
                $($crate::persist!(
                    @put $kind $crate::persist!(@path self $name $($first $(. $rest)*)?),
                    stringify!($name), bundle
                );)*
            }

            fn fill(&mut self, bundle: &mut $crate::file::Bundle) -> $crate::Result<()> {
                $($crate::persist!(
                    @fill $kind $crate::persist!(@path self $name $($first $(. $rest)*)?),
                    stringify!($name), bundle
                );)*
                $(self.$check().map_err(|what| bundle.damaged(what))?;)?
                Ok(())
            }
        }
    };
}
