"""The learners that are compared, and the data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import xmtree
from xmtree._base import Learner
from xmtree.datasets import load_demo


@dataclass(frozen=True)
class DataSet:
    """Data inside the package.

    ``text``: very many columns, nearly all of them 0 in each row.
    """

    name: str
    title: str
    multilabel: bool
    about: str
    text: bool = True

    def load(self, n_rows: int | None = None) -> Any:
        """The parts of the data, with about ``n_rows`` training rows where that is given."""
        parts = load_demo(self.name)
        if n_rows is not None:
            step = max(1, parts.X_train.shape[0] // n_rows)
            parts.X_train, parts.y_train = parts.X_train[::step], parts.y_train[::step]
        return parts

    def description(self, parts: Any) -> str:
        """What it is, and how much of it, in two sentences."""
        y, known = parts.y_train, len(parts.target_names)
        occur = np.count_nonzero(y.sum(axis=0)) if self.multilabel else len(np.unique(y))
        labels = f"{known:,} labels" if occur == known else f"{occur:,} of {known:,} labels"
        each = f", {y.sum() / y.shape[0]:.1f} per row" if self.multilabel else ""
        return (
            f"{self.about} {y.shape[0]:,} training rows with {labels}{each}; "
            f"{parts.X_test.shape[0]:,} test rows."
        )


@dataclass(frozen=True)
class Contender:
    """A learner and its settings, all defaults but those named.

    ``family`` is its group in the comparison. ``text``: whether it is for text. Boosting is not:
    it is slow there, and less accurate than linear learners.
    """

    name: str
    family: str
    learner: type[Learner]
    settings: Mapping[str, Any] = field(default_factory=dict)
    multiclass: bool = True
    multilabel: bool = False
    text: bool = True

    def make(self, **more: Any) -> Learner:
        """A new learner; ``more`` are parameters that all of them have."""
        return self.learner(**self.settings, **more)

    def competes_on(self, data: DataSet) -> bool:
        """Whether it can learn such labels."""
        kind = self.multilabel if data.multilabel else self.multiclass
        return kind and (self.text or not data.text)


DATA_SETS = (
    DataSet(
        "naics2017-index",
        "naics",
        False,
        "Industries of described business activities, from words and word pairs.",
    ),
    DataSet(
        "letter",
        "letter",
        False,
        "Letters from 16 measures of their image: a table, so boosting is compared, too.",
        text=False,
    ),
    DataSet(
        "onet-titles", "onet-titles", True, "Occupations of job titles, from words and word pairs."
    ),
)

_TEN: dict[str, Any] = {"n_estimators": 10}

CONTENDERS = (
    Contender("OAA", "oaa", xmtree.OAAClassifier, multilabel=True),
    Contender("OAA, softmax", "oaa", xmtree.OAAClassifier, {"loss": "softmax"}),
    Contender("LOMtree", "tree", xmtree.LOMTreeClassifier),
    Contender("LOMtree x 10", "tree", xmtree.LOMTreeClassifier, _TEN),
    Contender("Recall Tree", "tree", xmtree.RecallTreeClassifier),
    Contender("LdSM x 10", "tree", xmtree.LdSMClassifier, _TEN, multiclass=False, multilabel=True),
    Contender("Filter tree", "tree", xmtree.FilterTreeClassifier),
    Contender("Random tree", "tree", xmtree.RandomTreeClassifier),
    Contender("GAMBLE", "tree", xmtree.GambleClassifier, text=False),
    Contender("SAMME", "tree", xmtree.SAMMEClassifier, text=False),
)
