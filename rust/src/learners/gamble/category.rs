//! The best split of a categorical feature at one node: a subset of its categories.
//!
//! With two classes the best subset is a prefix of the categories in the order of their
//! share of one class (Breiman et al., "Classification and Regression Trees", 1984,
//! Theorem 4.5). With more there is no such order, so those by the shares of the
//! heaviest classes are tried, and each category against all others. A missing value is
//! a category like any other. Every row is looked at once per order: O(n).

use super::node::Node;
use super::scan::{Run, Scratch, Side};

/// Orders tried: by the shares of so many of the heaviest classes.
const ORDERS: usize = 4;

/// A set of codes.
pub type Subset = [u64; 4];

/// Whether `code` is in the set.
#[inline]
pub fn holds(subset: &Subset, code: u32) -> bool {
    code < 256 && subset[code as usize / 64] >> (code % 64) & 1 == 1
}

fn insert(subset: &mut Subset, code: u32) {
    subset[code as usize / 64] |= 1 << (code % 64);
}

/// Score and codes of the lighter side of the best split of the rows sorted in `scratch`:
/// a category that was not there then goes with the heavier one.
pub fn best_subset(node: &Node, scratch: &mut Scratch) -> Option<(f64, Subset)> {
    let Scratch {
        by_class,
        items,
        runs,
        ..
    } = scratch;
    let mut all = Subset::default();
    runs.iter().for_each(|run| insert(&mut all, run.code));
    let mut best: Option<(f64, Subset)> = None;
    let mut offer = |side: &Side<'_>, codes: Subset| {
        let bar = best.map_or(node.score(), |(score, _)| score) + node.tolerance();
        if let Some(score) = side.score().filter(|score| *score > bar) {
            let heavier = 2.0 * side.weight > node.weight;
            let others = || std::array::from_fn(|word| all[word] & !codes[word]);
            best = Some((score, if heavier { others() } else { codes }));
        }
    };
    let mut ranked: Vec<(f64, Run)> = Vec::with_capacity(runs.len());
    for class in heaviest(node) {
        ranked.clear();
        ranked.extend(runs.iter().map(|run| {
            let (mut own, mut all) = (0.0, 0.0);
            for item in run.of(items) {
                all += item.weight;
                if item.class == class {
                    own += item.weight;
                }
            }
            (own / all, *run)
        }));
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut side = Side::new(node, by_class);
        let mut codes = Subset::default();
        for (_, run) in ranked.iter().take(ranked.len().saturating_sub(1)) {
            side.join(run.of(items));
            insert(&mut codes, run.code);
            offer(&side, codes);
        }
        side.clear(items);
    }
    for run in runs.iter() {
        let mut side = Side::new(node, by_class);
        side.join(run.of(items));
        let mut codes = Subset::default();
        insert(&mut codes, run.code);
        offer(&side, codes);
        side.clear(run.of(items));
    }
    best
}

/// The classes of the most weight, at most [`ORDERS`]; of two the first will do.
fn heaviest(node: &Node) -> Vec<u32> {
    let mut classes: Vec<u32> = (0..node.totals.len() as u32).collect();
    classes.sort_by(|&a, &b| node.totals[b as usize].total_cmp(&node.totals[a as usize]));
    classes.truncate(if classes.len() == 2 { 1 } else { ORDERS });
    classes
}
