//! Options that make trees smaller: fewer steps, weights, labels and nodes.

use std::sync::Arc;

use super::super::regressors::kept_features;
use super::super::train_node::TrainingContext;
use super::prediction::all;
use super::*;
use crate::threads::Pool;

proptest! {
    /// The dropped features contribute least, and are as many as their share allows.
    #[test]
    fn the_least_contributions_are_dropped(data in data(30), weights in prop::collection::vec(-1.0f32..1.0, 2 * (WIDTH + 1)), share in 0.0f64..0.9) {
        let examples = data.examples();
        let ids: Vec<u32> = (0..examples.len() as u32).collect();
        let node = node_data(&examples, &ids);
        let n = node.columns.len();
        let weights: Vec<[f32; 2]> = weights.chunks(2).take(n).map(|w| [w[0], w[1]]).collect();
        let constant = node.columns.keys().iter().position(|&column| column as usize == WIDTH);
        let (kept, mean_dropped) = kept_features(&node.examples, &weights, constant, share);
        let n_rows = ids.len() as f64;
        // The mean over all examples includes zeros.
        let mean = |feature: usize, map: &dyn Fn(f64) -> f64| {
            let value = |i| {
                let (columns, values) = node.examples.row(i);
                let own = columns.iter().zip(values).filter(|&(&column, _)| column as usize == feature);
                own.map(|(_, &x)| f64::from(x)).sum::<f64>()
            };
            (0..ids.len() as u32).map(|i| map(value(i))).sum::<f64>() / n_rows
        };
        let contribution = |feature: usize| {
            let center = mean(feature, &|x| x);
            let variance = mean(feature, &|x| (x - center).powi(2));
            variance * weights[feature].iter().map(|&w| f64::from(w).powi(2)).sum::<f64>()
        };
        let features = || (0..n).filter(|&feature| Some(feature) != constant);
        let all: f64 = features().map(contribution).sum();
        let is_dropped = |feature: &usize| !kept.contains(feature);
        for (j, &found) in mean_dropped.iter().enumerate() {
            let part = |feature: usize| f64::from(weights[feature][j]) * mean(feature, &|x| x);
            let parts: f64 = features().filter(is_dropped).map(part).sum();
            prop_assert!(share == 0.0 || (f64::from(found) - parts).abs() < 1e-5);
        }
        let dropped: f64 = features().filter(is_dropped).map(contribution).sum();
        prop_assert!(dropped <= share * all + 1e-9);
        prop_assert!(!kept.contains(&constant.unwrap()));
        let least_kept = kept.iter().map(|&f| contribution(f)).fold(f64::INFINITY, f64::min);
        prop_assert!(features().filter(is_dropped).all(|f| contribution(f) <= least_kept));
        prop_assert!(kept.is_empty() || dropped + least_kept > share * all - 1e-9 || share == 0.0);
    }

    /// A node takes as many passes as `max_updates` allows, and at least one.
    #[test]
    fn steps_are_bounded(data in data(60), max_updates in 1u32..150) {
        let (examples, control) = (data.examples(), control());
        let params = Params { max_updates: Some(max_updates), n_epochs: 5, ..params() };
        let context = TrainingContext { examples: &examples, params: &params, is_dense: false, control: &control, copies: Pool::default() };
        let ids: Vec<u32> = (0..examples.len() as u32).collect();
        let split = context.train(&ids, 1).unwrap();
        let (n, most) = (ids.len(), max_updates as usize);
        let epochs = if n > most { 1 } else { (most / n).min(5) };
        prop_assert!(epochs == 1 || epochs * n <= most);
        prop_assert_eq!(split.curve.len(), epochs);
        let mut sent: Vec<u32> = split.children.iter().flat_map(|child| child.ids.clone()).collect();
        sent.sort_unstable();
        sent.dedup();
        prop_assert_eq!(sent, ids.clone());
        let unbounded = Params { max_updates: None, ..params.clone() };
        let context = TrainingContext { params: &unbounded, copies: Pool::default(), ..context };
        let other = context.train(&ids, 1).unwrap();
        prop_assert!(epochs < 5 || other == split);
    }
}

/// A slim tree is smaller, has no label far below the most frequent one of its leaf, and survives a
/// round trip through bytes.
#[test]
fn slim_trees_drop_rare_labels() {
    let data = fixed(200, false);
    let fit = |slim_trees| {
        let params = Params {
            max_nodes: 10_000,
            slim_trees,
            keep_statistics: false,
            ..params()
        };
        let ldsm = data.fit(&params);
        let bytes = ldsm.to_bytes().unwrap();
        let loaded = Ldsm::from_bytes(&bytes).unwrap();
        assert_eq!(all_bits(&loaded), all_bits(&ldsm));
        assert_eq!(all(&loaded, &data), all(&ldsm, &data));
        (bytes.len(), ldsm)
    };
    let ((n_whole, _), (n_slim, slim)) = (fit(false), fit(true));
    assert!(n_slim < n_whole);
    for tree in &slim.trees {
        for leaf in 0..tree.labels_each.len() as u32 {
            let counts = histogram(tree, leaf).into_iter().map(|(_, count)| count);
            let most = counts.clone().fold(0.0, f32::max);
            // The threshold is 0.3, but counts are rounded.
            assert!(counts.into_iter().all(|count| count > 0.29 * most));
        }
    }
}

#[test]
fn statistics_do_not_change_trees() {
    let data = fixed(200, false);
    let with = data.fit(&params());
    let without = data.fit(&Params {
        keep_statistics: false,
        ..params()
    });
    assert!(without.trees.iter().all(|tree| tree.statistics.is_none()));
    let stripped = with.trees.into_iter().map(|mut tree| {
        Arc::make_mut(&mut tree).statistics = None;
        bits_of(&tree)
    });
    let stripped: Vec<String> = stripped.collect();
    assert_eq!(stripped, all_bits(&without));
    let named = |report: &crate::file::Report, name: &str| report.get::<f64>(name).is_some();
    let reports = without.reports();
    assert!(reports.iter().all(|report| !named(report, "n_examples")));
    assert!(reports
        .iter()
        .all(|report| report.get::<u32>("depth").is_some()));
}

/// Only leaves of a higher priority than the least are split.
#[test]
fn min_priority_bounds_the_splits() {
    let data = fixed(300, false);
    let params = Params {
        max_nodes: 100_000,
        min_priority: 15.0,
        ..params()
    };
    let ldsm = data.fit(&params);
    for tree in &ldsm.trees {
        let priority = |id: usize| {
            let labels = statistics(tree).labels.get(id).iter();
            let counts = labels.map(|&(_, count)| f64::from(count));
            counts.clone().sum::<f64>() - counts.fold(0.0, f64::max)
        };
        let least = f64::min(12.0, 0.01 * priority(0));
        for id in 0..tree.len() {
            let is_split = tree.children(NodeId(id as u32)).is_some();
            assert!(!is_split || priority(id) > least);
        }
    }
    assert!(ldsm.trees.iter().all(|tree| tree.len() > 5));
}
