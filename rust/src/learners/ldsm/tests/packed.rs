//! Packed lists, compared with plain ones.

use super::*;
use crate::data::{PackedList, PackedLists, Precision};
use crate::file::{Bundle, Flat};

/// Packs histograms without rounding.
pub(in crate::learners) fn packed(lists: &[Vec<(u32, f32)>], end: usize) -> PackedLists {
    let list = |list: &Vec<(u32, f32)>| {
        let (ids, values) = list.iter().copied().unzip();
        PackedList::new(ids, values, 1, Precision::Exact)
    };
    PackedLists::new(&lists.iter().map(list).collect::<Vec<_>>(), 1, end).unwrap()
}

/// Ids with two values each.
type List = Vec<(u32, [f32; 2])>;

/// Generates lists of ids that are near each other or far apart, and the end of the ids.
fn lists() -> impl Strategy<Value = (usize, Vec<List>)> {
    prop::sample::select(vec![1usize, 9, 255, 256, 257, 70_000, 200_000]).prop_flat_map(|end| {
        let values = [-3.0f32..3.0, -0.1f32..0.1];
        let list = prop::collection::btree_map(0..end as u32, values, 0..40);
        let list = list.prop_map(|list| list.into_iter().collect());
        (Just(end), prop::collection::vec(list, 1..9))
    })
}

fn pack(lists: &[List], end: usize, precision: Precision) -> PackedLists {
    let list = |list: &List| {
        let ids = list.iter().map(|&(id, _)| id).collect();
        let values = list.iter().flat_map(|(_, x)| *x).collect();
        PackedList::new(ids, values, 2, precision)
    };
    PackedLists::new(&lists.iter().map(list).collect::<Vec<_>>(), 2, end).unwrap()
}

fn precisions() -> impl Strategy<Value = Precision> {
    prop::sample::select(vec![Precision::Exact, Precision::Bits8, Precision::Bits16])
}

fn unpack(packed: &PackedLists, i: usize) -> List {
    let mut list = Vec::new();
    packed.for_each(i, |id, values| list.push((id, values)));
    list
}

/// Stores lists under the name `lists`.
fn stored(packed: &PackedLists) -> Bundle {
    let mut bundle = Bundle::new("outer");
    bundle.nest("lists", packed.to_bundle());
    bundle
}

proptest! {
    /// Exact values are unchanged, and rounded ones change by at most half a step.
    #[test]
    fn packed_lists_keep_ids_and_values((end, lists) in lists(), precision in precisions()) {
        let packed = pack(&lists, end, precision);
        prop_assert_eq!(packed.n_entries(), lists.iter().map(Vec::len).sum::<usize>());
        for (i, list) in lists.iter().enumerate() {
            let found = unpack(&packed, i);
            prop_assert!(found.iter().map(|(id, _)| id).eq(list.iter().map(|(id, _)| id)));
            let most = |j: usize| list.iter().map(|(_, x)| x[j].abs()).fold(0.0, f32::max);
            let most = [most(0), most(1)];
            for ((_, found), (_, wanted)) in found.iter().zip(list) {
                for j in 0..2 {
                    let bound = match precision {
                        Precision::Exact => 0.0,
                        Precision::Bits8 => 0.5001 * most[j] / 127.0,
                        Precision::Bits16 => 0.51 * most[j] / 32_767.0,
                    };
                    prop_assert!((found[j] - wanted[j]).abs() <= bound);
                }
            }
            let lookup = packed.lookup::<2>(i);
            for id in 0..end.min(300) as u32 {
                let wanted = found.iter().find(|&&(other, _)| other == id);
                prop_assert_eq!(lookup.get(id), wanted.map_or([0.0; 2], |(_, x)| *x));
            }
            for (id, wanted) in found {
                prop_assert_eq!(lookup.get(id), wanted);
            }
        }
        let again = PackedLists::take(&mut stored(&packed), "lists", lists.len(), 2, end).unwrap();
        prop_assert_eq!(&again, &packed);
        // Training routes by the same rounded values.
        let values: Vec<f32> = lists[0].iter().flat_map(|(_, x)| *x).collect();
        let values = PackedList::new(Vec::new(), values, 2, precision).values;
        for (at, (_, found)) in unpack(&packed, 0).into_iter().enumerate() {
            prop_assert_eq!(&values[2 * at..2 * at + 2], found);
        }
    }
}

/// Ids near each other take one byte, ids far apart take two.
#[test]
fn blocks_are_chosen_by_size() {
    let list = |step: u32| (0..50).map(|i| (i * step, [1.0, 0.5])).collect::<Vec<_>>();
    for (step, end, bits) in [(1, 60, 8), (20, 1000, 8), (4000, 200_000, 16)] {
        let packed = pack(&vec![list(step); 20], end, Precision::Bits8);
        let mut bundle = stored(&packed).unnest("lists").unwrap();
        assert_eq!(bundle.take_meta::<u32>("bits").unwrap(), bits, "{step}");
    }
}

#[test]
fn values_without_a_scale_become_zero() {
    let values = PackedList::new(
        vec![1, 2],
        vec![0.0, 1e-45, -0.0, -1e-45],
        2,
        Precision::Bits8,
    )
    .values;
    assert_eq!(values, [0.0; 4]);
    let values = PackedList::new(vec![1, 2], vec![3e38, -3e38], 1, Precision::Bits8).values;
    for (at, wanted) in [3e38f32, -3e38].into_iter().enumerate() {
        let found = values[at];
        assert!((found - wanted).abs() < 1e34, "{found}");
    }
}

/// The name of an array, and a function that replaces it.
type Damage = (&'static str, fn(&mut Bundle));

#[test]
fn damaged_lists_are_refused() {
    let lists = vec![
        vec![(1, [1.0, 0.5]), (300, [2.0, 0.25])],
        vec![(7, [0.5; 2])],
    ];
    let packed = pack(&lists, 400, Precision::Exact);
    let damage: [Damage; 5] = [
        ("starts", |b| b.put("starts", vec![0u32, 3, 2, 3, 3])),
        ("starts", |b| b.put("starts", vec![0u32, 1, 2, 3])),
        ("bytes_of_ids", |b| b.put("bytes_of_ids", vec![1u8, 255, 7])),
        ("exact", |b| b.put("exact", vec![f32::NAN; 6])),
        ("exact", |b| b.put("exact", vec![1.0f32; 5])),
    ];
    for (name, put) in damage {
        let mut inner = stored(&packed).unnest("lists").unwrap();
        let _: Flat<u8> = inner.take_flat(name, None).unwrap_or_default();
        let mut changed = Bundle::new("lists");
        for (other, array) in inner.arrays().clone() {
            if other != name {
                changed.put(&other, array);
            }
        }
        put(&mut changed);
        changed.put_meta("bits", &inner.take_meta::<u32>("bits").unwrap());
        let mut outer = Bundle::new("outer");
        outer.nest("lists", changed);
        assert!(
            PackedLists::take(&mut outer, "lists", 2, 2, 400).is_err(),
            "{name}"
        );
    }
    assert!(PackedLists::take(&mut stored(&packed), "lists", 2, 2, 400).is_ok());
    assert!(PackedLists::take(&mut stored(&packed), "lists", 3, 2, 400).is_err());
    assert!(PackedLists::take(&mut stored(&packed), "lists", 2, 1, 400).is_err());
    assert!(PackedLists::take(&mut stored(&packed), "lists", 2, 2, 300).is_err());
}
