"""Active GAMBLE: boosting that chooses the rows it learns from."""

from __future__ import annotations

import math
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from xmtree import _categories, _curve, _validation
from xmtree._base import transaction
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._pool import (
    Rows,
    check_kind,
    first_set,
    free_numbers,
    held_out,
    labels_of,
    like,
    looked_at,
    places_of,
)
from xmtree._progress import progress

_NOT_STARTED = "there is no session; call start(X) first (fit keeps no rows)"


class ActiveGamble(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Active GAMBLE: learn from few rows, chosen by how unsure the committee is of them.

    A committee is trained on a small working set. Of the rows outside it, those move in
    whose two best classes score most nearly alike, and the next committee is trained. Few
    labels are needed that way.

    There are two ways to use it. ``fit(X, y)`` knows all labels and looks at those of
    chosen rows only: for comparisons, and to train on the part of a large set that matters.
    ``start(X)``, ``query()`` and ``teach(rows, y)`` are for labels that somebody has yet to
    give: nothing has a label that was not taught.

    Parameters
    ----------
    estimator : GambleClassifier or SAMMEClassifier, optional
        What is trained in every round; ``GambleClassifier()`` by default. It is copied and
        itself stays as it is.
    n_initial : int, default=20
        Rows of the first working set, drawn at random. ``fit`` draws one of every class
        first, and as many as there are classes if these are more.
    n_per_round : int, default=10
        Rows that move into the working set after each round, R in the paper.
    n_rounds : int, default=50
        Committees to train at most, L in the paper. A session of ``query`` and ``teach`` goes
        on after ``set_params`` with a larger one.
    selection : {"margin", "random"}, default="margin"
        Which rows move. "margin": those of highest utility 1 / (F_k - F_j), k and j the two
        best classes and F the committee's scores; ties are broken at random. "random": any,
        the baseline.
    pool_share : float, default=1.0
        Share of the rows outside the working set whose utility is computed in a round, drawn
        anew for each; never fewer than ``n_per_round``. Less saves time where the rows are
        very many.
    early_stopping : bool, default=False
        Stop when the error on validation rows no longer falls, and go back to the best
        round.
    validation_fraction : float, default=0.1
        Share of the rows that ``fit`` holds out for that, where it is given no others.
    patience : int, default=10
        Rounds without a new lowest validation error after which to stop.
    random_state : int, RandomState or None, default=None
        Fixes what is drawn, and the committees unless ``estimator`` has a ``random_state``
        of its own.
    n_jobs : int, optional
        Threads, unless ``estimator`` has an ``n_jobs`` of its own; None is 1, -1 all cores.
        The result does not depend on it.
    verbose : int, default=0
        1: ``fit`` shows a progress bar of labelled rows on stderr, if that is a terminal.

    Attributes
    ----------
    estimator_ : GambleClassifier or SAMMEClassifier
        The committee that predicts: the last, or with ``early_stopping`` the best.
    classes_ : array of shape (n_classes,)
        The labels that it knows.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Column names, where X was a data frame.
    selected_ : int64 array
        The working set: row numbers of X, in the order in which they were chosen.
    utilities_ : float64 array, as long as ``selected_``
        Utility of each row when it was chosen; NaN where it was not chosen for that.
    learning_curve_ : Bunch of arrays, one entry per round
        ``n_samples``, the size of the working set; ``n_classes`` in it; ``validation_error``,
        a share, NaN without validation rows; ``utility``, the median over the rows
        considered after the round, NaN where none were.
    best_round_ : int
        The round, from 0, that ``estimator_`` is of.
    stop_reason_ : {"pool", "rounds", "validation"} or None
        Why nothing more is asked for: no rows are left, ``n_rounds`` is reached, or the
        validation error stopped falling. None while there is more to do.

    Notes
    -----
    In Algorithm 3 of [1]_ the last rows chosen are never learned. Here every round ends with a
    committee, and nothing is chosen after the last.

    A whole session, rows and labels included, is kept by pickle or joblib; ``save`` writes
    the committee alone.

    See Also
    --------
    GambleClassifier : Learns from all rows at once.

    References
    ----------
    .. [1] J. Huang, S. Ertekin, Y. Song, H. Zha, C. L. Giles, "Efficient Multiclass Boosting
       Classification with Active Learning", SDM 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import ActiveGamble
    >>> X, y = load_iris(return_X_y=True)
    >>> active = ActiveGamble(n_initial=10, n_per_round=5, n_rounds=6, random_state=0)
    >>> active.fit(X, y).learning_curve_.n_samples
    array([10, 15, 20, 25, 30, 35])

    With somebody who gives the labels:

    >>> active = active.start(X)
    >>> while active.stop_reason_ is None:
    ...     rows = active.query()
    ...     active = active.teach(rows, y[rows])
    >>> len(active.selected_)
    35
    """

    estimator_: GambleClassifier | SAMMEClassifier
    learning_curve_: Bunch
    best_round_: int
    selected_: NDArray[np.int64]
    _weights: NDArray[np.float32] | None
    _labels: NDArray[Any]
    _held: tuple[Any, NDArray[Any], NDArray[np.float64] | None] | None
    _latest: Any
    _ended: str | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [None, GambleClassifier, SAMMEClassifier],
        "n_initial": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "n_per_round": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "n_rounds": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "selection": [StrOptions({"margin", "random"})],
        "pool_share": [Interval(Real, 0, 1, closed="right")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        estimator: GambleClassifier | SAMMEClassifier | None = None,
        n_initial: int = 20,
        n_per_round: int = 10,
        n_rounds: int = 50,
        selection: str = "margin",
        pool_share: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_initial = n_initial
        self.n_per_round = n_per_round
        self.n_rounds = n_rounds
        self.selection = selection
        self.pool_share = pool_share
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Run all rounds on rows whose labels are known.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            Values may be missing (NaN).
        y : array of shape (n,)
            Labels of any sortable type. Those of rows that are not chosen serve to draw the
            first working set, and of rows held out to measure the error.
        sample_weight : array of shape (n,), optional
            Importances, not negative. Rows of weight 0 are never chosen. Rows held out of X
            count by theirs in the error, those of ``X_val`` alike.
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
        self._validate_params()
        with transaction(self) as change:
            self._forget()
            X = looked_at(self._validated(X, reset=True))
            labels = labels_of(y, X.shape[0], "y")
            weights = _validation.weights(sample_weight, X)
            usable = np.arange(X.shape[0])
            if weights is not None:
                usable = np.flatnonzero(weights)
            self._begin(X, self._checked_validation(X_val, y_val))
            if self._held is not None:
                check_kind(labels, self._held[1], "in y_val")
            if self.early_stopping and self._held is None:
                draw = np.random.default_rng(self._seed)
                held = held_out(usable, labels, self.validation_fraction, draw)
                importance = None if weights is None else weights[held].astype(np.float64)
                self._held = self._pool[held], labels[held], importance
                usable = np.setdiff1d(usable, held)
            self._left_out = np.setdiff1d(np.arange(X.shape[0]), usable)
            self._weights = weights
            self._n_left = len(usable)
            self._asked = first_set(usable, labels, self.n_initial, self._draw())
            with progress(self.verbose, type(self).__name__) as report:
                total = min(len(usable), len(self._asked) + (self.n_rounds - 1) * self.n_per_round)
                while self.stop_reason_ is None:
                    asked = self.query()
                    self._add(asked, labels[asked])
                    if report is not None:
                        error = self.learning_curve_.validation_error[-1]
                        known = None if math.isnan(error) else float(error)
                        report(len(self.selected_), total, known, None)
            self._ended = self.stop_reason_
            # Only a session needs them; a model of a large set should be small.
            del self._pool, self._held, self._weights, self._labels, self._left_out
            del self._latest
            change.keep()
        return self

    def start(self, X: Any, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Begin a session: rows of which ``query`` chooses those to label.

        Whatever was learned before is forgotten.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
            The pool: all rows that may be labelled. Not copied where it need not be
            converted, so leave it as it is. Rows that have a label already belong here
            too; ``teach`` them first.
        X_val, y_val : rows and labels, optional
            On which to measure the error after each round; needed for ``early_stopping``,
            as no labels but those taught are known here.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data cannot be used. The estimator is then as it was.
        """
        self._validate_params()
        with transaction(self) as change:
            self._forget()
            self._begin(
                looked_at(self._validated(X, reset=True)),
                self._checked_validation(X_val, y_val),
            )
            self._check_session()
            change.keep()
        return self

    def query(self) -> Rows:
        """The rows to label next.

        Asked again before they all have a label, it answers with those that are left: rows are
        chosen once a round.

        Returns
        -------
        int64 array
            Row numbers of the pool, the most useful first; at first ``n_initial`` at random,
            unless labels were taught before. Empty when there is nothing more to ask for;
            ``stop_reason_`` says why.
        """
        self._check_session()
        if len(self._asked) == 0 and self.stop_reason_ is None:
            self._choose()
        return self._asked.copy()

    def teach(self, rows: Any, y: Any) -> Self:
        """Give labels, and train a committee when all rows asked for have one.

        Parameters
        ----------
        rows : int array of shape (n,), or rows of X of shape (n, n_features)
            Row numbers of the pool, or the rows themselves, which are found there. They may be
            others than those asked for, and some of those asked for. While none are asked for,
            every call is a round of its own, so teach what is known beforehand in one.
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
        with transaction(self) as change:
            numbers = self._numbers(rows)
            labels = labels_of(y, len(numbers), "y")
            check_kind(labels, self._labels if len(self._labels) else labels, "before")
            if self._held is not None:
                check_kind(labels, self._held[1], "in y_val")
            self._add(numbers, labels)
            change.keep()
        return self

    def skip(self, rows: Any) -> Self:
        """Leave rows out for good: those that nobody can label.

        Parameters
        ----------
        rows : int array of shape (n,), or rows of X of shape (n, n_features)

        Returns
        -------
        self
            If no row asked for is left without a label, a committee was trained on those
            taught since the last one.
        """
        self._check_session()
        with transaction(self) as change:
            numbers = self._numbers(rows)
            self._left_out = np.concatenate([self._left_out, numbers])
            self._settle(numbers)
            change.keep()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The best label of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row and their scores; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.predict_topk(X, k)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Probabilities of all classes; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """The committee's scores of all classes; see ``GambleClassifier``."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def save(self, path: str | Path) -> None:
        """Write the committee to a file, from which :func:`xmtree.load` gives it back.

        The session is not in it; pickle keeps that.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self)
        self.estimator_.save(path)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels that the committee knows."""
        check_is_fitted(self)
        return self.estimator_.classes_

    @property
    def stop_reason_(self) -> str | None:
        """Why nothing more is asked for; None while there is more to do."""
        if hasattr(self, "_ended"):
            return self._ended
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        errors = self.learning_curve_.validation_error
        if len(self._asked):
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
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _forget(self) -> None:
        """Drops what was learned, so that nothing of it is taken for new."""
        for name in ("estimator_", "best_round_", "_latest", "_ended"):
            if name in vars(self):
                delattr(self, name)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        wide = getattr(self.estimator, "categorical_features", None) is not None
        return _validation.rows(self, X, reset=reset, wide=wide)

    def _checked_validation(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]] | None:
        if (X is None) != (y is None):
            raise ValueError("X_val and y_val go together: pass both or neither")
        if X is None:
            return None
        X = looked_at(self._validated(X, reset=False))
        return X, labels_of(y, X.shape[0], "y_val")

    def _begin(self, X: Any, validation: tuple[Any, NDArray[Any]] | None) -> None:
        """An empty working set."""
        self._pool = X
        self._held = None if validation is None else (*validation, None)
        self._seed = _validation.seed(self.random_state)
        _categories.check(X, self._committee()._categorical())
        self._left_out = np.empty(0, np.int64)
        self._asked = np.empty(0, np.int64)
        self._asked_utilities: dict[int, float] = {}
        self._weights = None
        self._n_left = X.shape[0]
        self._labels = np.empty(0, np.int64)
        self.selected_ = np.empty(0, np.int64)
        self.utilities_ = np.empty(0)
        self.learning_curve_ = _curve.empty()

    def _draw(self) -> np.random.Generator:
        """What a round draws from: the same however the session came there."""
        return np.random.default_rng([self._seed, len(self.learning_curve_.n_samples)])

    def _check_session(self) -> None:
        """Whether there is one, with parameters, which may have been set since, that it can use."""
        if not hasattr(self, "_pool"):
            raise NotFittedError(_NOT_STARTED)
        self._validate_params()
        if self.early_stopping and self._held is None:
            raise ValueError(
                "early_stopping needs labelled rows that are not learned from: "
                "pass X_val and y_val to start"
            )
        # Not only when labels are there that somebody gave.
        self._committee()

    def _open(self) -> NDArray[np.bool_]:
        """Which rows of the pool may still be chosen or taught."""
        left = np.ones(self._pool.shape[0], bool)
        left[self.selected_] = False
        left[self._left_out] = False
        return left

    def _numbers(self, rows: Any) -> Rows:
        """Row numbers of the pool, each free to be taught."""
        free = self._open()
        if getattr(rows, "ndim", None) == 2 or sp.issparse(rows) or np.ndim(rows) == 2:
            return self._found(rows, free)
        return free_numbers(rows, free, self._left_out, self.n_features_in_)

    def _found(self, rows: Any, free: NDArray[np.bool_]) -> Rows:
        """Where in the pool the ``rows`` are: among those asked for first."""
        given = like(self._pool, self._validated(rows, reset=False))
        asked = self._asked[free[self._asked]]
        order = np.concatenate([asked, np.setdiff1d(np.flatnonzero(free), asked)])
        return places_of(given, self._pool, order)

    def _choose(self) -> None:
        """Asks for the next rows."""
        rest = np.flatnonzero(self._open())
        draw = self._draw()
        first = not hasattr(self, "_latest")
        n = min(self.n_initial if first else self.n_per_round, len(rest))
        if first or self.selection == "random":
            self._asked = draw.choice(rest, n, replace=False)
            return
        # In random order, for ties to be broken so.
        considered = draw.permutation(rest)[: max(n, math.ceil(self.pool_share * len(rest)))]
        _, best = self._latest._topk(self._pool[considered], 2)
        # A committee that knows a single class has no doubt of it: the other scores -inf.
        with np.errstate(divide="ignore"):
            utilities = 1 / (best[:, 0].astype(np.float64) - best[:, 1])
        chosen = np.argsort(-utilities, kind="stable")[:n]
        self._asked = considered[chosen]
        named = zip(self._asked.tolist(), utilities[chosen].tolist(), strict=True)
        self._asked_utilities = dict(named)
        middle = float(np.median(utilities))
        self.learning_curve_ = _curve.considered(self.learning_curve_, middle)

    def _add(self, rows: Rows, labels: NDArray[Any]) -> None:
        """Moves rows into the working set."""
        asked = self._asked_utilities
        utilities = [asked.get(row, math.nan) for row in rows.tolist()]
        self._labels = np.concatenate([self._labels, labels]) if len(self._labels) else labels
        self.selected_ = np.concatenate([self.selected_, rows])
        self.utilities_ = np.concatenate([self.utilities_, utilities])
        self._settle(rows)

    def _settle(self, rows: Rows) -> None:
        """Ends the round if nothing else was asked for."""
        self._asked = self._asked[~np.isin(self._asked, rows)]
        self._n_left -= len(rows)
        learned = self.learning_curve_.n_samples
        if not len(self._asked) and len(self.selected_) > (learned[-1] if len(learned) else 0):
            self._asked_utilities = {}
            self._train()

    def _train(self) -> None:
        """A committee on the working set, and its place on the learning curve."""
        working = self.selected_
        weights = None if self._weights is None else self._weights[working]
        committee = self._committee().fit(self._pool[working], self._labels, weights)
        error = math.nan
        if self._held is not None:
            X, y, importance = self._held
            wrong = committee.classes_[committee._best(X)] != y
            error = float(np.average(wrong, weights=importance))
        if hasattr(self, "feature_names_in_"):
            committee.feature_names_in_ = self.feature_names_in_
        curve = self.learning_curve_
        if not self.early_stopping or not np.any(curve.validation_error <= error):
            self.estimator_ = committee
            self.best_round_ = len(curve.n_samples)
        self._latest = committee
        n_classes = len(committee.classes_)
        self.learning_curve_ = _curve.longer(curve, len(working), n_classes, error)

    def _committee(self) -> Any:
        """A copy of the template, with what it leaves open filled in."""
        committee: Any = GambleClassifier() if self.estimator is None else clone(self.estimator)
        committee._validate_params()
        if committee.random_state is None:
            committee.set_params(random_state=self._seed)
        if committee.n_jobs is None:
            committee.set_params(n_jobs=self.n_jobs)
        # The rows of the pool have lost the names of their columns.
        if hasattr(self, "feature_names_in_"):
            committee.feature_names_in_ = self.feature_names_in_
        committee.n_features_in_ = self.n_features_in_
        if committee.categorical_features is not None:
            committee.set_params(categorical_features=committee._categorical())
        return committee
