//! A slow and obvious reference that the fast learner is compared with.

use super::*;

/// Learns all classes of one example after the other, with dense weights in double precision. The
/// average is the sum of c_t w_t, as in its definition.
struct Plain {
    params: Params,
    preparation: Preparation,
    preconditioner: Preconditioner,
    weights: Vec<Vec<f64>>,
    average: Vec<Vec<f64>>,
    examples: f64,
    wrong: f64,
    weight: f64,
}

impl Plain {
    fn new(params: &Params, n_classes: usize, rows: &Rows<'_>) -> Self {
        let all: Vec<u32> = (0..rows.n_rows() as u32).collect();
        let preparation = Preparation::new(params.scaling, params.n_bits, rows, &all).unwrap();
        let width = preparation.width();
        let mut weights = vec![vec![0.0; n_classes]; width];
        weights[width - 1].fill(f64::from(params.initial_bias()));
        Self {
            params: params.clone(),
            preconditioner: Preconditioner::new(Power::Quarter, width),
            average: vec![vec![0.0; n_classes]; width],
            preparation,
            weights,
            examples: 0.0,
            wrong: 0.0,
            weight: 0.0,
        }
    }

    fn scores(weights: &[Vec<f64>], example: &RowBuffer) -> Vec<f64> {
        let mut scores = vec![0.0; weights[0].len()];
        for (&column, &x) in example.columns.iter().zip(&example.values) {
            for (p, w) in scores.iter_mut().zip(&weights[column as usize]) {
                *p += f64::from(x) * w;
            }
        }
        scores
    }

    fn learn(&mut self, rows: &Rows<'_>, i: usize, labels: &[u32], h: f32, seen: &mut [bool]) {
        let mut example = RowBuffer::default();
        self.preparation.read_to_learn(rows, i, true, &mut example);
        let mut steps = Vec::new();
        self.preconditioner.direction(&example, h, &mut steps);
        let p = Self::scores(&self.weights, &example);
        let best = (0..p.len())
            .filter(|&k| seen[k])
            .max_by(|&a, &b| p[a].total_cmp(&p[b]).then(b.cmp(&a)));
        let right = best.is_some_and(|k| labels.contains(&(k as u32)));
        self.wrong += if right { 0.0 } else { f64::from(h) };
        self.weight += f64::from(h);
        let a = self.params.rate() as f32 * h;
        let u: Vec<f64> = match self.params.loss.single() {
            Some(loss) => (0..p.len())
                .map(|k| {
                    let y = if labels.contains(&(k as u32)) {
                        1.0
                    } else {
                        -1.0
                    };
                    f64::from(loss.step(y, p[k] as f32, a, 1.0))
                })
                .collect(),
            None => flow(&p, labels, f64::from(a)),
        };
        labels.iter().for_each(|&label| seen[label as usize] = true);
        for (&column, &d) in example.columns.iter().zip(&steps) {
            for (w, u) in self.weights[column as usize].iter_mut().zip(&u) {
                *w += u * f64::from(d);
            }
        }
        // The new weights get a share that depends on AVERAGING_POWER, the old average the rest.
        self.examples += 1.0;
        let share = (AVERAGING_POWER + 1.0) / (self.examples + AVERAGING_POWER);
        for (average, weights) in self.average.iter_mut().zip(&self.weights) {
            for (a, w) in average.iter_mut().zip(weights) {
                *a += share * (w - *a);
            }
        }
    }
}

/// Returns the steps of the gradient flow of the cross-entropy in the scores, in unit substeps.
fn flow(p: &[f64], labels: &[u32], a: f64) -> Vec<f64> {
    let (mut p, mut u) = (p.to_vec(), vec![0.0; p.len()]);
    if labels.is_empty() {
        return u;
    }
    let parts = a.ceil().clamp(1.0, 32.0);
    for _ in 0..parts as usize {
        let sum: f64 = p.iter().map(|p| p.exp()).sum();
        let probabilities: Vec<f64> = p.iter().map(|p| p.exp() / sum).collect();
        for k in 0..p.len() {
            let wanted = if labels.contains(&(k as u32)) {
                1.0 / labels.len() as f64
            } else {
                0.0
            };
            let part = (a / parts).min(1.0);
            p[k] += part * (wanted - probabilities[k]);
            u[k] += part * (wanted - probabilities[k]);
        }
    }
    u
}

fn label_list(data: &Data, multilabel: bool, i: usize) -> Vec<u32> {
    if multilabel {
        let span = data.set_starts[i] as usize..data.set_starts[i + 1] as usize;
        data.sets[span].iter().map(|&l| l as u32).collect()
    } else {
        vec![data.labels[i]]
    }
}

#[test]
fn tiles_agree_with_the_slow_reference() {
    // More rows than fit into a chunk; tiles of 4, 4 and 2 groups.
    let data = Data::new(560, 24, 150, 1);
    let rows = data.rows();
    for loss in LOSSES {
        for multilabel in [false, true] {
            let params = Params {
                scale_weights: false,
                // With larger rates small differences would grow.
                learning_rate: Some(0.5),
                ..params(loss, Optimizer::Pn)
            };
            let mut plain = Plain::new(&params, 150, &rows);
            let mut seen = vec![false; 150];
            for i in (0..560).filter(|&i| data.weights[i] > 0.0) {
                let labels = label_list(&data, multilabel, i);
                plain.learn(&rows, i, &labels, data.weights[i], &mut seen);
            }
            let targets = if multilabel {
                data.sets()
            } else {
                data.labels()
            };
            let batch = Batch::new(rows, targets, Some(Values::F32(&data.weights))).unwrap();
            let mut oaa = Model::create(params, 150, multilabel).unwrap();
            oaa.partial_fit(&batch, 1, &control()).unwrap();
            let averaged = (all_scores(&oaa, &rows, 1), &plain.average);
            let last = (last_scores(&oaa, &rows), &plain.weights);
            let mut example = RowBuffer::default();
            for (got, weights) in [averaged, last] {
                for i in 0..560 {
                    plain.preparation.read(&rows, i, &mut example);
                    let expected = Plain::scores(weights, &example);
                    for k in (0..150).filter(|&k| seen[k]) {
                        let (got, expected) = (f64::from(got[i * 150 + k]), expected[k]);
                        assert!(
                            (got - expected).abs() < 3e-3,
                            "{loss:?} sets {multilabel}: row {i} class {k}: {got} not {expected}"
                        );
                    }
                }
            }
            let progressive = oaa.progressive_loss().unwrap();
            assert!((progressive - plain.wrong / plain.weight).abs() < 0.01);
        }
    }
}
