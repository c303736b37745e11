"""LdSM in a folder: scorers in a file for each group of labels, read one after the other."""

import os
import pickle
import shutil

import dask
import dask.array as da
import numpy as np
import pytest

pytest.importorskip("distributed")

from dask.delayed import delayed
from distributed import Client
from serial_tasks import fitted, in_parts
from xmtree import LdSMClassifier, ModelFileError, load
from xmtree._ldsm_parts import MAIN, LdSMInParts, publish
from xmtree._persistence import save_around
from xmtree.dask import DaskLdSMClassifier
from xmtree.datasets import make_xmc

N_LABELS, N_ROWS = 200, 800
ALL = make_xmc(N_ROWS + 150, 200, N_LABELS, multilabel=True, noise=0.2, random_state=0)
(X, X_TEST), (Y, _) = ((each[:N_ROWS], each[N_ROWS:]) for each in ALL)
ONE_LABEL = np.asarray(Y.argmax(axis=1)).ravel().astype(str)
QUICK = {"n_estimators": 2, "max_nodes": 60, "cost": 1.0, "random_state": 0}
#: Results of tasks, which a model in a folder and the whole model share.
RESULTS = {}


def trained(y, folder=None, *, rows=X, n_parts=4, n_workers=1, results=None, **params):
    """Return a model of partitions, in a folder if it is given."""
    workers = {str(i): {"nthreads": 2, "memory_limit": 0} for i in range(n_workers)}
    parts, options = in_parts(n_parts, rows, y), {"results": results, "folder": folder}
    with dask.config.set({"xmtree.tree-rows": N_ROWS // 2}):
        model = fitted(DaskLdSMClassifier, parts, workers=workers, **options, **(QUICK | params))
    if folder is not None:
        publish(model, folder)
    return model


@pytest.fixture(scope="module")
def whole():
    return trained(Y, results=RESULTS)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    trained(Y, folder, results=RESULTS)
    return folder


@pytest.fixture
def folder(stored, tmp_path):
    """Return a copy of the folder."""
    return shutil.copytree(stored, tmp_path / "copy")


def groups_in(folder):
    return sorted(folder.glob("group-*.xmtree"))


def same(parts, whole, rows):
    for k in (1, 5, N_LABELS + 50):
        for scores in ("raw", "probability"):
            found = [each.predict_topk(rows, k, scores=scores) for each in (parts, whole)]
            assert np.array_equal(found[0][0], found[1][0])
            assert np.array_equal(found[0][1], found[1][1])


def same_sets(parts, whole):
    assert (parts.predict(X_TEST) != whole.predict(X_TEST)).nnz == 0


def test_label_sets_are_predicted_as_by_the_whole_model(stored, whole):
    assert len(groups_in(stored)) == 3
    model = load(stored / MAIN)
    assert isinstance(model, LdSMInParts)
    same(model, whole, X_TEST)
    same(model, whole, X_TEST[:1])
    same_sets(model, whole)
    assert model.score(X, Y) == whole.score(X, Y)
    choices = [{"threshold": 0.02}, {"threshold": 0.9}, {"n_labels": 3}]
    choices.append({"threshold": np.linspace(0.1, 0.9, N_LABELS)})
    for choice in choices:
        same_sets(*(pickle.loads(pickle.dumps(m)).set_params(**choice) for m in (model, whole)))


@pytest.mark.parametrize("kind", ["words", "hashed", "dense"])
def test_single_labels_are_predicted_as_by_the_whole_model(kind, tmp_path):
    rows, params = X, {"n_bits": 6} if kind == "hashed" else {}
    if kind == "dense":
        rows = np.random.default_rng(0).normal(size=(N_ROWS, 24)).astype(np.float32)
    params |= {"rows": rows, "results": RESULTS}
    parts, whole = (trained(ONE_LABEL, to, **params) for to in (tmp_path, None))
    assert len(groups_in(tmp_path)) == 2
    test = rows[:100]
    same(parts, whole, test)
    assert np.array_equal(parts.predict(test), whole.predict(test))
    assert parts.whole()._model.to_bytes() == whole._model.to_bytes()


def test_a_group_may_have_no_labels(tmp_path, monkeypatch):
    """Most rows have one label, which is larger than several groups."""
    monkeypatch.setattr("xmtree.dask._ldsm._LABELS", 16)
    y = np.where(np.arange(N_ROWS) % 4, -1, np.arange(N_ROWS))
    parts, whole = (trained(y, to, results=RESULTS) for to in (tmp_path, None))
    sizes = [os.path.getsize(file) for file in groups_in(tmp_path)]
    assert len(sizes) == 8
    assert min(sizes) < 3000
    same(parts, whole, X_TEST[:50])


def test_one_group_is_one_file(tmp_path):
    for y, params in ((Y[:, :100], {}), (Y, {"scorers": "none"})):
        whole = trained(y, rows=X, n_parts=1, **params)
        trained(y, tmp_path, n_parts=1, **params)
        model = load(tmp_path / MAIN)
        same(model, whole, X_TEST)
    assert type(model) is LdSMClassifier
    assert os.listdir(tmp_path) == [MAIN]


def test_workers_do_not_matter(folder, whole, tmp_path):
    to = tmp_path / "other"
    to.mkdir()
    other = trained(Y, to, n_workers=3)
    first = load(folder / MAIN)
    assert other.whole()._model.to_bytes() == first.whole()._model.to_bytes()
    assert other.whole()._model.to_bytes() == whole._model.to_bytes()
    # A whole model can be saved and trained as usual; one in parts only predicts.
    first.save(tmp_path / "whole")
    same(load(tmp_path / "whole"), whole, X_TEST[:20])
    with pytest.raises(TypeError, match="only predicts"):
        first.fit(X, Y)
    with pytest.raises(AttributeError, match="a model in parts has no"):
        _ = first.coef_


def test_missing_and_foreign_parts_are_refused(folder, tmp_path):
    model, (first, second, _) = load(folder / MAIN), groups_in(folder)
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(ModelFileError, match=f"{second.name}, a part of this model, is missing"):
        load(folder / MAIN)
    with pytest.raises(FileNotFoundError, match=second.name):
        model.predict_topk(X_TEST)
    # The labels of the first group would be there twice.
    second.write_bytes(first.read_bytes())
    for predict in (lambda: model.predict_topk(X_TEST), model.whole):
        with pytest.raises(ValueError, match="the scorers of a group are missing"):
            predict()
    second.write_bytes(kept[:-5])
    with pytest.raises(ModelFileError, match=second.name):
        model.predict_topk(X_TEST)
    other = tmp_path / "other"
    other.mkdir()
    trained(Y, other)
    second.write_bytes(groups_in(other)[1].read_bytes())
    with pytest.raises(ModelFileError, match=f"{second.name}.*part of another model"):
        model.predict_topk(X_TEST)
    (folder / MAIN).unlink()
    with pytest.raises(FileNotFoundError):
        load(folder / MAIN)


@pytest.mark.parametrize(
    "changed", [{"name": "../other"}, {"n_groups": 10**12}, {"n_groups": 0}, {"n_groups": "3"}]
)
def test_a_main_file_with_other_facts_is_refused(folder, changed):
    model = load(folder / MAIN)
    facts = {"name": model._model.name, "n_groups": len(model._model.files)} | changed
    path = folder / "changed.xmtree"
    save_around(model, model._local(model._model.trees), path, {}, compact=False, **facts)
    with pytest.raises(ModelFileError, match="damaged model"):
        load(path)


def test_a_model_is_replaced_at_the_end(folder, whole, monkeypatch):
    before = groups_in(folder)
    with monkeypatch.context() as patch:
        patch.setattr("xmtree.dask._ldsm._core.ldsm_join", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trained(Y, folder)
    assert len(groups_in(folder)) == 2 * len(before)
    same(load(folder / MAIN), whole, X_TEST[:20])
    trained(ONE_LABEL, folder)
    assert len(groups_in(folder)) == 2
    assert not set(groups_in(folder)) & set(before)
    assert load(folder / MAIN).classes_.dtype.kind == "U"


@pytest.mark.parametrize("params", [{"threshold": "macro"}, {"beta": 0.5}])
def test_thresholds_and_centroids_are_those_of_the_whole_model(params, whole, tmp_path):
    trained(Y, tmp_path, results=RESULTS, **params)
    assert len(groups_in(tmp_path)) == 3
    parts, other = load(tmp_path / MAIN), trained(Y, results=RESULTS, **params)
    same(parts, other, X_TEST)
    same_sets(parts, other)
    assert (other.predict(X_TEST) != whole.predict(X_TEST)).nnz > 0


def test_workers_write_and_predict(tmp_path):
    folder = tmp_path / "new" / "model"
    cuts = [slice(0, 60), slice(60, 60), slice(60, 150)]
    parts = [delayed(X_TEST[cut]) for cut in cuts]
    rows = da.concatenate(
        [da.from_delayed(parts[i], (60 + i * 15, 200), meta=X[:0]) for i in (0, 2)]
    )
    with Client(processes=False, dashboard_address=":0", n_workers=1, threads_per_worker=2):
        model = DaskLdSMClassifier(**QUICK, threshold="micro").fit_to_folder(folder, X, Y)
        local = model.to_local()
        assert type(local) is LdSMClassifier
        assert local.threshold_ != 0.5
        wanted = local.predict_topk(X_TEST, 4)
        again = DaskLdSMClassifier.from_local(load(folder / MAIN))
        assert again.get_params() == model.get_params()
        for each in (model, again, DaskLdSMClassifier.from_local(local)):
            found = dask.compute(*each.predict_topk(rows, 4))
            by_part = dask.compute(*each.predict_topk(parts, 4))
            assert [len(labels) for labels, _ in by_part] == [60, 0, 90]
            for pair in (found, map(np.concatenate, zip(*by_part, strict=True))):
                assert all(map(np.array_equal, pair, wanted))
            assert np.array_equal(each.predict_topk(X_TEST, 4)[0], wanted[0])
        assert (model.predict(rows).compute() != local.predict(X_TEST)).nnz == 0
        with pytest.raises(TypeError, match="local must be LdSMClassifier"):
            DaskLdSMClassifier.from_local(model)
