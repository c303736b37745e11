//! Parameters of the learners, declared once with name, type, default and range. Rust, the
//! constraints of the Python classes, model files and the command line all use this declaration.

use std::ops::{Bound, RangeBounds};

use serde::{de::DeserializeOwned, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// Description of one parameter for other languages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// "integer", "real", "boolean", "choice", or "integers" for a list of integers.
    pub kind: &'static str,
    /// True if the value may be None.
    pub optional: bool,
    /// Default value.
    pub default: Value,
    /// Values of a choice.
    pub choices: Vec<Value>,
    /// Range of a number.
    pub range: Range,
}

/// The range of allowed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    low: Bound<f64>,
    high: Bound<f64>,
}

impl Range {
    /// Any number.
    pub const ANY: Self = Self::new(Bound::Unbounded, Bound::Unbounded);
    /// Above 0, and finite in single precision, in which steps are computed.
    pub const POSITIVE: Self = Self::above(0.0).to(3e38);
    /// At least 0, and finite in single precision.
    pub const NOT_NEGATIVE: Self = Self::from(0.0).to(3e38);
    /// An integer of at least 1.
    pub const COUNT: Self = Self::from(1.0).to(u32::MAX as f64);
    /// n for 2^n hashed columns.
    pub const BITS: Self = Self::from(1.0).to(31.0);
    /// A share above 0 and below 1.
    pub const INNER_SHARE: Self = Self::above(0.0).below(1.0);
    /// A share above 0 and up to 1.
    pub const POSITIVE_SHARE: Self = Self::above(0.0).to(1.0);

    const fn new(low: Bound<f64>, high: Bound<f64>) -> Self {
        Self { low, high }
    }

    /// Numbers of at least `low`.
    pub const fn from(low: f64) -> Self {
        Self::new(Bound::Included(low), Bound::Unbounded)
    }

    /// Numbers above `low`.
    pub const fn above(low: f64) -> Self {
        Self::new(Bound::Excluded(low), Bound::Unbounded)
    }

    /// The same range up to and including `high`.
    #[must_use]
    pub const fn to(self, high: f64) -> Self {
        Self::new(self.low, Bound::Included(high))
    }

    /// The same range below `high`.
    #[must_use]
    pub const fn below(self, high: f64) -> Self {
        Self::new(self.low, Bound::Excluded(high))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |x: f64| {
            if x.abs() < 1e15 {
                x.to_string()
            } else {
                format!("{x:e}")
            }
        };
        let end = |bound: Bound<f64>, included: &str, excluded: &str| match bound {
            // Users need not know that counts have 32 bits.
            Bound::Included(x) if x.to_bits() == f64::from(u32::MAX).to_bits() => None,
            Bound::Included(x) => Some(format!("{included} {}", short(x))),
            Bound::Excluded(x) => Some(format!("{excluded} {}", short(x))),
            Bound::Unbounded => None,
        };
        let (low, high) = (
            end(self.low, "at least", "above"),
            end(self.high, "at most", "below"),
        );
        let ends: Vec<String> = low.into_iter().chain(high).collect();
        f.write_str(&ends.join(" and "))
    }
}

/// A type of parameters.
pub trait ParamValue: Serialize {
    /// [`Parameter::kind`].
    const KIND: &'static str;
    /// [`Parameter::optional`].
    const OPTIONAL: bool = false;

    /// [`Parameter::choices`].
    fn choices() -> Vec<Value> {
        Vec::new()
    }

    /// Returns the number that must be in the range, if the value is a number.
    fn number(&self) -> Option<f64> {
        None
    }
}

macro_rules! numbers {
    ($($type:ty: $kind:literal, $as_f64:expr;)*) => {$(
        impl ParamValue for $type {
            const KIND: &'static str = $kind;

            fn number(&self) -> Option<f64> {
                Some($as_f64(*self))
            }
        }
    )*};
}

numbers! {
    u32: "integer", f64::from;
    u64: "integer", |n| n as f64;
    f64: "real", std::convert::identity;
}

impl ParamValue for bool {
    const KIND: &'static str = "boolean";
}

impl ParamValue for Vec<u32> {
    const KIND: &'static str = "integers";
}

impl<T: ParamValue> ParamValue for Option<T> {
    const KIND: &'static str = T::KIND;
    const OPTIONAL: bool = true;

    fn choices() -> Vec<Value> {
        T::choices()
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}

/// The parameters of a learner, declared with [`params!`](macro@crate::params).
pub trait Params:
    Clone + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned + Default + Send + Sync
{
    /// Returns their descriptions.
    fn list() -> Vec<Parameter>;

    /// Returns an error if a value is out of range or parameters contradict each other.
    fn check(self) -> Result<Self>;

    /// Reads and checks JSON. Missing parameters take their defaults, unknown ones are an error.
    fn from_json(json: &str) -> Result<Self> {
        let params: Self =
            serde_json::from_str(json).map_err(|e| Error::data(format!("parameters: {e}")))?;
        params.check()
    }
}

/// Writes all parameters as JSON.
pub(crate) fn to_json(params: &impl Params) -> Result<String> {
    serde_json::to_string(params).map_err(|e| Error::data(format!("parameters: {e}")))
}

/// Returns an error if a value is out of `range`.
pub fn check_range<T: ParamValue>(name: &str, value: &T, range: Range) -> Result<()> {
    match value.number() {
        Some(number) if !(number.is_finite() && (range.low, range.high).contains(&number)) => {
            let or_none = if T::OPTIONAL { ", or None" } else { "" };
            Err(Error::parameter(name, number, format!("{range}{or_none}")))
        }
        _ => Ok(()),
    }
}

/// Declares an enum whose values are words, and implements [`ParamValue`] for it.
///
/// ```text
/// choices! {
///     /// Order of the labels at the leaves.
///     pub enum LabelOrder {
///         /// The order of the classes.
///         Given = "given",
///     }
/// }
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)*
        }

        impl $crate::params::ParamValue for $name {
            const KIND: &'static str = "choice";

            fn choices() -> Vec<serde_json::Value> {
                vec![$($word.into()),*]
            }
        }
    };
}

/// Declares the parameters of a learner: `name: type = default, range;`, where the range is
/// optional. `online(n)` adds the parameters of every online learner, with `n` passes by default,
/// and implements [`OnlineParams`](crate::model::OnlineParams). `check f` calls
/// `f(&self) -> Result<()>`, which returns an error if parameters contradict each other.
///
/// ```text
/// params! {
///     /// Parameters of the learner.
///     pub struct Params online(5) check check_together {
///         /// Initial step size of a router.
///         learning_rate: f64 = 1.0, Range::POSITIVE;
///     }
/// }
/// ```
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident online($n_passes:literal) $(check $check:ident)? {
        $($fields:tt)*
    }) => {
        $crate::params! {
            $(#[$meta])* pub struct $name $(check $check)? {
                $($fields)*
                /// Scaling of the examples.
                scaling: $crate::data::Scaling = $crate::data::Scaling::Auto;
                /// Divides importance weights by their mean (in a stream, the mean so far), so that
                /// their unit does not matter.
                scale_weights: bool = true;
                /// Hashes columns to 2^`n_bits`, if given.
                n_bits: Option<u32> = None, $crate::params::Range::BITS;
                /// Maximum number of passes of `fit` over the data.
                n_passes: u32 = $n_passes, $crate::params::Range::COUNT;
                /// Seed of the random numbers.
                seed: u64 = 0;
                /// Holds out a tenth of the examples and stops when their error has not fallen for
                /// two passes.
                early_stopping: bool = false;
            }
        }

        impl $crate::model::OnlineParams for $name {
            fn schedule(&self) -> $crate::model::Schedule {
                $crate::model::Schedule {
                    n_passes: self.n_passes,
                    seed: self.seed,
                    early_stopping: self.early_stopping,
                }
            }

            fn scale_weights(&self) -> bool {
                self.scale_weights
            }

            fn preparation(
                &self,
                batch: &$crate::data::Batch<'_>,
            ) -> $crate::Result<$crate::data::Preparation> {
                let (rows, present) = (&batch.rows, batch.present());
                $crate::data::Preparation::new(self.scaling, self.n_bits, rows, &present)
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident $(check $check:ident)? {
        $($(#[$field_meta:meta])* $field:ident: $type:ty = $default:expr $(, $range:expr)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::params::Params for $name {
            fn list() -> Vec<$crate::params::Parameter> {
                vec![$({
                    #[allow(unused_variables)]
                    let range = $crate::params::Range::ANY;
                    $(let range = $range;)?
                    $crate::params::parameter::<$type>(stringify!($field), &$default, range)
                },)*]
            }

            fn check(self) -> $crate::Result<Self> {
                $($($crate::params::check_range(stringify!($field), &self.$field, $range)?;)?)*
                $(self.$check()?;)?
                Ok(self)
            }
        }
    };
}

/// Returns an entry of [`Params::list`].
pub fn parameter<T: ParamValue>(name: &'static str, default: &T, range: Range) -> Parameter {
    Parameter {
        name,
        kind: T::KIND,
        optional: T::OPTIONAL,
        // Numbers, words and lists always convert to JSON.
        default: serde_json::to_value(default).unwrap_or_default(),
        choices: T::choices(),
        range,
    }
}
