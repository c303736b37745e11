"""xmtree.dask without a cluster."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

from test_ldsm import FEW, X_NEW, X, Y
from xmtree import LdSMClassifier, OAAClassifier
from xmtree.dask import DaskLdSMClassifier, DaskTextClassifier
from xmtree.dask._base import _predicted, _scored, _topk
from xmtree.dask._cluster import Tasks, workers_of
from xmtree.dask._plan import joined_labels, labels_of


def test_parameters_without_effect_are_refused():
    with pytest.raises(TypeError, match=r"no parameter 'n_jobs': a worker's own threads"):
        DaskLdSMClassifier(n_jobs=2)
    with pytest.raises(TypeError, match=r"no parameter 'warm_start'"):
        DaskLdSMClassifier(warm_start=True)
    with pytest.raises(TypeError, match="n_trees"):
        DaskLdSMClassifier(n_trees=2)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (OAAClassifier(early_stopping=True), "early_stopping"),
        (OAAClassifier(n_jobs=2), "n_jobs"),
        (LdSMClassifier(warm_start=True), "warm_start"),
    ],
)
def test_parameters_of_the_learner_of_texts_without_effect_are_refused(learner, name):
    model = DaskTextClassifier(learner=learner)
    with pytest.raises(TypeError, match=rf"learner: {type(learner).__name__} .* '{name}'"):
        model.fit(["a text"], ["a label"])


def test_a_missing_client_is_reported():
    with pytest.raises(ValueError, match="there is no Dask client"):
        DaskLdSMClassifier(**FEW).fit(X, Y)


def test_a_worker_that_has_just_left_is_waited_for():
    class Client:
        answers, waits = [{}, {"address": {}}], 0

        def wait_for_workers(self, n_workers, timeout):
            self.waits += 1

        def scheduler_info(self, n_workers):
            return {"workers": self.answers.pop(0)}

    client = Client()
    assert workers_of(client) == {"address": {}}
    assert client.waits == 2


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([np.array([2**53 + 1, -1]), np.array([2**63 - 1], np.uint64)], [2**53 + 1, -1, 2**63 - 1]),
        ([np.array([1, 2]), np.array([2**63 + 1], np.uint64)], [1, 2, 2**63 + 1]),
        ([np.array([2**53 + 1]), np.array([])], [2**53 + 1]),
        ([pd.Series([2**53 + 1], dtype="Int64"), np.array([1])], [2**53 + 1, 1]),
        ([["a"], np.array(["bcd"])], ["a", "bcd"]),
        ([np.array(["a"]), np.array(["bcd"], object)], ["a", "bcd"]),
        ([np.array([1], "M8[D]"), np.array([2], "M8[ns]")], [86400 * 10**9, 2]),
        ([[[1]], [[2, 3]]], [1, 2, 3]),
    ],
)
def test_labels_of_partitions_are_kept_exactly(parts, expected):
    labels = joined_labels([labels_of(part) for part in parts], None)
    assert labels.classes.tolist() == sorted(expected)


def test_inconsistent_partitions_are_refused():
    numbers, names = np.array([1, 2]), np.array(["a", "b"])
    with pytest.raises(ValueError, match="y mixes labels of different types: int, str"):
        joined_labels([labels_of(numbers), labels_of(names)], None)
    large = [labels_of(np.array([1])), labels_of(np.array([2**53 + 1], np.uint64))]
    assert joined_labels(large, None).classes.tolist() == [1, 2**53 + 1]


@pytest.mark.parametrize("y", [["a", "b"], [["a"], ["a", "b"]], np.eye(2), sp.csr_array(np.eye(2))])
def test_a_partition_without_rows_is_predicted(y):
    model = OAAClassifier(random_state=0).fit(np.eye(2), y)
    found, none = _predicted(model, np.eye(2)), _predicted(model, np.empty((0, 2)))
    assert (type(none), none.dtype) == (type(found), found.dtype)
    assert none.shape == (0, *found.shape[1:])
    labels, scores = _topk(model, sp.csr_matrix((0, 2)), 3, "raw")
    assert (labels.shape, scores.shape, scores.dtype) == ((0, 3), (0, 3), np.float32)
    assert labels.dtype == model.predict_topk(np.eye(2))[0].dtype
    assert _scored(model, np.empty((0, 2)), y[:0], None) == (0, 0)


def test_misaligned_arrays_are_read():
    """Arrays in messages between processes may be misaligned."""

    def moved(array):
        memory = np.empty(array.nbytes + 1, np.uint8)[1:]
        memory[:] = array.view(np.uint8)
        return memory.view(array.dtype)

    arrays = moved(X_NEW.data), moved(X_NEW.indices), moved(X_NEW.indptr)
    assert not arrays[0].flags.aligned
    rows = sp.csr_matrix(arrays, X_NEW.shape)
    rows.data, rows.indices, rows.indptr = arrays
    labels, weights = moved(np.arange(300) % 5), moved(np.ones(300))
    model = OAAClassifier(random_state=0).fit(rows, labels, weights)
    wanted = OAAClassifier(random_state=0).fit(X_NEW, np.arange(300) % 5, np.ones(300))
    assert np.array_equal(model.decision_function(rows), wanted.decision_function(X_NEW))


@pytest.mark.parametrize("name", ["dask", "distributed"])
def test_without_dask(name, monkeypatch):
    monkeypatch.delitem(sys.modules, "xmtree.dask")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'dask\[array\]' distributed"):
        importlib.import_module("xmtree.dask")


def test_workers_take_tasks_in_turns():
    given = []

    class Client:
        def submit(self, function, *args, key, pure, fifo_timeout, **options):
            given.append(options)
            return Client()

    tasks = Tasks(Client(), {"a": {}, "b": {}}, "test", "testing")
    tasks._interrupted = False
    for turn in (None, 0, 1, 2):
        tasks.submit("same", len, [], turn=turn)
    # Others may replace a lost worker.
    wanted = [{"workers": worker, "allow_other_workers": True} for worker in "aba"]
    assert given == [{}, *wanted]
