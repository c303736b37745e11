"""Answers of a model to JSON documents."""

import json
import math
import os
import time
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree._core import __version__
from xmtree.cli.formats.categories import Categories
from xmtree.cli.formats.matrices import MAX_FEATURES
from xmtree.cli.formats.reader import Batch
from xmtree.cli.predict import rows_of
from xmtree.cli.trained import Model, hashed_columns

#: Largest number of rows times k of an answer.
_MOST_LABELS = 1_000_000
#: Labels and features that the model card names.
_MOST_NAMES = 20


class Served:
    """A loaded model. It does not change, so any number of threads may call it."""

    def __init__(self, model: Model, most_rows: int) -> None:
        self._model, self._most_rows = model, most_rows
        self._learner, self._categories = model.learner, Categories(model.categories)
        self.key = "texts" if model.takes == "texts" else "rows"
        self.loaded_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def predict(self, body: bytes) -> bytes:
        """Return the best label of each row, or its label set, as JSON."""
        X, _ = self._read(body, {})
        learner = self._learner
        if learner._y_form == "labels":
            return _written({"labels": _plain(learner.predict(X)).tolist()})
        sets = learner._label_sets(learner._rows(X))
        named = _plain(learner.classes_[sets.indices]).tolist()
        return _written({"labels": [named[start:end] for start, end in pairwise(sets.indptr)]})

    def predict_topk(self, body: bytes) -> bytes:
        """Return the ``k`` best labels of each row and their scores as JSON."""
        X, given = self._read(body, {"k": 5, "scores": "raw"})
        k, n_classes = given["k"], len(self._learner.classes_)
        if type(k) is not int or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r:.60}")
        k = min(k, n_classes)
        if X.shape[0] * k > _MOST_LABELS:
            raise ValueError(f"{X.shape[0]} rows x k = {k} is more than {_MOST_LABELS} labels")
        labels, scores = self._learner.predict_topk(X, k, scores=given["scores"])
        found: Any = list(rows_of(_plain(labels), scores, -math.inf))
        rounded = [[float(f"{score:.6g}") for score in values] for _, values in found]
        return _written({"labels": [names for names, _ in found], "scores": rounded})

    def card(self) -> dict[str, Any]:
        """Return a description of the model."""
        learner, names = self._learner, self._model.numbers
        return {
            "model": os.path.basename(self._model.name),
            "classifier": type(self._model.estimator).__name__,
            "learner": type(learner).__name__,
            "takes": self.key,
            "predicts": "one label" if learner._y_form == "labels" else "label sets",
            "n_labels": len(learner.classes_),
            "labels": _plain(learner.classes_[:_MOST_NAMES]).tolist(),
            "n_features": learner.n_features_in_,
            "features": list(names or ())[:_MOST_NAMES],
            "categories": list(self._model.categories)[:_MOST_NAMES],
            "most_rows": self._most_rows,
            "loaded_at": self.loaded_at,
            "xmtree": __version__,
        }

    def _read(self, body: bytes, defaults: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the rows of a document as a matrix, and its other values."""
        try:
            found = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ValueError(f"the body is not JSON: {what}") from error
        if not isinstance(found, dict):
            raise ValueError(f"the body must be an object, got a {type(found).__name__}")
        unknown = next((key for key in found if key not in (self.key, *defaults)), None)
        if unknown is not None:
            allowed = ", ".join([self.key, *defaults])
            raise ValueError(f"unknown key {unknown!r:.60}; allowed are {allowed}")
        rows = found.get(self.key)
        if not isinstance(rows, list) or not rows:
            raise ValueError(f"{self.key!r} must be a list with at least one entry")
        if len(rows) > self._most_rows:
            raise ValueError(f"{len(rows)} {self.key}, at most {self._most_rows} are allowed")
        X = self._texts(rows) if self.key == "texts" else self._numbers(rows)
        return X, defaults | found

    def _texts(self, texts: list[Any]) -> Any:
        _check_types(texts, (str,), "texts[{}] must be a string")
        return self._model.estimator._rows(texts)

    def _numbers(self, rows: list[Any]) -> Any:
        if isinstance(rows[0], dict):
            _check_types(rows, (dict,), "rows[{}] must be an object like rows[0]")
            self._encode(rows)
            return self._named(rows)
        _check_types(rows, (list,), "rows[{}] must be a list of numbers or an object")
        width = len(rows[0])
        if not self._learner._takes_any_width():
            width = self._learner.n_features_in_
        for at, row in enumerate(rows):
            if len(row) != width:
                raise ValueError(f"rows[{at}] has {len(row)} numbers, expected {width}")
        self._encode(rows)
        for at, row in enumerate(rows):
            _check_types(row, (int, float, type(None)), f"rows[{at}][{{}}] must be a number")
        return _floats(list(chain.from_iterable(rows))).reshape(len(rows), width)

    def _encode(self, rows: list[Any]) -> None:
        """Replace category names by their numbers; those that are not given are missing."""
        places = self._model.numbers or {}
        for column in self._categories.numbers:
            key: Any = column
            if isinstance(rows[0], list):
                key = places[column] if places else int(column)
                values = [row[key] for row in rows]
            else:
                values = [row.get(key) for row in rows]
            wrong = self._categories.wrong(column, values)
            if wrong is not None:
                at, why = wrong
                raise ValueError(f"rows[{at}]: column {column!r} holds {values[at]!r:.60}, {why}")
            for row, number in zip(rows, self._categories.encoded(column, values), strict=True):
                row[key] = float(number)

    def _named(self, rows: list[dict[str, Any]]) -> Any:
        """Return rows of values by name or column number; numbers that are not given are 0."""
        for at, row in enumerate(rows):
            _check_types([*row.values()], (int, float), f"rows[{at}]: value {{}} must be a number")
        if self._learner._hashes_names:
            for row in rows:
                _floats(list(row.values()))
            return hashed_columns(Batch(rows, None))
        column = self._column_by_number if self._model.numbers is None else self._column_by_name
        indices: list[int] = []
        values: list[float] = []
        starts = [0]
        for at, row in enumerate(rows):
            known = {number: row[name] for name in row if (number := column(name, at)) is not None}
            indices += known
            values += known.values()
            starts.append(len(indices))
        width = self._learner.n_features_in_
        if self._learner._takes_any_width():
            width = max([width, *(index + 1 for index in indices)])
        matrix = sp.csr_matrix((_floats(values), indices, starts), (len(rows), width))
        matrix.sort_indices()
        return matrix

    def _column_by_name(self, name: str, at: int) -> int | None:
        number = (self._model.numbers or {}).get(name)
        if number is None and not self._model.ignores_unknown:
            raise ValueError(
                f"rows[{at}]: the model has no feature {name!r:.60}; xmtree serve "
                "--unknown-features ignore leaves out such features"
            )
        return number

    def _column_by_number(self, name: str, at: int) -> int | None:
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 11 else MAX_FEATURES
        if number >= MAX_FEATURES or str(number) != name:
            raise ValueError(f"rows[{at}]: {name!r:.60} is not the number of a column, from 0")
        if number >= self._learner.n_features_in_ and not self._learner._takes_any_width():
            if self._model.ignores_unknown:
                return None
            last = self._learner.n_features_in_ - 1
            raise ValueError(f"rows[{at}]: column {number}, the model has 0 to {last}")
        return number


def _check_types(values: list[Any], allowed: tuple[type, ...], message: str) -> None:
    """Refuse values of other types; booleans are no numbers."""
    if set(map(type, values)) <= set(allowed):
        return
    at = next(at for at, value in enumerate(values) if type(value) not in allowed)
    raise ValueError(f"{message.format(at)}, got {values[at]!r:.60}")


def _floats(values: list[Any]) -> NDArray[np.float64]:
    try:
        return np.array(values, np.float64)
    except OverflowError:
        raise ValueError("an integer is too large for a number of 64 bits") from None


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels that JSON can hold; dates and times become text."""
    return labels.astype(str) if labels.dtype.kind in "mM" else labels


def _refuse(constant: str) -> Callable[..., Any]:
    raise ValueError(f"{constant} is not a number of JSON")


def _written(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str).encode()
