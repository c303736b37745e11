//! Measures the limits of this machine: the fastest products, the fastest sequential reads, and the
//! fastest reads of scattered cache lines, by the size of the memory.

use std::collections::HashMap;
use std::hint::black_box;

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Floats in a cache line.
pub const LINE: usize = 16;

/// Repetitions of a measurement. The fastest one counts.
const RUNS: usize = 7;

/// Least number of products or cache lines of a measurement, about.
const WORK: usize = 1 << 21;

/// Limits of the machine, measured when they are first needed. Sizes are rounded up to powers of two
/// bytes.
#[derive(Default)]
pub struct Ceilings {
    products: Option<f64>,
    scattered: Option<f64>,
    by_size: HashMap<(&'static str, usize), f64>,
}

impl Ceilings {
    /// Returns the nanoseconds of a multiplication and an addition of contiguous floats in the
    /// first-level cache.
    pub fn product(&mut self) -> f64 {
        *self.products.get_or_insert_with(|| {
            let x = vec![1.0f32; 1024];
            let mut y = vec![1.0f32; 1024];
            fastest(WORK, || {
                for _ in 0..WORK / x.len() {
                    multiply_add(black_box(0.5), &x, &mut y);
                }
                black_box(&y);
            })
        })
    }

    /// Returns the nanoseconds of a multiplication and an addition with weights that are looked up by
    /// column, in the first-level cache.
    pub fn scattered_product(&mut self) -> f64 {
        *self.scattered.get_or_insert_with(|| {
            let mut random = Pcg64Mcg::seed_from_u64(1);
            let weights = vec![1.0f32; 4096];
            let columns: Vec<u32> = (0..1024).map(|_| random.random_range(0..4096)).collect();
            let values = vec![1.0f32; 1024];
            fastest(WORK, || {
                for _ in 0..WORK / columns.len() {
                    black_box(scattered(&columns, &values, black_box(&weights)));
                }
            })
        })
    }

    /// Returns the nanoseconds of a byte in repeated sequential reads of `size` bytes.
    pub fn byte(&mut self, size: usize) -> f64 {
        self.measured("row", size, |floats| {
            let x = vec![1.0f32; floats];
            let times = (WORK * LINE / floats).max(1);
            fastest(times * floats * size_of::<f32>(), || {
                for _ in 0..times {
                    black_box(sum(black_box(&x)));
                }
            })
        })
    }

    /// Returns the nanoseconds of a cache line whose address is known in advance.
    pub fn line(&mut self, size: usize) -> f64 {
        self.measured("lines", size, |floats| {
            let mut random = Pcg64Mcg::seed_from_u64(2);
            let x = vec![1.0f32; floats];
            let n_lines = (floats / LINE) as u32;
            let lines: Vec<u32> = (0..WORK).map(|_| random.random_range(0..n_lines)).collect();
            fastest(WORK, || {
                let mut sums = [0.0f32; 8];
                for lines in lines.chunks_exact(8) {
                    for (sum, &line) in sums.iter_mut().zip(lines) {
                        *sum += x[line as usize * LINE];
                    }
                }
                black_box(sums);
            })
        })
    }

    /// Returns the nanoseconds of a cache line whose address is in the line read before it.
    pub fn next_line(&mut self, size: usize) -> f64 {
        self.measured("chain", size, |floats| {
            let n_lines = floats / LINE;
            let mut order: Vec<usize> = (0..n_lines).collect();
            order.shuffle(&mut Pcg64Mcg::seed_from_u64(3));
            let mut next = vec![0u32; floats];
            for pair in 0..n_lines {
                next[order[pair] * LINE] = (order[(pair + 1) % n_lines] * LINE) as u32;
            }
            let steps = WORK / 8;
            fastest(steps, || {
                let mut at = 0;
                for _ in 0..steps {
                    at = next[at as usize];
                }
                black_box(at);
            })
        })
    }

    fn measured(&mut self, what: &'static str, size: usize, measure: fn(usize) -> f64) -> f64 {
        let size = size.next_power_of_two().clamp(1 << 12, 1 << 29);
        let key = (what, size);
        *self
            .by_size
            .entry(key)
            .or_insert_with(|| measure(size / size_of::<f32>()))
    }
}

/// Returns the nanoseconds of one of `n` operations in the fastest of several runs.
fn fastest(n: usize, mut run: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = nanoseconds();
        run();
        nanoseconds() - start
    });
    times.min().unwrap_or_default() as f64 / n as f64
}

/// Returns the processor time of this thread in nanoseconds; other threads do not count.
#[cfg(target_os = "linux")]
pub fn nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the nanoseconds since the first call.
#[cfg(not(target_os = "linux"))]
pub fn nanoseconds() -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Compiles a function for AVX-512 and AVX2 too, and calls the version for this machine.
macro_rules! widest {
    (fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? $body:block) => {
        fn $name($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512($($arg: $type),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) $(-> $ret)? {
                    body($($arg),*)
                }
                if std::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the machine has the feature.
                    return unsafe { avx512($($arg),*) };
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has the feature.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

widest! {
    fn multiply_add(a: f32, x: &[f32], y: &mut [f32]) {
        for (x, y) in x.iter().zip(y) {
            *y += a * x;
        }
    }
}

widest! {
    fn sum(x: &[f32]) -> [f32; LINE] {
        let (mut first, mut second) = ([0.0f32; LINE], [0.0f32; LINE]);
        let (mut third, mut fourth) = ([0.0f32; LINE], [0.0f32; LINE]);
        for x in x.as_chunks::<LINE>().0.as_chunks::<4>().0 {
            for lane in 0..LINE {
                first[lane] += x[0][lane];
                second[lane] += x[1][lane];
                third[lane] += x[2][lane];
                fourth[lane] += x[3][lane];
            }
        }
        for lane in 0..LINE {
            first[lane] += second[lane] + third[lane] + fourth[lane];
        }
        first
    }
}

#[inline(never)]
fn scattered(columns: &[u32], values: &[f32], weights: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let parts = columns
        .as_chunks::<8>()
        .0
        .iter()
        .zip(values.as_chunks::<8>().0);
    for (columns, values) in parts {
        for i in 0..8 {
            // SAFETY: all columns are below the number of weights.
            sums[i] += values[i] * unsafe { *weights.get_unchecked(columns[i] as usize) };
        }
    }
    sums.iter().sum()
}
