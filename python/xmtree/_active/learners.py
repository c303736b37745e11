"""Active learners: the paper's active GAMBLE, and one for any classifier of this package."""

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

from xmtree import _validation
from xmtree._active.session import ActiveSession
from xmtree._base import Learner
from xmtree._gamble import GambleClassifier, SAMMEClassifier
from xmtree._sklearn import Interval, InvalidParameterError, StrOptions

#: Constraint of a count of at least 1.
_COUNT = Interval(Integral, 1, _validation.MAX_COUNT, closed="both")
#: Constraints of the parameters that both learners have.
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
    """Active GAMBLE: trains on few rows, chosen where the committee is least certain.

    A committee is trained on a small working set. Rows outside it whose two best classes have
    the most similar scores are added, and the next committee is trained. This needs few labels.
    ``fit`` and sessions of ``start``, ``query`` and ``teach`` work as in :class:`ActiveLearner`.

    Parameters
    ----------
    estimator : GambleClassifier or SAMMEClassifier, optional
        Committee to clone and train in every round; ``GambleClassifier()`` by default.
    n_initial, n_per_round, n_rounds : int, default=20, 10 and 50
        As for :class:`ActiveLearner`. The paper calls the last two R and L.
    selection : {"margin", "random"}, default="margin"
        Rule that chooses rows. "margin": highest utility 1 / (F_k - F_j), where k and j are the
        two best classes and F the committee's scores (Section 4 of [1]_); ties are broken at
        random. "random": random rows, the baseline.
    pool_share, early_stopping, validation_fraction, patience, random_state, n_jobs, verbose : \
as for :class:`ActiveLearner`

    Attributes
    ----------
    estimator_ : GambleClassifier or SAMMEClassifier
        The committee that predicts: the last, or with ``early_stopping`` the best.
    classes_, n_features_in_, feature_names_in_, selected_, utilities_, learning_curve_, best_round_
        As for :class:`ActiveLearner`.
    stop_reason_ : {"pool", "rounds", "validation"} or None
        As for :class:`ActiveLearner`.

    Notes
    -----
    The notes of :class:`ActiveLearner` on sessions, changed parameters and pickle apply.

    Algorithm 3 of [1]_ does not train on the rows chosen last. Here every round ends with
    training a committee, and no rows are chosen after the last round.

    See Also
    --------
    ActiveLearner : For any classifier, with a stopping rule.
    GambleClassifier : Trains on all rows at once.

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
    """Active learning: trains any classifier of xmtree on few rows that it selects.

    The classifier is trained on a small working set. Rows outside it whose labels are least
    certain are queried, labeled and added, and the classifier is trained again.

    ``fit(X, y)`` gets all labels but uses only those of the selected rows, for comparisons
    and to train on the informative part of a large set. ``start(X)``, ``query()`` and
    ``teach(rows, y)`` are for labels that are not known yet.

    A round costs one training on the working set and one prediction of the pool
    (``pool_share`` of it).

    Parameters
    ----------
    estimator : classifier of xmtree
        Classifier to clone and train in every round, on one label per row (not label sets).
    n_initial : int, default=20
        Size of the first working set, chosen at random. ``fit`` first chooses a row of every
        class, and more than ``n_initial`` rows if there are more classes.
    n_per_round : int, default=10
        Number of rows queried in a round. As training takes most of the time, the time of a
        session is roughly inversely proportional to it.
    n_rounds : int, default=50
        Largest number of classifiers to train. A session of ``query`` and ``teach`` can continue
        after ``set_params`` with a larger number.
    selection : {"margin", "random"}, default="margin"
        Rule that chooses queries. "margin": highest utility, 1 / (best score - second best),
        as in :class:`ActiveGamble` [1]_; ties are broken at random. "random": random rows, the
        baseline.
    pool_share : float, default=1.0
        Share of the rows outside the working set whose utility is computed in a round, sampled
        in each; at least ``n_per_round`` rows. Smaller values save time on very large sets.
    early_stopping : bool, default=False
        Stop when the validation error no longer falls, and restore the best round.
    validation_fraction : float, default=0.1
        Share of the rows that ``fit`` holds out for ``early_stopping`` without ``X_val``.
    patience : int, default=10
        Number of rounds without a new lowest validation error after which to stop.
    random_state : int, RandomState or None, default=None
        Seed of all random choices, including the classifiers' unless ``estimator`` has a
        ``random_state`` of its own.
    n_jobs : int, optional
        Number of threads, unless ``estimator`` has an ``n_jobs`` of its own; None is 1, -1 is all
        cores. The result does not depend on it.
    verbose : int, default=0
        With 1, ``fit`` shows a progress bar of labeled rows on stderr if that is a terminal.
    diversity : int, default=3
        The rows of a round come from the ``diversity * n_per_round`` rows of highest utility:
        first one for each pair of two best classes, then the others by utility. With 1, rows of
        highest utility are taken however similar. Larger values help if there are many classes.
    stopping_ratio : float or None, default=0.25
        Stop when the error on queried rows, measured before training on them, has fallen to this
        share of its highest value. Both are averages over 50 queried rows, or three rounds if
        those have more rows. Then even the least certain rows are predicted correctly, and
        others add nothing. The rule needs no validation rows and, as a ratio, tolerates wrong
        labels. Smaller values stop later; None disables the rule.

    Attributes
    ----------
    estimator_ : classifier
        The classifier that predicts: the last, or with ``early_stopping`` the best.
    classes_ : array of shape (n_classes,)
        Its labels, sorted.
    n_features_in_ : int
    feature_names_in_ : array of shape (``n_features_in_``,)
        Column names, if X was a data frame.
    selected_ : int64 array
        The working set, as row numbers of X in the order of their selection.
    utilities_ : float64 array, as long as ``selected_``
        Utility of each row when it was chosen; NaN if it was not chosen by utility.
    learning_curve_ : Bunch of arrays, one entry per round
        ``n_samples`` and ``n_classes`` of the working set; ``validation_error``, NaN without
        validation rows; ``utility``, the median over the rows considered after the round;
        ``query_error``, the share of the rows queried after it that were predicted wrong. The
        last two are NaN if there are no such rows.
    best_round_ : int
        Round of ``estimator_``, from 0.
    stop_reason_ : {"pool", "rounds", "validation", "query_error"} or None
        Reason for ending: no rows are left, ``n_rounds`` is reached, the validation error
        stopped falling, or the error of queries fell to ``stopping_ratio``. None during a session.

    Notes
    -----
    Each call of a session uses the current parameters. Changing them affects neither earlier
    results nor anything after ``fit``.

    Pickle and joblib store a whole session with its rows and labels; ``save`` writes only
    ``estimator_``.

    Neither queries nor stopping rules can account for a class that has no label yet. While the
    classifier knows only one class, rows are queried at random, and their error does not count
    for ``stopping_ratio``. With ``selection="random"`` the error of queries estimates the error
    itself, and a share of its highest value is not a useful bound: set ``stopping_ratio=None``.

    Stopping when queried rows are predicted correctly is the "min-error" rule of [2]_, which has
    a fixed bound.

    See Also
    --------
    ActiveGamble : The algorithm of the GAMBLE paper.

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

    With labels provided on request:

    >>> active = ActiveLearner(OAAClassifier(), n_per_round=20, random_state=0).start(X)
    >>> while active.stop_reason_ is None:
    ...     rows = active.query()
    ...     active = active.teach(rows, y[rows])
    >>> active.stop_reason_
    'query_error'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # _template has a clearer message
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
                "'estimator' of ActiveLearner must be a classifier of xmtree, such as "
                f"RecallTreeClassifier(), got {self.estimator!r}"
            )
        return self.estimator
