"""One-against-all: one linear regressor per class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core, _validation
from xmtree._calibration import Calibration, fit_label_sets
from xmtree._explanation import LinearMixin
from xmtree._labels import Target
from xmtree._online import OnlineLearner
from xmtree._prediction import DecisionMixin, in_parts
from xmtree._set_prediction import CONSTRAINT, ThresholdMixin, checked
from xmtree._sklearn import Interval, validate_params
from xmtree._thresholds import Average, RankedRows, Thresholds, fit, unfitted
from xmtree._typing import Seed, SupportsArray


@dataclass(eq=False, kw_only=True, repr=False)
class OAAClassifier(ThresholdMixin, LinearMixin, DecisionMixin, OnlineLearner):
    """One-against-all: one linear regressor per class, the baseline of the trees.

    Each class has a regressor that is trained towards +1 on examples of the class and towards -1
    on all others; the class with the highest score is predicted. Training and prediction take
    time and memory proportional to the number of classes. One-against-all is accurate, and fast
    enough up to several thousand classes. For more classes, or to trade accuracy for speed, see
    :class:`LOMTreeClassifier`. A class without examples is never predicted (except with the
    optimizer "nag").

    It learns one label per row or label sets.

    Parameters are grouped. The first ones are those to know; those from ``learning_rate`` on are
    for tuning; ``optimizer`` is for comparisons with Vowpal Wabbit.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "squared", "quantile", "softmax"}, \
default="squared_hinge"
        Loss to minimize. The first five train each class on its own. "softmax" is the
        cross-entropy over all classes, which are then learned jointly: better on dense data of
        few features, slower, and trained on one thread. For label sets, "softmax" predicts at most
        one label. The default was chosen on text; see docs/experiments/oaa.md.
    n_passes : int, default=5
        Largest number of passes of ``fit`` over the examples, each in a new order.
    prune : float, optional
        Drop weights smaller than this after ``fit`` and store the others sparsely, in 8 bytes
        each. Predictions then take time only for the weights of a row's features. Weights are
        those that predict (averaged), of scaled features; 0.01 to 0.1 suit text. ``fit`` trains
        blocks of classes in turn, so that it never holds all dense weights: 0.5 GiB at a time, or
        a tile of 64 classes per thread. The kept weights and ``progressive_loss_`` are
        the same as without blocks. Not with the loss "softmax", early stopping or
        ``partial_fit``. By default all weights are kept.
    threshold : float, array of shape (n_classes,), {"row", "micro", "macro"} or None
        For label sets, :meth:`predict` returns the labels with a probability above this, from 0
        to below 1. An array has a threshold for each of ``classes_``. A word names an average of
        F1, for which ``fit`` finds the best threshold on the calibration rows. "row" is the mean
        over rows, "micro" is of the counts of all labels, "macro" is the mean over labels, with a
        threshold for each. The best label is then always returned if all these rows have labels.
        None is "row". With fewer than 96 rows the threshold is 1/2. Words need ``calibrate`` and
        another loss than "softmax"; None is 1/2 without these.
    n_labels : int, optional
        For label sets without ``threshold``, :meth:`predict` returns this number of best labels.
    class_weight : dict or "balanced", optional
        Weight of each class, which multiplies ``sample_weight``: in training, in
        ``progressive_loss_``, in the error of early stopping, and in the rows that probabilities
        refer to. A dict has a weight for each label, finite and not negative; other labels have
        weight 1. "balanced" gives all classes the same total weight: n_samples / (n_classes *
        rows of the class), with rows weighted by ``sample_weight``. ``partial_fit`` refuses
        "balanced", as it does not know the frequencies of later labels. A label set has the mean
        weight of its labels, and 1 without labels; "balanced" counts a row for each of its labels.
    early_stopping : bool, default=False
        Hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    calibrate : bool, default=True
        Calibrate probabilities on rows that were not learned. ``fit`` leaves a fifth of the rows
        out of 60 % of ``n_passes``, calibrates on them and then learns all rows in as many passes.
        From 8,000 rows on, it leaves out a twentieth (at most 1,000), and only the last two of
        ``n_passes`` learn all rows. From 40,000 rows on, with one pass (two from 8,000 rows on),
        and with ``early_stopping`` from 8,000 rows on, one more pass learns the rows left out. With
        ``prune``, a second model is calibrated on up to 2,000 rows (a third, if there are fewer
        than 6,000). It learns the others in at least half of the passes, up to 20,000 examples,
        and does not change the model itself. Fewer than 96 rows do not calibrate. ``partial_fit``
        calibrates on batches of 32 rows or more before it learns them, each time the model has
        learned a fifth more.
    random_state : int, RandomState or None, default=None
        Seed of the order of the examples and of the sampled negatives, read when training
        begins. The same int gives the same model.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores. The model does not depend on it.
    verbose : int, default=0
        With 1, a progress bar on stderr, if that is a terminal, with the rate and the
        progressive error.
    learning_rate : float, optional
        Step size. By default 0.5 for "nag". For "pn", which has no unit, it is 5 with
        the losses "softmax" and "logistic", whose gradient never vanishes, and 1 with the others.
        The steps of "pn" shrink in ``fit`` with the square root of 1 + the passes done, and are
        constant in ``partial_fit``.
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        Scaling of features before learning. "standard" gives each column mean 0 and standard
        deviation 1; "row" gives each row length 1; "log" replaces x by ln(1 + x) (and -x by
        -ln(1 + x)), for counts. "auto" is "standard" if more than half of the values are not 0 and
        rows differ in length (those of embeddings often do not), in ``fit`` or the first
        ``partial_fit``. Else, and with ``n_bits``, it is "row". ``partial_fit`` updates means and
        deviations with the stream.
    n_bits : int, optional
        Hash features into 2^n_bits columns, from 1 to 31, for streams whose features are
        unknown or too many. Rows of ``partial_fit`` and prediction may then have any number of
        columns. Not with the scaling "standard". By default features are not hashed.
    n_negatives : int, optional
        Negative sampling: update only this number of randomly chosen wrong classes, each with the
        weight K / n_negatives. By default all wrong classes are updated.
    scale_weights : bool, default=True
        If True, ``sample_weight`` is divided by its mean (in ``partial_fit`` the mean so far), so
        that the model does not depend on its unit. If False, weights multiply steps and counts as
        they are, as in Vowpal Wabbit; those above 1e18 count as 1e18.
    optimizer : {"pn", "nag"}, default="pn"
        Direction and length of a step. "pn" is a preconditioned, normalized gradient without a
        square root per weight. It predicts with an average of the weights in which the weights
        after example t count for about t^4 [4]_: close to the average over the last of five
        passes, and suited to streams too. "nag" is Vowpal Wabbit's default (normalized, adaptive,
        importance aware). It predicts with the last weights and cannot be combined with "softmax".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted; with ``partial_fit(classes="grow")`` in the order of their first
        occurrence. If y was an indicator, ``arange(n_classes)`` or the column names of the data
        frame.
    n_features_in_ : int
    feature_names_in_ : array of shape (``n_features_in_``,)
        Column names, if X was a data frame.
    coef_ : CSR matrix of shape (n_classes, ``n_features_in_``)
        Weights of the scorers; none with ``n_bits``. With the scaling "none" or "standard",
        ``X @ coef_.T + intercept_`` is the ``decision_function``, with ``optimizer="nag"`` before
        it is clamped. With "row" and "log" this holds for scaled rows.
    intercept_ : float64 array of shape (n_classes,)
        -inf for classes without examples.
    progressive_loss_ : float
        Share of the examples predicted wrongly just before they were learned, by
        importance weight, in the first pass; for label sets 1 - P@1. These predictions use
        the current weights, not their average, so ``predict`` errs less.
    n_examples_seen_ : int
        Number of examples learned, each pass counted.
    threshold_ : float, or float32 array of shape (n_classes,)
        For label sets: ``threshold``, or what was fitted.

    Notes
    -----
    Scores are margins: the squared losses aim at +1 and -1, and with the losses "logistic" and
    "softmax" they are logits. Calibrated probabilities begin with the softmax of slope times the
    scores of the 20 best labels and a constant, whose share is divided among all labels. The
    probability of the best label and the division among the others are then corrected; see
    docs/experiments/calibration.md. For label sets probabilities are the logistic function of slope
    times the score plus an intercept. Without calibration they are the softmax of all scores, or
    the logistic function of the score.

    See Also
    --------
    LOMTreeClassifier : Logarithmic instead of linear in the number of classes.

    References
    ----------
    .. [1] R. Rifkin, A. Klautau, "In Defense of One-Vs-All Classification",
       JMLR 5, 2004.
    .. [2] N. Karampatziakis, J. Langford, "Online Importance Weight Aware
       Updates", UAI 2011: steps that cannot overshoot.
    .. [3] S. Ross, P. Mineiro, J. Langford, "Normalized Online Learning",
       UAI 2013: the optimizer "nag".
    .. [4] O. Shamir, T. Zhang, "Stochastic Gradient Descent for Non-smooth
       Optimization", ICML 2013, Section 4: the average.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import OAAClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = OAAClassifier(loss="softmax", random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> labels, scores = clf.predict_topk(X[:2], k=2)
    >>> labels
    array([[0, 1],
           [0, 1]])

    Label sets, as lists:

    >>> clf = OAAClassifier(random_state=0)
    >>> clf = clf.fit([[1.0, 0.0], [0.0, 1.0]] * 20, [["a", "b"], ["c"]] * 20)
    >>> clf.predict([[1.0, 0.0]])
    [['a', 'b']]
    """

    _short_name = "oaa"
    _multilabel = True
    _python_constraints: ClassVar[dict[str, Any]] = {
        **OnlineLearner._python_constraints,
        "threshold": [*CONSTRAINT, Interval(Real, 0, 1, closed="left")],
        "n_labels": [None, Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
    }

    loss: str = "squared_hinge"
    n_passes: int = 5
    prune: float | None = None
    threshold: float | SupportsArray | Sequence[float] | Average | None = None
    n_labels: int | None = None
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    early_stopping: bool = False
    calibrate: bool = True
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    learning_rate: float | None = None
    scaling: str = "auto"
    n_bits: int | None = None
    n_negatives: int | None = None
    scale_weights: bool = True
    optimizer: str = "pn"

    def _set_more_state(self, state: dict[str, Any]) -> None:
        super()._set_more_state(state)
        self._check_thresholds()

    @property
    def _thresholds(self) -> Thresholds | None:  # type: ignore[override]
        return self._calibration.thresholds

    def _label_sets(self, X: Any) -> Any:
        # Parts of the rows, as all scores at once may not fit in memory.
        parts = [self._sets_of_part(rows) for _, rows in in_parts(X, len(self.classes_))]
        return parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")

    def _sets_of_part(self, X: Any) -> Any:
        if self.n_labels is not None:
            validate_params(self, "n_labels")
        if self.threshold is None and self.n_labels is not None:
            codes, _ = self._topk(X, min(self.n_labels, len(self.classes_)))
            codes.sort(axis=1)
            row, place = np.nonzero(codes >= 0)
            column: NDArray[Any] = codes[row, place]
        else:
            bounds, n_least = self._bounds()
            probabilities = self._all_probabilities(X)
            is_likely = probabilities > bounds
            if n_least and len(self.classes_):
                best = probabilities.argmax(axis=1)
                is_likely[np.arange(len(best)), best] |= probabilities.max(axis=1) > 0
            row, column = np.nonzero(is_likely)
        # For a single row, scipy's conversion takes longer than the model.
        starts = np.searchsorted(row, np.arange(X.shape[0] + 1))
        data = np.ones(len(row), np.int64)
        return sp.csr_matrix((data, column, starts), shape=(X.shape[0], len(self.classes_)))

    def _to_probabilities(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        if self._y_form == "labels" or self._fitted_params()["loss"] != "softmax":
            return super()._to_probabilities(scores)
        # The softmax divides a probability of 1 even among the labels of a set.
        return _core.share_probabilities(scores, "logit", len(self.classes_))

    def _makes_further_passes(self) -> bool:
        return self.prune is None

    def _uncalibrated(self, target: Target) -> Calibration:
        if not (target.multilabel and isinstance(self.threshold, str)):
            if target.multilabel and self.threshold is not None:
                checked(self.threshold, len(target.classes))
            return Calibration()
        if not self.calibrate or self.loss == "softmax":
            lacking = "calibrate=True" if not self.calibrate else 'another loss than "softmax"'
            raise ValueError(
                f'threshold="{self.threshold}" is fitted on calibration rows and needs {lacking}; '
                "set a number"
            )
        return Calibration(thresholds=unfitted(self.threshold, len(target.classes)))

    def _calibrated(self, X: Any, codes: Any, weights: NDArray[np.float64]) -> Calibration:
        if self._y_form == "labels":
            return super()._calibrated(X, codes, weights)
        if self._fitted_params()["loss"] == "softmax":
            return Calibration()
        rows = RankedRows.of(self, X, codes, weights)
        found = fit_label_sets(rows)
        if not isinstance(self.threshold, str):
            return found
        probabilities = _core.label_probabilities(rows.scores, found.slope, found.intercept)
        return replace(found, thresholds=fit(self.threshold, rows, probabilities))
