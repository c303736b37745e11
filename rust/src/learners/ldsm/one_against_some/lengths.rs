//! Scorers see rows of length 1.

/// 1 / the length of a row without its constant, which comes last; 0 where there is nothing
/// else. `spread` has a zero for every column, and has again afterwards.
pub fn inverse_length((columns, values): (&[u32], &[f32]), spread: &mut [f64]) -> f32 {
    let n = columns.len() - 1;
    let features = || columns[..n].iter().zip(&values[..n]);
    // Values whose columns were hashed to one are added before they are squared.
    for (&column, &x) in features() {
        spread[column as usize] += f64::from(x);
    }
    let square: f64 = features()
        .map(|(&column, &x)| f64::from(x) * spread[column as usize])
        .sum();
    for (&column, _) in features() {
        spread[column as usize] = 0.0;
    }
    let inverse = square.sqrt().recip() as f32;
    if inverse.is_finite() {
        inverse
    } else {
        0.0
    }
}
