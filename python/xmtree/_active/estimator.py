"""The estimator: its parameters, and both ways to use it."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from xmtree import _validation
from xmtree._active.labels import check_kind, labels_of
from xmtree._active.pool import checked
from xmtree._active.selection import first_set, held_out
from xmtree._active.session import LabellingSession
from xmtree._base import transaction
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._progress import progress


class ActiveGamble(LabellingSession):
    """Active GAMBLE: learn from few rows, chosen by how unsure the committee is of them.

    A committee is trained on a small working set. Of the rows outside it, those
    whose two best classes have the most similar scores are added, and the next committee
    is trained. This needs few labels.

    ``fit(X, y)`` has all labels and uses those of the selected rows only: for comparisons,
    and to train on the informative part of a large set. ``start(X)``, ``query()`` and
    ``teach(rows, y)`` are for labels that are not known yet: a row has a label once it is
    taught.

    Parameters
    ----------
    estimator : GambleClassifier or SAMMEClassifier, optional
        What is trained in every round; ``GambleClassifier()`` by default. It is cloned.
    n_initial : int, default=20
        Rows of the first working set, chosen at random. ``fit`` chooses one of every class
        first, and as many as there are classes if these are more.
    n_per_round : int, default=10
        Rows added to the working set after each round, R in the paper.
    n_rounds : int, default=50
        Committees to train at most, L in the paper. A session of ``query`` and ``teach`` goes
        on after ``set_params`` with a larger one.
    selection : {"margin", "random"}, default="margin"
        Which rows are added. "margin": those of highest utility 1 / (F_k - F_j), k and j the
        two best classes and F the committee's scores; ties are broken at random. "random":
        any, the baseline.
    pool_share : float, default=1.0
        Share of the rows outside the working set whose utility is computed in a round,
        sampled for each; never fewer than ``n_per_round``. Smaller values save time on very
        large sets.
    early_stopping : bool, default=False
        Stop when the error on validation rows no longer falls, and restore the best
        round.
    validation_fraction : float, default=0.1
        Share of the rows that ``fit`` holds out for that, where it is given no others.
    patience : int, default=10
        Rounds without a new lowest validation error after which to stop.
    random_state : int, RandomState or None, default=None
        Fixes all random choices, also those of the committees unless ``estimator`` has a
        ``random_state`` of its own.
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
        Its labels, sorted.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Column names, where X was a data frame.
    selected_ : int64 array
        The working set: row numbers of X, in the order in which they were chosen.
    utilities_ : float64 array, as long as ``selected_``
        Utility of each row when it was chosen; NaN where it was not chosen by utility.
    learning_curve_ : Bunch of arrays, one entry per round
        ``n_samples``, the size of the working set; ``n_classes`` in it; ``validation_error``,
        a share, NaN without validation rows; ``utility``, the median over the rows
        considered after the round, NaN where none were.
    best_round_ : int
        The round, from 0, that ``estimator_`` is of.
    stop_reason_ : {"pool", "rounds", "validation"} or None
        Why there are no more queries: no rows are left, ``n_rounds`` is reached, or the
        validation error stopped falling. None while there are more.

    Notes
    -----
    Every call of a session follows the parameters as they are then; nothing that was computed
    before, and nothing after ``fit``, depends on a change of them.

    In Algorithm 3 of [1]_ the rows chosen last are not learned. Here every round ends with
    training a committee, and no rows are chosen after the last.

    Pickle and joblib store a whole session with its rows and labels; ``save`` writes
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

    With labels given on request:

    >>> active = active.start(X)
    >>> while active.stop_reason_ is None:
    ...     rows = active.query()
    ...     active = active.teach(rows, y[rows])
    >>> len(active.selected_)
    35
    """

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
        self._validate_params()
        with transaction(self) as change:
            self._clear()
            X = checked(self._validated(X, reset=True))
            labels = labels_of(y, X.shape[0], "y")
            weights = _validation.weights(sample_weight, X)
            usable = np.arange(X.shape[0])
            if weights is not None:
                usable = np.flatnonzero(weights)
            self._start_session(X, self._checked_validation(X_val, y_val))
            if self._held is not None:
                check_kind(labels, self._held[1], "in y_val")
            if self.early_stopping and self._held is None:
                draw = np.random.default_rng(self._seed)
                held = held_out(usable, labels, self.validation_fraction, draw)
                importance = None if weights is None else weights[held]
                self._held = self._pool[held], labels[held], importance
                usable = np.setdiff1d(usable, held)
            self._left_out = np.setdiff1d(np.arange(X.shape[0]), usable)
            self._weights = weights
            self._n_left = len(usable)
            self._queried = first_set(usable, labels, self.n_initial, self._draw())
            with progress(self.verbose, type(self).__name__) as report:
                total = min(
                    len(usable), len(self._queried) + (self.n_rounds - 1) * self.n_per_round
                )
                while self.stop_reason_ is None:
                    queried = self.query()
                    self._add(queried, labels[queried])
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
        self._validate_params()
        with transaction(self) as change:
            self._clear()
            self._start_session(
                checked(self._validated(X, reset=True)),
                self._checked_validation(X_val, y_val),
            )
            self._check_session()
            change.keep()
        return self
