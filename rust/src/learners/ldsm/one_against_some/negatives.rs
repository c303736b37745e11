//! Of which labels a row is a negative example.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::examples::Examples;
use super::super::label_scores::LabelScores;
use super::super::params::Params;
use crate::classifier::keep_best;
use crate::random::mix;

/// The labels that row `row` does not have but stands for as a negative example, increasing:
/// the best by `scores`, and labels drawn as often as rows have them. O(scored labels + drawn
/// labels x log).
pub fn negatives(examples: &Examples, row: u32, scores: &LabelScores, params: &Params) -> Vec<u32> {
    let own = examples.labels(row);
    let is_other = |label: u32| own.binary_search(&label).is_err();
    let mut scored = Vec::new();
    scores.for_each(|label, score| {
        if is_other(label) {
            scored.push((label, score));
        }
    });
    keep_best(&mut scored, params.n_hard_negatives as usize);
    let mut chosen: Vec<u32> = scored.iter().map(|&(label, _)| label).collect();
    // An entry of all rows' labels is a label drawn by its frequency.
    let all = examples.labels.entries();
    let mut random = Pcg64Mcg::seed_from_u64(mix(params.seed ^ !u64::from(row)));
    let drawn = (0..params.n_random_negatives).map(|_| all[random.random_range(0..all.len())]);
    chosen.extend(drawn.filter(|&label| is_other(label)));
    chosen.sort_unstable();
    chosen.dedup();
    // There is such a list for each row.
    chosen.shrink_to_fit();
    chosen
}
