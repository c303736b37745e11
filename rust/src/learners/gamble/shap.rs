//! Exact SHAP values of trees: the contribution of each feature to a row's score of a class.
//!
//! The values are those of path-dependent TreeSHAP (S. Lundberg et al., "From local explanations to
//! global understanding with explainable AI for trees", Nature Machine Intelligence 2, 2020,
//! Algorithm 2). If only some features are known, a row follows its values at splits by these. At
//! other splits it goes to both children, in proportion to their training rows. So it reaches a leaf
//! with the product, over the features of the path, of o if the feature is known and z if not: o is
//! 1 if the row follows all splits of the path by this feature, else 0, and z is the product of the
//! children's shares at these splits.
//!
//! The Shapley value of feature i is an integral of the multilinear extension (Owen 1972):
//!
//! ```text
//! phi_i = integral from 0 to 1 of  sum over leaves of  vote (o_i - z_i) prod_{j != i} (t o_j + (1 - t) z_j)  dt
//! ```
//!
//! The integrand is a polynomial in t whose degree is below the number D of features on a path, so
//! Gauss-Legendre quadrature with D / 2 points is exact. One pass over the nodes computes the
//! products, and one pass back the sums over the leaves below each node: O(nodes D) per row, where
//! Algorithm 2 takes O(leaves D^2). All factors are positive, so no digits cancel.

use std::array::from_fn;

use super::tree::Tree;
use crate::simd::dispatched;

/// Number of quadrature points that are computed side by side.
const LANES: usize = 8;

type Lanes = [f64; LANES];

/// A node and the edge that leads to it from its parent.
#[derive(Debug, Clone, Copy, Default)]
struct Edge {
    parent: u32,
    /// The left child of the node, which the right child follows; 0 in a leaf.
    left: u32,
    /// Column of X that decides at the parent.
    feature: u32,
    /// Node of the nearest edge above that has the same feature; 0 if there is none.
    earlier: u32,
    /// Number of features on the path.
    n_features: u32,
    /// z of the feature, by its edges down to this one.
    z: f64,
    /// Product of the shares of all edges down to this one.
    reach: f64,
    /// o of the feature for the current row, by its edges down to this one.
    o: f64,
    /// Vote of a leaf for the current class.
    vote: f64,
}

/// A tree, prepared for the explanation of many rows.
#[derive(Debug)]
pub struct TreeExplainer<'a> {
    tree: &'a Tree,
    edges: Vec<Edge>,
    /// Quadrature points and their weights.
    points: Vec<(f64, f64)>,
    /// By node the factor of its edge, t o + (1 - t) z at each point t, inverted.
    inverses: Vec<Lanes>,
    products: Vec<Lanes>,
}

impl<'a> TreeExplainer<'a> {
    /// Prepares `tree`, which must be sound.
    pub fn new(tree: &'a Tree) -> Self {
        // The root stands for a feature that makes no difference.
        let root = Edge {
            feature: u32::MAX,
            z: 1.0,
            reach: 1.0,
            o: 1.0,
            ..Edge::default()
        };
        let mut edges = vec![root; tree.nodes.len()];
        for (at, node) in tree
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| !node.is_leaf())
        {
            edges[at].left = node.left;
            let mut earlier = at;
            while earlier != 0 && edges[earlier].feature != node.feature {
                earlier = edges[earlier].parent as usize;
            }
            let children = [node.left as usize, node.left as usize + 1];
            // A file may have children without rows.
            let rows = children.map(|child| f64::from(tree.statistics[child].n_rows.max(1)));
            for (child, n) in children.into_iter().zip(rows) {
                let share = n / (rows[0] + rows[1]);
                edges[child] = Edge {
                    parent: at as u32,
                    feature: node.feature,
                    earlier: earlier as u32,
                    n_features: edges[at].n_features + u32::from(earlier == 0),
                    z: share * edges[earlier].z,
                    reach: share * edges[at].reach,
                    ..root
                };
            }
        }
        let n_features = edges.iter().map(|edge| edge.n_features).max().unwrap_or(0);
        let n_points = n_features.div_ceil(2).max(1) as usize;
        Self {
            points: gauss_legendre(n_points.next_multiple_of(LANES)),
            inverses: vec![[1.0; LANES]; edges.len()],
            products: vec![[1.0; LANES]; edges.len()],
            tree,
            edges,
        }
    }

    /// Adds the contributions of all features to the score of `class` for a row with these `values`
    /// to `sums`, and behind them the mean score of the training rows.
    pub fn explain(&mut self, values: &[f32], class: u32, sums: &mut [f64]) {
        for (at, node) in self.tree.nodes.iter().enumerate() {
            if node.is_leaf() {
                let edge = &mut self.edges[at];
                edge.vote = self.tree.leaves.vote(node.feature as usize, class).into();
                sums[values.len()] += edge.vote * edge.reach;
                continue;
            }
            let goes_left = self.tree.goes_left(node, values[node.feature as usize]);
            for (child, is_taken) in [(node.left, goes_left), (node.left + 1, !goes_left)] {
                let earlier = self.edges[child as usize].earlier as usize;
                let o = f64::from(u8::from(is_taken)) * self.edges[earlier].o;
                self.edges[child as usize].o = o;
            }
        }
        for points in self.points.as_chunks().0 {
            add_up(
                &self.edges,
                points,
                &mut self.inverses,
                &mut self.products,
                sums,
            );
        }
    }
}

dispatched! {
    /// Adds the contributions by some quadrature points to the `sums` of the features.
    ///
    /// A node's product is at first that of the factors of its path, in which the factor of an edge
    /// replaces that of an earlier edge with the same feature; then, children before parents, the
    /// sum over the leaves below.
    fn add_up(
        edges: &[Edge],
        points: &[(f64, f64); LANES],
        inverses: &mut [Lanes],
        products: &mut [Lanes],
        sums: &mut [f64],
    ) {
        inverses[0] = [1.0; LANES];
        products[0] = [1.0; LANES];
        for (at, edge) in edges.iter().enumerate().skip(1) {
            let factors = points.map(|(t, _)| t * edge.o + (1.0 - t) * edge.z);
            let above = products[edge.parent as usize];
            let earlier = inverses[edge.earlier as usize];
            inverses[at] = factors.map(f64::recip);
            products[at] = from_fn(|i| above[i] * earlier[i] * factors[i]);
        }
        for (at, edge) in edges.iter().enumerate().skip(1).rev() {
            if edge.left == 0 {
                products[at] = products[at].map(|product| product * edge.vote);
            } else {
                let [left, right] = [0, 1].map(|side| products[edge.left as usize + side]);
                products[at] = from_fn(|i| left[i] + right[i]);
            }
            let (below, before) = (products[at], edges[edge.earlier as usize]);
            let (own, earlier) = (inverses[at], inverses[edge.earlier as usize]);
            let mut terms: Lanes = from_fn(|i| {
                let change = (edge.o - edge.z) * own[i] - (before.o - before.z) * earlier[i];
                points[i].1 * below[i] * change
            });
            // Pairwise, in a fixed order.
            for n in [4, 2, 1] {
                (0..n).for_each(|i| terms[i] += terms[i + n]);
            }
            sums[edge.feature as usize] += terms[0];
        }
    }
}

/// Returns the `n` points and weights of Gauss-Legendre quadrature from 0 to 1, which is exact for
/// polynomials of a degree below 2 `n`.
fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    /// Newton's method converges in fewer steps, from an approximation of each root.
    const N_STEPS: usize = 10;
    let point = |at: usize| {
        let mut x = (std::f64::consts::PI * (at as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..N_STEPS {
            // The Legendre polynomials of degree k - 1 and k, by their recurrence.
            let (mut before, mut value) = (1.0, x);
            for k in (2..=n).map(|k| k as f64) {
                let next = ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k;
                (before, value) = (value, next);
            }
            slope = n as f64 * (x * value - before) / (x * x - 1.0);
            x -= value / slope;
        }
        (0.5 + 0.5 * x, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..n).map(point).collect()
}
