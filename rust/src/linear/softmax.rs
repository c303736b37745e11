//! The softmax, vectorised and the same on all machines.

use crate::simd::{dispatched, LANES};

dispatched! {
    /// Subtracts `rate` times the gradients from the scores and from the steps.
    pub(crate) fn descend(rate: f32, gradients: &[f32], scores: &mut [f32], steps: &mut [f32]) {
        for ((g, p), u) in gradients.iter().zip(scores).zip(steps) {
            *p -= rate * g;
            *u -= rate * g;
        }
    }
}

dispatched! {
    /// e^score over the sum of all e^score; the slices' length is a multiple of [`LANES`].
    pub(crate) fn softmax(scores: &[f32], probabilities: &mut [f32]) {
        let top = scores.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        let mut sums = [0.0f32; LANES];
        let (scores, _) = scores.as_chunks::<LANES>();
        let (probabilities, _) = probabilities.as_chunks_mut::<LANES>();
        for (scores, lanes) in scores.iter().zip(probabilities.iter_mut()) {
            for lane in 0..LANES {
                let e = exp(scores[lane] - top);
                lanes[lane] = e;
                sums[lane] += e;
            }
        }
        let sum: f32 = sums.iter().sum();
        let unit = sum.recip();
        // Lanes by lanes: the flat loop takes a twentieth more instructions.
        for lanes in probabilities {
            for probability in lanes {
                *probability *= unit;
            }
        }
    }
}

/// e^x for x <= 0 to a few units in the last place, 0 below -87: a polynomial, which
/// vectorises and gives the same result on all machines, as the C library's does not.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clipped = if x > -87.0 { x } else { -87.0 };
    let n = (clipped * std::f32::consts::LOG2_E - 0.5) as i32;
    let r = clipped - n as f32 * LN2_HIGH - n as f32 * LN2_LOW;
    let mut e = 1.987_569_1e-4f32;
    for c in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        e = e * r + c;
    }
    let e = e * r * r + r + 1.0;
    let scaled = e * f32::from_bits(((n + 127) as u32) << 23);
    if x > -87.0 {
        scaled
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_is_near() {
        for i in 0..8_700_u16 {
            let x = -f32::from(i) / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 1e-6, "{x}");
        }
        assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
    }
}
