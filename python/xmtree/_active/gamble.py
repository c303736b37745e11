"""Active GAMBLE: boosting that chooses the rows it learns from."""

from __future__ import annotations

from typing import Any, ClassVar

from xmtree._active.base import ActiveEstimator
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._sklearn import StrOptions
from xmtree._typing import Seed


class ActiveGamble(ActiveEstimator):
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
        two best classes and F the committee's scores (Section 4 of [1]_); ties are broken at
        random. "random": any, the baseline.
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
    feature_names_in_ : array of shape (``n_features_in_``,)
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
    ActiveLearner : Any classifier, with more ways to choose rows and to stop.
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
        "selection": [StrOptions({"margin", "random"})],
        **ActiveEstimator._shared_constraints,
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
        random_state: Seed = None,
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

    def _template(self) -> GambleClassifier | SAMMEClassifier:
        return GambleClassifier() if self.estimator is None else self.estimator
