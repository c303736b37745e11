//! Label sets: a probabilistic label tree.
//!
//! K. Jasinska, K. Dembczynski, R. Busa-Fekete, K. Pfannschmidt, T. Klerx, E. Hullermeier, "Extreme
//! F-measure Maximization using Sparse Probability Estimates", ICML 2016, Section 4. Every node t has
//! a logistic model of P(z_t = 1 | z_parent = 1, x), where z_t = 1 if the row has a label below t. The
//! marginal probability of a label is the product along its path. A row with labels updates the nodes
//! with z_t = 1 and their children, a row without labels the root alone.

use std::array::from_fn;

use super::learner::{router_above, LabelTree};
use crate::linear::PathExample;
use crate::tree::Junction;

impl LabelTree {
    /// Learns one example, after `regressors.prepare`. Returns whether the label was among `labels`
    /// to which the more probable child led before, from the root downwards.
    pub(super) fn learn_set(
        &mut self,
        example: &PathExample,
        labels: &[u32],
        importance: f32,
    ) -> bool {
        let present = self.nodes_above(labels);
        for &label in labels {
            self.examples[label as usize] += f64::from(importance);
        }
        let is_present = |node: u32| present.binary_search(&node).is_ok();
        let target = |node: u32| if is_present(node) { 1.0 } else { -1.0 };
        self.update(0, target(0), example, importance, |_| None);
        let mut end = 0;
        for &node in &present {
            let Junction::Router { children, .. } = self.layout.at_node[node as usize] else {
                continue;
            };
            let [left, right] = from_fn(|side| {
                let (child, ahead) = (children[side], |_| (side == 0).then_some(children[1]));
                let target = target(child);
                self.update(child, target, example, importance, ahead).0
            });
            if node == end {
                end = children[usize::from(right >= left)];
            }
        }
        // The path ends early at a node without labels below.
        is_present(end)
    }

    /// Returns the nodes with one of these labels below, in rising order, so parents come first.
    fn nodes_above(&self, labels: &[u32]) -> Vec<u32> {
        let mut nodes = Vec::new();
        for &label in labels {
            let mut node = self.layout.leaf_of[label as usize];
            nodes.push(node);
            while let Some((router, _)) = router_above(node) {
                node = self.layout.node_of[router as usize];
                nodes.push(node);
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
