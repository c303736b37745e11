"""Base of all estimators on a cluster: parameters of a local learner, and predictions."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar, Self

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from distributed import Client, Future
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from xmtree import _core
from xmtree._labels import decode
from xmtree._labels.forms import as_label_lists
from xmtree._ldsm_parts import LdSMInParts
from xmtree._prediction import Scores
from xmtree._sharing import copied, view
from xmtree._sklearn import BaseEstimator, ClassifierMixin, validate_params
from xmtree.dask import _cluster, _partitions
from xmtree.dask._cluster import Here, Tasks


class DaskEstimator(ClassifierMixin, BaseEstimator):
    """An estimator with the parameters of a local one, except a few."""

    #: The local estimator.
    _local_class: ClassVar[type[Any]]
    #: Local parameters without effect on a cluster, with the reason.
    _left_out: ClassVar[dict[str, str]] = {"n_jobs": "a worker's own threads are used"}
    #: Submits all tasks of a training and returns the last, or a call, for a fitted estimator.
    #: Arguments: tasks, local estimator, partitions, all possible labels, and workers.
    _tasks: ClassVar[Callable[..., Future | Here]]
    _local: Any
    classes_: NDArray[Any]
    random_state: Any
    verbose: int

    def __init__(self, *, client: Any = None, **params: Any) -> None:
        self._refuse(params, type(self).__name__)
        # Unknown parameters raise a TypeError in the local constructor.
        local = self._local_class(**params)
        for name in self._get_param_names():
            setattr(self, name, getattr(local, name))
        self.client = client

    @classmethod
    def _refuse(cls, params: Collection[str], owner: str) -> None:
        """Refuse parameters without effect; messages name the ``owner``."""
        for name in sorted(cls._left_out.keys() & params):
            raise TypeError(f"{owner} has no parameter {name!r}: {cls._left_out[name]}")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names: list[str] = cls._local_class._get_param_names()
        return [name for name in names if name not in cls._left_out]

    def __getstate__(self) -> dict[str, Any]:
        # Client and sent model belong to this process.
        return dict(super().__getstate__()) | {"client": None, "_sent": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_local")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Train on the workers.

        Parameters
        ----------
        X : Dask array of shape (n, n_features), list of partitions, Dask data frame, or local rows
            Blocks and partitions (``Delayed`` or ``Future``) must be arrays or CSR matrices.
            Local rows are cut into up to 8 partitions. Online learners need a random order.
        y : Dask array, list of partitions, or local labels, in the place and partitions of ``X``
            One label per row, or label sets as indicators (dense or CSR blocks) or lists.
        sample_weight : as 1-D ``y``, optional
            Importance weights, not negative; 1 by default.
        classes : array of shape (n_classes,), optional
            All labels that may occur; by default those of ``y``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is invalid, or there is no client.
        MemoryError, RuntimeError, KeyboardInterrupt
            See docs/dask.md. The estimator is then unchanged.
        """
        return self._fit(X, y, sample_weight, classes)

    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any, **options: Any) -> Self:
        """Train by the tasks of ``_tasks``; after an error the estimator is unchanged."""
        client = _cluster.client_of(self.client)
        local = self._local_class(**self.get_params(deep=False))
        validate_params(local)
        workers = _cluster.workers_of(client)
        _cluster.logger.info("training %s on %d workers", type(local).__name__, len(workers))
        prefix = getattr(local, "_short_name", "text")
        with Tasks(client, workers, prefix, f"training {type(self).__name__}") as tasks:
            data = _partitions.on_cluster(tasks, X, y, sample_weight)
            last = self._tasks(tasks, local, data, classes, workers, **options)
            fitted = tasks.result(last, self.verbose)
        self._adopt(fitted)
        return self

    def _adopt(self, local: Any) -> None:
        """Take over the fitted model."""
        self._local = local
        self._sent: tuple[str, Any] | None = None
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(local, name):
                setattr(self, name, getattr(local, name))

    def to_local(self) -> Any:
        """Return the trained model as an independent estimator without Dask.

        Returns
        -------
        estimator
            The class named after "Dask" in this class's name. Use it to save and to serve.
        """
        check_is_fitted(self)
        local = snapshot(self._local)
        return local.whole() if isinstance(local, LdSMInParts) else local

    def save(self, path: Any, *, compact: bool = False) -> None:
        """Write the trained model to a file, as ``to_local().save(path)`` does.

        Parameters
        ----------
        path, compact : as for :meth:`xmtree.LdSMClassifier.save`
        """
        self.to_local().save(path, compact=compact)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label or whole label set is predicted.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`

        Returns
        -------
        float
            Computed immediately, on the workers if ``X`` is there.
        """
        check_is_fitted(self)
        if not _partitions.is_remote(X):
            return float(self._local.score(X, y, sample_weight))
        client = _cluster.client_of(self.client)
        parts = self._lazily("score", _scored, _partitions.partitions(X, y, sample_weight))
        with _cluster.clear_errors(client, "scoring"):
            right, total = np.sum(client.gather(client.compute(parts)), axis=0)
        return float(right / total)

    def predict(self, X: Any) -> Any:
        """Return the best label of each row, or its label set.

        Parameters
        ----------
        X : Dask array of shape (n, n_features), list of delayed partitions, or local rows
            Blocks must be arrays or CSR matrices, for a classifier of texts as in ``fit``.

        Returns
        -------
        Dask array of shape (n,), or (n, n_classes) for label sets
            For a Dask array: lazy, in the blocks of ``X``. Label sets have the form of ``y`` in
            ``fit``: dense or CSR blocks, or for lists an array of shape (n,) of lists.
        list of Delayed, or predictions of :meth:`to_local`
            For a list of partitions or a data frame, or for local rows.
        """
        check_is_fitted(self)
        if not _partitions.is_remote(X):
            return self._local.predict(X)
        parts = self._lazily("predict", _predicted, zip(_partitions.parts_of(X, "X", X)))
        is_array = isinstance(X, da.Array)
        return _as_array(parts, X, _empty_prediction(self._local)) if is_array else parts

    def predict_topk(self, X: Any, k: int = 5, *, scores: Scores = "raw") -> Any:
        """Return the ``k`` best labels of each row, best first.

        Parameters
        ----------
        X : as for :meth:`predict`
        k : int, default=5
        scores : {"raw", "probability"}, default="raw"
            As for ``predict_topk`` of the local estimator.

        Returns
        -------
        labels, scores : Dask arrays of shape (n, k)
            For a Dask array: lazy, in the blocks of ``X``.
        list of Delayed pairs, or arrays of shape (n, k)
            For a list of partitions or a data frame, or for local rows.
        """
        check_is_fitted(self)
        if not _partitions.is_remote(X):
            return self._local.predict_topk(X, k, scores=scores)
        rows = zip(_partitions.parts_of(X, "X", X))
        parts = self._lazily("topk", partial(_topk, k=k, scores=scores), rows, nout=2)
        if not isinstance(X, da.Array):
            return parts
        empty = _empty_ranking(k, self.classes_)
        return tuple(_as_array([part[i] for part in parts], X, empty[i]) for i in range(2))

    def _lazily(self, name: str, function: Any, parts: Any, nout: int | None = None) -> Any:
        """Return the results of ``function`` for the model and each of the partitions."""
        lazy = delayed(function, pure=False, name=f"{type(self).__name__}-{name}", nout=nout)
        model = self._on_workers()
        return [lazy(model, *part) for part in parts]

    def _on_workers(self) -> Any:
        """Return the model as a future; each worker gets it once."""
        client: Client = _cluster.client_of(self.client)
        if self._sent is None or self._sent[0] != client.id or self._sent[1].cancelled():
            model = snapshot(self._local)
            if isinstance(model, LdSMInParts):  # which predicts one partition at a time
                workers = _cluster.workers_of(client).values()
                model.n_jobs = min(int(worker["nthreads"]) for worker in workers)
            self._sent = client.id, _cluster.send(client, model, "prediction")
        return self._sent[1]

    @classmethod
    def from_local(cls, local: Any, *, client: Any = None) -> Self:
        """Return an estimator that predicts with ``local`` on the workers.

        Parameters
        ----------
        local : fitted estimator of the class that :meth:`to_local` returns
        client : as for the class

        Returns
        -------
        estimator of this class
        """
        if not isinstance(local, cls._local_class):
            raise TypeError(f"local must be {cls._local_class.__name__}, got {local!r}")
        check_is_fitted(local)
        params = {name: getattr(local, name) for name in cls._get_param_names()}
        estimator = cls(client=client, **params)
        DaskEstimator._adopt(estimator, snapshot(local))
        return estimator


def snapshot(estimator: Any) -> Any:
    """Return a copy of the current model, which is only duplicated when one is updated."""
    is_learner = isinstance(getattr(estimator, "_model", None), _core.Classifier)
    copy = view(estimator) if is_learner else copied(estimator)
    if hasattr(estimator, "learner_"):
        copy.learner_ = snapshot(estimator.learner_)
    return copy


def _predicted(model: Any, rows: Any) -> Any:
    if not _partitions.n_rows(rows):
        return _empty_prediction(model)
    found = model.predict(rows)
    return as_label_lists(found) if isinstance(found, list) else found


def _empty_prediction(model: Any) -> Any:
    """Return the prediction for no rows, which learners refuse."""
    form, classes = getattr(model, "learner_", model)._y_form, model.classes_
    if form in ("labels", "lists"):
        return np.empty(0, classes.dtype if form == "labels" else object)
    empty = np.empty((0, len(classes)), np.int64)
    return sp.csr_matrix(empty) if form == "sparse" else empty


def _scored(model: Any, rows: Any, labels: Any, weights: Any) -> tuple[float, float]:
    """Return the weight of correct predictions, and of all."""
    total = float(_partitions.n_rows(rows) if weights is None else np.sum(weights))
    return (model.score(rows, labels, weights) * total if total else 0.0), total


def _topk(model: Any, rows: Any, k: int, scores: Scores) -> Any:
    if not _partitions.n_rows(rows):
        return _empty_ranking(k, model.classes_)
    return model.predict_topk(rows, k, scores=scores)


def _empty_ranking(k: int, classes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float32]]:
    return decode(np.full((0, k), -1, np.int32), classes), np.empty((0, k), np.float32)


def _as_array(parts: list[Any], X: da.Array, empty: Any) -> Any:
    """Return delayed predictions for the blocks of ``X`` as one array."""
    shapes = [(n, *empty.shape[1:]) for n in X.chunks[0]]
    blocks = [da.from_delayed(*each, meta=empty) for each in zip(parts, shapes, strict=True)]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)
