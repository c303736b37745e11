"""Facts about all partitions, and each partition as training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from xmtree import _class_weight, _validation
from xmtree._labels import Labels, Target, encode, encode_among, forms
from xmtree._sharing import copied
from xmtree.dask._cluster import Tasks
from xmtree.dask._partitions import Partition, n_bytes, n_rows


@dataclass(frozen=True)
class Facts:
    """Facts about a partition; one without rows has none."""

    #: Rows with a weight, and values and bytes of all rows.
    n_rows: int = 0
    n_values: int = 0
    n_bytes: int = 0
    #: Number and names of the features, as attributes of an estimator.
    features: dict[str, Any] | None = None
    #: Labels that occur.
    labels: Labels | None = None


def facts(local: Any, X: Any, y: Any, sample_weight: Any) -> Facts:
    """Return the facts about a partition."""
    if not n_rows(X):
        return Facts()
    seen = copied(local)
    X = seen._validated(X, reset=True)
    weights = _weights(sample_weight, X)
    present = X.shape[0] if weights is None else int(np.count_nonzero(weights))
    features = {name: value for name, value in vars(seen).items() if name.endswith("_in_")}
    n_values = getattr(X, "nnz", X.size)
    return Facts(present, n_values, n_bytes(X), features, labels_of(y))


def labels_of(y: Any) -> Labels | None:
    """Return the labels that occur in a partition, if any."""
    found = forms.read(y, "y", column_is_labels=True)
    if isinstance(found, forms.Indicator):
        columns = np.arange(found.sets.shape[1]) if found.columns is None else found.columns
        return Labels.of(columns, found.form)
    return Labels(np.unique(found.labels), found.form, None) if len(found.labels) else None


def joined_labels(found: Sequence[Labels | None], classes: Any) -> Labels:
    """Return the labels of all partitions; ``classes`` is the user's argument."""
    known = [labels for labels in found if labels is not None]
    if not known:
        raise ValueError("y contains no labels")
    first = known[0]
    for number, labels in enumerate(known):
        if labels.form != first.form:
            raise ValueError(
                f"partitions of y hold labels in two forms, {first.form} and {labels.form}"
            )
        is_indicator = first.form in ("indicator", "sparse")
        if is_indicator and not np.array_equal(labels.classes, first.classes):
            raise ValueError(
                f"partitions of y must be indicators with the same columns, partition {number} "
                "has others than the first"
            )
    if first.form in ("indicator", "sparse"):
        return first
    every = classes if classes is not None else _together([labels.classes for labels in known])
    return Labels(np.unique(forms.label_array(every, "y")), first.form, None)


def _together(arrays: list[NDArray[Any]]) -> Any:
    if len({array.dtype for array in arrays}) == 1:
        return np.concatenate(arrays)
    # numpy's common type may not represent all labels. tolist of times may return integers.
    lists = (list(a) if a.dtype.kind in "mM" else a.tolist() for a in arrays)
    return list(chain.from_iterable(lists))


@dataclass(frozen=True)
class Plan:
    """Facts about all partitions together."""

    #: An untrained estimator that knows the features.
    local: Any
    labels: Labels
    #: The user's argument.
    classes: Any
    facts: list[Facts]

    @property
    def n_rows(self) -> int:
        """Return the number of rows with a weight."""
        return sum(part.n_rows for part in self.facts)

    def target(self, y: Any) -> Target:
        """Return the encoded labels of a partition."""
        is_given = self.classes is not None
        found = encode_among(y, self.classes) if is_given else encode(y, self.labels)
        target: Target = self.local._checked(found)
        return target


def joined(local: Any, classes: Any, found: list[Facts]) -> Plan:
    """Return what partitions with these facts have together."""
    local = copied(local)
    first = None
    for number, part in enumerate(found):
        if part.features is None:
            continue
        names = part.features.get("feature_names_in_", ())
        if first is None:
            first = number
            vars(local).update(part.features)
        if set(names) != set(getattr(local, "feature_names_in_", ())):
            raise ValueError(
                f"partitions {first} and {number} of X do not have the same columns; all must be "
                "data frames with the same columns, or arrays"
            )
    if first is None:
        raise ValueError("X has no rows")
    return Plan(local, joined_labels([part.labels for part in found], classes), classes, found)


@dataclass(frozen=True)
class Part:
    """A partition as training data, which no task changes."""

    X: Any
    target: Target
    #: Weights of the rows times those of their classes.
    weights: NDArray[np.float64]
    #: Rows that only the last pass learns.
    held_out: NDArray[np.intp]

    def __sizeof__(self) -> int:
        """Return the number of bytes, by which Dask plans its memory."""
        codes = self.target.codes
        return n_bytes(self.X) + n_bytes(codes) + self.weights.nbytes

    def weights_of(self, rows: str) -> NDArray[np.float64]:
        """Return the weights to learn "all" rows, the "others" or those that are "held out"."""
        weights = self.weights.copy()
        if rows != "all":
            is_out = np.zeros(len(weights), np.bool_)
            is_out[self.held_out] = True
            weights[is_out != (rows == "held out")] = 0
        return weights


def part(
    plan: Plan, n_held_out: int, labeled: bool, class_weight: Any, number: int, *data: Any
) -> Part | None:
    """Return a partition as training data; None without rows that have a weight."""
    if not n_rows(data[0]):
        return None
    X, target, weights = read(plan, *data)
    weights = _class_weight.times(class_weight, weights, target)
    if weights is None:
        weights = np.ones(X.shape[0])
    if labeled and target.multilabel:
        weights = weights * (np.diff(target.codes.indptr) > 0)
    if not weights.any():
        return None
    # Each partition holds out its share of the rows.
    present = np.flatnonzero(weights)
    seed = [_validation.seed(plan.local.random_state), number]
    order = np.random.default_rng(seed).permutation(present)
    n = round(n_held_out * len(present) / max(plan.n_rows, 1))
    return Part(X, target, weights, np.sort(order[:n]))


def read(plan: Plan, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Target, Any]:
    """Return the rows, the target and the weights of a partition."""
    local = copied(plan.local)
    names = getattr(local, "feature_names_in_", None)
    if names is not None and list(X.columns) != list(names):
        X = X[list(names)]
    any_width = getattr(local, "n_bits", None) is not None
    X = _validation.rows(local, X, reset=False, any_width=any_width)
    if not getattr(X, "has_canonical_format", True):
        _validation.check_structure(X, "X")
        X = X.copy()
        X.sum_duplicates()
    target = plan.target(y)
    if target.codes.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, y has {target.codes.shape[0]}")
    return X, target, _weights(sample_weight, X)


def _weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Return the weights of a partition, which may all be 0."""
    if sample_weight is not None and not np.any(sample_weight):
        return np.zeros(X.shape[0])
    return _validation.weights(sample_weight, X)


def _totals(plan: Plan, X: Any, y: Any, sample_weight: Any) -> NDArray[np.float64]:
    if not n_rows(X):
        return np.zeros(len(plan.labels.classes))
    _, target, weights = read(plan, X, y, sample_weight)
    return _class_weight.totals(target, weights)


def planned(tasks: Tasks, local: Any, data: list[Partition], classes: Any) -> tuple[Future, Plan]:
    """Return what all partitions have together, on the cluster and here."""
    found = [tasks.submit("facts", facts, local, *partition) for partition in data]
    plan = tasks.submit("plan", joined, local, classes, found)
    return plan, tasks.result(plan)


def training_parts(
    tasks: Tasks, plan: Future, local: Any, data: list[Partition], n_held_out: int, labeled: bool
) -> list[Future]:
    """Return the partitions as training data; if ``labeled``, without rows that have no labels."""
    weight = local.class_weight
    if weight == "balanced":
        totals = [tasks.submit("class-totals", _totals, plan, *one) for one in data]
        weight = tasks.submit("class-weights", _class_weight.balanced, *totals)
    arguments = plan, n_held_out, labeled, weight
    return [tasks.submit("rows", part, *arguments, number, *one) for number, one in enumerate(data)]
