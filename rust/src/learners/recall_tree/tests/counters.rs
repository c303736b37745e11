//! Counts in long streams and with unequal weights.

use super::files::{changed, inside, MEMBER, SCORERS, TREE};
use super::*;

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

/// Returns labels of one distribution, where three of four examples have one of two labels, with
/// random weights.
fn labels_and_weights(seed: u32, weights: [f32; 2]) -> Stream {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as u32
    };
    let examples: Vec<(u32, u32, u8)> = (0..240)
        .map(|_| {
            (
                if draw() % 4 > 0 {
                    draw() % 2
                } else {
                    2 + draw() % 6
                },
                0,
                4,
            )
        })
        .collect();
    let mut stream = Stream::new(&examples, false, true);
    // `Stream::new` lets labels drift, but these must have one distribution.
    stream.labels = examples.iter().map(|&(label, ..)| label).collect();
    stream.weights = Some((0..240).map(|_| weights[draw() as usize % 2]).collect());
    stream
}

/// Returns mass, total and bound of the root after one pass.
fn root(stream: &Stream) -> (f64, f64, f64) {
    let params = Params {
        max_candidates: Some(2),
        bern_hyper: 1.0,
        // Counts must not fade.
        paper_tree: true,
        ..params()
    };
    let model = model(&params, stream);
    let root = learned(&model).tree.node(RoutingTree::ROOT);
    (root.counts.mass, root.counts.total, f64::from(root.bound))
}

/// The bound takes weights as numbers of examples. With a mean weight of 1 it is close to the bound
/// without weights. Its distance from the recall is that of 240 examples, and it is nearly always
/// below the true recall of 3/4.
#[test]
fn weights_of_mean_one_hardly_change_the_bound() {
    let mut too_high = 0;
    for seed in 0..100 {
        let stream = labels_and_weights(seed, [0.5, 1.5]);
        let (mass, n, bound) = root(&stream);
        assert!((n - 240.0).abs() < 30.0, "{n}");
        let f = mass / n;
        let below = (f * (1.0 - f) / n).sqrt() + 15.0 / (18f64.sqrt() * n);
        assert!((bound - (f - below)).abs() < 1e-6, "{bound} of {f}");
        assert!(bound > 0.55, "the bound {bound} is too low");
        too_high += u32::from(bound > 0.75);

        let unweighted = Stream {
            weights: None,
            ..stream
        };
        assert!((root(&unweighted).2 - bound).abs() < 0.1);
    }
    // The bound is a little more than one deviation lower, so at most one in six exceeds the recall,
    // and some more because of unequal weights.
    assert!(too_high < 25, "{too_high}");
}

#[test]
fn histograms_and_bound_count_weight_three_as_three_examples() {
    let once = labels_and_weights(1, [3.0, 3.0]);
    let (mass, n, bound) = root(&once);
    assert_eq!(n, 720.0);
    let expected = super::super::labels::recall_bound(mass, n, 1.0);
    assert_eq!(bound, f64::from(expected));
    let mut thrice: Vec<u32> = Vec::new();
    for row in 0..240 {
        thrice.extend([row; 3]);
    }
    let params = Params {
        max_candidates: Some(2),
        bern_hyper: 1.0,
        // Counts must not fade.
        paper_tree: true,
        ..params()
    };
    let plain = Stream {
        weights: None,
        ..once
    };
    let mut learner = new_tree(&params, &plain);
    learn(
        &mut learner,
        &mut Mistakes::default(),
        &plain.batch(),
        &thrice,
    );
    let again = learner.1.tree.node(RoutingTree::ROOT);
    assert_eq!((again.counts.mass, again.counts.total), (mass, n));
    assert_eq!(f64::from(again.bound), bound);
}
