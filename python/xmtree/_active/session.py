"""A labeling session: rounds of choosing rows, collecting their labels and training."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch

from xmtree import _categories, _validation
from xmtree._active import selection
from xmtree._active.predictor import SessionPredictor
from xmtree._active.selection import Rows
from xmtree._labels.forms import common_type
from xmtree._progress import progress
from xmtree._sharing import Change
from xmtree._sklearn import validate_params
from xmtree._typing import LabelsLike, MatrixLike, Weights

#: Entries of the learning curve beside the counts.
_MEASURES = ("validation_error", "utility", "query_error")
#: Window of the error of queries: this many rows, or rounds if those have more rows.
_N_RECENT, _RECENT_ROUNDS = 50, 3

_NOT_STARTED = "no session has been started; call start(X) first (fit keeps no rows)"


class ActiveSession(SessionPredictor):
    """Working set, and training of a classifier once all queried rows have labels.

    Attributes are replaced, never changed in place, so that a failed call can be undone.
    """

    # Only ActiveLearner has these parameters.
    diversity: int = 1
    stopping_ratio: float | None = None

    #: All rows, and the labels of ``selected_``.
    _pool: Any
    _labels: NDArray[Any]
    _weights: NDArray[np.float64] | None
    #: Validation rows, their labels and importance weights.
    _held: tuple[Any, NDArray[Any], NDArray[np.float64] | None] | None
    #: Rows that are never labeled.
    _left_out: Rows
    #: Rows that wait for labels, and their utilities.
    _queried: Rows
    _queried_utilities: dict[int, float]
    #: True for each queried row that was predicted wrong, in the order of labeling, and the number
    #: of these rows at the last training.
    _missed: NDArray[np.bool_]
    _missed_before: int
    #: Entries of the learning curve, without measures that are not known yet.
    _rounds: list[dict[str, float]]
    #: The classifier of the last round, and why ``fit`` ended.
    _latest: Any
    _ended: str | None

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike,
        sample_weight: Weights = None,
        *,
        X_val: MatrixLike | None = None,
        y_val: LabelsLike | None = None,
    ) -> Self:
        """Run all rounds on rows whose labels are known.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Values may be missing (NaN) if ``estimator`` supports it.
        y : array of shape (n,)
            Labels of any sortable type. Apart from the selected rows, they are used to choose
            the first working set and to measure the error on held-out rows.
        sample_weight : array of shape (n,), optional
            Importance weights, not negative. Rows of weight 0 are never chosen. The error is
            weighted on rows held out of X, and unweighted on ``X_val``.
        X_val, y_val : rows and labels, optional
            Validation set, on which the error is measured after each round.

        Returns
        -------
        self
            The rows are not kept.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is invalid. After an error in this or any other method the
            estimator is unchanged.
        """
        validate_params(self)
        change = Change(self)
        draft = change.draft
        draft._begin(X, X_val, y_val)
        n = draft._pool.shape[0]
        labels = selection.labels_of(y, n, "y")
        draft._check_like_validation(labels)
        draft._weights = weights = _validation.weights(sample_weight, draft._pool)
        usable = np.arange(n) if weights is None else np.flatnonzero(weights)
        if draft.early_stopping and draft._held is None:
            draw = np.random.default_rng(draft._seed)
            held = selection.held_out(usable, labels, draft.validation_fraction, draw)
            importance = None if weights is None else weights[held]
            draft._held = draft._pool[held], labels[held], importance
            usable = np.setdiff1d(usable, held)
        draft._left_out = np.setdiff1d(np.arange(n), usable)
        draft._queried = selection.first_set(usable, labels, draft.n_initial, draft._draw())
        with progress(draft.verbose, type(self).__name__) as report:
            total = min(len(usable), len(draft._queried) + (draft.n_rounds - 1) * draft.n_per_round)
            while draft.stop_reason_ is None:
                queried = draft.query()
                draft._add(queried, labels[queried])
                if report is not None:
                    error = draft._rounds[-1].get("validation_error")
                    report(len(draft.selected_), total, error, None)
        draft._ended = draft.stop_reason_
        # Only a session needs these; a model of a large set should be small.
        del draft._pool, draft._held, draft._weights, draft._labels, draft._left_out
        del draft._latest
        change.keep()
        return self

    def start(
        self, X: MatrixLike, *, X_val: MatrixLike | None = None, y_val: LabelsLike | None = None
    ) -> Self:
        """Begin a session with a pool of rows from which ``query`` chooses.

        Earlier training is discarded.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            The pool: all rows that may be labeled. It is copied only if it must be
            converted, so do not change it. Include rows that already have a label, and
            ``teach`` them first.
        X_val, y_val : as for :meth:`fit`; required for ``early_stopping``

        Returns
        -------
        self
        """
        validate_params(self)
        change = Change(self)
        change.draft._begin(X, X_val, y_val)
        change.draft._check_session()
        change.keep()
        return self

    def query(self) -> Rows:
        """Return the rows to label next.

        Rows are chosen once a round: another call before all of them have labels returns the
        remaining ones.

        Returns
        -------
        int64 array
            Row numbers of the pool, most useful first. The first query is ``n_initial`` random
            rows unless labels were taught before. Empty at the end, see ``stop_reason_``.
        """
        self._check_session()
        if len(self._queried) == 0 and self.stop_reason_ is None:
            self._choose()
        return self._queried.copy()

    def teach(self, rows: ArrayLike, y: LabelsLike) -> Self:
        """Add labels, and train once all queried rows have one.

        Parameters
        ----------
        rows : int array of shape (n,)
            Row numbers of the pool, of some or all queried rows and of any others. Without an
            open query every call is a round, so teach all labels known beforehand in one call.
        y : array of shape (n,)
            Their labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a row is not in the pool or already has a label, or ``y`` is invalid.
        """
        self._check_session()
        change = Change(self)
        draft = change.draft
        numbers = draft._row_numbers(rows)
        labels = selection.labels_of(y, len(numbers), "y")
        if len(draft._labels):
            dtype = common_type(labels, draft._labels, "before")
            draft._labels, labels = draft._labels.astype(dtype), labels.astype(dtype)
        draft._check_like_validation(labels)
        draft._add(numbers, labels)
        change.keep()
        return self

    def skip(self, rows: ArrayLike) -> Self:
        """Exclude rows, for instance because they cannot be labeled.

        Parameters
        ----------
        rows : int array of shape (n,)
            Row numbers of the pool.

        Returns
        -------
        self
            The classifier was trained if all remaining queried rows have a label.
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
    def learning_curve_(self) -> Bunch:
        """Return counts and measures, one entry per round; NaN if a measure is not known."""
        if not hasattr(self, "_rounds"):
            raise AttributeError(f"{type(self).__name__} has no learning_curve_ before a session")
        curve = Bunch()
        for name in ("n_samples", "n_classes", *_MEASURES):
            dtype = np.float64 if name in _MEASURES else np.int64
            curve[name] = np.array([known.get(name, math.nan) for known in self._rounds], dtype)
        return curve

    @property
    def stop_reason_(self) -> str | None:
        """Return the reason for ending the session, or None while it continues."""
        if hasattr(self, "_ended"):
            return self._ended
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        if len(self._queried):
            return None
        n_rounds = len(self._rounds)
        if len(self.selected_) + len(self._left_out) == self._pool.shape[0]:
            return "pool"
        if n_rounds >= self.n_rounds:
            return "rounds"
        if self.early_stopping and n_rounds and n_rounds - 1 - self.best_round_ >= self.patience:
            return "validation"
        if self.stopping_ratio is not None:
            n = max(_N_RECENT, _RECENT_ROUNDS * self.n_per_round)
            if selection.has_fallen(self._missed, n, self.stopping_ratio):
                return "query_error"
        return None

    def _begin(self, X: Any, X_val: Any, y_val: Any) -> None:
        """Start with an empty working set of a new pool."""
        for name in ("estimator_", "best_round_", "_latest", "_ended"):
            self.__dict__.pop(name, None)
        self._pool = selection.checked(self._validated(X, reset=True), self._takes_nan())
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        self._held = None
        if X_val is not None:
            rows = selection.checked(self._validated(X_val, reset=False), self._takes_nan())
            self._held = rows, selection.labels_of(y_val, rows.shape[0], "y_val"), None
        self._seed = _validation.seed(self.random_state)
        columns = getattr(self._new_classifier(), "categorical_features", None)
        _categories.check(self._pool, columns or [])
        self._left_out = self._queried = self.selected_ = np.empty(0, np.int64)
        self._labels = np.empty(0, np.int64)
        self._queried_utilities = {}
        self._weights = None
        self._rounds = []
        self.utilities_ = np.empty(0)
        self._missed, self._missed_before = np.empty(0, bool), 0

    def _check_like_validation(self, labels: NDArray[Any]) -> None:
        """Raise an error if labels and validation labels cannot be compared."""
        if self._held is not None:
            common_type(labels, self._held[1], "in y_val")

    def _check_session(self) -> None:
        """Raise an error without a session or with invalid parameters.

        Parameters may have been set since the session started.
        """
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        validate_params(self)
        if self.early_stopping and self._held is None:
            raise ValueError(
                "early_stopping needs labeled rows outside the pool; pass X_val and y_val to start"
            )
        # Invalid parameters must raise before rows are labeled.
        self._new_classifier()

    def _draw(self) -> np.random.Generator:
        """Return the round's generator, which depends only on seed and round."""
        return np.random.default_rng([self._seed, len(self._rounds)])

    def _unlabeled(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that may still be chosen or taught."""
        left = np.ones(self._pool.shape[0], bool)
        left[self.selected_] = False
        left[self._left_out] = False
        return left

    def _row_numbers(self, rows: Any) -> Rows:
        """Return ``rows`` as row numbers of the pool that can still be taught."""
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
            raise TypeError(
                "rows must be row numbers of the pool, a 1-D array of at least one integer, got "
                f"{numbers.dtype} {numbers.shape}"
            )
        free = self._unlabeled()
        outside = numbers[(numbers < 0) | (numbers >= len(free))]
        if len(outside):
            raise ValueError(
                f"rows must be from 0 to {len(free) - 1}, the rows of the pool, got {outside[0]}"
            )
        values, counts = np.unique(numbers, return_counts=True)
        if counts.max() > 1:
            raise ValueError(f"rows contains row {values[counts.argmax()]} twice")
        taken = numbers[~free[numbers]]
        if len(taken):
            how = "was skipped" if taken[0] in self._left_out else "already has a label"
            raise ValueError(f"row {taken[0]} of the pool {how}")
        return numbers.astype(np.int64)

    def _choose(self) -> None:
        """Choose the next rows to query."""
        rest = np.flatnonzero(self._unlabeled())
        draw = self._draw()
        first = not hasattr(self, "_latest")
        n = min(self.n_initial if first else self.n_per_round, len(rest))
        if first or self.selection == "random":
            self._queried = draw.choice(rest, n, replace=False)
            return
        # A random order breaks ties at random.
        considered = draw.permutation(rest)[: max(n, math.ceil(self.pool_share * len(rest)))]
        utilities = selection.margins(self._latest, self._pool[considered])
        order = np.argsort(-utilities, kind="stable")
        chosen, candidates = order[:n], order[: self.diversity * n]
        if len(candidates) > n:
            pairs, _ = self._latest._topk(self._pool[considered[candidates]], 2)
            chosen = candidates[selection.spread(pairs, n)]
        self._queried = considered[chosen]
        known = zip(self._queried.tolist(), utilities[chosen].tolist(), strict=True)
        self._queried_utilities = dict(known)
        self._measure(utility=float(np.median(utilities)))

    def _compare(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Compare new labels with predictions before training on them."""
        queried = np.isin(rows, self._queried)
        if not queried.any() or not hasattr(self, "_latest") or len(self._latest.classes_) == 1:
            return
        missed = selection.best_labels(self._latest, self._pool[rows[queried]]) != labels[queried]
        self._missed = np.concatenate([self._missed, missed])
        self._measure(query_error=float(self._missed[self._missed_before :].mean()))

    def _measure(self, **known: float) -> None:
        """Add measures to the last round of the learning curve."""
        self._rounds = [*self._rounds[:-1], self._rounds[-1] | known]

    def _add(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Move rows into the working set."""
        self._compare(rows, labels)
        utilities = [self._queried_utilities.get(row, math.nan) for row in rows.tolist()]
        self._labels = np.concatenate([self._labels, labels]) if len(self._labels) else labels
        self.selected_ = np.concatenate([self.selected_, rows])
        self.utilities_ = np.concatenate([self.utilities_, utilities])
        self._finish_round(rows)

    def _finish_round(self, rows: Rows) -> None:
        """End the round if all other queried rows have labels."""
        self._queried = self._queried[~np.isin(self._queried, rows)]
        n_learned = self._rounds[-1]["n_samples"] if self._rounds else 0
        if not len(self._queried) and len(self.selected_) > n_learned:
            self._queried_utilities = {}
            self._train()

    def _train(self) -> None:
        """Train a classifier on the working set and extend the learning curve."""
        working = self.selected_
        weights = None if self._weights is None else self._weights[working]
        classifier = self._new_classifier().fit(self._pool[working], self._labels, weights)
        if hasattr(self, "feature_names_in_"):
            classifier.feature_names_in_ = self.feature_names_in_
        entry: dict[str, float] = {"n_samples": len(working), "n_classes": len(classifier.classes_)}
        if self._held is not None:
            X, y, importance = self._held
            wrong = selection.best_labels(classifier, X) != y
            entry["validation_error"] = float(np.average(wrong, weights=importance))
        error = entry.get("validation_error", math.nan)
        so_far = self.learning_curve_.validation_error
        if not self.early_stopping or not np.any(so_far <= error):
            self.estimator_ = classifier
            self.best_round_ = len(so_far)
        self._latest = classifier
        self._missed_before = len(self._missed)
        self._rounds = [*self._rounds, entry]
