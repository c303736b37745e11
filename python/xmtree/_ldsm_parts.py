"""LdSM models with the scorers of each group of labels in a file of their own.

A folder holds them, for models that no machine has memory for. Predictions read one file after the
other. The main file has the trees and the join, names the other files, and is written last.
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from xmtree import _core
from xmtree._labels import Labels
from xmtree._ldsm import LdSMClassifier
from xmtree._persistence import check_fitted, save_around

#: The main file.
MAIN = "model.xmtree"
#: Held while a process predicts, so that it needs memory for one group.
_one_group = Lock()


def part_files(folder: Path, name: str, n_groups: int) -> list[str]:
    """Return the files of the groups of a model. The name differs for each training."""
    return [str(folder / f"group-{name}-{number:04}.xmtree") for number in range(n_groups)]


@dataclass(frozen=True)
class Parts:
    """Stands in for the core's model in an estimator."""

    #: The model without weights of scorers.
    trees: _core.Classifier
    name: str
    files: list[str]
    labels: Labels | None = None

    def with_labels(self, labels: Labels) -> "Parts":
        """Return the model with these labels."""
        return replace(self, labels=labels)

    def snapshot(self, brief: bool = False) -> "Parts":
        """Return the model, which never changes."""
        return self

    @property
    def params(self) -> dict[str, Any]:
        """Return the core's parameters."""
        return self.trees.params

    def summary(self) -> dict[str, Any]:
        """Return facts about trees and join."""
        return self.trees.summary()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a model in parts has no {name}; whole() puts it together")

    def predict_topk(self, X: Any, k: int, n_threads: int = 1) -> Any:
        """Return the k best classes of each row and their scores, as the whole model does."""
        with _one_group:
            return _core.ldsm_topk(self.trees, self.name, self.files, X, k, n_threads)

    def select_labels(
        self, X: Any, threshold: float | None, n_labels: int | None, n_least: int, n_threads: int
    ) -> tuple[Any, Any, Any]:
        """Return classes of each row and their scores, as the whole model does."""
        bar, k = np.float32(0.5 if threshold is None else threshold), max(64, n_least)
        if threshold is None and n_labels is not None:
            bar, k, n_least = np.float32(np.inf), n_labels, n_labels
        while True:
            k = min(k, self.trees.n_classes)
            codes, scores = self.predict_topk(X, k, n_threads)
            # More labels may be above the threshold than were found.
            if k == self.trees.n_classes or not (scores[:, -1] > bar).any():
                break
            k *= 4
        is_chosen = ((scores > bar) | (np.arange(k) < n_least)) & (codes >= 0)
        starts = np.concatenate([[0], np.cumsum(is_chosen.sum(axis=1))])
        rows, codes, scores = np.nonzero(is_chosen)[0], codes[is_chosen], scores[is_chosen]
        order = np.lexsort((codes, rows))
        return starts, codes[order], scores[order]


class LdSMInParts(LdSMClassifier):
    """A trained LdSM model in a folder, which predicts as :class:`LdSMClassifier` does.

    A prediction reads one group of labels after the other and has only one in memory, so predict
    many rows at a time. :meth:`whole` puts the model together. Pickle stores the path of the
    folder.
    """

    _model: Any

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @classmethod
    def of(cls, local: LdSMClassifier, model: Parts) -> Self:
        """Return the estimator ``local`` with this model."""
        estimator = object.__new__(cls)
        vars(estimator).update(vars(local), _model=model)
        return estimator

    def _local(self, model: _core.Classifier) -> LdSMClassifier:
        local = object.__new__(LdSMClassifier)
        vars(local).update(vars(self), _model=model.with_labels(self._model.labels))
        return local

    def whole(self) -> LdSMClassifier:
        """Return the estimator with all groups in memory."""
        model = self._model
        return self._local(_core.ldsm_whole(model.trees, model.name, model.files))

    def fit(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a model in parts only predicts; train an LdSMClassifier")

    def save(self, path: str | Path, *, compact: bool = False) -> None:
        check_fitted(self)
        self.whole().save(path, compact=compact)

    @classmethod
    def _from_file(cls, path: str | Path, learner: Any, meta: dict[str, Any], arrays: Any) -> Self:
        name, n_groups = meta["name"], meta["n_groups"]
        if not re.fullmatch(r"[0-9a-f]{32}", name):
            raise ValueError(f"name {name!r}")
        if not 0 < n_groups <= learner._model.n_classes:
            raise ValueError(f"n_groups {n_groups!r}")
        files = part_files(Path(path).absolute().parent, name, n_groups)
        for file in files:
            if not os.path.exists(file):
                raise _core.ModelFileError(f"{path}: {file}, a part of this model, is missing")
        return cls.of(learner, Parts(learner._model, name, files, learner._labels))


def publish(local: LdSMClassifier, folder: Path) -> None:
    """Write the main file of a model whose parts are in ``folder``; this replaces another model."""
    files: list[str] = []
    if isinstance(local, LdSMInParts):
        model, files = local._model, local._model.files
        state = {"name": model.name, "n_groups": len(files)}
        save_around(local, local._local(model.trees), folder / MAIN, {}, compact=False, **state)
    else:
        local.save(folder / MAIN)
    # Parts of other models, also of trainings that failed.
    for file in folder.glob("group-*.xmtree"):
        if str(file) not in files:
            file.unlink(missing_ok=True)
