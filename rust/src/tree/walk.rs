//! One row on its way through a tree of routers, whatever the tree is kept as.

use std::fmt::Debug;

/// What one row finds at a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeView<N> {
    /// A router's score, clamped, and its children. Below 0 the way goes left, else right (what
    /// is no number, too).
    Router {
        /// The score.
        score: f32,
        /// Left and right.
        children: [N; 2],
    },
    /// The end of the way, with its number.
    Terminal(u32),
}

/// One row at a tree, to look at nodes in any order.
pub trait Walk {
    /// A node. Nodes of lower levels are greater, and on a level those further right.
    type Node: Copy + Ord + Debug;

    /// Where every way begins.
    fn root(&self) -> Self::Node;

    /// What there is at `node`.
    fn look(&self, node: Self::Node) -> NodeView<Self::Node>;

    /// The number of the terminal that the row is led to.
    fn terminal(&self) -> u32 {
        let mut at = self.root();
        loop {
            match self.look(at) {
                NodeView::Terminal(number) => return number,
                NodeView::Router { score, children } => {
                    let [left, right] = children;
                    at = if score < 0.0 { left } else { right };
                }
            }
        }
    }
}
