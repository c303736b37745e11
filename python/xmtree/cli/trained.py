"""Trained models, and the conversion of rows of any format into a model's input."""

import argparse
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher

import xmtree
from xmtree import TextClassifier
from xmtree._base import Learner
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import open_reader
from xmtree.cli.formats.categories import Categories
from xmtree.cli.formats.matrices import MAX_FEATURES
from xmtree.cli.formats.reader import Batch, Reader


@dataclass
class Model:
    """A trained estimator, or one whose training rows are known."""

    #: Name in messages.
    name: str
    estimator: Any
    #: Number of columns; None if rows may have any number.
    width: int | None
    #: Column of each feature name; None if features have no names.
    numbers: dict[str, int] | None
    #: True if unknown features are left out instead of raising an error.
    ignores_unknown: bool
    #: Category names by column name, or by column number if features have no names.
    categories: dict[str, list[Any]] = field(default_factory=dict)

    @staticmethod
    def of(name: str, estimator: Any, ignores_unknown: bool = False) -> "Model":
        """Return a model whose columns are matched by name here."""
        # A learner with names would make scikit-learn expect data frames.
        learner: Any = learner_of(estimator)
        numbers = None
        if hasattr(learner, "feature_names_in_"):
            numbers = {name: at for at, name in enumerate(learner.feature_names_in_.tolist())}
            del learner.feature_names_in_
        categories = {}
        if getattr(learner, "_category_names", {}):
            # Names become numbers here, as the learner takes them only from data frames.
            columns = list(numbers or map(str, range(learner.n_features_in_)))
            categories = {columns[at]: names for at, names in learner._category_names.items()}
            learner._category_names = {}
        width = None if learner._takes_any_width() else learner.n_features_in_
        return Model(name, estimator, width, numbers, ignores_unknown, categories)

    @staticmethod
    def load(path: str, ignores_unknown: bool = False) -> "Model":
        """Load the model in a file."""
        estimator = xmtree.load(path)
        if not isinstance(estimator, Learner | TextClassifier):
            raise WrongUsage(
                f"the {type(estimator).__name__} in {path} is not a classifier of xmtree, which "
                "commands need; use it from Python by xmtree.load"
            )
        return Model.of(path, estimator, ignores_unknown)

    @property
    def learner(self) -> Any:
        """Return the learner itself, which takes numbers."""
        return learner_of(self.estimator)

    @property
    def takes(self) -> str:
        """Return the kind of rows that the model takes, texts or numbers."""
        return "texts" if isinstance(self.estimator, TextClassifier) else "numbers"

    def open(self, path: str, options: argparse.Namespace) -> Reader:
        """Open a file that the model is applied to."""
        on_stdin = "text" if self.takes == "texts" else "xmc"
        remembered = self.learner._table_options
        return open_reader(path, options, on_stdin=on_stdin, remembered=remembered)

    def prepare(self, reader: Reader, ignores_unknown: bool | None = None) -> None:
        """Prepare ``reader`` for this model and check that it holds rows of its kind."""
        if reader.kind != self.takes:
            raise WrongUsage(
                f"the {type(self.estimator).__name__} in {self.name} was trained on {self.takes}, "
                f"but {reader.shown_name} holds {reader.kind}{reader.kind_hint()}"
            )
        if self.categories:
            if reader.features is None:
                raise WrongUsage(
                    f"{self.name} was trained on categories, which {reader.shown_name}, read as "
                    f"{reader.name}, cannot hold; use csv, tsv, jsonl or parquet"
                )
            names = self.categories
            if reader.untyped_labels:  # all values are text
                names = {column: [*map(str, known)] for column, known in names.items()}
            reader.categories = Categories(names)
        ignores = self.ignores_unknown if ignores_unknown is None else ignores_unknown
        reader.prepare_for(self.learner._index_base, self.numbers if ignores else None)

    def rows(self, batch: Batch, reader: Reader, first_row: int) -> Any:
        """Return the rows of a batch as a matrix for the learner."""
        if self.takes == "texts":
            return self.estimator._rows(batch.rows)
        learner = self.learner
        X: Any = batch.rows
        if isinstance(X, list):
            return self._named(batch, reader, first_row)
        if learner._hashes_names:
            raise WrongUsage(
                f"{self.name} was trained on hashed names of features (VW text), but "
                f"{reader.shown_name} has columns"
            )
        if batch.columns is not None and self.numbers is not None:
            return X[:, self._places(batch.columns, reader)]
        if self.width is None or X.shape[1] <= self.width:
            return X
        if not self.ignores_unknown:
            message = reader.beyond(X, self.width, first_row)
            if message is not None:
                raise ValueError(message)
        if isinstance(X, np.ndarray):
            return np.ascontiguousarray(X[:, : self.width])
        X.resize(X.shape[0], self.width)
        return X

    def _named(self, batch: Batch, reader: Reader, first_row: int) -> Any:
        if self.learner._hashes_names:
            return hashed_columns(batch)
        if self.numbers is None:
            raise WrongUsage(
                f"{self.name} was trained on columns without names, but the features of "
                f"{reader.shown_name} have names"
            )
        for at, row in enumerate(batch.rows if not self.ignores_unknown else ()):
            unknown = next((name for name in row if name not in self.numbers), None)
            if unknown is not None:
                raise ValueError(
                    f"{reader.place(batch, at, first_row)}: the model has no feature "
                    f"{unknown!r}; --unknown-features ignore leaves out such features"
                )
        return numbered_columns(batch, self.numbers, grow=False)

    def _places(self, names: list[str], reader: Reader) -> list[int]:
        """Return the index of each of the model's columns in a table, which has no others."""
        numbers = self.numbers or {}
        places = {name: at for at, name in enumerate(names)}
        lacking = next((name for name in numbers if name not in places), None)
        if lacking is not None:
            raise ValueError(f"{reader.shown_name} lacks the model's column {lacking!r}")
        unknown = next((name for name in names if name not in numbers), None)
        if unknown is not None:
            raise ValueError(
                f"{reader.shown_name}: the model has no feature {unknown!r}; --unknown-features "
                "ignore leaves out such columns"
            )
        return [places[name] for name in numbers]


def learner_of(estimator: Any) -> Any:
    """Return the learner that takes numbers, for a text classifier the one inside."""
    return estimator.learner_ if isinstance(estimator, TextClassifier) else estimator


def open_model(options: argparse.Namespace) -> tuple[Model, Reader]:
    """Load the model of the options and open the file that it is applied to."""
    model = Model.load(options.model, options.unknown_features == "ignore")
    model.learner.set_params(n_jobs=options.jobs)
    reader = model.open(options.data, options)
    model.prepare(reader)
    return model, reader


def hashed_columns(batch: Batch) -> Any:
    """Return named features as a matrix with hashed columns, wide enough for ``n_bits``."""
    hasher = FeatureHasher(MAX_FEATURES, dtype=np.float32, alternate_sign=False)
    return hasher.transform(batch.rows)


def numbered_columns(batch: Batch, numbers: dict[str, int], *, grow: bool) -> Any:
    """Return named features as a matrix, with the column of each name in ``numbers``.

    With ``grow`` a new name gets the next column; otherwise it is left out.
    """
    names = chain.from_iterable(batch.rows)
    if grow:
        columns = [numbers.setdefault(name, len(numbers)) for name in names]
    else:
        columns = [numbers.get(name, -1) for name in names]
    indices = np.array(columns, np.int32)
    known = indices >= 0
    ends = np.cumsum([0, *map(len, batch.rows)])
    starts = np.concatenate([[0], np.cumsum(known)])[ends]
    values = [value for row in batch.rows for value in row.values()]
    arrays = np.array(values, np.float32)[known], indices[known], starts
    matrix = sp.csr_matrix(arrays, (len(batch), len(numbers)))
    matrix.sort_indices()
    return matrix
