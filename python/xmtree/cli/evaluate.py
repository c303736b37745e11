"""Measure a model on a labelled file.

error is the share of rows whose best label is wrong (1 - P@1); P@k, nDCG@k and
recall@k are those of xmtree.metrics, as the Extreme Classification Repository
defines them. Labels that the model has never seen count as missed, rows without
labels score 0. PSP@k and PSnDCG@k give rare labels a larger weight. They are reported
if the training file is given (--train), in which the labels are counted.

example:
  xmtree evaluate model.xmtree test.txt.xz --train train.txt.xz --json
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from xmtree import _core
from xmtree._progress import progress
from xmtree.cli import data

CUTS = (1, 3, 5)
#: The Repository's parameters of propensities, except for sets from Wikipedia and Amazon.
A, B = 0.55, 1.5
#: Measures by their names in the core: their usual names.
NAMES = {"precision": "P", "ndcg": "nDCG", "recall": "recall", "psp": "PSP", "psndcg": "PSnDCG"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree evaluate``."""
    data.add_model_arguments(parser)
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="the training file, for PSP@k and PSnDCG@k; formats as DATA",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(options: argparse.Namespace) -> int:
    """Measures batch by batch, in constant memory."""
    learner, source = data.open_model(options)
    sets = learner._y_form != "labels"
    cuts = [k for k in CUTS if k <= len(learner.classes_)]
    scores = _core.Scores(cuts, *_propensities(options, learner, sets))
    n, seconds = 0, 0.0
    with progress(1, "evaluate") as report:
        for X, y in source.batches_for(learner, sets):
            true = data.as_sets(y, learner.classes_)
            began = time.perf_counter()
            best, _ = learner._topk(learner._rows(X), cuts[-1])
            seconds += time.perf_counter() - began
            scores.add(true, true.shape[1], best)
            n += true.shape[0]
            if report:
                report(n, 0, 1 - scores.measures()["precision"][0], None)
    if n == 0:
        raise source.empty()
    measures = scores.measures()
    figures: dict[str, Any] = {"n_examples": n, "error": 1 - float(measures["precision"][0])}
    for name, values in measures.items():
        for k, value in zip(cuts, values.tolist(), strict=True):
            figures[f"{NAMES[name]}@{k}"] = value
    figures["us_per_prediction"] = seconds / n * 1e6
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:<18}{value:.6g}")
    return 0


def _propensities(
    options: argparse.Namespace, learner: Any, sets: bool
) -> tuple[list[float] | None, float | None]:
    """Of each class, and of a label that never occurred in training."""
    if options.train is None:
        return None, None
    file = argparse.Namespace(**vars(options) | {"data": options.train})
    source = data.Source.of(file, learner._index_base)
    n, n_classes = 0, len(learner.classes_)
    # The last one stays 0.
    counts = np.zeros(n_classes + 1, np.int64)
    # Its features do not matter.
    for _, y in source.batches(data.MAX_FEATURES, sets):
        true = data.as_sets(y, learner.classes_)
        counts[:-1] += np.bincount(true.indices, minlength=n_classes)[:n_classes]
        n += true.shape[0]
    if n == 0:
        raise source.empty()
    *known, unseen = _core.propensities(counts, n, A, B).tolist()
    return known, unseen
