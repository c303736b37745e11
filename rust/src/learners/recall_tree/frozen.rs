//! The tree as prediction walks it: routers alone, and where paths end.

use std::collections::VecDeque;

use super::candidate_blocks::CandidateBlocks;
use super::candidate_tables::CandidateTables;
use super::label_index::LocalId;
use super::routing_tree::RoutingTree;
use crate::alloc::{filled, push};
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::tree::{FrozenRouters, Junction, LearningTree, NodeId};

/// Routers whose terminals are positions among the final nodes.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub(super) routers: FrozenRouters,
    /// The nodes that paths end at. The path to a child whose bound is no better ends at
    /// the parent, so that several terminals may share a node.
    pub(super) final_nodes: Vec<NodeId>,
    /// The candidates of each, most frequent first.
    pub(super) candidates: Ragged<LocalId>,
    /// Their weights, where the scorers have them in rows.
    pub(super) blocks: CandidateBlocks,
    /// Their weights, where the scorers have them by column.
    pub(super) tables: CandidateTables,
}

impl RoutingTree {
    /// Makes the tree that prediction walks, in time and memory of the tree's size, with no weights
    /// of scorers.
    pub fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        let arena = &self.arena;
        let mut frozen = FrozenTree {
            routers: FrozenRouters::new(&self.routers).unclamped(),
            final_nodes: Vec::new(),
            candidates: Ragged::default(),
            blocks: CandidateBlocks::default(),
            tables: CandidateTables::default(),
        };
        let mut terminal_of = filled(u32::MAX, arena.nodes.len());
        let mut queue = VecDeque::from([self.root()]);
        let (mut n, mut path, mut candidates) = (0, Vec::new(), Vec::new());
        let mut seen = self.seen.clone();
        while let Some(place) = queue.pop_front() {
            if n % Control::CHUNK == 0 {
                control.check()?;
            }
            n += 1;
            match self.at(place) {
                Junction::Terminal(number) => {
                    let terminal = &mut terminal_of[number as usize];
                    if *terminal == u32::MAX {
                        let id = NodeId(number);
                        arena.path_to(id, &mut path);
                        arena.candidates_at_end(&path, &mut seen, &mut candidates);
                        *terminal = frozen.final_nodes.len() as u32;
                        push(&mut frozen.final_nodes, id);
                        frozen.candidates.push(candidates.iter().copied());
                    }
                    frozen.routers.push_terminal(*terminal);
                }
                Junction::Router {
                    regressor,
                    children,
                } => {
                    frozen.routers.push_router(self.routers.plain(regressor));
                    queue.extend(children);
                }
            }
        }
        Ok(frozen)
    }
}
