"""A snapshot of a model for serving, which later training does not change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _one_row
from xmtree._prediction import FittedClassifier, Ranking, Scores, documented_as
from xmtree._sharing import packed, unpacked, view
from xmtree._typing import Sparse

#: Rows in docstrings.
_ROWS = "array of shape (n, n_features) or (n_features,), or CSR matrix"


class Predictor:
    """Predictions of a fitted estimator at the time of the call of its ``predictor()``.

    Results are identical to those of the estimator, with less overhead per call: rows are not
    converted, and only the compiled core checks their values. The predictor shares the memory of
    the model. If the estimator is trained further, it first copies the model, once per predictor
    still in use. A pickle holds only what predictions need, without the state of training.

    All methods are thread-safe. Calls of more than about fifty microseconds, with many rows or a
    large model, run in parallel: two threads do twice the work of one. A call with one row is
    over before Python could switch threads, so it keeps the interpreter: threads that predict one
    row each are together as fast as one thread. To use all cores, pass many rows at once, or use
    processes.

    Rows are float32 or float64: a CSR matrix or an array of shape (n, n_features), or one
    row of shape (n_features,). Columns are in the order of training; names are ignored.

    Parameters
    ----------
    estimator : fitted learner of this package
        Usually its method ``predictor()`` is called instead.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from xmtree import LOMTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LOMTreeClassifier(random_state=0).fit(X, y)
    >>> predictor = model.predictor()
    >>> predictor.predict(X[0])
    array([0])
    """

    __slots__ = ("_estimator",)

    _estimator: FittedClassifier

    def __init__(self, estimator: Any) -> None:
        if not isinstance(getattr(estimator, "_model", None), _core.Classifier):
            raise TypeError(f"estimator must be a fitted learner, got {type(estimator).__name__}")
        self._estimator = view(estimator)
        self._estimator.n_jobs = 1
        # Predictions ignore names and do not need the parameters of partial_fit.
        for name in ("feature_names_in_", "_compared"):
            vars(self._estimator).pop(name, None)

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the labels."""
        return self._estimator.classes_

    def predict(self, X: NDArray[Any] | Sparse) -> Any:
        """Return the best label of each row, or its label set, as the estimator's ``predict``.

        Parameters
        ----------
        X : array of shape (n, n_features) or (n_features,), or CSR matrix

        Returns
        -------
        array of shape (n,)
            Labels; or label sets in the form of the estimator's ``predict``. n is 1 for one row.

        Raises
        ------
        TypeError, ValueError
            If ``X`` is of another type, or its values or number of columns are invalid.
        """
        return self._estimator._predicted(self._rows(X))

    @documented_as(FittedClassifier.predict_topk, _ROWS)
    def predict_topk(
        self, X: NDArray[Any] | Sparse, k: int = 5, *, scores: Scores = "raw"
    ) -> Ranking:
        return self._estimator._ranked_labels(self._rows(X), k, scores)

    @documented_as(FittedClassifier.predict_proba, _ROWS)
    def predict_proba(self, X: NDArray[Any] | Sparse) -> NDArray[np.float32]:
        rows = self._rows(X)
        self._estimator._check_dense_size(rows)
        return self._estimator._all_probabilities(rows)

    def _rows(self, X: Any) -> Any:
        """Return ``X`` as rows that the core accepts; refuse other types."""
        if type(X) is np.ndarray:
            X = np.ascontiguousarray(X[np.newaxis] if X.ndim == 1 else X)
        if _one_row.is_ready(X):
            return X
        given = f"{type(X).__name__} of {X.dtype}" if hasattr(X, "dtype") else type(X).__name__
        raise TypeError(
            "X must be a float32 or float64 array of one or two dimensions, or such a CSR matrix, "
            f"got {given}"
        )

    def __getstate__(self) -> tuple[type[Any], dict[str, Any]]:
        state = packed(vars(self._estimator), lambda model: model.to_bytes(slim=True))
        return type(self._estimator), state

    def __setstate__(self, state: tuple[type[Any], dict[str, Any]]) -> None:
        cls, values = state
        self._estimator = object.__new__(cls)
        vars(self._estimator).update(unpacked(values, cls._short_name))
