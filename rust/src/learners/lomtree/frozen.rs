//! The tree as prediction uses it: no label tables, no optimiser state, all of it in a few
//! contiguous arrays. [`FrozenRouters`] lead to the leaves.

use super::learner::LomTree;
use super::node::Node;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::tree::FrozenRouters;

/// At most so many labels are kept per leaf: a leaf that the budget kept from splitting may have
/// seen any number of them, and a prediction must not cost O(K).
const MOST_LABELS: usize = 64;

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
        let mut shares = vec![Vec::new(); tree.nodes.len()];
        for (at, &id) in tree.nodes.iter().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            let node = arena.node(id);
            let parent = usize::try_from(tree.parent[at]).map_or(&[][..], |above| &shares[above]);
            let own = smoothed(node, parent, learner.params.leaf_smoothing);
            if node.is_leaf() {
                frozen.routers.push_terminal(frozen.leaves.len() as u32);
                frozen.leaves.push(own);
            } else {
                frozen.routers.push_router(regressors.plain(node.regressor));
                shares[at] = own;
            }
        }
        Ok(frozen)
    }
}

/// Share of each label at a node: its own arrivals and, counting for `weight` examples, its
/// parent's shares. Best first; of equals the first to get there, which the others are put
/// behind by one unit in the last place, then the lower label.
fn smoothed(node: &Node, parent: &[(u32, f32)], weight: f64) -> Vec<(u32, f32)> {
    let weight = if parent.is_empty() { 0.0 } else { weight };
    let all = node.arrivals() + weight;
    if all == 0.0 {
        return vec![(node.majority, 1.0)];
    }
    let mut counts: Vec<(u32, f64)> = node.label_arrivals().collect();
    counts.sort_unstable_by_key(|&(label, _)| label);
    if weight > 0.0 {
        let known = counts.len();
        for &(label, share) in parent {
            let extra = weight * f64::from(share);
            match counts[..known].binary_search_by_key(&label, |&(label, _)| label) {
                Ok(found) => counts[found].1 += extra,
                Err(_) => counts.push((label, extra)),
            }
        }
    }
    let shares = counts.into_iter();
    let shares = shares.map(|(label, count)| (label, (count / all) as f32));
    let mut shares: Vec<(u32, f32)> = shares.collect();
    let first = shares.iter().find(|&&(label, _)| label == node.majority);
    if let Some(&(majority, highest)) = first {
        for (label, share) in &mut shares {
            if *label != majority && share.to_bits() == highest.to_bits() {
                *share = share.next_down().max(0.0);
            }
        }
    }
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares.truncate(MOST_LABELS);
    shares
}
