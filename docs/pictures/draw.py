"""Draw the pictures of the learners' pages: ``python docs/pictures/draw.py [NAME ...]``.

Each function draws one picture, most of them from a small model. The background is white, so the
pictures are readable on dark pages too. Regions, points and lines of a plane become one image,
which keeps the files small.
"""

from __future__ import annotations

import base64
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from xmtree import (
    ActiveLearner,
    GambleClassifier,
    LdSMClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RecallTreeClassifier,
)
from xmtree.datasets import load_demo
from xmtree.plotting._figures import house_style

INK, GREY, PALE = "#1d2330", "#8a8f98", "#d9dce1"
#: The plane is evaluated at this number of steps along each axis, from -SIDE to SIDE.
STEPS, SIDE = 240, 3.2

Points = NDArray[np.float64]
Labels = NDArray[np.int64]


def color(number: int, n: int, shade: float = 0.0) -> Any:
    """Return one of ``n`` colors, mixed with white by ``shade``."""
    name = "tab10" if n <= 10 else "tab20"
    mixed = np.array(colors.to_rgb(colormaps[name](number)))
    return tuple(mixed + shade * (1 - mixed))


def grid() -> Points:
    """Return the points of the plane, row by row from the bottom."""
    at = np.linspace(-SIDE, SIDE, STEPS)
    return np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)


def blobs(centers: Any, n: int, spread: float, seed: int) -> tuple[Points, Labels]:
    """Return ``n`` points around each center, labeled by the index of the center."""
    draw = np.random.default_rng(seed)
    centers = np.asarray(centers, float)
    y = np.repeat(np.arange(len(centers)), n)
    return centers[y] + spread * draw.normal(size=(len(y), 2)), y


def circle(n: int, radius: float) -> Points:
    """Return ``n`` points on a circle."""
    angle = 2 * np.pi * np.arange(n) / n
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def regions(ax: Axes, areas: Labels, n: int, shade: float = 0.65) -> None:
    """Fill the plane with a color per area; ``areas`` has a number for each point."""
    image = np.array([color(i, n, shade) for i in range(n)])[areas.reshape(STEPS, STEPS)]
    ax.imshow(image, origin="lower", extent=(-SIDE, SIDE, -SIDE, SIDE), interpolation="nearest")


def plane(ax: Axes, title: str) -> None:
    """Draw the frame of a plane."""
    ax.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), xticks=[], yticks=[], aspect="equal")
    ax.set_title(title)
    # Text has zorder 3 and stays text.
    ax.set_rasterization_zorder(2.4)
    for side in ax.spines.values():
        side.set(visible=True, color=PALE)


def dots(ax: Axes, X: Points, y: Labels, n: int, size: float = 9) -> None:
    """Draw rows as points, colored by label."""
    shown = [color(label, n) for label in y]
    ax.scatter(*X.T, s=size, c=shown, edgecolors="white", linewidths=0.4)


def boundary(ax: Axes, field: NDArray[Any], **style: Any) -> None:
    """Draw the line where a field over the grid is 0."""
    at = np.linspace(-SIDE, SIDE, STEPS)
    style = {"colors": [INK], "linestyles": "solid", **style}
    ax.contour(at, at, field.reshape(STEPS, STEPS), levels=[0], **style)


def tree_layout(children: NDArray[Any]) -> dict[int, tuple[float, float]]:
    """Return the position of each node: leaves side by side, parents centered above children."""
    places: dict[int, tuple[float, float]] = {}

    def place(node: int, level: int) -> float:
        inside = [int(child) for child in children[node] if child >= 0]
        if inside:
            x = float(np.mean([place(child, level + 1) for child in inside]))
        else:
            x = float(sum(1 for at in places if children[at].max() < 0))
        places[node] = x, -float(level)
        return x

    place(0, 0)
    return places


def oaa() -> Figure:
    """Draw the lines where a class has score 0, and the predicted regions."""
    X, y = blobs(circle(4, 1.7), 60, 0.6, 0)
    model = OAAClassifier(loss="logistic", random_state=0).fit(X, y)
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    scores = model.decision_function(grid())
    plane(left, "A line for each class: score 0")
    dots(left, X, y, 4)
    for label in range(4):
        boundary(left, scores[:, label], colors=[color(label, 4)], linewidths=1.6)
    plane(right, "The highest score predicts")
    regions(right, scores.argmax(axis=1), 4)
    dots(right, X, y, 4)
    return figure


def lomtree() -> Figure:
    """Draw the plane cut by routers, and the tree of these cuts."""
    X, y = blobs(np.vstack([circle(6, 2.1), [[0.0, 0.0]]]), 60, 0.42, 1)
    model = LOMTreeClassifier(nodes_per_class=7 / 6, random_state=3).fit(X, y)
    tree = model.tree_
    passed, _ = model.decision_path(grid())
    passed = passed.toarray().astype(bool)
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plane(left, "Each router cuts its part of the plane")
    regions(left, model.predict(grid()), 7)
    dots(left, X, y, 7)
    places = tree_layout(tree.children)
    right.set_title("The tree of these cuts")
    for node, inside in enumerate(tree.children):
        x, level = places[node]
        if inside.min() < 0:
            face = color(int(tree.label[node]), 7)
            right.scatter(x, level, s=110, color=face, zorder=3)
            continue
        width = 3.2 / (1 + tree.depth[node])
        field = np.where(passed[:, inside[0]], -1.0, 1.0)
        hidden = np.ma.masked_array(field, ~passed[:, node])
        boundary(left, hidden, linewidths=width)
        right.scatter(x, level, s=60, color=INK, zorder=3)
        for child in inside:
            right.plot(*zip(places[node], places[child], strict=True), color=INK, lw=width)
    right.margins(0.08, 0.12)
    right.axis("off")
    return figure


def recall_tree() -> Figure:
    """Draw the candidates of each region, and the choice of the scorers."""
    centers = np.vstack([circle(5, 1.2), circle(11, 2.5)])
    X, y = blobs(centers, 60, 0.3, 2)
    names = "ABCDEFGHIJKLMNOP"
    model = RecallTreeClassifier(
        max_candidates=6, max_depth=2, bern_hyper=1e-3, beam_size=1, random_state=0
    )
    model.fit(X, y)
    tree = model.tree_
    passed, _ = model.decision_path(grid())
    last = np.array([row.indices[tree.depth[row.indices].argmax()] for row in passed])
    nodes, areas = np.unique(last, return_inverse=True)
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plane(left, "Routers find six candidates")
    plane(right, "Scorers choose among them")
    regions(left, areas, len(nodes), 0.72)
    regions(right, model.predict(grid()), len(names))
    for ax in (left, right):
        for label, (at_x, at_y) in enumerate(centers):
            ax.text(at_x, at_y, names[label], ha="center", va="center", fontsize=9, weight="bold")
    at = grid()
    for area, node in enumerate(nodes):
        start, end = tree.candidate_starts[node : node + 2]
        candidates = "".join(sorted(names[label] for label in tree.candidates[start:end]))
        x, height = at[areas == area].mean(axis=0) * 0.8
        box = {"facecolor": "white", "edgecolor": color(area, len(nodes)), "pad": 2.5}
        left.text(x, height, candidates, ha="center", va="center", fontsize=8, bbox=box)
    return figure


def label_trees() -> Figure:
    """Draw the routers that learn from an example of label E, in both trees."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    titles = (
        "Random tree: all routers on the path learn",
        "Filter tree: up to the first lost match",
    )
    children = np.full((15, 2), -1)
    children[:7] = np.arange(1, 15).reshape(7, 2)
    places = tree_layout(children)
    leaf, path = 11, (5, 2, 0)
    for ax, title, learn in zip(figure.subplots(1, 2), titles, (path, path[:2]), strict=True):
        ax.set_title(title)
        for node in range(7):
            for child in children[node]:
                on_path = node in learn and child in (*path, leaf)
                style = {"color": INK, "lw": 2.2} if on_path else {"color": PALE, "lw": 1.2}
                ax.plot(*zip(places[node], places[int(child)], strict=True), zorder=1, **style)
            face = color(0, 10) if node in learn else "white"
            ax.scatter(*places[node], s=150, color=face, edgecolors=INK, zorder=2)
        for number in range(7, 15):
            weight = "bold" if number == leaf else "normal"
            x, level = places[number]
            ax.text(x, level - 0.12, "ABCDEFGH"[number - 7], ha="center", va="top", weight=weight)
        if learn != path:
            x, level = places[2]
            ax.text(x + 0.35, level + 0.05, "E loses here", fontsize=8)
        ax.set_ylim(-3.6, 0.4)
        ax.axis("off")
    return figure


def ldsm() -> Figure:
    """Draw the regions that go to one child of the root or to both, and the leaves."""
    centers = np.array([[-1.6, 1.0], [-1.6, -1.0], [1.6, 1.0], [1.6, -1.0]])
    draw = np.random.default_rng(4)
    X = draw.uniform(-SIDE, SIDE, (900, 2))
    has = np.linalg.norm(X[:, np.newaxis] - centers, axis=2) < 1.9
    X, has = X[has.any(axis=1)], has[has.any(axis=1)]
    model = LdSMClassifier(
        n_estimators=1, scorers="none", scaling="none", max_nodes=7, min_priority=0.0,
        slim_trees=False, keep_statistics=True, learning_rate=0.5, lambda1=1.0, lambda2=0.25,
        random_state=1,
    )  # fmt: skip
    model.fit(X, has.astype(int))
    tree = model.trees_[0]
    passed, _ = model.decision_path(grid())
    first, second = (passed[:, [int(child)]].toarray().ravel() > 0 for child in tree.children[0])
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plane(left, "A row may go to both children")
    regions(left, np.where(first & second, 2, np.where(first, 0, 1)), 3, 0.75)
    for label, at in enumerate(centers):
        turn = np.linspace(0, 2 * np.pi, 100)
        ring = at[:, np.newaxis] + 1.9 * np.stack([np.cos(turn), np.sin(turn)])
        left.plot(*ring, color=INK, lw=1)
        outward = at[0] + 0.8 * np.sign(at[0])
        left.text(outward, at[1], "abcd"[label], weight="bold", ha="center")
    for area, name in enumerate(("first only", "second only", "both")):
        left.scatter([], [], marker="s", s=60, color=color(area, 3, 0.5), label=name)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, columnspacing=1.0)
    places = tree_layout(tree.children)
    right.set_title("Leaves store counts of labels")
    for node, inside in enumerate(tree.children):
        x, level = places[node]
        for child in inside[inside >= 0]:
            right.plot(*zip(places[node], places[int(child)], strict=True), color=GREY, lw=1.4)
        if inside.max() >= 0:
            right.scatter(x, level, s=60, color=INK, zorder=3)
            continue
        start, end = tree.label_starts[node : node + 2]
        counts = np.zeros(4)
        counts[tree.labels[start:end]] = tree.label_counts[start:end]
        for label, share in enumerate(counts / counts.sum()):
            at = x + (label - 1.5) * 0.17
            right.bar(at, 0.9 * share, 0.13, bottom=level - 0.95, color=color(label, 10))
            right.text(at, level - 0.98, "abcd"[label], fontsize=7, ha="center", va="top")
    right.margins(0.08, 0.06)
    right.axis("off")
    return figure


def gamble() -> Figure:
    """Draw the predictions of the committee after one, ten and a hundred rounds."""
    draw = np.random.default_rng(0)
    X = draw.uniform(-SIDE, SIDE, (1200, 2))
    y = np.digitize(np.linalg.norm(X, axis=1), (1.1, 1.9, 2.7))
    model = GambleClassifier(n_estimators=100, max_leaves=8, max_features=1.0, random_state=0)
    stages = list(model.fit(X, y).staged_predict(grid()))
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    shown = draw.choice(len(y), 250, replace=False)
    for ax, n in zip(figure.subplots(1, 3), (1, 10, 100), strict=True):
        plane(ax, f"{n} round{'s' if n > 1 else ''}, {n} tree{'s' if n > 1 else ''}")
        regions(ax, stages[n - 1], 4)
        dots(ax, X[shown], y[shown], 4, 5)
    return figure


def active_learning() -> Figure:
    """Draw the queried rows, and the error by the number of labels."""
    X, y = blobs(circle(3, 1.3), 200, 0.65, 5)
    active = ActiveLearner(
        OAAClassifier(loss="softmax"), n_initial=6, n_per_round=4, n_rounds=12,
        stopping_ratio=None, random_state=0,
    )  # fmt: skip
    active.fit(X, y)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plane(left, f"{len(active.selected_)} of {len(y)} rows were queried")
    regions(left, active.predict(grid()), 3, 0.8)
    left.scatter(*X.T, s=3, color=GREY)
    dots(left, X[active.selected_], y[active.selected_], 3, 26)
    data = load_demo("letter")
    rows = slice(4000)
    for selection, name in (("margin", "rows with the smallest margin"), ("random", "random rows")):
        curves = []
        for seed in range(3):
            session = ActiveLearner(
                GambleClassifier(n_estimators=20, max_leaves=63),
                n_initial=50, n_per_round=50, n_rounds=24,
                selection=selection, stopping_ratio=None, random_state=seed,
            )  # fmt: skip
            session.fit(
                data.X_train[rows], data.y_train[rows], X_val=data.X_test, y_val=data.y_test
            )
            curves.append(session.learning_curve_.validation_error)
        right.plot(session.learning_curve_.n_samples, 100 * np.mean(curves, axis=0), label=name)
    right.set(title="Letter, GAMBLE: error by labels", xlabel="labels", ylabel="test error, %")
    right.set_ylim(0)
    right.grid(axis="y")
    right.legend()
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "oaa": oaa,
    "lomtree": lomtree,
    "recall-tree": recall_tree,
    "filter-and-random-trees": label_trees,
    "ldsm": ldsm,
    "gamble": gamble,
    "active-learning": active_learning,
}


def quantized(found: re.Match[str]) -> str:
    """Return an embedded image with 128 colors, which takes fewer bytes."""
    image = Image.open(io.BytesIO(base64.b64decode(found[1])))
    white = Image.new("RGBA", image.size, "white")
    file = io.BytesIO()
    Image.alpha_composite(white, image).convert("RGB").quantize(128).save(file, "png")
    return f'"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"'


def main(names: list[str], folder: Path) -> None:
    """Write the named pictures, by default all."""
    for name in names or PICTURES:
        file = io.StringIO()
        with house_style():
            PICTURES[name]().savefig(file, format="svg", dpi=110, metadata={"Date": None})
        svg = re.sub(r'"data:image/png;base64,([^"]*)"', quantized, file.getvalue())
        (folder / f"{name}.svg").write_text(re.sub(r"\n\s*", "\n", svg), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:], Path(__file__).parent)
