//! Blocks of classes that are trained apart make the model of all classes, to the bit.

use super::pruned::{all_params, fitted, with_prune};
use super::*;
use crate::learners::oaa::ClassBlock;

fn joined(params: &Params, batch: &Batch<'_>, n_blocks: usize) -> Model {
    let is_sets = matches!(batch.targets, Targets::Sets(_));
    let blocks: Vec<ClassBlock> = (0..n_blocks)
        .map(|number| {
            let block = (number, n_blocks);
            let learned = ClassBlock::train(params, is_sets, batch, block, 1, &control()).unwrap();
            // As bytes, as it is sent.
            let bytes = learned.to_bundle().to_bytes().unwrap();
            assert!(learned.n_bytes() <= bytes.len());
            ClassBlock::from_bundle(Bundle::from_bytes(&bytes).unwrap()).unwrap()
        })
        .collect();
    ClassBlock::join(&blocks.iter().collect::<Vec<_>>()).unwrap()
}

#[test]
fn blocks_make_the_model_of_all_classes() {
    let data = Data::new(300, 24, 150, 3);
    let weights = Some(Values::F32(&data.weights));
    let weighted = Batch::new(data.rows(), data.labels(), weights).unwrap();
    let sets = Batch::new(data.rows(), data.sets(), None).unwrap();
    for params in all_params() {
        for params in [params.clone(), with_prune(&params, 0.01)] {
            assert_eq!(ClassBlock::most(&params, 150), 3);
            for (batch, n_blocks) in [(&data.batch(), 3), (&weighted, 2), (&sets, 3)] {
                let whole = fitted(&params, batch, 2).to_bundle();
                let parts = joined(&params, batch, n_blocks).to_bundle();
                assert_eq!(parts.to_bytes().unwrap(), whole.to_bytes().unwrap());
            }
        }
    }
}

#[test]
fn what_couples_classes_is_refused() {
    let data = Data::new(30, 24, 150, 3);
    let train = |params: &Params, block| {
        ClassBlock::train(params, false, &data.batch(), block, 1, &control())
    };
    let softmax = params(OaaLoss::Softmax, Optimizer::Pn);
    let error = train(&softmax, (0, 2)).unwrap_err();
    assert!(error.to_string().contains("softmax"), "{error}");
    let stopping = Params {
        early_stopping: true,
        ..Params::default()
    };
    let error = train(&stopping, (0, 2)).unwrap_err();
    assert!(error.to_string().contains("early_stopping"), "{error}");
    let error = train(&Params::default(), (0, 4)).unwrap_err();
    assert!(error.to_string().contains("make 3 at most"), "{error}");
}

#[test]
fn blocks_that_are_missing_are_an_error() {
    let data = Data::new(60, 24, 150, 3);
    let train = |block| {
        let params = Params::default();
        ClassBlock::train(&params, false, &data.batch(), block, 1, &control()).unwrap()
    };
    let (first, second) = (train((0, 2)), train((1, 2)));
    for blocks in [
        vec![],
        vec![&first],
        vec![&second, &first],
        vec![&first, &first],
    ] {
        assert!(ClassBlock::join(&blocks).is_err());
    }
    assert!(ClassBlock::join(&[&first, &second]).is_ok());
}
