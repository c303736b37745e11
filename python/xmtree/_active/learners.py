"""The active learners: GAMBLE's of the paper, and one for any classifier of this package."""

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

from xmtree import _validation
from xmtree._active.session import ActiveSession
from xmtree._base import Learner
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._sklearn import Interval, InvalidParameterError, StrOptions

#: A count of at least 1.
_COUNT = Interval(Integral, 1, _validation.MAX_COUNT, closed="both")
#: The parameters that both learners have.
_SHARED: dict[str, Any] = {
    "selection": [StrOptions({"margin", "random"})],
    "n_initial": [_COUNT],
    "n_per_round": [_COUNT],
    "n_rounds": [_COUNT],
    "pool_share": [Interval(Real, 0, 1, closed="right")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "patience": [_COUNT],
    **Learner._python_constraints,
}


class ActiveGamble(ActiveSession):
    """Active GAMBLE: learn from few rows, chosen by how unsure the committee is of them.

    A committee is trained on a small working set. Of the rows outside it, those
    whose two best classes have the most similar scores are added, and the next committee
    is trained. This needs few labels. ``fit``, and sessions of ``start``, ``query`` and ``teach``,
    are those of :class:`ActiveLearner`.

    Parameters
    ----------
    estimator : GambleClassifier or SAMMEClassifier, optional
        What is trained in every round; ``GambleClassifier()`` by default. It is cloned.
    n_initial, n_per_round, n_rounds : int, default=20, 10 and 50
        As of :class:`ActiveLearner`. The paper calls the last two R and L.
    selection : {"margin", "random"}, default="margin"
        Which rows are added. "margin": those of highest utility 1 / (F_k - F_j), k and j the
        two best classes and F the committee's scores (Section 4 of [1]_); ties are broken at
        random. "random": any, the baseline.
    pool_share, early_stopping, validation_fraction, patience, random_state, n_jobs, verbose : \
as of :class:`ActiveLearner`

    Attributes
    ----------
    estimator_ : GambleClassifier or SAMMEClassifier
        The committee that predicts: the last, or with ``early_stopping`` the best.
    classes_, n_features_in_, feature_names_in_, selected_, utilities_, learning_curve_, best_round_
        As of :class:`ActiveLearner`.
    stop_reason_ : {"pool", "rounds", "validation"} or None
        As of :class:`ActiveLearner`.

    Notes
    -----
    Sessions, parameters that change meanwhile and pickles: as of :class:`ActiveLearner`.

    In Algorithm 3 of [1]_ the rows chosen last are not learned. Here every round ends with
    training a committee, and no rows are chosen after the last.

    See Also
    --------
    ActiveLearner : Any classifier, and a rule to stop.
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
        **_SHARED,
    }

    def _template(self) -> GambleClassifier | SAMMEClassifier:
        given: GambleClassifier | SAMMEClassifier | None = self.estimator
        return GambleClassifier() if given is None else given


@dataclass(eq=False, repr=False)
class ActiveLearner(ActiveSession):
    """Active learning: any classifier of xmtree, trained on few rows that it asks for.

    The classifier is trained on a small working set. Of the rows outside it, those of
    whose labels it is most unsure are queried, labelled and added, and it is trained anew.

    ``fit(X, y)`` has all labels and uses those of the selected rows only: for comparisons,
    and to train on the informative part of a large set. ``start(X)``, ``query()`` and
    ``teach(rows, y)`` are for labels that are not known yet: a row has a label once it is
    taught.

    A round costs one training on the working set and one prediction of the pool
    (``pool_share`` of it).

    Parameters
    ----------
    estimator : classifier of xmtree
        What is trained in every round. It is cloned. One label per row: no label sets.
    n_initial : int, default=20
        Rows of the first working set, chosen at random. ``fit`` chooses one of every class
        first, and as many as there are classes if these are more.
    n_per_round : int, default=10
        Rows queried in a round. Training takes most of the time, so that the time of a session
        is about inverse to it.
    n_rounds : int, default=50
        Classifiers to train at most. A session of ``query`` and ``teach`` goes on after
        ``set_params`` with a larger one.
    selection : {"margin", "random"}, default="margin"
        Which rows are queried. "margin": those of highest utility, 1 / (best score - second best),
        as in :class:`ActiveGamble` [1]_; ties are broken at random. "random": any, the baseline.
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
        Fixes all random choices, also those of the classifiers unless ``estimator`` has a
        ``random_state`` of its own.
    n_jobs : int, optional
        Threads, unless ``estimator`` has an ``n_jobs`` of its own; None is 1, -1 all cores.
        The result does not depend on it.
    verbose : int, default=0
        1: ``fit`` shows a progress bar of labelled rows on stderr, if that is a terminal.
    diversity : int, default=3
        The rows of a round are taken from this many times ``n_per_round`` of highest utility: one
        for each pair of classes between which the classifier hesitates, then the others by
        utility. 1: those of highest utility, however alike. More helps where classes are many.
    stopping_ratio : float or None, default=0.25
        Stop when the error on queried rows, measured before they are learned, has fallen to
        this share of its highest value, both over the last 50 queried rows (three rounds, if these
        are more): then even the rows that the classifier is least sure of are
        predicted right, and others teach it nothing. It needs no rows beside the
        queried, and as a ratio it holds as well where some labels are wrong. Smaller values
        stop later. None: never for this reason.

    Attributes
    ----------
    estimator_ : classifier
        The one that predicts: the last, or with ``early_stopping`` the best.
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
        considered after the round, and ``query_error``, the share of the rows queried
        after it whose label was not the predicted one, both NaN where there are none.
    best_round_ : int
        The round, from 0, that ``estimator_`` is of.
    stop_reason_ : {"pool", "rounds", "validation", "query_error"} or None
        Why there are no more queries: no rows are left, ``n_rounds`` is reached, the
        validation error stopped falling, or the error of the queries fell to
        ``stopping_ratio``. None while there are more.

    Notes
    -----
    Every call of a session follows the parameters as they are then; nothing that was computed
    before, and nothing after ``fit``, depends on a change of them.

    Pickle and joblib store a whole session with its rows and labels; ``save`` writes
    ``estimator_`` alone.

    No query and no stop can know of a class that no label has shown yet. While the classifier
    knows a single class all rows are alike to it, rows are queried at random, and their error
    does not count for ``stopping_ratio``. With ``selection="random"`` the error of
    queries is an estimate of the error itself, so that a quarter of its highest value means
    nothing in particular; set ``stopping_ratio=None``.

    That queried rows are predicted right as a sign to stop is the "min-error" of [2]_, which has a
    fixed bound.

    See Also
    --------
    ActiveGamble : The algorithm of the paper on GAMBLE.

    References
    ----------
    .. [1] T. Scheffer, C. Decomain, S. Wrobel, "Active Hidden Markov Models for Information
       Extraction", IDA 2001: the margin of the two best classes.
    .. [2] J. Zhu, E. Hovy, "Active Learning for Word Sense Disambiguation with Methods for
       Addressing the Class Imbalance Problem", EMNLP-CoNLL 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from xmtree import ActiveLearner, OAAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> active = ActiveLearner(OAAClassifier(), random_state=0).fit(X, y)
    >>> len(active.selected_) < 520
    True
    >>> active.score(X, y) > 0.9
    True

    With labels given on request:

    >>> active = ActiveLearner(OAAClassifier(), n_per_round=20, random_state=0).start(X)
    >>> while active.stop_reason_ is None:
    ...     rows = active.query()
    ...     active = active.teach(rows, y[rows])
    >>> active.stop_reason_
    'query_error'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # by _template, in clearer words
        "diversity": [_COUNT],
        "stopping_ratio": [None, Interval(Real, 0, 1, closed="neither")],
        **_SHARED,
    }

    estimator: Learner = field()
    _: KW_ONLY
    diversity: int = 3
    stopping_ratio: float | None = 0.25

    def _template(self) -> Learner:
        if not isinstance(self.estimator, Learner):
            raise InvalidParameterError(
                "The 'estimator' of ActiveLearner must be a classifier of xmtree, such as "
                f"RecallTreeClassifier(), got {self.estimator!r}"
            )
        return self.estimator
