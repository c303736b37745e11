"""Files, pickles and copies predict the same, and train further the same."""

import copy
import os
import pickle
import sys
from pathlib import Path

import estimators
import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
import xmtree
from model_bytes import rewritten
from sklearn.base import clone
from xmtree._online import OnlineLearner
from xmtree._persistence import pack, unpack

GOLDEN = Path(__file__).parent / "golden"
X, Y = estimators.sparse()


def through_file(model, path):
    model.save(path)
    return xmtree.load(path)


def through_mapped_file(model, path):
    model.save(path)
    return xmtree.load(path, mmap=True)


def through_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


def through_skops(model, path):
    skops.io.dump(model, path)
    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))


WAYS = {
    "file": through_file,
    "mapped file": through_mapped_file,
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "old pickle": lambda model, path: pickle.loads(pickle.dumps(model, protocol=2)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "joblib": through_joblib,
    "skops": through_skops,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "file") for name in estimators.ALL),
        *((name, way) for name in estimators.PYTHON for way in WAYS if way != "file"),
    ],
)
def test_a_round_trip(name, way, tmp_path):
    model = estimators.ALL[name]().fit(X, Y)
    again = WAYS[way](model, tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.classes_.dtype == model.classes_.dtype
    estimators.same_predictions(again, model, X)
    if name not in estimators.ONLINE:
        return
    assert again.progressive_loss_ == model.progressive_loss_
    assert again.n_examples_seen_ == model.n_examples_seen_
    for learner in (again, model):
        learner.partial_fit(X[:50], Y[:50])
    estimators.same_predictions(again, model, X)
    assert again.progressive_loss_ == model.progressive_loss_


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree"])
def test_a_round_trip_after_dense_rows(name, tmp_path):
    rows, labels = estimators.dense()
    model = estimators.ALL[name]().fit(rows, labels)
    again = through_file(model, tmp_path / "model")
    estimators.same_predictions(again, model, rows)
    for learner in (again, model):
        learner.partial_fit(rows, labels)
    estimators.same_predictions(again, model, rows)


LABELS = {
    "int": np.arange(12) - 3,
    "int8": np.arange(12, dtype=np.int8),
    "uint64": np.arange(12, dtype=np.uint64) + np.uint64(2**63),
    "float32": np.arange(12, dtype=np.float32),
    "str": np.array([f"löwe {at}" for at in range(12)]),
    "empty str": np.array(["", *"abcdefghijk"]),
    "object": np.array([f"l{at}" for at in range(12)], object),
    "datetime": np.array(["2020-01-01"], "M8[D]") + np.arange(12),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_type_are_restored_from_a_file(labels, tmp_path):
    labels = np.sort(labels)
    model = xmtree.LOMTreeClassifier(random_state=0).fit(X, labels[Y])
    again = through_file(model, tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("longest", ["x" * 300, "é" * 300, "漢" * 300])
def test_labels_of_uneven_lengths_are_restored_from_a_file(longest, tmp_path):
    labels = [f"topic{at}" for at in range(1500)]
    labels[7] = longest
    rows = np.random.default_rng(0).random((1500, 4))
    model = xmtree.LOMTreeClassifier(n_passes=1, random_state=0).fit(rows, labels)
    again = through_file(model, tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype == "<U300"
    np.testing.assert_array_equal(again.classes_, model.classes_)


def test_many_empty_names_are_restored_from_a_file():
    names = np.full(200_000, "", object)
    np.testing.assert_array_equal(unpack("names", pack("names", names), names.dtype), names)


def test_two_classes_of_bool(tmp_path):
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y % 2 == 0)
    again = through_file(model, tmp_path / "model")
    assert again.classes_.dtype == bool


@pytest.mark.parametrize("form", ["sparse", "indicator", "lists"])
def test_label_sets_are_restored_in_their_form(form, tmp_path):
    rows, sets = estimators.label_sets()
    forms = {
        "sparse": sets,
        "indicator": sets.toarray(),
        "lists": [[f"label {at}" for at in row.indices] for row in sets],
    }
    model = xmtree.OAAClassifier(random_state=0).fit(rows, forms[form])
    again = through_file(model, tmp_path / "model")
    one, other = again.predict(rows), model.predict(rows)
    assert type(one) is type(other)
    if form == "sparse":
        one, other = one.toarray(), other.toarray()
    assert np.array_equal(one, other) if form != "lists" else one == other


def test_feature_names_and_settings_are_kept(tmp_path):
    frame = pd.DataFrame(X.toarray(), columns=[f"f{at}" for at in range(X.shape[1])])
    model = xmtree.OAAClassifier(
        n_negatives=np.int64(3),
        learning_rate=np.float32(0.5),
        random_state=np.random.RandomState(1),
        n_jobs=2,
    ).fit(frame, Y)
    again = through_file(model, tmp_path / "model")
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    assert again.n_negatives == 3
    assert isinstance(again.random_state, int)
    clone(again).fit(frame, Y)
    again.partial_fit(frame, Y)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "recall-tree", "filter-tree", "gamble"])
def test_damaged_files_are_refused(name, tmp_path):
    path = tmp_path / "model"
    estimators.ALL[name]().fit(X, Y).save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for at in random.integers(0, len(whole), 40):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(xmtree.ModelFileError, match="model"):
            xmtree.load(path)
    for length in (0, 7, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(xmtree.ModelFileError):
            xmtree.load(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "model"
    path.write_text("something else")
    with pytest.raises(xmtree.ModelFileError, match="model"):
        xmtree.load(path)
    with pytest.raises(FileNotFoundError):
        xmtree.load(tmp_path / "absent")
    with pytest.raises(OSError, match="absent"):
        xmtree.OAAClassifier().fit(X, Y).save(tmp_path / "absent" / "model")
    assert issubclass(xmtree.ModelFileError, ValueError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state_version": 99}, "newer"),
        ({"class": "Estimator"}, "no class Estimator"),
        ({"class": "load"}, "no class load"),
        ({"params": {"unheard_of": 1}}, "damaged"),
        ({"classes_dtype": "O"}, "damaged"),
        ({"classes_dtype": "nonsense"}, "damaged"),
        ({"more": {}}, "damaged"),
        ({"classes_dtype": "f8," * 10_000}, "damaged"),
    ],
)
def test_inconsistent_files_are_refused(changes, message, tmp_path):
    path = tmp_path / "model"
    xmtree.OAAClassifier().fit(X, Y).save(path)
    rewritten(path, **changes)
    with pytest.raises(xmtree.ModelFileError, match=message):
        xmtree.load(path)


def test_an_ensemble_with_very_many_standardized_columns_can_be_saved(tmp_path):
    # As JSON, means and deviations would take 57 bytes of the header per column and tree, and
    # safetensors allows a header of 100 MB.
    X = np.random.default_rng(0).normal(size=(4, 17_500)).astype(np.float32)
    model = xmtree.LOMTreeClassifier(
        n_estimators=101, n_passes=1, scaling="standard", random_state=0
    ).fit(X, [0, 1, 0, 1])
    model.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again._model.to_bytes() == model._model.to_bytes()


def resident(path):
    """Return the resident and the total bytes of a mapped file."""
    read = size = 0
    with open("/proc/self/smaps") as maps:
        for line in maps:
            if "-" in line.split(" ", 1)[0]:
                is_file = line.rstrip().endswith(str(path))
            elif is_file and line.startswith("Rss:"):
                read += 1024 * int(line.split()[1])
            elif is_file and line.startswith("Size:"):
                size += 1024 * int(line.split()[1])
    return read, size


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc counts what is read")
def test_loading_by_mmap_reads_little_of_a_large_file(tmp_path):
    path = tmp_path / "model"
    # "nag" has no average, so its weights predict as they are stored.
    few, many = np.random.default_rng(0).normal(size=(2, 40, 30_000)).astype(np.float32)
    y = np.arange(40)
    model = xmtree.OAAClassifier(n_passes=1, optimizer="nag", scaling="none", random_state=0)
    model.fit(many, y).save(path)
    again = xmtree.load(path, mmap=True)
    read, size = resident(path)
    assert path.stat().st_size <= size < path.stat().st_size + 5000
    assert size > 7_000_000
    assert read < 1_000_000
    labels, scores = model.predict_topk(few, 3)
    found, found_scores = again.predict_topk(few, 3)
    assert np.array_equal(found, labels)
    assert np.array_equal(found_scores, scores)
    read, _ = resident(path)
    assert read > 7_000_000  # The weights are used in place, not in a copy.


def test_a_mapped_model_outlives_its_file(tmp_path):
    path = tmp_path / "model"
    model = xmtree.OAAClassifier(optimizer="nag", random_state=0).fit(X, Y)
    model.save(path)
    mapped = xmtree.load(path, mmap=True)
    if os.name != "nt":
        xmtree.OAAClassifier(optimizer="nag", random_state=1).fit(X[:50], Y[:50]).save(path)
        path.unlink()
    estimators.same_predictions(mapped, model, X)
    # Training changes memory, not the file.
    estimators.same_predictions(mapped.partial_fit(X, Y), model.partial_fit(X, Y), X)
    assert pickle.loads(pickle.dumps(mapped))._model.to_bytes() == model._model.to_bytes()
    mapped.save(path)
    estimators.same_predictions(xmtree.load(path, mmap=True), model, X)


@pytest.mark.parametrize("length", [0, 7, 20, 40, 3000, -1])
def test_mapped_files_of_another_length_are_refused(length, tmp_path):
    path = tmp_path / "model"
    xmtree.LdSMClassifier(n_estimators=1, max_nodes=10).fit(X, Y).save(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(xmtree.ModelFileError, match="model"):
        xmtree.load(path, mmap=True)


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_compact_files_predict_the_same_and_do_not_learn(name, tmp_path):
    path = tmp_path / "model"
    # Unscaled rows: weights keep their bits, and predictions do not change.
    model = estimators.ALL[name](scaling="none").fit(X, Y)
    model.save(path, compact=True)
    compact = xmtree.load(path)
    assert compact.get_params() == model.get_params()
    if name in estimators.ONLINE:
        estimators.same_predictions(compact, model, X)
        assert compact.progressive_loss_ == model.progressive_loss_
        with pytest.raises(ValueError, match="saved for prediction only"):
            compact.partial_fit(X, Y)
    if name in estimators.ONLINE and hasattr(model, "trees_"):
        with pytest.raises(AttributeError, match="saved for prediction only"):
            _ = compact.trees_
    # The loaded model can be saved again.
    estimators.same_predictions(pickle.loads(pickle.dumps(compact)), compact, X)
    compact.save(path)
    estimators.same_predictions(xmtree.load(path, mmap=True), compact, X)
    estimators.same_predictions(compact.fit(X, Y), model, X)
    if name in estimators.ONLINE:
        compact.partial_fit(X, Y)


@pytest.mark.parametrize("name", list(estimators.ALL))
def test_compact_files_have_half_the_bits_of_weights(name, tmp_path):
    full, small = tmp_path / "full", tmp_path / "small"
    model = estimators.ALL[name](scaling="row").fit(X, Y)
    model.save(full)
    model.save(small, compact=True)
    compact = xmtree.load(small)
    if name.startswith("ldsm"):
        assert small.read_bytes() == full.read_bytes()
    else:
        assert small.stat().st_size < full.stat().st_size
    best, scores = model.predict_topk(X, 1)
    found, found_scores = compact.predict_topk(X, 1)
    assert np.mean(best != found) <= 0.01
    np.testing.assert_allclose(found_scores, scores, rtol=0.01, atol=0.01)


def test_files_of_0_1_0_are_read(tmp_path):
    """Files of every learner, written by 0.1.0, with predictions of 10 rows."""
    with np.load(GOLDEN / "files_0.1.0.npz") as stored:
        kept = dict(stored)
    names = [key.removesuffix(".file") for key in kept if key.endswith(".file")]
    assert len(names) == 10
    for name in names:
        kept[f"{name}.file"].tofile(tmp_path / name)
        model = xmtree.load(tmp_path / name)
        rows = kept["texts"][:10].tolist() if name == "text" else kept["X"][:10]
        labels, scores = model.predict_topk(rows, 2)
        assert labels.astype(str).tolist() == kept[f"{name}.labels"].tolist(), name
        np.testing.assert_allclose(scores, kept[f"{name}.scores"], rtol=1e-5)
        np.testing.assert_allclose(model.predict_proba(rows), kept[f"{name}.proba"], rtol=1e-5)
        if isinstance(model, OnlineLearner) and getattr(model, "prune", None) is None:
            assert model.partial_fit(rows, model.predict(rows)).n_examples_seen_ > 80
