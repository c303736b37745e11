"""Why LOMtree is behind fixed trees on some data sets: its loss, its labels, or learning them.

    PYTHONPATH=benches python docs/experiments/scripts/lomtree_orders.py satimage banking77

In the paper's mode, test error %: LOMtree with several losses, the best of the steps that are
tried; and fixed trees over the labels in random orders, in the given one, and in that of the
leaves of these LOMtrees. Parameters are those that ``make reproduce`` chose on held-out rows.
"""

import ast
import json
import sys
from pathlib import Path

import numpy as np
from reproduce import data
from reproduce.lomtree import AS_VW, STEPS, error, tuned
from xmtree import FilterTreeClassifier, LOMTreeClassifier, RandomTreeClassifier

RESULTS = Path(__file__).parents[3] / "benches" / "reproduction.jsonl"
LOSSES = ("quantile", "squared", "hinge", "logistic")
SEED = 0


def chosen(name, learner, *rows):
    """Parameters and passes: those of the stored run, or chosen anew."""
    runs = map(json.loads, RESULTS.open()) if RESULTS.is_file() else ()
    for run in runs:
        settings = run["values"].get(f"{learner}: settings")
        if run["item"] == f"lomtree-{name}" and run["seed"] == SEED and settings:
            found = ast.literal_eval(settings)
            break
    else:
        _, found = tuned(learner, *rows, SEED)
    return {key: value for key, value in found.items() if key != "passes"}, found["passes"]


def trained(make, settings, passes, X, y):
    model = make(**settings, random_state=SEED, n_jobs=1)
    for _ in range(passes):
        model.partial_fit(X, y, classes=np.arange(y.max() + 1))
    return model


def leaf_order(tree, n_labels):
    """Labels in the order of the leaves that predict them first; then the others."""
    found, nodes = [], [0]
    while nodes:
        node = nodes.pop()
        children = [int(child) for child in tree.children[node] if child >= 0]
        nodes += children[::-1]
        label = int(tree.label[node])
        if not children and label >= 0 and label not in found:
            found.append(label)
    return np.array(found + [label for label in range(n_labels) if label not in found])


def main():
    for name in sys.argv[1:]:
        X, y, X_test, y_test = data.classes(name, None)
        order = np.random.default_rng(SEED).permutation(len(y))
        X, y = X[order], y[order]
        labels, y = np.unique(y, return_inverse=True)
        y_test = np.searchsorted(labels, y_test)
        rows = X, y, X_test, y_test
        options, passes = chosen(name, "LOMtree", *rows)
        trees = {}
        for loss in LOSSES:
            settings = LOMTreeClassifier.PAPER | options | {"loss": loss}
            tried = (
                trained(LOMTreeClassifier, settings | {"learning_rate": step}, passes, X, y)
                for step in STEPS
            )
            trees[loss] = min(tried, key=lambda model: error(model, X_test, y_test))
            print(f"{name}, LOMtree, {loss}: {error(trees[loss], X_test, y_test):.2f}")
        draw = np.random.default_rng(1)
        orders = {f"random {i}": draw.permutation(len(labels)) for i in range(3)}
        orders["given"] = np.arange(len(labels))
        orders |= {loss: leaf_order(tree.tree_, len(labels)) for loss, tree in trees.items()}
        options, passes = chosen(name, "random tree", *rows)
        for make in (RandomTreeClassifier, FilterTreeClassifier):
            for of, order in orders.items():
                place = np.argsort(order)
                settings = AS_VW | options | {"label_order": "given"}
                model = trained(make, settings, passes, X, place[y])
                print(f"{name}, {make.__name__}, {of}: {error(model, X_test, place[y_test]):.2f}")


if __name__ == "__main__":
    main()
