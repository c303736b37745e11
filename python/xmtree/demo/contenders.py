"""The learners that are compared, and the data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xmtree import (
    FilterTreeClassifier,
    GambleClassifier,
    LdSMClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    RandomTreeClassifier,
    RecallTreeClassifier,
    SAMMEClassifier,
)
from xmtree._base import Learner


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


@dataclass(frozen=True)
class Contender:
    """A learner and its settings, all defaults but those named.

    ``slot`` is its colour in all plots, ``family`` its group in the comparison. ``text``:
    whether it is for text. Boosting is not: it is slow there, and less accurate than linear
    learners.
    """

    name: str
    family: str
    slot: int
    make: Callable[..., Learner]
    multiclass: bool = True
    multilabel: bool = False
    text: bool = True

    def competes_on(self, data: DataSet) -> bool:
        """Whether it can learn such labels."""
        kind = self.multilabel if data.multilabel else self.multiclass
        return kind and (self.text or not data.text)


DATA_SETS = (
    DataSet(
        "naics2017-index",
        "naics",
        False,
        "Industry of a described business activity: words and word pairs, one of 1055 classes.",
    ),
    DataSet(
        "letter",
        "letter",
        False,
        "Letters from 16 measures of their image, 26 classes: a table, so boosting is compared, "
        "too. On text it is slow and inaccurate.",
        text=False,
    ),
    DataSet(
        "onet-titles",
        "onet-titles",
        True,
        "Occupations of a job title: words and word pairs, 1016 labels, 1.2 per title.",
    ),
)


def _oaa(**settings: Any) -> Callable[..., Learner]:
    return lambda **more: OAAClassifier(**settings, **more)


def _lomtree(**settings: Any) -> Callable[..., Learner]:
    return lambda **more: LOMTreeClassifier(**settings, **more)


def _recall_tree(**settings: Any) -> Callable[..., Learner]:
    return lambda **more: RecallTreeClassifier(**settings, **more)


def _ldsm(**settings: Any) -> Callable[..., Learner]:
    return lambda **more: LdSMClassifier(**settings, **more)


CONTENDERS = (
    Contender("OAA", "oaa", 1, _oaa(), multilabel=True),
    Contender("OAA, softmax", "oaa", 2, _oaa(loss="softmax")),
    Contender("LOMtree", "tree", 3, _lomtree()),
    Contender("LOMtree x 10", "tree", 4, _lomtree(n_estimators=10)),
    Contender("Recall Tree", "tree", 5, _recall_tree()),
    Contender("LdSM x 10", "tree", 8, _ldsm(n_estimators=10), multiclass=False, multilabel=True),
    Contender("Filter tree", "tree", 6, FilterTreeClassifier),
    Contender("Random tree", "tree", 7, RandomTreeClassifier),
    Contender("GAMBLE", "tree", 9, GambleClassifier, text=False),
    Contender("SAMME", "tree", 10, SAMMEClassifier, text=False),
)
