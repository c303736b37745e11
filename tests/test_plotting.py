"""Plots show what numpy computes, and their texts do not overlap."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import estimators
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xmtree
from matplotlib.figure import Figure
from pictures import cut_off, overlapping, texts
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from xmtree.cli import main
from xmtree.metrics import calibration_error
from xmtree.plotting import (
    plot_confusion,
    plot_depth_histogram,
    plot_reliability,
    plot_tree,
)
from xmtree.plotting._figures import card, house_style, shortened, width_of

X, Y = estimators.sparse(n=600)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def upper(tree, depth):
    """Return the nodes down to a depth, level by level."""
    nodes = level = [0]
    for _ in range(depth):
        level = [int(child) for node in level for child in tree.children[node] if child >= 0]
        nodes = nodes + level
    return nodes


DRAWN = ["lomtree-3", "gamble", "recall-tree-beam", "filter-tree", "ldsm-statistics"]
if estimators.EXHAUSTIVE:
    DRAWN += ["lomtree-swapping", "samme", "recall-tree-margin", "random-tree"]


@functools.cache
def fitted(name):
    if name == "ldsm-statistics":
        return estimators.ALL["ldsm"](keep_statistics=True).fit(X, Y)
    return estimators.ALL[name]().fit(X, Y)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *((name, 3) for name in DRAWN),
        *((name, 0) for name in ("lomtree-3", "ldsm-statistics")),
        *((name, 30) for name in ("lomtree-swapping", "recall-tree-beam", "filter-tree")),
        ("gamble", 30 if estimators.EXHAUSTIVE else 6),
    ],
)
def test_tree(name, depth):
    clf = fitted(name)
    number = len(clf.trees_) - 1
    ax = plot_tree(clf, number, depth)
    tree = clf.trees_[number]
    nodes = upper(tree, depth)
    circles = next(one for one in ax.collections if one.get_gid() == "nodes")
    assert len(circles.get_offsets()) == len(nodes) == len(ax.texts)
    entropy = np.sort(tree.label_entropy[nodes])
    np.testing.assert_allclose(np.sort(circles.get_array()), entropy, rtol=1e-6)
    # Areas are shares, with a lower bound that keeps small nodes visible.
    sizes, shares = np.sort(circles.get_sizes()), np.sort(tree.n_examples[nodes])
    shares = np.maximum(shares / tree.n_examples[0], 0.04)
    np.testing.assert_allclose(sizes / sizes[-1], shares / shares[-1], rtol=1e-6)
    assert ax.texts[0].get_text().partition(": ")[2].startswith("100 %")
    hidden = len(tree.depth) - len(nodes)
    message = sum(int(text.get_text().partition(", +")[2] or 0) for text in ax.texts)
    assert message == hidden
    n_levels = tree.depth.max() + 1
    part = f"all {n_levels} levels"
    if hidden:
        part = f"the upper {depth + 1} of {n_levels} levels (+: nodes below)"
    cls = type(clf).__name__
    title = f"{cls}\ntree {number} of {len(clf.trees_)}, {part}"
    assert ax.get_title() == title
    assert overlapping(ax.figure) == []
    assert cut_off(ax.figure) == []


def test_names_at_nodes():
    names = np.array([f"class {at}" for at in range(12)])
    lomtree = xmtree.LOMTreeClassifier(random_state=0).fit(X, names[Y])
    drawn = [text.get_text() for text in plot_tree(lomtree, max_depth=1).texts]
    tree = lomtree.tree_
    for node, text in zip([0, *tree.children[0]], drawn, strict=True):
        share = 100 * tree.n_examples[node] / tree.n_examples[0]
        assert text.startswith(f"{lomtree.classes_[tree.label[node]]}: {share:.3g} %")
    filters = estimators.ALL["filter-tree"]().fit(X, names[Y])
    drawn = [text.get_text() for text in plot_tree(filters, max_depth=9).texts]
    assert drawn[0] == "12 labels: 100 %"
    assert sorted(text.partition(":")[0] for text in drawn if "class" in text) == sorted(names)
    ldsm = estimators.ALL["ldsm"](keep_statistics=True).fit(X, names[Y])
    tree = ldsm.trees_[0]
    best = tree.labels[np.argmax(tree.label_counts[: tree.label_starts[1]])]
    assert (
        plot_tree(ldsm, max_depth=0).texts[0].get_text().startswith(f"{ldsm.classes_[best]}: 100 %")
    )
    assert plot_tree(estimators.ALL["recall-tree-beam"]().fit(X, names[Y])).texts


def test_questions_of_boosting():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 10, "kind": [0.0, 1.0, 2.0, 3.0] * 10})
    settings = {"n_estimators": 1, "max_leaves": 2, "subsample": 1.0, "max_features": 1.0}
    y = np.array(["low", "low", "high", "high"] * 10)
    clf = xmtree.GambleClassifier(random_state=0, **settings).fit(frame[["size"]], y)
    drawn = [text.get_text() for text in plot_tree(clf).texts]
    assert drawn == ["size ≤ 2.5: 100 %", "low: 50 %", "high: 50 %"]
    other = np.array(["even", "odd"] * 20)
    clf = xmtree.GambleClassifier(random_state=0, categorical_features=["kind"], **settings)
    root = plot_tree(clf.fit(frame[["kind"]], other)).texts[0].get_text()
    assert root in ("kind in {0, 2}: 100 %", "kind in {1, 3}: 100 %")
    clf = xmtree.GambleClassifier(random_state=0, **settings).fit(frame[["size"]].to_numpy(), y)
    assert plot_tree(clf).texts[0].get_text() == "x[0] ≤ 2.5: 100 %"


def test_labels_of_any_text():
    names = np.array(["$a_{", "two\nlines", "x" * 300, "%&<b>", "", *"abcdefg"])
    clf = xmtree.FilterTreeClassifier(random_state=0).fit(X, names[Y])
    ax = plot_tree(clf, max_depth=6)
    drawn = " ".join(text for text, _ in texts(ax.figure))
    for part in ("$a_{:", "two lines:", "xxx…:", "%&<b>:"):
        assert part in drawn
    assert overlapping(ax.figure) == cut_off(ax.figure) == []
    ax = plot_confusion(names[Y], names[np.roll(Y, 1)])
    assert overlapping(ax.figure) == cut_off(ax.figure) == []
    assert "&lt;b&gt;" in card(ax.figure, "labels")


def test_where_a_tree_is_drawn():
    clf = xmtree.LOMTreeClassifier(random_state=0).fit(X, Y)
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    assert plot_tree(clf, max_depth=2, ax=left) is left
    assert plot_depth_histogram(clf, ax=right) is right
    assert overlapping(left.figure) == []
    n_open = len(plt.get_fignums())
    figure = Figure()
    assert plot_tree(clf, ax=figure).figure is figure
    assert len(plt.get_fignums()) == n_open


def test_learners_inside_others():
    clf = make_pipeline(MaxAbsScaler(), xmtree.LOMTreeClassifier(random_state=0)).fit(X, Y)
    assert len(plot_tree(clf).texts) == len(upper(clf[-1].tree_, 3))
    words = [f"w{label} v{label % 3}" for label in Y]
    text = xmtree.TextClassifier(xmtree.LOMTreeClassifier(), random_state=0).fit(words, Y)
    assert plot_tree(text).get_title().startswith("LOMTreeClassifier\ntree 0 of 1")
    both = make_pipeline(FunctionTransformer(), text).fit(words, Y)
    assert plot_depth_histogram(both).patches


LOMTREE = xmtree.LOMTreeClassifier(random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot_tree(LOMTREE, 1), ValueError, "tree must be an integer from 0 to 0, got 1"),
        (lambda: plot_tree(LOMTREE, -1), ValueError, "tree must be an integer from 0"),
        (lambda: plot_tree(LOMTREE, max_depth=-1), ValueError, "max_depth must be an integer"),
        (lambda: plot_depth_histogram(LOMTREE, 2), ValueError, "tree must be"),
        (lambda: plot_tree(estimators.ALL["ldsm"]().fit(X, Y)), ValueError, "keep_statistics=True"),
        (lambda: plot_tree(xmtree.OAAClassifier().fit(X, Y)), AttributeError, "has no trees"),
        (lambda: plot_tree(xmtree.LOMTreeClassifier()), ValueError, "not fitted"),
        (
            lambda: plot_reliability([1], [1], [2.0]),
            ValueError,
            "must be from 0 to 1, got 2.0 in row 0",
        ),
        (lambda: plot_confusion([1, 2], [1]), ValueError, r"shapes \(2,\) and \(1,\)"),
        (
            lambda: plot_confusion([1], ["a"]),
            ValueError,
            "y mixes types: its labels are <U1, those of y_true are int64",
        ),
        (lambda: plot_confusion([1], [1], 0), ValueError, "n_labels must be an integer of at"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_too_many_nodes(monkeypatch):
    monkeypatch.setattr("xmtree.plotting._trees._MAX_NODES", 6)
    assert plot_tree(LOMTREE, max_depth=1)
    with pytest.raises(ValueError, match="max_depth=2 would draw 7 nodes; at most 6 are allowed"):
        plot_tree(LOMTREE, max_depth=2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "which"), [*((name, None) for name in DRAWN), ("lomtree-3", 0)])
def test_depth_histogram(name, which):
    clf = fitted(name)
    ax = plot_depth_histogram(clf, which)
    trees = clf.trees_ if which is None else clf.trees_[:1]
    counts = np.zeros(100)
    for tree in trees:
        counts += np.bincount(tree.depth, clf._ended(tree), 100)
    heights = np.array([bar.get_height() for bar in ax.patches])
    expected = counts[: len(heights)] / counts.sum()
    np.testing.assert_allclose(heights, expected, atol=1e-12)
    assert heights.sum() == pytest.approx(1)
    assert heights[-1] > 0
    mean = counts @ np.arange(100) / counts.sum()
    assert f"mean depth {mean:.1f}" in ax.get_title()
    many = len(clf.trees_) > 1 and which is None
    assert (f"all {len(clf.trees_)} trees" if many else f"tree 0 of {len(clf.trees_)}") in (
        ax.get_title()
    )
    boosted = name in ("gamble", "samme")
    assert [line.get_xdata()[0] for line in ax.lines] == (
        [] if boosted else [np.log(12) / np.log(trees[0].children.shape[1])]
    )
    assert overlapping(ax.figure) == cut_off(ax.figure) == []


def test_reliability():
    rng = np.random.default_rng(0)
    p = rng.random(500) ** 2
    labels, y = rng.integers(0, 3, (2, 500))
    ax = plot_reliability(y, labels, p, label="guess")
    bins = np.ceil(10 * p).astype(int) - 1
    means = [[values[bins == at].mean() for at in range(10)] for values in (p, y == labels)]
    np.testing.assert_allclose(ax.lines[1].get_xydata().T, means)
    error = calibration_error(y, labels, p, 10)
    message = f"guess: expected calibration error {error:.3f}"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [message]
    areas = ax.collections[0].get_sizes() - 6
    np.testing.assert_allclose(areas / areas.sum(), np.bincount(bins) / 500)
    # The output of predict_topk.
    best = plot_reliability(y, np.column_stack([labels, labels]), np.column_stack([p, p / 2]))
    np.testing.assert_array_equal(best.lines[1].get_xydata(), ax.lines[1].get_xydata())
    plot_reliability(y, y, p, n_bins=2, ax=ax)
    assert len(ax.get_legend().get_texts()) == 2
    assert overlapping(ax.figure) == cut_off(ax.figure) == []


def test_confusion():
    y = np.repeat(["a", "b", "c", "d", "e"], 20)
    predicted = y.copy()
    predicted[:6] = "b"  # a for b
    predicted[20:24] = "a"
    predicted[40:43] = "e"
    ax = plot_confusion(y, predicted, n_labels=2)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "others"]
    cells = {text.get_position(): text.get_text() for text in ax.texts}
    assert cells == {(0, 0): "14", (1, 0): "6", (0, 1): "4", (1, 1): "16"}
    image = ax.images[0].get_array()
    assert image.mask.tolist() == [[True, False, True], [False, True, True]]
    assert (image[0, 1], image[1, 0]) == (0.3, 0.2)
    assert ax.get_title() == ("The 2 most confused of 5 labels: 10 of 13 errors are among them")
    ax = plot_confusion(y, predicted, n_labels=3)
    # c and e have three errors each; c comes first.
    cells = {text.get_position(): text.get_text() for text in ax.texts}
    assert (cells[2, 2], cells[3, 2]) == ("17", "3")
    everything = plot_confusion(Y, np.roll(Y, 1))
    counts = np.zeros((13, 13), int)
    np.add.at(counts, (Y, np.roll(Y, 1)), 1)
    assert sum(int(text.get_text()) for text in everything.texts) == len(Y)
    assert overlapping(everything.figure) == cut_off(everything.figure) == []
    assert plot_confusion([1, 1, 2], [1, 1, 2]).get_title().endswith("0 of 0 errors are among them")


def test_shortened():
    assert shortened(" a  b\n", 100, 9) == "a b"
    cut = shortened("w" * 50, 60, 9)
    assert cut.endswith("w…")
    assert width_of(cut, 9) <= 60 < width_of(cut[:-1] + "w…", 9)
    assert shortened("wide", 0, 9) == "…"


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("lomtree-3", "svg"), ("gamble", "html"), ("recall-tree", "svg"), ("recall-tree", "png")],
)
def test_inspect_draws_the_tree(name, suffix, tmp_path, capsys):
    clf = estimators.ALL[name]().fit(X, Y)
    clf.save(tmp_path / "model")
    number = len(clf.trees_) - 1
    for out in ("one", "two"):
        arguments = ["--tree", str(number), "--plot", str(tmp_path / f"{out}.{suffix}")]
        assert main(["inspect", str(tmp_path / "model"), "--depth", "2", *arguments]) == 0
    message = capsys.readouterr().out.splitlines()
    n_nodes = sum(line.strip().startswith(("node ", "leaf ")) for line in message) // 2
    one, two = ((tmp_path / f"{out}.{suffix}").read_bytes() for out in ("one", "two"))
    assert one == two
    if suffix == "png":
        assert one.startswith(b"\x89PNG")
        return
    text = one.decode("utf-8")
    assert f"tree {number} of {len(clf.trees_)}" in text
    shares = [
        f"{100 * s / clf.trees_[number].n_examples[0]:.3g} %"
        for s in (clf.trees_[number].n_examples[upper(clf.trees_[number], 2)])
    ]
    assert len(shares) == n_nodes
    for share in shares:
        assert f": {share}" in text
    assert "@media (prefers-color-scheme: dark) { [style*=" in text
    if suffix == "html":
        assert text.startswith("<!doctype html>")


def test_figures_do_not_depend_on_the_day_or_the_settings():
    def drawn():
        with house_style():
            figure = Figure()
            plot_depth_histogram(LOMTREE, ax=figure)
            return card(figure, "a & b")

    once = drawn()
    with plt.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert drawn() == once
    assert 'aria-label="a &amp; b"' in once
    assert "<metadata>" not in once
    assert ' id="figure' not in once


def test_inspect_without_statistics(tmp_path, capsys):
    estimators.ALL["ldsm"]().fit(X, Y).save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model")]) == 0
    assert "where examples stop" not in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "model"), "--plot", str(tmp_path / "a.svg")]) == 1
    assert "keep_statistics=True" in capsys.readouterr().err


@pytest.fixture
def without_matplotlib(monkeypatch):
    for name in [*sys.modules]:
        if name.startswith("xmtree.plotting"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib(tmp_path, capsys):
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        import xmtree.plotting  # noqa: F401
    LOMTREE.save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model"), "--plot", str(tmp_path / "a.svg")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "pip install matplotlib" in lines[0]


def test_the_package_imports_neither_matplotlib_nor_dask_nor_searches():
    code = "import sys, xmtree.cli, xmtree.demo; "
    code += "assert not sys.modules.keys() & {'matplotlib', 'dask', 'xmtree._tune'}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_of_the_docs_shows_all_plots():
    page = Path(__file__).parent.parent / "docs" / "plotting.md"
    calls = re.findall(r"\b(plot_\w+)\(", page.read_text(encoding="utf-8"))
    assert set(calls) == set(xmtree.plotting.__all__)
