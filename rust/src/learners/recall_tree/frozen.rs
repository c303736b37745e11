//! The tree as prediction walks it: routers alone, and where paths end.

use std::collections::VecDeque;

use super::arena::{Arena, ChildRange};
use super::label_index::LocalId;
use super::routing_tree::RoutingTree;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::tree::{FrozenRouters, NodeId};

/// Routers whose terminals are positions among the final nodes.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub(super) routers: FrozenRouters,
    /// The nodes that paths end at. The path to a child whose bound is no better ends at
    /// the parent, so that several terminals may share a node.
    pub(super) final_nodes: Vec<NodeId>,
    /// The candidates of each, most frequent first.
    pub(super) candidates: Ragged<LocalId>,
    /// Routers on the longest path, about.
    pub(super) depth: usize,
}

/// One node of the frozen tree, to be pushed.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// The path ends at this node.
    Terminal(NodeId),
    /// A router of this node, with the children it decides between.
    Router(NodeId, ChildRange),
}

impl RoutingTree {
    /// Makes the tree that prediction walks, in time and memory of the tree's size.
    pub fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        let arena = &self.arena;
        let mut frozen = FrozenTree {
            routers: FrozenRouters::new(&self.routers).unclamped(),
            final_nodes: Vec::new(),
            candidates: Ragged::default(),
            depth: self.max_depth as usize * arena.params.arity.ilog2() as usize,
        };
        let mut terminal_of = vec![u32::MAX; arena.nodes.len()];
        let mut queue = VecDeque::from([self.entry(Arena::ROOT)]);
        let (mut n, mut path, mut candidates) = (0, Vec::new(), Vec::new());
        let mut seen = self.seen.clone();
        while let Some(entry) = queue.pop_front() {
            if n % Control::CHUNK == 0 {
                control.check()?;
            }
            n += 1;
            match entry {
                Entry::Terminal(id) => {
                    let terminal = &mut terminal_of[id.at()];
                    if *terminal == u32::MAX {
                        arena.path_to(id, &mut path);
                        arena.candidates_at_end(&path, &mut seen, &mut candidates);
                        *terminal = frozen.final_nodes.len() as u32;
                        frozen.final_nodes.push(id);
                        frozen.candidates.push(candidates.iter().copied());
                    }
                    frozen.routers.push_terminal(*terminal);
                }
                Entry::Router(id, children) => {
                    let weights = self.routers.plain(children.router);
                    frozen.routers.push_router(weights);
                    if let Some((left, right)) = children.halves() {
                        queue.push_back(self.entry_below(id, left));
                        queue.push_back(self.entry_below(id, right));
                    }
                }
            }
        }
        Ok(frozen)
    }

    fn entry(&self, id: NodeId) -> Entry {
        if self.is_internal(id) {
            self.entry_below(id, self.arena.children(id))
        } else {
            Entry::Terminal(id)
        }
    }

    /// The entry of a node where it remains to choose among `children`.
    fn entry_below(&self, id: NodeId, children: ChildRange) -> Entry {
        let node = self.arena.node(id);
        if (children.from..children.to).all(|side| self.is_final(id, node.child(side))) {
            return Entry::Terminal(id);
        }
        match children.halves() {
            Some(_) => Entry::Router(id, children),
            None => self.entry(node.child(children.from)),
        }
    }
}
