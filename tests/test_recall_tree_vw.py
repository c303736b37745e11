"""Recall Tree in its reference mode equals Vowpal Wabbit's --recall_tree, with the same tree."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree import RecallTreeClassifier

GOLDEN = Path(__file__).parent / "golden"
#: Streams with rows of weight 0. They change Vowpal Wabbit, which loses its tree if they come
#: early; here they have no effect.
WITH_ZEROS = {"vw_recall_weighted", "vw_recall_late_zeros"}


def runs():
    """Yield every run of every golden file whose options xmtree supports."""
    found = []
    for path in sorted(GOLDEN.glob("vw_recall_*.npz")):
        with np.load(path) as file:
            options = json.loads(str(file["meta"]))["options"]
        for run, text in options.items():
            if "quantile_tau" not in text and path.stem not in WITH_ZEROS:
                found.append(pytest.param(path, run, text, id=f"{path.stem}-{run}"))
    return found


def settings(text, n_classes):
    """Return Vowpal Wabbit's options as parameters."""
    given = dict(RecallTreeClassifier.VW)
    for option in text.split("--")[2:]:
        name, _, value = option.strip().partition(" ")
        if name == "node_only":
            given["path_features"] = "node_only"
        elif name == "loss_function":
            given["loss"] = value
        else:
            given[name] = int(value) if name.startswith("max") else float(value)
    return given


def rows(file, part, n_features):
    parts = [file[f"{part}_{name}"] for name in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=(len(parts[2]) - 1, n_features))


@pytest.mark.parametrize(("path", "run", "text"), runs())
def test_predictions_agree(path, run, text):
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        expected = {part: file[f"{run}.{part}"] for part in ("pass1", "pass2", "test")}
        weights = file.get("train_weight")
        bounds = file[f"{run}.node_bound"]
        counts = file[f"{run}.node_n"]
    with np.load(GOLDEN / f"vw_{meta['stream']}.npz") as file:
        train, test = (rows(file, part, meta["n_features"]) for part in ("train", "test"))
        labels = file["train_y"]
        weights = file["train_weight"] if weights is None else weights
    model = RecallTreeClassifier(**settings(text, meta["n_classes"]))
    model.partial_fit(train[:1], labels[:1], np.arange(meta["n_classes"]), weights[:1])
    # The core's model, because the checks of the estimator take longer than the work on one row.
    core, y, heavy = model._model, labels.astype(np.uint32), weights.astype(float)
    singles = [train[i : i + 1] for i in range(len(labels))]
    for part in ("pass1", "pass2"):
        for i, x in enumerate(singles):
            if part == "pass1" and i == 0:
                continue
            answer = core.predict_topk(x, 1)[0][0, 0]
            # Where an unseen leaf has no answer, the node above it gives one here.
            assert expected[part][i] in (answer, -1), f"{part}, example {i}"
            core.partial_fit(x, y[i : i + 1], heavy[i : i + 1])
    np.testing.assert_array_equal(model.predict_topk(test, 1)[0][:, 0], expected["test"])
    seen = counts > 0
    tree = model.tree_
    assert sorted(tree.n_examples) == pytest.approx(sorted(counts[seen]))
    np.testing.assert_allclose(np.sort(tree.recall_bound), np.sort(bounds[seen]), atol=1e-6)


@pytest.mark.parametrize(("path", "run", "text"), runs())
def test_every_node_agrees(path, run, text):
    """Compare the tree and the progressive errors after both passes."""
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        node = {name: file[f"{run}.node_{name}"] for name in ("links", "n", "entropy", "bound")}
        starts, labels, counts = (file[f"{run}.table_{k}"] for k in ("indptr", "label", "count"))
        answers = np.concatenate([file[f"{run}.pass1"], file[f"{run}.pass2"]])
        weights = file.get("train_weight")
    with np.load(GOLDEN / f"vw_{meta['stream']}.npz") as file:
        train, y = rows(file, "train", meta["n_features"]), file["train_y"]
        weights = file["train_weight"] if weights is None else weights
    model = RecallTreeClassifier(**settings(text, meta["n_classes"]))
    for _ in range(2):
        model.partial_fit(train, y, np.arange(meta["n_classes"]), weights)

    twice = np.tile(weights, 2)
    wrong = np.average(answers != np.tile(y, 2), weights=twice)
    # Where an unseen leaf has no answer, the node above it gives one here.
    silent = np.average(answers == -1, weights=twice)
    assert wrong - silent - 1e-9 <= model.progressive_loss_ <= wrong + 1e-9
    assert silent < 0.06

    tree, todo, met = model.tree_, [(0, 0)], 0
    while todo:
        ours, theirs = todo.pop()
        met += 1
        part = slice(starts[theirs], starts[theirs] + model.max_candidates_)
        part = slice(part.start, min(part.stop, starts[theirs + 1]))
        own = slice(*tree.candidate_starts[ours : ours + 2])
        np.testing.assert_array_equal(tree.candidates[own], labels[part])
        np.testing.assert_allclose(tree.candidate_counts[own], counts[part])
        assert tree.n_labels[ours] == starts[theirs + 1] - starts[theirs]
        assert tree.depth[ours] == node["links"][theirs][4]
        assert tree.n_examples[ours] == pytest.approx(node["n"][theirs])
        assert tree.label_entropy[ours] == pytest.approx(node["entropy"][theirs], abs=1e-9)
        assert tree.recall_bound[ours] == pytest.approx(node["bound"][theirs], abs=1e-6)
        for child, there in zip(tree.children[ours], node["links"][theirs][1:3], strict=True):
            if child >= 0:
                todo.append((child, there))
    assert met == len(tree.parent) == (node["n"] > 0).sum()
