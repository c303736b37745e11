"""What all estimators on a cluster share: parameters of a local learner, and its predictions."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from distributed import Client
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from xmtree._labels import decode
from xmtree.dask._cluster import client_of, send
from xmtree.dask._partitions import by_partition, is_remote, row_parts


class DaskEstimator(ClassifierMixin, BaseEstimator):
    """An estimator whose parameters are those of a local one, all but a few."""

    #: The local estimator.
    _local_class: ClassVar[type[Any]]
    #: Parameters of it that mean nothing here, and what is used in their place.
    _left_out: ClassVar[dict[str, str]] = {"n_jobs": "a worker's own threads are used"}
    _local: Any

    def __init__(self, *, client: Any = None, **params: Any) -> None:
        for name in sorted(self._left_out.keys() & params.keys()):
            raise TypeError(
                f"{type(self).__name__} has no parameter {name!r}: {self._left_out[name]}"
            )
        # Unknown parameters are a TypeError, as they are there.
        local = self._local_class(**params)
        for name in self._get_param_names():
            setattr(self, name, getattr(local, name))
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names: list[str] = cls._local_class._get_param_names()
        return [name for name in names if name not in cls._left_out]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        # They belong to this process.
        return state | {"client": None, "_sent": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_local")

    def _new_local(self) -> Any:
        """An estimator that has learned nothing, with these parameters."""
        return self._local_class(**self.get_params(deep=False))

    def _adopt(self, local: Any) -> None:
        """Takes over what was learned."""
        self._local = local
        self._sent: tuple[str, Any] | None = None
        self.classes_, self.n_features_in_ = local.classes_, local.n_features_in_
        if hasattr(local, "feature_names_in_"):
            self.feature_names_in_ = local.feature_names_in_

    def to_local(self) -> Any:
        """The trained model as an estimator without Dask, which can go its own way.

        Returns
        -------
        estimator
            Of the class that the name of this one says after "Dask"; for ``save`` and for serving.

        Raises
        ------
        NotFittedError
        """
        check_is_fitted(self)
        local = copy.copy(self._local)
        # It is copied where one of them learns on.
        local._model = local._model.snapshot()
        return local

    def predict(self, X: Any) -> Any:
        """The best label of each row, or its label set.

        Parameters
        ----------
        X : Dask array of shape (n, n_features), list of delayed partitions, or local rows
            Blocks are arrays or CSR matrices.

        Returns
        -------
        Dask array of shape (n,), or (n, n_classes) for label sets
            Not yet computed, in the blocks of ``X``. Label sets are blocks of the form that ``y``
            had in ``fit``: dense, CSR, or with lists an array of shape (n,) of lists.
        list of Delayed
            Where ``X`` is a list of partitions or a data frame: the predictions of each.
        array
            Where ``X`` is here: what :meth:`to_local` predicts.
        """
        check_is_fitted(self)
        if not is_remote(X):
            return self._local.predict(X)
        form = self._local._y_form
        name = f"{type(self).__name__}-predict"
        parts = by_partition(_predicted, self._on_workers(), X, name)
        if not isinstance(X, da.Array):
            return parts
        if form in ("labels", "lists"):
            empty: Any = np.empty(0, self.classes_.dtype if form == "labels" else object)
            shapes: list[tuple[Any, ...]] = [(n,) for n in X.chunks[0]]
        else:
            n = len(self.classes_)
            shapes = [(rows, n) for rows in X.chunks[0]]
            empty = np.empty((0, n), np.int64)
            if form == "sparse":
                empty = sp.csr_matrix(empty)
        return _as_array(parts, shapes, empty)

    def _ranked(self, X: Any, k: int, **options: Any) -> Any:
        """As ``predict_topk`` of rows on the cluster."""
        lazy = delayed(_topk, pure=False, nout=2, name=f"{type(self).__name__}-topk")
        model = self._on_workers()
        parts = [lazy(model, part, k, **options) for part in row_parts(X)]
        if not isinstance(X, da.Array):
            return parts
        shapes = [(n, k) for n in X.chunks[0]]
        labels = decode(np.full((0, k), -1, np.int32), self.classes_)
        return (
            _as_array([part[0] for part in parts], shapes, labels),
            _as_array([part[1] for part in parts], shapes, np.empty((0, k), np.float32)),
        )

    def _on_workers(self) -> Any:
        """The model, which is sent to each worker once."""
        client: Client = client_of(self.client)
        if self._sent is None or self._sent[0] != client.id or self._sent[1].cancelled():
            local = self.to_local()
            sent = send(client, local, "prediction")
            self._sent = (client.id, sent)
        return self._sent[1]


def _predicted(model: Any, rows: Any) -> Any:
    found = model.predict(rows)
    if isinstance(found, list):
        lists = np.empty(len(found), object)
        lists[:] = found
        return lists
    return found


def _topk(model: Any, rows: Any, k: int, **options: Any) -> Any:
    return model.predict_topk(rows, k, **options)


def _as_array(parts: list[Any], shapes: list[tuple[Any, ...]], empty: Any) -> Any:
    """Delayed blocks of these shapes as one array."""
    blocks = [
        da.from_delayed(part, shape, meta=empty) for part, shape in zip(parts, shapes, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)
