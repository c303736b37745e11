"""Measure a model on a labelled file.

error is the share of rows whose best label is wrong (1 - P@1); P@k and nDCG@k
are as the Extreme Classification Repository defines them. Labels that the model
has never seen count as missed.

example:
  xmtree evaluate model.xmtree test.txt.xz --json
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import xmtree
from xmtree._progress import progress
from xmtree.cli import data
from xmtree.metrics import gains

CUTS = (1, 3, 5)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree evaluate``."""
    parser.add_argument("model", metavar="MODEL", help="a file of xmtree fit or of save()")
    data.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads; -1: all cores (default 1)")


def run(options: argparse.Namespace) -> int:
    """Measures batch by batch, in constant memory."""
    learner = xmtree.load(options.model)
    learner.set_params(n_jobs=options.jobs)
    source = data.Source.of(options)
    sets = learner._y_form != "labels"
    cuts = [k for k in CUTS if k <= len(learner.classes_)]
    sums: dict[str, float] = {}
    n, seconds = 0, 0.0
    with progress(1, "evaluate") as report:
        for X, y in source.batches(learner.n_features_in_, sets):
            known, counts = data.as_sets(y, learner.classes_)
            began = time.perf_counter()
            best, _ = learner._call(learner._model.predict_topk, learner._rows(X), cuts[-1])
            seconds += time.perf_counter() - began
            n += X.shape[0]
            for k in cuts:
                for name, per_row in gains(known, best, k, counts).items():
                    sums[name] = sums.get(name, 0.0) + float(np.sum(per_row))
            if report:
                report(n, 0, 1 - sums["P@1"] / n)
    if n == 0:
        raise ValueError(f"{source.path} holds no examples")
    figures: dict[str, Any] = {"n_examples": n, "error": 1 - sums["P@1"] / n}
    figures |= {name: sums[name] / n for name in sorted(sums, key=_order)}
    figures["us_per_prediction"] = seconds / n * 1e6
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:<18}{value:.6g}")
    return 0


def _order(name: str) -> tuple[bool, str]:
    return (not name.startswith("P@"), name)
