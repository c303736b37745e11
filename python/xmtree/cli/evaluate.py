"""Measure a model on a labelled file.

error is the share of rows whose best label is wrong (1 - P@1); P@k and nDCG@k
are as the Extreme Classification Repository defines them. Labels that the model
has never seen count as missed. PSP@k weighs rare labels more; how rare a label is
is counted in the training file, so it is told where that is given (--train).

example:
  xmtree evaluate model.xmtree test.txt.xz --train train.txt.xz --json
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xmtree
from xmtree._progress import progress
from xmtree.cli import data
from xmtree.metrics import gains, inverse_propensities, propensity_gains

CUTS = (1, 3, 5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree evaluate``."""
    parser.add_argument("model", metavar="MODEL", help="a file of xmtree fit or of save()")
    data.add_arguments(parser)
    parser.add_argument(
        "--train", metavar="FILE", help="what the model learned from, for PSP@k; formats as DATA"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads; -1: all cores (default 1)")


def run(options: argparse.Namespace) -> int:
    """Measures batch by batch, in constant memory."""
    learner = xmtree.load(options.model)
    learner.set_params(n_jobs=options.jobs)
    source = data.Source.of(options)
    sets = learner._y_form != "labels"
    cuts = [k for k in CUTS if k <= len(learner.classes_)]
    weights = _inverse_propensities(options, learner, sets)
    sums: dict[str, float] = {}
    ideal: dict[int, float] = dict.fromkeys(cuts, 0.0)
    n, seconds = 0, 0.0
    with progress(1, "evaluate") as report:
        for X, y in source.batches(learner.n_features_in_, sets):
            known, counts = data.as_sets(y, learner.classes_)
            began = time.perf_counter()
            best, _ = learner._topk(learner._rows(X), cuts[-1])
            seconds += time.perf_counter() - began
            n += X.shape[0]
            for k in cuts:
                for name, per_row in gains(known, best, k, counts).items():
                    sums[name] = sums.get(name, 0.0) + float(np.sum(per_row))
                if weights is not None:
                    missing = counts - np.diff(known.indptr)
                    won, most = propensity_gains(
                        known, best, k, weights[:-1], (missing, float(weights[-1]))
                    )
                    sums[f"PSP@{k}"] = sums.get(f"PSP@{k}", 0.0) + won
                    ideal[k] += most
            if report:
                report(n, 0, 1 - sums["P@1"] / n, None)
    if n == 0:
        raise ValueError(f"{source.path} holds no examples")
    figures: dict[str, Any] = {"n_examples": n, "error": 1 - sums["P@1"] / n}
    for k, most in ideal.items():
        if most > 0:
            sums[f"PSP@{k}"] *= n / most
    figures |= {name: sums[name] / n for name in sorted(sums, key=_order)}
    figures["us_per_prediction"] = seconds / n * 1e6
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:<18}{value:.6g}")
    return 0


def _inverse_propensities(
    options: argparse.Namespace, learner: Any, sets: bool
) -> NDArray[np.float64] | None:
    """Of each class and, last, of a label that never occurred in training."""
    if options.train is None:
        return None
    file = argparse.Namespace(**vars(options) | {"data": options.train})
    source = data.Source.of(file)
    n, labels = 0, np.zeros(len(learner.classes_) + 1, np.int64)
    for _, y in source.batches(learner.n_features_in_, sets):
        known, counts = data.as_sets(y, learner.classes_)
        labels[:-1] += np.bincount(known.indices, minlength=len(learner.classes_))
        n += len(counts)
    if n == 0:
        raise ValueError(f"{source.path} holds no examples")
    return inverse_propensities(labels, n)


def _order(name: str) -> tuple[bool, str]:
    return (not name.startswith("P@"), name)
