"""Trained models, and rows of any format as what a model takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import xmtree
from xmtree import TextClassifier
from xmtree._base import Learner
from xmtree.cli import columns
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import Batch, NamedRows, Reader, Sets, open_reader
from xmtree.cli.formats.reader import is_sparse


@dataclass
class Model:
    """A trained estimator."""

    #: What messages call it.
    name: str
    estimator: Learner | TextClassifier
    #: The number of each feature's name; None where features have no names.
    numbers: dict[str, int] | None

    @staticmethod
    def of(name: str, estimator: Any) -> Model:
        """A model whose columns are matched by name here."""
        # Without them in the learner, scikit-learn does not expect data frames.
        learner: Any = learner_of(estimator)
        numbers = None
        if hasattr(learner, "feature_names_in_"):
            numbers = {name: at for at, name in enumerate(learner.feature_names_in_.tolist())}
            del learner.feature_names_in_
        return Model(name, estimator, numbers)

    @staticmethod
    def load(path: str) -> Model:
        """The model in a file."""
        estimator = xmtree.load(path)
        if not isinstance(estimator, Learner | TextClassifier):
            raise WrongUsage(
                f"{type(estimator).__name__}, the model in {path}, is for Python, by xmtree.load; "
                "commands apply classifiers of xmtree"
            )
        return Model.of(path, estimator)

    @property
    def learner(self) -> Learner:
        """The learner itself, which takes numbers."""
        return learner_of(self.estimator)

    def open(self, path: str, options: argparse.Namespace) -> Reader:
        """The reader of a file that this is applied to."""
        remembered = self.learner._table_options
        return open_reader(path, options, on_stdin=self.stdin_format, remembered=remembered)

    @property
    def stdin_format(self) -> str | None:
        """The format of stdin where no option tells it."""
        return "text" if isinstance(self.estimator, TextClassifier) else "xmc"

    def prepare(self, reader: Reader, ignores_unknown: bool) -> None:
        """Called before this is applied to the rows of ``reader``."""
        takes = "texts" if isinstance(self.estimator, TextClassifier) else "numbers"
        if reader.kind != takes:
            raise WrongUsage(
                f"{type(self.estimator).__name__}, the model in {self.name}, was trained on "
                f"{takes}; {reader.shown_name} holds {reader.kind}"
            )
        reader.prepare_for(self.learner._index_base, self.numbers, ignores_unknown)

    def rows(self, batch: Batch, reader: Reader, first_row: int, ignores_unknown: bool) -> Any:
        """The rows of a batch as a matrix for the learner."""
        if isinstance(self.estimator, TextClassifier):
            return self.estimator._rows(batch.rows)
        learner, X = self.learner, batch.rows
        if isinstance(X, NamedRows):
            return self._named(batch, reader, first_row, ignores_unknown)
        if learner._hashes_names:
            raise WrongUsage(
                f"{self.name} was trained on hashed names of features, as VW text has them; "
                f"{reader.shown_name} has columns"
            )
        if batch.columns is not None and self.numbers is not None:
            return X[:, self._places(batch.columns, reader)]
        width = learner.n_features_in_
        if learner._takes_any_width() or X.shape[1] <= width:
            return X
        if not ignores_unknown:
            told = reader.beyond(X, width, first_row)
            if told is not None:
                raise ValueError(told)
        if not is_sparse(X):
            return np.ascontiguousarray(X[:, :width])
        X.resize(X.shape[0], width)
        return X

    def _named(self, batch: Batch, reader: Reader, first_row: int, ignores: bool) -> Any:
        rows: NamedRows = batch.rows
        if self.learner._hashes_names:
            return columns.hashed(rows)
        if self.numbers is None:
            raise WrongUsage(
                f"{self.name} was trained on columns without names; the features of "
                f"{reader.shown_name} have names"
            )
        if not ignores:
            unknown = columns.unknown_name(rows, self.numbers)
            if unknown is not None:
                raise ValueError(
                    f"{reader.place(batch, unknown[0], first_row)}: the model has no feature "
                    f"{unknown[1]!r}; --unknown-features ignore leaves such features out"
                )
        return columns.numbered(rows, self.numbers, grow=False)

    def _places(self, names: list[str], reader: Reader) -> list[int]:
        """Where the model's columns are among those of a table, which has no others."""
        numbers = self.numbers or {}
        places = {name: at for at, name in enumerate(names)}
        lacking = next((name for name in numbers if name not in places), None)
        if lacking is not None:
            raise ValueError(f"{reader.shown_name} lacks the column {lacking!r} of the model")
        unknown = next((name for name in names if name not in numbers), None)
        if unknown is not None:
            raise ValueError(
                f"{reader.shown_name}: the model has no feature {unknown!r}; --unknown-features "
                "ignore leaves out such columns"
            )
        return [places[name] for name in numbers]


def learner_of(estimator: Any) -> Learner:
    """The learner that takes numbers: of a text classifier the one inside."""
    learner: Learner = estimator.learner_ if isinstance(estimator, TextClassifier) else estimator
    return learner


def open_model(options: argparse.Namespace) -> tuple[Model, Reader]:
    """The model of the options, and the file that it is applied to."""
    model = Model.load(options.model)
    model.learner.set_params(n_jobs=options.jobs)
    reader = model.open(options.data, options)
    model.prepare(reader, options.unknown_features == "ignore")
    return model, reader


def numbered(reader: Reader, sets: Sets) -> Iterator[tuple[int, Batch]]:
    """Batches, each with the number of its first row."""
    row = 0
    for batch in reader.batches(sets):
        yield row, batch
        row += len(batch)
