//! Files that no model has written are refused.

use super::*;

/// Changes the arrays and metadata of the bundle nested at `prefix`.
fn inside(bundle: Bundle, prefix: &[&str], change: &dyn Fn(&mut Bundle)) -> Bundle {
    let mut bundle = bundle;
    match prefix.split_first() {
        None => change(&mut bundle),
        Some((first, rest)) => {
            let inner = bundle.unnest(first).unwrap();
            bundle.nest(first, inside(inner, rest, change));
        }
    }
    bundle
}

fn refused(model: &RecallTree, prefix: &[&str], what: &str, change: &dyn Fn(&mut Bundle)) {
    let bundle = inside(model.to_bundle(), prefix, change);
    let result = RecallTree::from_bundle(bundle);
    assert!(
        matches!(result, Err(Error::ModelFile(_))),
        "{what} was accepted"
    );
}

fn changed<T>(name: &'static str, change: impl Fn(&mut Vec<T>)) -> impl Fn(&mut Bundle)
where
    T: crate::file::Element,
    Vec<T>: Into<Array>,
{
    move |bundle| {
        let mut values: Vec<T> = bundle.take_any(name).unwrap();
        change(&mut values);
        bundle.put(name, values);
    }
}

const MEMBER: &str = "member0";
const TREE: [&str; 2] = [MEMBER, "tree"];
const SCORERS: [&str; 2] = [MEMBER, "scorers"];
const WEIGHTS: [&str; 3] = [MEMBER, "scorers", "by_column"];

/// Checks that files are refused with any of `wrong` in the middle of one of the arrays `names`, or
/// with one of them too short.
fn refuse_values<T>(model: &RecallTree, prefix: &[&str], names: &[&'static str], wrong: &[T])
where
    T: crate::file::Element + Copy + std::fmt::Debug,
    Vec<T>: Into<Array>,
{
    for &name in names {
        for &wrong in wrong {
            let change = changed::<T>(name, |values| {
                let middle = values.len() / 2;
                values[middle] = wrong;
            });
            refused(model, prefix, &format!("{name} {wrong:?}"), &change);
        }
        let shorter = changed::<T>(name, |values| values.truncate(values.len() - 1));
        refused(model, prefix, name, &shorter);
    }
}

const INVALID_COUNTS: [f64; 4] = [-1.0, f64::NAN, f64::INFINITY, 1e300];
const INVALID_NUMBERS: [u32; 2] = [1 << 30, u32::MAX];

#[test]
fn damaged_trees_are_refused() {
    type Change = fn(&mut Vec<u32>);
    let model = model(&params(), &fixed(200));
    let counts = [
        "nodes.counts.total",
        "nodes.counts.mass",
        "nodes.parent_recalled",
        "nodes.trained",
        "nodes.counts.seen",
    ];
    refuse_values(&model, &TREE, &counts, &INVALID_COUNTS);
    refuse_values(&model, &TREE, &["nodes.entropy"], &INVALID_COUNTS[1..]);
    for (name, wrong) in [("nodes.counts.total", 1e-3), ("nodes.counts.mass", 1e30)] {
        let change = changed::<f64>(name, |values| values[0] = wrong);
        refused(&model, &TREE, name, &change);
    }
    let numbers = [
        "nodes.counts.seen.key",
        "nodes.counts.top",
        "nodes.first_child",
        "nodes.counts.seen.length",
        "nodes.counts.top.length",
    ];
    refuse_values(&model, &TREE, &numbers, &INVALID_NUMBERS);
    // Counts in single precision, as in old files, would stop at 2^24.
    refused(&model, &TREE, "a count in single precision", &|bundle| {
        let values: Vec<f64> = bundle.take("nodes.trained").unwrap();
        bundle.put("nodes.trained", vec![0.0f32; values.len()]);
    });
    refused(
        &model,
        &[MEMBER, "tree", "routers"],
        "a router without a node",
        &|bundle| {
            let mut rows: Vec<u8> = bundle.take("weights.is_row").unwrap();
            rows.push(0);
            bundle.put("weights.is_row", rows);
            let mut lengths: Vec<u32> = bundle.take("weights.table.length").unwrap();
            lengths.push(0);
            bundle.put("weights.table.length", lengths);
        },
    );
    // Children that do not form a tree, and candidates that are not distinct labels in order.
    let changes: [(&str, &'static str, Change); 7] = [
        ("a root without children", "nodes.first_child", |first| {
            first[0] = 0;
        }),
        ("two parents of a child", "nodes.first_child", |first| {
            let last = first.len() - 1;
            first[last] = first[0];
        }),
        ("a child beyond the nodes", "nodes.first_child", |first| {
            let last = first.len() - 1;
            first[last] = first.len() as u32;
        }),
        ("a cycle", "nodes.first_child", |first| first.swap(0, 3)),
        ("a candidate twice", "nodes.counts.top", |labels| {
            labels[1] = labels[0];
        }),
        (
            "a candidate that is not a label",
            "nodes.counts.top",
            |labels| {
                labels[2] = u32::MAX;
            },
        ),
        ("candidates out of order", "nodes.counts.top", |labels| {
            labels[..3].reverse();
        }),
    ];
    for (what, name, change) in changes {
        refused(&model, &TREE, what, &changed(name, change));
    }
}

#[test]
fn damaged_scorers_are_refused() {
    let stream = fixed(200);
    let plain = model(&params(), &stream);
    let columns = [
        "columns.head.length",
        "columns.tail.length",
        "columns.tail.key",
    ];
    refuse_values(&plain, &WEIGHTS, &columns, &INVALID_NUMBERS);
    refuse_values(&plain, &SCORERS, &["trained"], &INVALID_COUNTS);
    let index = [MEMBER, "label_index"];
    refuse_values(&plain, &index, &["labels"], &[N_CLASSES as u32, u32::MAX]);
    let relabel = changed::<u32>("labels", |labels| labels[0] = labels[1]);
    refused(&plain, &index, "a label with two ids", &relabel);
    refused(&plain, &SCORERS, "passes", &|bundle| {
        let _: f64 = bundle.take_meta("passes").unwrap();
        bundle.put_meta("passes", &-1.0);
    });
    for (prefix, name, wrong) in [
        (&[MEMBER][..], "n_features", 1000usize),
        (&[], "n_classes", 100_000_000),
    ] {
        refused(&plain, prefix, name, &|bundle| {
            let _: usize = bundle.take_meta(name).unwrap();
            bundle.put_meta(name, &wrong);
        });
    }
    refused(&plain, &SCORERS, "neither layout", &|bundle| {
        bundle.unnest("by_column").unwrap();
        let mut none = Bundle::new("by_column");
        for name in ["head.length", "tail.length", "tail.key"] {
            none.put(&format!("columns.{name}"), Vec::<u32>::new());
        }
        for name in ["head", "tail"] {
            none.put(&format!("columns.{name}"), Vec::<f32>::new());
        }
        bundle.nest("by_column", none);
    });
    // State of the optimizer "nag" that learning cannot have produced.
    let loss = ScorerLoss::Hinge;
    let nag = model(&Params { loss, ..params() }, &stream);
    let regressors = [MEMBER, "scorers", "regressors"];
    for (name, wrong) in [
        ("weights.row.w", [f32::NAN, f32::INFINITY, 3.4e38]),
        ("weights.row.g", [f32::NAN, -1.0, 3.4e38]),
        ("weights.row.s", [-1.0, 1e-30, 1e30]),
        ("span", [-1e30, f32::NEG_INFINITY, f32::NAN]),
    ] {
        refuse_values(&nag, &regressors, &[name], &wrong);
    }
    refuse_values(
        &nag,
        &regressors,
        &["totals.t", "totals.n"],
        &INVALID_COUNTS,
    );
    refused(&nag, &SCORERS, "too few scorers", &|bundle| {
        let mut inner = bundle.unnest("regressors").unwrap();
        for name in ["totals.t", "totals.n"] {
            let values: Vec<f64> = inner.take(name).unwrap();
            inner.put(name, values[1..].to_vec());
        }
        let values: Vec<u8> = inner.take("weights.is_row").unwrap();
        inner.put("weights.is_row", values[1..].to_vec());
        let name = match values[0] {
            0 => "weights.table.length",
            _ => "weights.row.length",
        };
        let lengths: Vec<u32> = inner.take(name).unwrap();
        inner.put(name, lengths[1..].to_vec());
        bundle.nest("regressors", inner);
    });
}

/// 2^24, the largest number to which an f32 counts by ones.
const LIMIT: f64 = 16_777_216.0;

/// Steps shrink with these counts, so the counts must not stop.
#[test]
fn training_counts_exceed_the_limit_of_f32() {
    let stream = fixed(40);
    let near = |values: &mut Vec<f64>| values[0] = LIMIT - 1.0;
    let bundle = model(&params(), &stream).to_bundle();
    let bundle = inside(bundle, &TREE, &changed("nodes.trained", near));
    let bundle = inside(bundle, &SCORERS, &changed("trained", near));
    let mut model = RecallTree::from_bundle(bundle).unwrap();
    for _ in 0..5 {
        let first = stream.one(0);
        model.partial_fit(&first.batch(), 1, &control()).unwrap();
    }
    for name in ["tree/nodes.trained", "scorers/trained"] {
        let name = format!("{MEMBER}/{name}");
        let counts: Vec<f64> = model.to_bundle().take(&name).unwrap();
        assert_eq!(counts[0], LIMIT + 4.0, "{name}");
    }
}

#[test]
fn missing_arrays_are_errors() {
    for loss in [ScorerLoss::Softmax, ScorerLoss::Logistic] {
        let params = Params { loss, ..params() };
        let bundle = model(&params, &fixed(60)).to_bundle();
        for name in bundle.arrays().keys() {
            let mut parts: Vec<&str> = name.split('/').collect();
            let last = parts.pop().unwrap();
            let gone = inside(bundle.clone(), &parts, &|bundle| {
                let array = bundle.arrays()[last].clone();
                match array {
                    Array::U8(_) => drop(bundle.take::<u8>(last)),
                    Array::U32(_) => drop(bundle.take::<u32>(last)),
                    Array::F32(_) => drop(bundle.take::<f32>(last)),
                    _ => drop(bundle.take::<f64>(last)),
                }
            });
            let result = RecallTree::from_bundle(gone);
            assert!(matches!(result, Err(Error::ModelFile(_))), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A changed file is refused, or its model learns and predicts without a panic.
    #[test]
    fn changed_files_cause_no_panic(params in scorings(), changes in prop::collection::vec((0usize..100, 0usize..10_000, 0usize..8), 1..4)) {
        let stream = fixed(80);
        let mut bundle = model(&params, &stream).to_bundle();
        for (which, at, how) in changes {
            let names: Vec<String> = bundle.arrays().keys().cloned().collect();
            let name = &names[which % names.len()];
            let mut parts: Vec<&str> = name.split('/').collect();
            let last = parts.pop().unwrap();
            bundle = inside(bundle, &parts, &|bundle| match bundle.arrays()[last].clone() {
                Array::U8(_) => change_one::<u8>(bundle, last, at, how, &[0, 1, 2, 255]),
                Array::U32(_) => change_one::<u32>(bundle, last, at, how, &[0, 1, 3, u32::MAX]),
                Array::F32(_) => change_one::<f32>(bundle, last, at, how, &[-1.0, f32::NAN, f32::INFINITY, 1e38]),
                _ => change_one::<f64>(bundle, last, at, how, &[-1.0, f64::NAN, 1e300, 0.0]),
            });
        }
        let bytes = bundle.to_bytes().unwrap();
        match Bundle::from_bytes(&bytes).and_then(RecallTree::from_bundle) {
            Ok(mut model) => {
                let beam = beam(3, 1.0);
                for options in [greedy(), beam] {
                    topk(&model, &stream.rows(), 4, &options);
                }
                model.partial_fit(&stream.batch(), 1, &control()).unwrap();
                topk(&model, &stream.rows(), 4, &beam);
                assert_eq!(model.reports().len(), 1);
            }
            Err(error) => prop_assert!(matches!(error, Error::ModelFile(_)), "{error}"),
        }
    }
}

/// Changes, exchanges, removes or repeats one element of an array.
fn change_one<T>(bundle: &mut Bundle, name: &str, at: usize, how: usize, values: &[T; 4])
where
    T: crate::file::Element,
    Vec<T>: Into<Array>,
{
    let mut array: Vec<T> = bundle.take_any(name).unwrap();
    if !array.is_empty() {
        let n = array.len();
        let at = at % n;
        match how {
            0..4 => array[at] = values[how],
            4 => array.swap(at, n - 1),
            5 => array[at] = array[(at + 1) % n],
            6 => drop(array.remove(at)),
            _ => array.push(array[at]),
        }
    }
    bundle.put(name, array);
}
