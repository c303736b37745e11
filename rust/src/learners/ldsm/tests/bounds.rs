//! The bounds of Section 3 of the paper, on the exact shares of a node.
//!
//! Two of them do not hold as they are printed, and are tested as they can be proved.
//!
//! Lemmas 1 and 2, upper bound: with all examples sent to the same n children J is
//! (1 - lambda1) n (M - n) + lambda2 (n - 1), which is beyond lambda2 (M - 1) unless
//! lambda2 >= (1 - lambda1) n. So lambda2 >= (1 - lambda1) (M - 1) is needed, which
//! any lambda1 >= 1 grants.
//!
//! Lemma 4: the proof has sum_{j<l} |P_j - P_l| at most (M - 1)/2 sum_j P_j, while it
//! can be twice that; the bound is negative for a perfect split. With C the class
//! integrity of a label whose largest share is p and whose shares add up to s >= 1,
//! C <= (M - 1) p + (M - 3) (s - p), and so
//!
//! ```text
//! alpha <= (J - B + lambda1 (M - 1)) 2 / (M min(lambda2 - lambda1 (M - 3), 2 lambda1))
//! ```
//!
//! wherever Lemma 2 holds, with equality at perfect splits.

use super::super::objective::{NodeStats, NodeStatsSums};
use super::*;

const ROUNDING: f64 = 1e-9;

/// Label bits, weight, margins, a child that it reaches for certain.
type Example = (u8, u8, [u8; 8], usize);

fn examples() -> impl Strategy<Value = Vec<Example>> {
    let example = (1u8..32, 1u8..8, prop::array::uniform8(0u8..9), 0usize..8);
    prop::collection::vec(example, 1..8)
}

fn labels_of(bits: u8) -> Vec<u32> {
    (0..5).filter(|k| bits >> k & 1 == 1).collect()
}

/// Mostly 0 or 1, after the cut.
fn margins<const M: usize>(levels: [u8; 8]) -> [f32; M] {
    const MARGINS: [f32; 9] = [-3.0, -0.5, 0.0, 0.0, 0.25, 0.75, 1.0, 1.0, 1.5];
    std::array::from_fn(|j| MARGINS[levels[j] as usize])
}

fn stats<const M: usize, const P: usize>(
    lambdas: Lambdas,
    examples: &[(Vec<u32>, f64, [f32; M])],
) -> NodeStats {
    let mut exact = NodeStatsSums::<M, P>::new(lambdas, 5);
    for (labels, weight, margins) in examples {
        exact.add(labels, *weight, margins);
    }
    exact.stats()
}

fn check<const M: usize, const P: usize>(
    lambdas: Lambdas,
    examples: &[Example],
    sure: bool,
) -> std::result::Result<(), TestCaseError> {
    let read = |&(bits, weight, levels, child): &Example| {
        let mut margins = margins::<M>(levels);
        if sure {
            margins[child % M] = 1.0;
        }
        (labels_of(bits), f64::from(weight) / 4.0, margins)
    };
    let examples: Vec<_> = examples.iter().map(read).collect();
    let NodeStats {
        terms,
        balancedness,
        purity,
    } = stats::<M, P>(lambdas, &examples);
    let Lambdas {
        integrity: l1,
        penalty: l2,
    } = lambdas;
    let m = M as f64;

    // The definitions.
    let (mut seen, mut of_label) = (0.0, [([0.0; M], 0.0); 5]);
    for (labels, weight, margins) in &examples {
        for &label in labels {
            seen += weight;
            of_label[label as usize].1 += weight;
            for (sum, margin) in of_label[label as usize].0.iter_mut().zip(margins) {
                *sum += weight * f64::from(margin.clamp(0.0, 1.0));
            }
        }
    }
    let (mut p, mut alpha) = ([0.0; M], 0.0);
    for (sums, n) in of_label.iter().filter(|(_, n)| *n > 0.0) {
        let pi = n / seen;
        let own = sums.map(|sum| sum / n);
        let all: f64 = own.iter().sum();
        for j in 0..M {
            p[j] += pi * own[j];
            alpha += pi * own[j].min(all - own[j]) / m;
        }
    }
    let mean = p.iter().sum::<f64>() / m;
    let beta = p.iter().map(|p| (p - mean).abs()).fold(0.0, f64::max);
    prop_assert!(is_near(balancedness, beta, 1e-12), "{balancedness} {beta}");
    prop_assert!(is_near(purity, alpha, 1e-12), "{purity} {alpha}");

    let lowest = -l1 * (m - 1.0);
    let is_penalised = l2 > l1 * (m - 3.0);
    if is_penalised {
        prop_assert!(terms.j >= lowest - ROUNDING, "Lemma 2, below: {terms:?}");
    }
    if l2 >= (1.0 - l1) * (m - 1.0) {
        prop_assert!(
            terms.j <= l2 * (m - 1.0) + ROUNDING,
            "Lemma 2, above: {terms:?}"
        );
    }
    let j_purity = l2 * terms.penalty - l1 * terms.integrity;
    prop_assert!(
        balancedness <= terms.j - j_purity + ROUNDING,
        "Lemma 3: {terms:?}"
    );
    if is_penalised && sure {
        let scale = m * (l2 - l1 * (m - 3.0)).min(2.0 * l1) / 2.0;
        let bound = terms.j - terms.balance - lowest;
        prop_assert!(
            purity * scale <= bound + ROUNDING,
            "Lemma 4: {purity} {terms:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn shares_keep_the_bounds(
        integrity in 0.0f64..4.0, ratio in 0.0f64..3.0, examples in examples(), sure in any::<bool>(),
    ) {
        let lambdas = |arity: usize| Lambdas {
            integrity,
            // About what the lemmas ask for.
            penalty: integrity * (ratio + arity as f64 - 3.5).max(0.0),
        };
        check::<2, 1>(lambdas(2), &examples, sure)?;
        check::<3, 3>(lambdas(3), &examples, sure)?;
        check::<4, 6>(lambdas(4), &examples, sure)?;
        check::<5, 10>(lambdas(5), &examples, sure)?;
        check::<8, 28>(lambdas(8), &examples, sure)?;
    }
}

/// Every way of sending four labels on, each to some children.
fn every_split<const M: usize, const P: usize>(lambdas: Lambdas, n_labels: usize) {
    let n_sets = (1usize << M) - 1;
    let lowest = -lambdas.integrity * (M as f64 - 1.0);
    let mut n_perfect = 0;
    for number in 0..n_sets.pow(n_labels as u32) {
        let sets: Vec<usize> = (0..n_labels)
            .map(|label| number / n_sets.pow(label as u32) % n_sets + 1)
            .collect();
        let examples = sets.iter().enumerate().map(|(label, set)| {
            let margins = std::array::from_fn(|j| (set >> j & 1) as f32);
            (vec![label as u32], 1.0, margins)
        });
        let stats = stats::<M, P>(lambdas, &examples.collect::<Vec<_>>());
        let shares = (0..M).map(|j| sets.iter().filter(|&&set| set == 1 << j).count());
        let is_perfect = shares.into_iter().all(|n| n * M == n_labels);
        n_perfect += usize::from(is_perfect);
        let is_lowest = stats.terms.j < lowest + 1e-9;
        assert_eq!(is_lowest, is_perfect, "{sets:?} {stats:?}");
        assert!(
            !is_perfect || stats.purity.max(stats.balancedness) < 1e-12,
            "{sets:?} {stats:?}"
        );
    }
    assert!(n_perfect > 0);
}

#[test]
fn only_perfect_splits_reach_the_minimum() {
    let lambdas = |integrity, penalty| Lambdas { integrity, penalty };
    every_split::<2, 1>(lambdas(1.0, 0.5), 4);
    every_split::<2, 1>(lambdas(4.0, 0.0), 4);
    every_split::<3, 3>(lambdas(2.0, 0.125), 3);
    every_split::<4, 6>(lambdas(2.0, 2.125), 3 + 1);
}

/// What the head of this module says of the lemmas as printed.
#[test]
fn where_the_printed_lemmas_end() {
    // Lemma 2: all to three of four children.
    let lambdas = Lambdas {
        integrity: 0.5,
        penalty: 1.0,
    };
    let stats_of = stats::<4, 6>(lambdas, &[(vec![0], 1.0, [1.0, 1.0, 1.0, 0.0])]);
    assert!(lambdas.penalty / lambdas.integrity > 1.0);
    assert!(is_near(stats_of.terms.j, 3.5, 1e-12) && stats_of.terms.j > lambdas.penalty * 3.0);
    // Lemma 4: a perfect split in two.
    let lambdas = Lambdas {
        integrity: 2.0,
        penalty: 1.5,
    };
    let perfect = [(vec![0], 1.0, [1.0, 0.0]), (vec![1], 1.0, [0.0, 1.0])];
    let stats = stats::<2, 1>(lambdas, &perfect);
    let bound = (stats.terms.j - stats.terms.balance + 1.5) * 2.0 / (2.0 * (2.0 * 1.5 - 2.0));
    assert!(stats.purity == 0.0 && bound < 0.0);
}
