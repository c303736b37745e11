"""Online trees on a cluster: one for each partition of the rows, their predictions averaged."""

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
from xmtree._prediction import Scores
from xmtree._recall_tree import RecallTreeClassifier
from xmtree.dask._base import DaskEstimator
from xmtree.dask._cluster import Tasks, Workers
from xmtree.dask._partitions import Source, together

#: Labels of each member that its average with others looks at, at least.
_LEAST_LABELS = 20


class BaggedModels:
    """Models of the same classes whose probabilities are averaged.

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
        """The label of the highest average of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame

        Returns
        -------
        array of shape (n,)
        """
        return self.predict_topk(X, 1)[0][:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose label is predicted.

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

    def predict_topk(
        self, X: Any, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` labels of the highest averages of each row, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or a data frame
        k : int, default=5
            Of each model ``max(k, 20)`` labels are looked at; others count as 0.
        scores : {"raw", "probability"}, default="raw"
            Both are the averages of probabilities that labels are ranked by.

        Returns
        -------
        labels : array of shape (n, k)
            Where fewer than ``k`` labels have a score, filled up as by the estimators.
        scores : float32 array of shape (n, k)
            Averages of probabilities, falling; -inf where there is no label.
        """
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        n_classes = len(self.classes_)
        n_each = min(max(int(k), _LEAST_LABELS), n_classes)
        total: Any = 0
        for model in self.estimators_:
            codes, chances = model._probabilities(model._rows(X), n_each)
            rows, places = np.nonzero(codes >= 0)
            found = (chances[rows, places].astype(np.float64), (rows, codes[rows, places]))
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
    """The task that joins a model of each partition, and those that it needs."""
    if data.parts is None:
        raise TypeError(
            "X must be a Dask collection or a list of partitions: each has a model of its "
            f"own; train {type(local).__name__} on local rows"
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
    """The labels of some partitions."""
    return np.unique(label_array(together(parts, "y"), "y"))


def _trained(local: Any, X: Any, y: Any, sample_weight: Any, classes: Any, seed: int) -> Any:
    """A model of one partition."""
    model = type(local)(**{**local.get_params(deep=False), "random_state": seed, "verbose": 0})
    return model.fit(X, y, sample_weight, classes)


class DaskLOMTreeClassifier(DaskEstimator):
    """A LOMtree for each partition, their probabilities averaged.

    Online learners learn one row after the other, so a model cannot be shared out over machines
    without changing it: here each partition trains one of its own, on its own rows alone. This is
    *not* the model of all rows: a tree that sees a p-th of the rows of each class errs more, and
    averaging wins a part of that back. docs/dask.md says how much on one task; where the rows fit
    on one machine, one model of all of them, or ``n_estimators`` trees there, is the better choice.
    A prediction asks all models.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client.
    **params
        Those of :class:`xmtree.LOMTreeClassifier`, without ``n_jobs``.
        Partition i has the seed ``random_state`` + i.
        ``verbose=1`` shows a bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    """

    _local_class = LOMTreeClassifier
    _prefix = "lomtrees"
    _tasks = staticmethod(bagging_tasks)


class DaskRecallTreeClassifier(DaskEstimator):
    """A Recall Tree for each partition, their probabilities averaged.

    What holds for :class:`DaskLOMTreeClassifier` holds here: it is not the model of all rows.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client.
    **params
        Those of :class:`xmtree.RecallTreeClassifier`, without ``n_jobs``.
        Partition i has the seed ``random_state`` + i.
        ``verbose=1`` shows a bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    """

    _local_class = RecallTreeClassifier
    _prefix = "recall-trees"
    _tasks = staticmethod(bagging_tasks)
