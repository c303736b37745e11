"""One-against-all."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _core, _validation
from xmtree._calibration import Calibration
from xmtree._online import OnlineLearner
from xmtree._sklearn import Interval, validate_params
from xmtree._typing import MatrixLike, Seed


@dataclass(eq=False, kw_only=True, repr=False)
class OAAClassifier(OnlineLearner):
    """One-against-all: one linear regressor per class, the baseline of the trees.

    Each class has a regressor that is trained towards +1 on examples of the
    class and towards -1 on all others; the highest score wins. Training and
    prediction take time and memory proportional to the number of classes.
    Accurate, and fast enough up to some thousands of classes; for more, and
    to trade accuracy for speed, see :class:`LOMTreeClassifier`. A
    class without examples is never predicted (except with the
    optimizer "nag").

    Learns one label per row or sets of labels.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "squared", "quantile", "softmax"}, \
default="squared_hinge"
        What is minimised. The first five treat every class by itself; "softmax"
        is the cross-entropy over all classes, which then learn jointly: better
        on dense data of few features, slower, and trained on one thread. Of
        label sets it predicts one label at most. The default was chosen on text;
        see docs/experiments/oaa.md.
    optimizer : {"pn", "nag"}, default="pn"
        Direction and length of a step. "pn" is a preconditioned, normalised
        gradient without a square root per weight. It predicts with an average of the
        weights in which those after example t count for about t^4 [4]_: close to the
        average over the last of five passes, and suited to streams too. "nag" is Vowpal
        Wabbit's default (normalised, adaptive, importance aware): it predicts with the
        last weights and cannot be combined with "softmax".
    scaling : {"auto", "none", "row", "standard", "log"}, default="auto"
        How features are scaled before learning. "standard" gives each column
        mean 0 and standard deviation 1, "row" each row length 1, "log" replaces x by
        ln(1 + x) (and -x by -ln(1 + x)), for counts; "auto" takes
        "standard" where more than half of the values are not 0, else "row" (and
        "row" with ``n_bits``), as found in the rows of ``fit`` or of the first
        ``partial_fit``. In ``partial_fit`` means and deviations are updated with
        the stream.
    scale_weights : bool, default=True
        Whether ``sample_weight`` counts relative to its mean: ``fit`` divides the
        weights by their mean, ``partial_fit`` by the mean so far, so that a model does
        not depend on their unit. False multiplies steps and counts by the weights as
        they are, as Vowpal Wabbit does; those above 1e18 count as 1e18.
    class_weight : dict or "balanced", optional
        Weights of classes, which multiply ``sample_weight``, so they count in all that it
        counts in: in training, ``progressive_loss_`` and the error of early stopping; and
        probabilities are those of the weighted rows. A dict has a weight for each label,
        finite and not negative; labels that are not in it weigh 1. "balanced" gives all classes
        the same total weight: n_samples / (n_classes * rows of the class), rows counted by
        ``sample_weight``. ``partial_fit`` refuses it, as it does not know how often later
        labels occur. With label sets only None is possible.
    n_bits : int, optional
        Hash features into 2^n_bits columns, for streams whose feature space is
        unknown or too large. From 1 to 31; by default features are not hashed.
        Not with the scaling "standard". Rows may then have any number of columns,
        in ``partial_fit`` and prediction too.
    learning_rate : float, optional
        Step size. By default 0.5 for "nag"; for "pn" (where it has no unit)
        5 with the losses "softmax" and "logistic", whose gradient never vanishes,
        and 1 with the others. With "pn" it falls in ``fit`` with the square root
        of 1 + the passes done, and is constant in ``partial_fit``.
    n_negatives : int, optional
        Negative sampling: update only this many classes that an example does not
        belong to, chosen at random, each with the weight K / n_negatives. By
        default all of them.
    prune : float, optional
        Drop weights smaller than this after ``fit`` and hold the others sparsely: 8 bytes for
        each that is left, in memory and in the file, and predictions take time for those
        of a row's features only. Weights are those that predict (averaged), of scaled
        features; 0.01 to 0.1 suit text. ``fit`` trains some classes after others, so that
        it never holds all dense weights (0.5 GiB at a time, or a tile of 64 classes per thread);
        the weights that are left, and ``progressive_loss_``, are the same as without.
        Not with the loss "softmax", not with early stopping, and not with ``partial_fit``. By
        default all weights are kept.
    n_passes : int, default=5
        Passes of ``fit`` over the examples, at most, each in a new order.
    early_stopping : bool, default=False
        Hold out a tenth of the examples in ``fit``, stop when their error has not
        fallen for two passes and restore the best pass.
    calibrate : bool, default=True
        Whether to calibrate probabilities on rows that were not learned. From 40,000 rows on,
        ``fit`` leaves 1,000 rows out of its passes, calibrates on them and learns them once at the
        end, at no further cost. With fewer rows every row counts: another model learns a part of
        them with three passes of ten, and up to 2,000 others (a third, if there are fewer than
        6,000) calibrate. That takes 0.28 of the training, or 20,000 examples if that is more; the
        model itself does not depend on it. ``partial_fit`` calibrates with batches of 32 rows or
        more before it learns them, each time the model has learned a fifth more.
    threshold : float, optional
        Of label sets :meth:`predict` returns the labels whose probability is above this, from 0 to
        below 1. None: the one of the highest F1, averaged over rows, on the rows that
        calibrate, and always the best label if each of these rows has one; 1/2 where nothing is
        calibrated, and with the loss "softmax".
    n_labels : int, optional
        Of label sets, and without a ``threshold``, :meth:`predict` returns so many best labels.
    random_state : int, RandomState or None, default=None
        Fixes the order of the examples and the choice of negatives. Read when
        learning begins. The same int gives the same model.
    n_jobs : int, optional
        Threads; None is 1, -1 all cores. The model does not depend on it.
    verbose : int, default=0
        1: a progress bar on stderr, if that is a terminal, with the rate and
        the progressive error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted; with ``partial_fit(classes="grow")`` in the order in which they came.
        Where y was an indicator ``arange(n_classes)``, or the names of a data frame's columns.
    n_features_in_ : int
    feature_names_in_ : array of shape (``n_features_in_``,)
        Column names, where X was a data frame.
    progressive_loss_ : float
        Share of the examples predicted wrongly just before they were learned, by
        importance, in the first pass. For label sets 1 - P@1. These predictions use
        the current weights, not their average, so ``predict`` does better.
    n_examples_seen_ : int
        Examples learned, each pass counted.
    threshold_ : float
        Of label sets: what ``threshold`` is, or was found to be.

    Notes
    -----
    Scores are margins: +1 and -1 are what the squared losses aim at, and logits with the losses
    "logistic" and "softmax". Probabilities are the softmax of the scores of the 20 best labels,
    times a slope, and of a constant that all labels share; for label sets the logistic function
    of the scores times a slope and shifted; see ``calibrate``. Without calibration they are the
    softmax of all scores, or the logistic function of the score.

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
        "threshold": [None, Interval(Real, 0, 1, closed="left")],
        "n_labels": [None, Interval(Integral, 1, _validation.MAX_COUNT, closed="both")],
    }

    loss: str = "squared_hinge"
    optimizer: str = "pn"
    scaling: str = "auto"
    scale_weights: bool = True
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    n_bits: int | None = None
    learning_rate: float | None = None
    n_negatives: int | None = None
    prune: float | None = None
    n_passes: int = 5
    early_stopping: bool = False
    calibrate: bool = True
    threshold: float | None = None
    n_labels: int | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0

    def decision_function(self, X: MatrixLike) -> NDArray[np.float32]:
        """The scores of all classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        float32 array of shape (n, n_classes)
            For two classes, unless they are label sets, of shape (n,): the
            score of ``classes_[1]`` less that of ``classes_[0]``.

        Raises
        ------
        ValueError
            Where the array would take more than 8 GiB or half of the memory; see ``predict_topk``.
        """
        now, rows = self._now(X)
        now._check_dense_size(rows)
        scores = now._call(now._model.predict_scores, rows)
        if now._y_form == "labels" and len(now.classes_) == 2:
            # Without examples both are minus infinity, and neither is ahead.
            first, second = scores.T
            ahead: NDArray[np.float32] = np.zeros_like(first)
            np.subtract(second, first, out=ahead, where=first != second)
            return ahead
        return scores

    @property
    def threshold_(self) -> float:
        """Probability above which :meth:`predict` takes a label into a label set."""
        self._fitted()
        return self._least_chance()

    def _least_chance(self) -> float:
        return self._calibration.threshold if self.threshold is None else float(self.threshold)

    def _present(self, X: Any) -> Any:
        if self.threshold is not None or self.n_labels is not None:
            validate_params(self, "threshold", "n_labels")
        if self.threshold is None and self.n_labels is not None:
            codes, _ = self._topk(X, min(self.n_labels, len(self.classes_)))
            codes.sort(axis=1)
            row, place = np.nonzero(codes >= 0)
            column: NDArray[Any] = codes[row, place]
        else:
            is_likely = (chances := self._all_chances(X)) > self._least_chance()
            if self.threshold is None and self._calibration.n_least and len(self.classes_):
                best = chances.argmax(axis=1)
                is_likely[np.arange(len(best)), best] |= chances.max(axis=1) > 0
            row, column = np.nonzero(is_likely)
        # By hand: of a single row scipy takes longer than the model.
        starts = np.searchsorted(row, np.arange(X.shape[0] + 1))
        data = np.ones(len(row), np.int64)
        return sp.csr_matrix((data, column, starts), shape=(X.shape[0], len(self.classes_)))

    def _chances(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        if self._y_form == "labels" or self._fitted_params()["loss"] != "softmax":
            return super()._chances(scores)
        # The softmax shares one probability among the labels of a set, too.
        return _core.share_probabilities(scores, "logit", len(self.classes_))

    def _calibrated(self, X: Any, codes: Any, weights: NDArray[np.float64]) -> Calibration:
        if self._y_form != "labels" and self._fitted_params()["loss"] == "softmax":
            return Calibration()
        return super()._calibrated(X, codes, weights)
