//! How sure a classifier may be of its best class: the slope of its scores at which the softmax
//! gives the best class the probability that it is right with.
//!
//! Temperature scaling (C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On Calibration of Modern Neural
//! Networks*, ICML 2017, Section 4.2; the slope is 1 over the temperature), fitted to the log loss of
//! "the best class is right" (top-label calibration: C. Gupta, A. Ramdas, ICLR 2022) and not to that of
//! the true class: a tree gives most classes no score at all, and rows of such a class would decide.
//!
//! The loss is summed for a fixed grid of slopes, so that rows can be added one after the other. A
//! grid of four slopes an octave costs four exponentials a class: those of twice the slope are squares.

/// Slopes of an octave.
const PHASES: usize = 4;
/// Octaves, from 2^-7 to 2^8.
const OCTAVES: usize = 15;
/// Logarithm to base 2 of the lowest slope.
const LOWEST: f64 = -7.0;
const N_SLOPES: usize = PHASES * OCTAVES;

/// Sums of the log loss over rows, for a grid of slopes.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLabelLoss {
    /// With what happened.
    actual: [f64; N_SLOPES],
    /// Once as if the best class were right, once as if it were wrong.
    either: [f64; N_SLOPES],
    /// Weight of the rows.
    weight: f64,
}

impl Default for TopLabelLoss {
    fn default() -> Self {
        Self {
            actual: [0.0; N_SLOPES],
            either: [0.0; N_SLOPES],
            weight: 0.0,
        }
    }
}

impl TopLabelLoss {
    /// Adds a row: the scores of its classes, those of minus infinity have none, and whether the best
    /// is right. A row of fewer than two scores says nothing.
    pub fn add(&mut self, scores: &[f32], is_right: bool, weight: f64) {
        let (mut best, mut at) = (f32::NEG_INFINITY, None);
        for (class, &score) in scores.iter().enumerate() {
            if score > best {
                (best, at) = (score, Some(class));
            }
        }
        let Some(at) = at else { return };
        // Sums of exp(slope * (score - best)) over all classes but the best.
        let mut others = [0.0f64; N_SLOPES];
        let rest = scores.iter().enumerate();
        for (_, &score) in rest.filter(|&(class, &score)| class != at && score > f32::NEG_INFINITY)
        {
            let below = f64::from(score) - f64::from(best);
            for phase in 0..PHASES {
                let slope = (LOWEST + phase as f64 / PHASES as f64).exp2();
                let mut power = (slope * below).exp();
                for octave in 0..OCTAVES {
                    others[octave * PHASES + phase] += power;
                    power *= power;
                }
            }
        }
        if others[0] == 0.0 {
            return;
        }
        for (g, &others) in others.iter().enumerate() {
            let all = others.ln_1p();
            // -ln(1 - p); where the others underflow, p is 1 to the last bit.
            let wrong = all - others.max(f64::MIN_POSITIVE).ln();
            self.actual[g] += weight * if is_right { all } else { wrong };
            self.either[g] += weight * (all + wrong);
        }
        self.weight += weight;
    }

    /// The slope of lowest loss; None before there are rows.
    ///
    /// As in Platt scaling a row is added that is right and one that is wrong, of average scores, so that
    /// a few rows that are all right do not make it sure.
    pub fn slope(&self) -> Option<f64> {
        if self.weight == 0.0 {
            return None;
        }
        let loss = |g: usize| self.actual[g] + self.either[g] / self.weight;
        let lowest = (0..N_SLOPES).min_by(|&a, &b| loss(a).total_cmp(&loss(b)))?;
        let mut place = lowest as f64;
        if lowest > 0 && lowest + 1 < N_SLOPES {
            // The lowest point of the parabola through it and its neighbours.
            let (left, mid, right) = (loss(lowest - 1), loss(lowest), loss(lowest + 1));
            let bend = left - 2.0 * mid + right;
            if bend > 0.0 {
                place += 0.5 * (left - right) / bend;
            }
        }
        Some((LOWEST + place / PHASES as f64).exp2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Rows whose labels are drawn from the softmax of their scores times `slope`.
    fn drawn(slope: f64, n_rows: usize) -> TopLabelLoss {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut loss = TopLabelLoss::default();
        for _ in 0..n_rows {
            let scores: Vec<f32> = (0..5).map(|_| 4.0 * random.random::<f32>()).collect();
            let powers = scores.iter().map(|&s| (slope * f64::from(s)).exp());
            let powers: Vec<f64> = powers.collect();
            let mut left = random.random::<f64>() * powers.iter().sum::<f64>();
            let label = powers.iter().position(|power| {
                left -= power;
                left < 0.0
            });
            let best = (0..5).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            loss.add(&scores, label == best, 1.0);
        }
        loss
    }

    #[test]
    fn the_slope_of_the_data_is_found() {
        for slope in [0.3, 1.0, 2.5] {
            let found = drawn(slope, 20_000).slope().unwrap();
            assert!((found / slope - 1.0).abs() < 0.06, "{slope}: {found}");
        }
    }

    #[test]
    fn a_few_right_rows_do_not_make_it_sure() {
        let mut loss = TopLabelLoss::default();
        (0..10).for_each(|_| loss.add(&[1.0, 0.0], true, 1.0));
        let slope = loss.slope().unwrap();
        // One of twelve is wrong.
        assert!((1.0 / (1.0 + (-slope).exp()) - 11.0 / 12.0).abs() < 0.01);
    }

    #[test]
    fn rows_of_one_score_say_nothing() {
        let mut loss = TopLabelLoss::default();
        loss.add(&[], true, 1.0);
        loss.add(&[3.0, f32::NEG_INFINITY], false, 1.0);
        assert_eq!(loss.slope(), None);
    }
}
