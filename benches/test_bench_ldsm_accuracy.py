"""LdSM on label sets: the default against what is required, and the paper's curves.

    pytest benches/test_bench_ldsm_accuracy.py

One seed; P@1 of fifty trees moves by some tenths with it. All is in per cent, on the test part,
rows without labels left out unless "all rows" is said. ``test_bench_extreme.py`` has means of
seeds, beside other programs. ``docs/experiments/scripts/ldsm_settings.py --ablation`` measures
each option on held-out rows.
"""

import numpy as np
import pytest
from ldsm_tasks import SETS, deepest, formed, grown
from test_bench_recall_tree import tell
from xmtree import LdSMClassifier

SEED = 0
#: Numbers of trees: with scorers each row is left out by one of five.
TREES = (5, 10, 20, 50)
#: Nodes of a tree at most, for the curves, and trees then.
MAX_NODES = (100, 300, 1000, 3000, 8000, 32000)
N_CURVE = 10
#: What a setting chosen for the set is to reach: P@1, 3, 5 and nDCG@3, 5.
REQUIRED = {
    "delicious": (71.9, 65.3, 60.2, 66.9, 63.1),
    "bibtex": (63.6, 39.9, 29.4),
}
#: By how much the default may be below that.
SLACK = 1.5
MEASURES = ("P@1/3/5", "nDCG@3/5", "PSP@1/3/5")
#: Epochs that are told of the objective.
EPOCHS = (1, 2, 3, 5, 10, 20)


def below(measures, required, slack=0.0):
    """Which of the required figures are missed, and by how much."""
    names = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5")
    # As precise as the figures are told.
    pairs = zip(names, np.round(measures, 1), required, strict=False)
    return [f"{name} {x:.1f} < {y - slack:.1f}" for name, x, y in pairs if x < y - slack - 1e-6]


@pytest.mark.parametrize("name", SETS)
def test_default(benchmark, label_sets, say, name):
    task = label_sets(name)
    model = LdSMClassifier(random_state=SEED, n_jobs=-1)
    benchmark.pedantic(lambda: model.fit(task.X, task.y), rounds=1)
    measures = task.measure(model)
    lines = {
        "default": formed(measures),
        "default, all rows": formed(task.measure(model, "zero")),
    }
    tell(say, name, MEASURES, lines)
    depth, nodes = deepest(model)
    least, most = task.depths(model.arity)
    told = f"{name}: deepest tree {depth} levels, largest {nodes} nodes"
    within = least <= depth <= most
    say(f"{told} (required {least:.1f} to {most:.1f} levels){'' if within else ' MISSED'}")
    missed = below(measures, REQUIRED.get(name, ()), SLACK)
    if name in REQUIRED:
        say(
            f"{name}: default, within {SLACK} points of what is required: "
            f"{'MISSED ' + ', '.join(missed) if missed else 'met'}"
        )
    assert within
    assert not missed


@pytest.mark.parametrize("name", SETS)
def test_trees(benchmark, label_sets, say, name):
    """More trees are better, and matter less where scorers rank what they find."""
    task = label_sets(name)
    settings = {"default": {}, "trees alone": {"scorers": "none"}}

    def run():
        return {
            f"{count} trees, {what}": [*formed(task.measure(model)), f"{seconds:.1f}"]
            for what, options in settings.items()
            for count, model, seconds in grown(task, {**options, "random_state": SEED}, TREES, -1)
        }

    rows = benchmark.pedantic(run, rounds=1)
    tell(say, f"{name}: against the number of trees", [*MEASURES, "s"], rows)


@pytest.mark.parametrize("name", REQUIRED)
def test_max_nodes(benchmark, label_sets, say, name):
    """More nodes are better up to a point, and the trees stay flat."""
    task = label_sets(name)
    options = {"n_estimators": N_CURVE, "random_state": SEED, "n_jobs": -1}

    def run():
        rows = {}
        for max_nodes in MAX_NODES:
            model = LdSMClassifier(max_nodes=max_nodes, **options).fit(task.X, task.y)
            depth, nodes = deepest(model)
            cells = formed(task.measure(model))[:2]
            rows[f"max_nodes={max_nodes}"] = [*cells, str(depth), str(nodes)]
        return rows

    rows = benchmark.pedantic(run, rounds=1)
    heads = [*MEASURES[:2], "depth", "nodes"]
    tell(say, f"{name}: {N_CURVE} trees against max_nodes (depth, nodes: the largest)", heads, rows)


@pytest.mark.parametrize("what", ["authors", "default"])
def test_objective(benchmark, label_sets, say, what):
    """The objective falls while a node is trained, in the upper levels and below."""
    task = label_sets("delicious")
    # Every node has all epochs, over all of its examples.
    unbounded = {"max_updates": None, "keep_statistics": True}
    options = LdSMClassifier.AUTHORS if what == "authors" else unbounded
    options = {**options, "n_epochs": max(EPOCHS), "scorers": "none"}
    model = LdSMClassifier(**options, n_estimators=1, random_state=SEED, n_jobs=-1)
    benchmark.pedantic(lambda: model.fit(task.X, task.y), rounds=1)
    tree = model.trees_[0]
    inner = tree.children[:, 0] >= 0
    rows = {}
    for depth in range(tree.depth[inner].max() + 1):
        nodes = inner & (tree.depth == depth)
        if nodes.any():
            means = tree.j_by_epoch[nodes].mean(axis=0)
            rows[f"depth {depth}"] = [str(nodes.sum()), *(f"{means[e - 1]:.3f}" for e in EPOCHS)]
    heads = ["nodes", *(f"epoch {epoch}" for epoch in EPOCHS)]
    title = f"delicious, {what}, a tree: running objective J, mean over the nodes of a depth"
    tell(say, f"{title} (least {-model.lambda1:g})", heads, rows)
    first, last = (np.mean(tree.j_by_epoch[inner, epoch]) for epoch in (0, -1))
    say(f"delicious, {what}: J of all inner nodes {first:.3f} -> {last:.3f} (must fall)")
    assert last < first
