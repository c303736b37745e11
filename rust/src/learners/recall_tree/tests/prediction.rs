//! Predictions: their candidates and paths, and their independence of other rows.

use super::super::predict::FrozenTree;
use super::*;
use crate::tree::{Junction, Routers};

/// Collects the log-probability and the terminal of each path from `node` on. A router of score s
/// sends right with the probability 1 / (1 + exp(-2 s)).
fn all_paths(
    look: &impl Fn(u32) -> Junction<f32>,
    node: u32,
    log_p: f64,
    paths: &mut Vec<(f64, u32)>,
) {
    match look(node) {
        Junction::Terminal(terminal) => paths.push((log_p, terminal)),
        Junction::Router {
            router: score,
            children: [left, right],
        } => {
            let log_of = |x: f64| -(-x).exp().ln_1p();
            let odds = 2.0 * f64::from(score);
            all_paths(look, left, log_p + log_of(-odds), paths);
            all_paths(look, right, log_p + log_of(odds), paths);
        }
    }
}

/// Returns the scores of the candidates at the ends of all paths that are at least a tenth as
/// probable as the best. Returns none if the probability of a path is too close to a tenth.
fn exhaustive(
    learner: &OnlineRecallTree,
    look: &impl Fn(u32) -> Junction<f32>,
    frozen: &FrozenTree,
    example: &PathExample,
    path_weight: f64,
) -> Option<BTreeMap<i32, f64>> {
    let (mut paths, mut path) = (Vec::new(), Vec::new());
    all_paths(look, 0, 0.0, &mut paths);
    let best = paths
        .iter()
        .map(|&(log_p, _)| log_p)
        .fold(f64::MIN, f64::max);
    let mut workspace = ScorerWorkspace::default();
    let mut scores = BTreeMap::new();
    for (log_p, terminal) in paths {
        let beyond = log_p - best - 0.1f64.ln();
        if beyond.abs() < 1e-4 {
            return None;
        }
        if beyond > 0.0 {
            learner.tree.path_to(NodeId(terminal), &mut path);
            let candidates = frozen.candidates.get(terminal as usize);
            let input = ScorerInput {
                example,
                candidates,
                path: &path,
            };
            learner.scorers.score(&input, &mut workspace);
            for (&id, &score) in candidates.iter().zip(&workspace.scores) {
                let score = f64::from(score) + path_weight * log_p;
                let label = learner.label_index.keys()[id.at()] as i32;
                let known = scores.entry(label).or_insert(score);
                *known = known.max(score);
            }
        }
    }
    Some(scores)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_wide_beam_equals_an_exhaustive_search(params in scorings(), stream in streams(60), path_weight in 0u8..3) {
        prop_assume!(has_weight(&stream));
        let model = model(&params, &stream);
        let learner = learned(&model);
        let frozen = learner.frozen(&control()).unwrap();
        let rows = stream.rows();
        let (block, examples) = read_block(&model.members[0].preparation, learner, &rows);
        let path_weight = f64::from(path_weight);
        let (labels, scores) = topk(&model, &rows, N_CLASSES, &beam(1024, path_weight));
        for (i, example) in examples.iter().enumerate() {
            let routers = Routers::<RoutingTree>::Frozen(&frozen.routers);
            let look = routers.look(&block, i, 1.0);
            let Some(expected) = exhaustive(learner, &look, &frozen, example, path_weight) else {
                continue;
            };
            let span = i * N_CLASSES..(i + 1) * N_CLASSES;
            let found = labels[span.clone()].iter().copied().zip(scores[span].iter().copied());
            let found: BTreeMap<i32, f32> = found.filter(|&(label, _)| label >= 0).collect();
            prop_assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found, expected);
            for (label, score) in found {
                let wanted = expected[&label];
                prop_assert!((f64::from(score) - wanted).abs() < 1e-4 * (1.0 + wanted.abs()), "{} {}", score, wanted);
            }
        }
    }

    #[test]
    fn greedy_predictions_rank_the_candidates_at_the_end(params in scorings(), stream in streams(150)) {
        prop_assume!(has_weight(&stream));
        let model = model(&params, &stream);
        let learner = learned(&model);
        let rows = stream.rows();
        let (labels, scores) = topk(&model, &rows, N_CLASSES, &greedy());
        let (mut path, mut candidates) = (Vec::new(), Vec::new());
        let (mut is_known, mut workspace) = (Vec::new(), ScorerWorkspace::default());
        for (i, example) in read_block(&model.members[0].preparation, learner, &rows).1.iter().enumerate() {
            let Some(end) = greedy_end(learner, example) else {
                continue;
            };
            learner.tree.path_to(end, &mut path);
            candidates.clear();
            learner.tree.candidates_at_end(end, &mut is_known, &mut candidates);
            // The candidates of the end come first, then others from the nodes above.
            let own = learner.tree.node(end).counts.candidates();
            prop_assert!(candidates.starts_with(own));
            prop_assert!(!params.paper_tree || candidates == own);
            let distinct: BTreeSet<LocalId> = candidates.iter().copied().collect();
            prop_assert_eq!(distinct.len(), candidates.len());
            prop_assert!(candidates.len() <= params.candidates(N_CLASSES, uniform_bits(N_CLASSES)));
            prop_assert!(!is_known.contains(&true));
            let input = ScorerInput { example, candidates: &candidates, path: &path };
            learner.scorers.score(&input, &mut workspace);
            let expected = candidates.iter().map(|&c| learner.label_index.keys()[c.at()] as i32);
            let expected: BTreeMap<i32, f32> = expected.zip(workspace.scores.iter().copied()).collect();
            let span = i * N_CLASSES..(i + 1) * N_CLASSES;
            let (labels, scores) = (&labels[span.clone()], &scores[span]);
            let n = expected.len();
            prop_assert!(labels[n..].iter().all(|&label| label == -1));
            prop_assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
            for (label, score) in labels[..n].iter().zip(scores) {
                let wanted = expected.get(label).copied().unwrap_or(f32::NAN);
                prop_assert!((score - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()), "{score} {wanted}");
            }
        }
    }

    #[test]
    fn predictions_do_not_depend_on_other_rows_or_threads(params in scorings(), stream in streams(100), size in 1u32..4) {
        prop_assume!(has_weight(&stream));
        let model = model(&params, &stream);
        let beam = beam(size, 0.5);
        let top = |rows: &Rows<'_>, n_threads| model.predict_topk(&Query::new(rows, n_threads, &control()).with(&beam), 4).unwrap();
        let (labels, scores) = top(&stream.rows(), 1);
        let again = top(&stream.rows(), 3);
        prop_assert_eq!(&again.0, &labels);
        prop_assert_eq!(bits(&again.1), bits(&scores));
        for i in 0..stream.len() {
            let (label, score) = top(&stream.one(i).rows(), 1);
            prop_assert_eq!(&label[..], &labels[4 * i..4 * i + 4]);
            prop_assert_eq!(bits(&score), bits(&scores[4 * i..4 * i + 4]));
        }
    }

    #[test]
    fn progressive_error_and_recall_are_those_of_predictions_before_learning(params in scorings(), stream in streams(120)) {
        let mut model = new_model(&params);
        let (mut all, mut wrong, mut missed) = (0.0, 0.0, 0.0);
        for i in stream.batch().present() {
            let i = i as usize;
            let (one, weight) = (stream.one(i), stream.weight(i));
            let found = match model.members[..] {
                [] => vec![-1],
                _ => topk(&model, &one.rows(), N_CLASSES, &greedy()).0,
            };
            all += weight;
            if found[0] != stream.labels[i] as i32 {
                wrong += weight;
            }
            if !found.contains(&(stream.labels[i] as i32)) {
                missed += weight;
            }
            model.partial_fit(&one.batch(), 1, &control()).unwrap();
            let recall = model.summary().get::<f64>("progressive_recall").unwrap();
            prop_assert_eq!(recall, vec![1.0 - missed / all], "example {}", i);
            prop_assert_eq!(model.progressive_loss(), Some(wrong / all), "example {}", i);
        }
    }

    #[test]
    fn a_seed_determines_the_model_and_a_loaded_model_continues_exactly(params in scorings(), stream in streams(120), seed in 0u64..3) {
        prop_assume!(has_weight(&stream));
        let mut params = params;
        params.seed = seed;
        let fitted = |n_threads| {
            let mut model = new_model(&params);
            fit(&mut model, &stream.batch(), n_threads).unwrap();
            model
        };
        let mut model = fitted(1);
        let bytes = model.to_bytes().unwrap();
        prop_assert!(fitted(3).to_bytes().unwrap() == bytes);
        let mut again = RecallTree::from_bytes(&bytes).unwrap();
        prop_assert!(again.to_bytes().unwrap() == bytes);
        for _ in 0..2 {
            let top = |model: &RecallTree| {
                let (labels, scores) = topk(model, &stream.rows(), 5, &beam(2, 0.5));
                (labels, bits(&scores))
            };
            prop_assert!(top(&model) == top(&again));
            model.partial_fit(&stream.batch(), 1, &control()).unwrap();
            again.partial_fit(&stream.batch(), 2, &control()).unwrap();
            prop_assert!(again.to_bytes().unwrap() == model.to_bytes().unwrap());
        }
        fit(&mut model, &stream.batch(), 1).unwrap();
        prop_assert!(model.to_bytes().unwrap() == bytes);
    }
}

#[test]
fn a_model_for_prediction_predicts_the_same() {
    for is_dense in [false, true] {
        let examples: Vec<(u32, u32, u8)> =
            (0..200).map(|i| (i * i % 8, i * 37 % 1999, 4)).collect();
        let stream = Stream::new(&examples, is_dense, false);
        for loss in [ScorerLoss::Softmax, ScorerLoss::Logistic] {
            let model = model(&Params { loss, ..params() }, &stream);
            let bundle = model.to_prediction_bundle(false, &control()).unwrap();
            let compact = RecallTree::from_bundle(bundle).unwrap();
            let top = |model: &RecallTree| {
                let (labels, scores) = topk(model, &stream.rows(), 5, &beam(2, 0.5));
                (labels, bits(&scores))
            };
            assert!(top(&model) == top(&compact), "{loss:?} {is_dense}");
        }
    }
}
