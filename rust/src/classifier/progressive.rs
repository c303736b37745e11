//! Progressive validation: each example is predicted before it is learned, so
//! that the mistakes made on the way are those on data never seen.

use serde::{Deserialize, Serialize};

use crate::data::MOST_EXAMPLES;
use crate::file::is_count;

/// Mistakes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Mistakes {
    /// Examples learned, each pass counted.
    pub examples: u64,
    /// Importance of those of the first pass.
    pub weight: f64,
    /// Importance of those predicted wrongly.
    pub wrong: f64,
    /// Whether the examples were learned before, in an earlier pass: then they are no test, and
    /// only `examples` counts them.
    #[serde(skip)]
    pub repeats: bool,
}

impl Mistakes {
    /// Takes in one example.
    #[inline]
    pub fn count(&mut self, is_wrong: bool, importance: f32) {
        self.examples = (self.examples + 1).min(MOST_EXAMPLES);
        if self.repeats {
            return;
        }
        self.weight += f64::from(importance);
        if is_wrong {
            self.wrong += f64::from(importance);
        }
    }

    /// Takes in another count.
    pub fn add(&mut self, other: &Self) {
        self.examples = (self.examples + other.examples).min(MOST_EXAMPLES);
        self.weight += other.weight;
        self.wrong += other.wrong;
    }

    /// Whether these are counts.
    pub fn is_sound(&self) -> bool {
        self.examples <= MOST_EXAMPLES
            && is_count(&self.weight)
            && 0.0 <= self.wrong
            && self.wrong <= self.weight
    }

    /// Share predicted wrongly.
    pub fn loss(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.wrong / self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_later_passes_are_no_test() {
        let mut mistakes = Mistakes::default();
        mistakes.count(true, 2.0);
        mistakes.repeats = true;
        mistakes.count(false, 2.0);
        assert_eq!((mistakes.examples, mistakes.loss()), (2, Some(1.0)));
        mistakes.repeats = false;
        mistakes.count(false, 2.0);
        assert_eq!((mistakes.examples, mistakes.loss()), (3, Some(0.5)));
    }

    #[test]
    fn counts_of_files_are_counts() {
        let sound = Mistakes {
            examples: 3,
            weight: 2.5,
            wrong: 2.5,
            repeats: false,
        };
        assert!(sound.is_sound() && Mistakes::default().is_sound());
        let broken = [
            Mistakes {
                examples: u64::MAX,
                ..sound
            },
            Mistakes {
                weight: f64::INFINITY,
                ..sound
            },
            Mistakes {
                wrong: -1.0,
                ..sound
            },
            Mistakes {
                wrong: f64::NAN,
                ..sound
            },
            Mistakes {
                wrong: 3.0,
                ..sound
            },
        ];
        assert!(broken.iter().all(|mistakes| !mistakes.is_sound()));
    }
}
