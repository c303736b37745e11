//! Parts of a model and their fields, stored and restored by lists of the fields.
//!
//! A type of which there are many lists its fields once, with [`record!`](crate::record); writing,
//! reading and the check of single values follow from the list, an array per field. Ragged values
//! (vectors, hash tables) are their lengths and all their entries end to end. A part that there is one of
//! lists its fields with [`persist!`](crate::persist).

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::array::LARGEST_DOUBLE;
use super::{Bundle, Element, Flat, LARGEST};
use crate::error::Result;

/// A value of which many are stored column by column.
pub trait Record: Sized {
    /// Stores `records` as arrays whose names begin with `name`.
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a;

    /// Moves `n` records out, or as many as there are.
    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>>;

    /// As [`take`](Self::take), whatever the floats among them are: for records whose rule allows
    /// infinities or NaN.
    fn take_any(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        Self::take(n, name, bundle)
    }

    /// As [`take`](Self::take); elements stay in the file if they lie there.
    fn take_flat(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Flat<Self>>
    where
        Self: 'static,
    {
        Ok(Self::take(n, name, bundle)?.into())
    }
}

impl<E: Element> Record for E
where
    super::Array: From<Vec<E>>,
{
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
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

/// Stores a type as another one that is an element of arrays.
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
    // An index, or none.
    Option<u32> as u32: |at| at.unwrap_or(u32::MAX), |at| (at != u32::MAX).then_some(at);
}

impl<R: Record> Record for Vec<R> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
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

/// Lists of these lengths, from their entries end to end.
fn split_by<R>(lengths: Vec<usize>, all: Vec<R>) -> Vec<Vec<R>> {
    let mut all = all.into_iter();
    let list = |n| all.by_ref().take(n).collect();
    lengths.into_iter().map(list).collect()
}

/// A key and what belongs to it.
impl<K: Record, V: Record> Record for (K, V) {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
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

/// Stores how many entries each of the ragged values of `name` has.
pub fn put_lengths(lengths: impl Iterator<Item = usize>, name: &str, bundle: &mut Bundle) {
    let lengths: Vec<u32> = lengths.map(|n| n as u32).collect();
    bundle.put(&format!("{name}.length"), lengths);
}

/// Moves out how many entries each of the ragged values of `name` has. Their sum is a
/// number, and one that the caller must compare with the entries before it allocates.
pub fn take_lengths(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<usize>> {
    let lengths = u32::take(n, &format!("{name}.length"), bundle)?;
    Ok(lengths.into_iter().map(|n| n as usize).collect())
}

/// No count is larger: added one by one importances end at 2^54 of the largest, 1e18, from where
/// on one more changes nothing.
const LARGEST_COUNT: f64 = 1e36;

/// Whether a count or a sum of importances is one.
pub fn is_count<N: Copy + Into<f64>>(count: &N) -> bool {
    let count: f64 = (*count).into();
    count.is_sign_positive() && count <= LARGEST_COUNT
}

/// Whether a sum of squares or counts in single precision is one: learning cuts them off there.
pub fn is_sum(sum: &f32) -> bool {
    (0.0..=LARGEST).contains(sum)
}

/// A sum of importances times something, as a count.
#[inline]
pub fn bounded_count(sum: f64) -> f64 {
    sum.min(LARGEST_COUNT)
}

/// Whether a statistic is one: NaN where it is unknown.
pub fn is_statistic(statistic: &f64) -> bool {
    statistic.is_nan() || statistic.abs() <= LARGEST_DOUBLE
}

/// Whether a score is one: minus infinity where there is none.
pub fn is_score(score: &f32) -> bool {
    *score == f32::NEG_INFINITY || score.abs() <= LARGEST
}

/// An error where a value of the column `name` breaks its rule.
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

/// Implements [`Record`] for a struct by the list of its fields. `field: rule` refuses
/// values for which `rule(&value)` is false, in place of the bounds of
/// [`Bundle::take`](crate::file::Bundle::take); fields after `..` are not stored and take the
/// value given.
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
            ) where
                Self: 'a,
            {
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

/// A part of a model with named fields. [`persist!`](crate::persist) implements it by the
/// list of the fields.
pub trait Persist {
    /// Stores the fields.
    fn put(&self, bundle: &mut Bundle);

    /// Takes the fields over into a part made from the same parameters. Must check everything
    /// that the model relies on later (lengths, indices in range): a checksum keeps out
    /// accidents, not a file that somebody made up.
    fn fill(&mut self, bundle: &mut Bundle) -> Result<()>;
}

/// How a field listed with [`persist!`](crate::persist) is stored: a few values as JSON.
pub struct Meta;
/// How a field is stored: records, as an array for each of their fields.
pub struct Columns;
/// How a field is stored: scores as an array, minus infinity where there is none.
pub struct Scores;
/// How a field is stored: a part with fields of its own, in a bundle of its own.
pub struct Nest;

impl Meta {
    /// Stores `value`.
    pub fn put(value: &impl Serialize, name: &str, bundle: &mut Bundle) {
        bundle.put_meta(name, value);
    }

    /// Replaces `value` by the one stored.
    pub fn fill(value: &mut impl DeserializeOwned, name: &str, bundle: &mut Bundle) -> Result<()> {
        *value = bundle.take_meta(name)?;
        Ok(())
    }
}

impl Columns {
    /// Stores `records`.
    pub fn put<R: Record>(records: &[R], name: &str, bundle: &mut Bundle) {
        R::put(records.iter(), name, bundle);
    }

    /// Replaces `records` by those stored.
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

    /// Replaces `scores` by those stored.
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

    /// Fills `part` with what is stored.
    pub fn fill(part: &mut impl Persist, name: &str, bundle: &mut Bundle) -> Result<()> {
        let mut inner = bundle.unnest(name)?;
        inner.expect_kind(name)?;
        part.fill(&mut inner)
    }
}

/// Implements [`Persist`] by the list of fields, in the order in which they are read. A field
/// is `Meta`, `Columns`, `Scores`, `Flat` (the type [`Flat`](super::Flat), which may stay in the
/// file) or `Nest`, and has its own name in the file unless `name = path` gives
/// another. `check` names a method `fn(&self) -> Result<()>` that says what does not fit
/// together;
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
    (@path $self:ident $name:ident) => { $self.$name };
    (@path $self:ident $name:ident $($path:ident).+) => { $self.$($path).+ };
    ($type:ty {
        $($kind:ident $name:ident $(= $first:ident $(. $rest:ident)*)?;)*
    } $(check $check:ident)?) => {
        impl $crate::file::Persist for $type {
            fn put(&self, bundle: &mut $crate::file::Bundle) {
                $($crate::file::$kind::put(
                    &$crate::persist!(@path self $name $($first $(. $rest)*)?),
                    stringify!($name),
                    bundle,
                );)*
            }

            fn fill(&mut self, bundle: &mut $crate::file::Bundle) -> $crate::Result<()> {
                $($crate::file::$kind::fill(
                    &mut $crate::persist!(@path self $name $($first $(. $rest)*)?),
                    stringify!($name),
                    bundle,
                )?;)*
                $(self.$check().map_err(|what| bundle.damaged(what))?;)?
                Ok(())
            }
        }
    };
}
