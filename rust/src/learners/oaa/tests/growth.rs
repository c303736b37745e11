//! Classes added to a trained model.

use super::*;

/// Number of classes at each batch.
const LIMITS: [usize; 6] = [3, 10, 20, 45, 100, 130];

impl Data {
    /// Returns rows `from..to`, over `n_classes`.
    fn part(&self, from: usize, to: usize, n_classes: usize) -> Self {
        let cut = |starts: &[i32], from: usize, to: usize| -> Vec<i32> {
            starts[from..=to]
                .iter()
                .map(|at| at - starts[from])
                .collect()
        };
        let all = |starts: &[i32]| starts[from] as usize..starts[to] as usize;
        let (values, sets) = (all(&self.starts), all(&self.set_starts));
        Self {
            starts: cut(&self.starts, from, to),
            columns: self.columns[values.clone()].to_vec(),
            values: self.values[values].to_vec(),
            labels: self.labels[from..to].to_vec(),
            set_starts: cut(&self.set_starts, from, to),
            sets: self.sets[sets].to_vec(),
            weights: self.weights[from..to].to_vec(),
            n_cols: self.n_cols,
            n_classes,
        }
    }
}

/// Returns a batch for each of `limits`, with labels below it.
fn batches(limits: &[usize]) -> Vec<Data> {
    let n_classes = limits[limits.len() - 1];
    let all = Data::new(60 * limits.len(), 24, n_classes + 1, 3);
    let parts = limits.iter().enumerate().map(|(at, &limit)| {
        let mut part = all.part(60 * at, 60 * (at + 1), limit);
        part.labels.iter_mut().for_each(|l| *l %= limit as u32);
        for row in 0..60 {
            let set = part.set_starts[row] as usize..part.set_starts[row + 1] as usize;
            let mut labels: Vec<i32> = part.sets[set.clone()]
                .iter()
                .map(|l| l % limit as i32)
                .collect();
            labels.sort_unstable();
            if labels.len() == 2 && labels[0] == labels[1] {
                labels = vec![0, limit as i32 - 1];
            }
            part.sets[set].copy_from_slice(&labels);
        }
        part
    });
    parts.collect()
}

/// Learns the batches in order, with `n_classes` from the start or with those of each batch. Calls
/// `between` after each batch.
fn learned(
    params: &Params,
    batches: &[Data],
    n_classes: Option<usize>,
    (sets, n_threads): (bool, usize),
    between: fn(&Model) -> Model,
) -> Model {
    let first = n_classes.unwrap_or(batches[0].n_classes);
    let mut model = Model::create(params.clone(), first, sets).unwrap();
    for data in batches {
        let data = data.part(0, data.labels.len(), n_classes.unwrap_or(data.n_classes));
        let targets = if sets { data.sets() } else { data.labels() };
        let weights = Some(Values::F32(&data.weights));
        let batch = Batch::new(data.rows(), targets, weights).unwrap();
        if data.n_classes > model.n_classes() {
            model.add_classes(&batch).unwrap();
        }
        model.partial_fit(&batch, n_threads, &control()).unwrap();
        model = between(&model);
    }
    model
}

fn reloaded(model: &Model) -> Model {
    Model::from_bytes(&model.to_bytes().unwrap()).unwrap()
}

const OPTIMIZERS: [Optimizer; 2] = [Optimizer::Pn, Optimizer::Nag];

#[test]
fn new_classes_equal_classes_known_from_the_start() {
    let batches = batches(&LIMITS);
    let rows = batches[5].rows();
    let params = Params {
        scaling: Scaling::Row,
        ..params(OaaLoss::SquaredHinge, Optimizer::Pn)
    };
    let learned = |n_classes| learned(&params, &batches, n_classes, (false, 1), Model::clone);
    let (grown, known) = (learned(None), learned(Some(130)));
    assert_eq!(all_scores(&grown, &rows, 1), all_scores(&known, &rows, 1));
    assert_eq!(grown.to_bytes().unwrap(), known.to_bytes().unwrap());
}

#[test]
fn grown_models_do_not_depend_on_files_and_threads() {
    // Tiles are full at 16, 64 and 128 classes.
    for limits in [&LIMITS[..], &[16, 64, 128, 129]] {
        let batches = batches(limits);
        for optimizer in OPTIMIZERS {
            for (loss, n_negatives) in [
                (OaaLoss::Softmax, None),
                (OaaLoss::SquaredHinge, Some(7)),
                (OaaLoss::Logistic, None),
            ] {
                if loss == OaaLoss::Softmax && optimizer != Optimizer::Pn {
                    continue;
                }
                let params = Params {
                    n_negatives,
                    ..params(loss, optimizer)
                };
                let straight = learned(&params, &batches, None, (false, 1), Model::clone);
                let bytes = straight.to_bytes().unwrap();
                let loaded = learned(&params, &batches, None, (false, 1), reloaded);
                assert_eq!(loaded.to_bytes().unwrap(), bytes, "{optimizer:?} {loss:?}");
                let parallel = learned(&params, &batches, None, (false, 3), Model::clone);
                assert_eq!(parallel.to_bytes().unwrap(), bytes);
            }
        }
    }
}

/// Tiles of 64 classes stay at their addresses.
#[test]
fn full_tiles_are_not_copied() {
    let batches = batches(&[100, 120, 140]);
    let params = params(OaaLoss::SquaredHinge, Optimizer::Pn);
    let mut model = learned(&params, &batches[..1], None, (false, 1), Model::clone);
    let at = |model: &Model| {
        let tiles = learner(model).tiles.iter();
        tiles.map(|tile| tile.weights.as_ptr()).collect::<Vec<_>>()
    };
    let before = at(&model);
    model.add_classes(&batches[1].batch()).unwrap();
    assert_eq!(at(&model), before);
    model.add_classes(&batches[2].batch()).unwrap();
    assert_eq!(at(&model)[..2], before);
    assert_eq!(at(&model).len(), 3);
}

#[test]
fn fit_reserves_memory_for_all_columns_at_once() {
    let data = Data::new(100, 24, 130, 0);
    for n_threads in [1, 2] {
        let mut model = Model::create(Params::default(), 130, false).unwrap();
        let options = FitOptions::threads(n_threads);
        model.fit(&data.batch(), options, &control()).unwrap();
        // Column 7 does not occur, and the constant does.
        assert_eq!(learner(&model).preparer.slots.len(), 24);
        for tile in &mut model.members[0].learner.tiles {
            let (width, weights) = (tile.width(), tile.weights.to_mut());
            assert_eq!([weights.len(), weights.capacity()], [24 * width; 2]);
        }
    }
}
