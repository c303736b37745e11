//! Tables, weights and regressors as named arrays.

use super::nag::Magnitude;
use super::regressors::Kind;
use super::{AlignedRow, NagSlot, NagTotals, Preconditioner, Regressors, Span, Table, Weights};
use crate::error::Result;
use crate::file::{
    check_column, is_count, is_sum, put_lengths, take_lengths, Bundle, Columns, Persist, Record,
};
use crate::{persist, record};

/// Whether regressors are stored without what an optimiser keeps.
const FOR_PREDICTION: &str = "for_prediction";

record!(NagSlot {
    w,
    g: is_sum,
    s: is_size
});
record!(NagTotals {
    t: is_count,
    n: is_count
});

/// Whether it is the size of a feature, 0 before it was seen.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_size(size: &f32) -> bool {
    *size == 0.0 || Magnitude::RANGE.contains(size)
}

/// The keys of each table in order, end to end, and the values likewise.
impl<S: Record + Copy + Default> Record for Table<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
        put_lengths(records.clone().map(Table::len), name, bundle);
        let mut entries: Vec<(u32, &S)> = Vec::new();
        for table in records {
            let from = entries.len();
            entries.extend(table.iter());
            entries[from..].sort_unstable_by_key(|&(key, _)| key);
        }
        let keys = entries.iter().map(|&(key, _)| key).collect::<Vec<u32>>();
        bundle.put(&format!("{name}.key"), keys);
        S::put(entries.iter().map(|&(_, value)| value), name, bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let lengths = take_lengths(n, name, bundle)?;
        let n_entries = lengths.iter().sum();
        let name_of_keys = format!("{name}.key");
        let keys = bundle.take_exactly::<u32>(&name_of_keys, n_entries)?;
        check_column(&keys, |&key| Self::is_key(key), &name_of_keys, bundle)?;
        let values = S::take(Some(n_entries), name, bundle)?;
        let mut entries = keys.into_iter().zip(values);
        Ok(lengths
            .into_iter()
            .map(|n| Self::from_iter(entries.by_ref().take(n).collect::<Vec<_>>()))
            .collect())
    }
}

/// Rows and tables as they are, apart from one another.
impl<S: Record + Copy + Default> Record for Weights<S> {
    fn put<'a>(records: impl Iterator<Item = &'a Self> + Clone, name: &str, bundle: &mut Bundle)
    where
        Self: 'a,
    {
        let is_row = records
            .clone()
            .map(|weights| matches!(weights, Self::Row(_)));
        let is_row: Vec<bool> = is_row.collect();
        bool::put(is_row.iter(), &format!("{name}.is_row"), bundle);
        let rows = records.clone().filter_map(|weights| match weights {
            Self::Row(row) => Some(row),
            Self::Table(_) => None,
        });
        AlignedRow::put(rows, &format!("{name}.row"), bundle);
        let tables = records.filter_map(|weights| match weights {
            Self::Row(_) => None,
            Self::Table(table) => Some(table),
        });
        Table::put(tables, &format!("{name}.table"), bundle);
    }

    fn take(n: Option<usize>, name: &str, bundle: &mut Bundle) -> Result<Vec<Self>> {
        let is_row = bool::take(n, &format!("{name}.is_row"), bundle)?;
        let n_rows = is_row.iter().filter(|&&is_row| is_row).count();
        let n_tables = is_row.len() - n_rows;
        let mut rows = AlignedRow::take(Some(n_rows), &format!("{name}.row"), bundle)?.into_iter();
        let tables = Table::take(Some(n_tables), &format!("{name}.table"), bundle)?;
        let mut tables = tables.into_iter();
        Ok(is_row
            .into_iter()
            .map_while(|is_row| {
                let row = is_row.then(|| rows.next().map(Self::Row));
                row.unwrap_or_else(|| tables.next().map(Self::Table))
            })
            .collect())
    }
}

impl<S: Copy + Default> Weights<S> {
    /// Whether there is nothing beyond `width` columns, and a row has them all.
    pub(crate) fn fits(&self, width: usize) -> bool {
        match self {
            Self::Row(row) => row.len() == width,
            Self::Table(table) => table.iter().all(|(column, _)| (column as usize) < width),
        }
    }
}

persist!(Preconditioner {
    Meta total;
    Columns squares;
} check check_sums);

impl Persist for Regressors {
    fn put(&self, bundle: &mut Bundle) {
        let name = "weights";
        bundle.put_meta(FOR_PREDICTION, &matches!(self.kind, Kind::Plain(..)));
        match &self.kind {
            Kind::Pn(preconditioner, weights) => {
                preconditioner.put(bundle);
                Columns::put(weights, name, bundle);
            }
            Kind::Plain(span, weights) => {
                bundle.put("span", vec![span.low, span.high]);
                Columns::put(weights, name, bundle);
            }
            Kind::Nag(span, all) => {
                bundle.put("span", vec![span.low, span.high]);
                NagTotals::put(all.iter().map(|(totals, _)| totals), "totals", bundle);
                Weights::put(all.iter().map(|(_, weights)| weights), name, bundle);
            }
        }
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        let width = self.width;
        if bundle.take_meta::<bool>(FOR_PREDICTION)? != matches!(self.kind, Kind::Plain(..)) {
            return Err(bundle.damaged("regressors differ from the model in \"for_prediction\""));
        }
        let fits = match &mut self.kind {
            Kind::Pn(preconditioner, all) => {
                preconditioner.fill(bundle)?;
                preconditioner.width() == width && fill_weights(all, width, bundle)?
            }
            Kind::Plain(span, all) => {
                *span = take_span(bundle)?;
                fill_weights(all, width, bundle)? && (span.is_sound() || *span == Span::UNBOUNDED)
            }
            Kind::Nag(span, all) => {
                *span = take_span(bundle)?;
                let mut found = Vec::new();
                let fits = fill_weights(&mut found, width, bundle)?;
                let totals = NagTotals::take(Some(found.len()), "totals", bundle)?;
                *all = totals.into_iter().zip(found).collect();
                fits && span.is_sound()
            }
        };
        if fits {
            return Ok(());
        }
        Err(bundle.damaged(format_args!("the regressors do not fit {width} columns")))
    }
}

fn take_span(bundle: &mut Bundle) -> Result<Span> {
    match bundle.take_any("span")?[..] {
        [low, high] => Ok(Span { low, high }),
        _ => Err(bundle.damaged("\"span\" has not two ends")),
    }
}

/// Returns whether all of the weights are within `width` columns.
fn fill_weights<S: Record + Copy + Default>(
    into: &mut Vec<Weights<S>>,
    width: usize,
    bundle: &mut Bundle,
) -> Result<bool> {
    Columns::fill(into, "weights", bundle)?;
    Ok(into.iter().all(|weights| weights.fits(width)))
}
