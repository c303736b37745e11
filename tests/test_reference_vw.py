"""The slow references agree with Vowpal Wabbit on every golden prediction.

``reference/README.md`` describes the files.  VW itself is not needed here. The references
follow a few runs here and all runs in ``make check SELECT="fuzz properties"``; the package
itself is compared with Vowpal Wabbit in ``test_lomtree_vw.py`` and ``test_recall_tree_vw.py``.
"""

import json
import re
from itertools import pairwise
from pathlib import Path

import estimators
import numpy as np
import pytest
from reference.lomtree import LOMTree
from reference.recall_tree import RecallTree
from reference.vw_oaa import VWOneAgainstAll

GOLDEN = Path(__file__).parent / "golden"
FILES = {path.stem.removeprefix("vw_"): np.load(path) for path in sorted(GOLDEN.glob("vw_*.npz"))}
META = {stream: json.loads(str(file["meta"])) for stream, file in FILES.items()}

# Swaps in both passes together.  VW does not report them, but they agree if all predictions
# and the final tree do.  They are listed so that a lost swap is noticed.
SWAPS = {
    "drift": {"T23_R4": 9, "T23_R1": 246, "T15_R2": 12, "T40_R4": 15},
    "many": {"T29_R4": 5, "T100_R4": 5},
    "scales": {"T5_R4": 1, "T20_R1": 62},
    "sparse": {"T9_R4": 0, "T30_R4": 0},
    "takeover": {"T15_R4": 4, "T15_R1": 137, "T31_R2": 13},
    "weighted": {"T7_R4": 3, "T16_R2": 11},
}


def cases(kind):
    """Yield (stream, run, options as a dict) of every golden run of a kind."""
    found = []
    for stream, meta in META.items():
        for run, text in meta["options"].items():
            options = dict(re.findall(r"--(\w+)(?: ([^-\s]\S*))?", text))
            if run.startswith(kind):
                found.append(pytest.param(stream, run, options, id=f"{stream}-{run}"))
    return found


def rows(file, part):
    """Yield the rows (indices, values) of a part, in order."""
    indptr, indices, data = (file[f"{part}_{key}"] for key in ("indptr", "indices", "data"))
    cuts = [slice(a, b) for a, b in pairwise(indptr)]
    return [(indices[cut], data[cut]) for cut in cuts]


def examples(file):
    """Yield the rows to learn (indices, values, label, weight), in order."""
    pairs = zip(rows(file, "train"), file["train_y"].tolist(), file["train_weight"], strict=True)
    return [(*row, y, float(h)) for row, y, h in pairs]


def assert_predictions(model, file, run):
    """Compare two passes of progressive predictions, then the test rows."""
    train = examples(file)
    for part in ("pass1", "pass2"):
        answers = [model.learn(*example) for example in train]
        np.testing.assert_array_equal(answers, file[f"{run}.{part}"], err_msg=part)
    answers = [model.predict(*row) for row in rows(file, "test")]
    np.testing.assert_array_equal(answers, file[f"{run}.test"])


#: The runs that are followed.
START, STEP = (0, 1) if estimators.EXHAUSTIVE else (6, 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("stream", "run", "options"), cases("oaa")[START::STEP])
def test_oaa(stream, run, options):
    file = FILES[stream]
    loss = options.get("loss_function", "squared")

    def model():
        rate = float(options.get("learning_rate", 0.5))
        tau = float(options.get("quantile_tau", 0.5))
        return VWOneAgainstAll(int(options["oaa"]), META[stream]["n_features"], loss, rate, tau)

    # Bit for bit without exp, which platforms round differently.
    close = {"rtol": 1e-5, "atol": 1e-5} if loss in ("squared", "logistic") else {"rtol": 0}
    head, train = model(), examples(file)
    for scores, example in zip(file[f"{run}.scores_head"], train, strict=False):
        np.testing.assert_allclose(head.scores(*example[:2]), scores, **close)
        head.learn(*example)
    trained = model()
    assert_predictions(trained, file, run)
    scores = [trained.scores(*row) for row in rows(file, "test")]
    np.testing.assert_allclose(scores, file[f"{run}.scores_test"], **close)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("stream", "run", "options"), cases("lomtree")[START::STEP])
def test_lomtree(stream, run, options):
    file = FILES[stream]
    model = LOMTree(
        META[stream]["n_features"],
        int(options["log_multi"]) - 1,
        int(options["swap_resistance"]),
    )
    assert_predictions(model, file, run)
    model.check()
    assert model.swaps == SWAPS[stream][run.removeprefix("lomtree_")]
    assert model.root_swaps == 0
    assert_same_tree(model, {k.split(".")[1]: file[k] for k in file.files if k.startswith(run)})


def assert_same_tree(model, vw):
    """Compare node for node; VW numbers nodes in the order of creation, the root 0."""
    nodes, leaf = model.nodes, np.array([v.is_leaf for v in model.nodes])
    np.testing.assert_array_equal(vw["node_internal"], ~leaf)
    np.testing.assert_array_equal(vw["node_min_count"], [v.C for v in nodes])
    np.testing.assert_array_equal(vw["node_parent"], [v.parent or 0 for v in nodes])
    for j, v in enumerate(nodes):  # VW writes different fields for leaves
        if v.is_leaf:
            assert (vw["node_max_count"][j], vw["node_max_count_label"][j]) == (
                v.majority_count,
                v.majority,
            )
        else:
            links = [vw[f"node_{name}"][j] for name in ("left", "right", "base_predictor", "n")]
            assert links == [v.left, v.right, v.regressor, v.n_total]
            # VW prints six digits.
            assert vw["node_Eh"][j] == pytest.approx(v.m_total, rel=1e-5, abs=1e-5)
            assert vw["node_norm_Eh"][j] == pytest.approx(v.E, rel=1e-5, abs=1e-5)
        cut = slice(*vw["table_indptr"][j : j + 2])
        labels = sorted(v.l)
        np.testing.assert_array_equal(vw["table_label"][cut], labels)
        np.testing.assert_array_equal(vw["table_label_count"][cut], [v.l[y] for y in labels])
        np.testing.assert_array_equal(vw["table_nk"][cut], [v.n[y] for y in labels])
        close = {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(vw["table_Ehk"][cut], [v.m[y] for y in labels], **close)
        np.testing.assert_allclose(vw["table_norm_Ehk"][cut], [v.e[y] for y in labels], **close)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("stream", "run", "options"), cases("recall")[START::STEP])
def test_recall_tree(stream, run, options):
    """Compare predictions, their scores, and the final tree node for node."""
    file, meta = FILES[stream], META[stream]
    vw = {k.removeprefix(f"{run}."): file[k] for k in file.files if k.startswith(f"{run}.")}
    base = FILES[meta["stream"]]
    train, test = examples(base), rows(base, "test")
    if "train_weight" in file:
        weights = file["train_weight"].tolist()
        train = [(*e[:3], h) for e, h in zip(train, weights, strict=True)]
    model = recall_tree(meta, options)
    # As for OAA, exp may be rounded differently.
    exact = options.get("loss_function") in ("hinge", "quantile")
    close = {"rtol": 0} if exact else {"rtol": 1e-5, "atol": 1e-5}
    depths = []
    for part in ("pass1", "pass2"):
        answers = []
        for i, example in enumerate(train):
            answers.append(model.predict(*example[:2]))
            depths.append(model.nodes[model.last_node].depth)
            if part == "pass1" and i < len(vw["score_head"]):
                np.testing.assert_allclose(model.last_score, vw["score_head"][i], **close)
            assert model.learn(*example) == answers[-1]
        np.testing.assert_array_equal(answers, vw[part], err_msg=part)
    for (answer, score), row in zip(
        zip(vw["test"], vw["score_test"], strict=True), test, strict=True
    ):
        assert model.predict(*row) == answer
        np.testing.assert_allclose(model.last_score, score, **close)
    model.check()
    assert_same_recall_tree(model, vw)
    if stream != "recall_weighted":  # whose tree is lost, see reference/README.md
        assert len(set(depths)) > 1 or model.h == 0, "the stopping rule was to be exercised"
        assert len(set(vw["test"].tolist())) >= 3


def recall_tree(meta, options):
    """Return the reference for the options of a run."""
    kinds = {
        "max_candidates": int, "max_depth": int, "bern_hyper": float, "learning_rate": float,
    }  # fmt: skip
    return RecallTree(
        int(options["recall_tree"]),
        meta["n_features"],
        node_only="node_only" in options,
        loss=options.get("loss_function", "squared"),
        tau=float(options.get("quantile_tau", 0.5)),
        **{name: kind(options[name]) for name, kind in kinds.items() if name in options},
    )


def assert_same_recall_tree(model, vw):
    """Compare node for node, in VW's numbering; VW writes 0 for a missing child or router."""
    links = [(v.parent, v.left or 0, v.right or 0, v.router or 0, v.depth) for v in model.nodes]
    np.testing.assert_array_equal(vw["node_links"], links)
    np.testing.assert_array_equal(vw["node_n"], [v.n for v in model.nodes])
    np.testing.assert_array_equal(vw["node_bound"], [v.bound for v in model.nodes])
    # Platforms round log differently.
    entropy = [v.entropy for v in model.nodes]
    np.testing.assert_allclose(vw["node_entropy"], entropy, rtol=1e-11, atol=1e-12)
    counts = [pair for v in model.nodes for pair in v.counts]
    sizes = [len(v.counts) for v in model.nodes]
    np.testing.assert_array_equal(np.diff(vw["table_indptr"]), sizes)
    np.testing.assert_array_equal(vw["table_label"], [label for label, _ in counts])
    np.testing.assert_array_equal(vw["table_count"], [count for _, count in counts])


def test_swap_resistance_of_zero_is_refused():
    with pytest.raises(ValueError, match="swap_resistance = 0"):
        LOMTree(3, 3, 0)
