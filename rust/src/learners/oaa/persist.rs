//! The learner as named arrays: its whole state, so that learning goes on
//! after loading as if nothing had happened.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::average::PolynomialAverage;
use super::learner::{Oaa, State};
use super::preparer::ExamplePreparer;
use super::sampling::NegativeSampler;
use super::slots::FeatureSlots;
use super::tile::Tile;
use super::Params;
use crate::data::Preparation;
use crate::error::Result;
use crate::file::{Bundle, LegacyPersist};
use crate::linear::{NagTotals, Optimizer, Power, Preconditioner, Span};

/// The few values beside the arrays.
#[derive(Serialize, Deserialize)]
struct Shared {
    preparation: Preparation,
    passes: f64,
    average: PolynomialAverage,
    l1_shift: f64,
    shrink: f64,
    span: Option<(f32, f32)>,
    sampler_position: usize,
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
        let preparer = &self.preparer;
        bundle.put_meta(
            "shared",
            &Shared {
                preparation: preparer.preparation.clone(),
                passes: preparer.passes,
                average: preparer.average,
                l1_shift: preparer.l1_shift,
                shrink: preparer.shrink,
                span: preparer.span.map(|span| (span.low, span.high)),
                sampler_position: preparer.sampler.as_ref().map_or(0, |s| s.position),
            },
        );
        bundle.put("columns", preparer.slots.columns());
        if let Some(preconditioner) = &preparer.preconditioner {
            let (_, importance, squares) = preconditioner.parts();
            bundle.put_meta("importance", &importance);
            let of_slots = preparer
                .slots
                .columns()
                .iter()
                .map(|&c| squares[c as usize]);
            bundle.put("column_squares", of_slots.collect::<Vec<f32>>());
        }
        let masks = self.tiles.iter().flat_map(|tile| &tile.unseen_mask);
        let seen = masks.take(n_classes).map(|&mask| u8::from(mask == 0.0));
        bundle.put("seen", seen.collect::<Vec<u8>>());
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            if self.tiles.iter().all(|tile| tile.planes()[at].is_empty()) {
                continue;
            }
            let mut rows = Vec::with_capacity(preparer.slots.len() * n_classes);
            for slot in 0..preparer.slots.len() {
                for tile in &self.tiles {
                    let from = slot * tile.width();
                    let n = tile.width().min(n_classes - tile.first);
                    rows.extend_from_slice(&tile.planes()[at][from..from + n]);
                }
            }
            bundle.put(name, rows);
        }
        let totals = self.tiles.iter().flat_map(|tile| &tile.totals);
        let totals = totals.take(n_classes);
        bundle.put(
            "t",
            totals.clone().map(|totals| totals.t).collect::<Vec<f64>>(),
        );
        bundle.put("n", totals.map(|totals| totals.n).collect::<Vec<f64>>());
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
        let mut slots = FeatureSlots::new(width);
        for (at, &column) in columns.iter().enumerate() {
            if column as usize >= width || slots.get_or_insert(column) as usize != at {
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
        let mut sampler = params
            .n_negatives
            .and_then(|n| NegativeSampler::new(n, n_classes, params.seed));
        if let Some(sampler) = &mut sampler {
            sampler.position = shared.sampler_position % n_classes;
        }
        let mut tiles = Tile::for_classes(n_classes, params);
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
        let t: Vec<f64> = bundle.take_exactly("t", n_totals)?;
        let n: Vec<f64> = bundle.take_exactly("n", n_totals)?;
        let totals = t.into_iter().zip(n).map(|(t, n)| NagTotals { t, n });
        let totals: Vec<NagTotals> = totals.collect();
        for tile in &mut tiles {
            let n = tile.width().min(n_classes - tile.first);
            for (lane, &seen) in seen[tile.first..tile.first + n].iter().enumerate() {
                tile.unseen_mask[lane] = if seen == 0 { f32::NEG_INFINITY } else { 0.0 };
            }
            if n_totals > 0 {
                tile.totals[..n].copy_from_slice(&totals[tile.first..tile.first + n]);
            }
        }
        Ok(Self {
            preparer: ExamplePreparer {
                preparation: shared.preparation,
                slots,
                preconditioner,
                passes: shared.passes,
                average: shared.average,
                l1_shift: shared.l1_shift,
                shrink: shared.shrink,
                span: shared.span.map(|(low, high)| Span { low, high }),
                sampler,
            },
            tiles,
            prediction_weights: OnceLock::new(),
        })
    }
}
