//! Which children an example goes to, in training and in prediction alike.

/// The margins of a row: its products with the M regressors of a node, whose
/// weights for a column `weights` looks up.
#[inline]
pub fn margins<const M: usize>(
    (columns, values): (&[u32], &[f32]),
    weights: impl Fn(u32) -> [f32; M],
) -> [f32; M] {
    let mut margins = [0.0f32; M];
    for (&column, &x) in columns.iter().zip(values) {
        let weights = weights(column);
        for j in 0..M {
            margins[j] += weights[j] * x;
        }
    }
    margins
}

/// The children that an example goes to, as bits: those of a margin of at least
/// 1/2, else that of the largest.
#[inline]
pub fn directions(margins: &[f32]) -> u32 {
    let (mut chosen, mut best) = (0, 0);
    for (j, &margin) in margins.iter().enumerate() {
        chosen |= u32::from(margin >= 0.5) << j;
        if margin > margins[best] {
            best = j;
        }
    }
    if chosen == 0 {
        1 << best
    } else {
        chosen
    }
}
