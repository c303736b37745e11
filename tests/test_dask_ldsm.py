"""LdSM in partitions, without a cluster: trees on a sample, scorers by groups of labels."""

import json
import pickle
from types import SimpleNamespace

import dask
import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

from serial_tasks import Serial, fitted, in_parts
from xmtree import LdSMClassifier, _core
from xmtree.dask import DaskLdSMClassifier
from xmtree.dask._ldsm import _FIT, _OTHERS, _Draw, _grouped, _places
from xmtree.dask._plan import Part
from xmtree.datasets import make_xmc
from xmtree.metrics import precision_at_k

N_LABELS, N_ROWS = 160, 1000
ALL = make_xmc(N_ROWS + 600, 300, N_LABELS, multilabel=True, noise=0.2, random_state=0)
(X, X_TEST), (Y, Y_TEST) = ((each[:N_ROWS], each[N_ROWS:]) for each in ALL)
ONE_LABEL = np.asarray(Y.argmax(axis=1)).ravel()
#: Rows of tests that compare models by bytes, not by accuracy.
FEW = X[:400], Y[:400]
#: A fixed cost skips comparisons, in tests of something else.
FITTED = {"n_estimators": 3, "max_nodes": 200, "random_state": 0}
QUICK = FITTED | {"cost": 1.0}


def trained(parts, rows=N_ROWS // 2, **params):
    with dask.config.set({"xmtree.tree-rows": rows}):
        return fitted(DaskLdSMClassifier, parts, **(QUICK | params))


def alone(rows=X, labels=Y, **params):
    """Return the model of one machine."""
    return LdSMClassifier(**(QUICK | params), n_jobs=2).fit(rows, labels)


def bytes_of(model):
    return model._model.to_bytes()


def precision(model, k=1):
    return precision_at_k(Y_TEST, model.predict_topk(X_TEST, k)[0], k=k)


@pytest.fixture(scope="module")
def local():
    return alone()


@pytest.fixture(scope="module")
def halves():
    """Return the model of eight partitions whose trees know half of few rows."""
    return trained(in_parts(8, *FEW), 200)


@pytest.mark.parametrize("rows", [N_ROWS // 5, N_ROWS // 2, N_ROWS])
def test_eight_partitions_are_nearly_as_accurate_as_one_machine(rows, local):
    model = trained(in_parts(8, X, Y), rows)
    for k in (1, 3, 5):
        assert precision(model, k) > precision(local, k) - 0.02
    # Probabilities are calibrated.
    best = model.predict_topk(X_TEST, 1, scores="probability")[1].mean()
    assert abs(best - precision(model)) < 0.08
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_topk(X_TEST, 3)[1], model.predict_topk(X_TEST, 3)[1])


def test_partitions_and_seed_decide(halves):
    X, Y = FEW

    def found(parts, **others):
        return bytes_of(trained(parts, 200, **others))

    assert found(in_parts(8, X, Y)) == bytes_of(halves)
    assert found(in_parts(7, X, Y)) != bytes_of(halves)
    # The number of workers does not matter, nor do partitions without rows or weight at the end.
    workers = {str(number): {"nthreads": 2, "memory_limit": 0} for number in range(3)}
    assert found(in_parts(8, X, Y), workers=workers) == bytes_of(halves)
    parts = [*in_parts(8, X, Y), (X[:0], Y[:0], None)]
    parts = [(*part[:2], np.full(part[0].shape[0], 2.0)) for part in parts]
    parts.append((X[:50], Y[:50], np.zeros(50)))
    assert found(parts) == bytes_of(halves)


def test_each_tree_draws_rows_of_its_own():
    """Four arcs of a quarter have all rows but those of the fit, each once."""
    target, numbers = SimpleNamespace(codes=np.arange(1000)), np.arange(1000)[:, None]
    part = Part(numbers, target, (np.arange(1000) % 10 > 0).astype(float), np.arange(0))
    draw = _Draw("all", 0, 4, 0.25, 0.2)
    found = [draw(which, 3, part)[1] for which in (0, 1, 2, 3, _FIT)]
    assert sorted(np.concatenate(found)) == np.flatnonzero(part.weights).tolist()
    assert all(130 < len(rows) < 230 for rows in found)
    X, others, weights, learned = draw(_OTHERS, 3, part)
    assert np.array_equal(X[:, 0], others)
    assert weights.all()
    assert not set(others) & set(found[4])
    for tree, rows in zip(learned.T, found, strict=False):
        assert np.array_equal(others[tree], rows)
    assert len(draw(None, 3, part)[1]) == 900
    assert draw(0, 3, None) is None
    # Arcs may be longer, and go around the circle.
    longer = _Draw("all", 0, 4, 0.85, 0.2)(_OTHERS, 3, part)[3]
    assert set(longer.sum(axis=1)) == {3, 4}


def test_all_rows_of_one_partition_give_the_model_of_one_machine():
    X, Y = FEW
    for n_parts, y, options in ((1, Y, {}), (3, Y[:, :100], {}), (3, Y, {"scorers": "none"})):
        wanted = alone(X, y, **options)
        assert bytes_of(trained(in_parts(n_parts, X, y), 400, **options)) == bytes_of(wanted)


def test_weights_are_rows():
    """Only the relation of weights matters, over all partitions."""
    X, Y = FEW
    weights = 1.0 + np.arange(400) % 2
    parts = [in_parts(4, X, Y, scale * weights) for scale in (1.0, 4.0)]
    first, second, plain = (bytes_of(trained(each, 200)) for each in (*parts, in_parts(4, X, Y)))
    assert first == second
    assert first != plain


def test_labels_that_are_rare_or_in_one_partition_are_learned(local):
    """Each partition has labels of its own, and some labels have no row that trees know."""
    order = np.argsort(ONE_LABEL, kind="stable")
    model = trained(in_parts(6, X[order], Y[order]), 300)
    learned = np.isfinite(model.intercept_)
    assert np.array_equal(learned, np.isfinite(local.intercept_))
    assert np.array_equal(learned, np.asarray(Y.sum(axis=0)).ravel() > 0)
    assert precision(model) > precision(local) - 0.05


@pytest.mark.parametrize(
    "options",
    [{"cost": None, "n_bits": 9}, {"n_negatives": 0}, {"beta": 0.5, "scaling": "standard"}],
    ids=str,
)
def test_options(options):
    wanted, model = alone(**options), trained(in_parts(4, X, Y), **options)
    assert precision(model) > precision(wanted) - 0.03
    assert model.get_params() | {"n_jobs": 2} == wanted.get_params()


def test_single_labels_and_dense_columns():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(N_LABELS, 32))
    rows = (centers[ONE_LABEL] + rng.normal(size=(N_ROWS, 32))).astype(np.float32)
    wanted = alone(rows[:800], ONE_LABEL[:800])
    model = trained(in_parts(4, rows[:800], ONE_LABEL[:800]))
    scores = [each.score(rows[800:], ONE_LABEL[800:]) for each in (model, wanted)]
    assert scores[0] > scores[1] - 0.03


@pytest.fixture(scope="module")
def results():
    """Return results of tasks, which averages of thresholds share."""
    return {}


@pytest.mark.parametrize("average", ["row", "micro", "macro"])
def test_thresholds_are_fitted_on_rows_that_a_first_model_leaves_out(average, results):
    wanted = alone(threshold=average)
    model = trained(in_parts(4, X, Y), threshold=average, results=results)
    assert np.unique(model.threshold_).tolist() != [0.5]
    both = [each.predict(X_TEST) for each in (model, wanted)]
    f1 = [2 * each.multiply(Y_TEST).sum() / (each.sum() + Y_TEST.sum()) for each in both]
    assert f1[0] > f1[1] - 0.03


def test_no_task_gets_all_rows():
    """A task gets one partition, a group's rows, the sample, or the rows of the fit."""
    sizes, made = {}, {}

    class Watching(Serial):
        def submit(self, name, function, *arguments, turn=None):
            sizes[name] = max(sizes.get(name, 0), len(pickle.dumps(arguments)))
            made[name] = super().submit(name, function, *arguments)
            return made[name]

    trained(in_parts(10, X, Y), N_ROWS // 10, tasks=Watching())
    rows = len(pickle.dumps(X))
    assert sizes["examples"] < 0.2 * rows
    # A fifth of few rows, at most 4,096 of many, with the labels that trees find likely.
    assert len(pickle.dumps(made["fit-rows"])) < 0.4 * rows
    assert max(sizes[name] for name in ("rows", "facts", "sampled", "tree")) < 0.5 * rows


def test_groups_hold_about_as_many_examples_each():
    children = np.array([[1, 2], [3, 4], [-1, -1], [-1, -1], [-1, -1]], np.int32)
    assert _places(children).tolist() == [0, 1, 4, 2, 3]

    class Sample:
        def groups(self, *facts):
            return facts

    tally = 10, 20.0, np.array([4, 0, 4, 4, 4]), np.array([16.0, 0, 8, 12, 4])
    groups, n_groups, counts, *facts = _grouped([tally, tally], 2, Sample())
    assert groups.tolist() == [1, 0, 0, 1, 0]
    assert (n_groups, facts) == (2, [20, 2.0])
    assert counts.tolist() == [8, 0, 8, 8, 8]
    # A label can be larger than a group.
    tally = 10, 10.0, np.array([9, 1, 0]), np.array([9.0, 2, 0])
    assert _grouped([tally], 4, Sample())[0].tolist() == [1, 3, 0]


def test_damaged_parts_are_refused(halves):
    labels = np.unique(ONE_LABEL, return_inverse=True)[1].astype(np.uint32)
    n_labels = int(labels.max()) + 1
    params = json.dumps(LdSMClassifier(**QUICK)._core_params() | {"seed": 0})
    sample = _core.LdsmTraining(params, n_labels, X, labels, np.ones(N_ROWS))
    trees = [sample.trees([number], False, 1) for number in range(3)]
    of, counts = np.arange(n_labels, dtype=np.uint32) % 2, np.bincount(labels).astype(np.uint32)
    groups = sample.groups(of, 2, counts, N_ROWS, 1.0)
    is_fit = np.arange(N_ROWS) % 5 == 0

    def divide(groups, rows, *learned):
        data = X[rows], labels[rows], np.ones(rows.sum())
        return _core.ldsm_divide(trees, groups, 0, *data, *learned)

    first, second, fit = divide(groups, is_fit)
    other, _ = divide(groups, ~is_fit, np.zeros((800, 3), np.bool_))
    mined = [_core.ldsm_mine(groups, *each) for each in ((0, [first, other]), (1, [second, b""]))]
    settings = _core.ldsm_choose(groups, [gains for _, gains in mined])
    learned = [_core.ldsm_scorers(groups, i, mined[i], settings, fit) for i in range(2)]
    layout = _core.ldsm_layout(groups, fit, [counts for _, counts in learned])
    parts = zip(range(2), [None, None], learned, strict=True)
    found = [_core.ldsm_margins(groups, fit, layout, "", *each) for each in parts]
    parts, margins = ([each[i] for each in found] for i in range(2))
    join = _core.ldsm_join(groups, fit, settings, margins)
    _core.ldsm_model(trees, join, parts)
    for damaged in (b"none", first[:-9], parts[0], groups, bytes_of(halves)):
        with pytest.raises(_core.ModelFileError):
            _core.ldsm_mine(groups, 0, [damaged])
        with pytest.raises(_core.ModelFileError):
            _core.ldsm_scorers(groups, 0, (damaged, []), settings, fit)
        with pytest.raises(_core.ModelFileError):
            _core.ldsm_join(groups, fit, settings, [margins[0], damaged])
    with pytest.raises(_core.ModelFileError):
        _core.ldsm_model(trees, join, [first, second])
    with pytest.raises(ValueError, match="the scorers of a group are missing"):
        _core.ldsm_join(groups, fit, settings, margins[:1])
    with pytest.raises(ValueError, match="the scorers of a group are missing"):
        _core.ldsm_model(trees, join, parts[:1])
    with pytest.raises(ValueError, match="the rows of the fit do not match"):
        _core.ldsm_layout(groups, first, [learned[0][1]])
    with pytest.raises(ValueError, match="the parts must have 3 trees together, got 2"):
        _core.ldsm_model(trees[:2], join, parts)
    with pytest.raises(ValueError, match="there are no trees"):
        sample.model([_core.Classifier("oaa", "{}", n_labels)], 1)
    with pytest.raises(ValueError, match="rows, trees and groups do not match"):
        divide(groups, ~is_fit, np.zeros((800, 2), np.bool_))
    with pytest.raises(ValueError, match="there is no such group"):
        _core.ldsm_mine(groups, 2, [first])
    with pytest.raises(ValueError, match="the pieces of a group do not match"):
        _core.ldsm_mine(groups, 0, [other, first])
    with pytest.raises(ValueError, match="gains and settings do not match"):
        _core.ldsm_choose(groups, [[[0.0]]])
    for changed in ((of, 1, counts), (of, 2, 0 * counts), (of[1:], 2, counts)):
        facts = sample.groups(*changed, N_ROWS, 1.0)
        with pytest.raises(_core.ModelFileError, match="labels, groups and counts do not match"):
            divide(facts, is_fit)
    narrow = _core.LdsmTraining(params, n_labels, X[:, 1:], labels, np.ones(N_ROWS))
    with pytest.raises(ValueError, match="rows, trees and groups do not match"):
        divide(narrow.groups(of, 2, counts, N_ROWS, 1.0), is_fit)
    with pytest.raises(ValueError, match="X has no rows"):
        trained([(sp.csr_matrix((0, 300)), Y[:0], None)])
