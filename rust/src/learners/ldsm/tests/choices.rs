//! The search for the best directions, compared with trying all of them on running means.

use super::super::objective::ObjectiveSums;
use super::*;

/// The running means of the paper's Algorithm 2.
#[derive(Debug, Clone)]
pub(super) struct Means {
    lambdas: Lambdas,
    /// C, the weight of the labels seen.
    seen: f64,
    /// P_j.
    reached: Vec<f64>,
    /// l(k) and P_j^k.
    of_label: Vec<(f64, Vec<f64>)>,
}

impl Means {
    pub fn new(lambdas: Lambdas, arity: usize, n_labels: usize) -> Self {
        Self {
            lambdas,
            seen: 0.0,
            reached: vec![0.0; arity],
            of_label: vec![(0.0, vec![0.0; arity]); n_labels],
        }
    }

    /// Adds an example of these labels that has gone to these children.
    pub fn add(&mut self, labels: &[u32], weight: f64, to: &[f64]) {
        let n = weight * labels.len() as f64;
        self.seen += n;
        for (mean, x) in self.reached.iter_mut().zip(to) {
            *mean = ((self.seen - n) * *mean + n * x) / self.seen;
        }
        for &label in labels {
            let (seen, means) = &mut self.of_label[label as usize];
            *seen += weight;
            for (mean, x) in means.iter_mut().zip(to) {
                *mean = ((*seen - weight) * *mean + weight * x) / *seen;
            }
        }
    }

    /// Returns B, CI of these labels, and MWP.
    fn parts(&self, labels: &[u32]) -> [f64; 3] {
        let apart = |means: &[f64]| {
            let pairs = (0..means.len()).flat_map(|l| (0..l).map(move |j| (j, l)));
            pairs.map(|(j, l)| (means[j] - means[l]).abs()).sum::<f64>()
        };
        let integrity = labels.iter().map(|&label| {
            let (seen, means) = &self.of_label[label as usize];
            seen / self.seen * apart(means)
        });
        let penalty = (self.reached.iter().sum::<f64>() - 1.0).abs();
        [apart(&self.reached), integrity.sum(), penalty]
    }

    /// Returns the objective, whose class integrity is that of these labels.
    pub fn cost(&self, labels: &[u32]) -> f64 {
        let [balance, integrity, penalty] = self.parts(labels);
        balance - self.lambdas.integrity * integrity + self.lambdas.penalty * penalty
    }

    /// Returns the objective for each set of children that the example may go to.
    fn costs(&self, labels: &[u32], weight: f64) -> Vec<f64> {
        let arity = self.reached.len();
        let cost = |set: usize| {
            let to = (0..arity).map(|j| (set >> j & 1) as f64);
            let mut after = self.clone();
            after.add(labels, weight, &to.collect::<Vec<f64>>());
            after.cost(labels)
        };
        (1..1 << arity).map(cost).collect()
    }
}

/// Bits of the labels, weight, and levels of the margins.
type Example = (u8, u8, [u8; 8]);

fn labels_of(bits: u8) -> Vec<u32> {
    (0..5).filter(|k| bits >> k & 1 == 1).collect()
}

fn examples() -> impl Strategy<Value = Vec<Example>> {
    let example = (1u8..32, 1u8..8, prop::array::uniform8(0u8..=20));
    prop::collection::vec(example, 1..14)
}

fn follow<const M: usize, const P: usize>(
    lambdas: Lambdas,
    examples: &[Example],
) -> std::result::Result<(), TestCaseError> {
    let mut sums = ObjectiveSums::<M, P>::new(lambdas, 5);
    let mut means = Means::new(lambdas, M, 5);
    let mut draws = 0u32;
    for &(bits, weight, levels) in examples {
        let (labels, weight) = (labels_of(bits), f64::from(weight) / 4.0);
        let costs = means.costs(&labels, weight);
        let best = sums.best_directions(&labels, weight, || {
            draws += 1;
            draws.is_multiple_of(3)
        });
        let found = costs[best as usize - 1];
        for (set, &cost) in (1u32..).zip(&costs) {
            prop_assert!(
                set == best || cost > found - 1e-9,
                "{set} {cost}, {best} {found}"
            );
        }
        // Some margins are clamped.
        let mut reached = [0.0f32; M];
        for (to, level) in reached.iter_mut().zip(levels) {
            *to = ((f32::from(level) - 4.0) / 11.7).clamp(0.0, 1.0);
        }
        sums.add(&labels, weight, &reached);
        means.add(&labels, weight, &reached.map(f64::from));
        let [balance, integrity, penalty] = means.parts(&[0, 1, 2, 3, 4]);
        let terms = sums.terms();
        for (found, wanted) in [
            (terms.balance, balance),
            (terms.integrity, integrity),
            (terms.penalty, penalty),
            (terms.j, means.cost(&[0, 1, 2, 3, 4])),
        ] {
            prop_assert!(is_near(found, wanted, 1e-12), "{terms:?} {wanted}");
        }
        for (share, mean) in sums.shares().iter().zip(&means.reached) {
            prop_assert!(is_near(*share, *mean, 1e-12));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn best_directions_are_those_of_the_running_means(
        integrity in 0.0f64..4.0, penalty in 0.0f64..4.0, examples in examples(),
    ) {
        let lambdas = Lambdas { integrity, penalty };
        follow::<2, 1>(lambdas, &examples)?;
        follow::<3, 3>(lambdas, &examples)?;
        follow::<4, 6>(lambdas, &examples)?;
        follow::<5, 10>(lambdas, &examples)?;
        let few = &examples[..examples.len().min(4)];
        follow::<6, 15>(lambdas, few)?;
        follow::<7, 21>(lambdas, few)?;
        follow::<8, 28>(lambdas, few)?;
    }
}

/// With these weights all sets of directions cost the same.
#[test]
fn the_set_of_all_directions_never_wins_a_tie() {
    fn all_equal<const M: usize, const P: usize>() {
        let sums = ObjectiveSums::<M, P>::new(
            Lambdas {
                integrity: 1.0,
                penalty: 0.0,
            },
            3,
        );
        let best = |coin: &mut dyn FnMut() -> bool| sums.best_directions(&[0, 2], 1.0, coin);
        assert_eq!(best(&mut || false), 1);
        assert_eq!(best(&mut || true), (1 << M) - 2);
        let (mut draws, mut won) = (0u64, BTreeSet::new());
        for _ in 0..200 {
            won.insert(best(&mut || {
                draws += 1;
                draws.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 == 0
            }));
        }
        // The coin is tossed for each set but the first and the last.
        assert_eq!(draws, 200 * ((1 << M) - 3));
        assert!(won.len() > 1 || M == 2, "{won:?}");
        assert!(!won.contains(&((1 << M) - 1)));
    }
    all_equal::<2, 1>();
    all_equal::<3, 3>();
    all_equal::<4, 6>();
    all_equal::<8, 28>();
}
