//! Scorers see rows of length 1.

/// 1 / the length of a row without its constant, which comes last; 0 where there is nothing
/// else.
pub fn inverse_length((columns, values): (&[u32], &[f32])) -> f32 {
    let n = columns.len() - 1;
    let (columns, values) = (&columns[..n], &values[..n]);
    let square: f64 = if columns.is_sorted_by(|a, b| a < b) {
        values.iter().map(|&x| f64::from(x).powi(2)).sum()
    } else {
        // Values whose columns were hashed to one are added before they are squared.
        let pairs = columns.iter().copied().zip(values.iter().copied());
        let mut pairs: Vec<(u32, f32)> = pairs.collect();
        pairs.sort_by_key(|&(column, _)| column);
        let sums = pairs.chunk_by(|a, b| a.0 == b.0).map(|same| {
            let values = same.iter().map(|&(_, x)| f64::from(x));
            values.sum::<f64>()
        });
        sums.map(|sum| sum.powi(2)).sum()
    };
    let inverse = square.sqrt().recip() as f32;
    if inverse.is_finite() {
        inverse
    } else {
        0.0
    }
}
