//! Hits of short rankings, many rows at once: the usual case, and most of the speed.

use std::ops::Range;

use crate::data::Indices;

/// Rankings up to so deep are short.
pub(super) const DEEPEST: usize = 10;

/// Rows of fewer true labels than this are looked at here.
pub(super) const MANY: usize = 32;

/// Which ranks are hits, the lowest bit for the first.
pub(super) type Hits = u16;

/// Appends the hits of each of `rows` among its first `k` labels, out of `width`, and
/// says which is the first row that names a label twice there. The hits of rows with
/// [`MANY`] true labels are left open.
///
/// `k` becomes a constant, so that the labels of a row stay in registers and each of
/// its true labels is compared with all of them without a branch.
pub(super) fn hits<T, L>(
    rows: Range<usize>,
    (starts, truth): (Indices<'_>, &[T]),
    (labels, width): (&[L], usize),
    k: usize,
    into: &mut Vec<Hits>,
) -> Option<usize>
where
    T: Copy + Into<i64>,
    L: Copy + Into<i64>,
{
    let of_rows = match k {
        1 => of_rows::<T, L, 1>,
        2 => of_rows::<T, L, 2>,
        3 => of_rows::<T, L, 3>,
        4 => of_rows::<T, L, 4>,
        5 => of_rows::<T, L, 5>,
        6 => of_rows::<T, L, 6>,
        7 => of_rows::<T, L, 7>,
        8 => of_rows::<T, L, 8>,
        9 => of_rows::<T, L, 9>,
        DEEPEST => of_rows::<T, L, DEEPEST>,
        _ => return None,
    };
    of_rows(rows, starts, truth, labels, width, into)
}

fn of_rows<T: Copy + Into<i64>, L: Copy + Into<i64>, const K: usize>(
    rows: Range<usize>,
    starts: Indices<'_>,
    truth: &[T],
    labels: &[L],
    width: usize,
    into: &mut Vec<Hits>,
) -> Option<usize> {
    let mut from = starts.get(rows.start);
    for row in rows {
        let to = starts.get(row + 1);
        // There are `width` labels, at least K.
        let labels = labels[row * width..].first_chunk::<K>()?;
        let labels = labels.map(Into::into);
        let mut repeated = false;
        for (at, &label) in labels.iter().enumerate() {
            for &before in &labels[..at] {
                repeated |= (label == before) & (label >= 0);
            }
        }
        if repeated {
            return Some(row);
        }
        let mut found = [false; K];
        if to - from < MANY {
            for &one in &truth[from..to] {
                let one: i64 = one.into();
                for (hit, &label) in found.iter_mut().zip(&labels) {
                    *hit |= label == one;
                }
            }
        }
        let bits = found.iter().enumerate();
        into.push(bits.fold(0, |all, (rank, &hit)| all | Hits::from(hit) << rank));
        from = to;
    }
    None
}
