"""A labelling session: rounds of choosing rows, collecting their labels and training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch

from xmtree import _categories, _validation
from xmtree._active import curve
from xmtree._active.labels import labels_of
from xmtree._active.pool import checked, find_rows, free_numbers
from xmtree._active.predictor import SessionPredictor
from xmtree._active.selection import Rows
from xmtree._active.uncertainty import best_labels, margins
from xmtree._labels.forms import common_type
from xmtree._sharing import Change
from xmtree._sklearn import validate_params
from xmtree._typing import LabelsLike, MatrixLike

_NOT_STARTED = "there is no session; call start(X) first (fit keeps no rows)"


class LabellingSession(SessionPredictor):
    """Keeps the working set and trains a classifier whenever all queried rows have labels.

    Attributes are replaced, never changed in place, so that a failed call can be undone.
    """

    n_initial: int
    n_per_round: int
    n_rounds: int
    selection: str
    pool_share: float
    early_stopping: bool
    patience: int
    random_state: Any

    #: What the learning curve has beside the counts.
    _measures: ClassVar[tuple[str, ...]] = ("validation_error", "utility")

    learning_curve_: Bunch
    best_round_: int
    selected_: Rows
    utilities_: NDArray[np.float64]

    #: All rows, and the labels of ``selected_``.
    _pool: Any
    _labels: NDArray[Any]
    _weights: NDArray[np.float64] | None
    #: Validation rows, their labels and importances.
    _held: tuple[Any, NDArray[Any], NDArray[np.float64] | None] | None
    #: Rows never to be labelled, and how many are neither these nor labelled.
    _left_out: Rows
    _n_left: int
    #: Rows that wait for their labels, and what was their utility.
    _queried: Rows
    _queried_utilities: dict[int, float]
    #: The classifier of the last round, and why ``fit`` ended.
    _latest: Any
    _ended: str | None

    def start(
        self,
        X: MatrixLike,
        *,
        X_val: MatrixLike | None = None,
        y_val: LabelsLike | None = None,
    ) -> Self:
        """Begin a session: rows of which ``query`` chooses those to label.

        Anything learned before is discarded.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            The pool: all rows that may be labelled. It is copied only if it must be
            converted, so do not change it. Rows that have a label already belong here
            too; ``teach`` them first.
        X_val, y_val : rows and labels, optional
            On which to measure the error after each round; needed for ``early_stopping``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data cannot be used. The estimator is then as it was.
        """
        validate_params(self)
        change = Change(self)
        draft = change.draft
        draft._clear()
        draft._start_session(
            checked(draft._validated(X, reset=True), draft._takes_nan()),
            draft._checked_validation(X_val, y_val),
        )
        draft._check_session()
        change.keep()
        return self

    def query(self) -> Rows:
        """The rows to label next.

        Called again before all of them have a label, it returns the remaining ones: rows are
        chosen once a round.

        Returns
        -------
        int64 array
            Row numbers of the pool, the most useful first; at first ``n_initial`` at random,
            unless labels were taught before. Empty at the end; ``stop_reason_`` says why.
        """
        self._check_session()
        if len(self._queried) == 0 and self.stop_reason_ is None:
            self._choose()
        return self._queried.copy()

    def teach(self, rows: MatrixLike | Sequence[int], y: LabelsLike) -> Self:
        """Give labels, and train when all queried rows have one.

        Parameters
        ----------
        rows : int array of shape (n,), or rows of X of shape (n, n_features)
            Row numbers of the pool, or the rows themselves, which are looked up there. They
            may include rows that were not queried, and only some of those that were. While
            no query is open every call is a round, so teach labels known beforehand in one.
        y : array of shape (n,)
            Their labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a row is not of the pool or has a label already, or ``y`` does not fit. Nothing
            has been learned then.
        """
        self._check_session()
        change = Change(self)
        draft = change.draft
        numbers = draft._row_numbers(rows)
        labels = labels_of(y, len(numbers), "y")
        if len(draft._labels):
            dtype = common_type(labels, draft._labels, "before")
            draft._labels, labels = draft._labels.astype(dtype), labels.astype(dtype)
        if draft._held is not None:
            common_type(labels, draft._held[1], "in y_val")
        draft._add(numbers, labels)
        change.keep()
        return self

    def skip(self, rows: MatrixLike | Sequence[int]) -> Self:
        """Exclude rows, for instance because nobody can label them.

        Parameters
        ----------
        rows : int array of shape (n,), or rows of X of shape (n, n_features)

        Returns
        -------
        self
            If all queried rows have a label now, the classifier was trained.
        """
        self._check_session()
        change = Change(self)
        draft = change.draft
        numbers = draft._row_numbers(rows)
        draft._left_out = np.concatenate([draft._left_out, numbers])
        draft._finish_round(numbers)
        change.keep()
        return self

    @property
    def stop_reason_(self) -> str | None:
        """Why there are no more queries; None while there are more."""
        if hasattr(self, "_ended"):
            return self._ended
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        errors = self.learning_curve_.validation_error
        if len(self._queried):
            return None
        if self._n_left == 0:
            return "pool"
        if len(errors) >= self.n_rounds:
            return "rounds"
        if (
            self.early_stopping
            and len(errors)
            and len(errors) - 1 - self.best_round_ >= self.patience
        ):
            return "validation"
        return self._query_stop()

    def _clear(self) -> None:
        """Drops the results of an earlier fit or session."""
        for name in ("estimator_", "best_round_", "_latest", "_ended"):
            if name in vars(self):
                delattr(self, name)

    def _checked_validation(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]] | None:
        if (X is None) != (y is None):
            raise ValueError("X_val and y_val go together: pass both or neither")
        if X is None:
            return None
        X = checked(self._validated(X, reset=False), self._takes_nan())
        return X, labels_of(y, X.shape[0], "y_val")

    def _start_session(self, X: Any, validation: tuple[Any, NDArray[Any]] | None) -> None:
        """An empty working set."""
        self._pool = X
        self._held = None if validation is None else (*validation, None)
        self._seed = _validation.seed(self.random_state)
        columns = getattr(self._new_classifier(), "categorical_features", None)
        _categories.check(X, columns or [])
        self._left_out = np.empty(0, np.int64)
        self._queried = np.empty(0, np.int64)
        self._queried_utilities = {}
        self._weights = None
        self._n_left = X.shape[0]
        self._labels = np.empty(0, np.int64)
        self.selected_ = np.empty(0, np.int64)
        self.utilities_ = np.empty(0)
        self.learning_curve_ = curve.empty(self._measures)

    def _draw(self) -> np.random.Generator:
        """Random numbers of the round: they depend on the seed and its number alone."""
        return np.random.default_rng([self._seed, len(self.learning_curve_.n_samples)])

    def _check_session(self) -> None:
        """Refuses to go on without a session, or with parameters, perhaps set since, that do not
        suit it."""
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        validate_params(self)
        if self.early_stopping and self._held is None:
            raise ValueError(
                "early_stopping needs labelled rows that are not learned from: "
                "pass X_val and y_val to start"
            )
        # Checks its parameters now, before anybody has labelled rows for it.
        self._new_classifier()

    def _unlabelled(self) -> NDArray[np.bool_]:
        """Which rows of the pool may still be chosen or taught."""
        left = np.ones(self._pool.shape[0], bool)
        left[self.selected_] = False
        left[self._left_out] = False
        return left

    def _row_numbers(self, rows: Any) -> Rows:
        """Row numbers of the pool, each free to be taught; of equal rows a queried one first."""
        free = self._unlabelled()
        if getattr(rows, "ndim", None) != 2 and not sp.issparse(rows) and np.ndim(rows) != 2:
            return free_numbers(rows, free, self._left_out, self.n_features_in_)
        queried = self._queried[free[self._queried]]
        order = np.concatenate([queried, np.setdiff1d(np.flatnonzero(free), queried)])
        return find_rows(self._validated(rows, reset=False), self._pool, order)

    def _choose(self) -> None:
        """Chooses the next rows to query."""
        rest = np.flatnonzero(self._unlabelled())
        draw = self._draw()
        first = not hasattr(self, "_latest")
        n = min(self.n_initial if first else self.n_per_round, len(rest))
        if first or self.selection == "random":
            self._queried = draw.choice(rest, n, replace=False)
            return
        # In random order, for ties to be broken so.
        considered = draw.permutation(rest)[: max(n, math.ceil(self.pool_share * len(rest)))]
        utilities = self._utilities(considered, draw)
        order = np.argsort(-utilities, kind="stable")
        chosen = order[self._batch(considered[order], n)]
        self._queried = considered[chosen]
        of_rows = zip(self._queried.tolist(), utilities[chosen].tolist(), strict=True)
        self._queried_utilities = dict(of_rows)
        median = float(np.median(utilities))
        self.learning_curve_ = curve.with_last(self.learning_curve_, utility=median)

    def _utilities(self, rows: Rows, draw: np.random.Generator) -> NDArray[np.float64]:
        """How useful the labels of these rows of the pool are."""
        return margins(self._latest, self._pool[rows])

    def _batch(self, rows: Rows, n: int) -> Any:
        """Positions of the ``n`` to query of ``rows``, which come the most useful first."""
        return slice(n)

    def _compare(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Is told the labels of rows before they are learned."""

    def _query_stop(self) -> str | None:
        """A reason to stop that the answers to queries give."""
        return None

    def _add(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Moves rows into the working set."""
        self._compare(rows, labels)
        known = self._queried_utilities
        utilities = [known.get(row, math.nan) for row in rows.tolist()]
        self._labels = np.concatenate([self._labels, labels]) if len(self._labels) else labels
        self.selected_ = np.concatenate([self.selected_, rows])
        self.utilities_ = np.concatenate([self.utilities_, utilities])
        self._finish_round(rows)

    def _finish_round(self, rows: Rows) -> None:
        """Ends the round if no other queried row is without a label."""
        self._queried = self._queried[~np.isin(self._queried, rows)]
        self._n_left -= len(rows)
        learned = self.learning_curve_.n_samples
        if not len(self._queried) and len(self.selected_) > (learned[-1] if len(learned) else 0):
            self._queried_utilities = {}
            self._train()

    def _train(self) -> None:
        """Trains a classifier on the working set and adds it to the learning curve."""
        working = self.selected_
        weights = None if self._weights is None else self._weights[working]
        classifier = self._new_classifier().fit(self._pool[working], self._labels, weights)
        error = math.nan
        if self._held is not None:
            X, y, importance = self._held
            wrong = best_labels(classifier, X) != y
            error = float(np.average(wrong, weights=importance))
        if hasattr(self, "feature_names_in_"):
            classifier.feature_names_in_ = self.feature_names_in_
        so_far = self.learning_curve_
        if not self.early_stopping or not np.any(so_far.validation_error <= error):
            self.estimator_ = classifier
            self.best_round_ = len(so_far.n_samples)
        self._latest = classifier
        n_classes = len(classifier.classes_)
        self.learning_curve_ = curve.with_round(
            so_far, n_samples=len(working), n_classes=n_classes, validation_error=error
        )
