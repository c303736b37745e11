//! Rounds that were learned before: which rows are in the leaves of a tree.

use super::examples::LabelledRows;
use super::routing::Router;
use super::tree::Tree;

/// The rows of each leaf. Workspace for one tree after the other.
#[derive(Default)]
pub struct Replay {
    router: Router,
    /// By leaf the rows that the tree was grown from, and the others.
    rows: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Replay {
    /// Routes the rows of `examples` to the leaves of `tree`, which was grown from those of the
    /// places `sampled`, which rise.
    pub fn route(&mut self, tree: &Tree, examples: &LabelledRows<'_>, sampled: &[u32]) {
        self.rows.clear();
        self.rows.resize_with(tree.leaves.count(), Default::default);
        let (rows, mut sampled) = (&mut self.rows, sampled.iter().peekable());
        let add = |at: usize, leaf: usize| {
            let is_sampled = sampled.next_if_eq(&&(at as u32)).is_some();
            let (of_sample, others) = &mut rows[leaf];
            if is_sampled { of_sample } else { others }.push(at as u32);
        };
        self.router.route(tree, &examples.rows, examples.which, add);
    }

    /// Of each leaf the rows that it was grown from, and the others.
    pub fn leaves(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let rows = self.rows.iter();
        rows.map(|(sampled, others)| (sampled.as_slice(), others.as_slice()))
    }
}
