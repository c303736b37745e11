//! The regressors of a node, and the copies of its examples.

use std::collections::HashMap;

use super::super::regressors::{DenseRegressors, NagRegressors};
use super::*;

const M: usize = 3;

/// NAG with `s_i`, `G_i`, `N` and `t` of its paper.
#[derive(Default)]
pub(super) struct SlowNag {
    pub weights: HashMap<(u32, usize), f64>,
    largest: HashMap<u32, f64>,
    squares: HashMap<(u32, usize), f64>,
    norm: f64,
    seen: f64,
}

impl SlowNag {
    pub fn margins<const M: usize>(&self, row: &[(u32, f32)]) -> [f64; M] {
        std::array::from_fn(|j| {
            let terms = row
                .iter()
                .map(|&(i, x)| self.weights[&(i, j)] * f64::from(x));
            terms.sum()
        })
    }

    pub fn observe<const M: usize>(&mut self, row: &[(u32, f32)]) -> [f64; M] {
        self.seen += 1.0;
        for &(i, x) in row {
            let size = f64::from(x).abs();
            let largest = self.largest.entry(i).or_insert(size);
            if size > *largest {
                for j in 0..M {
                    *self.weights.get_mut(&(i, j)).unwrap() *= *largest / size;
                }
                *largest = size;
            }
            self.norm += (f64::from(x) / *largest).powi(2);
        }
        self.margins(row)
    }

    pub fn step(&mut self, row: &[(u32, f32)], rate: f64, gradients: &[f32]) {
        for &(i, x) in row {
            for (j, &gradient) in gradients.iter().enumerate() {
                let g = f64::from(gradient) * f64::from(x);
                let sum = self.squares.entry((i, j)).or_insert(0.0);
                *sum += g * g;
                if *sum > 0.0 {
                    let scale = rate * (self.seen / self.norm).sqrt();
                    let step = scale * g / (self.largest[&i] * sum.sqrt());
                    *self.weights.get_mut(&(i, j)).unwrap() -= step;
                }
            }
        }
    }
}

/// Rows that are standardized in double precision, column by column, and their regressors.
pub(super) struct SlowDense<const M: usize> {
    rows: Vec<Vec<f64>>,
    means: Vec<f64>,
    /// 1 / deviation, or 0 if all values are equal.
    inverse: Vec<f64>,
    pub weights: Vec<[f64; M]>,
    pub bias: [f64; M],
}

impl<const M: usize> SlowDense<M> {
    pub fn new(
        rows: &[Vec<(u32, f32)>],
        importances: &[f32],
        columns: &[u32],
        first: &[[f32; M]],
    ) -> Self {
        let value = |row: &Vec<(u32, f32)>, column| {
            let found = row.iter().find(|&&(own, _)| own == column);
            found.map_or(0.0, |&(_, x)| f64::from(x))
        };
        let total: f64 = importances.iter().map(|&h| f64::from(h)).sum();
        let (mut means, mut inverse) = (Vec::new(), Vec::new());
        for &column in columns {
            let mean_of = |map: &dyn Fn(f64) -> f64| {
                let values = rows.iter().map(|row| map(value(row, column)));
                let terms = importances.iter().zip(values);
                terms.map(|(&h, x)| f64::from(h) * x).sum::<f64>() / total
            };
            let mean = mean_of(&|x| x);
            let deviation = mean_of(&|x| (x - mean).powi(2)).sqrt();
            let first = value(&rows[0], column).to_bits();
            let varies = rows.iter().any(|row| value(row, column).to_bits() != first);
            means.push(mean);
            inverse.push(if varies { deviation.recip() } else { 0.0 });
        }
        let standardized = |row| {
            let columns = columns.iter().zip(means.iter().zip(&inverse));
            columns
                .map(|(&column, (mean, inverse))| (value(row, column) - mean) * inverse)
                .collect()
        };
        Self {
            rows: rows.iter().map(standardized).collect(),
            weights: first.iter().map(|own| own.map(f64::from)).collect(),
            bias: [0.0; M],
            means,
            inverse,
        }
    }

    pub fn margins(&self, i: usize) -> [f64; M] {
        std::array::from_fn(|j| {
            let terms = self.weights.iter().zip(&self.rows[i]);
            self.bias[j] + terms.map(|(own, x)| own[j] * x).sum::<f64>()
        })
    }

    pub fn step(&mut self, i: usize, steps: &[f64; M]) {
        for (own, x) in self.weights.iter_mut().zip(&self.rows[i]) {
            (0..M).for_each(|j| own[j] -= steps[j] * x);
        }
        (0..M).for_each(|j| self.bias[j] -= steps[j]);
    }

    /// Returns the squared length of a row with the constant.
    pub fn length(&self, i: usize) -> f64 {
        1.0 + self.rows[i].iter().map(|x| x * x).sum::<f64>()
    }

    /// Returns the weight of feature `f` before standardization, and its part of the bias.
    pub fn plain(&self, f: usize, j: usize) -> (f64, f64) {
        let weight = self.weights[f][j] * self.inverse[f];
        (weight, weight * self.means[f])
    }
}

/// Returns the step of an example of `importance` h with this squared `length`. Up to h = 1 it goes
/// along the gradient, and from there to the end of the gradient flow, which is found by bisection.
pub(super) fn slow_step(
    loss: NodeLoss,
    rate: f64,
    importance: f64,
    margin: f64,
    target: f64,
    length: f64,
) -> f64 {
    let (slope, middle) = match loss {
        NodeLoss::Centred => (4.0, 0.5),
        NodeLoss::Logistic => (1.0, 0.0),
    };
    let logit = |margin: f64| slope * (margin - middle);
    let gradient = 1.0 / (1.0 + (-logit(margin)).exp()) - target;
    let step = rate * importance.min(1.0) * gradient;
    if importance <= 1.0 {
        return step;
    }
    // The flow increases z + exp(z) by its time.
    let y = 2.0 * target - 1.0;
    let start = y * logit(margin - step * length);
    let time = rate * (importance - 1.0) * slope * length;
    let (mut low, mut high) = (start, start + time);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle - start + middle.exp() - start.exp() < time {
            low = middle;
        } else {
            high = middle;
        }
    }
    step - y * (low - start) / (slope * length)
}

/// Levels of six columns, which stand for values from 1/8 to 16, and of the gradients, for each row.
type Steps = Vec<([i8; 6], [i8; M])>;

fn steps() -> impl Strategy<Value = Steps> {
    let row = prop::array::uniform6(prop_oneof![Just(0i8), -8i8..8]);
    prop::collection::vec((row, prop::array::uniform3(-4i8..=4)), 1..40)
}

fn row_of(levels: [i8; 6]) -> Vec<(u32, f32)> {
    let value = |level: i8| f32::from(level.signum()) * 2f32.powi(i32::from(level.abs()) - 4);
    let row = (0..6).zip(levels).filter(|&(_, level)| level != 0);
    row.map(|(i, level)| (i, value(level)))
        .chain([(6, 1.0)])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn regressors_follow_the_formulas_of_nag(steps in steps(), rate in 0.01f32..1.0) {
        let first = |i: u32| -> [f32; M] { std::array::from_fn(|j| ((i * 7 + j as u32 * 3) % 11) as f32 / 40.0 - 0.12) };
        let mut nag = NagRegressors::<M>::new((0..7).map(first), rate);
        let mut slow = SlowNag::default();
        for i in 0..7 {
            for j in 0..M {
                slow.weights.insert((i, j), f64::from(first(i)[j]));
            }
        }
        for (levels, gradients) in steps {
            let row = row_of(levels);
            let (features, values): (Vec<u32>, Vec<f32>) = row.iter().copied().unzip();
            let gradients = gradients.map(|level| f32::from(level) / 3.0);
            let mut margins = nag.observe(&features, &values);
            let wanted: [f64; M] = slow.observe(&row);
            for j in 0..M {
                prop_assert!(is_near(margins[j].into(), wanted[j], 1e-4), "{margins:?} {wanted:?}");
            }
            nag.step(&features, &values, &gradients, &mut margins);
            slow.step(&row, rate.into(), &gradients);
            let wanted: [f64; M] = slow.margins(&row);
            for j in 0..M {
                prop_assert!(is_near(margins[j].into(), wanted[j], 1e-4), "moved: {margins:?} {wanted:?}");
            }
            for (i, weights) in (0u32..).zip(nag.weights(0.0)) {
                for j in 0..M {
                    let wanted = slow.weights[&(i, j)];
                    prop_assert!(is_near(weights[j].into(), wanted, 1e-4), "{i} {j}: {weights:?} {wanted}");
                }
            }
        }
    }

    #[test]
    fn node_data_are_copies_of_the_examples(data in data(40), picks in prop::collection::vec(0usize..1000, 1..12)) {
        let examples = data.examples();
        let mut node = NodeData::default();
        let mut ids = Vec::new();
        for at in picks {
            ids.push((at % examples.len()) as u32);
            node.read(&examples, &ids);
            prop_assert_eq!(node.examples.len(), ids.len());
            let (mut columns, mut labels) = (Vec::new(), Vec::new());
            for (i, &id) in ids.iter().enumerate() {
                let (own, values) = examples.row(id);
                let wanted: Vec<(u32, f32)> = own.iter().copied().zip(values.iter().copied()).collect();
                let (features, values) = node.examples.row(i as u32);
                let found = features.iter().map(|&f| node.columns.keys()[f as usize]).zip(values.iter().copied());
                prop_assert_eq!(found.collect::<Vec<_>>(), wanted.clone());
                columns.extend(wanted.iter().map(|&(column, _)| column));
                let found: Vec<u32> = node.examples.labels(i as u32).iter().map(|&label| node.labels.keys()[label as usize]).collect();
                prop_assert_eq!(&found, examples.labels(id));
                labels.extend(found);
                prop_assert_eq!(node.examples.weight(i as u32), examples.weight(id));
            }
            // Columns and labels are numbered in the order in which they first occur.
            for (known, all) in [(node.columns.keys(), columns), (node.labels.keys(), labels)] {
                let mut seen = BTreeSet::new();
                let wanted: Vec<u32> = all.into_iter().filter(|&number| seen.insert(number)).collect();
                prop_assert_eq!(known, &wanted);
            }
            let fresh = node_data(&examples, &ids);
            prop_assert_eq!(format!("{:?}", node), format!("{:?}", fresh));
        }
    }
}

/// With these weights, the deviation of equal values is a rounding error and not 0.
#[test]
fn constant_features_have_no_weight() {
    let mut data = Data::empty(true);
    for (i, weight) in [0.1f32, 0.7, 0.3, 1.9, 1e-3].into_iter().enumerate() {
        let row = [(0, 0.7), (1, 1234.567), (2, 1e-7), (3, i as f32 + 1.0)];
        data.push(&row, &[2], weight);
    }
    let examples = data.examples();
    let node = node_data(&examples, &[0, 1, 2, 3, 4]);
    let dense = DenseRegressors::<1>::new(&node.examples, [[1.0]; 5].into_iter(), 0.5);
    let weights = dense.weights(4, 0.0);
    assert_eq!(weights[..3], [[0.0]; 3]);
    assert!(weights[3][0] > 0.1);
}

/// Importance 1 takes the plain gradient step, and more follows the gradient flow from there.
#[test]
fn dense_steps_do_not_overshoot_by_importance() {
    let mut data = Data::empty(false);
    for i in 0..12u8 {
        let row = (0..6).map(|column| (column, f32::from((i * 5 + column as u8 * 7) % 11)));
        data.push(&row.collect::<Vec<_>>(), &[1], 1.0);
    }
    let examples = data.examples();
    let ids: Vec<u32> = (0..12).collect();
    let node = node_data(&examples, &ids);
    let first = vec![[0.0f32; 2]; node.columns.len()];
    for rate in [0.01f32, 0.3] {
        let mut dense = DenseRegressors::<2>::new(&node.examples, first.iter().copied(), rate);
        // The step from a given margin does not depend on the weights.
        let mut ends = [0.0; 2];
        dense.step(3, &[-1.0; 2], &mut ends);
        let length = f64::from(ends[0]);
        let cases = [NodeLoss::Centred, NodeLoss::Logistic]
            .into_iter()
            .flat_map(|loss| {
                let margins = [-3.0f32, -0.4, 0.5, 0.7, 6.0].into_iter();
                margins.flat_map(move |margin| [(loss, margin, 0.0f32), (loss, margin, 1.0)])
            });
        for (loss, margin, target) in cases {
            for importance in [0.25f32, 1.0, 1.5, 2.0, 10.0, 1e4, 1e30] {
                let step = dense.step_length(3, importance, loss, target, margin);
                let case = format!("{rate} {loss:?} {margin} {importance} {target}: {step}");
                if importance <= 1.0 {
                    let gradient = loss.probability(margin) - target;
                    assert_eq!(step, rate * (importance * gradient), "{case}");
                }
                let [h, start, goal] = [importance, margin, target].map(f64::from);
                let wanted = slow_step(loss, rate.into(), h, start, goal, length);
                assert!(is_near(step.into(), wanted, 1e-4), "{case}, not {wanted}");
                // Repeated plain steps lead to about the same margin if they do not overshoot.
                if rate < 0.1 && (2.0..100.0).contains(&importance) {
                    let mut repeated = margin;
                    for _ in 0..importance as u32 {
                        let one = dense.step_length(3, 1.0, loss, target, repeated);
                        repeated -= one * length as f32;
                    }
                    let at_once = margin - step * length as f32;
                    assert!(
                        (at_once - repeated).abs() < 0.03,
                        "{case}: {repeated} {at_once}"
                    );
                }
            }
        }
    }
}

#[test]
fn columns_that_are_hashed_to_one_add_up() {
    let build = |rows: &[Vec<(u32, f32)>]| {
        let mut data = Data::empty(false);
        rows.iter().for_each(|row| data.push(row, &[1], 1.0));
        data
    };
    let params = Params {
        n_bits: Some(3),
        ..params()
    };
    // Find two columns with the same hash.
    let apart = build(&[(0..WIDTH as u32).map(|column| (column, 1.0)).collect()]);
    let examples = Examples::read(
        &apart.batch(),
        &apart.preparation(&params),
        N_CLASSES,
        &control(),
    )
    .unwrap();
    let hashed = examples.row(0).0;
    let (a, b) = (0..WIDTH)
        .flat_map(|b| (0..b).map(move |a| (a, b)))
        .find(|&(a, b)| hashed[a] == hashed[b])
        .unwrap();
    let (a, b) = (a as u32, b as u32);
    let dense = |rows: &[Vec<(u32, f32)>]| {
        let data = build(rows);
        let examples = Examples::read(
            &data.batch(),
            &data.preparation(&params),
            N_CLASSES,
            &control(),
        )
        .unwrap();
        let ids: Vec<u32> = (0..examples.len() as u32).collect();
        let node = node_data(&examples, &ids);
        let dense = DenseRegressors::<1>::new(&node.examples, [[0.25]; 2].into_iter(), 0.5);
        let margins: Vec<f32> = (0..data.len() as u32)
            .map(|i| dense.margins(i)[0])
            .collect();
        (margins, dense.weights(1, 0.0))
    };
    let apart = dense(&[vec![(a, 1.0), (b, 3.0)], vec![(a, 2.0)], vec![(b, -1.0)]]);
    let together = dense(&[vec![(a, 4.0)], vec![(a, 2.0)], vec![(a, -1.0)]]);
    assert_eq!(apart, together);
}
