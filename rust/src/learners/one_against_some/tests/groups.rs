//! Rows that are divided among groups of labels, and parts of a training that do not match.

use super::super::train::ScorerParams;
use super::*;
use crate::file::{Bundle, Persist};
use crate::learners::ldsm::tests::{control, facts_in_turn, sent};

const N_GROUPS: u32 = 3;
const PARAMS: ScorerParams = ScorerParams {
    n_negatives: 4,
    tail_weight: 0.0,
    cost: Some(1.0),
    weight_threshold: 0.0,
    seed: 0,
};

/// Returns all examples as rows of the fit.
fn fit_of(examples: Examples) -> Piece {
    let mut scored = Ragged::default();
    (0..examples.len()).for_each(|_| scored.push([(0, 0.5)]));
    Piece {
        fit: (0..examples.len() as u32).collect(),
        scored,
        examples,
        ..Piece::default()
    }
}

/// Returns examples, groups of their labels, and the pieces of all groups.
fn divided() -> (Examples, Groups, Vec<Piece>) {
    let examples = fixed(120, false).examples();
    let facts = GroupFacts {
        n_sampled: examples.len(),
        column_counts: examples.column_counts(),
        params: PARAMS,
        ..facts_in_turn(&examples, N_GROUPS)
    };
    let groups = Groups::new(sent(&facts).unwrap());
    let mut candidates = Candidates::default();
    for row in 0..examples.len() as u32 {
        candidates
            .hard
            .push((0..N_CLASSES as u32).filter(|&label| label % 4 == row % 4));
        if row < 24 {
            candidates.scored.push([(0, 0.5), (4, 0.25)]);
        }
    }
    let pieces = groups.divide(&examples, &candidates, 0);
    (examples, groups, pieces)
}

fn piece(group: usize) -> Piece {
    divided().2.swap_remove(group)
}

#[test]
fn each_row_reaches_the_groups_of_its_labels_and_negatives() {
    let (examples, _, pieces) = divided();
    let mut n_labels = 0;
    for (group, piece) in pieces.iter().enumerate() {
        let again = sent(piece).unwrap();
        let n_own = examples.labels.entries().iter();
        let n_own = n_own
            .filter(|&&label| label as usize % N_GROUPS as usize == group)
            .count();
        assert_eq!(again.examples.labels.entries().len(), n_own);
        n_labels += n_own;
        for row in 0..again.examples.len() as u32 {
            let own: BTreeSet<u32> = again.examples.labels(row).iter().copied().collect();
            let negatives = again.negatives.get(row as usize);
            assert!(negatives.iter().all(|label| !own.contains(label)));
            assert!(own.len() + negatives.len() > 0);
        }
        assert!(!again.fit.is_empty());
    }
    assert_eq!(n_labels, examples.labels.entries().len());
}

#[test]
fn rows_after_mining_are_restored() {
    let (examples, groups, pieces) = divided();
    let fit = fit_of(examples);
    let bundle_of = |part: &GroupScorers| {
        let mut bundle = Bundle::new("part");
        part.put(&mut bundle);
        bundle
    };
    for (group, piece) in pieces.into_iter().enumerate() {
        let train = |mined| {
            let trained = groups.train(group, mined, (0.0, 1.0), &fit, &control());
            bundle_of(&trained.unwrap().0)
        };
        let pieces = std::iter::once(Ok(piece));
        let (mined, gains) = groups.mine(group, pieces, &control()).unwrap();
        // One cost, and dense rows, leave nothing to choose.
        assert!(gains.len() < 3);
        assert_eq!(mined.negatives.len(), 3 * mined.examples.len());
        let again = sent(&mined).unwrap();
        let wanted = train(mined);
        assert!(wanted == train(again));
        let mut restored = GroupScorers::default();
        restored.fill(&mut wanted.clone()).unwrap();
        assert!(wanted == bundle_of(&restored));
    }
}

#[test]
fn damaged_pieces_are_refused() {
    let lists = |n: usize, list: &[u32]| {
        let mut lists = Ragged::default();
        (0..n).for_each(|_| lists.push(list.iter().copied()));
        lists
    };
    let mut scored = Ragged::default();
    scored.push([(9, 0.5)]);
    let damages: [&dyn Fn(&mut Piece); 6] = [
        &|piece| piece.negatives = lists(piece.examples.len(), &[9]),
        &|piece| piece.negatives = lists(piece.examples.len(), &[1, 0]),
        &|piece| piece.negatives = lists(1, &[0]),
        &|piece| piece.examples.labels = lists(piece.examples.len(), &[0, 0]),
        &|piece| piece.fit.push(0),
        &|piece| (piece.scored, piece.fit) = (scored.clone(), vec![0]),
    ];
    for damage in damages {
        let mut piece = piece(0);
        damage(&mut piece);
        let error = sent(&piece).unwrap_err().to_string();
        assert!(
            error.contains("rows and negatives of a group do not match"),
            "{error}"
        );
    }
}

#[test]
fn damaged_facts_are_refused() {
    let damages: [&dyn Fn(&mut GroupFacts); 7] = [
        &|facts| facts.groups[0] = N_GROUPS,
        &|facts| facts.n_groups = usize::MAX,
        &|facts| facts.params.cost = Some(0.0),
        &|facts| facts.counts.push(1),
        &|facts| facts.counts.fill(0),
        &|facts| facts.column_counts.clear(),
        &|facts| facts.dense.push(facts.column_counts.len() as u32 - 1),
    ];
    for damage in damages {
        let mut facts = divided().1.facts;
        damage(&mut facts);
        let error = sent(&facts).unwrap_err().to_string();
        assert!(
            error.contains("labels, groups and counts do not match"),
            "{error}"
        );
    }
}

#[test]
fn parts_of_other_trainings_are_refused() {
    let (examples, groups, _) = divided();
    let refused = |group, pieces: Vec<Piece>| {
        let pieces = pieces.into_iter().map(Ok);
        let mined = groups.mine(group, pieces, &control());
        mined.unwrap_err().to_string()
    };
    let unlike = "the pieces of a group do not match";
    // Two pieces with rows of the fit.
    assert_eq!(refused(0, vec![piece(0), piece(0)]), unlike);
    let mut wide = piece(0);
    wide.examples.width += 1;
    assert_eq!(refused(0, vec![wide]), unlike);
    let mut many = piece(0);
    many.examples.n_labels += 1;
    assert_eq!(refused(0, vec![many]), unlike);
    assert_eq!(refused(3, vec![piece(0)]), "there is no such group");
    let gains = vec![vec![vec![0.0]; 7]];
    assert!(groups.choose(&gains).is_err());
    // Rows of the fit of which one is missing, labels of two groups, and a row that is not of the fit.
    let fit = fit_of(examples);
    let train = || {
        let mined = groups
            .mine(0, [sent(&piece(0))].into_iter(), &control())
            .unwrap()
            .0;
        groups
            .train(0, mined, (0.0, 1.0), &fit, &control())
            .unwrap()
    };
    let (trained, counts) = train();
    let layout = groups.layout(&fit, &[counts]).unwrap();
    let part = groups
        .margins(0, sent(&trained).unwrap(), layout, &fit)
        .unwrap()
        .1;
    let mut short = sent(&fit).unwrap();
    short.fit.pop();
    assert!(groups.margins(0, trained, layout, &short).is_err());
    let (mut labels, mut held_out) = (train().0, train().0);
    labels.labels[0] += 1;
    held_out.held_out[0] = vec![(120, 0.0)];
    for wrong in [labels, held_out] {
        let error = groups
            .margins(0, wrong, layout, &fit)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the scorers do not match the rows of the fit");
    }
    let joined = groups.join(&fit, &[part], (0.0, 1.0));
    let error = joined.unwrap_err().to_string();
    assert_eq!(error, "the scorers of a group are missing");
}
