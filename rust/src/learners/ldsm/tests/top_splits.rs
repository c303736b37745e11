//! Products of a row with the first splits of all trees, compared with those of one split.

use std::sync::Arc;

use super::super::top_splits::TopSplits;
use super::super::tree::margins;
use super::*;
use crate::data::{PackedList, PackedLists, Precision};

const M: usize = 3;
const WIDE: usize = 2000;

/// Generates the columns of a list: none, all, only the last, or any, and a number for its weights.
fn columns() -> impl Strategy<Value = (Vec<u32>, u32)> {
    let last = WIDE as u32 - 2;
    let some = prop::collection::btree_set(0..=last, 0..60);
    let columns = prop_oneof![
        Just(vec![]),
        Just((0..=last).collect()),
        Just(vec![last]),
        some.prop_map(|columns| columns.into_iter().collect()),
    ];
    (columns, 0..1000u32)
}

/// Generates a tree of few or over 64 splits, without links.
fn trees() -> impl Strategy<Value = Arc<Tree>> {
    let precisions = vec![Precision::Exact, Precision::Bits8, Precision::Bits16];
    let precision = prop::sample::select(precisions);
    let lists = prop_oneof![
        prop::collection::vec(columns(), 0..4),
        prop::collection::vec(columns(), 65..70),
    ];
    (lists, precision).prop_map(|(lists, precision)| {
        let pack = |(columns, number): &(Vec<u32>, u32)| {
            let weight = |i: usize| (i as u32 * 977 + number * 31) as f32 % 101.0 - 50.0;
            let weights = (0..columns.len() * M).map(weight).collect();
            PackedList::new(columns.clone(), weights, M, precision)
        };
        let packed: Vec<_> = lists.iter().map(pack).collect();
        let nodes = std::iter::repeat_n(Node::Leaf(0), lists.len() * M + 1);
        let mut tree = Tree::from_nodes(M as u32, nodes);
        tree.routers = PackedLists::new(&packed, M, WIDE).unwrap();
        Arc::new(tree)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Rows have neighboring columns, so that each column occurs, or any.
    #[test]
    fn products_with_all_splits_are_those_with_one(
        trees in prop::collection::vec(trees(), 1..4),
        row in prop::collection::btree_map(0..WIDE as u32 - 1, -2.0f32..2.0, 0..20),
    ) {
        let top = TopSplits::new(&trees, WIDE);
        let mut rows = vec![row.into_iter().collect::<Vec<_>>()];
        let all: Vec<_> = (0..WIDE as u32 - 1).map(|column| (column, 1.5)).collect();
        rows.extend(all.chunks(20).map(<[_]>::to_vec));
        let constant = (WIDE as u32 - 1, 1.0);
        for row in rows {
            let row: (Vec<u32>, Vec<f32>) = row.into_iter().chain([constant]).unzip();
            let row = (&row.0[..], &row.1[..]);
            let mut products = Vec::new();
            top.multiply(row, &mut products);
            let n = products.len() / trees.len();
            for (t, tree) in trees.iter().enumerate() {
                let products = products[t * n..][..n].chunks(M);
                for (split, products) in products.enumerate().take(tree.n_splits()) {
                    let list = tree.routers.lookup::<M>(split);
                    let wanted = margins(row, [0.0; M], |column| list.get(column));
                    prop_assert_eq!(products, wanted);
                }
            }
        }
    }

    /// A dense row multiplies the splits of its paths only.
    #[test]
    fn dense_rows_have_no_products(trees in prop::collection::vec(trees(), 1..4)) {
        let top = TopSplits::new(&trees, WIDE);
        let (columns, mut products) = ((0..WIDE as u32).collect::<Vec<_>>(), Vec::new());
        top.multiply((&columns, &vec![1.0; WIDE]), &mut products);
        prop_assert!(trees.iter().all(|tree| tree.n_splits() < 2) || products.is_empty());
    }
}
