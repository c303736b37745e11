"""Scorers for scikit-learn's ``scoring=``: measures of a ranking by an estimator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from xmtree._labels.forms import Indicator, as_label_lists, read


@dataclass(frozen=True)
class RankingScorer:
    """``measure`` of the ``k`` best labels that an estimator, or a pipeline's last step, returns.

    ``classes`` are the labels that the columns of an indicator or the propensities are of.
    """

    measure: Callable[..., float]
    k: int
    classes: NDArray[Any] | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The measure on ``X`` and its true labels ``y``."""
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        if not hasattr(estimator, "predict_topk"):
            raise TypeError(f"{type(estimator).__name__} has no predict_topk, which ranks labels")
        ranking, _ = estimator.predict_topk(X, self.k)
        if ranking.dtype.kind == "f":  # which are scores beside classes
            ranking = ranking.astype(object)
        form = getattr(getattr(estimator, "learner_", estimator), "_y_form", None)
        if form == "lists" and isinstance(y, list | tuple):
            y = as_label_lists(list(y))
        classes = self.classes
        if classes is None and _is_indicator(y):
            classes = estimator.classes_
        return self.measure(y, ranking, k=self.k, classes=classes)


def _is_indicator(y: Any) -> bool:
    return sp.issparse(y) or isinstance(read(y, "y", column_is_labels=True), Indicator)
