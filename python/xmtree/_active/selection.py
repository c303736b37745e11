"""Checks of the pool's rows, and the choice of the rows to label."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._gamble import GambleClassifier
from xmtree._labels import encode_single
from xmtree._oaa import OAAClassifier

Rows = NDArray[np.int64]
Utilities = NDArray[np.float64]


def checked(X: Any, takes_nan: bool) -> Any:
    """Return ``X``, in canonical form if it is CSR, after the core has checked all values.

    All rows are checked together, as the core would number the rows of a subset differently.
    """
    # The core checks the rows that it predicts, so a small model predicts them all.
    small = GambleClassifier(n_estimators=1, max_leaves=2) if takes_nan else OAAClassifier()
    empty = sp.csr_matrix if sp.issparse(X) else np.zeros
    model: Any = small.fit(empty((2, X.shape[1]), dtype=X.dtype), [0, 1])

    def check(X: Any) -> Any:
        model._model.predict_topk(X, 1)
        return X

    return _validation.canonical(X, check)


def labels_of(y: Any, n: int, name: str) -> NDArray[Any]:
    """Return one label for each of ``n`` rows."""
    target = encode_single(y, name)
    if len(target.codes) != n:
        raise ValueError(f"{name} has {len(target.codes)} labels for {n} rows")
    return np.asarray(target.classes[target.codes])


def first_set(usable: Rows, labels: NDArray[Any], n: int, draw: np.random.Generator) -> Rows:
    """Return the first working set of ``fit``: a row of every class, and random others."""
    one_each, others = _one_each(usable, labels, draw)
    return np.concatenate([one_each, others])[: max(n, len(one_each))]


def held_out(usable: Rows, labels: NDArray[Any], share: float, draw: np.random.Generator) -> Rows:
    """Return validation rows from ``usable`` that leave a row of every class."""
    _, others = _one_each(usable, labels, draw)
    if not len(others):
        raise ValueError(
            f"early_stopping needs rows to hold out, but each of the {len(usable)} rows is the "
            "only one of its class; pass X_val and y_val"
        )
    return others[: max(1, round(share * len(usable)))]


def _one_each(usable: Rows, labels: NDArray[Any], draw: np.random.Generator) -> tuple[Rows, Rows]:
    """Return a random row of every class, and the others in random order."""
    order = draw.permutation(usable)
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts], np.delete(order, firsts)


def spread(pairs: NDArray[Any], n: int) -> Rows:
    """Return positions of ``n`` rows: the first of each pair of best classes, then others in order.

    If there are more than ``n`` different pairs, the first ``n`` count. Distances between features
    are not used, as the most distant texts are outliers.
    """
    _, firsts = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    firsts = np.sort(firsts)[:n]
    others = np.delete(np.arange(len(pairs)), firsts)
    return np.sort(np.concatenate([firsts, others[: n - len(firsts)]]))


def best_labels(classifier: Any, X: Any) -> NDArray[Any]:
    """Return the best label of each of the validated rows ``X``."""
    # The code is -1 if no label has a score.
    return np.asarray(classifier.classes_[np.maximum(classifier._best(X), 0)])


def margins(classifier: Any, X: Any) -> Utilities:
    """Return 1 / (best score - second best) of the validated rows ``X``."""
    _, best = classifier._topk(X, 2)
    # With a single class the second best score is -inf, and the utility is 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        utilities: Utilities = 1 / (best[:, 0].astype(np.float64) - best[:, 1])
    # If no class has a score, the row is completely uncertain.
    utilities[np.isnan(utilities)] = np.inf
    return utilities


def has_fallen(missed: NDArray[np.bool_], n: int, share: float) -> bool:
    """Return whether the error on the last ``n`` rows is at most ``share`` of its maximum."""
    so_far = np.concatenate([[0], np.cumsum(missed)])
    errors = so_far[n:] - so_far[:-n]
    return len(missed) >= n and bool(errors.max() > 0 and errors[-1] <= share * errors.max())
