"""Online trees on a cluster: one model per partition, with averaged predictions."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Future
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._labels import decode, matching
from xmtree._labels.forms import label_array
from xmtree._lomtree import LOMTreeClassifier
from xmtree._prediction import Ranking, Scores
from xmtree._recall_tree import RecallTreeClassifier
from xmtree.dask._base import DaskEstimator
from xmtree.dask._cluster import Tasks, Workers
from xmtree.dask._partitions import Source, together

#: Smallest number of labels per model that enter the average.
_LEAST_LABELS = 20


class BaggedModels:
    """Models of the same classes with averaged probabilities.

    Parameters
    ----------
    estimators : list of fitted local estimators
        All with the same ``classes_``.

    Attributes
    ----------
    estimators_ : list of fitted local estimators
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    """

    _y_form = "labels"

    def __init__(self, estimators: list[Any]) -> None:
        self.estimators_ = estimators
        self.classes_: NDArray[Any] = estimators[0].classes_
        self.n_features_in_ = int(estimators[0].n_features_in_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the highest average of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
        """
        return self.predict_topk(X, 1)[0][:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, the share of rows whose label is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        right = matching.are_right(y, self.predict(X), self.classes_)
        return float(np.average(right, weights=sample_weight))

    def predict_topk(self, X: Any, k: int = 5, *, scores: Scores = "raw") -> Ranking:
        """Return the ``k`` labels of the highest averages of each row, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5
            ``max(k, 20)`` labels of each model enter the average; others count as 0.
        scores : {"raw", "probability"}, default="raw"
            Both are the averages of probabilities that rank the labels.

        Returns
        -------
        labels : array of shape (n, k)
            If fewer than ``k`` labels have a score, filled up as by the estimators.
        scores : float32 array of shape (n, k)
            Averages of probabilities in decreasing order; -inf without a label.
        """
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        n_classes = len(self.classes_)
        n_each = min(max(int(k), _LEAST_LABELS), n_classes)
        total: Any = 0
        for model in self.estimators_:
            codes, values = model._topk_probabilities(model._rows(X), n_each)
            rows, places = np.nonzero(codes >= 0)
            found = (values[rows, places].astype(np.float64), (rows, codes[rows, places]))
            total = total + sp.csr_array(found, shape=(len(codes), n_classes))
        codes = np.full((total.shape[0], k), -1, np.int32)
        averages = np.full((total.shape[0], k), -np.inf, np.float32)
        for row in range(total.shape[0]):
            own = slice(total.indptr[row], total.indptr[row + 1])
            labels, values = total.indices[own], total.data[own] / len(self.estimators_)
            best = np.lexsort((labels, -values))[:k]
            codes[row, : len(best)], averages[row, : len(best)] = labels[best], values[best]
        return decode(codes, self.classes_), averages


def bagging_tasks(tasks: Tasks, local: Any, data: Source, classes: Any, workers: Workers) -> Future:
    """Return the task that joins the models of all partitions, after submitting these."""
    if data.parts is None:
        raise TypeError(
            "X must be a Dask collection or a list of partitions, each of which trains a model; "
            f"train {type(local).__name__} on local rows"
        )
    seed = _validation.seed(local.random_state)
    known: Any = classes
    if classes is None:
        found = [tasks.submit("labels", _distinct, [part]) for _, part, _ in data.parts]
        known = tasks.submit("classes", _distinct, found)
    models = [
        tasks.submit("fit", _trained, local, *part, known, seed + number)
        for number, part in enumerate(data.parts)
    ]
    return tasks.submit("join", BaggedModels, models)


def _distinct(parts: list[Any]) -> NDArray[Any]:
    """Return the labels of several partitions."""
    return np.unique(label_array(together(parts, "y"), "y"))


def _trained(local: Any, X: Any, y: Any, sample_weight: Any, classes: Any, seed: int) -> Any:
    """Train a model on one partition."""
    model = type(local)(**{**local.get_params(deep=False), "random_state": seed, "verbose": 0})
    return model.fit(X, y, sample_weight, classes)


class DaskLOMTreeClassifier(DaskEstimator):
    """A LOMtree per partition, with averaged probabilities.

    Online learners process rows one by one, so a model cannot be distributed without changing it.
    Here each partition trains its own model on its own rows. The result is *not* the model of all
    rows: with p partitions, a tree sees a p-th of the rows of each class and errs more. Averaging
    recovers a part of that (docs/dask.md has figures for one task). If the rows fit on one
    machine, one model of all rows, or ``n_estimators`` trees there, is the better choice.
    Prediction uses all models.

    Parameters
    ----------
    client : distributed.Client, optional
        The current client by default.
    **params
        Parameters of :class:`xmtree.LOMTreeClassifier` except ``n_jobs``. Partition i has the seed
        ``random_state`` + i. ``verbose=1`` shows a progress bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    """

    _local_class = LOMTreeClassifier
    _prefix = "lomtrees"
    _tasks = staticmethod(bagging_tasks)


class DaskRecallTreeClassifier(DaskEstimator):
    """A Recall Tree per partition, with averaged probabilities.

    As with :class:`DaskLOMTreeClassifier`, this is not the model of all rows.

    Parameters
    ----------
    client : as for :class:`DaskLOMTreeClassifier`
    **params
        Those of :class:`xmtree.RecallTreeClassifier`, as for :class:`DaskLOMTreeClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    """

    _local_class = RecallTreeClassifier
    _prefix = "recall-trees"
    _tasks = staticmethod(bagging_tasks)
