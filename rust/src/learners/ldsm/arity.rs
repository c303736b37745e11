//! From the arity that a model has to code that is compiled for it.

/// `$call`, in which `$m` is a constant of the value of `$arity`.
macro_rules! with_arity {
    ($arity:expr, $m:ident => $call:expr) => {
        with_arity!(@ $arity, $m => $call; 2 3 4 5 6 7; 8)
    };
    (@ $arity:expr, $m:ident => $call:expr; $($n:literal)*; $last:literal) => {
        match $arity {
            $($n => {
                const $m: usize = $n;
                $call
            })*
            // Parameters and files of another arity are refused.
            _ => {
                const $m: usize = $last;
                $call
            }
        }
    };
}

pub(super) use with_arity;
