"""Measuring a model on a file, batch by batch, in constant memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from xmtree import _core
from xmtree._progress import progress
from xmtree.cli.formats import Reader
from xmtree.cli.labels import as_sets
from xmtree.cli.per_label import PerLabel
from xmtree.cli.trained import Model, numbered

CUTS = (1, 3, 5)
#: The Repository's parameters of propensities, except for sets from Wikipedia and Amazon.
A, B = 0.55, 1.5
#: Measures by their names in the core: their usual names.
NAMES = {"precision": "P", "ndcg": "nDCG", "recall": "recall", "psp": "PSP", "psndcg": "PSnDCG"}


@dataclass
class Propensities:
    """Of each class, and of a label that never occurred in training."""

    known: list[float] | None = None
    unseen: float | None = None

    @staticmethod
    def of(reader: Reader, model: Model) -> Propensities:
        """Those of the labels of a training file."""
        classes, sets = model.learner.classes_, model.learner._y_form != "labels"
        n, n_classes = 0, len(classes)
        # The last one stays 0.
        counts = np.zeros(n_classes + 1, np.int64)
        # Its features do not matter.
        for batch in reader.batches(sets):
            true = as_sets(reader, batch.labels, classes)
            counts[:-1] += np.bincount(true.indices, minlength=n_classes)[:n_classes]
            n += true.shape[0]
        if n == 0:
            raise reader.empty()
        *known, unseen = _core.propensities(counts, n, A, B).tolist()
        return Propensities(known, unseen)


@dataclass
class Measures:
    """What was measured."""

    n_examples: int
    #: P@k, nDCG@k and so on, by name.
    ranking: dict[str, float]
    #: Predicting and, for texts, counting their words.
    seconds: float

    @property
    def error(self) -> float:
        """The share of rows whose best label is wrong."""
        return 1 - self.ranking["P@1"]


def measure(
    model: Model,
    reader: Reader,
    ignores_unknown: bool,
    propensities: Propensities | None = None,
    per_label: PerLabel | None = None,
) -> Measures:
    """The measures of ``model`` on ``reader``, for which it has been prepared."""
    learner: Any = model.learner
    propensities = propensities or Propensities()
    sets = learner._y_form != "labels"
    cuts = [k for k in CUTS if k <= len(learner.classes_)]
    scores = _core.Scores(cuts, propensities.known, propensities.unseen)
    n, seconds = 0, 0.0
    with progress(1, "evaluate") as report:
        for first_row, batch in numbered(reader, sets):
            true = as_sets(reader, batch.labels, learner.classes_)
            began = time.perf_counter()
            rows = learner._rows(model.rows(batch, reader, first_row, ignores_unknown))
            best, _ = learner._topk(rows, cuts[-1])
            seconds += time.perf_counter() - began
            scores.add(true, true.shape[1], best)
            if per_label is not None:
                per_label.add(true, learner._label_sets(rows) if sets else best[:, 0])
            n += true.shape[0]
            if report:
                report(n, 0, 1 - scores.measures()["precision"][0], None)
    if n == 0:
        raise reader.empty()
    ranking = {
        f"{NAMES[name]}@{k}": value
        for name, values in scores.measures().items()
        for k, value in zip(cuts, values.tolist(), strict=True)
    }
    return Measures(n, ranking, seconds)
