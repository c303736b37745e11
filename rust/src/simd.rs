//! The hot loops over floats, compiled for each instruction set and chosen at run time, so that one
//! wheel serves all processors.
//!
//! Products and sums are rounded separately (no fused multiply-add), and every sum uses [`LANES`]
//! fixed lanes. So all variants agree to the last bit. Models trained on other platforms may still
//! differ in last bits, because `exp` and `ln` come from their C libraries.

// Sums must be inlined into the function that is compiled for an instruction set.
#![allow(clippy::inline_always)]

/// Lanes of every sum: one 512-bit register, two of 256 bits, four of 128.
pub(crate) const LANES: usize = 16;

/// Compiles the body for AVX-512, AVX2 and the baseline, and calls the widest version that the
/// machine supports (std caches the detection). On AArch64 the baseline has NEON, where the lanes
/// of a sum are four registers.
///
/// `fn name[M, P](..)` has the const generics M and P.
macro_rules! dispatched {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($n:ident),*])? ($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<$(const $n: usize),*>)? ($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::inline_always, clippy::too_many_arguments)]
            fn body $(<$(const $n: usize),*>)? ($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                #[allow(clippy::too_many_arguments)]
                fn avx512 $(<$(const $n: usize),*>)? ($($arg: $type),*) $(-> $ret)? {
                    body $(::<$($n),*>)? ($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                #[allow(clippy::too_many_arguments)]
                fn avx2 $(<$(const $n: usize),*>)? ($($arg: $type),*) $(-> $ret)? {
                    body $(::<$($n),*>)? ($($arg),*)
                }
                if std::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the feature was just found on this machine.
                    return unsafe { avx512 $(::<$($n),*>)? ($($arg),*) };
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature was just found on this machine.
                    return unsafe { avx2 $(::<$($n),*>)? ($($arg),*) };
                }
            }
            body $(::<$($n),*>)? ($($arg),*)
        }
    };
}
pub(crate) use dispatched;

/// Returns the position of the first value that is `bad`. There is no early exit within a chunk, so
/// that the test vectorizes.
pub(crate) fn first_where<T: Copy>(slice: &[T], bad: impl Fn(T) -> bool) -> Option<usize> {
    const CHUNK: usize = 64;
    for (c, chunk) in slice.chunks(CHUNK).enumerate() {
        if chunk.iter().fold(false, |any, &v| any | bad(v)) {
            return chunk.iter().position(|&v| bad(v)).map(|at| c * CHUNK + at);
        }
    }
    None
}

/// Prefetches the cache line of `place`. The nodes of a path are far apart in memory, and most of a
/// tree's time is waiting for them.
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch has no visible effect and never faults.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) std::ptr::from_ref(place),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Prefetches the first cache lines of a list.
pub(crate) fn prefetch_list<T>(list: &[T]) {
    const CACHE_LINE: usize = 64;
    /// The processor itself continues with further cache lines.
    const MAX_LINES: usize = 8;
    let lines = list.chunks(CACHE_LINE / size_of::<T>()).take(MAX_LINES);
    lines.for_each(|line| prefetch(&line[0]));
}

/// Sums the lanes pairwise, in a fixed order.
#[inline(always)]
pub(crate) fn fold(lanes: [f32; LANES]) -> f32 {
    let mut half = [0.0; LANES / 2];
    for i in 0..LANES / 2 {
        half[i] = lanes[i] + lanes[i + LANES / 2];
    }
    let mut quarter = [0.0; LANES / 4];
    for i in 0..LANES / 4 {
        quarter[i] = half[i] + half[i + LANES / 4];
    }
    fold_four(quarter)
}

/// Sums four lanes. Not inlined: if the compiler saw these sums, it would keep all lanes in pairs
/// instead of one register.
#[inline(never)]
fn fold_four([a, b, c, d]: [f32; LANES / 4]) -> f32 {
    (a + c) + (b + d)
}

/// Adds four vectors of sums.
#[inline(always)]
fn fold_sums([mut lanes, second, third, fourth]: [[f32; LANES]; 4]) -> [f32; LANES] {
    for lane in 0..LANES {
        lanes[lane] = (lanes[lane] + second[lane]) + (third[lane] + fourth[lane]);
    }
    lanes
}

dispatched! {
    /// Returns the sum of squares.
    pub(crate) fn sum_of_squares(x: &[f32]) -> f32 {
        let mut lanes = [0.0f32; LANES];
        let (x, rest) = x.as_chunks::<LANES>();
        for x in x {
            for lane in 0..LANES {
                lanes[lane] += x[lane] * x[lane];
            }
        }
        for (x, lane) in rest.iter().zip(&mut lanes) {
            *lane += x * x;
        }
        fold(lanes)
    }
}

dispatched! {
    /// Replaces each sum of squares by x divided by its root of degree `ROOT`, 2 or 4, or by 0 if the
    /// sum is 0. Returns the sums of result * x and of x^2 / square.
    pub(crate) fn over_root[ROOT](x: &[f32], squares: &mut [f32]) -> (f32, f32) {
        let (mut norms, mut dimensions) = ([0.0f32; LANES], [0.0f32; LANES]);
        let mut divide = |lane: usize, x: f32, square: &mut f32| {
            let positive = *square > 0.0;
            let root = if ROOT == 4 { square.sqrt().sqrt() } else { square.sqrt() };
            let step = if positive { x / root } else { 0.0 };
            norms[lane] += step * x;
            dimensions[lane] += match ROOT {
                4 if positive => x * x / *square,
                4 => 0.0,
                _ => step * step,
            };
            *square = step;
        };
        let (x, x_rest) = x.as_chunks::<LANES>();
        let (squares, squares_rest) = squares.as_chunks_mut::<LANES>();
        for (x, squares) in x.iter().zip(squares) {
            for lane in 0..LANES {
                divide(lane, x[lane], &mut squares[lane]);
            }
        }
        for (lane, (x, square)) in x_rest.iter().zip(squares_rest).enumerate() {
            divide(lane, *x, square);
        }
        (fold(norms), fold(dimensions))
    }
}

/// Returns the dot product of numbers, converted by `float`, and floats.
#[inline(always)]
fn dot_of<T: Copy>(a: &[T], b: &[f32], float: impl Fn(T) -> f32) -> f32 {
    // Four independent sums, because a single one would wait for each addition.
    let mut sums = [[0.0f32; LANES]; 4];
    let (a, a_rest) = a.as_chunks::<{ 4 * LANES }>();
    let (b, b_rest) = b.as_chunks::<{ 4 * LANES }>();
    for (a, b) in a.iter().zip(b) {
        for (part, sum) in sums.iter_mut().enumerate() {
            for lane in 0..LANES {
                sum[lane] += float(a[part * LANES + lane]) * b[part * LANES + lane];
            }
        }
    }
    let (a, _) = a_rest.as_chunks::<LANES>();
    let (b, _) = b_rest.as_chunks::<LANES>();
    for ((a, b), sum) in a.iter().zip(b).zip(&mut sums) {
        for lane in 0..LANES {
            sum[lane] += float(a[lane]) * b[lane];
        }
    }
    fold(fold_sums(sums))
}

dispatched! {
    /// Returns the dot product of two slices of equal length, a multiple of [`LANES`].
    pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
        dot_of(a, b, |x| x)
    }
}

dispatched! {
    /// Computes the dot products of some `rows` of a matrix with weights, to the bit those of [`dot`].
    pub(crate) fn dot_rows(matrix: &[f32], rows: &[u32], weights: &[f32], products: &mut [f32]) {
        let width = weights.len();
        for (&row, product) in rows.iter().zip(products) {
            *product = dot_of(&matrix[row as usize * width..][..width], weights, |x| x);
        }
    }
}

/// Returns the dot product of short rows by a single sum, within functions that are compiled for an
/// instruction set.
#[inline(always)]
pub(crate) fn short_dot(a: &[[f32; LANES]], b: &[[f32; LANES]]) -> f32 {
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    fold(sums)
}

dispatched! {
    /// Computes `y += a * x` for two slices of equal length.
    pub(crate) fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
        for (x, y) in x.iter().zip(y) {
            *y += a * x;
        }
    }
}

dispatched! {
    /// Returns the dot product of bytes and weights; both are as long as a multiple of [`LANES`].
    pub(crate) fn dot_bytes(bytes: &[i8], weights: &[f32]) -> f32 {
        dot_of(bytes, weights, f32::from)
    }
}

dispatched! {
    /// Computes `y += a * bytes` for two slices of equal length.
    pub(crate) fn add_bytes(a: f32, bytes: &[i8], y: &mut [f32]) {
        for (&byte, y) in bytes.iter().zip(y) {
            *y += a * f32::from(byte);
        }
    }
}

/// Returns the products of R rows of bytes above -128 with the weights of [`LANES`] labels, both with
/// four columns side by side. R is 1 or a multiple of 4, and there are at most 2^16 columns. Sums of
/// integers are exact, so instruction sets may sum them in other orders. `next`, the weights of the
/// following labels, are prefetched, because processors do not prefetch beyond a page by themselves.
pub(crate) fn multiply_bytes<const R: usize>(
    weights: &[[[i8; 4]; LANES]],
    rows: &[[[i8; 4]; R]],
    next: &[[[i8; 4]; LANES]],
) -> [[i32; LANES]; R] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m256i, __m512i, _mm256_abs_epi8, _mm256_add_epi32, _mm256_madd_epi16,
            _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
            _mm256_sign_epi8, _mm512_dpbusd_epi32, _mm512_set1_epi32, _mm512_slli_epi32,
            _mm512_sub_epi32,
        };
        use std::mem::transmute;

        #[target_feature(enable = "avx512f,avx512vnni")]
        fn vnni<const R: usize>(
            weights: &[[[i8; 4]; LANES]],
            rows: &[[[i8; 4]; R]],
            bytes: impl Fn([i8; 4]) -> i32,
        ) -> [[i32; LANES]; R] {
            /// Adds 128 to each byte, as this instruction set multiplies bytes without sign.
            const OFFSET: i32 = i32::from_ne_bytes([128; 4]);
            let ones = _mm512_set1_epi32(i32::from_ne_bytes([1; 4]));
            let (mut sums, mut of_weights) = ([_mm512_set1_epi32(0); R], _mm512_set1_epi32(0));
            for (weights, rows) in weights.iter().zip(rows) {
                // SAFETY: both are 64 bytes, and every pattern is valid.
                let weights = unsafe { transmute::<[[i8; 4]; LANES], __m512i>(*weights) };
                of_weights = _mm512_dpbusd_epi32(of_weights, ones, weights);
                for (sum, &row) in sums.iter_mut().zip(rows) {
                    let row = _mm512_set1_epi32(bytes(row) ^ OFFSET);
                    *sum = _mm512_dpbusd_epi32(*sum, row, weights);
                }
            }
            sums.map(|sum| {
                let product = _mm512_sub_epi32(sum, _mm512_slli_epi32::<7>(of_weights));
                // SAFETY: as above.
                unsafe { transmute::<__m512i, [i32; LANES]>(product) }
            })
        }

        /// Multiplies N rows at a time, so that their sums stay in registers.
        #[target_feature(enable = "avx2")]
        fn avx2<const R: usize, const N: usize>(
            weights: &[[[i8; 4]; LANES]],
            rows: &[[[i8; 4]; R]],
            next: &[[[i8; 4]; LANES]],
            bytes: impl Fn([i8; 4]) -> i32,
        ) -> [[i32; LANES]; R] {
            let mut products = [[0; LANES]; R];
            for (group, products) in products.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                let mut sums = [[_mm256_setzero_si256(); 2]; N];
                for ((weights, rows), next) in weights.iter().zip(rows).zip(next) {
                    prefetch(next);
                    // SAFETY: both have the same size, and every pattern is valid.
                    let weights = unsafe { transmute::<[[i8; 4]; LANES], [__m256i; 2]>(*weights) };
                    let sizes = weights.map(|weights| _mm256_abs_epi8(weights));
                    for (sums, &row) in sums.iter_mut().zip(&rows.as_chunks::<N>().0[group]) {
                        let row = _mm256_set1_epi32(bytes(row));
                        for half in 0..2 {
                            // A pair of products is at most 2 * 128 * 127, within 16 bits.
                            let signed = _mm256_sign_epi8(row, weights[half]);
                            let pairs = _mm256_maddubs_epi16(sizes[half], signed);
                            let quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                            sums[half] = _mm256_add_epi32(sums[half], quads);
                        }
                    }
                }
                // SAFETY: as above.
                *products =
                    sums.map(|sums| unsafe { transmute::<[__m256i; 2], [i32; LANES]>(sums) });
            }
            products
        }

        let bytes = |row: [i8; 4]| i32::from_ne_bytes(row.map(|byte| byte as u8));
        if R > 1 && std::is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the feature was just found on this machine, and it includes AVX-512.
            return unsafe { vnni(weights, rows, bytes) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just found on this machine.
            return unsafe {
                if R == 1 {
                    avx2::<R, 1>(weights, rows, next, bytes)
                } else {
                    avx2::<R, 4>(weights, rows, next, bytes)
                }
            };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = next;
    multiply_bytes_anywhere(weights, rows)
}

dispatched! {
    /// Computes [`multiply_bytes`] without special instructions.
    fn multiply_bytes_anywhere[R](weights: &[[[i8; 4]; LANES]], rows: &[[[i8; 4]; R]]) -> [[i32; LANES]; R] {
        let mut sums = [[0i32; LANES]; R];
        for (weights, rows) in weights.iter().zip(rows) {
            for (sums, row) in sums.iter_mut().zip(rows) {
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    for column in 0..4 {
                        *sum += i32::from(weights[column]) * i32::from(row[column]);
                    }
                }
            }
        }
        sums
    }
}

dispatched! {
    /// Returns the product of a sparse row with the weights of each lane, as four independent sums.
    pub(crate) fn dot_lanes(columns: &[u32], values: &[f32], weights: &[[f32; LANES]]) -> [f32; LANES] {
        let mut sums = [[0.0f32; LANES]; 4];
        let (columns, last_columns) = columns.as_chunks::<4>();
        let (values, last_values) = values.as_chunks::<4>();
        for (columns, values) in columns.iter().zip(values) {
            for (part, sum) in sums.iter_mut().enumerate() {
                let (weights, x) = (&weights[columns[part] as usize], values[part]);
                for lane in 0..LANES {
                    sum[lane] += weights[lane] * x;
                }
            }
        }
        for ((&column, &x), sum) in last_columns.iter().zip(last_values).zip(&mut sums) {
            let weights = &weights[column as usize];
            for lane in 0..LANES {
                sum[lane] += weights[lane] * x;
            }
        }
        fold_sums(sums)
    }
}

/// Returns the products of a sparse row with the weights of up to L regressors, to the bit those of
/// [`sparse_dot`]. The weights of a column are side by side, and `stride` floats after those of the
/// column before it. Products of further lanes are meaningless.
///
/// # Safety
///
/// For every column, `weights` must have L floats from `column * stride` on. With checks, a tree's
/// prediction takes 15 % longer.
pub(crate) unsafe fn strided_dot<const L: usize>(
    columns: &[u32],
    values: &[f32],
    weights: &[f32],
    stride: usize,
) -> [f32; L] {
    dispatched! {
        fn products[L](columns: &[u32], values: &[f32], weights: &[f32], stride: usize) -> [f32; L] {
            let add = |sum: &mut [f32; L], column: u32, x: f32| {
                let at = column as usize * stride;
                debug_assert!(at + L <= weights.len());
                // SAFETY: the caller of `strided_dot` guarantees that they are in bounds.
                let weights = unsafe { &*weights.as_ptr().add(at).cast::<[f32; L]>() };
                for lane in 0..L {
                    sum[lane] += weights[lane] * x;
                }
            };
            let mut sums = [[0.0f32; L]; 4];
            let (columns, last_columns) = columns.as_chunks::<4>();
            let (values, last_values) = values.as_chunks::<4>();
            for (columns, values) in columns.iter().zip(values) {
                for (part, sum) in sums.iter_mut().enumerate() {
                    add(sum, columns[part], values[part]);
                }
            }
            for ((&column, &x), sum) in last_columns.iter().zip(last_values).zip(&mut sums) {
                add(sum, column, x);
            }
            std::array::from_fn(|lane| (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]))
        }
    }
    products(columns, values, weights, stride)
}

/// Returns the product of a sparse row with weights, as four independent sums, in the same order as
/// each lane of [`dot_lanes`].
#[inline(always)]
pub(crate) fn four_sums(columns: &[u32], values: &[f32], weight: impl Fn(u32) -> f32) -> f32 {
    let (columns, last_columns) = columns.as_chunks::<4>();
    let (values, last_values) = values.as_chunks::<4>();
    let mut sums = [0.0f32; 4];
    for (columns, values) in columns.iter().zip(values) {
        for i in 0..4 {
            sums[i] += weight(columns[i]) * values[i];
        }
    }
    for (i, (&column, &x)) in last_columns.iter().zip(last_values).enumerate() {
        sums[i] += weight(column) * x;
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Returns the product of a sparse row with weights. Not inlined, so that the sums of [`four_sums`]
/// stay in registers.
///
/// # Safety
///
/// Every column must be below the number of weights. A check at each call would take a quarter of
/// a tree's prediction time, so callers check once per example.
#[inline(never)]
pub(crate) unsafe fn sparse_dot(columns: &[u32], values: &[f32], weights: &[f32]) -> f32 {
    debug_assert!(columns.iter().all(|&c| (c as usize) < weights.len()));
    // SAFETY: the caller guarantees that every column is in bounds.
    four_sums(columns, values, |column| unsafe {
        *weights.get_unchecked(column as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_agree_with_a_plain_computation() {
        for n in [0, 5, 16, 37] {
            let x: Vec<f32> = (0..n).map(|i| i as f32 / 8.0 - 1.0).collect();
            let squares: Vec<f32> = (0..n).map(|i| (i % 5) as f32 * 0.7).collect();
            for (power, kernel) in [
                (
                    0.5f32,
                    over_root::<2> as fn(&[f32], &mut [f32]) -> (f32, f32),
                ),
                (0.25, over_root::<4>),
            ] {
                let mut step = squares.clone();
                let (norm, dimension) = kernel(&x, &mut step);
                let (mut expected_norm, mut expected_dimension) = (0.0, 0.0);
                for i in (0..n).filter(|&i| squares[i] > 0.0) {
                    let expected = x[i] / squares[i].powf(power);
                    assert!((step[i] - expected).abs() <= 1e-5 * expected.abs());
                    expected_norm += expected * x[i];
                    expected_dimension += x[i] * x[i] / squares[i];
                }
                assert!((norm - expected_norm).abs() <= 1e-4 * expected_norm.abs());
                assert!((dimension - expected_dimension).abs() <= 1e-4 * expected_dimension);
                assert!((0..n).all(|i| squares[i] > 0.0 || step[i] == 0.0));
            }
        }
    }

    fn products_of_rows_are_exact<const R: usize>(weights: &[[[i8; 4]; LANES]]) {
        let byte = |i: usize, r: usize, c: usize| ((i * 29 + r * 7 + c) % 255) as i32 - 127;
        let rows: Vec<[[i8; 4]; R]> = (0..67)
            .map(|i| std::array::from_fn(|r| std::array::from_fn(|c| byte(i, r, c) as i8)))
            .collect();
        let found = multiply_bytes(weights, &rows, weights);
        assert_eq!(found, multiply_bytes_anywhere(weights, &rows));
        for (r, found) in found.iter().enumerate() {
            for (lane, found) in found.iter().enumerate() {
                let product = |(w, x): (&[[i8; 4]; LANES], &[[i8; 4]; R])| -> i32 {
                    (0..4)
                        .map(|c| i32::from(w[lane][c]) * i32::from(x[r][c]))
                        .sum()
                };
                assert_eq!(*found, weights.iter().zip(&rows).map(product).sum::<i32>());
            }
        }
    }

    #[test]
    fn products_of_bytes_are_exact() {
        let weights: Vec<[[i8; 4]; LANES]> = (0..67i32)
            .map(|i| {
                std::array::from_fn(|l| {
                    std::array::from_fn(|c| (i * 37 + l as i32 * 11 + c as i32 * 5) as i8)
                })
            })
            .collect();
        products_of_rows_are_exact::<1>(&weights);
        products_of_rows_are_exact::<8>(&weights);
        let bytes: Vec<i8> = (0..80).map(|i| (i * 13 % 256 - 128) as i8).collect();
        let mut floats: Vec<f32> = (0..80u8).map(|i| f32::from(i % 9) - 4.0).collect();
        let plain: f32 = bytes
            .iter()
            .zip(&floats)
            .map(|(&b, x)| f32::from(b) * x)
            .sum();
        assert_eq!(dot_bytes(&bytes, &floats).to_bits(), plain.to_bits());
        let wanted: Vec<f32> = bytes
            .iter()
            .zip(&floats)
            .map(|(&b, x)| x + 0.5 * f32::from(b))
            .collect();
        add_bytes(0.5, &bytes, &mut floats);
        assert_eq!(floats, wanted);
    }

    #[test]
    fn dot_and_axpy_agree_with_a_plain_computation() {
        let a: Vec<f32> = (0..48u8).map(|i| f32::from(i) - 20.0).collect();
        let mut b: Vec<f32> = (0..48u8).map(|i| f32::from(i % 7)).collect();
        // Sums of integers are exact in any order.
        let plain: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        assert_eq!(dot(&a, &b).to_bits(), plain.to_bits());
        let mut products = [0.0; 2];
        dot_rows(&a, &[2, 0], &b[..16], &mut products);
        assert_eq!(products, [&a[32..], &a[..16]].map(|row| dot(row, &b[..16])));
        let plain: f32 = a[..37].iter().map(|a| a * a).sum();
        assert_eq!(sum_of_squares(&a[..37]).to_bits(), plain.to_bits());
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| b + 3.0 * a).collect();
        axpy(3.0, &a, &mut b);
        assert_eq!(b, expected);
    }

    #[test]
    fn strided_products_are_those_of_each_regressor() {
        const WIDTH: usize = 48;
        let columns: Vec<u32> = numbers(39, 6).map(|n| (n >> 8) % 48).collect();
        let x = floats(39, 7);
        for n in 1..=LANES {
            let weights = floats(WIDTH * n + LANES, 8);
            // SAFETY: all columns are below `WIDTH`.
            let found: [f32; LANES] = unsafe { strided_dot(&columns, &x, &weights, n) };
            // SAFETY: as above.
            let first: [f32; 4] = unsafe { strided_dot(&columns, &x, &weights, n) };
            assert_eq!(first, found[..4]);
            for (lane, found) in found[..n].iter().enumerate() {
                let own: Vec<f32> = weights[lane..].iter().step_by(n).copied().collect();
                // SAFETY: as above.
                let expected = unsafe { sparse_dot(&columns, &x, &own[..WIDTH]) };
                assert_eq!(found.to_bits(), expected.to_bits());
            }
        }
    }

    /// Pseudorandom numbers, the same on every machine.
    fn numbers(n: usize, seed: u32) -> impl Iterator<Item = u32> {
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        std::iter::successors(next(&seed), next).take(n)
    }

    fn floats(n: usize, seed: u32) -> Vec<f32> {
        let in_one = |number| (number >> 8) as f32 / 16_777_216.0 - 0.5;
        numbers(n, seed).map(in_one).collect()
    }

    /// The hashes were recorded on x86-64. Other instruction sets must sum in the same order.
    #[test]
    fn sums_are_the_same_to_the_bit_on_every_machine() {
        fn hash(before: u32, x: f32) -> u32 {
            (before ^ x.to_bits()).wrapping_mul(0x0100_0193)
        }
        const WIDTH: usize = 320;
        let weights = floats(WIDTH, 1);
        let columns: Vec<u32> = numbers(WIDTH, 2).map(|n| (n >> 8) % 320).collect();
        let chunks: Vec<u32> = numbers(WIDTH, 3).map(|n| (n >> 8) % 20).collect();
        let (lanes, _) = weights.as_chunks::<LANES>();
        let mut hashes = [0; 7];
        for n in [0, 1, 15, 16, 17, 64, 80, 150] {
            let (x, whole) = (floats(n, 4), n / LANES * LANES);
            let (mut sums, mut roots) = (weights[..n].to_vec(), Vec::new());
            axpy(0.7, &x, &mut sums);
            for kernel in [over_root::<2>, over_root::<4>] {
                let mut squares: Vec<f32> = floats(n, 5).iter().map(|x| x.max(0.0)).collect();
                let (norm, dimension) = kernel(&x, &mut squares);
                squares.extend([norm, dimension]);
                roots.push(squares);
            }
            // SAFETY: all columns are below the number of weights.
            let sparse = unsafe { sparse_dot(&columns[..n], &x, &weights) };
            let results = [
                &sums,
                &roots[0],
                &roots[1],
                &vec![sum_of_squares(&x)],
                &vec![dot(&x[..whole], &weights[..whole])],
                &dot_lanes(&chunks[..n], &x, lanes).to_vec(),
                &vec![sparse],
            ];
            for (so_far, result) in hashes.iter_mut().zip(results) {
                *so_far = result.iter().copied().fold(*so_far, hash);
            }
        }
        let expected = [
            2_341_601_741,
            728_163_492,
            978_957_817,
            1_077_772_370,
            4_191_074_462,
            1_844_149_488,
            897_033_578,
        ];
        assert_eq!(hashes, expected);
    }
}
