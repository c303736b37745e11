//! Losses and their importance-aware steps, and a vectorized softmax that is the same on all
//! machines.
//!
//! Karampatziakis & Langford, "Online importance weight aware updates" (UAI 2011): instead of one
//! gradient step of size `a`, follow the gradient flow for time `a` along the fixed direction `d`,
//! in closed form.

use crate::choices;
use crate::simd::{dispatched, LANES};

choices! {
    /// Loss of a prediction `p` for a target `y`.
    pub enum Loss {
        /// (y - p)^2
        Squared = "squared",
        /// ln(1 + exp(-y p)), y = +-1
        Logistic = "logistic",
        /// |y - p| / 2, the quantile loss at one half
        Quantile = "quantile",
        /// max(0, 1 - y p), y = +-1
        Hinge = "hinge",
        /// max(0, 1 - y p)^2 / 2, y = +-1
        SquaredHinge = "squared_hinge",
    }
}

impl Loss {
    /// Returns the length of the step along a direction whose product with the example is `ppu`
    /// ("prediction change per unit"). `a` is the learning rate times the importance weight.
    pub fn step(self, y: f32, p: f32, a: f32, ppu: f32) -> f32 {
        // Below this, the closed forms lose precision and their limits are used.
        const SMALL: f32 = 1e-6;
        match self {
            Self::Squared => {
                if a * ppu < SMALL {
                    2.0 * (y - p) * a
                } else {
                    (y - p) * -(-2.0 * a * ppu).exp_m1() / ppu
                }
            }
            Self::Quantile => {
                let gap = y - p;
                if gap == 0.0 {
                    return 0.0;
                }
                let step = 0.5 * a * gap.signum();
                if step * ppu * gap.signum() < gap.abs() {
                    step
                } else {
                    gap / ppu
                }
            }
            Self::Logistic => {
                let margin = f64::from(y * p);
                if margin > 700.0 {
                    // The step is 0, and the exponential would overflow.
                    return 0.0;
                }
                let (a, d) = (a.min(f32::MAX), margin.exp());
                if a * ppu < SMALL {
                    return y * a / (1.0 + d as f32);
                }
                let z = f64::from(a) * f64::from(ppu) + margin + d;
                (-(f64::from(y) * lambert_w_of_exp_minus(z) + f64::from(p)) / f64::from(ppu)) as f32
            }
            Self::Hinge | Self::SquaredHinge => {
                let gap = 1.0 - y * p;
                if gap <= 0.0 {
                    0.0
                } else if self == Self::Hinge {
                    y * a.min(gap / ppu)
                } else if a * ppu < SMALL {
                    y * gap * a
                } else {
                    y * gap * -(-a * ppu).exp_m1() / ppu
                }
            }
        }
    }

    /// Returns the squared derivative of the loss by `p`.
    pub fn slope_squared(self, y: f32, p: f32) -> f32 {
        match self {
            Self::Squared => 4.0 * (y - p) * (y - p),
            Self::Quantile => 0.25 * f32::from(y != p),
            Self::Logistic => {
                let slope = 1.0 / (1.0 + (y * p).exp());
                slope * slope
            }
            Self::Hinge => f32::from(y * p < 1.0),
            Self::SquaredHinge => {
                let gap = (1.0 - y * p).max(0.0);
                gap * gap
            }
        }
    }
}

/// Returns `W(exp(z)) - z`, where W is Lambert's function: the root `w` of w + ln w = z, minus z.
fn lambert_w_of_exp_minus(z: f64) -> f64 {
    // Above, the difference would cancel; below, exp(z) is 0.
    const LARGE: f64 = 1e12;
    const SMALL: f64 = -50.0;
    if z < SMALL {
        return -z;
    }
    // Newton's method on w + ln w, from a start with an error of a few percent.
    let mut w = if z >= 1.0 {
        z - z.ln().max(0.0) * z / (1.0 + z)
    } else {
        z.exp() / (1.0 + z.exp())
    };
    for _ in 0..6 {
        let last = w;
        w = last * (1.0 + z - last.ln()) / (1.0 + last);
        if (w - last).abs() <= 1e-14 * last {
            break;
        }
    }
    if z > LARGE {
        -w.ln()
    } else {
        w - z
    }
}

dispatched! {
    /// Computes the softmax of slices whose length is a multiple of [`LANES`].
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
        // A loop over single values would take a twentieth more instructions.
        for lanes in probabilities {
            for probability in lanes {
                *probability *= unit;
            }
        }
    }
}

/// Returns e^x for x <= 0 to a few units in the last place, and 0 below -87. Unlike the C
/// library's function, this polynomial vectorizes and is the same on all machines.
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
    use super::{exp, *};

    const ALL: [Loss; 5] = [
        Loss::Squared,
        Loss::Logistic,
        Loss::Quantile,
        Loss::Hinge,
        Loss::SquaredHinge,
    ];

    fn slope(loss: Loss, y: f64, p: f64) -> f64 {
        match loss {
            Loss::Squared => 2.0 * (p - y),
            Loss::Logistic => -y / (1.0 + (y * p).exp()),
            Loss::Quantile => 0.5 * (p - y).signum() * f64::from(u8::from(p != y)),
            Loss::Hinge => {
                if y * p < 1.0 {
                    -y
                } else {
                    0.0
                }
            }
            Loss::SquaredHinge => -y * (1.0 - y * p).max(0.0),
        }
    }

    /// A step ends where the gradient flow dp/dt = -ppu * slope(p) ends.
    #[test]
    fn steps_follow_the_gradient_flow() {
        for loss in ALL {
            for y in [-1.0f64, 1.0] {
                for p0 in [-2.5f64, -0.7, 0.0, 0.3, 1.8] {
                    for a in [0.01f64, 0.5, 3.0] {
                        for ppu in [0.2f64, 1.0, 4.0] {
                            let n = 50_000;
                            let (mut p, dt) = (p0, a / f64::from(n));
                            for _ in 0..n {
                                let next = p - dt * ppu * slope(loss, y, p);
                                let kink = matches!(loss, Loss::Hinge | Loss::Quantile);
                                // The flow stops at a kink.
                                p = if kink && (next - y) * (p - y) < 0.0 {
                                    y
                                } else {
                                    next
                                };
                            }
                            let step = loss.step(y as f32, p0 as f32, a as f32, ppu as f32);
                            let got = p0 + f64::from(step) * ppu;
                            assert!(
                                (got - p).abs() < 2e-4,
                                "{loss:?} y={y} p={p0} a={a} ppu={ppu}: {got} not {p}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// A large margin hardly moves, a very negative one moves by the whole step, and a very long
    /// step ends where the flow ends.
    #[test]
    fn logistic_steps_of_extreme_margins() {
        let moved = |y: f32, p: f32, a: f32, ppu: f32| {
            f64::from(Loss::Logistic.step(y, p, a, ppu)) * f64::from(ppu)
        };
        for y in [-1.0f32, 1.0] {
            for margin in [25.0f32, 33.0, 37.0, 38.0, 45.0, 50.0] {
                for ppu in [1.0, 20.0, 1000.0] {
                    let moved = moved(y, y * margin, 0.5, ppu) * f64::from(y);
                    let most = 1e-4 + 0.5 * f64::from(ppu) * f64::from(-margin).exp();
                    assert!(
                        (-1e-4..=most).contains(&moved),
                        "{y} {margin} {ppu}: {moved}"
                    );
                }
            }
            for margin in [-60.0f32, -700.0, -1000.0, -1e6] {
                let moved = moved(y, y * margin, 0.5, 4.0) * f64::from(y);
                assert!((moved - 2.0).abs() < 1e-6, "{y} {margin}: {moved}");
            }
            // The flow increases p + e^p by a * ppu.
            let end = moved(y, y * 0.3, 1e20, 4.0) * f64::from(y) + f64::from(0.3f32);
            assert!((end.exp() / 4e20 - 1.0).abs() < 1e-4, "{y}: {end}");
        }
    }

    #[test]
    fn small_steps_agree_with_the_closed_form() {
        for loss in ALL {
            let (below, above) = (
                loss.step(1.0, 0.3, 0.9e-6, 1.0),
                loss.step(1.0, 0.3, 1.1e-6, 1.0),
            );
            assert!(
                (below / 0.9 - above / 1.1).abs() < 2e-2 * above,
                "{loss:?}: {below} {above}"
            );
        }
    }

    #[test]
    fn exp_is_accurate() {
        for i in 0..8_700_u16 {
            let x = -f32::from(i) / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 1e-6, "{x}");
        }
        assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
    }
}
