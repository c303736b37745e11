//! The best split of a node over the features drawn for it.

use rayon::prelude::*;

use super::category::{best_subset, holds, Subset};
use super::columns::{Codes, Column, Columns, Place};
use super::draw::{is_drawn, Drawn};
use super::entries::Gather;
use super::few::Few;
use super::node::Node;
use super::scan::{Cut, Scratch};
use crate::control::Control;

/// Which codes go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Those up to `low`, and missing values as `missing_left` says.
    UpTo {
        /// The last code that goes left.
        low: u32,
        /// Threshold between the values of the codes.
        threshold: f32,
        /// The code of missing values.
        missing: Option<u32>,
        /// Where missing values go.
        missing_left: bool,
    },
    /// Those of a set.
    In(Subset),
}

impl Rule {
    /// Whether `code` goes left.
    #[inline]
    pub fn goes_left(&self, code: u32) -> bool {
        match self {
            Self::UpTo {
                low,
                missing,
                missing_left,
                ..
            } => {
                if Some(code) == *missing {
                    *missing_left
                } else {
                    code <= *low
                }
            }
            Self::In(subset) => holds(subset, code),
        }
    }
}

/// A split of a node in two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// By which column.
    pub column: u32,
    /// How.
    pub rule: Rule,
    /// By how much it raises sum_k W_k^2 / W, which is by how much it lowers the
    /// squared error, a constant aside.
    pub gain: f64,
}

/// Work at a node from which it pays to share it out, in codes.
const SHARED: usize = 1 << 14;

/// Parts that the columns are shared out in, per thread: the last to end is waited for.
const PARTS: usize = 2;

/// Room for the search for splits.
#[derive(Debug, Default)]
pub struct Search {
    /// For each part of the columns.
    rooms: Vec<Room>,
    gather: Gather,
}

/// Room for one thread.
#[derive(Debug, Default)]
struct Room {
    scratch: Scratch,
    few: Few,
}

/// What was found in one column.
enum Found {
    Cut(Cut),
    Subset(f64, Subset),
}

impl Found {
    fn score(&self) -> f64 {
        match self {
            Self::Cut(cut) => cut.score,
            Self::Subset(score, _) => *score,
        }
    }
}

impl Search {
    /// The best split of `node` by one of the columns `drawn`; of equals that by the first
    /// column. Whoever is told to stop finds nothing more.
    pub fn best(
        &mut self,
        node: &Node,
        columns: &Columns,
        drawn: Drawn<'_>,
        threads: bool,
        control: &Control,
    ) -> Option<Split> {
        let (full, rest) = self.sides(node, columns, drawn);
        let mut found = self.of_full(node, columns, &full, threads, control);
        if !rest.is_empty() {
            let scratch = &mut self.rooms[0].scratch;
            self.gather
                .best_cuts(node, columns, &rest, scratch, |column, cut| {
                    found.push((column, Found::Cut(cut)));
                });
        }
        let mut best: Option<(u32, Found)> = None;
        let mut score = node.score();
        // In the order of the columns, wherever they are kept.
        found.sort_by_key(|&(column, _)| column);
        for (column, cut) in found {
            if cut.score() > score + node.tolerance() {
                score = cut.score();
                best = Some((column, cut));
            }
        }
        let (column, found) = best?;
        Some(Split {
            column,
            gain: score - node.score(),
            rule: rule(&columns.columns[column as usize], &found, node),
        })
    }

    /// The columns drawn that are kept as arrays, and the others, as far as need be looked at.
    fn sides(&mut self, node: &Node, columns: &Columns, drawn: Drawn<'_>) -> (Vec<u32>, Vec<u32>) {
        match drawn {
            Drawn::Listed(drawn) => {
                let mut sides = (
                    Vec::with_capacity(drawn.len()),
                    Vec::with_capacity(drawn.len()),
                );
                for &column in drawn {
                    let is_full = columns.is_full(column);
                    (if is_full { &mut sides.0 } else { &mut sides.1 }).push(column);
                }
                sides
            }
            Drawn::Hashed { key, bar } => {
                let is_drawn = |column: &u32| is_drawn(*column, key, bar);
                let full = columns.full.iter().copied().filter(is_drawn).collect();
                (full, self.gather.met(node, columns, is_drawn))
            }
        }
    }

    /// The best of each of the columns `full`, which are kept as arrays.
    fn of_full(
        &mut self,
        node: &Node,
        columns: &Columns,
        full: &[u32],
        threads: bool,
        control: &Control,
    ) -> Vec<(u32, Found)> {
        let shared = threads && full.len() * node.len() >= SHARED;
        let parts = if shared {
            PARTS * rayon::current_num_threads()
        } else {
            1
        };
        if self.rooms.len() < parts {
            self.rooms.resize_with(parts, Room::default);
        }
        let all = |(part, room): (&[u32], &mut Room)| -> Vec<(u32, Found)> {
            let of = |&column: &u32| {
                control.check().ok()?;
                let best = one(node, &columns.columns[column as usize], room);
                best.map(|best| (column, best))
            };
            part.iter().filter_map(of).collect()
        };
        if shared {
            let parts = full.par_chunks(full.len().div_ceil(parts));
            parts.zip(&mut self.rooms).flat_map_iter(all).collect()
        } else {
            all((full, &mut self.rooms[0]))
        }
    }
}

/// The best of a column that is kept as an array.
fn one(node: &Node, column: &Column, room: &mut Room) -> Option<Found> {
    let Room { scratch, few } = room;
    let Place::Full(codes) = &column.place else {
        return None;
    };
    let (n_codes, missing) = (column.coding.n_codes(), column.coding.missing_code());
    match codes {
        Codes::Few(codes) if column.coding.categorical => {
            scratch.sort_few(node, codes, n_codes);
            best_subset(node, scratch).map(|(score, left)| Found::Subset(score, left))
        }
        Codes::Few(codes) => few
            .best_cut(scratch, node, codes, n_codes, missing.is_some())
            .map(Found::Cut),
        Codes::Many { codes, order } => {
            scratch.sort_many(node, codes, order);
            scratch.best_cut(node, missing, None).map(Found::Cut)
        }
    }
}

/// The rule of what was found. Missing values to come where none was missing at the node
/// go to the side of more weight.
fn rule(column: &Column, found: &Found, node: &Node) -> Rule {
    let cut = match found {
        Found::Subset(_, left) => return Rule::In(*left),
        Found::Cut(cut) => cut,
    };
    let coding = &column.coding;
    let (low, threshold) = match cut.high {
        Some(high) => coding.cut(cut.low, high),
        None => (coding.spans.len() as u32 - 1, f32::INFINITY),
    };
    let left_is_heavier = 2.0 * cut.left_weight > node.weight;
    Rule::UpTo {
        low,
        threshold,
        missing: coding.missing_code(),
        missing_left: cut.missing_left.unwrap_or(left_is_heavier),
    }
}
