//! Fitting floor and weight of the join: those of a grid that rank the labels of held-out
//! rows best.

use super::super::join::Join;

/// A label of a row that may be among its best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The score by trees that do not know the row.
    pub tree_score: f32,
    /// The margin without the row's own part in it.
    pub margin: f32,
    /// Whether the row has the label.
    pub is_own: bool,
}

/// The candidates of a row and its importance.
pub type FitRow = (Vec<Candidate>, f32);

/// What `scorer_weight` may become.
const WEIGHTS: [f32; 9] = [0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// What the floor may become; with a smaller one trees can rule a label out.
const FLOORS: [f32; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];
/// Without rows to fit on.
const NO_ROWS: (f32, f32) = (0.01, 0.5);
/// Places of a ranking that count: the first is in all of P@1, P@3 and P@5.
const GAINS: [f64; 5] = [23.0 / 15.0, 8.0 / 15.0, 8.0 / 15.0, 0.2, 0.2];

/// Floor and weight of the largest P@1 + P@3 + P@5, with `weight` for the only weight if it is
/// given, and what all rows are worth then. Takes rows x candidates for each point of the grid.
pub fn fit(rows: &[FitRow], weight: Option<f32>) -> ((f32, f32), f64) {
    let weights = weight.map_or(WEIGHTS.to_vec(), |weight| vec![weight]);
    let mut best = (NO_ROWS.0, weight.unwrap_or(NO_ROWS.1));
    let mut most = 0.0;
    for &weight in &weights {
        for floor in FLOORS {
            let join = Join { floor, weight };
            let found = rows.iter().map(|row| gain(row, join)).sum();
            if found > most {
                (best, most) = ((floor, weight), found);
            }
        }
    }
    (best, most)
}

/// What the five best candidates of a row are worth.
fn gain(row: &FitRow, join: Join) -> f64 {
    let top = top_candidates::<{ GAINS.len() }>(row, join).zip(GAINS);
    let gains = top.filter(|((_, is_own), _)| *is_own);
    let gained: f64 = gains.map(|(_, gain)| gain).sum();
    gained * f64::from(row.1)
}

/// The `N` candidates of highest score, falling, and whether the row has them; of equal ones
/// those which came first.
pub fn top_candidates<const N: usize>(
    (candidates, _): &FitRow,
    join: Join,
) -> impl Iterator<Item = (f32, bool)> {
    let mut top = [(f32::NEG_INFINITY, false); N];
    for candidate in candidates {
        // Most candidates are far from the best, and need no exp.
        if join.upper_bound(candidate.tree_score, candidate.margin) <= top[N - 1].0 {
            continue;
        }
        let mut new = (
            join.score(candidate.tree_score, candidate.margin),
            candidate.is_own,
        );
        for place in &mut top {
            if new.0 > place.0 {
                std::mem::swap(place, &mut new);
            }
        }
    }
    top.into_iter()
        .take_while(|&(score, _)| score > f32::NEG_INFINITY)
}
