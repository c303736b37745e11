//! The tree as prediction uses it: no label tables, no optimiser state, all of it in a few
//! contiguous arrays. [`FrozenRouters`] lead to the leaves.

use super::learner::LomTree;
use super::shares::{best_first, Counts};
use crate::alloc::filled;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::tree::FrozenRouters;

/// A tree that no longer learns: routers whose terminals are numbers of leaves.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub routers: FrozenRouters,
    /// The labels of each leaf with their shares, best first.
    pub leaves: Ragged<(u32, f32)>,
}

impl FrozenTree {
    /// The frozen form of a tree. Costs as much as the tree is large.
    pub fn new(learner: &LomTree, control: &Control) -> Result<Self> {
        let (arena, regressors) = (&learner.arena, &learner.regressors);
        let tree = arena.topology();
        let mut frozen = Self {
            routers: FrozenRouters::new(regressors),
            leaves: Ragged::default(),
        };
        // By place in the tree; none of leaves.
        let mut shares = filled(Vec::new(), tree.nodes.len());
        let mut counts = Counts::default();
        for (at, &id) in tree.nodes.iter().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            let node = arena.node(id);
            let parent = usize::try_from(tree.parent[at]).map_or(&[][..], |above| &shares[above]);
            let mut own = Vec::new();
            learner.set_shares(node, parent, &mut counts, &mut own);
            if node.is_leaf() {
                frozen.routers.push_terminal(frozen.leaves.len() as u32);
                best_first(&mut own);
                frozen.leaves.push(own);
            } else {
                frozen.routers.push_router(regressors.plain(node.regressor));
                shares[at] = own;
            }
        }
        Ok(frozen)
    }
}
