//! Parts of a model that are stored and restored.

use serde::{de::DeserializeOwned, Serialize};

use super::{check_column, is_score, Bundle, Record};
use crate::error::Result;

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
