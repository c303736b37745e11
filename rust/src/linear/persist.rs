//! Regressors as named arrays.

use super::regressors::Kind;
use super::{padded, Regressors, Table, Weights};
use super::{AdaSlot, Loss, NagSlot, NagTotals, Power, Preconditioner, Span};
use crate::error::Result;
use crate::file::{Bundle, LegacyPersist};

/// A weight and its companions as plain floats.
pub(crate) trait Floats: Copy + Default {
    const N: usize;
    fn push(self, into: &mut Vec<f32>);
    fn pull(from: &[f32]) -> Self;
}

impl Floats for f32 {
    const N: usize = 1;
    fn push(self, into: &mut Vec<f32>) {
        into.push(self);
    }
    fn pull(from: &[f32]) -> Self {
        from[0]
    }
}

impl Floats for AdaSlot {
    const N: usize = 2;
    fn push(self, into: &mut Vec<f32>) {
        into.extend([self.w, self.g]);
    }
    fn pull(from: &[f32]) -> Self {
        Self {
            w: from[0],
            g: from[1],
        }
    }
}

impl Floats for NagSlot {
    const N: usize = 3;
    fn push(self, into: &mut Vec<f32>) {
        into.extend([self.w, self.g, self.s]);
    }
    fn pull(from: &[f32]) -> Self {
        Self {
            w: from[0],
            g: from[1],
            s: from[2],
        }
    }
}

/// Rows end to end; tables as columns, in order, and values, end to end.
pub(crate) fn put_weights<'a, S: Floats + 'a>(
    bundle: &mut Bundle,
    all: impl Iterator<Item = &'a Weights<S>>,
) {
    let (mut is_row, mut lengths) = (Vec::<u8>::new(), Vec::<u32>::new());
    let (mut columns, mut values) = (Vec::<u32>::new(), Vec::<f32>::new());
    for weights in all {
        match weights {
            Weights::Row(row) => {
                is_row.push(1);
                lengths.push(0);
                row.iter().for_each(|slot| slot.push(&mut values));
            }
            Weights::Table(table) => {
                is_row.push(0);
                lengths.push(table.len() as u32);
                let mut entries: Vec<(u32, S)> = table.iter().map(|(c, &s)| (c, s)).collect();
                entries.sort_unstable_by_key(|&(column, _)| column);
                for (column, slot) in entries {
                    columns.push(column);
                    slot.push(&mut values);
                }
            }
        }
    }
    bundle.put("is_row", is_row);
    bundle.put("lengths", lengths);
    bundle.put("columns", columns);
    bundle.put("values", values);
}

pub(crate) fn take_weights<S: Floats>(
    bundle: &mut Bundle,
    width: usize,
) -> Result<Vec<Weights<S>>> {
    let is_row: Vec<u8> = bundle.take("is_row")?;
    let lengths: Vec<u32> = bundle.take_exactly("lengths", is_row.len())?;
    let columns: Vec<u32> = bundle.take("columns")?;
    let values: Vec<f32> = bundle.take("values")?;
    if columns.iter().any(|&column| column as usize >= width) {
        return Err(bundle.damaged("a weight's column is out of range"));
    }
    let (mut columns, mut values) = (&columns[..], values.chunks_exact(S::N));
    let mut all = Vec::with_capacity(is_row.len());
    for (&is_row, &length) in is_row.iter().zip(&lengths) {
        let short = || bundle.damaged("there are fewer weights than promised");
        if is_row != 0 {
            if values.len() < width {
                return Err(short());
            }
            all.push(Weights::Row(
                values.by_ref().take(width).map(S::pull).collect(),
            ));
        } else {
            let length = length as usize;
            let (mine, rest) = columns.split_at_checked(length).ok_or_else(short)?;
            if values.len() < length {
                return Err(short());
            }
            columns = rest;
            let slots: Vec<(u32, S)> = mine
                .iter()
                .copied()
                .zip(values.by_ref().take(length).map(S::pull))
                .collect();
            all.push(Weights::Table(slots.into_iter().collect::<Table<S>>()));
        }
    }
    Ok(all)
}

impl LegacyPersist for Regressors {
    const KIND: &'static str = "regressors";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("loss", &self.loss());
        bundle.put_meta("width", &self.width());
        match self.kind() {
            Kind::Pn(preconditioner, rows) => {
                bundle.put_meta("optimizer", &"pn");
                let (power, seen, squares) = preconditioner.parts();
                bundle.put_meta("power", &power);
                bundle.put_meta("seen", &seen);
                bundle.put("squares", squares);
                put_weights(&mut bundle, rows.iter());
            }
            Kind::Sgd(rows) => {
                bundle.put_meta("optimizer", &"sgd");
                put_weights(&mut bundle, rows.iter());
            }
            Kind::Adagrad(rows) => {
                bundle.put_meta("optimizer", &"adagrad");
                put_weights(&mut bundle, rows.iter());
            }
            Kind::Nag(span, rows) => {
                bundle.put_meta("optimizer", &"nag");
                bundle.put("span", vec![span.low, span.high]);
                bundle.put(
                    "t",
                    rows.iter()
                        .map(|(totals, _)| totals.t)
                        .collect::<Vec<f64>>(),
                );
                bundle.put(
                    "n",
                    rows.iter()
                        .map(|(totals, _)| totals.n)
                        .collect::<Vec<f64>>(),
                );
                put_weights(&mut bundle, rows.iter().map(|(_, weights)| weights));
            }
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let loss: Loss = bundle.take_meta("loss")?;
        let width: usize = bundle.take_meta("width")?;
        let optimizer: String = bundle.take_meta("optimizer")?;
        if width > u32::MAX as usize || width != padded(width) {
            return Err(bundle.damaged(format_args!("regressors are {width} columns wide")));
        }
        let kind = match &optimizer[..] {
            "pn" => {
                let power: Power = bundle.take_meta("power")?;
                let seen: f64 = bundle.take_meta("seen")?;
                let squares: Vec<f32> = bundle.take_exactly("squares", width)?;
                let preconditioner = Preconditioner::from_parts(power, seen, squares);
                Kind::Pn(preconditioner, take_weights(&mut bundle, width)?)
            }
            "sgd" => Kind::Sgd(take_weights(&mut bundle, width)?),
            "adagrad" => Kind::Adagrad(take_weights(&mut bundle, width)?),
            "nag" => {
                let span: Vec<f32> = bundle.take_exactly("span", 2)?;
                // f32::clamp demands an ordered span.
                if !(span[0] <= 0.0 && span[1] >= 0.0) {
                    return Err(bundle.damaged("the span of labels is out of order"));
                }
                let weights: Vec<Weights<NagSlot>> = take_weights(&mut bundle, width)?;
                let t: Vec<f64> = bundle.take_exactly("t", weights.len())?;
                let n: Vec<f64> = bundle.take_exactly("n", weights.len())?;
                let totals = t.into_iter().zip(n).map(|(t, n)| NagTotals { t, n });
                let span = Span {
                    low: span[0],
                    high: span[1],
                };
                Kind::Nag(span, totals.zip(weights).collect())
            }
            other => return Err(bundle.damaged(format_args!("unknown optimizer {other:?}"))),
        };
        Ok(Self::from_parts(kind, loss, width))
    }
}
