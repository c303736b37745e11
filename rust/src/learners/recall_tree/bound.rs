//! Entropy and recall of a histogram, kept up as labels come in.

/// Entropy (nats) of a histogram of sum `n` and entropy `h`, after `d` more of a
/// label of which it held `c`.
///
/// n H changes by n ln n terms only, whatever the number of labels.
#[inline]
pub fn entropy_after(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = n + d;
    if after <= 0.0 {
        return 0.0;
    }
    let others = n - c;
    let share = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
    let mut entropy = h;
    if n > 0.0 {
        // Without this label, over what remains; then all of it over more.
        entropy = (h + share(c / n)) * (n / after) - (n / after).ln() * (others / after);
    }
    entropy - share((c + d) / after)
}

/// By how much n H of a child would grow if `d` more of a label came to it: what
/// routing an example there costs.
#[inline]
pub fn entropy_cost(h: f64, n: f64, c: f64, d: f64) -> f64 {
    let after = entropy_after(h, n, c, d);
    n * (after - h) + d * after
}

/// Lower bound on the recall of candidates that held `mass` of the `n` seen.
///
/// Eq. 1 of the paper, the multiplier `hyper` in place of its unknown constant.
/// In the authors' program's precision: descent hangs on which of two is larger.
#[inline]
pub fn recall_bound(mass: f64, n: f64, hyper: f64) -> f32 {
    let (mass, n, hyper) = (mass as f32, n as f32, hyper as f32);
    let f = mass / n;
    let deviation = (f * (1.0 - f) / n).sqrt();
    // The constant of the empirical Bernstein bound.
    let worst = 15.0 / (18f32.sqrt() * n);
    // NaN, of a node that has seen nothing, becomes 0.
    (f - hyper.sqrt() * deviation - hyper * worst).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bound_of_the_specification() {
        assert!((recall_bound(172.0, 600.0, 1.0) - 0.26231).abs() < 5e-6);
        assert_eq!(recall_bound(0.0, 0.0, 1.0).to_bits(), 0);
    }

    proptest! {
        #[test]
        fn entropy_is_kept_up(stream in prop::collection::vec((0usize..6, 1u8..5), 1..60)) {
            let mut counts = [0.0f64; 6];
            let (mut h, mut n) = (0.0, 0.0);
            for (label, d) in stream {
                let d = f64::from(d);
                let cost = entropy_cost(h, n, counts[label], d);
                let after = entropy_after(h, n, counts[label], d);
                prop_assert!((cost - ((n + d) * after - n * h)).abs() < 1e-9);
                h = after;
                n += d;
                counts[label] += d;
                let plain: f64 = counts.iter().filter(|&&c| c > 0.0).map(|c| -c / n * (c / n).ln()).sum();
                prop_assert!((h - plain).abs() < 1e-9, "{h} {plain}");
            }
        }

        #[test]
        fn the_bound_is_below_the_recall(mass in 0u32..1000, more in 0u32..1000, hyper in 0.0f64..20.0) {
            let n = f64::from(mass + more);
            let bound = recall_bound(f64::from(mass), n, hyper);
            prop_assert!(bound >= 0.0 && f64::from(bound) * n <= f64::from(mass) + 1e-3);
        }
    }
}
