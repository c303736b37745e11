"""A model for serving: predictions alone, by a snapshot that later learning does not change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _one_row
from xmtree._prediction import Scores
from xmtree._sharing import packed, unpacked, view
from xmtree._typing import Sparse


class Predictor:
    """Predictions of a fitted estimator as it was when this was made, by its ``predictor()``.

    It answers to the bit as the estimator did, with less around a call: rows are taken as they
    are, and only the compiled core looks at their values. It shares the memory of the model; when
    the estimator learns on, it copies the model first, once per predictor that is still in use.
    A pickle holds what predictions need, without the state of learning.

    All methods may be called by any number of threads at a time. Calls that take more than some
    tens of microseconds, of many rows or a large model, run side by side: two threads do twice as
    much as one. A call of one row is over before Python could run another thread, so it keeps the
    interpreter: threads that ask for one row each get no more done together than one alone, and
    no less. Ask for many rows at once, or use processes, to have all cores predict.

    Rows are float32 or float64: a CSR matrix or an array of shape (n, n_features), or one
    row of shape (n_features,). Columns are the estimator's; names are not looked at.

    Parameters
    ----------
    estimator : fitted learner of this package
        Its ``predictor()`` is the usual way to make one.

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

    _estimator: Any

    def __init__(self, estimator: Any) -> None:
        if not isinstance(getattr(estimator, "_model", None), _core.Classifier):
            raise TypeError(f"estimator must be a fitted learner, got {type(estimator).__name__}")
        self._estimator = view(estimator)
        self._estimator.n_jobs = 1
        # Predictions look at no names, and need no parameters of learning.
        for name in ("feature_names_in_", "_compared"):
            vars(self._estimator).pop(name, None)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        classes: NDArray[Any] = self._estimator.classes_
        return classes

    def predict(self, X: NDArray[Any] | Sparse) -> Any:
        """The best label of each row, or its label set, as ``predict`` of the estimator.

        Parameters
        ----------
        X : array of shape (n, n_features) or (n_features,), or CSR matrix

        Returns
        -------
        array of shape (n,)
            Labels; or label sets as ``predict`` of the estimator has them. n is 1 for one row.

        Raises
        ------
        TypeError, ValueError
            If ``X`` is none of the above, or its values or number of columns cannot be used.
        """
        return self._estimator._predicted(_rows(X))

    def predict_topk(
        self, X: NDArray[Any] | Sparse, k: int = 5, *, scores: Scores = "raw"
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The ``k`` best labels of each row, best first, as ``predict_topk`` of the estimator.

        Parameters
        ----------
        X : array of shape (n, n_features) or (n_features,), or CSR matrix
        k : int, default=5
        scores : {"raw", "probability"}, default="raw"

        Returns
        -------
        labels : array of shape (n, k)
        scores : float32 array of shape (n, k)
        """
        found: tuple[NDArray[Any], NDArray[np.float32]]
        found = self._estimator._ranked_labels(_rows(X), k, scores)
        return found

    def predict_proba(self, X: NDArray[Any] | Sparse) -> NDArray[np.float32]:
        """Probabilities of all classes, as ``predict_proba`` of the estimator.

        Parameters
        ----------
        X : array of shape (n, n_features) or (n_features,), or CSR matrix

        Returns
        -------
        float32 array of shape (n, n_classes)
        """
        rows = _rows(X)
        self._estimator._check_dense_size(rows)
        chances: NDArray[np.float32] = self._estimator._all_chances(rows)
        return chances

    def __getstate__(self) -> tuple[type[Any], dict[str, Any]]:
        state = packed(vars(self._estimator), lambda model: model.to_bytes(slim=True))
        return type(self._estimator), state

    def __setstate__(self, state: tuple[type[Any], dict[str, Any]]) -> None:
        cls, values = state
        self._estimator = object.__new__(cls)
        vars(self._estimator).update(unpacked(values, cls._short_name))


def _rows(X: Any) -> Any:
    """``X`` as rows that the core takes."""
    if type(X) is np.ndarray:
        X = np.ascontiguousarray(X[np.newaxis] if X.ndim == 1 else X)
    if _one_row.is_ready(X):
        return X
    given = f"{type(X).__name__} of {X.dtype}" if hasattr(X, "dtype") else type(X).__name__
    raise TypeError(
        "X must be a float32 or float64 array of one or two dimensions, or a CSR matrix of these, "
        f"got {given}"
    )
