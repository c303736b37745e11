"""Rows of the pool: checking and finding them, and choosing those whose labels help most."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtree import _validation
from xmtree._gamble import GambleClassifier
from xmtree._labels import encode_single
from xmtree._oaa import OAAClassifier
from xmtree._validation import check_structure

Rows = NDArray[np.int64]
Utilities = NDArray[np.float64]

#: Classes of which the entropy is taken, so that its cost does not grow with their number.
N_OF_ENTROPY = 10


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


def free_numbers(rows: Any, free: NDArray[np.bool_], left_out: Rows, n_features: int) -> Rows:
    """``rows`` as row numbers of the pool, each ``free`` to be taught."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise TypeError(
            "rows must be row numbers of the pool, one dimension of at least one integer, or "
            f"rows of shape (n, {n_features}); got {numbers.dtype} {numbers.shape}"
        )
    outside = numbers[(numbers < 0) | (numbers >= len(free))]
    if len(outside):
        raise ValueError(
            f"rows must be from 0 to {len(free) - 1}, the rows of the pool, got {outside[0]}"
        )
    values, counts = np.unique(numbers, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"rows names row {values[counts.argmax()]} twice")
    taken = numbers[~free[numbers]]
    if len(taken):
        how = "was skipped" if taken[0] in left_out else "has a label already"
        raise ValueError(f"row {taken[0]} of the pool {how}")
    return numbers.astype(np.int64)


def find_rows(rows: Any, pool: Any, order: Rows) -> Rows:
    """Where in ``pool`` the validated ``rows`` are, searched in this ``order``."""
    if sp.issparse(pool):
        check_structure(rows, "rows")
        rows = sp.csr_array(rows, copy=True)
        rows.sum_duplicates()
    elif hasattr(rows, "toarray"):
        rows = rows.toarray()
    at: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, key in zip(order[::-1].tolist(), _keys(pool[order[::-1]]), strict=True):
        at[key].append(number)
    numbers = []
    for row, key in enumerate(_keys(rows)):
        if not at[key]:
            raise ValueError(
                f"row {row} is no row of the pool that is without a label; "
                "rows to learn from belong to the X of start"
            )
        numbers.append(at[key].pop())
    return np.array(numbers, np.int64)


def _keys(X: Any) -> list[bytes]:
    """Rows as bytes, alike where the rows are to the core."""
    if not sp.issparse(X):
        return [row.tobytes() for row in _single(X)]
    matrix: Any = X
    csr: Any = matrix.copy()
    csr.data = _single(csr.data)
    csr.eliminate_zeros()
    parts = zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    columns = csr.indices.astype(np.int64)
    return [columns[a:b].tobytes() + csr.data[a:b].tobytes() for a, b in parts]


def _single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values as the core reads them, each number and NaN in one form."""
    with np.errstate(over="ignore"):
        # Adding 0 makes 0 of -0.
        single = values.astype(np.float32) + np.float32(0)
    single[np.isnan(single)] = np.nan
    return single


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


def entropies(classifier: Any, X: Any) -> Utilities:
    """Entropy, in nats, of the probabilities of the best ``N_OF_ENTROPY`` classes alone."""
    k = min(N_OF_ENTROPY, len(classifier.classes_))
    chances = np.maximum(classifier._probabilities(X, k)[1], 0).astype(np.float64)
    logarithms = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
    found: Utilities = -(chances * logarithms).sum(axis=1)
    return found


def committee(
    new_classifier: Callable[[], Any], data: tuple[Any, Any, Any], n: int, draw: np.random.Generator
) -> list[Any]:
    """``n`` classifiers, each trained on as many of the rows, labels and weights as there are,
    drawn with replacement."""
    members = []
    X, labels, weights = data
    for seed in draw.integers(2**31, size=n).tolist():
        rows = draw.integers(len(labels), size=len(labels))
        member = new_classifier().set_params(random_state=seed)
        members.append(
            member.fit(X[rows], labels[rows], None if weights is None else weights[rows])
        )
    return members


def disagreements(members: Sequence[Any], X: Any) -> Utilities:
    """Vote entropy, in nats: the entropy of the shares of the members' votes for each class."""
    votes = [best_labels(member, X) for member in members]
    # Every vote stands for its class: the mean over members of -log(share) is the entropy.
    shares = (sum(one == other for other in votes) / len(votes) for one in votes)
    found: Utilities = np.mean([-np.log(share) for share in shares], axis=0)
    return found


def has_fallen(missed: NDArray[np.bool_], n: int, share: float) -> bool:
    """Whether the error on the last ``n`` rows is at most this share of its highest value."""
    so_far = np.concatenate([[0], np.cumsum(missed)])
    errors = so_far[n:] - so_far[:-n]
    return len(missed) >= n and bool(errors.max() > 0 and errors[-1] <= share * errors.max())
