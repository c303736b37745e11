//! Growth and traversal of trees.

use std::collections::BTreeMap;

use super::super::grow::grow;
use super::super::predict::Traversal;
use super::super::train_node::TrainingContext;
use super::super::tree::directions;
use super::*;
use crate::data::RaggedRows;
use crate::threads::{with_threads, Pool};

/// Returns all nodes that a row visits, in the order of a depth-first traversal.
pub(super) fn nodes_of(tree: &Tree, row: &RowBuffer, width: usize) -> Vec<NodeId> {
    let m = tree.arity as usize;
    let (mut open, mut met) = (vec![Tree::ROOT], Vec::new());
    while let Some(id) = open.pop() {
        met.push(id);
        let Some(first) = tree.children(id) else {
            continue;
        };
        let (columns, weights) = regressors(tree, id, width);
        let mut full = vec![0.0; width * m];
        for (&column, weights) in columns.iter().zip(weights.chunks(m)) {
            full[column as usize * m..][..m].copy_from_slice(weights);
        }
        let mut margins = vec![0.0f32; m];
        for (&column, &x) in row.columns.iter().zip(&row.values) {
            for (j, margin) in margins.iter_mut().enumerate() {
                *margin += full[column as usize * m + j] * x;
            }
        }
        let reached = directions(&margins);
        let children = (0..m as u32).rev().filter(|j| reached >> j & 1 == 1);
        open.extend(children.map(|j| NodeId(first.0 + j)));
    }
    met
}

fn growings() -> impl Strategy<Value = Params> {
    (2u32..5, 1u32..40, any::<bool>(), 0u64..100).prop_map(|(arity, max_nodes, is_slow, seed)| {
        Params {
            arity,
            max_nodes,
            learning_rate: if is_slow { 0.1 } else { 0.5 },
            seed,
            ..params()
        }
    })
}

fn grown(data: &Data, params: &Params, ahead: usize, n_threads: usize) -> Tree {
    let (examples, control) = (data.examples(), control());
    let context = TrainingContext {
        examples: &examples,
        params,
        is_dense: examples.filled() > 0.5,
        control: &control,
        copies: Pool::default(),
    };
    let rows = (0..examples.len() as u32).collect();
    with_threads(n_threads, |_| {
        grow(&context, rows, params.seed, ahead).unwrap()
    })
    .unwrap()
}

fn impurity(tree: &Tree, id: usize) -> f32 {
    let counts = statistics(tree).labels.get(id).iter();
    let counts = counts.map(|&(_, count)| count);
    counts.clone().sum::<f32>() - counts.fold(0.0, f32::max)
}

fn prepared(data: &Data, params: &Params) -> Vec<RowBuffer> {
    let preparation = data.preparation(params);
    let rows = (0..data.len()).map(|i| {
        let mut row = RowBuffer::default();
        preparation.read(&data.rows(), i, &mut row);
        row
    });
    rows.collect()
}

fn leaves_of(tree: &Tree, row: &RowBuffer, width: usize) -> Vec<NodeId> {
    let mut nodes = nodes_of(tree, row, width);
    nodes.retain(|&id| tree.children(id).is_none());
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The statistics of a tree are those of all examples sent through it again.
    #[test]
    fn statistics_count_the_examples(params in growings(), data in data(60)) {
        let tree = grown(&data, &params, 1, 1);
        let n = tree.len();
        let m = params.arity as usize;
        prop_assert!(n <= params.max_nodes.max(1) as usize && n % m == 1 % m);
        let rows = prepared(&data, &params);
        let (mut counts, mut weights, mut labels) = (vec![0u32; n], vec![0.0; n], vec![BTreeMap::new(); n]);
        for i in data.present() {
            let nodes = nodes_of(&tree, &rows[i], WIDTH + 1);
            prop_assert!(nodes.iter().any(|&id| tree.children(id).is_none()));
            for id in nodes {
                counts[id.at()] += 1;
                weights[id.at()] += f64::from(data.weight(i));
                for label in data.labels_of(i) {
                    *labels[id.at()].entry(label).or_insert(0.0) += data.weight(i);
                }
            }
        }
        let known = statistics(&tree);
        prop_assert_eq!(&known.weights, &weights);
        let (parents, depths) = (tree.parents(), tree.report().get::<u32>("depth").unwrap());
        let mut children = BTreeSet::from([Tree::ROOT]);
        for (id, labels) in labels.iter().enumerate() {
            let labels: Vec<(u32, f32)> = labels.iter().map(|(&k, &n)| (k, n)).collect();
            prop_assert_eq!(known.labels.get(id), &labels);
            if let Node::Leaf(leaf) = tree.node(NodeId(id as u32)) {
                prop_assert_eq!(&histogram(&tree, leaf), &labels);
                let mass: f32 = labels.iter().map(|&(_, n)| n).sum();
                let leaf = leaf as usize;
                prop_assert!(is_near(tree.inverse_masses[leaf].into(), mass.recip().into(), 1e-6));
                let each = f64::from(mass) / weights[id];
                prop_assert!(is_near(tree.labels_each[leaf].into(), each, 1e-6));
            }
            let Some(first) = tree.children(NodeId(id as u32)) else {
                prop_assert!(known.curves.get(id).is_empty());
                prop_assert!(known.objectives[id].terms.j.is_nan());
                continue;
            };
            prop_assert_eq!(known.curves.get(id).len(), params.n_epochs as usize);
            prop_assert!(known.objectives[id].terms.j.is_finite());
            for j in 0..m {
                let child = first.at() + j;
                prop_assert!(children.insert(NodeId(child as u32)));
                prop_assert_eq!(parents[child], NodeId(id as u32));
                prop_assert!(counts[child] > 0 && counts[child] < counts[id]);
                prop_assert_eq!(depths[child], depths[id] + 1);
            }
        }
        prop_assert_eq!(children.len(), n);
        prop_assert_eq!(parents[0], NodeId::NONE);
    }

    /// The leaf with the most labels besides its most frequent one is split first, and a smaller tree
    /// is the start of a larger one.
    #[test]
    fn leaves_are_split_by_priority(params in growings(), data in data(60)) {
        let all = grown(&data, &Params { max_nodes: 10_000, ..params.clone() }, 1, 1);
        let small = grown(&data, &params, 1, 1);
        let n = small.len();
        let m = params.arity as usize;
        prop_assert!(n == all.len() || n + m > params.max_nodes as usize);
        prop_assert_eq!(&small.parents()[..], &all.parents()[..n]);
        let (known, known_of_all) = (statistics(&small), statistics(&all));
        for id in (0..n as u32).map(NodeId) {
            prop_assert_eq!(known.labels.get(id.at()), known_of_all.labels.get(id.at()));
            if small.children(id).is_some() {
                prop_assert_eq!(small.node(id), all.node(id));
                prop_assert_eq!(regressors(&small, id, WIDTH + 1), regressors(&all, id, WIDTH + 1));
                prop_assert_eq!(known.curves.get(id.at()), known_of_all.curves.get(id.at()));
            }
        }
        let split: BTreeMap<u32, usize> = (0..all.len())
            .filter_map(|id| Some((all.children(NodeId(id as u32))?.0, id)))
            .collect();
        let order: Vec<(u32, usize)> = split.into_iter().collect();
        for (at, &(first, id)) in order.iter().enumerate() {
            let key = |id: usize| (impurity(&all, id), std::cmp::Reverse(id));
            for &(_, later) in order[at + 1..].iter().filter(|&&(_, later)| later < first as usize) {
                prop_assert!(key(id) > key(later), "{id} before {later}");
            }
        }
    }

    /// Single rows look columns up, and rows of a block share the spread weights.
    #[test]
    fn a_traversal_reaches_the_leaves(params in growings(), data in data(60), unseen in data(30)) {
        let tree = grown(&data, &params, 1, 1);
        let rows = prepared(&unseen, &params);
        let (mut together, mut alone) = (vec![Vec::new(); unseen.len()], Vec::new());
        let (mut traversal, mut block) = (Traversal::default(), RaggedRows::default());
        rows.iter().for_each(|row| block.push(row.columns.iter().copied(), &row.values));
        traversal.mark_full(&block, 0..unseen.len() as u32);
        traversal.run(&tree, &block, 0..unseen.len() as u32, WIDTH + 1, &[], |rows, leaf| {
            rows.iter().for_each(|&row| together[row as usize].push(Node::Leaf(leaf)));
        });
        for (i, row) in rows.iter().enumerate() {
            block.clear();
            block.push(row.columns.iter().copied(), &row.values);
            prop_assert_eq!(block.row(0), (&row.columns[..], &row.values[..]));
            alone.clear();
            traversal.mark_full(&block, 0..1);
            traversal.run(&tree, &block, 0..1, WIDTH + 1, &[], |_, leaf| alone.push(Node::Leaf(leaf)));
            let reached = leaves_of(&tree, row, WIDTH + 1).into_iter().map(|id| tree.node(id));
            prop_assert_eq!(&alone, &reached.collect::<Vec<_>>());
            prop_assert_eq!(&alone, &together[i]);
        }
    }

    #[test]
    fn threads_change_nothing(growing in growings(), data in data(60)) {
        let params = Params {
            n_estimators: 3,
            ..growing
        };
        let wanted = all_bits(&data.fit(&params));
        for n_threads in [2, 3] {
            let mut ldsm = Ldsm::create(params.clone(), N_CLASSES, true).unwrap();
            ldsm.fit(&data.batch(), with(n_threads, false), &control()).unwrap();
            prop_assert!(all_bits(&ldsm) == wanted);
        }
        // Add one tree after the other.
        let mut ldsm = Ldsm::create(Params { n_estimators: 1, ..params.clone() }, N_CLASSES, true).unwrap();
        for n in 1..=3 {
            ldsm.params.n_estimators = n;
            ldsm.fit(&data.batch(), with(1, true), &control()).unwrap();
        }
        prop_assert!(all_bits(&ldsm) == wanted);
        // Fit again from the start.
        ldsm.fit(&data.batch(), with(1, false), &control()).unwrap();
        prop_assert!(all_bits(&ldsm) == wanted);
    }
}

#[test]
fn trees_differ_by_their_seeds() {
    let data = fixed(150, false);
    let plain = data.fit(&params());
    assert!(plain.trees.iter().all(|tree| tree.len() > 5));
    assert_ne!(bits_of(&plain.trees[0]), bits_of(&plain.trees[1]));
    let counts = |tree: &Tree| statistics(tree).labels.get(0).to_vec();
    assert_eq!(counts(&plain.trees[0]), counts(&plain.trees[1]));
}

#[test]
fn an_interrupted_fit_changes_nothing() {
    let data = fixed(100, false);
    let mut ldsm = data.fit(&Params {
        beta: 0.5,
        ..params()
    });
    let other = fixed(90, true);
    for (n_threads, adds) in [(1, false), (2, true)] {
        let before = format!("{ldsm:?}");
        ldsm.params.n_estimators = 100_000;
        let control = control();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while control.progress().done == 0 {
                    std::thread::yield_now();
                }
                control.stop();
            });
            let outcome = ldsm.fit(&other.batch(), with(n_threads, adds), &control);
            assert!(matches!(outcome, Err(Error::Stopped)), "{outcome:?}");
        });
        ldsm.params.n_estimators = 2;
        assert_eq!(format!("{ldsm:?}"), before);
    }
}
