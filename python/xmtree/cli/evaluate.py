"""Measure a model on a labeled file.

error is the share of rows whose best label is wrong (1 - P@1). P@k, nDCG@k and
recall@k are those of xmtree.metrics, as the Extreme Classification Repository
defines them. Labels unknown to the model count as missed; rows without labels
score 0. PSP@k and PSnDCG@k give rare labels a larger weight. They need the
training file (--train), in which labels are counted.

example:
  xmtree evaluate model.xmtree test.txt.xz --train train.txt.xz --json
"""

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from xmtree import _core
from xmtree._progress import progress, shown_as
from xmtree.cli.formats import open_reader
from xmtree.cli.formats.reader import Reader
from xmtree.cli.labels import as_sets
from xmtree.cli.options import add_model
from xmtree.cli.trained import Model, open_model

_CUTS = (1, 3, 5)
#: The Repository's propensity parameters for all data sets but Wikipedia's and Amazon's.
_A, _B = 0.55, 1.5
#: Usual names of measures, by their names in the core.
_NAMES = {"precision": "P", "ndcg": "nDCG", "recall": "recall", "psp": "PSP", "psndcg": "PSnDCG"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree evaluate``."""
    add_model(parser)
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="the training file, for PSP@k and PSnDCG@k, in any format of DATA",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(options: argparse.Namespace) -> int:
    """Measure and print."""
    model, reader = open_model(options)
    propensities = None
    if options.train is not None:
        remembered = model.learner._table_options
        train = open_reader(options.train, options, strict=False, remembered=remembered)
        model.prepare(train, ignores_unknown=True)
        propensities = _propensities(train, model)
    with shown_as(options.progress):
        found = measure(model, reader, propensities)
    figures: dict[str, Any] = {"n_examples": found.n_examples, "error": found.error}
    figures |= found.ranking
    figures["us_per_prediction"] = found.seconds / found.n_examples * 1e6
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
        return 0
    for name, value in figures.items():
        print(f"{name:<18}{value:.6g}")
    return 0


@dataclass
class Measures:
    """Results of an evaluation."""

    n_examples: int
    cuts: list[int]
    #: P@k, nDCG@k and the other measures, by name.
    ranking: dict[str, float]
    #: Time of prediction and, for texts, of feature extraction.
    seconds: float

    @property
    def error(self) -> float:
        """Return the share of rows whose best label is wrong."""
        return 1 - self.ranking["P@1"]


def measure(
    model: Model, reader: Reader, propensities: tuple[list[float], float] | None = None
) -> Measures:
    """Measure ``model`` on a ``reader`` prepared for it, in constant memory.

    ``propensities`` holds those of each class and that of a label unseen in training.
    """
    learner = model.learner
    sets = learner._y_form != "labels"
    cuts = [k for k in _CUTS if k <= len(learner.classes_)]
    scores = _core.Scores(cuts, *(propensities or (None, None)))
    n, seconds = 0, 0.0
    with progress(1, "evaluate") as report:
        for first_row, batch in reader.numbered(sets):
            true = as_sets(reader, batch, learner.classes_)
            began = time.perf_counter()
            rows = learner._rows(model.rows(batch, reader, first_row))
            best, _ = learner._topk(rows, cuts[-1])
            seconds += time.perf_counter() - began
            scores.add(true, true.shape[1], best)
            n += true.shape[0]
            if report:
                report(n, 0, 1 - scores.measures()["precision"][0], None)
    ranking = {
        f"{_NAMES[name]}@{k}": value
        for name, values in scores.measures().items()
        for k, value in zip(cuts, values.tolist(), strict=True)
    }
    return Measures(n, cuts, ranking, seconds)


def _propensities(reader: Reader, model: Model) -> tuple[list[float], float]:
    """Return the propensities of the labels in a training file, ignoring its features."""
    classes, sets = model.learner.classes_, model.learner._y_form != "labels"
    n, n_classes = 0, len(classes)
    # The last count stands for a label that never occurs and stays 0.
    counts = np.zeros(n_classes + 1, np.int64)
    for _, batch in reader.numbered(sets):
        true = as_sets(reader, batch, classes)
        counts[:-1] += np.bincount(true.indices, minlength=n_classes)[:n_classes]
        n += true.shape[0]
    *known, unseen = _core.propensities(counts, n, _A, _B).tolist()
    return known, unseen
