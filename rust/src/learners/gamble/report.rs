//! A tree as arrays, for inspection.

use super::Tree;

/// One value per node. The root is node 0, and every parent stands before its children.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The node above, -1 at the root.
    pub parent: Vec<i32>,
    /// Left and right child, -1 at a leaf; two per node.
    pub children: Vec<i32>,
    /// Steps from the root.
    pub depth: Vec<u32>,
    /// Rows that the tree was grown from.
    pub n_examples: Vec<u32>,
    /// Their weight, as a share of all rows' that the tree was grown from.
    pub weight: Vec<f64>,
    /// Entropy of the classes' weights, in nats.
    pub label_entropy: Vec<f64>,
    /// Column of X that decides, -1 at a leaf.
    pub feature: Vec<i32>,
    /// Values up to it go left; NaN at leaves and where categories decide.
    pub threshold: Vec<f32>,
    /// Whether missing values go left.
    pub missing_left: Vec<u8>,
    /// By how much the split raised sum_k W_k^2 / W, in shares of all weight.
    pub gain: Vec<f64>,
    /// Number of the leaf, -1 at an inner node.
    pub leaf: Vec<i32>,
    /// Categories that go left of the splits by categorical features: node by node,
    /// those of node i from `category_starts[i]` on.
    pub category_starts: Vec<u32>,
    /// The categories themselves.
    pub categories: Vec<f32>,
    /// Classes that the leaves list: leaf by leaf, those of leaf i from `vote_starts[i]` on.
    pub vote_starts: Vec<u32>,
    /// The classes.
    pub vote_classes: Vec<u32>,
    /// The leaves' votes f for them.
    pub votes: Vec<f32>,
    /// By leaf: its vote for every other class.
    pub other_votes: Vec<f32>,
}

impl Tree {
    /// The tree as arrays.
    pub fn report(&self) -> Report {
        let n = self.nodes.len();
        let all = self.statistics.first().map_or(1.0, |root| root.weight);
        let mut report = Report {
            parent: vec![-1; n],
            depth: vec![0; n],
            category_starts: vec![0],
            vote_starts: self.leaves.starts.clone(),
            vote_classes: self.leaves.classes.clone(),
            votes: self.leaves.votes.clone(),
            other_votes: self.leaves.others.clone(),
            ..Report::default()
        };
        for (at, (node, statistics)) in self.nodes.iter().zip(&self.statistics).enumerate() {
            let is_leaf = node.left == 0;
            if is_leaf {
                report.children.extend([-1, -1]);
                report.feature.push(-1);
                report.leaf.push(node.feature as i32);
            } else {
                for child in [node.left, node.left + 1] {
                    report.children.push(child as i32);
                    report.parent[child as usize] = at as i32;
                    report.depth[child as usize] = report.depth[at] + 1;
                }
                report.feature.push(node.feature as i32);
                report.leaf.push(-1);
            }
            let by_number = !is_leaf && node.set.is_none();
            let threshold = if by_number { node.threshold } else { f32::NAN };
            report.threshold.push(threshold);
            report.missing_left.push(u8::from(node.missing_left));
            report.n_examples.push(statistics.n_rows);
            report.weight.push(statistics.weight / all);
            report.gain.push(statistics.gain / all);
            report.label_entropy.push(statistics.entropy);
            if let Some(set) = node.set {
                report.categories.extend(&self.sets[set as usize]);
            }
            report.category_starts.push(report.categories.len() as u32);
        }
        report
    }
}
