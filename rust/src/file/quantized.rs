//! Floats of single precision in 16 bits each: whole numbers of steps, which are a 32767th of the
//! largest float of each block.

/// Floats that share the size of a step.
const BLOCK: usize = 64;
/// The largest number of steps.
const MOST: f32 = i16::MAX as f32;

/// Numbers of steps, and their size block by block; none where a float is infinite or none. No
/// float changes by more than 2^-16 of the largest of its block.
pub(super) fn quantize(floats: &[f32]) -> Option<(Vec<i16>, Vec<f32>)> {
    let mut numbers = Vec::with_capacity(floats.len());
    let mut sizes = Vec::with_capacity(floats.len().div_ceil(BLOCK));
    for block in floats.chunks(BLOCK) {
        let largest = block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        if !block.iter().all(|x| x.is_finite()) {
            return None;
        }
        let size = largest / MOST;
        // Of the smallest floats there are no steps; they become 0.
        let per_step = if size.is_normal() { size.recip() } else { 0.0 };
        numbers.extend(block.iter().map(|x| (x * per_step).round() as i16));
        sizes.push(size);
    }
    Some((numbers, sizes))
}

/// The floats again; none where these are not as many sizes as blocks.
pub(super) fn restore(numbers: &[i16], sizes: &[f32]) -> Option<Vec<f32>> {
    let blocks = numbers.chunks(BLOCK).zip(sizes);
    let floats = blocks.flat_map(|(block, size)| block.iter().map(move |&n| f32::from(n) * size));
    (sizes.len() == numbers.len().div_ceil(BLOCK)).then(|| floats.collect())
}
