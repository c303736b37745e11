//! A tree as named columns.

use super::tree::{Tree, TreeNode};
use crate::file::Report;

impl Tree {
    /// The nodes in their order: the root is node 0, and every parent stands before its children.
    ///
    /// | column | what it holds |
    /// |---|---|
    /// | `parent` | the node above, -1 at the root |
    /// | `children` | left and right child, -1 at a leaf |
    /// | `depth` | steps from the root |
    /// | `n_examples` | rows that the tree was grown from |
    /// | `weight` | their weight, as a share of all rows' that the tree was grown from |
    /// | `label_entropy` | entropy of the classes' weights, in nats |
    /// | `feature` | column of X that decides, -1 at a leaf |
    /// | `threshold` | values up to it go left; NaN at leaves and where categories decide |
    /// | `missing_left` | whether missing values go left |
    /// | `gain` | by how much the split raised sum_k W_k^2 / W, in shares of all weight |
    /// | `leaf` | number of the leaf, -1 at an internal node |
    /// | `category_starts`, `categories` | node by node the categories that go left |
    /// | `vote_starts`, `vote_classes`, `votes` | leaf by leaf the classes listed and its votes f for them |
    /// | `other_votes` | by leaf its vote for every other class |
    pub(super) fn report(&self) -> Report {
        let (nodes, statistics, leaves) = (&self.nodes, &self.statistics, &self.leaves);
        let all = statistics.first().map_or(1.0, |root| root.weight);
        let (mut parent, mut depth) = (vec![-1; nodes.len()], vec![0u32; nodes.len()]);
        let mut children = Vec::<i32>::new();
        let (mut starts, mut categories) = (vec![0u32], Vec::<f32>::new());
        for (at, node) in nodes.iter().enumerate() {
            if node.is_leaf() {
                children.extend([-1, -1]);
            } else {
                for child in [node.left, node.left + 1] {
                    children.push(child as i32);
                    parent[child as usize] = at as i32;
                    depth[child as usize] = depth[at] + 1;
                }
            }
            if let Some(set) = node.set {
                categories.extend(&self.sets[set as usize].values);
            }
            starts.push(categories.len() as u32);
        }
        // An internal node has the number of a column there, a leaf its own.
        let number = |node: &TreeNode, wanted: bool| if wanted { node.feature as i32 } else { -1 };
        let feature = nodes.iter().map(|node| number(node, !node.is_leaf()));
        let leaf = nodes.iter().map(|node| number(node, node.is_leaf()));
        let threshold = nodes.iter().map(|node| match node.set {
            None if !node.is_leaf() => node.threshold,
            _ => f32::NAN,
        });
        let mut report = Report::new();
        report.column("parent", parent);
        report.matrix("children", children, 2);
        report.column("depth", depth);
        report.column("n_examples", statistics.iter().map(|node| node.n_rows));
        report.column("weight", statistics.iter().map(|node| node.weight / all));
        report.column("label_entropy", statistics.iter().map(|node| node.entropy));
        report.column("feature", feature);
        report.column("threshold", threshold);
        report.column(
            "missing_left",
            nodes.iter().map(|node| u8::from(node.missing_left)),
        );
        report.column("gain", statistics.iter().map(|node| node.gain / all));
        report.column("leaf", leaf);
        report.column("category_starts", starts);
        report.column("categories", categories);
        report.column("vote_starts", leaves.starts.iter().copied());
        report.column("vote_classes", leaves.classes.iter().copied());
        report.column("votes", leaves.votes.iter().copied());
        report.column("other_votes", leaves.others.iter().copied());
        report
    }
}
