"""What active learners share beside their sessions: learning from rows whose labels are known."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

from xmtree import _validation
from xmtree._active.labels import labels_of
from xmtree._active.pool import checked
from xmtree._active.selection import first_set, held_out
from xmtree._active.session import LabellingSession
from xmtree._base import without_own_name
from xmtree._labels.forms import common_type
from xmtree._progress import progress
from xmtree._sharing import Change
from xmtree._sklearn import Interval, validate_params
from xmtree._typing import LabelsLike, MatrixLike, Weights

#: A count of at least 1.
COUNT = Interval(Integral, 1, _validation.MAX_COUNT, closed="both")


@without_own_name
class ActiveEstimator(LabellingSession):
    """A session that can answer its own queries."""

    #: Of the parameters that all active learners have.
    _shared_constraints: ClassVar[dict[str, Any]] = {
        "n_initial": [COUNT],
        "n_per_round": [COUNT],
        "n_rounds": [COUNT],
        "pool_share": [Interval(Real, 0, 1, closed="right")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [COUNT],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    validation_fraction: float
    verbose: int

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
            Values may be missing (NaN) where ``estimator`` takes that.
        y : array of shape (n,)
            Labels of any sortable type. Those of rows that are not chosen are used to choose
            the first working set, and those of rows held out to measure the error.
        sample_weight : array of shape (n,), optional
            Importances, not negative. Rows of weight 0 are never chosen. The error on rows
            held out of X is weighted, that on ``X_val`` is not.
        X_val, y_val : rows and labels, optional
            On which to measure the error after each round.

        Returns
        -------
        self
            The rows are not kept.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data cannot be used. The estimator is then as it was.
        """
        validate_params(self)
        change = Change(self)
        draft = change.draft
        draft._clear()
        pool = checked(draft._validated(X, reset=True), draft._takes_nan())
        n = pool.shape[0]
        labels = labels_of(y, n, "y")
        weights = _validation.weights(sample_weight, pool)
        usable = np.arange(n)
        if weights is not None:
            usable = np.flatnonzero(weights)
        draft._start_session(pool, draft._checked_validation(X_val, y_val))
        if draft._held is not None:
            common_type(labels, draft._held[1], "in y_val")
        if draft.early_stopping and draft._held is None:
            draw = np.random.default_rng(draft._seed)
            held = held_out(usable, labels, draft.validation_fraction, draw)
            importance = None if weights is None else weights[held]
            draft._held = draft._pool[held], labels[held], importance
            usable = np.setdiff1d(usable, held)
        draft._left_out = np.setdiff1d(np.arange(n), usable)
        draft._weights = weights
        draft._n_left = len(usable)
        draft._queried = first_set(usable, labels, draft.n_initial, draft._draw())
        with progress(draft.verbose, type(self).__name__) as report:
            total = min(len(usable), len(draft._queried) + (draft.n_rounds - 1) * draft.n_per_round)
            while draft.stop_reason_ is None:
                queried = draft.query()
                draft._add(queried, labels[queried])
                if report is not None:
                    error = draft.learning_curve_.validation_error[-1]
                    known = None if math.isnan(error) else float(error)
                    report(len(draft.selected_), total, known, None)
        draft._ended = draft.stop_reason_
        # Only a session needs them; a model of a large set should be small.
        del draft._pool, draft._held, draft._weights, draft._labels, draft._left_out
        del draft._latest
        change.keep()
        return self
