//! The learner as named arrays: its whole state, so that learning goes on
//! after loading as if nothing had happened.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::average::Average;
use super::feed::{Feed, Negatives, Slots};
use super::learner::{Oaa, State};
use super::tile::Tile;
use super::Params;
use crate::data::Preparation;
use crate::error::Result;
use crate::file::{Bundle, LegacyPersist};
use crate::linear::{Optimizer, Power, Preconditioner};

/// The few values beside the arrays.
#[derive(Serialize, Deserialize)]
struct Shared {
    preparation: Preparation,
    passes: f64,
    average: Average,
    gravity: f64,
    shrink: f64,
    span: Option<(f32, f32)>,
    negatives_at: usize,
}

impl LegacyPersist for Oaa {
    const KIND: &'static str = "oaa";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("multilabel", &self.multilabel);
        bundle.put_meta("mistakes", &self.mistakes);
        bundle.put_meta("started", &self.state.is_some());
        if let Some(state) = &self.state {
            state.put(self.n_classes, &mut bundle);
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let mut oaa = Self::new(
            params,
            bundle.take_meta("n_classes")?,
            bundle.take_meta("multilabel")?,
        )
        .map_err(|error| bundle.damaged(error))?;
        oaa.mistakes = bundle.take_meta("mistakes")?;
        if bundle.take_meta("started")? {
            oaa.state = Some(State::take(&oaa, &mut bundle)?);
        }
        Ok(oaa)
    }
}

impl State {
    fn put(&self, n_classes: usize, bundle: &mut Bundle) {
        let feed = &self.feed;
        bundle.put_meta(
            "shared",
            &Shared {
                preparation: feed.preparation.clone(),
                passes: feed.passes,
                average: feed.average,
                gravity: feed.gravity,
                shrink: feed.shrink,
                span: feed.span,
                negatives_at: feed.negatives.as_ref().map_or(0, |n| n.at),
            },
        );
        bundle.put("columns", feed.slots.columns());
        if let Some(preconditioner) = &feed.preconditioner {
            let (_, importance, squares) = preconditioner.parts();
            bundle.put_meta("importance", &importance);
            let of_slots = feed.slots.columns().iter().map(|&c| squares[c as usize]);
            bundle.put("column_squares", of_slots.collect::<Vec<f32>>());
        }
        let absent = self.tiles.iter().flat_map(|tile| &tile.absent);
        let seen = absent
            .take(n_classes)
            .map(|&absent| u8::from(absent == 0.0));
        bundle.put("seen", seen.collect::<Vec<u8>>());
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            if self.tiles.iter().all(|tile| tile.planes()[at].is_empty()) {
                continue;
            }
            let mut rows = Vec::with_capacity(feed.slots.len() * n_classes);
            for slot in 0..feed.slots.len() {
                for tile in &self.tiles {
                    let from = slot * tile.width();
                    let n = tile.width().min(n_classes - tile.first);
                    rows.extend_from_slice(&tile.planes()[at][from..from + n]);
                }
            }
            bundle.put(name, rows);
        }
        let times = self.tiles.iter().flat_map(|tile| &tile.times);
        let norms = self.tiles.iter().flat_map(|tile| &tile.norms);
        bundle.put(
            "times",
            times.take(n_classes).copied().collect::<Vec<f64>>(),
        );
        bundle.put(
            "norms",
            norms.take(n_classes).copied().collect::<Vec<f64>>(),
        );
    }

    fn take(oaa: &Oaa, bundle: &mut Bundle) -> Result<Self> {
        let (params, n_classes) = (&oaa.params, oaa.n_classes);
        // First of all: nothing as large as K is made unless the file is.
        let seen: Vec<u8> = bundle.take_exactly("seen", n_classes)?;
        let shared: Shared = bundle.take_meta("shared")?;
        let nag = params.optimizer == Optimizer::Nag;
        let span_fits = match shared.span {
            Some((low, high)) => nag && low <= high,
            None => !nag,
        };
        if !shared.preparation.is_sound() || !span_fits {
            return Err(bundle.damaged("its scaling or span does not fit"));
        }
        let width = shared.preparation.width();
        let columns: Vec<u32> = bundle.take("columns")?;
        let mut slots = Slots::new(width);
        for (at, &column) in columns.iter().enumerate() {
            if column as usize >= width || slots.take(column) as usize != at {
                return Err(bundle.damaged(format_args!("column {column} is wrong or repeated")));
            }
        }
        if columns.first() != Some(&(width as u32 - 1)) {
            return Err(bundle.damaged("the constant feature is missing"));
        }
        let mut preconditioner = None;
        if params.optimizer == Optimizer::Pn {
            let of_slots: Vec<f32> = bundle.take_exactly("column_squares", columns.len())?;
            let mut squares = vec![0.0; width];
            for (&column, square) in columns.iter().zip(of_slots) {
                squares[column as usize] = square;
            }
            let importance: f64 = bundle.take_meta("importance")?;
            let parts = Preconditioner::from_parts(Power::Quarter, importance, squares);
            preconditioner = Some(parts);
        }
        let mut negatives = params
            .n_negatives
            .and_then(|n| Negatives::new(n, n_classes, params.seed));
        if let Some(negatives) = &mut negatives {
            negatives.at = shared.negatives_at % n_classes;
        }
        let mut tiles = Tile::cover(n_classes, oaa.rule(), params.first_bias());
        for tile in &mut tiles {
            tile.grow(columns.len());
        }
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            if tiles.iter().all(|tile| tile.planes()[at].is_empty()) {
                continue;
            }
            let rows: Vec<f32> = bundle.take_exactly(name, columns.len() * n_classes)?;
            for (slot, row) in rows.chunks_exact(n_classes).enumerate() {
                for tile in &mut tiles {
                    let (width, first) = (tile.width(), tile.first);
                    let n = width.min(n_classes - first);
                    let plane = &mut tile.planes_mut()[at][slot * width..][..n];
                    plane.copy_from_slice(&row[first..first + n]);
                }
            }
        }
        let n_totals = if params.optimizer == Optimizer::Nag {
            n_classes
        } else {
            0
        };
        let times: Vec<f64> = bundle.take_exactly("times", n_totals)?;
        let norms: Vec<f64> = bundle.take_exactly("norms", n_totals)?;
        for tile in &mut tiles {
            let n = tile.width().min(n_classes - tile.first);
            for (lane, &seen) in seen[tile.first..tile.first + n].iter().enumerate() {
                tile.absent[lane] = if seen == 0 { f32::NEG_INFINITY } else { 0.0 };
            }
            if n_totals > 0 {
                tile.times[..n].copy_from_slice(&times[tile.first..tile.first + n]);
                tile.norms[..n].copy_from_slice(&norms[tile.first..tile.first + n]);
            }
        }
        Ok(Self {
            feed: Feed {
                preparation: shared.preparation,
                slots,
                preconditioner,
                passes: shared.passes,
                average: shared.average,
                gravity: shared.gravity,
                shrink: shared.shrink,
                span: shared.span,
                negatives,
            },
            tiles,
            settled: OnceLock::new(),
        })
    }
}
