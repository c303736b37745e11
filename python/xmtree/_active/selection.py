"""Rows of the pool: checks, and the choice of those whose labels help most."""

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
    """Validated rows whose values the core accepts, of a CSR matrix in canonical form.

    All are checked at once: of some of them later on, the core would name the wrong row.
    """
    # The core checks all rows that it predicts, so a small model is made to predict them.
    small = GambleClassifier(n_estimators=1, max_leaves=2) if takes_nan else OAAClassifier()
    empty = sp.csr_matrix if sp.issparse(X) else np.zeros
    model: Any = small.fit(empty((2, X.shape[1]), dtype=X.dtype), [0, 1])

    def check(X: Any) -> Any:
        model._model.predict_topk(X, 1)
        return X

    return _validation.canonical(X, check)


def labels_of(y: Any, n: int, name: str) -> NDArray[Any]:
    """One label for each of ``n`` rows."""
    target = encode_single(y, name)
    if len(target.codes) != n:
        raise ValueError(f"{name} has {len(target.codes)} labels for {n} rows")
    labels: NDArray[Any] = target.classes[target.codes]
    return labels


def first_set(usable: Rows, labels: NDArray[Any], n: int, draw: np.random.Generator) -> Rows:
    """The first working set of ``fit``: one row of every class, the rest of ``n`` at random."""
    one_each, others = _one_each(usable, labels, draw)
    return np.concatenate([one_each, others])[: max(n, len(one_each))]


def held_out(usable: Rows, labels: NDArray[Any], share: float, draw: np.random.Generator) -> Rows:
    """Validation rows from ``usable``, the last of no class."""
    _, others = _one_each(usable, labels, draw)
    if not len(others):
        raise ValueError(
            f"early_stopping needs rows to hold out, but of the {len(usable)} rows each is "
            "the only one of its class; pass X_val and y_val"
        )
    return others[: max(1, round(share * len(usable)))]


def _one_each(usable: Rows, labels: NDArray[Any], draw: np.random.Generator) -> tuple[Rows, Rows]:
    """One row of every class, and the others in random order."""
    order = draw.permutation(usable)
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts], np.delete(order, firsts)


def spread(pairs: NDArray[Any], n: int) -> Rows:
    """Positions of ``n`` rows, one of each pair of best classes first, the others as they come.

    Where there are more ``pairs`` than ``n``, those that come first. How far rows are apart in
    their features is not looked at: on text the farthest are odd ones.
    """
    _, firsts = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    firsts = np.sort(firsts)[:n]
    others = np.delete(np.arange(len(pairs)), firsts)
    return np.sort(np.concatenate([firsts, others[: n - len(firsts)]]))


def best_labels(classifier: Any, X: Any) -> NDArray[Any]:
    """The best label of each of the validated rows ``X``."""
    # -1 stands where no label has a score.
    labels: NDArray[Any] = classifier.classes_[np.maximum(classifier._best(X), 0)]
    return labels


def margins(classifier: Any, X: Any) -> Utilities:
    """1 / (best score - second best) of the validated rows ``X``."""
    _, best = classifier._topk(X, 2)
    # A classifier that knows a single class has no doubt of it: the other scores -inf.
    with np.errstate(divide="ignore", invalid="ignore"):
        utilities: Utilities = 1 / (best[:, 0].astype(np.float64) - best[:, 1])
    # Where no class has a score any may be right.
    utilities[np.isnan(utilities)] = np.inf
    return utilities


def has_fallen(missed: NDArray[np.bool_], n: int, share: float) -> bool:
    """Whether the error on the last ``n`` rows is at most this share of its highest value."""
    so_far = np.concatenate([[0], np.cumsum(missed)])
    errors = so_far[n:] - so_far[:-n]
    return len(missed) >= n and bool(errors.max() > 0 and errors[-1] <= share * errors.max())
