"""Multiclass boosting: GAMBLE, and SAMME, the baseline."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xmtree._boosting import Boosting


@dataclass(eq=False, kw_only=True, repr=False)
class GambleClassifier(Boosting):
    """GAMBLE: multiclass boosting with one tree per round for any number of classes.

    Each round grows one weighted regression tree for all classes at once, on rows weighted
    by the committee's loss on them (Algorithm 2 of [1]_). Libraries for gradient boosting grow
    a tree per class and round; here the time of a round does not depend on the number of
    classes.

    Values may be missing (NaN), columns may be categorical, and sparse rows stay sparse.

    Parameters are grouped. The first ones are those to know; those from ``min_samples_leaf`` on
    are for tuning; ``linear`` and ``clip`` are for comparisons with the paper. ``n_estimators``,
    ``max_leaves``, ``learning_rate``, ``max_features``, ``subsample`` and ``trim`` were chosen
    together on held-out data; see docs/experiments/gamble.md.

    Parameters
    ----------
    n_estimators : int, default=200
        Largest number of rounds, one tree each.
    max_leaves : int, default=511
        Largest number of leaves of a tree; the leaf with the largest gain is split next. This
        parameter has the largest effect. Fewer leaves trade accuracy for speed. The paper
        takes about 15.
    learning_rate : float, default=0.3
        Factor of each tree's votes. 1 in the paper. If it is below 1, leaves whose last split is
        by a set of categories have a third of the votes.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Categorical columns: column numbers, column names of a data frame, or a mask.
        "from_dtype": the columns of a data frame with the type "category" (pandas), Categorical
        or Enum (polars), and columns of strings; none in arrays. Numbers and booleans stay
        numbers. None: no columns. Categories are numbers or, in data frames, strings, any number
        of them per column. ``fit`` rejects numbers that single precision cannot represent, such
        as 2**24 + 1. A split sends a subset of at most 1,024 categories left. Those of a column
        with more than 256 values are ordered by rows that ``subsample`` leaves out of a tree. With
        ``subsample`` 1 they are ordered by half of a node's rows, which overfits more. A missing
        value is a category of its own, and a category that ``fit`` has not seen goes to the side
        of larger weight.
    class_weight : dict or "balanced", optional, as for :class:`OAAClassifier`
    early_stopping : bool, default=False
        Evaluate ``eval_metric`` on held-out rows (or ``X_val`` of ``fit``), stop when it no longer
        falls and restore the best round.
    eval_metric : {"error", "log_loss"}, default="error"
        Measure of early stopping: the share of wrong predictions, which is cheaper, or the log
        loss of the probabilities at the temperature that gives these rows the lowest log loss.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping.
    patience : int, default=50
        Number of rounds without a new lowest value after which to stop.
    warm_start : bool, default=False
        If True, ``fit`` keeps the rounds of the fitted model and adds rounds up to
        ``n_estimators``. On the same rows the result equals that of a single ``fit``, bit for
        bit, even if the model was loaded from a file. Rows and weights may change; classes,
        features and all other parameters must not.
    random_state : int, RandomState or None, default=None
        Seed of all random choices, read when training begins. The same int gives the same model.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. Threads read the features, share the rows
        of a prediction, and grow the trees of large tables. The model does not depend on it.
    verbose : int, default=0, as for :class:`OAAClassifier`
        With the held-out error in place of the progressive error.
    min_samples_leaf : int, default=1
        Smallest number of rows of a leaf.
    max_features : float, default=0.3
        Share of the features that a split may use, sampled for each split, rounded up. 1 in the
        paper.
    subsample : float, default=0.7
        Share of the rows that a tree is trained on, sampled for each tree. With a hundred or more
        classes of at most 15 rows each on average, all rows are used, as weights would otherwise
        depend on which rows were sampled. 1 in the paper.
    trim : float, default=0.1
        Share of the total weight that a tree is not trained on: the rows of lowest weight, which
        the committee predicts well. Saves about half of the time. 0 in the paper.
    splits : {"binned", "exact"}, default="binned"
        Candidate thresholds. "binned": between 255 groups of neighboring values. "exact":
        between any two values. Both agree for at most 255 distinct values.
    linear : bool, default=True
        Add linear scores to the votes of the trees if that lowers the error of rows that neither
        has learned by more than 1.5 standard errors: the log-odds of a multinomial logistic
        regression, times 1.5. Classes that differ in sums of columns would need many splits.
        Not with more than 32,768 coefficients, or 1,024 products of values and coefficients a row;
        not with validation rows, which evaluate trees; not in the paper.
    clip : bool, default=True
        If True, a leaf's vote for a class before centering (r in step 2b) is at least -n_classes.
        In the paper a class absent from a leaf gets -n_classes (n_classes - 1), and after a few
        rounds nearly all the weight is on a few rows. Without effect on two classes.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as for :class:`OAAClassifier`
    n_estimators_ : int
        Number of trees; after early stopping fewer than ``n_estimators``.
    evals_result_ : dict of float64 arrays of shape (n_rounds,)
        ``"error"`` on the validation rows after each round, and ``"log_loss"`` if that is
        ``eval_metric``; also of the rounds after the best. Empty without validation rows.
    temperature_ : float
        Divisor of F / (n_classes - 1) before the softmax in ``predict_proba``. Boosted scores
        are far too large to be logits. The divisor is fitted on each tree's votes for the rows
        that ``subsample`` left out of the tree; it is 1 if all trees are trained on all rows.
    linear_coef_ : float64 array of shape (n_classes, ``n_features_in_``)
        Coefficients of the linear part of ``decision_function``; 0 if only trees vote. NaN for
        columns of categories, which have one for each category.
    feature_importances_ : float64 array of shape (``n_features_in_``,)
        Share of each feature in the gain of all splits.
    feature_splits_ : uint64 array of shape (``n_features_in_``,)
        Number of splits by each feature.
    trees_ : list of Bunch of read-only arrays
        The trees, with these arrays per node:

        - ``parent``, ``children``, ``depth``.
        - ``n_examples``: rows that the tree was trained on; ``weight``: their share.
        - ``label_entropy``: entropy of the weights, in nats.
        - ``feature``: -1 at a leaf; ``threshold``: values up to it go left, NaN for categorical
          splits; ``missing_left``; ``gain``.
        - ``leaf``: number of the leaf, -1 at internal nodes.

        The categories that go left at node i are ``categories`` from ``category_starts[i]`` on.
        Leaf i stores the classes ``vote_classes`` (indices into ``classes_``) from
        ``vote_starts[i]`` on and their votes ``votes``; its vote for every other class is
        ``other_votes[i]``. The votes of a leaf sum to 0 over all classes.

    Notes
    -----
    Values are read in single precision: numbers that differ by less than one part in 16
    million are equal.

    A round takes O(rows x features x depth), whatever the number of classes: a row that crosses a
    threshold changes the sums of the objective (Eq. 3.5 of [1]_) in time O(1). The second tree of
    Algorithm 1 follows from the first (Theorem 3.2, Corollary 3.1), so only one is grown.

    For hundreds of classes of few rows each use ``n_estimators=300, max_leaves=255,
    max_features=0.02, subsample=1, trim=0``. For text, use linear models such as
    :class:`OAAClassifier`.

    ``GambleClassifier(**GambleClassifier.PAPER)`` is Algorithm 2 of [1]_.

    If errors differ in cost, ``clf.classes_[(clf.predict_proba(X) @ costs).argmin(axis=1)]`` is
    the class of lowest expected cost; ``costs[i, j]`` is the cost of predicting class j if class
    i is true. The temperature does not change the order of classes; ``decision_function`` omits it.

    See Also
    --------
    SAMMEClassifier : The baseline: each leaf votes for one class.
    LOMTreeClassifier : Online, and much faster for thousands of classes.

    References
    ----------
    .. [1] J. Huang, S. Ertekin, Y. Song, H. Zha, C. L. Giles, "Efficient Multiclass Boosting
       Classification with Active Learning", SDM 2007.
    .. [2] J. Friedman, T. Hastie, R. Tibshirani, "Additive Logistic Regression: a Statistical
       View of Boosting", Annals of Statistics 28, 2000: Gentle AdaBoost, its case of two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import GambleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[0, 2] = float("nan")
    >>> clf = GambleClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> clf.score(X, y) > 0.95
    True
    >>> len(clf.trees_)
    20
    """

    _short_name = "gamble"
    #: Settings of the paper, which has "about 15" leaves and 1000 rounds.
    PAPER: ClassVar[dict[str, Any]] = {
        "n_estimators": 1000,
        "max_leaves": 15,
        "learning_rate": 1.0,
        "max_features": 1.0,
        "subsample": 1.0,
        "trim": 0.0,
        "linear": False,
        "clip": False,
        "splits": "exact",
    }

    n_estimators: int = 200
    max_leaves: int = 511
    learning_rate: float = 0.3
    max_features: float = 0.3
    subsample: float = 0.7
    trim: float = 0.1
    linear: bool = True
    clip: bool = True

    @property
    def linear_coef_(self) -> NDArray[np.float64]:
        """Return the coefficients of the linear part of F for each class and feature."""
        found: NDArray[np.float64] = self._fitted().importances()["coefficients"]
        shape = self.n_features_in_, len(self.classes_)
        return found.reshape(shape).T if found.size else np.zeros(shape[::-1])


@dataclass(eq=False, kw_only=True, repr=False)
class SAMMEClassifier(Boosting):
    """SAMME: AdaBoost for many classes, the baseline of :class:`GambleClassifier`.

    The loss, the weights and the trees are those of GAMBLE, but a leaf votes for one class, and
    all leaves of a tree have the same weight. A tree with a lower error has a larger weight.
    ``votes="real"`` is SAMME.R.

    Parameters
    ----------
    n_estimators : int, default=300
        Largest number of rounds, one tree each. Training stops earlier after a tree without
        errors, whose weight is large but finite, or one that is no better than chance. SAMME.R
        stops after a tree whose leaves have one class each.
    max_leaves : int, default=15, as for :class:`GambleClassifier`
    learning_rate : float, default=1.0
        Factor of each tree's weight.
    categorical_features, class_weight : as for :class:`GambleClassifier`
    early_stopping, eval_metric, validation_fraction : as for :class:`GambleClassifier`
    patience, warm_start : as for :class:`GambleClassifier`
    random_state, n_jobs, verbose : as for :class:`GambleClassifier`
    min_samples_leaf : int, default=1, as for :class:`GambleClassifier`
    max_features, subsample : float, default=1.0, as for :class:`GambleClassifier`
    trim : float, default=0.0, as for :class:`GambleClassifier`
    splits : {"binned", "exact"}, default="binned", as for :class:`GambleClassifier`
    votes : {"discrete", "real"}, default="discrete"
        "discrete": SAMME. "real": SAMME.R, in which a leaf gives every class k the vote
        (n_classes - 1) (log p_k - mean of log p), with p_k its share of the leaf's weight, at
        least 2.2e-16 (Algorithm 4 of [1]_; the bound is that of scikit-learn before 1.6).

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as for :class:`GambleClassifier`
    n_estimators_, evals_result_ : as for :class:`GambleClassifier`
    temperature_, feature_importances_, feature_splits_ : as for :class:`GambleClassifier`
    trees_ : list of Bunch of read-only arrays
        As for :class:`GambleClassifier`. With discrete votes a leaf stores the one class that it
        votes for.

    Notes
    -----
    A tree of discrete votes outputs 1 for the class it votes for and -1 / (n_classes - 1) for the
    others. Its weight is (n_classes - 1)^2 / n_classes alpha with alpha = log((1 - e) / e) +
    log(n_classes - 1) and e its weighted error. The factor changes no prediction; it puts the
    scores on the scale that ``predict_proba`` expects.

    See Also
    --------
    GambleClassifier : Votes with real numbers; usually more accurate.

    References
    ----------
    .. [1] J. Zhu, H. Zou, S. Rosset, T. Hastie, "Multi-class AdaBoost", Statistics and Its
       Interface 2, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import SAMMEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SAMMEClassifier(n_estimators=20, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _short_name = "samme"

    votes: str = "discrete"
