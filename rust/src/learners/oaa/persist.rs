//! The state as named arrays, so that learning goes on after loading as if nothing
//! had happened. Weights and sums are stored row by row, a row per feature slot and a
//! value per class, whatever the tiles.

use super::preparer::ExamplePreparer;
use super::tile::Tile;
use super::{Oaa, Params};
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist, Record};
use crate::linear::{NagTotals, Power, Preconditioner};
use crate::persist;

persist!(ExamplePreparer {
    Meta passes;
    Meta average;
    Meta l1_shift;
    Meta shrink;
    Meta span;
} check check_stored);

impl ExamplePreparer {
    fn check_stored(&self) -> Result<()> {
        // f32::clamp demands an ordered span.
        match self.span {
            Some(span) if !(span.low <= 0.0 && span.high >= 0.0) => {
                Err(Error::data("the span of labels is out of order"))
            }
            _ => Ok(()),
        }
    }
}

impl Oaa {
    pub(super) fn put_arrays(&self, bundle: &mut Bundle) {
        let (preparer, n_classes) = (&self.preparer, self.n_classes);
        preparer.put(bundle);
        let columns = preparer.slots.columns();
        bundle.put("columns", columns);
        if let Some(preconditioner) = &preparer.preconditioner {
            let (_, total, squares) = preconditioner.parts();
            bundle.put_meta("importance", &total);
            let squares = columns.iter().map(|&column| squares[column as usize]);
            bundle.put("column_squares", squares.collect::<Vec<f32>>());
        }
        if let Some(sampler) = &preparer.sampler {
            bundle.put_meta("sampler_position", &sampler.position);
        }
        let masks = self.tiles.iter().flat_map(|tile| &tile.unseen_mask);
        let seen: Vec<bool> = masks.take(n_classes).map(|&mask| mask == 0.0).collect();
        bool::put(seen.iter(), "seen", bundle);
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            if self.tiles[0].planes()[at].is_empty() {
                continue;
            }
            let mut rows = Vec::with_capacity(columns.len() * n_classes);
            for slot in 0..columns.len() {
                for tile in &self.tiles {
                    let n = tile.width().min(n_classes - tile.first);
                    rows.extend_from_slice(&tile.planes()[at][slot * tile.width()..][..n]);
                }
            }
            bundle.put(name, rows);
        }
        let totals = self.tiles.iter().flat_map(|tile| &tile.totals);
        NagTotals::put(totals.take(n_classes), "totals", bundle);
    }

    pub(super) fn take_arrays(
        params: &Params,
        n_classes: usize,
        width: usize,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        // First of all: nothing as large as K is made unless the file is.
        let seen = bool::take(Some(n_classes), "seen", bundle)?;
        let mut oaa = Self::of_width(params, n_classes, width);
        oaa.take_preparer(width, bundle)?;
        oaa.take_planes(bundle)?;
        let n_totals: usize = oaa.tiles.iter().map(|tile| tile.totals.len()).sum();
        let totals = NagTotals::take(Some(n_totals.min(n_classes)), "totals", bundle)?;
        for tile in &mut oaa.tiles {
            for (mask, &seen) in tile.unseen_mask.iter_mut().zip(&seen[tile.first..]) {
                *mask = if seen { 0.0 } else { f32::NEG_INFINITY };
            }
            let stored = totals.get(tile.first..).unwrap_or_default();
            for (totals, &stored) in tile.totals.iter_mut().zip(stored) {
                *totals = stored;
            }
        }
        Ok(oaa)
    }

    /// Restores what all classes share.
    fn take_preparer(&mut self, width: usize, bundle: &mut Bundle) -> Result<()> {
        let preparer = &mut self.preparer;
        let has_span = preparer.span.is_some();
        preparer.fill(bundle)?;
        if preparer.span.is_some() != has_span {
            return Err(bundle.damaged("its span does not fit its optimizer"));
        }
        let columns: Vec<u32> = bundle.take("columns")?;
        if columns.is_empty() {
            return Err(bundle.damaged("the constant feature is missing"));
        }
        // The constant has the first slot already.
        for (slot, &column) in columns.iter().enumerate() {
            let is_column = (column as usize) < width;
            if !is_column || preparer.slots.get_or_insert(column) as usize != slot {
                return Err(bundle.damaged(format_args!("column {column} is wrong or repeated")));
            }
        }
        if let Some(preconditioner) = &mut preparer.preconditioner {
            let of_slots: Vec<f32> = bundle.take_exactly("column_squares", columns.len())?;
            let mut squares = vec![0.0; width];
            for (&column, square) in columns.iter().zip(of_slots) {
                squares[column as usize] = square;
            }
            let total = bundle.take_meta("importance")?;
            *preconditioner = Preconditioner::from_parts(Power::Quarter, total, squares);
        }
        if let Some(sampler) = &mut preparer.sampler {
            let position: usize = bundle.take_meta("sampler_position")?;
            sampler.position = position % self.n_classes;
        }
        Ok(())
    }

    /// Restores weights and sums: rows of all classes become rows of the tiles.
    fn take_planes(&mut self, bundle: &mut Bundle) -> Result<()> {
        let (n_slots, n_classes) = (self.preparer.slots.len(), self.n_classes);
        for tile in &mut self.tiles {
            tile.grow(n_slots);
        }
        for (at, name) in Tile::PLANES.into_iter().enumerate() {
            if self.tiles[0].planes()[at].is_empty() {
                continue;
            }
            let rows: Vec<f32> = bundle.take_exactly(name, n_slots * n_classes)?;
            for (slot, row) in rows.chunks_exact(n_classes).enumerate() {
                for tile in &mut self.tiles {
                    let (width, first) = (tile.width(), tile.first);
                    let n = width.min(n_classes - first);
                    let plane = &mut tile.planes_mut()[at][slot * width..][..n];
                    plane.copy_from_slice(&row[first..first + n]);
                }
            }
        }
        Ok(())
    }
}
